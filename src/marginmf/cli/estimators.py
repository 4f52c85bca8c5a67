"""Estimators on the command line: made from names and options, or loaded from files."""

import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

import marginmf
from marginmf._utils.parameters import suggestion
from marginmf.cli.options import (
    PARAMETERS,
    DecisionOptions,
    LabelModelOptions,
    ModelOptions,
    parse_names,
)
from marginmf.persistence import LabelCounts, PairCounts, describe
from marginmf.ratings import METHODS, POSITIVE

if TYPE_CHECKING:
    from marginmf.datasets import LabelsTable
    from marginmf.labels.base import LabelsEstimator

#: Parameters of label methods that have an option, which is the same for all of them.
LABEL_OPTIONS = {"decision": "--decision", "tune_for": "--tune-for", "top1_if_empty": "--top1"}
#: Parameters that cannot be set on the command line.
HIDDEN = {"callbacks", "verbose"}
#: Parameters that are several names, which may be written with commas between them.
SEVERAL_NAMES = {"members"}


def make_models(
    names: Sequence[str], options: ModelOptions, progress: bool = False, lists: bool = False
) -> dict[str, Any]:
    """Return ratings methods by name, ready to be fitted; each gets the options that it has.

    With ``lists``, they may be methods that make lists and predict no ratings.
    """
    for name in names:
        if name in POSITIVE and not lists:
            raise ValueError(f"{name} makes lists and predicts no ratings: add --lists.")
    values = {option: getattr(options, option) for option in PARAMETERS}
    if options.reg is not None:
        values["reg"] = parse_reg(options.reg)
    known = {**METHODS, **POSITIVE} if lists else METHODS
    return _make(names, known, values, options, {"verbose": int(progress)})


def make_model(
    name: str | None,
    options: ModelOptions,
    progress: bool = False,
    *,
    lists: bool = False,
    positive_only: bool = False,
) -> Any:
    """Return one method: of ratings, with ``lists`` of any kind, or of who has what alone."""
    if name in METHODS and positive_only:
        raise ValueError(
            f"--model {name} learns from ratings; with --positive-only, give one of "
            f"{', '.join(sorted(POSITIVE))}."
        )
    name = name or ("ease" if positive_only else "hmf")
    return make_models([name], options, progress, lists)[name]


def learns_from_pairs(model: Any) -> bool:
    """Whether a model learns from who has what, and makes lists only."""
    return getattr(type(model), "command_name", None) in POSITIVE


def learns_from_numbers(estimator: Any) -> bool:
    """Whether a method learns from ratings as numbers, so that they need not be levels."""
    from marginmf.ratings.estimator import Numbers

    return isinstance(estimator, Numbers)


def make_label_models(
    names: Iterable[str], options: LabelModelOptions, decision: DecisionOptions
) -> dict[str, Any]:
    """Return label methods by name; see `scale_features`."""
    from marginmf.labels import METHODS

    for written in options.settings or ():
        _, parameter, _ = parse_setting(written)
        if parameter in LABEL_OPTIONS:
            raise ValueError(
                f"--set {written}: {parameter} is the same for all methods; set it with "
                f"{LABEL_OPTIONS[parameter]}."
            )
    return _make(names, METHODS, {}, options, decision.parameters())


def scale_features(
    models: Mapping[str, Any], options: LabelModelOptions, table: "LabelsTable"
) -> dict[str, Any]:
    """Return label methods that scale the features first, where they should."""
    from scipy.sparse import issparse

    from marginmf.labels import Scaled

    if options.scale == "none" or (options.scale == "auto" and issparse(table.X)):
        return dict(models)
    rule = (*LABEL_OPTIONS, "cv")
    return {
        name: Scaled(model, **{parameter: getattr(model, parameter) for parameter in rule})
        for name, model in models.items()
    }


def set_names(model: "LabelsEstimator", table: "LabelsTable") -> None:
    """Give a fitted model the names of the labels, and of the features if they have any."""
    classes = np.array(table.label_names, dtype=np.str_)
    model.targets_ = replace(model.targets_, classes=classes)
    model.classes_ = classes
    if table.feature_names is not None:
        model.feature_names_in_ = np.array(table.feature_names, dtype=object)


def load_model(path: Path, wanted: Literal["ratings", "lists", "labels"]) -> Any:
    """Load a model that predicts ratings or labels, or that makes lists.

    A model of another kind is refused before its arrays are read.
    """
    about = describe(path)
    kinds: dict[type, str] = {LabelCounts: "labels", PairCounts: "lists"}
    kind = kinds.get(type(about.counts), "ratings")
    if kind == wanted or (kind, wanted) == ("ratings", "lists"):
        return marginmf.load(path)
    answers = {
        "labels": "predicts labels and not ratings; see marginmf labels --help",
        "ratings": "predicts ratings and not labels; see marginmf predict --help",
        "lists": f"makes lists and predicts no {wanted}; see marginmf recommend --help",
    }
    raise ValueError(f"{path} holds a {about.class_name}, which {answers[kind]}.")


def learn_missing(
    model: Any, path: Path, console: Any, *, calibrator: bool = True, exposure: bool = True
) -> None:
    """Learn what answers need and a model file lacks, and say so: it may take long."""
    if learns_from_pairs(model):
        return
    if calibrator and model._lacks("_calibrator"):
        console.note(
            f"{path} does not hold calibrated probabilities: they are learned now, which takes "
            "about as long as the fit, and not saved. A fit without --no-calibrate saves them."
        )
        model.fit_calibrator()
    if exposure and model._lacks("_exposure"):
        console.note(
            f"{path} does not hold who takes what: it is learned now, which takes seconds (minutes "
            "for millions of ratings), and not saved. marginmf fit without --no-lists saves it."
        )
        model.fit_exposure()


def parse_number(text: str) -> float | None:
    """Read a finite number; None if it is none."""
    try:
        return float(text) if math.isfinite(float(text)) else None
    except ValueError:
        return None


def parse_reg(text: str) -> Any:
    """Read a regularisation strength: ``auto``, a number, or numbers with commas between them.

    >>> parse_reg("auto"), parse_reg("15"), parse_reg("6,10,17,14")
    ('auto', 15.0, [6.0, 10.0, 17.0, 14.0])
    """
    if text.strip() == "auto":
        return "auto"
    numbers = [parse_number(part) for part in text.split(",")]
    for part, number in zip(text.split(","), numbers, strict=True):
        if number is None or number < 0:
            raise ValueError(
                f"--reg {text}: {part.strip()!r} is not a number >= 0. Give auto, one number, "
                "or several with commas between them, such as 6,10,17,14."
            )
    return numbers[0] if len(numbers) == 1 else numbers


def parse_setting(text: str) -> tuple[str | None, str, Any]:
    """Read ``parameter=value`` or ``model.parameter=value``; a value is JSON, or else text.

    >>> parse_setting("loss=logistic"), parse_setting("als.bias=true")
    ((None, 'loss', 'logistic'), ('als', 'bias', True))
    >>> parse_setting("members=ridge,kernel")
    (None, 'members', ['ridge', 'kernel'])
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
    if parameter in SEVERAL_NAMES and value != "auto":
        value = parse_names(value) if isinstance(value, str) else value
        if not isinstance(value, list) or not value:
            raise ValueError(
                f"--set {text}: give auto, or names with commas between them, such as ridge,kernel."
            )
    return model or None, parameter, value


def parse_model_names(text: str, example: str) -> list[str]:
    """Return the names of ``--models``, which have commas between them.

    >>> parse_model_names("hmf, als", "hmf,als")
    ['hmf', 'als']
    """
    names = [name.strip() for name in text.split(",") if name.strip()]
    if not names:
        raise ValueError(f"--models names no method: give names with commas, such as {example}.")
    return names


def parameters_of(models: Iterable[Any]) -> list[str]:
    """Return the parameters of models that can be set, for messages."""
    return sorted({key for model in models for key in model.get_params(deep=False)} - HIDDEN)


@cache
def all_parameters() -> frozenset[str]:
    """Return every parameter that ``--set`` can set in some method."""
    from marginmf.labels import METHODS as LABEL_METHODS

    known = (*METHODS.values(), *POSITIVE.values(), *LABEL_METHODS.values())
    return frozenset(parameters_of(kind() for kind in known))


def _make(
    names: Iterable[str],
    known: Mapping[str, type[Any]],
    values: Mapping[str, Any],
    options: ModelOptions | LabelModelOptions,
    common: Mapping[str, Any],
) -> dict[str, Any]:
    """Return methods by name, with the parameters that were given.

    The values of options and settings (``--set``) must belong to one of the methods at least; what
    is common, unless a setting names it, goes to all that have such a parameter.
    """
    models: dict[str, Any] = {}
    for name in names:
        if name in models:
            raise ValueError(f"The model {name} is named twice.")
        if name not in known:
            raise ValueError(
                f"There is no model {name!r}; the known ones are {', '.join(sorted(known))}."
                f"{suggestion(name, known)}"
            )
        models[name] = known[name]()
    for option, value in values.items():
        if value is not None:
            _set(models, PARAMETERS[option], value, f"--{option.replace('_', '-')}")
    written = [parse_setting(text) for text in options.settings or ()]
    for one, parameter, value in written:
        if one is not None and one not in models:
            raise ValueError(
                f"--set {one}.{parameter}: {one} is not one of the models here, which are "
                f"{', '.join(models)}."
            )
        _set({one: models[one]} if one else models, parameter, value, f"--set {parameter}")
    always = {"random_state": options.seed, "n_jobs": options.threads or -1, **common}
    left = always.keys() - {parameter for _, parameter, _ in written}
    for model in models.values():
        model.set_params(**{key: always[key] for key in left & model.get_params(deep=False).keys()})
    return models


def _set(models: Mapping[str, Any], parameter: str, value: Any, option: str) -> None:
    """Set a parameter in those of the models that have it; one at least must."""
    having = [one for one in models.values() if parameter in parameters_of([one])]
    if not having:
        known = parameters_of(models.values())
        sweeps = ""
        if parameter == "max_iter" and "n_burn" in known:
            sweeps = " A sampler makes n_burn + n_samples * thin sweeps: give --set n_samples=20."
        raise ValueError(
            f"{option}: {' and '.join(models)} {'has' if len(models) == 1 else 'have'} no "
            f"parameter {parameter!r}; there are {', '.join(known)}.{sweeps}"
        )
    for model in having:
        model.set_params(**{parameter: value})
