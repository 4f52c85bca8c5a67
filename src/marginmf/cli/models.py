"""Every ratings method by its name on the command line, made with the options given there."""

from collections.abc import Iterable
from typing import Any

from marginmf.cli.making import Settings, make_all
from marginmf.cli.options import ModelOptions
from marginmf.ratings import METHODS
from marginmf.ratings.estimator import RatingsEstimator

#: The parameter that each option sets.
PARAMETERS = {"factors": "n_factors", "reg": "reg", "max_iter": "max_iter"}


def known_models() -> dict[str, type[RatingsEstimator]]:
    """Return the methods that `marginmf.ratings` has, by their names here.

    >>> sorted(known_models())[:4]
    ['als', 'bias', 'bmmmf', ...]
    """
    return dict(METHODS)


def make_model(name: str, options: ModelOptions, progress: bool = False) -> RatingsEstimator:
    """Return one method, ready to be fitted."""
    model: RatingsEstimator = make_models([name], options, progress)[name]
    return model


def make_models(
    names: Iterable[str], options: ModelOptions, progress: bool = False
) -> dict[str, Any]:
    """Return methods ready to be fitted; each gets those of the options that it has."""
    given = {option: getattr(options, option) for option in PARAMETERS}
    values = {
        PARAMETERS[option]: parse_reg(value) if option == "reg" else value
        for option, value in given.items()
        if value is not None
    }
    said = {parameter: f"--{option.replace('_', '-')}" for option, parameter in PARAMETERS.items()}
    always = {"random_state": options.seed, "n_jobs": options.n_jobs, "verbose": int(progress)}
    return make_all(names, known_models(), Settings(values, said, options.settings or (), always))


def parse_reg(text: str) -> Any:
    """Read the weight of a penalty: ``auto``, a number, or numbers with commas between them.

    >>> parse_reg("auto"), parse_reg("15"), parse_reg("6,10,17,14")
    ('auto', 15.0, [6.0, 10.0, 17.0, 14.0])
    """
    if text.strip() == "auto":
        return "auto"
    numbers = []
    for part in text.split(","):
        try:
            number = float(part)
        except ValueError:
            number = -1.0
        if not 0 <= number < float("inf"):
            raise ValueError(
                f"--reg {text}: {part.strip()!r} is not a number >= 0. Give auto, one number, "
                "or several with commas between them, such as 6,10,17,14."
            )
        numbers.append(number)
    return numbers[0] if len(numbers) == 1 else numbers
