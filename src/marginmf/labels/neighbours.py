"""The nearest training rows of new ones, and ML-kNN, which asks them (Zhang and Zhou, 2007)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.metrics import pairwise_distances_chunked
from sklearn.utils.extmath import row_norms

from marginmf._utils import indicators as _indicators
from marginmf._utils.parameters import check_number
from marginmf._utils.saved import Stored, floats, saved
from marginmf._utils.sparse import settled
from marginmf._utils.types import Float64Array, FloatArray, IntArray
from marginmf.labels.algebra.matrices import FAR_OFF
from marginmf.labels.base import LabelsEstimator, method

#: Mebibytes of distances in memory at a time.
MEMORY = 16
# Squared distances that differ by less than this share of what they are computed from are equal:
# in a batch of another size, or of sparse rows, they may come out in another order.
_ROUNDING = 64 * float(np.finfo(np.float64).eps)


@saved
@dataclass
class Neighbours:
    """Finds the stored instances with the smallest Euclidean distance.

    Every distance is looked at, batch by batch, so that memory is bounded, and sparse instances
    stay sparse and give the same neighbours as dense ones.  Of equally distant instances those
    stored first are taken; if fewer than ``n_neighbors`` are stored, all of them.

    >>> search = Neighbours(2).fit(np.array([[0.0], [3.0], [4.0]]))
    >>> search.kneighbors(np.array([[2.9], [0.0]]))
    array([[1, 2],
           [0, 1]])
    >>> search.kneighbors()
    array([[1, 2],
           [2, 0],
           [1, 0]])
    """

    n_neighbors: int = 5

    _saved: ClassVar[dict[str, Any]] = {"n_neighbors": int, "stored_": Stored(("rows", "features"))}

    def _flaws(self, lengths: Mapping[str, int]) -> Iterator[str]:
        if self.n_neighbors < 0 or self.stored_.shape[0] == 0:
            yield " has no neighbours to find"
        with np.errstate(over="ignore"):
            norms = row_norms(self.stored_.astype(np.float64, copy=False), squared=True)
        if not np.isfinite(norms).all():
            yield " has rows that are too long to be compared"

    def fit(self, X: Any) -> "Neighbours":
        """Store the instances to search."""
        self.stored_ = settled(X)
        return self

    def kneighbors(self, X: Any = None) -> IntArray:
        """Return the indices of each instance's neighbours among the stored ones, nearest first.

        By default each stored instance's own neighbours, itself left out.
        """
        stored, leave_self_out = self.stored_, X is None
        queries = stored if leave_self_out else X.astype(stored.dtype, copy=False)
        n = min(self.n_neighbors, stored.shape[0] - leave_self_out)
        if n <= 0 or queries.shape[0] == 0:
            return np.empty((queries.shape[0], max(n, 0)), np.intp)
        if not issparse(stored):
            origin = _origin(stored)
            if origin.any():
                stored, queries = stored - origin, queries - origin
        norms = row_norms(queries, squared=True).astype(np.float64)

        def nearest(distances: FloatArray, start: int) -> IntArray:
            rows = np.arange(len(distances))
            if leave_self_out:
                distances[rows, start + rows] = np.inf
            return _smallest(distances, n, norms[start + rows])

        chunks = pairwise_distances_chunked(
            queries, stored, reduce_func=nearest, metric="euclidean", working_memory=MEMORY
        )
        return np.concatenate(list(chunks))


def _origin(stored: FloatArray) -> FloatArray:
    """Return where to put the origin of dense instances, on which the rounding depends."""
    means = stored.mean(axis=0, dtype=np.float64)
    variances = stored.var(axis=0, dtype=np.float64)
    far = np.square(means) > FAR_OFF * variances
    return np.where(far, means, 0.0).astype(stored.dtype)


def _smallest(distances: FloatArray, n: int, norms: FloatArray) -> IntArray:
    """Return the columns of each row's n smallest values, of equal ones the first columns."""
    squared = np.square(distances, dtype=np.float64)
    limit = np.partition(squared, n - 1, axis=1)[:, n - 1]
    # A neighbour is no longer than the way to the instance and from there to the neighbour.
    lengths = norms + np.square(np.sqrt(norms) + np.sqrt(limit))
    slack = _ROUNDING * lengths + 8 * np.finfo(distances.dtype).eps * limit
    rows, columns = np.nonzero(squared <= (limit + slack)[:, None])
    values = squared[rows, columns]
    # Those about the n-th are equal to it, also where rounding says otherwise.
    values = np.where(values >= (limit - slack)[rows], limit[rows], values)
    order = np.lexsort([columns, values, rows])
    starts = np.searchsorted(rows, np.arange(len(squared)))
    return columns[order[starts[:, None] + np.arange(n)]]


@method("mlknn")
@dataclass(eq=False, repr=False)
class MLkNN(LabelsEstimator):
    """Multi-label k nearest neighbours (Zhang and Zhou, 2007).

    For every label the training rows say how often it goes with 0, 1, ... k neighbours that have
    it, where a row is not its own neighbour.  Bayes' rule makes of that the probability of the
    label, given how many neighbours of a new row have it; a score is that minus one half, and the
    paper has ``decision="sign"``.

    Parameters
    ----------
    n_neighbors : int
        How many neighbours are asked; if there are fewer other rows, all of them.
    smoothing : float
        How many rows of each kind are thought to have been seen beforehand; above 0.

    Attributes
    ----------
    neighbours_ : Neighbours
        The training rows, in an order of their own.
    stored_labels_ : csr_array of shape (n_samples, n_labels)
        Their labels.
    prior_ : array of shape (n_labels,)
        How likely each label is.
    posterior_ : array of shape (n_labels, n_neighbors + 1)
        How likely, given how many of the neighbours have it.

    Notes
    -----
    Distances are Euclidean: features without a unit in common should be scaled first
    (`MinMaxScaler` suits).

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=100, n_classes=4, random_state=0)
    >>> model = MLkNN(n_neighbors=5).fit(X, Y)
    >>> model.predict(X).shape, model.posterior_.shape
    ((100, 4), (4, 6))
    """

    n_neighbors: int = 10
    smoothing: float = 1.0

    # Of a label that does not vary, the priors say how surely.
    _varying_only: ClassVar[bool] = False
    _saved: ClassVar[dict[str, Any]] = {
        "neighbours_": "Neighbours",
        "stored_labels_": Stored(("rows", "labels")),
        "prior_": floats("labels"),
        "posterior_": floats("labels", "numbers"),
    }

    def _flaws(self, lengths: Mapping[str, int]) -> Iterator[str]:
        yield from super()._flaws(lengths)
        labels = self.stored_labels_
        if labels.shape[0] != self.neighbours_.stored_.shape[0]:
            yield ".stored_labels_ are not those of its neighbours"
        if type(labels) is not csr_array or not (labels.data == 1).all():
            yield ".stored_labels_ has something else than ones"
        if self.posterior_.shape[1] != self.neighbours_.n_neighbors + 1:
            yield ".posterior_ is for another number of neighbours"

    def _check(self) -> None:
        check_number(self, "n_neighbors", int, 1)
        check_number(self, "smoothing", float, 0)
        if self.smoothing == 0:
            raise ValueError(
                "smoothing=0 must be above 0: else what training never showed would be impossible."
            )

    def _fit(self, X: Any, Y: csr_array) -> None:
        n_neighbors = min(self.n_neighbors, Y.shape[0] - 1)
        self.neighbours_ = Neighbours(n_neighbors).fit(X)
        self.stored_labels_ = settled(Y)
        counts, smoothing = self._counts(self.neighbours_.kneighbors()), float(self.smoothing)
        self.prior_, self.posterior_ = _probabilities(Y, counts, n_neighbors, smoothing)

    def _scores(self, X: Any) -> FloatArray:
        counts = self._counts(self.neighbours_.kneighbors(X)).tocoo()
        scores = np.tile(self.posterior_[:, 0], (X.shape[0], 1))
        scores[counts.row, counts.col] = self.posterior_[counts.col, counts.data.astype(np.int64)]
        scores -= 0.5
        return scores

    @property
    def _probability_scores(self) -> bool:
        return True

    def _counts(self, neighbours: IntArray) -> csr_array:
        """Return how many of the neighbours have each label."""
        n, k = neighbours.shape
        shape = (n, self.stored_labels_.shape[0])
        chosen = csr_array((np.ones(n * k), neighbours.ravel(), k * np.arange(n + 1)), shape)
        return csr_array(chosen @ self.stored_labels_)


def _probabilities(
    Y: csr_array, counts: csr_array, n_neighbors: int, smoothing: float
) -> tuple[Float64Array, Float64Array]:
    """Return how likely labels are, and how likely given the number of neighbours with them."""
    having = _indicators.counts(Y, axis=0)
    lacking = Y.shape[0] - having
    # Rows by label and number of neighbours: those that have the label, and all.
    with_label = _histograms(counts.multiply(Y).tocsr(), having, n_neighbors)
    without = _histograms(counts, having + lacking, n_neighbors) - with_label
    prior = (smoothing + having) / (2.0 * smoothing + Y.shape[0])
    total = smoothing * (n_neighbors + 1)
    for_label = prior[:, None] * (smoothing + with_label) / (total + having)[:, None]
    against = (1.0 - prior)[:, None] * (smoothing + without) / (total + lacking)[:, None]
    return prior, for_label / (for_label + against)


def _histograms(counts: csr_array, totals: IntArray, largest: int) -> IntArray:
    """Return how often each number occurs in a column; zeros, not stored, are what is missing."""
    n_columns = counts.shape[1]
    cells = counts.indices.astype(np.int64) * (largest + 1) + counts.data.astype(np.int64)
    found = np.bincount(cells, minlength=n_columns * (largest + 1)).reshape(n_columns, -1)
    found[:, 0] = totals - found[:, 1:].sum(axis=1)
    return found
