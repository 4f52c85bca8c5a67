"""Make estimators by their names on the command line, with the settings given there."""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from marginmf._utils.parameters import suggestion


@dataclass(frozen=True)
class Settings:
    """What is set of the parameters of methods.

    Parameters
    ----------
    given : mapping
        Values by parameter, from options that must fit one of the methods at least.
    options : mapping
        The option that each of these came from, for messages.
    written : sequence of str
        What ``--set`` was given: ``parameter=value`` or ``model.parameter=value``.
    always : mapping
        Values for whatever methods have such a parameter, unless ``--set`` names it.
    """

    given: Mapping[str, Any] = field(default_factory=dict)
    options: Mapping[str, str] = field(default_factory=dict)
    written: Sequence[str] = ()
    always: Mapping[str, Any] = field(default_factory=dict)


def make_all(
    names: Iterable[str], known: Mapping[str, type[Any]], settings: Settings
) -> dict[str, Any]:
    """Return methods ready to be fitted; each gets those of the settings that it has.

    Raises
    ------
    ValueError
        If a name is unknown or comes twice, a value cannot be read, or a setting belongs to none
        of the methods.
    """
    models: dict[str, Any] = {}
    for name in names:
        if name in models:
            raise ValueError(f"The model {name} is named twice.")
        models[name] = _class_of(name, known)()
    for parameter, value in settings.given.items():
        _set(models, list(models), parameter, value, settings.options[parameter])
    written = [parse_setting(text) for text in settings.written]
    for one, parameter, value in written:
        if one is not None and one not in models:
            raise ValueError(
                f"--set {one}.{parameter}: {one} is not one of the models here, which are "
                f"{', '.join(models)}."
            )
        chosen = list(models) if one is None else [one]
        _set(models, chosen, parameter, value, f"--set {parameter}")
    named = {parameter for _, parameter, _ in written}
    for model in models.values():
        has = model.get_params(deep=False)
        always = {key: value for key, value in settings.always.items() if key in has}
        model.set_params(**{key: always[key] for key in always if key not in named})
    return models


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


def names_in(text: str, option: str, example: str) -> list[str]:
    """Return names that have commas between them; one at least must be there.

    >>> names_in("hmf, als", "--models", "hmf,als")
    ['hmf', 'als']
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise ValueError(f"{option} names no method: give names with commas, such as {example}.")
    return names


def _class_of(name: str, known: Mapping[str, type[Any]]) -> type[Any]:
    if name not in known:
        raise ValueError(
            f"There is no model {name!r}; the known ones are {', '.join(sorted(known))}."
            f"{suggestion(name, known)}"
        )
    return known[name]


def _set(models: dict[str, Any], names: list[str], parameter: str, value: Any, option: str) -> None:
    """Set a parameter in those of the models that have it; one at least must."""
    having = [name for name in names if parameter in models[name].get_params(deep=False)]
    if not having:
        known = {key for name in names for key in models[name].get_params(deep=False)}
        raise ValueError(
            f"{option}: {' and '.join(names)} {'has' if len(names) == 1 else 'have'} no parameter "
            f"{parameter!r}; there are {', '.join(sorted(known - {'callbacks', 'verbose'}))}."
        )
    for name in having:
        models[name].set_params(**{parameter: value})
