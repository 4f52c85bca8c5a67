"""Every ratings method by its name on the command line, made with the options given there."""

from collections.abc import Iterable
from typing import Any

from marginmf.cli.making import Settings, make_all
from marginmf.cli.options import ModelOptions
from marginmf.ratings import METHODS, POSITIVE
from marginmf.ratings.estimator import RatingsEstimator
from marginmf.ratings.positive import PositiveOnly

#: The parameter that each option sets.
PARAMETERS = {"factors": "n_factors", "reg": "reg", "max_iter": "max_iter"}


def known_models(lists: bool = False) -> dict[str, type[Any]]:
    """Return the methods that `marginmf.ratings` has, by their names here.

    With ``lists``, those too that make lists and predict no ratings.

    >>> sorted(known_models())[:4]
    ['als', 'bias', 'bmmmf', ...]
    """
    return {**METHODS, **POSITIVE} if lists else dict(METHODS)


def make_any(
    name: str | None, positive_only: bool, options: ModelOptions, progress: bool = False
) -> RatingsEstimator | PositiveOnly:
    """Return one method for ratings or for who has what, ready to be fitted.

    Its name says which; without a name, it is the one that is best on average.
    """
    if name in METHODS and positive_only:
        raise ValueError(
            f"--model {name} learns from ratings; with --positive-only, give one of "
            f"{', '.join(sorted(POSITIVE))}."
        )
    name = name or ("ease" if positive_only else "hmf")
    model: RatingsEstimator | PositiveOnly = make_models([name], options, progress, True)[name]
    return model


def make_model(name: str, options: ModelOptions, progress: bool = False) -> RatingsEstimator:
    """Return one method, ready to be fitted."""
    model: RatingsEstimator = make_models([name], options, progress)[name]
    return model


def make_models(
    names: Iterable[str], options: ModelOptions, progress: bool = False, lists: bool = False
) -> dict[str, Any]:
    """Return methods ready to be fitted; each gets those of the options that it has.

    With ``lists``, they may be methods that predict no ratings.
    """
    names = list(names)
    if not lists:
        for name in names:
            if name in POSITIVE:
                raise ValueError(f"{name} makes lists and predicts no ratings: add --lists.")
    given = {option: getattr(options, option) for option in PARAMETERS}
    values = {
        PARAMETERS[option]: parse_reg(value) if option == "reg" else value
        for option, value in given.items()
        if value is not None
    }
    said = {parameter: f"--{option.replace('_', '-')}" for option, parameter in PARAMETERS.items()}
    always = {"random_state": options.seed, "n_jobs": options.n_jobs, "verbose": int(progress)}
    settings = Settings(values, said, options.settings or (), always)
    return make_all(names, known_models(lists), settings)


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
