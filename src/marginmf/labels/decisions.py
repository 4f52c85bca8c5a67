"""Which labels are these scores?  Decision rules, one part that every label method shares.

A rule is a threshold for every label, and whether a row that would get no label gets its best
one.  Thresholds are chosen on scores that a model gave to rows it had not seen; the search sees
such scores batch by batch and keeps only counts, so it needs no more memory for more rows.

>>> import numpy as np
>>> rule = DecisionRule(np.array([0.0, 0.5]), top1_if_empty=True)
>>> rule(np.array([[0.2, 0.6], [-1.0, 0.4]])).astype(int)
array([[1, 1],
       [0, 1]])
"""

from dataclasses import dataclass

import numpy as np

from marginmf._typing import BoolArray, Float64Array, FloatArray, IntArray

#: The rules and the measures that they can be chosen for.
DECISIONS = ("sign", "global", "per_label")
MEASURES = ("accuracy", "micro_f1", "macro_f1", "hamming")

#: How many thresholds are tried: at quantiles of the scores of labels that are there, and evenly.
N_QUANTILES, N_EVEN = 192, 64
#: So many scores are held until candidates are chosen.
MOST_HELD = 2**24


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
        if not finite.all():
            least = excess[:, finite].min(axis=1, initial=0.0)
            excess[:, ~finite] = least[:, None] - 1.0
        return excess

    def __call__(self, scores: FloatArray) -> BoolArray:
        """Return which labels every row has."""
        excess = self.excess(scores)
        above: BoolArray = excess > 0
        if self.top1_if_empty and np.isfinite(self.thresholds).any():
            empty = np.flatnonzero(~above.any(axis=1))
            above[empty, np.argmax(excess[empty], axis=1)] = True
        return above


def candidate_thresholds(scores: FloatArray, present: BoolArray) -> Float64Array:
    """Return thresholds worth trying, given scores and which labels are there.

    Between two scores of labels that are there a higher threshold only removes wrong labels, so
    what matters lies at quantiles of these scores.  An even grid is added, down to the middle of
    the scores of absent labels: where the two are far apart there is nothing between them, and
    the middle of the gap is wanted.

    >>> scores = np.array([[-0.9, 0.1], [0.5, -1.0]])
    >>> candidates = candidate_thresholds(scores, scores > 0)
    >>> bool((candidates < 0).any()), bool((scores[scores > 0] > candidates.min()).all())
    (True, True)
    """
    right = scores[present].astype(np.float64)
    if right.size == 0:
        return np.zeros(1)
    quantiles = np.quantile(right, np.linspace(0.0, 1.0, N_QUANTILES))
    absent = scores[~present]
    low = min(float(quantiles[0]), float(np.median(absent)) if absent.size else 0.0)
    even = np.linspace(low, quantiles[-1], N_EVEN)
    # A score equal to the threshold is not above it: stay just below the scores themselves.
    return np.unique(np.concatenate([np.nextafter(quantiles, -np.inf), even, [0.0]]))


class ThresholdSearch:
    """Counts, for every candidate, what each measure needs; then names the best thresholds.

    Unless candidates are given, the first rows are held as they are, until there are enough of
    them to say which thresholds are worth trying.

    Parameters
    ----------
    n_labels : int
        How many labels there are.
    top1_if_empty : bool
        As in the rule that the thresholds are for.
    candidates : array, optional
        Thresholds to try, ascending.
    """

    def __init__(
        self, n_labels: int, top1_if_empty: bool, candidates: Float64Array | None = None
    ) -> None:
        self.n_labels = n_labels
        self.top1_if_empty = top1_if_empty
        self._held: list[tuple[FloatArray, BoolArray]] = []
        self._n_held = 0
        self._n_rows = 0
        if candidates is not None:
            self._begin(candidates)

    @property
    def begun(self) -> bool:
        """Whether the candidates are chosen."""
        return hasattr(self, "candidates")

    def _begin(self, candidates: Float64Array) -> None:
        self.candidates = candidates
        n, n_labels = len(candidates), self.n_labels
        self._jaccard = np.zeros(n)
        # By candidate and label: predicted, and rightly so; by label: how often it is there.
        self._predicted = np.zeros((n, n_labels))
        self._right = np.zeros((n, n_labels))
        self._present = np.zeros(n_labels)

    def add(self, scores: FloatArray, present: BoolArray) -> None:
        """Count rows whose scores and labels are given."""
        if self.begun:
            self._count(scores, present)
            return
        self._held.append((scores, present))
        self._n_held += scores.size
        if self._n_held >= MOST_HELD:
            self._count_held()

    def _count_held(self) -> None:
        """Choose the candidates, and count what was held until then."""
        if not self._held:
            self._held = [(np.zeros((0, self.n_labels)), np.zeros((0, self.n_labels), bool))]
        columns = list(zip(*self._held, strict=True))
        self._begin(candidate_thresholds(*map(np.concatenate, columns)))
        for held in self._held:
            self._count(*held)
        self._held = []

    def _count(self, scores: FloatArray, present: BoolArray) -> None:
        n, n_labels = scores.shape
        # How many candidates each score is above: it is predicted under all of those.
        above = np.searchsorted(self.candidates, scores.ravel(), side="left").reshape(n, n_labels)
        rows, labels = np.nonzero(present)
        of_row = _under_each(above, self._rows_of(above), n, len(self.candidates))
        right_of_row = _under_each(above[rows, labels], rows, n, len(self.candidates))
        self._predicted += _under_each(
            above, np.broadcast_to(np.arange(n_labels), above.shape), n_labels, len(self.candidates)
        ).T
        self._right += _under_each(above[rows, labels], labels, n_labels, len(self.candidates)).T
        if self.top1_if_empty:
            self._fill_empty(scores, present, of_row, right_of_row)
        self._present += np.bincount(labels, minlength=n_labels)
        union = of_row + np.bincount(rows, minlength=n)[:, None] - right_of_row
        # Nothing predicted where nothing is there: 0/0 counts as 0, as in the metric.
        self._jaccard += (right_of_row / np.maximum(union, 1.0)).sum(axis=0)
        self._n_rows += n

    def _fill_empty(
        self, scores: FloatArray, present: BoolArray, of_row: FloatArray, right_of_row: FloatArray
    ) -> None:
        """Add each row's best label under the candidates that leave the row empty."""
        best = np.argmax(scores, axis=1)
        hit = present[np.arange(len(best)), best]
        empty = of_row == 0
        of_row += empty
        right_of_row += empty & hit[:, None]
        for counts, rows in ((self._predicted, slice(None)), (self._right, hit)):
            np.add.at(counts.T, best[rows], empty[rows])

    def value(self, measure: str) -> Float64Array:
        """Return a measure under every candidate, larger is better."""
        if not self.begun:
            self._count_held()
        values: Float64Array
        if measure == "accuracy":
            values = self._jaccard / max(self._n_rows, 1)
        elif measure == "hamming":
            values = (2 * self._right - self._predicted).sum(axis=1) - self._present.sum()
        elif measure == "micro_f1":
            total = self._predicted.sum(axis=1) + self._present.sum()
            values = 2 * self._right.sum(axis=1) / np.maximum(total, 1.0)
        else:
            values = self._f1_of_labels().mean(axis=1)
        return values

    def best(self, decision: str, measure: str) -> tuple[Float64Array, float]:
        """Return a threshold for every label, and the value of the best common one."""
        values = self.value(measure)
        common = self._middle_of_best(values)
        n_labels = len(self._present)
        thresholds = np.full(n_labels, common)
        if decision == "per_label":
            if measure == "hamming":
                own_values = 2 * self._right - self._predicted
            else:
                own_values = self._f1_of_labels()
            for label in np.flatnonzero(self._present):
                own = self._middle_of_best(own_values[:, label])
                # A label with few positives says little about its own threshold: meet halfway.
                thresholds[label] = 0.5 * (own + common)
        return thresholds, float(values.max())

    def _f1_of_labels(self) -> Float64Array:
        scores: Float64Array = 2 * self._right / np.maximum(self._predicted + self._present, 1.0)
        return scores

    def _middle_of_best(self, values: Float64Array) -> float:
        """Return the middle of the first run of candidates that are as good as the best."""
        best = values >= values.max() - 1e-12
        first = int(np.argmax(best))
        run = int(np.argmin(np.append(best[first:], False)))
        return float(0.5 * (self.candidates[first] + self.candidates[first + run - 1]))

    @staticmethod
    def _rows_of(matrix: IntArray) -> IntArray:
        return np.broadcast_to(np.arange(len(matrix))[:, None], matrix.shape)


def _under_each(above: IntArray, group: IntArray, n_groups: int, n: int) -> Float64Array:
    """Return, for each group and candidate, how many entries are above the candidate."""
    counts = np.bincount(group.ravel() * (n + 1) + above.ravel(), minlength=n_groups * (n + 1))
    by_number = counts.reshape(n_groups, n + 1)[:, 1:]
    # An entry above k candidates is above the first k of them.
    return np.cumsum(by_number[:, ::-1], axis=1)[:, ::-1].astype(np.float64)
