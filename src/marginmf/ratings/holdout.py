"""Some ratings set aside, to choose and to calibrate on: never to learn from."""

from dataclasses import dataclass

import numpy as np

from marginmf._typing import BoolArray, IntArray
from marginmf.ratings.data import Ratings

#: Which share of the ratings is set aside.
SHARE = 0.1


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Ratings to learn from, and the users, items and levels of those that were set aside."""

    train: Ratings
    users: IntArray
    items: IntArray
    codes: IntArray

    @classmethod
    def at_random(cls, data: Ratings, rng: np.random.Generator, share: float = SHARE) -> "HeldOut":
        """Set a random share of the ratings aside: at least one, and not all."""
        held = np.zeros(len(data), bool)
        n = min(max(1, round(share * len(data))), max(1, len(data) - 1))
        held[rng.permutation(len(data))[:n]] = True
        return cls.of(data, held)

    @classmethod
    def of(cls, data: Ratings, held: BoolArray) -> "HeldOut":
        """Set the marked ratings aside.

        Users, items and levels keep their codes.  Of what is set aside, ratings whose user or
        item has no other rating tell nothing about a factorisation and are not looked at, unless
        there are no others.
        """
        train = data.subset(~held)
        users, items, codes = data.rows[held], data.indices[held], data.codes[held]
        rated = np.bincount(train.indices, minlength=data.n_items) > 0
        fair = (np.diff(train.indptr) > 0)[users] & rated[items]
        if fair.any():
            users, items, codes = users[fair], items[fair], codes[fair]
        return cls(train, users, items, codes)
