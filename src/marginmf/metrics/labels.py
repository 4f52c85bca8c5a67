"""Metrics of label sets, of the scores that rank labels, and of the labels' probabilities.

Each function takes the true label sets first, as an indicator table of any form; sparse ones stay
sparse.  Metrics of sets take predicted sets of the same form; where both are empty, the Jaccard
index and F1 are 0/0 and count as 0, as in the literature's tables.  Metrics of rankings take
scores, a dense table of the same shape; labels with equal scores share their ranks.  Metrics of
probabilities take those of all cells, as `predict_proba` gives them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from marginmf._utils.ids import shown
from marginmf._utils.indicators import as_indicator, as_indicators, counts
from marginmf._utils.parameters import check_whole
from marginmf._utils.types import Array, BoolArray, Float64Array, IntArray

#: How many scores are worked on at a time: a copy of all of them might not fit into memory.
BLOCK = 2**22
#: How near to 0 and 1 probabilities may come, where their logarithm is taken.
LEAST_PROBABILITY = 1e-15


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
    values = _as_numbers(scores, shape, "scores")
    _refuse_first(~np.isfinite(values), values, "score", "a finite number")
    return values


def _as_numbers(given: Any, shape: tuple[int, int], what: str) -> Array:
    if sparse.issparse(given):
        raise ValueError(f"The {what} are a sparse matrix, but every label of a sample needs one.")
    values = np.asarray(given)
    if values.shape != shape:
        raise ValueError(
            f"The {what} must have the shape of Y, {shape}, but theirs is {values.shape}."
        )
    if values.dtype.kind not in "biuf":
        raise ValueError(f"The {what} must be numbers, but {shown(values.flat[0])} is the first.")
    return values


def _refuse_first(faulty: BoolArray, values: Array, what: str, wanted: str) -> None:
    if faulty.any():
        row, column = np.unravel_index(np.argmax(faulty), values.shape)
        value = values[row, column]
        raise ValueError(f"The {what} in row {row}, column {column} is {value}, not {wanted}.")


def log_loss(Y: Any, probabilities: Any) -> float:
    """Return the mean over all cells of ``-log p`` of what is true: lower is better.

    For a label that is there, p is its probability; for one that is not, 1 minus it.  Probabilities
    are moved to at least 1e-15 from 0 and 1, so that no single cell makes the loss infinite.

    >>> round(log_loss([[1, 0], [0, 1]], [[0.8, 0.5], [0.2, 0.5]]), 4)
    0.4581
    """
    total = 0.0
    for present, likely in _blocks(Y, probabilities):
        likely = np.clip(likely, LEAST_PROBABILITY, 1.0 - LEAST_PROBABILITY)
        total -= float(np.log(np.where(present, likely, 1.0 - likely)).sum())
    return total / np.size(probabilities)


def calibration_error(Y: Any, probabilities: Any, n_bins: int = 15) -> float:
    """Return how far probabilities are from how often labels are there: lower is better.

    All cells of the table are put into bins of equal width by their probability; a bin has its
    lower end, and the last one also 1.  The distances of the bins' mean probabilities from the
    shares of their cells that are true are averaged, weighted by the numbers of cells: the expected
    calibration error (Naeini et al., 2015; Guo et al., 2017) of every label's probability.  It is 0
    of the labels' frequencies too, which tell no rows apart: `log_loss` sees both faults.

    Parameters
    ----------
    Y : indicator table of shape (n_samples, n_labels)
        The true label sets, dense or sparse.
    probabilities : array of shape (n_samples, n_labels)
        The probability of every label, as `predict_proba` gives it.
    n_bins : int
        How many bins there are.

    Examples
    --------
    >>> Y = [[1, 0], [1, 0], [1, 0], [0, 0]]
    >>> calibration_error(Y, [[0.75, 0.0]] * 4), calibration_error(Y, [[0.25, 0.0]] * 4)
    (0.0, 0.25)
    """
    n_bins = check_whole("n_bins", n_bins)
    gaps = np.zeros(n_bins)
    for present, likely in _blocks(Y, probabilities):
        bins = np.minimum((likely * n_bins).astype(np.int64), n_bins - 1)
        gaps += np.bincount(bins.ravel(), (likely - present).ravel(), n_bins)
    return float(np.abs(gaps).sum() / np.size(probabilities))


def _blocks(Y: Any, probabilities: Any) -> Iterator[tuple[BoolArray, Float64Array]]:
    """Yield, for blocks of rows, which labels are there and their probabilities."""
    true = as_indicator(Y)
    values = _as_numbers(probabilities, true.shape, "probabilities")
    # A number that is none is not from 0 to 1 either.
    outside = ~((values >= 0) & (values <= 1))
    _refuse_first(outside, values, "probability", "a number from 0 to 1")
    step = max(1, BLOCK // true.shape[1])
    for start in range(0, true.shape[0], step):
        rows = slice(start, start + step)
        yield true[rows].toarray(), values[rows].astype(np.float64)
