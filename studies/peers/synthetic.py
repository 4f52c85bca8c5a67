"""Ratings of any size from a low-rank model, with popular and unpopular items.

`marginmf.datasets.make_ratings` builds the whole matrix.  Here nothing larger than a block of
ratings is built beside the answer, so that 50 million of them take seconds and no memory.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import njit

#: Rank of the model behind the ratings, and the share of their variance that is noise.
RANK, NOISE = 4, 0.5
#: Ratings made at a time.
BLOCK = 1_000_000


class Shape(NamedTuple):
    n_users: int
    n_items: int
    n_ratings: int
    n_levels: int = 5


class SyntheticRatings(NamedTuple):
    """(user, item) pairs sorted by user, and their ratings: what a user would give to ``fit``."""

    pairs: npt.NDArray[np.int32]
    ratings: npt.NDArray[np.float32]


def ratings_per_user(
    shape: Shape, generator: np.random.Generator, most_share: float = 0.5
) -> npt.NDArray[np.int64]:
    """Return how many ratings every user gives: log-normal, at least one, in all as wanted."""
    weights = generator.lognormal(0.0, 1.0, shape.n_users)
    most = max(1, int(most_share * shape.n_items))
    if not shape.n_users <= shape.n_ratings <= shape.n_users * most:
        raise ValueError(
            f"{shape.n_ratings} ratings of {shape.n_items} items by {shape.n_users} users: "
            f"every user gives 1 to {most} ratings here. Change one of the numbers."
        )
    low, high = 0.0, shape.n_ratings / weights.min()
    for _ in range(100):  # bisection: the counts grow with the scale
        scale = 0.5 * (low + high)
        counts = np.clip(np.rint(scale * weights), 1, most).astype(np.int64)
        low, high = (scale, high) if counts.sum() < shape.n_ratings else (low, scale)
    short = shape.n_ratings - int(counts.sum())
    # Rounding leaves a few too many or too few: spread them over users with room.
    step = 1 if short > 0 else -1
    while short:
        room = np.flatnonzero(counts < most if step > 0 else counts > 1)
        chosen = generator.permutation(room)[: abs(short)]
        counts[chosen] += step
        short -= step * len(chosen)
    return counts


def make(shape: Shape, seed: int = 0) -> SyntheticRatings:
    """Make ratings of a given shape; the same seed gives the same ratings."""
    generator = np.random.default_rng(seed)
    counts = ratings_per_user(shape, generator)
    # Popularity must not follow from an item's number.
    names = generator.permutation(shape.n_items).astype(np.int32)
    U = generator.standard_normal((shape.n_users, RANK), np.float32) / np.float32(np.sqrt(RANK))
    V = generator.standard_normal((shape.n_items, RANK), np.float32)
    pairs = np.empty((shape.n_ratings, 2), np.int32)
    pairs[:, 0] = np.repeat(np.arange(shape.n_users, dtype=np.int32), counts)
    _draw_items(generator.integers(2**31), counts, shape.n_items, pairs[:, 1])

    ratings = np.empty(shape.n_ratings, np.float32)
    cuts = None
    for begin in range(0, shape.n_ratings, BLOCK):
        part = slice(begin, min(begin + BLOCK, shape.n_ratings))
        pairs[part, 1] = names[pairs[part, 1]]
        users, items = pairs[part].T
        scores = np.einsum("kp,kp->k", U[users], V[items])
        scores += np.float32(np.sqrt(NOISE)) * generator.standard_normal(len(users), np.float32)
        if cuts is None:  # about as many ratings at each level
            cuts = np.quantile(scores, np.arange(1, shape.n_levels) / shape.n_levels)
        ratings[part] = np.searchsorted(cuts, scores) + 1
    return SyntheticRatings(pairs, ratings)


@njit
def _draw_items(seed, counts, n_items, out):
    """Draw for each user that many items, none twice, popular ones more often.

    Zipf's law with a flattened head, ``1 / (rank + offset)``: without the offset the first items
    would be wanted by more users than there are.
    """
    np.random.seed(seed)  # noqa: NPY002, which is Numba's own generator here
    offset = 0.02 * n_items + 1.0
    owner = np.full(n_items, -1, np.int64)
    k = 0
    for i in range(len(counts)):
        for _ in range(counts[i]):
            while True:
                # The inverse of the cumulative popularity, log((rank + offset) / offset).
                share = np.random.random()  # noqa: NPY002
                rank = offset * (1.0 + n_items / offset) ** share - offset
                j = min(int(rank), n_items - 1)
                if owner[j] != i:
                    break
            owner[j] = i
            out[k] = j
            k += 1
