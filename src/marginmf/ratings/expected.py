"""Expected ratings of blocks of users and items, for the search of the best."""

from typing import NamedTuple

import numpy as np

from marginmf._typing import Float64Array, FloatArray, IntArray
from marginmf.backends import get_kernels
from marginmf.ratings.calibration import Calibrator, certainty
from marginmf.ratings.fallback import LevelFrequencies


class MarginBlock(NamedTuple):
    """What the margins of all of some users and items are the sum of.

    Scores are of shape (n_margins, n_users, n_items), or (1, n_users, n_items) where all margins
    share them, and offsets of shape (n_users, n_margins).
    """

    scores: FloatArray
    offsets: FloatArray


def expected_block(
    block: MarginBlock,
    calibrator: Calibrator,
    frequencies: LevelFrequencies,
    users: IntArray,
    items: IntArray,
    levels: Float64Array,
) -> tuple[FloatArray, FloatArray]:
    """Return expected ratings, counted from the lowest level, and what breaks their ties."""
    n_margins, n_steps = block.offsets.shape[1], len(levels) - 1
    by_user = slice(n_margins, n_margins + n_steps)
    by_item = slice(n_margins + n_steps, None)
    nobody = np.full(max(len(users), len(items)), -1)
    user_odds = frequencies.log_odds(users, nobody[: len(users)])
    item_odds = frequencies.log_odds(nobody[: len(items)], items)
    shrink, shift = certainty(n_steps)
    arguments = (
        block.scores,
        block.offsets,
        calibrator.bounds[:, :n_margins],
        calibrator.weights[:, :n_margins],
        calibrator.intercepts + calibrator.part(user_odds, by_user),
        calibrator.part(item_odds, by_item).T,
        shrink * np.diff(levels),
    )
    expected, ties = get_kernels("cpu").expected_ratings(
        *(np.ascontiguousarray(argument, np.float32) for argument in arguments)
    )
    expected += np.float32(shift @ np.diff(levels))
    return expected, ties


def sum_of_margins(margins: FloatArray) -> Float64Array:
    """Return what breaks ties of expected ratings; infinite margins say nothing about items.

    >>> sum_of_margins(np.array([[np.inf, 0.5, -1.0]]))
    array([-0.5])
    """
    total: Float64Array = np.where(np.isfinite(margins), margins, 0.0).sum(axis=1)
    return total
