"""How much a model was learned from: written beside it, so that its arrays need not be read."""

from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from marginmf.labels.base import LabelsEstimator
from marginmf.persistence.errors import ModelFileError
from marginmf.ratings.estimator import RatingsEstimator
from marginmf.ratings.positive import PositiveOnly


@dataclass(frozen=True)
class Counts:
    """How many users, items, ratings and levels a model was learned from."""

    users: int
    items: int
    ratings: int
    levels: int

    @classmethod
    def of(cls, model: RatingsEstimator) -> "Counts":
        """Count those of a fitted model."""
        return cls(
            len(model.users_), len(model.items_), len(model.ratings_), model.ratings_.n_levels
        )


@dataclass(frozen=True)
class PairCounts:
    """How many users and items a model of who has what was learned from, and how many pairs."""

    users: int
    items: int
    pairs: int

    @classmethod
    def of(cls, model: PositiveOnly) -> "PairCounts":
        """Count those of a fitted model; of ratings, those that count as taken."""
        return cls(len(model.users_), len(model.items_), len(model.taken_))


@dataclass(frozen=True)
class LabelCounts:
    """How many labels, features and rows a model was learned from, and what it calls a label.

    Parameters
    ----------
    labels, features, rows : int
        How many there are; of targets that are a vector, ``labels`` are the classes.
    lowest_threshold, highest_threshold : float or None
        Between what numbers the thresholds of the decision rule lie, labels aside that are never
        predicted; None if there are none.
    """

    labels: int
    features: int
    rows: int
    lowest_threshold: float | None = None
    highest_threshold: float | None = None

    @classmethod
    def of(cls, model: LabelsEstimator) -> "LabelCounts":
        """Count those of a fitted model."""
        counted = (len(model.classes_), model.n_features_in_, model.n_samples_fit_)
        thresholds = np.asarray(getattr(model, "thresholds_", ()), np.float64)
        finite = thresholds[np.isfinite(thresholds)]
        if len(finite) == 0:
            return cls(*counted)
        return cls(*counted, float(finite.min()), float(finite.max()))


AnyCounts = Counts | PairCounts | LabelCounts


def counts_of(model: Any) -> AnyCounts:
    """Count whatever is counted of a fitted model."""
    if isinstance(model, LabelsEstimator):
        return LabelCounts.of(model)
    return PairCounts.of(model) if isinstance(model, PositiveOnly) else Counts.of(model)


def read_counts(node: Any, kind: type[Any]) -> Any:
    """Return the counts that JSON stands for, or raise `ModelFileError`."""
    known = {field.name: field.type for field in fields(kind)}
    if not isinstance(node, dict) or node.keys() != known.keys():
        raise ModelFileError("its counts cannot be understood")
    for name, value in node.items():
        whole = type(value) is int and value >= 0
        if not (whole if known[name] is int else value is None or type(value) is float):
            raise ModelFileError("its counts cannot be understood")
    return kind(**node)
