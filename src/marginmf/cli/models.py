"""Every ratings method by its name on the command line, made with the options given there."""

import inspect
import json
from collections.abc import Iterable
from typing import Any

from marginmf import ratings
from marginmf._names import suggestion
from marginmf.cli.options import ModelOptions
from marginmf.ratings.base import RatingsEstimator

#: Names that are not simply those of the class in small letters.
SHORT = {"BiasOnly": "bias", "MarginEnsemble": "ensemble"}
#: The parameter that each option sets.
PARAMETERS = {"factors": "n_factors", "reg": "reg", "max_iter": "max_iter"}


def known_models() -> dict[str, type[RatingsEstimator]]:
    """Return the methods that `marginmf.ratings` has, by their names here.

    >>> sorted(known_models())[:4]
    ['als', 'bias', 'bmmmf', ...]
    """
    exported = (getattr(ratings, name) for name in ratings.__all__)
    return {
        SHORT.get(one.__name__, one.__name__.lower()): one
        for one in exported
        if inspect.isclass(one) and issubclass(one, RatingsEstimator)
    }


def make_model(name: str, options: ModelOptions, progress: bool = False) -> RatingsEstimator:
    """Return one method, ready to be fitted."""
    model: RatingsEstimator = make_models([name], options, progress)[name]
    return model


def make_models(
    names: Iterable[str], options: ModelOptions, progress: bool = False
) -> dict[str, Any]:
    """Return methods ready to be fitted; each gets those of the options that it has.

    Raises
    ------
    ValueError
        If a name is unknown or comes twice, a value cannot be read, or an option belongs to none
        of the methods.
    """
    models: dict[str, Any] = {}
    for name in names:
        if name in models:
            raise ValueError(f"The model {name} is named twice.")
        models[name] = _class_of(name)()
    given: dict[str, Any] = {
        parameter: parse_reg(value) if option == "reg" else value
        for option, parameter in PARAMETERS.items()
        if (value := getattr(options, option)) is not None
    }
    for parameter, value in given.items():
        _set(models, list(models), parameter, value)
    settings = [parse_setting(text) for text in options.settings or ()]
    for one, parameter, value in settings:
        if one is not None and one not in models:
            raise ValueError(
                f"--set {one}.{parameter}: {one} is not one of the models here, which are "
                f"{', '.join(models)}."
            )
        _set(models, list(models) if one is None else [one], parameter, value)
    always = {
        "random_state": options.seed,
        "n_jobs": options.n_jobs,
        "verbose": int(progress),
    }
    for model in models.values():
        known = model.get_params(deep=False)
        named = {parameter for _, parameter, _ in settings}
        model.set_params(
            **{key: value for key, value in always.items() if key in known and key not in named}
        )
    return models


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


def parse_setting(text: str) -> tuple[str | None, str, Any]:
    """Read ``parameter=value`` or ``model.parameter=value``; a value is JSON, or else text.

    >>> parse_setting("loss=logistic"), parse_setting("als.bias=true")
    ((None, 'loss', 'logistic'), ('als', 'bias', True))
    """
    key, equals, written = text.partition("=")
    model, dot, parameter = key.strip().rpartition(".")
    if not equals or not parameter or (dot and not model):
        raise ValueError(
            f"--set {text}: write it as name=value, such as loss=logistic, or als.bias=true for "
            "one method of several."
        )
    try:
        value = json.loads(written)
    except ValueError:
        value = written.strip()
    return model or None, parameter, value


def _class_of(name: str) -> type[RatingsEstimator]:
    known = known_models()
    if name not in known:
        raise ValueError(
            f"There is no model {name!r}; the known ones are {', '.join(sorted(known))}."
            f"{suggestion(name, known)}"
        )
    return known[name]


def _set(models: dict[str, Any], names: list[str], parameter: str, value: Any) -> None:
    """Set a parameter in those of the models that have it; one at least must."""
    having = [name for name in names if parameter in models[name].get_params(deep=False)]
    if not having:
        known = {key for name in names for key in models[name].get_params(deep=False)}
        option = next((o for o, p in PARAMETERS.items() if p == parameter), None)
        said = f"--set {parameter}" if option is None else f"--{option.replace('_', '-')}"
        raise ValueError(
            f"{said}: {' and '.join(names)} {'has' if len(names) == 1 else 'have'} no parameter "
            f"{parameter!r}; there are {', '.join(sorted(known - {'callbacks', 'verbose'}))}."
        )
    for name in having:
        models[name].set_params(**{parameter: value})
