"""A few held-out ratings of one user, beside what was predicted for them."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from marginmf._utils.types import Float64Array, IntArray
from marginmf.datasets import RatingsTable
from marginmf.protocols import RatingsSplit as Split

N_SHOWN = 5


@dataclass(frozen=True)
class Prediction:
    """A held-out rating and the one that was predicted."""

    item: Any
    title: str | None
    true: float
    predicted: float


@dataclass(frozen=True)
class Example:
    """One user's held-out ratings, the highest first."""

    user: Any
    ratings: list[Prediction]


def pick_example(table: RatingsTable, split: Split, predicted: Float64Array) -> Example:
    """Show the user whose held-out ratings spread the most; the choice never sees predictions."""
    ids, users = np.unique(table.users[split.test_rows], return_inverse=True)
    own = np.flatnonzero(users == most_varied(users, split.test_ratings, len(ids)))
    shown = own[spread(split.test_ratings[own], _popularity(table, split, own))]
    titles = table.titles or {}
    rows = split.test_rows[shown]
    items = table.items[rows].tolist()
    return Example(
        table.users[rows[:1]].tolist()[0],
        [
            Prediction(item, titles.get(item), true, guess)
            for item, true, guess in zip(
                items, table.ratings[rows].tolist(), predicted[shown].tolist(), strict=True
            )
        ],
    )


def most_varied(users: IntArray, ratings: Float64Array, n_users: int) -> int:
    """Return who used the most levels and, of those, has the most ratings at the rarest of them.

    >>> most_varied(np.array([0, 0, 0, 1, 1, 1, 1]), np.array([1.0, 5, 5, 1, 1, 5, 5]), 2)
    1
    """
    levels, codes = np.unique(ratings, return_inverse=True)
    counts = np.zeros((n_users, len(levels)), np.int64)
    np.add.at(counts, (users, codes), 1)
    rarest = np.where(counts > 0, counts, len(ratings)).min(axis=1)
    order = np.lexsort((counts.sum(axis=1), rarest, (counts > 0).sum(axis=1)))
    return int(order[-1])


def spread(ratings: Float64Array, popularity: IntArray) -> IntArray:
    """Return the places of a few ratings, the highest first, as different as can be.

    The most popular item stands for each level: more readers will know it.

    >>> spread(np.array([5.0, 5, 5, 3, 1, 4]), np.array([10, 90, 50, 30, 20, 70])).tolist()
    [1, 2, 5, 3, 4]
    """
    by_popularity = np.argsort(-popularity, kind="stable")
    first_of_level = by_popularity[np.unique(ratings[by_popularity], return_index=True)[1]]
    if len(first_of_level) > N_SHOWN:
        places = np.linspace(0, len(first_of_level) - 1, N_SHOWN).round().astype(int)
        chosen = first_of_level[places]
    else:
        others = by_popularity[~np.isin(by_popularity, first_of_level)]
        chosen = np.concatenate((first_of_level, others))[:N_SHOWN]
    order = np.lexsort((-popularity[chosen], -ratings[chosen]))
    highest_first: IntArray = chosen[order]
    return highest_first


def _popularity(table: RatingsTable, split: Split, own: IntArray) -> IntArray:
    """Return how many ratings to learn from each of these held-out ratings' items has."""
    codes = split.train.items.encode(table.items[split.test_rows[own]])
    counts = np.bincount(split.train.indices, minlength=split.train.n_items)
    return np.where(codes >= 0, counts[codes], 0)
