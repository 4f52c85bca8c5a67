"""Metrics of label sets, and of the scores that rank labels.

Each function takes the true label sets first, as an indicator table of any form; sparse ones stay
sparse.  Metrics of sets take predicted sets of the same form; where both are empty, the Jaccard
index and F1 are 0/0 and count as 0, as in the literature's tables.  Metrics of rankings take
scores, a dense table of the same shape; labels with equal scores share their ranks.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from marginmf._utils.ids import shown
from marginmf._utils.indicators import as_indicator, as_indicators, counts
from marginmf._utils.parameters import check_whole
from marginmf._utils.types import Array, Float64Array, IntArray

#: How many scores are sorted at a time: a copy of all of them might not fit into memory.
BLOCK = 2**22


def hamming_loss(Y: Any, predicted: Any) -> float:
    """Return the share of all cells of the table that are wrong: lower is better.

    >>> hamming_loss([[1, 0, 1, 0], [0, 1, 0, 0]], [[1, 0, 0, 0], [0, 1, 1, 0]])
    0.25
    """
    true, found = as_indicators(Y, predicted)
    wrong = true.nnz + found.nnz - 2 * true.multiply(found).nnz
    return float(wrong / (true.shape[0] * true.shape[1]))


def jaccard_accuracy(Y: Any, predicted: Any) -> float:
    """Return the mean over samples of ``|true and predicted| / |true or predicted|``.

    The literature calls it accuracy.  Two empty sets count as 0.

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
    """Return F1 of the label set of every sample, averaged; two empty sets count as 0.

    >>> example_f1([[1, 1, 0, 0], [0, 0, 0, 1]], [[1, 0, 1, 0], [0, 0, 0, 1]])
    0.75
    """
    return float(_f1(*_sizes(Y, predicted, axis=1)).mean())


def macro_f1(Y: Any, predicted: Any) -> float:
    """Return F1 of every label, averaged; one that is neither true nor predicted counts as 0.

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
    return part / np.maximum(whole, 1)  # the divisor 1 makes 0/0 zero


def precision_at_k(Y: Any, scores: Any, k: int = 5) -> float:
    """Return the mean share of true labels among the ``k`` with the highest scores.

    Where labels with equal scores compete for the last ranks, the expected share counts.  A sample
    without labels counts as 0.  The divisor is k even if there are fewer labels.

    >>> precision_at_k([[1, 0, 1], [0, 1, 0]], [[0.9, 0.5, 0.8], [0.7, 0.6, 0.1]], k=2)
    0.75
    """
    return true_ranks(Y, scores).precision(k)


def ndcg_at_k(Y: Any, scores: Any, k: int = 5) -> float:
    """Return the mean normalised discounted cumulative gain of the first ``k`` ranks (nDCG).

    A true label at rank r gains ``1 / log2(1 + r)``, and the sum is divided by the largest one
    possible.  Labels with equal scores get the mean gain of the ranks that they share.  A
    sample without labels counts as 0.

    >>> ndcg_at_k([[1, 0, 1], [0, 1, 0]], [[0.9, 0.5, 0.8], [0.1, 0.6, 0.1]], k=2)
    1.0
    """
    return true_ranks(Y, scores).ndcg(k)


def coverage(Y: Any, scores: Any) -> float:
    """Return how far down the ranking one must go on average to find every true label.

    The first rank is 1 (some authors count from 0), so the best possible value is the mean number
    of labels; lower is better.  A true label stands below all others with the same score.  A sample
    without labels counts as 0.

    >>> coverage([[1, 0, 0], [0, 1, 1]], [[0.9, 0.5, 0.1], [0.9, 0.5, 0.1]])
    2.0
    """
    return true_ranks(Y, scores).coverage()


@dataclass(frozen=True, eq=False)
class TrueRanks:
    """The ranks of the true labels: all that ranking metrics need to know of the scores."""

    shape: tuple[int, int]  # of the table
    rows: IntArray  # the sample of every true label, ascending
    above: IntArray  # how many labels of that sample have a higher score
    tied: IntArray  # how many have the same score, itself among them

    def precision(self, k: int) -> float:
        """Return the precision at k."""
        ranks = np.arange(self.shape[1] + 1)
        return float(self._gains(np.minimum(ranks, check_whole("k", k)) / k).mean())

    def ndcg(self, k: int) -> float:
        """Return the nDCG at k."""
        discounts = 1 / np.log2(np.arange(2, self.shape[1] + 2))
        discounts[check_whole("k", k) :] = 0
        gains = np.concatenate([[0.0], np.cumsum(discounts)])
        ideal = gains[np.bincount(self.rows, minlength=self.shape[0])]
        shares = np.divide(self._gains(gains), ideal, out=np.zeros(self.shape[0]), where=ideal > 0)
        return float(shares.mean())

    def coverage(self) -> float:
        """Return the coverage, counted from 1."""
        deepest = np.zeros(self.shape[0], np.int64)
        np.maximum.at(deepest, self.rows, self.above + self.tied)
        return float(deepest.mean())

    def _gains(self, totals: Float64Array) -> Float64Array:
        """Return the gain of every sample, where ``totals[r]`` is that of the first r ranks."""
        shared = (totals[self.above + self.tied] - totals[self.above]) / self.tied
        return np.bincount(self.rows, shared, self.shape[0]).astype(np.float64)


def true_ranks(Y: Any, scores: Any) -> TrueRanks:
    """Return the ranks of the true labels.

    >>> ranks = true_ranks([[1, 0, 1]], [[0.5, 0.9, 0.5]])
    >>> ranks.above, ranks.tied
    (array([1, 1]), array([2, 2]))
    """
    true = as_indicator(Y)
    values = _as_scores(scores, true.shape)
    (n_rows, n_labels), step = true.shape, max(1, BLOCK // true.shape[1])
    rows = np.repeat(np.arange(n_rows), counts(true, 1))
    up_to, below = np.empty((2, true.nnz), np.int64)
    for start in range(0, n_rows, step):
        ordered = np.sort(values[start : start + step], axis=1)
        here = slice(true.indptr[start], true.indptr[min(start + step, n_rows)])
        own = values[rows[here], true.indices[here]]
        up_to[here] = _search(ordered, rows[here] - start, own, np.less_equal)
        below[here] = _search(ordered, rows[here] - start, own, np.less)
    return TrueRanks(true.shape, rows, n_labels - up_to, up_to - below)


def _search(ordered: Array, rows: IntArray, values: Array, precedes: np.ufunc) -> IntArray:
    """Return how many entries of its row precede each value: `numpy.searchsorted` row by row."""
    low, high = np.zeros((2, len(rows)), np.int64)
    high += ordered.shape[1]
    while (unsure := low < high).any():
        # A search that is over looks at a cell all the same, but what it sees changes nothing.
        middle = np.minimum((low + high) // 2, ordered.shape[1] - 1)
        right = precedes(ordered[rows, middle], values)
        low = np.where(unsure & right, middle + 1, low)
        high = np.where(unsure & ~right, middle, high)
    return low


def _as_scores(scores: Any, shape: tuple[int, int]) -> Array:
    if sparse.issparse(scores):
        raise ValueError("The scores are a sparse matrix, but every label of a sample needs one.")
    values = np.asarray(scores)
    if values.shape != shape:
        raise ValueError(
            f"The scores must have the shape of Y, {shape}, but theirs is {values.shape}."
        )
    if values.dtype.kind not in "biuf":
        raise ValueError(f"The scores must be numbers, but {shown(values.flat[0])} is the first.")
    finite = np.isfinite(values)
    if not finite.all():
        row, column = np.unravel_index(np.argmin(finite), shape)
        value = values[row, column]
        raise ValueError(
            f"The score in row {row}, column {column} is {value}, not a finite number."
        )
    return values
