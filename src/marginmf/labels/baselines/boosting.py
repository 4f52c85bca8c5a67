"""Boosting of decision stumps for label sets: AdaBoost.MH and AdaBoost.MR (Schapire, Singer, 2000).

A stump asks whether one feature is above a cut, and has a value for each label on either side.
In every round all stumps are compared at once: the weights of rows and labels are added up over
the rows on one side of each, which is a product with a sparse matrix of zeros and ones.
"""

from abc import abstractmethod
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csc_array, csr_array, issparse

from marginmf._utils.parameters import check_number
from marginmf._utils.saved import floats, indices
from marginmf._utils.types import BoolArray, Float64Array, FloatArray, IntArray
from marginmf.backends.labels import sparse_times
from marginmf.labels.algebra.matrices import BLOCK, with_small_indices
from marginmf.labels.base import LabelsEstimator, method
from marginmf.labels.linear import affine

#: Sums of weights, which are 1 in all, that are smaller than this are rounding.
ROUNDING = 1e-14
#: Stumps whose criterion differs by less are equally good; of these the first is taken.
TIE = 1e-12


@dataclass(frozen=True, eq=False)
class Stumps:
    """All stumps of a matrix of features, and which rows are on which side of them.

    The far side of a cut is the one without zero, so that zeros need not be stored: above a cut
    >= 0, below a negative one.  ``bins`` has a row for each stump, with the training rows between
    its cut and the next one of the feature that is farther from zero; ``farther`` adds up the bins
    from there on.  So a training row is in one bin of each feature at most.
    """

    features: IntArray
    cuts: Float64Array
    bins: csr_array
    farther: csr_array

    @classmethod
    def of(cls, X: Any, n_bins: int) -> "Stumps":
        """Find the cuts of every feature; they depend on its values, not on how it is stored."""
        columns = csc_array(X, dtype=np.float64)
        n = X.shape[0]
        cuts = [
            find_cuts(columns.data[start:stop], n - int(stop - start), n_bins)
            for start, stop in pairwise(columns.indptr)
        ]
        n_cuts = np.array([len(each) for each in cuts], np.int64)
        first = np.concatenate([[0], np.cumsum(n_cuts)])
        rows = np.full(columns.nnz, -1)
        for feature in np.flatnonzero(n_cuts):
            entries = slice(columns.indptr[feature], columns.indptr[feature + 1])
            below = np.searchsorted(cuts[feature], columns.data[entries])  # cuts below each value
            zero = np.searchsorted(cuts[feature], 0.0)
            # On the side of zero of all cuts: in no bin.
            bins = np.where(below > zero, below - 1, np.where(below < zero, below, -first[-1] - 1))
            rows[entries] = first[feature] + bins
        kept = rows >= 0
        n_stumps = int(first[-1])
        coordinates = rows[kept], columns.indices[kept]
        bins = csr_array((np.ones(int(kept.sum())), coordinates), shape=(n_stumps, n))
        features, flat = np.repeat(np.arange(len(cuts)), n_cuts), np.concatenate([*cuts, []])
        return cls(features, flat, with_small_indices(bins), _farther(features, flat))

    def __len__(self) -> int:
        return len(self.cuts)

    def sums(self, weights: Float64Array) -> Float64Array:
        """Add up the rows of the weights that are on the far side of each stump."""
        sums = sparse_times(self.farther, sparse_times(self.bins, weights))
        return sums.astype(np.float64, copy=False)

    def is_above(self, stump: int) -> BoolArray:
        """Return which training rows have a value above the stump's cut."""
        far = np.zeros(self.bins.shape[1], bool)
        far[(self.farther[[stump]] @ self.bins).indices] = True
        return far if self.cuts[stump] >= 0 else ~far


def find_cuts(values: Float64Array, n_zeros: int, n_bins: int) -> Float64Array:
    """Return the cuts of a feature, given its stored values and how many zeros are not stored.

    They are at quantiles, so that about equally many rows are between any two; and at zero, which
    is to ask whether a feature is present.  Others are in the middle between two values.

    >>> find_cuts(np.array([1.0, 2.0, 4.0]), 1, 4).tolist()
    [0.0, 1.5, 3.0]
    >>> find_cuts(np.array([1.0, 2.0]), 98, 4).tolist()
    [0.0]
    """
    if len(values) == 0:
        return np.zeros(0)
    # A rare feature, of which there may be very many: zero is at all quantiles.
    if n_zeros * n_bins >= (n_zeros + len(values)) * (n_bins - 1) and values.min() > 0:
        return np.zeros(1)
    distinct, n_rows = np.unique(values, return_counts=True)
    if n_zeros and not (distinct == 0).any():
        zero = int(np.searchsorted(distinct, 0.0))
        distinct, n_rows = np.insert(distinct, zero, 0.0), np.insert(n_rows, zero, 0)
    n_rows[distinct == 0] += n_zeros
    up_to = np.cumsum(n_rows)
    wanted = up_to[-1:] * np.arange(1, n_bins) / n_bins
    # The values just below cuts: those at quantiles, the last that is not above zero, and the last
    # below it.
    around_zero = [np.searchsorted(distinct, 0.0, side) - 1 for side in ("left", "right")]
    lower = np.unique(np.append(np.searchsorted(up_to, wanted), around_zero))
    lower = lower[(lower >= 0) & (lower < len(distinct) - 1)]
    low, high = distinct[lower], distinct[lower + 1]
    middle = 0.5 * low + 0.5 * high
    middle = np.where(middle < high, middle, low)
    return np.where((low <= 0) & (high > 0), 0.0, middle)


def _farther(features: IntArray, cuts: Float64Array) -> csr_array:
    """Return which bins are on the far side of each stump: those of its feature from there on."""
    n = len(cuts)
    # A feature's cuts on one side of zero are a run; the farthest is its last, or its first one.
    run = 2 * features + (cuts >= 0)
    starts = np.searchsorted(run, run)
    stops = np.searchsorted(run, run, side="right")
    begin = np.where(cuts >= 0, np.arange(n), starts)
    lengths = np.where(cuts >= 0, stops, np.arange(n) + 1) - begin
    indptr = np.concatenate([[0], np.cumsum(lengths)])
    columns = np.arange(indptr[-1]) - np.repeat(indptr[:-1] - begin, lengths)
    return with_small_indices(csr_array((np.ones(len(columns)), columns, indptr), shape=(n, n)))


@dataclass(eq=False, repr=False)
class _BoostedStumps(LabelsEstimator):
    """Adds up stumps, each of which is chosen for what those before it get wrong.

    Parameters
    ----------
    n_rounds : int
        How many stumps are added up; fewer, if none is better than chance any more.
    n_bins : int
        Into about how many equal shares of the rows the cuts of a feature divide them.  Zero is
        always a cut, and of sparse features nearly always the only one: present or not.

    Attributes
    ----------
    stump_features_ : array of shape (n_rounds,)
        The feature of each stump.
    stump_cuts_ : array of shape (n_rounds,)
        Its cut.
    stump_values_ : array of shape (n_rounds, 2, n_labels)
        What it adds to the score of each label: of rows up to the cut, and of rows above.
    """

    n_rounds: int = 200
    n_bins: int = 16

    _saved: ClassVar[dict[str, Any]] = {
        "stump_features_": indices("rounds", along="features"),
        "stump_cuts_": floats("rounds"),
        "stump_values_": floats("rounds", "2", "labels"),
        "bounds_": floats("rounds", most=None),
    }

    def _check(self) -> None:
        check_number(self, "n_rounds", int, 1)
        check_number(self, "n_bins", int, 2)

    @abstractmethod
    def _compared(self, Y: csr_array) -> BoolArray:
        """Return which rows have which labels, and what else labels are compared with."""

    @abstractmethod
    def _first_weights(self, present: BoolArray) -> Float64Array:
        """Return the weights of rows and labels in the first round."""

    @abstractmethod
    def _evidence(self, weights: Float64Array, present: BoolArray) -> list[Float64Array]:
        """Return the matrices of rows and labels that stumps add up on either side."""

    @abstractmethod
    def _gain(self, *sums: Float64Array) -> Float64Array:
        """Return how good one side of stumps is (rows) for some labels (columns), given its sums.

        The best stump is the one with the largest sum over both sides and all labels.
        """

    @abstractmethod
    def _values(self, *sums: Float64Array, least: float) -> Float64Array | None:
        """Return the values of a stump, given the sums of its sides; None if it is worth nothing.

        Divisors are at least about ``least``, so that values are finite.
        """

    @abstractmethod
    def _reweight(self, weights: Float64Array, present: BoolArray, growth: Float64Array) -> float:
        """Change weights in place, given the exponentials of what is added to scores.

        Returns what they add up to before they are divided by it.
        """

    def _fit(self, X: Any, Y: csr_array) -> None:
        present = self._compared(Y)
        stumps = Stumps.of(X, self.n_bins)
        weights = self._first_weights(present)
        chosen: list[int] = []
        values, sizes = np.zeros((self.n_rounds, 2, present.shape[1])), np.ones(self.n_rounds)
        while len(chosen) < self.n_rounds and len(stumps) and present.size:
            evidence = self._evidence(weights, present)
            best = self._best(stumps, evidence)
            above = stumps.is_above(best)
            sums = [
                np.stack([each[~above].sum(axis=0), each[above].sum(axis=0)]) for each in evidence
            ]
            found = self._values(*sums, least=1.0 / present.size)
            if found is None:
                break
            values[len(chosen)] = found
            growth = np.exp(found)[above.astype(np.intp)]
            sizes[len(chosen)] = self._reweight(weights, present, growth)
            chosen.append(best)
        n, picked = len(chosen), np.array(chosen, np.intp)
        self.stump_features_ = stumps.features[picked]
        self.stump_cuts_ = stumps.cuts[picked]
        self.stump_values_ = values[:n, :, : Y.shape[1]].copy()
        self.bounds_ = np.cumprod(sizes[:n])

    def _best(self, stumps: Stumps, evidence: list[Float64Array]) -> int:
        """Return the stump with the largest gain, the first of equally good ones."""
        gains = np.zeros(len(stumps))
        n_labels = evidence[0].shape[1]
        step = max(1, BLOCK // len(stumps))
        for start in range(0, n_labels, step):
            part = [each[:, start : start + step] for each in evidence]
            far = [stumps.sums(each) for each in part]
            near = [each.sum(axis=0) - sums for each, sums in zip(part, far, strict=True)]
            for side in (far, near):
                for sums in side:
                    sums[np.abs(sums) < ROUNDING] = 0.0
                gains += self._gain(*side).sum(axis=1)
        return int(np.argmax(gains >= gains.max() - TIE))

    def _scores(self, X: Any) -> FloatArray:
        features = X[:, self.stump_features_]
        above = (features.toarray() if issparse(features) else features) > self.stump_cuts_
        up_to, rest = self.stump_values_[:, 0], self.stump_values_[:, 1]
        return affine(above.astype(np.float64), rest - up_to, up_to.sum(axis=0))


@method("adaboost-mh")
@dataclass(eq=False, repr=False)
class AdaBoostMH(_BoostedStumps):
    """AdaBoost.MH: boosted stumps that lower the Hamming loss (Schapire and Singer, 2000).

    Every pair of a row and a label has a weight, which grows where the scores so far are wrong.
    In each round the stump is chosen that makes the sum of the weights smallest; its values are
    half the logarithm of the odds of a label on either side.  The paper has ``decision="sign"``.

    Attributes
    ----------
    bounds_ : array of shape (n_rounds,)
        After each round, what the Hamming loss on the training rows cannot exceed, of labels that
        some rows have and some have not.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=100, n_classes=4, random_state=0)
    >>> model = AdaBoostMH(n_rounds=20, decision="sign").fit(X, Y)
    >>> model.predict(X).shape, bool((model.predict(X) != Y).mean() <= model.bounds_[-1])
    ((100, 4), True)
    """

    def _compared(self, Y: csr_array) -> BoolArray:
        return Y.toarray() > 0

    def _first_weights(self, present: BoolArray) -> Float64Array:
        return np.full(present.shape, 1.0 / max(1, present.size))

    def _evidence(self, weights: Float64Array, present: BoolArray) -> list[Float64Array]:
        having = np.where(present, weights, 0.0)
        return [having, weights - having]

    def _gain(self, *sums: Float64Array) -> Float64Array:
        having, lacking = sums
        # With the best values, this is what the weights of a side add up to.
        return -2.0 * np.sqrt(having * lacking)

    def _values(self, *sums: Float64Array, least: float) -> Float64Array | None:
        having, lacking = sums
        if 2.0 * float(np.sqrt(having * lacking).sum()) >= 1.0 - TIE:
            return None
        return 0.5 * np.log((having + least) / (lacking + least))

    def _reweight(self, weights: Float64Array, present: BoolArray, growth: Float64Array) -> float:
        weights *= np.where(present, 1.0 / growth, growth)
        total = float(weights.sum())
        weights /= total
        return total


@method("adaboost-mr")
@dataclass(eq=False, repr=False)
class AdaBoostMR(_BoostedStumps):
    """AdaBoost.MR: boosted stumps that lower the ranking loss (Schapire and Singer, 2000).

    Every pair of a label that a row has and one that it has not has a weight, which grows where
    the scores so far are in the wrong order.  In each round the stump is chosen that separates
    most; it says 1 or -1 of a label on either side.  The weight of a pair is the product of two
    numbers, one of each label, so that the pairs are never formed.

    Only differences between the labels of a row are learned: a score is what the stumps add up to,
    minus the mean of the labels.  So ``decision="sign"`` predicts the labels above the mean of
    their row, which are too many where labels are; a tuned threshold suits better.

    Attributes
    ----------
    stump_values_ : array of shape (n_rounds, 2, n_labels)
        What it adds to the score of each label, of rows up to the cut and of rows above; they add
        up to 0 over the labels that some rows have and some have not.
    bounds_ : array of shape (n_rounds,)
        After each round, what the ranking loss on the training rows cannot exceed: the mean share
        of wrongly ordered pairs of the rows that have pairs.

    Notes
    -----
    Rows that have all labels, or none, have no pairs, and nothing is learned from them.  A single
    label is compared with its own absence.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=100, n_classes=4, random_state=0)
    >>> model = AdaBoostMR(n_rounds=20).fit(X, Y)
    >>> model.predict(X).shape, model.stump_values_.shape
    ((100, 4), (20, 2, 4))
    """

    def _compared(self, Y: csr_array) -> BoolArray:
        present: BoolArray = Y.toarray() > 0
        return np.hstack([present, ~present]) if present.shape[1] == 1 else present

    def _first_weights(self, present: BoolArray) -> Float64Array:
        n = present.sum(axis=1)
        n_pairs = n * (present.shape[1] - n)
        share = n_pairs * max(1, np.count_nonzero(n_pairs))
        roots = 1.0 / np.sqrt(np.where(share > 0, share, np.inf))
        return np.repeat(roots[:, None], present.shape[1], axis=1)

    def _evidence(self, weights: Float64Array, present: BoolArray) -> list[Float64Array]:
        having, lacking = _halves(weights, present)
        # The sum over the pairs that a label is in; below zero if the row lacks it.
        return [weights * np.where(present, lacking[:, None], -having[:, None])]

    def _gain(self, *sums: Float64Array) -> Float64Array:
        return 0.5 * np.abs(sums[0])

    def _values(self, *sums: Float64Array, least: float) -> Float64Array | None:
        balance = np.where(np.abs(sums[0]) < ROUNDING, 0.0, sums[0])
        separated = 0.5 * float(np.abs(balance).sum())
        if separated <= TIE:
            return None
        length = 0.5 * np.log((1.0 + separated + least) / (1.0 - separated + least))
        values: Float64Array = length * np.sign(balance)
        # Pairs of labels do not see what all labels of a row have in common.
        return values - values.mean(axis=1, keepdims=True)

    def _reweight(self, weights: Float64Array, present: BoolArray, growth: Float64Array) -> float:
        growth = np.sqrt(growth)
        weights *= np.where(present, 1.0 / growth, growth)
        having, lacking = _halves(weights, present)
        total = float(having @ lacking)
        weights /= np.sqrt(total)
        return total


def _halves(weights: Float64Array, present: BoolArray) -> tuple[Float64Array, Float64Array]:
    """Add up each row's weights, of the labels that it has and of those that it has not."""
    having = np.where(present, weights, 0.0).sum(axis=1)
    lacking = np.where(present, 0.0, weights).sum(axis=1)
    return having, lacking
