"""Saved models for commands, each of which wants one kind."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from marginmf.labels.base import LabelsEstimator
    from marginmf.ratings.estimator import RatingsEstimator


def load_ratings_model(path: Path) -> "RatingsEstimator":
    """Load a model of ratings; one of labels gets a sentence before its arrays are read."""
    from marginmf import load
    from marginmf.persistence import Counts, describe

    about = describe(path)
    if not isinstance(about.counts, Counts):
        raise ValueError(
            f"{path} holds a {about.class_name}, which predicts labels and not ratings; see "
            "marginmf labels --help."
        )
    model: RatingsEstimator = load(path)
    return model


def load_labels_model(path: Path) -> "LabelsEstimator":
    """Load a model of labels; one of ratings gets a sentence before its arrays are read."""
    from marginmf import load
    from marginmf.persistence import LabelCounts, describe

    about = describe(path)
    if not isinstance(about.counts, LabelCounts):
        raise ValueError(
            f"{path} holds a {about.class_name}, which predicts ratings and not labels; see "
            "marginmf predict --help and marginmf recommend --help."
        )
    model: LabelsEstimator = load(path)
    return model
