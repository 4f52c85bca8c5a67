"""What every label model is made of: labels and features."""

from marginmf._utils.saved import Names
from marginmf.labels.base import LabelsEstimator
from marginmf.labels.targets import Targets
from marginmf.persistence.errors import ModelFileError
from marginmf.persistence.foreign_parts import feature_count
from marginmf.persistence.shapes import Lengths, check_part


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
