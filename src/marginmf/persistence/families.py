"""The kinds of estimators that a file may hold, and what all of a kind have."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sklearn.base import BaseEstimator
from sklearn.utils import get_tags

from marginmf.labels.base import LabelsEstimator
from marginmf.persistence.counts import AnyCounts, Counts, LabelCounts, PairCounts
from marginmf.persistence.foreign_parts import foreign_lengths
from marginmf.persistence.label_parts import label_lengths
from marginmf.persistence.ratings_parts import pairs_lengths, ratings_lengths
from marginmf.persistence.shapes import Lengths
from marginmf.ratings.estimator import RatingsEstimator
from marginmf.ratings.positive import PositiveOnly


@dataclass(frozen=True)
class Family:
    """A kind of estimators.

    Parameters
    ----------
    base : type
        What they all are.
    lengths : callable
        Returns the lengths of the axes that a fitted one gives; refuses one that is not fitted.
    shared : tuple of str
        Those of the axes that an estimator inside another has in common with it.
    check : callable
        Raises any exception if the parameters of a fitted one cannot be used.
    counts : type, optional
        What is counted of a whole model; None if a file cannot hold one by itself.
    """

    base: type[Any]
    lengths: Callable[[Any, str], Lengths]
    shared: tuple[str, ...]
    check: Callable[[Any], object]
    counts: type[AnyCounts] | None = None


def _check_labels(model: LabelsEstimator) -> None:
    model._check_decision()
    model._check()
    get_tags(model)  # asked at every prediction, and a parameter may answer


RATINGS = Family(
    RatingsEstimator,
    ratings_lengths,
    ("users", "items", "levels"),
    lambda model: model._check(model.ratings_),
    Counts,
)
POSITIVE = Family(
    PositiveOnly,
    pairs_lengths,
    ("users", "items"),
    lambda model: model._check(model.ratings_),
    PairCounts,
)
LABELS = Family(LabelsEstimator, label_lengths, ("features",), _check_labels, LabelCounts)
FOREIGN = Family(BaseEstimator, foreign_lengths, ("features",), get_tags)


def family_of(kind: Any) -> Family | None:
    """Return the family of a class, or None if it is no estimator."""
    for family in (RATINGS, POSITIVE, LABELS, FOREIGN):
        if issubclass(kind, family.base):
            return family
    return None
