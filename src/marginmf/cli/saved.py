"""Saved models for commands, each of which wants one kind."""

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from marginmf.labels.base import LabelsEstimator
    from marginmf.persistence import ModelDescription
    from marginmf.ratings.estimator import RatingsEstimator
    from marginmf.ratings.positive import PositiveOnly


def load_ratings_model(path: Path) -> "RatingsEstimator":
    """Load a model of ratings; any other gets a sentence before its arrays are read."""
    from marginmf import load
    from marginmf.persistence import PairCounts, describe

    about = describe(path)
    _refuse_labels(path, about)
    if isinstance(about.counts, PairCounts):
        raise ValueError(
            f"{path} holds a model of who has what ({about.class_name}), which makes lists and "
            "predicts no ratings; see marginmf recommend --help."
        )
    model: RatingsEstimator = load(path)
    return model


def load_recommender(path: Path) -> "RatingsEstimator | PositiveOnly":
    """Load a model that makes lists, of ratings or of who has what."""
    from marginmf import load
    from marginmf.persistence import describe

    _refuse_labels(path, describe(path))
    model: RatingsEstimator | PositiveOnly = load(path)
    return model


def _refuse_labels(path: Path, about: "ModelDescription") -> None:
    from marginmf.persistence import LabelCounts

    if isinstance(about.counts, LabelCounts):
        raise ValueError(
            f"{path} holds a {about.class_name}, which predicts labels and not ratings; see "
            "marginmf labels --help."
        )


def load_labels_model(path: Path) -> "LabelsEstimator":
    """Load a model of labels; one of ratings gets a sentence before its arrays are read."""
    from marginmf import load
    from marginmf.persistence import LabelCounts, PairCounts, describe

    about = describe(path)
    if isinstance(about.counts, PairCounts):
        raise ValueError(
            f"{path} holds a model of who has what ({about.class_name}), which makes lists and "
            "predicts no labels; see marginmf recommend --help."
        )
    if not isinstance(about.counts, LabelCounts):
        raise ValueError(
            f"{path} holds a {about.class_name}, which predicts ratings and not labels; see "
            "marginmf predict --help and marginmf recommend --help."
        )
    model: LabelsEstimator = load(path)
    return model
