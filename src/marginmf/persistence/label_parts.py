"""What every label model is made of: targets, a decision rule, features."""

import numpy as np

from marginmf.labels.base import LabelsEstimator
from marginmf.labels.targets import Targets
from marginmf.persistence.demands import Names
from marginmf.persistence.errors import ModelFileError
from marginmf.persistence.foreign_parts import feature_count
from marginmf.persistence.shapes import KINDS_OF_NAMES, Lengths, check_part


def label_lengths(model: LabelsEstimator, name: str) -> Lengths:
    """Return how many labels, classes and features a fitted model has."""
    targets = getattr(model, "targets_", None)
    if not isinstance(targets, Targets):
        raise ModelFileError(f"{name} does not say which labels it predicts")
    lengths: Lengths = {"features": feature_count(model, name)}
    check_part(targets.classes, Names("classes"), f"{name}.targets_.classes", lengths)
    if lengths["classes"] == 0 or type(targets.vector) is not bool:
        raise ModelFileError(f"{name} does not say which labels it predicts")
    lengths["labels"] = targets.n_columns
    return lengths


def check_label_model(model: LabelsEstimator, name: str, lengths: Lengths) -> None:
    """Refuse thresholds, classes and names of features that predictions cannot use."""
    mine, asked = model.targets_.classes, model.classes_
    if asked is not mine and not (asked.dtype == mine.dtype and np.array_equal(asked, mine)):
        raise ModelFileError(f"{name}.classes_ are not those of its targets")
    names = getattr(model, "feature_names_in_", None)
    if names is not None and names.dtype.kind != "O":
        raise ModelFileError(f"{name}.feature_names_in_ are not text")
    if model.targets_.vector:
        return
    thresholds = getattr(model, "thresholds_", None)
    if thresholds is None:
        raise ModelFileError(f"{name}.thresholds_ is missing")
    if not (np.isfinite(thresholds) | (thresholds == np.inf)).all():
        raise ModelFileError(f"{name}.thresholds_ has a number that is no threshold")


def check_targets(targets: Targets, name: str, lengths: Lengths) -> None:
    """Refuse answers of a type that label sets cannot have."""
    sets = "biuf" if not targets.vector else KINDS_OF_NAMES + "O"
    if targets.dtype.kind not in sets:
        raise ModelFileError(f"{name}.dtype is {targets.dtype}, which answers cannot have")
