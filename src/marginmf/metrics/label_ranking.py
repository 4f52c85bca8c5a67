"""How high the true labels stand when labels are ranked by their scores.

Each function takes the true label sets, an indicator table as in `marginmf.metrics.labels`, and the
scores: a dense table of the same shape, the higher the likelier.  The order of the columns never
matters: labels with equal scores share their places.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from marginmf._utils.ids import shown
from marginmf._utils.indicators import as_indicator, counts
from marginmf._utils.types import Array, Float64Array, IntArray

#: So many scores are sorted at a time: a copy of all of them might not fit into memory.
BLOCK = 2**22


def precision_at_k(Y: Any, scores: Any, k: int = 5) -> float:
    """Return the mean share of true labels among the ``k`` with the highest scores.

    Of labels with equal scores at the border, each is among the first k with the same probability,
    and the expected share counts.  A sample without labels counts as 0.  With fewer than k labels
    in the table the divisor is k all the same.

    >>> precision_at_k([[1, 0, 1], [0, 1, 0]], [[0.9, 0.5, 0.8], [0.7, 0.6, 0.1]], k=2)
    0.75
    """
    return true_ranks(Y, scores).precision(k)


def ndcg_at_k(Y: Any, scores: Any, k: int = 5) -> float:
    """Return the mean normalised discounted cumulative gain of the first ``k`` places (nDCG).

    A true label at place r gains ``1 / log2(1 + r)``, and the sum is divided by the largest one
    possible.  Labels with equal scores get the mean gain of the places that they share.  A
    sample without labels counts as 0.

    >>> ndcg_at_k([[1, 0, 1], [0, 1, 0]], [[0.9, 0.5, 0.8], [0.1, 0.6, 0.1]], k=2)
    1.0
    """
    return true_ranks(Y, scores).ndcg(k)


def coverage(Y: Any, scores: Any) -> float:
    """Return how far down the ranking one must go on average to find every true label.

    The first place is 1, so the best possible value is the mean number of labels; the smaller, the
    better.  Some authors count from 0: subtract 1 to compare.  Ties are taken pessimistically: a
    true label stands below all labels with the same score.  A sample without labels counts as 0.

    >>> coverage([[1, 0, 0], [0, 1, 1]], [[0.9, 0.5, 0.1], [0.9, 0.5, 0.1]])
    2.0
    """
    return true_ranks(Y, scores).coverage()


@dataclass(frozen=True, eq=False)
class TrueRanks:
    """Where the true labels stand: all that ranking metrics ask of the scores.

    Parameters
    ----------
    shape : tuple of int
        How many samples and labels there are.
    rows : array of int
        The sample of every true label, ascending.
    above : array of int
        How many labels of that sample have a higher score.
    tied : array of int
        How many have the same score, itself among them.
    """

    shape: tuple[int, int]
    rows: IntArray
    above: IntArray
    tied: IntArray

    def precision(self, k: int) -> float:
        """Return the precision at k."""
        places = np.arange(self.shape[1] + 1)
        return float(self._gains(np.minimum(places, _checked_k(k)) / k).mean())

    def ndcg(self, k: int) -> float:
        """Return the nDCG at k."""
        discounts = 1 / np.log2(np.arange(2, self.shape[1] + 2))
        discounts[_checked_k(k) :] = 0
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
        """Return the gain of every sample, where ``totals[r]`` is that of the first r places."""
        shared = (totals[self.above + self.tied] - totals[self.above]) / self.tied
        gains: Float64Array = np.bincount(self.rows, shared, self.shape[0]).astype(np.float64)
        return gains


def true_ranks(Y: Any, scores: Any) -> TrueRanks:
    """Return where the true labels stand.

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
        raise ValueError(
            f"The score in row {row}, column {column} is {values[row, column]}, not a finite "
            "number."
        )
    return values


def _checked_k(k: int) -> int:
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise ValueError(f"k={k!r} is not a number of labels. Give a whole number >= 1.")
    return int(k)
