"""Every label method by its name on the command line, made with the options given there."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.sparse import issparse

from marginmf.cli.labels.options import DecisionOptions, LabelModel
from marginmf.cli.making import Settings, make_all, parse_setting
from marginmf.datasets import LabelsTable
from marginmf.labels import METHODS, Scaled
from marginmf.labels.base import RULE, LabelsEstimator

#: Parameters that have an option of their own, which the results tell of.
OPTIONS = {"decision": "--decision", "tune_for": "--tune-for", "top1_if_empty": "--top1"}


def known_models() -> dict[str, type[LabelsEstimator]]:
    """Return the methods that `marginmf.labels` has, by their names here.

    >>> sorted(known_models())[:3]
    ['binary-relevance', 'classifier-chains', 'cplst']
    """
    return dict(METHODS)


def make_models(
    names: Iterable[str], options: LabelModel, decision: DecisionOptions, table: LabelsTable
) -> dict[str, Any]:
    """Return methods ready to be fitted to a table, with features scaled where they should be."""
    always = {
        "random_state": options.seed,
        "n_jobs": options.threads or -1,
        **decision.parameters(),
    }
    settings = Settings(written=options.settings or (), always=always)
    models = make_all(names, known_models(), settings)
    for model in models.values():
        model._check_decision()
        model._check()
    if options.scale == "none" or (options.scale == "auto" and issparse(table.X)):
        return models
    return {name: _scaled(model) for name, model in models.items()}


def check_models(names: Iterable[str], options: LabelModel) -> None:
    """Raise an error if a method or a setting is not known, before a file is read."""
    for written in options.settings or ():
        _, parameter, _ = parse_setting(written)
        if parameter in OPTIONS:
            raise ValueError(
                f"--set {written}: {parameter} is the same for all methods; say it with "
                f"{OPTIONS[parameter]}."
            )
    make_all(names, known_models(), Settings(written=options.settings or ()))


def keep_names(model: LabelsEstimator, table: LabelsTable) -> None:
    """Give a fitted model the names of the labels, and of the features if they have any."""
    classes = np.array(table.label_names, dtype=np.str_)
    model.targets_ = replace(model.targets_, classes=classes)
    model.classes_ = classes
    if table.feature_names is not None:
        model.feature_names_in_ = np.array(table.feature_names, dtype=object)


def _scaled(model: LabelsEstimator) -> Scaled:
    return Scaled(model, **{name: getattr(model, name) for name in RULE})
