"""Decision rules, which turn the scores of every label method into label sets.

A threshold rule has a threshold for every label, and says whether a row that would get no label
gets its best one.  An expected-overlap rule gives every row the labels whose overlap with the true
ones is expected to be largest, given the probabilities of all labels.  Both are chosen on scores
that a model gave to rows it had not seen; the search for thresholds sees such scores batch by batch
and keeps only counts, so it needs no more memory for more rows.

>>> import numpy as np
>>> rule = DecisionRule(np.array([0.0, 0.5]), top1_if_empty=True)
>>> rule(np.array([[0.2, 0.6], [-1.0, 0.4]])).astype(int)
array([[1, 1],
       [0, 1]])
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from marginmf._utils.parameters import check_option, check_whole
from marginmf._utils.types import BoolArray, Float64Array, FloatArray
from marginmf.backends.labels import count_above

#: The rules that give every row the set of the largest expected overlap.
EXPECTED = ("jaccard", "f1")
#: The rules and the measures that they can be chosen for.
DECISIONS = ("auto", "sign", "global", "per_label", *EXPECTED)
MEASURES = ("accuracy", "example_f1", "micro_f1", "macro_f1", "hamming")
#: The rules that "auto" chooses from, by the measure that it chooses for.
CANDIDATES = {
    "accuracy": ("global", "jaccard"),
    "example_f1": ("global", "f1"),
    "micro_f1": ("global",),
    "macro_f1": ("global", "per_label"),
    "hamming": ("global",),
}

#: How many thresholds are tried: at quantiles of the scores of labels that are there, and evenly.
N_QUANTILES, N_EVEN = 192, 64
#: Into how many cells the range of the candidates is cut, to find a score's position among them.
N_CELLS = 4096
#: At most this many scores are kept until candidates are chosen.
MOST_KEPT = 2**24


@dataclass(frozen=True, eq=False)
class DecisionRule:
    """Turns scores into label sets.

    Parameters
    ----------
    thresholds : array of shape (n_labels,)
        A label is there where its score is above its threshold; an infinite one means never.
    top1_if_empty : bool
        Whether a row without any label gets the one that came nearest to its threshold.
    """

    thresholds: Float64Array
    top1_if_empty: bool = False

    def excess(self, scores: FloatArray) -> FloatArray:
        """Return how far scores are above the thresholds; labels that never are come last."""
        finite = np.isfinite(self.thresholds)
        excess: FloatArray = scores - np.where(finite, self.thresholds, 0.0).astype(scores.dtype)
        return _put_last(excess, finite)

    def __call__(self, scores: FloatArray) -> BoolArray:
        """Return which labels every row has."""
        excess = self.excess(scores)
        above: BoolArray = excess > 0
        if self.top1_if_empty and np.isfinite(self.thresholds).any():
            empty = np.flatnonzero(~above.any(axis=1))
            above[empty, np.argmax(excess[empty], axis=1)] = True
        return above


@dataclass(frozen=True, eq=False)
class ExpectedRule:
    """Gives every row the labels whose overlap with the true ones is expected to be largest.

    With the probabilities p of a row's labels in falling order, c_k the sum of the first k, and T
    that of all, the first k labels have about the expected Jaccard index ``c_k / (k + T - c_k)``
    and the expected F1 ``2 c_k / (k + T)``; the best k is taken, at least 1.  Labels of the same
    probability are taken together or not at all, so that their order does not matter.

    Parameters
    ----------
    overlap : {"jaccard", "f1"}
        The overlap.
    shift : float
        Added to all logits; what the probabilities miss when the labels of a row depend on one
        another.
    possible : array of shape (n_labels,), optional
        Which labels may be predicted at all.

    Examples
    --------
    >>> from scipy.special import logit
    >>> logits = logit(np.array([[0.9, 0.5, 0.1], [0.3, 0.1, 0.05]]))
    >>> ExpectedRule("jaccard")(logits).astype(int)
    array([[1, 1, 0],
           [1, 0, 0]])
    """

    overlap: str
    shift: float = 0.0
    possible: BoolArray | None = None

    def excess(self, logits: Float64Array) -> FloatArray:
        """Return how far logits are above the row's own limit: above 0 for its labels."""
        possible = np.ones(logits.shape[1], bool) if self.possible is None else self.possible
        if not possible.any():
            return np.full_like(logits, -1.0)
        ordered = np.sort(logits[:, possible], axis=1)[:, ::-1]
        excess = logits - self.limits(ordered)[:, None]
        return _put_last(excess, possible)

    def limits(self, ordered: Float64Array) -> Float64Array:
        """Return the limit of every row, given its logits in falling order."""
        likely = expit(ordered + self.shift)
        sums, ranks = np.cumsum(likely, axis=1), np.arange(1, likely.shape[1] + 1)
        total = sums[:, -1:]
        if self.overlap == "jaccard":
            value = sums / (ranks + total - sums)
        else:
            value = 2.0 * sums / (ranks + total)
        value[:, :-1][ordered[:, :-1] == ordered[:, 1:]] = -1.0
        rows, last = np.arange(len(ordered)), np.argmax(value, axis=1)
        least = ordered[rows, last]
        # After the last label of all there is as much room as one likes.
        below = np.where(
            last + 1 < ordered.shape[1],
            ordered[rows, np.minimum(last + 1, ordered.shape[1] - 1)],
            least - 2.0,
        )
        middle = 0.5 * (least + below)
        return np.where(middle < least, middle, below)

    def __call__(self, logits: Float64Array) -> BoolArray:
        """Return which labels every row has."""
        above: BoolArray = self.excess(logits) > 0
        return above


def _put_last(excess: FloatArray, possible: BoolArray) -> FloatArray:
    """Let labels that are never predicted come after all others, and below 0."""
    if not possible.all():
        least = excess[:, possible].min(axis=1, initial=0.0)
        excess[:, ~possible] = least[:, None] - 1.0
    return excess


def check_rule(rule: Mapping[str, Any]) -> None:
    """Raise a sentence if a parameter of a decision rule cannot be used."""
    for name, value in rule.items():
        match name:
            case "decision":
                check_option(name, value, DECISIONS)
            case "tune_for":
                check_option(name, value, MEASURES)
            case "cv":
                check_whole(name, value, 2)
            case "top1_if_empty" if isinstance(value, str) and value == "auto":
                pass
            case _ if not isinstance(value, bool | np.bool_):
                auto = "'auto', " * (name == "top1_if_empty")
                raise ValueError(f"{name}={value!r} must be {auto}True or False.")


def row_overlaps(measure: str, predicted: BoolArray, present: BoolArray) -> Float64Array:
    """Return the overlap of every row's label sets; two empty ones count as 0.

    For accuracy the Jaccard index, for example F1 that one.

    >>> sets = np.array([[True, True], [False, False]]), np.array([[True, False]] * 2)
    >>> row_overlaps("accuracy", *sets), row_overlaps("example_f1", *sets).round(2)
    (array([0.5, 0. ]), array([0.67, 0.  ]))
    """
    both = np.count_nonzero(predicted & present, axis=1)
    total = np.count_nonzero(predicted, axis=1) + np.count_nonzero(present, axis=1)
    if measure == "accuracy":
        return both / np.maximum(total - both, 1)
    return 2 * both / np.maximum(total, 1)


def value_of_sets(measure: str, predicted: BoolArray, present: BoolArray) -> float:
    """Return a measure of predicted label sets, larger is better.

    >>> sets = np.array([[True, True], [False, False]])
    >>> value_of_sets("accuracy", sets, sets), value_of_sets("hamming", sets, ~sets)
    (0.5, -4.0)
    """
    if measure in ("accuracy", "example_f1"):
        return float(row_overlaps(measure, predicted, present).mean())
    if measure == "hamming":
        return -float(np.count_nonzero(predicted != present))
    axis = {"macro_f1": 0, "micro_f1": None}[measure]
    right = np.count_nonzero(predicted & present, axis=axis)
    total = np.count_nonzero(predicted, axis=axis) + np.count_nonzero(present, axis=axis)
    return float(np.mean(2 * right / np.maximum(total, 1)))


def candidate_thresholds(batches: Sequence[tuple[FloatArray, BoolArray]]) -> Float64Array:
    """Return thresholds worth trying, given batches of scores and which labels are there.

    Between two scores of labels that are there a higher threshold only removes wrong labels, so
    what matters lies at quantiles of these scores.  An even grid is added, down to the middle of
    the scores of absent labels: where the two are far apart there is nothing between them, and
    the middle of the gap is wanted.

    >>> scores = np.array([[-0.9, 0.1], [0.5, -1.0]])
    >>> candidates = candidate_thresholds([(scores, scores > 0)])
    >>> bool((candidates < 0).any()), bool((scores[scores > 0] > candidates.min()).all())
    (True, True)
    """
    right = np.concatenate([*(scores[present] for scores, present in batches), np.zeros(0)])
    if right.size == 0:
        return np.zeros(1)
    quantiles = np.quantile(right, np.linspace(0.0, 1.0, N_QUANTILES))
    even = np.linspace(_lowest(batches, float(quantiles[0])), quantiles[-1], N_EVEN)
    # A score equal to the threshold is not above it: stay just below the scores themselves.
    return np.unique(np.concatenate([np.nextafter(quantiles, -np.inf), even, [0.0]]))


def _lowest(batches: Sequence[tuple[FloatArray, BoolArray]], least: float) -> float:
    """Return the middle score of absent labels, or the least of present ones if that is lower."""
    n_absent = sum(present.size - np.count_nonzero(present) for _, present in batches)
    if n_absent == 0:
        return min(least, 0.0)
    # To count is quicker than to find the middle, which is seldom the lower one.  Of an even
    # number of scores it is between two.
    if sum(np.count_nonzero(scores < least) for scores, _ in batches) <= (n_absent - 1) // 2:
        return least
    return float(np.median(np.concatenate([scores[~present] for scores, present in batches])))


class ThresholdSearch:
    """Counts, for every candidate, what each measure needs; then names the best thresholds.

    Unless candidates (ascending) are given, the first rows are kept until they are enough to say
    which thresholds are worth trying.
    """

    def __init__(
        self,
        n_labels: int,
        top1_if_empty: bool,
        candidates: Float64Array | None = None,
        n_threads: int = 1,
    ) -> None:
        self.n_labels, self.n_threads = n_labels, n_threads
        self.top1_if_empty = top1_if_empty
        self._kept: list[tuple[FloatArray, BoolArray]] = []
        self._n_rows = 0
        if candidates is not None:
            self._begin(candidates)

    def _begin(self, candidates: Float64Array) -> None:
        self.candidates = candidates
        n, n_labels = len(candidates), self.n_labels
        # Of the label sets of rows: the sums of the Jaccard index, and of F1.
        self._overlaps = np.zeros((2, n))
        # By candidate and label: predicted, and rightly so; by label: how often it is there.
        self._predicted = np.zeros((n, n_labels))
        self._right = np.zeros((n, n_labels))
        self._present = np.zeros(n_labels)
        # Of many equal cells between the first and the last candidate, how many candidates are in
        # those before each one.
        width = float(candidates[-1] - candidates[0])
        scale = (N_CELLS - 1) / width if width > 0 else math.inf
        # Candidates that are nearly equal are all in the first one.
        self._scale = scale if math.isfinite(scale) else 0.0
        cell_of = ((candidates - candidates[0]) * self._scale).astype(np.int64)
        self._cells = np.searchsorted(cell_of, np.arange(N_CELLS), side="left")

    def add(self, scores: FloatArray, present: BoolArray) -> None:
        """Count rows whose scores and labels are given."""
        if hasattr(self, "candidates"):
            self._count(scores, present)
            return
        self._kept.append((scores, present))
        if sum(kept.size for kept, _ in self._kept) >= MOST_KEPT:
            self._count_kept()

    def _count_kept(self) -> None:
        """Choose the candidates, and count what was kept until then."""
        self._begin(candidate_thresholds(self._kept))
        for batch in self._kept:
            self._count(*batch)
        self._kept = []

    def _count(self, scores: FloatArray, present: BoolArray) -> None:
        *counts, overlaps = count_above(
            *(scores, present, self.top1_if_empty, self.candidates),
            *(self._cells, self._scale, self.n_threads),
        )
        # A score above j candidates is above the first j: counts by j become counts by candidate.
        predicted, right = (np.cumsum(each[:, :0:-1], axis=1)[:, ::-1].T for each in counts)
        self._predicted += predicted
        self._right += right
        self._present += np.count_nonzero(present, axis=0)
        self._overlaps += overlaps
        self._n_rows += len(scores)

    def value(self, measure: str) -> Float64Array:
        """Return a measure under every candidate, larger is better."""
        if not hasattr(self, "candidates"):
            self._count_kept()
        if measure in ("accuracy", "example_f1"):
            return self._overlaps[int(measure == "example_f1")] / max(self._n_rows, 1)
        if measure == "hamming":
            return (2 * self._right - self._predicted).sum(axis=1) - self._present.sum()
        if measure == "micro_f1":
            total = self._predicted.sum(axis=1) + self._present.sum()
            return 2 * self._right.sum(axis=1) / np.maximum(total, 1.0)
        return self._f1_of_labels().mean(axis=1)

    def best(
        self, decision: str, measure: str, expected: Float64Array | None = None
    ) -> tuple[Float64Array, float]:
        """Return a threshold for every label, and the value of the best common one.

        Labels' own thresholds are halfway between their best ones and the common one, or what is
        ``expected`` of each.
        """
        values = self.value(measure)
        common = self._middle_of_best(values)
        thresholds = np.full(self.n_labels, common)
        anchors = thresholds if expected is None else expected
        if decision == "per_label":
            hamming = 2 * self._right - self._predicted
            own_values = hamming if measure == "hamming" else self._f1_of_labels()
            for label in np.flatnonzero(self._present):
                own = self._middle_of_best(own_values[:, label])
                # A label with few positives says little about its own threshold: meet halfway.
                thresholds[label] = 0.5 * (own + anchors[label])
        return thresholds, float(values.max())

    def _f1_of_labels(self) -> Float64Array:
        return 2 * self._right / np.maximum(self._predicted + self._present, 1.0)

    def _middle_of_best(self, values: Float64Array) -> float:
        """Return the middle of the first run of candidates that are as good as the best."""
        best = values >= values.max() - 1e-12
        first = int(np.argmax(best))
        run = int(np.argmin(np.append(best[first:], False)))
        return float(0.5 * (self.candidates[first] + self.candidates[first + run - 1]))
