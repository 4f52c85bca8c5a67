"""How far predicted label sets are from the true ones.

Each function takes the true and the predicted sets, in that order, as indicator tables: a row for
each sample, a column for each label, 0 and 1 in it; arrays, lists, data frames and sparse matrices
in any mixture.  Sparse ones stay sparse.

Where neither the true nor the predicted sets have anything to share, the Jaccard index and F1 are
0/0 and count as 0, as in the literature's tables.
"""

from typing import Any

import numpy as np

from marginmf._utils.indicators import as_indicators, counts
from marginmf._utils.types import Float64Array, IntArray


def hamming_loss(Y: Any, predicted: Any) -> float:
    """Return the share of all cells of the table that are wrong: the smaller, the better.

    >>> hamming_loss([[1, 0, 1, 0], [0, 1, 0, 0]], [[1, 0, 0, 0], [0, 1, 1, 0]])
    0.25
    """
    true, found = as_indicators(Y, predicted)
    wrong = true.nnz + found.nnz - 2 * true.multiply(found).nnz
    return float(wrong / (true.shape[0] * true.shape[1]))


def jaccard_accuracy(Y: Any, predicted: Any) -> float:
    """Return the mean over samples of ``|true and predicted| / |true or predicted|``.

    The literature calls it accuracy.  A sample without labels for which none is predicted counts
    as 0.

    >>> jaccard_accuracy([[1, 1, 0], [0, 0, 1]], [[1, 0, 0], [0, 0, 1]])
    0.75
    """
    hits, true, found = _sizes(Y, predicted, axis=1)
    return float(_ratio(hits, true + found - hits).mean())


def subset_accuracy(Y: Any, predicted: Any) -> float:
    """Return the share of samples whose label set is exactly right.

    A sample without labels for which none is predicted is right.

    >>> subset_accuracy([[1, 1, 0], [0, 0, 0]], [[1, 0, 0], [0, 0, 0]])
    0.5
    """
    hits, true, found = _sizes(Y, predicted, axis=1)
    return float((true + found == 2 * hits).mean())


def example_f1(Y: Any, predicted: Any) -> float:
    """Return F1 of the label set of every sample, averaged over the samples.

    A sample without labels for which none is predicted counts as 0.

    >>> example_f1([[1, 1, 0, 0], [0, 0, 0, 1]], [[1, 0, 1, 0], [0, 0, 0, 1]])
    0.75
    """
    return float(_f1(*_sizes(Y, predicted, axis=1)).mean())


def macro_f1(Y: Any, predicted: Any) -> float:
    """Return F1 of every label, averaged over the labels.

    A label that no sample has and none is predicted to have counts as 0.

    >>> macro_f1([[1, 1], [1, 0]], [[1, 0], [1, 0]])
    0.5
    """
    return float(_f1(*_sizes(Y, predicted, axis=0)).mean())


def micro_f1(Y: Any, predicted: Any) -> float:
    """Return F1 of all cells of the table together.

    >>> micro_f1([[1, 1], [1, 0]], [[1, 0], [1, 0]])
    0.8
    """
    return float(_f1(*(size.sum() for size in _sizes(Y, predicted, axis=0))))


def _sizes(Y: Any, predicted: Any, axis: int) -> tuple[IntArray, IntArray, IntArray]:
    """Return the sizes of the intersection, the true and the predicted sets along an axis."""
    true, found = as_indicators(Y, predicted)
    return counts(true.multiply(found), axis), counts(true, axis), counts(found, axis)


def _f1(hits: IntArray, true: IntArray, predicted: IntArray) -> Float64Array:
    return _ratio(2 * hits, true + predicted)


def _ratio(part: IntArray, whole: IntArray) -> Float64Array:
    # A part of nothing is nothing: the divisor 1 makes 0/0 zero.
    share: Float64Array = part / np.maximum(whole, 1)
    return share
