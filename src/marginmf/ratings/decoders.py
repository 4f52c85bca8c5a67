"""Decoders say which level some margins, or the probabilities of all levels, mean.

Column ``q`` of the margins says how far a score is above level ``q``: positive means "higher
than level q".
"""

from collections.abc import Callable, Mapping

import numpy as np

from marginmf._typing import Float64Array, FloatArray, IntArray


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


def median(distribution: Float64Array, levels: Float64Array) -> Float64Array:
    """Return the lowest level that at least half of the probability is at or below.

    >>> median(np.array([[0.3, 0.3, 0.4]]), np.array([1.0, 2.0, 4.0]))
    array([2.])
    """
    below = distribution[:, :-1].cumsum(axis=1) < 0.5
    return _kept_unknown(distribution, levels[np.count_nonzero(below, axis=1)])


def mode(distribution: Float64Array, levels: Float64Array) -> Float64Array:
    """Return the most probable level.

    >>> mode(np.array([[0.3, 0.3, 0.4]]), np.array([1.0, 2.0, 4.0]))
    array([4.])
    """
    return _kept_unknown(distribution, levels[distribution.argmax(axis=1)])


def mean(distribution: Float64Array, levels: Float64Array) -> Float64Array:
    """Return the expected rating.

    >>> mean(np.array([[0.3, 0.3, 0.4]]), np.array([1.0, 2.0, 4.0]))
    array([2.5])
    """
    # Not a matrix product: BLAS rounds a row by what else there is.
    expected: Float64Array = np.einsum("nq,q->n", distribution, levels)
    return expected


def _kept_unknown(distribution: Float64Array, answers: Float64Array) -> Float64Array:
    """Return the answers, NaN where the distribution is."""
    return np.where(np.isnan(distribution[:, 0]), np.nan, answers)


#: The answers that a distribution over the levels allows, by name.
ANSWERS: Mapping[str, Callable[[Float64Array, Float64Array], Float64Array]] = {
    "median": median,
    "mode": mode,
    "mean": mean,
}
