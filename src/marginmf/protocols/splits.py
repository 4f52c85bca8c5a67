"""What every evaluation of ratings does: split them by a protocol, fit a model to each split."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from sklearn.base import clone

from marginmf._utils.types import Float64Array, IntArray
from marginmf.backends.rows import SIDES
from marginmf.ratings.data import Ratings
from marginmf.ratings.features import FeatureTable
from marginmf.ratings.tables import as_values, levels_of, split_pairs, take_rows


class SplitProtocol(Protocol):
    """What `evaluate` needs of a protocol."""

    def split(self, pairs: Any, ratings: Any = None) -> Iterator[tuple[IntArray, ...]]:
        """Yield arrays of row numbers: (train, test) or (train, fold_in, test)."""


@dataclass(frozen=True, eq=False)
class Split:
    """Ratings to learn from, ratings that place new users if any, and ratings to be judged on."""

    train: Ratings
    newcomers: Ratings | None
    test_pairs: Any
    test_ratings: Float64Array
    test_rows: IntArray


def split_ratings(
    pairs: Any,
    ratings: Any,
    protocol: SplitProtocol,
    user_features: Any = None,
    item_features: Any = None,
) -> Iterator[Split]:
    """Yield the splits of a protocol, with side information of all users and items.

    Without ratings, all that counts is who has what.
    """
    n_pairs = n_rows(pairs)
    values = np.ones(n_pairs)
    if ratings is not None:
        values = as_values(ratings).astype(np.float64, copy=False)
    if n_pairs != len(values):
        raise ValueError(f"There are {n_pairs} pairs but {len(values)} ratings.")
    # The scale of all the ratings: a level may be missing from one training set by chance.
    levels = np.unique(values) if ratings is not None else levels_of(values)
    if len(levels) == 1:
        raise ValueError(
            f"Every rating is {levels[0]:g}: with one level there is nothing to tell apart.  For "
            "methods that make lists from who has what, give None for ratings."
        )
    tables: dict[str, Any] = {  # read once, so that what is wrong with them is said once
        f"{side}_features": FeatureTable.of(features, side)
        for side, features in zip(SIDES, (user_features, item_features), strict=True)
        if features is not None
    }

    def at(rows: IntArray, **known: Any) -> Ratings:
        return Ratings.of(take_rows(pairs, rows), values[rows], levels=levels, **known)

    for train, *fold_in, test in protocol.split(pairs, ratings):
        newcomers = at(fold_in[0]) if fold_in else None
        yield Split(at(train, **tables), newcomers, take_rows(pairs, test), values[test], test)


def fit_split(model: Any, split: Split) -> tuple[Any, float]:
    """Fit a fresh copy of a model to a split, new users and all; return it and the fit's seconds.

    Placing new users is not part of the seconds.
    """
    fresh = clone(model)
    started = time.perf_counter()
    fitted = fresh.fit(split.train)
    seconds = time.perf_counter() - started
    return fitted if split.newcomers is None else fitted.fold_in(split.newcomers), seconds


def n_rows(pairs: Any) -> int:
    """Return how many pairs there are."""
    return len(split_pairs(pairs)[0])
