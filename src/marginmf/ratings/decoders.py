"""Decoders say which level some margins mean.

Column ``q`` of the margins says how far a score is above level ``q``: positive means "higher
than level q".
"""

import numpy as np

from marginmf._typing import FloatArray, IntArray


def count_above(margins: FloatArray) -> IntArray:
    """Return how many levels lie below the score (MMMF, PMMMF, rounding to the nearest level).

    Right even where a user's thresholds are out of order.

    >>> count_above(np.array([[2.0, 0.5, -1.0], [0.0, -1.0, -2.0]]))
    array([2, 0])
    """
    above: IntArray = np.count_nonzero(margins > 0, axis=1)
    return above


def first_below(margins: FloatArray) -> IntArray:
    """Return the first level that the score is not above, the last level if none (HMF).

    >>> first_below(np.array([[2.0, -0.5, 1.0], [0.0, 1.0, 2.0]]))
    array([1, 3])
    """
    below = margins < 0
    first: IntArray = np.where(below.any(axis=1), below.argmax(axis=1), margins.shape[1])
    return first
