"""An order of rows and labels that depends on what they hold, not on where they stand.

Methods draw random numbers, cluster and make folds in this order, so that shuffling rows or labels
changes nothing but the order of the answers; nor does the form or the precision of the matrices.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from marginmf._utils.indicators import counts
from marginmf._utils.saved import Optional, Shaped, Stored, declared, flags, saved
from marginmf._utils.types import Array, BoolArray, FloatArray, IntArray
from marginmf.backends.threads import one_blas_thread
from marginmf.checkpoints import OpenCheckpoint
from marginmf.labels.algebra.matrices import take_rows, with_small_indices

Keys = NDArray[np.uint64]

#: Dense rows are hashed in blocks of about this many entries.
BLOCK = 2**20


def row_keys(X: Any) -> Keys:
    """Return a hash of every row: the sum, modulo 2^64, of the hashes of its nonzero entries."""
    if issparse(X):
        return _sum_rows(_hash_entries(X.data, X.indices), X.indptr)
    columns = np.arange(X.shape[1])
    step = max(1, BLOCK // max(1, X.shape[1]))
    blocks = (X[start : start + step] for start in range(0, X.shape[0], step))
    keys = [_hash_entries(block, columns).sum(axis=1, dtype=np.uint64) for block in blocks]
    return np.concatenate(keys) if keys else np.zeros(0, np.uint64)


class Order(NamedTuple):
    """Where to take rows and labels from; labels of one kind belong to the same rows."""

    rows: IntArray
    labels: IntArray
    kinds: IntArray


def canonical_order(X: Any, Y: csr_array) -> Order:
    """Return rows in the order of their keys, and labels in that of the rows that have them.

    Data sets hold rows with the same features and other labels: such rows are in the order of
    their labels, which are told apart by the rows that have them.
    """
    keys, columns = row_keys(X), Y.tocsc()
    of_labels = _sum_rows(_mix(keys)[columns.indices], columns.indptr)
    labels = np.argsort(of_labels, kind="stable")
    rows = np.lexsort((_sum_rows(_mix(of_labels)[Y.indices], Y.indptr), keys))
    return Order(rows, labels, np.unique(of_labels[labels], return_inverse=True)[1])


def content_order(X: Any, Y: csr_array) -> Order:
    """Return the order of rows and labels together: equal rows of X come in that of their labels.

    ``X[rows]`` and ``Y[rows][:, labels]`` are the same however rows and labels were shuffled; only
    what is equal may be exchanged.  ``kinds`` numbers the different labels in this order.
    """
    features, columns = row_keys(X), Y.tocsc()
    rows = features
    # Equal rows are told apart by their labels, and labels by their rows: each round carries a
    # difference one step further.
    for _ in range(3):
        labels = _mix(_sum_rows(_mix(rows)[columns.indices], columns.indptr))
        rows = _mix(features ^ _mix(_sum_rows(labels[Y.indices], Y.indptr)))
    order = np.argsort(labels, kind="stable")
    kinds = np.unique(labels[order], return_inverse=True)[1]
    return Order(np.argsort(rows, kind="stable"), order, kinds)


def _hash_entries(values: Any, columns: IntArray) -> Keys:
    """Return a hash of every entry and its column; nothing for zeros, which may not be stored."""
    bits = np.ascontiguousarray(values, np.float64).view(np.uint64)
    hashes = _mix(bits ^ _mix(columns.astype(np.uint64) + np.uint64(1)))
    hashes[values == 0] = 0
    return hashes


def _mix(x: Keys) -> Keys:
    """Scatter 64-bit numbers: the finaliser of SplitMix64 (Steele, Lea and Flood, 2014)."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def _sum_rows(hashes: Keys, indptr: IntArray) -> Keys:
    """Add up the hashes of each row; unsigned sums wrap round, so differences of them are exact."""
    running = np.concatenate([np.zeros(1, np.uint64), np.cumsum(hashes, dtype=np.uint64)])
    return running[indptr[1:]] - running[indptr[:-1]]


def fingerprint_arrays(X: Any, Y: csr_array) -> dict[str, Array]:
    """Return the arrays that tell one data set from another, by names for messages."""
    labels = {"the labels": Y.indices, "the rows of y": Y.indptr}
    if not issparse(X):
        return {"X": X, **labels}
    return {"X": X.data, "the columns of X": X.indices, "the rows of X": X.indptr, **labels}


class Fold(NamedTuple):
    """Indices of the rows to learn from, and of the rows held out."""

    train: IntArray
    test: IntArray


def inner_folds(X: Any, Y: csr_array, n_folds: int) -> list[Fold]:
    """Deal the rows out to folds, at most one for each row, in an order of their own."""
    order = canonical_order(X, Y).rows
    # Rows held out stay in this order, so that whatever is done batch by batch is the same too.
    parts = [order[k::n_folds] for k in range(min(n_folds, len(order)))]
    everything = np.arange(len(order))
    return [Fold(np.setdiff1d(everything, part, assume_unique=True), part) for part in parts]


@saved
@dataclass(frozen=True, eq=False)
class Varying:
    """Which labels some rows have and some have not, and what the others always are."""

    varying: BoolArray
    always: BoolArray

    _saved: ClassVar[dict[str, Any]] = {"varying": flags("labels"), "always": flags("labels")}

    @classmethod
    def of(cls, Y: csr_array) -> Self:
        """Look at the labels of training rows."""
        having = counts(Y, axis=0)
        always = having == Y.shape[0]
        return cls((having > 0) & ~always, always)

    def fill(self, scores: FloatArray) -> FloatArray:
        """Return scores of all labels, given those of the labels that vary, or of all."""
        if self.varying.all():
            return scores
        everything = np.empty((len(scores), len(self.varying)), scores.dtype)
        everything[:] = np.where(self.always, 1.0, -1.0)
        whole = scores.shape[1] == len(self.varying)
        everything[:, self.varying] = scores[:, self.varying] if whole else scores
        return everything


@dataclass(frozen=True, eq=False)
class Seen:
    """How a method sees training data: rows and labels in an order of their own.

    ``labels`` has the label of each column that the method sees, which may not be all labels.
    """

    order: Order
    labels: IntArray
    n_labels: int

    @classmethod
    def of(cls, order: Order, varying: Varying | None) -> Self:
        """Look at data in an order; at the labels that vary alone, if these are given."""
        labels = order.labels
        seen = labels if varying is None else labels[varying.varying[labels]]
        return cls(order, seen, len(labels))

    @property
    def kinds(self) -> IntArray:
        """The kind of each label that is seen, from 0 on; see `Order`."""
        kinds = self.order.kinds[np.isin(self.order.labels, self.labels)]
        return np.unique(kinds, return_inverse=True)[1]

    def take(self, X: Any, Y: csr_array) -> tuple[Any, csr_array]:
        """Return features and labels as the method sees them."""
        labels = Y[self.order.rows][:, self.labels]
        labels.sort_indices()
        return take_rows(X, self.order.rows), with_small_indices(labels)

    def positions(self, labels: IntArray) -> IntArray:
        """Return the columns that the method sees of these labels; others are left out."""
        column_of = np.full(self.n_labels, -1)
        column_of[self.labels] = np.arange(len(self.labels))
        columns = column_of[labels]
        return columns[columns >= 0]

    def restore(self, value: Any, wanted: Any) -> Any:
        """Return a learned attribute for the rows and labels as they were given.

        Arrays that are declared to have an axis of labels, or indices into it, get the order of all
        labels; labels that were not seen get zeros.  An object with ``restore`` is asked itself.
        """
        match wanted:
            case Optional(inner):
                return value if value is None else self.restore(value, inner)
            case Shaped(_, axes, index):
                value = self.labels[value] if index == "labels" else value
                if "labels" not in axes:
                    return value
                axis = axes.index("labels")
                shape = (*value.shape[:axis], self.n_labels, *value.shape[axis + 1 :])
                spread = np.zeros(shape, value.dtype)
                spread[(slice(None),) * axis + (self.labels,)] = value
                return spread
            case Stored((_, "labels")):
                shape = (value.shape[0], self.n_labels)
                columns = self.labels[value.indices].astype(value.indices.dtype)
                matrix = csr_array((value.data, columns, value.indptr), shape=shape)
                matrix.sort_indices()
                return matrix
        return value.restore(self) if hasattr(value, "restore") else value


class OrderedFit(ABC):
    """What happens around `_fit` and `_scores`, the same for every method."""

    #: In which order `_fit` sees rows and labels, so that theirs in the data does not matter; None
    #: for the order of the data.
    _order: ClassVar[Callable[..., Order] | None] = staticmethod(canonical_order)
    #: Whether `_fit` and `_scores` are spared labels that all training rows have, or none.
    _varying_only: ClassVar[bool] = True
    #: Which labels vary, if `_fit` saw no others.
    _labels: Varying | None = None
    #: How `_fit` sees the data; there during a fit only.
    _seen: Seen
    #: Runs the minimisations of `_fit`; one that keeps what was done is there during a fit only.
    _checkpoint = OpenCheckpoint()

    @abstractmethod
    def _fit(self, X: Any, Y: csr_array) -> None:
        """Learn to score from features and an indicator of ones, on one BLAS thread.

        Rows and labels come in an order of their own.  Learned arrays that ``_saved`` declares to
        have an axis of labels are put in the labels' own order afterwards (`Seen.restore`);
        `_restore` mends what else depends on it.
        """

    @abstractmethod
    def _scores(self, X: Any) -> FloatArray:
        """Return scores of a batch of rows, above 0 for likely labels; constant ones may lack."""

    def _fit_in_order(self, X: Any, Y: csr_array) -> None:
        """Fit once rows and labels are in order, and put what was learned back."""
        if self._varying_only:
            self._labels = Varying.of(Y)
        order, before = type(self)._order, dict(vars(self))
        with one_blas_thread():
            if order is None:
                rows, labels = map(np.arange, Y.shape)
                self._seen = Seen.of(Order(rows, labels, labels), self._labels)
                self._fit(X, Y if self._labels is None else Y[:, self._seen.labels])
            else:
                self._seen = Seen.of(order(X, Y), self._labels)
                self._fit(*self._seen.take(X, Y))
        learned = {name for name, value in vars(self).items() if value is not before.get(name)}
        self._restore(self._seen, learned)
        del self._seen

    def _restore(self, seen: Seen, learned: Collection[str]) -> None:
        """Put what `_fit` has learned in the order of the rows and labels that were given."""
        for name, wanted in declared(type(self)).items():
            if name in learned:
                setattr(self, name, seen.restore(getattr(self, name), wanted))

    def _label_scores(self, X: Any) -> FloatArray:
        """Return a score for every row of a batch and every label."""
        if self._labels is not None and not self._labels.varying.any():
            return self._labels.fill(np.zeros((X.shape[0], 0)))
        # One thread, because products that BLAS shares out come otherwise rounded.
        with one_blas_thread():
            scores = self._scores(X)
        return scores if self._labels is None else self._labels.fill(scores)
