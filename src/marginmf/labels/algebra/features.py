"""Rows and columns of X, dense or sparse alike, and the nearest rows of new ones."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.metrics import pairwise_distances_chunked
from sklearn.utils.extmath import row_norms

from marginmf._utils.saved import Stored, saved
from marginmf._utils.types import FloatArray, IntArray
from marginmf.backends.labels import sparse_times

#: A mean whose square is this many times the mean square around it is taken off before products.
FAR_OFF = 100.0
#: Mebibytes of distances in memory at a time.
MEMORY = 16


def take_rows(X: Any, rows: IntArray) -> Any:
    """Return some rows; sparse ones without zeros that are stored, and with small indices."""
    X = X[rows]
    if not issparse(X):
        return X
    X.eliminate_zeros()
    return with_small_indices(X)


def with_small_indices(X: csr_array) -> csr_array:
    """Return the same matrix with 32-bit indices, wherever these are enough.

    Much of scikit-learn takes no others, and kernels are compiled for each kind anew.
    """
    if X.indices.dtype == np.int32 or max(X.nnz, *X.shape) > np.iinfo(np.int32).max:
        return X
    indices, indptr = X.indices.astype(np.int32), X.indptr.astype(np.int32)
    return csr_array((X.data, indices, indptr), shape=X.shape)


def fill_columns(values: FloatArray, columns: IntArray, width: int) -> csr_array:
    """Return a sparse matrix of that width in which some columns are full.

    >>> fill_columns(np.array([[1.0], [2.0]]), np.array([1]), 3).toarray().tolist()
    [[0.0, 1.0, 0.0], [0.0, 2.0, 0.0]]
    """
    n, n_columns = values.shape
    indptr = np.arange(0, values.size + 1, n_columns)
    return csr_array((values.ravel(), np.tile(columns, n), indptr), shape=(n, width))


def used_features(X: Any) -> tuple[IntArray, Any]:
    """Return the features that are not zero for all instances, and X with those alone.

    In a sparse X every stored entry counts as not zero (see `take_rows`).

    >>> used_features(np.array([[0.0, 2.0], [0.0, 3.0]]))
    (array([1]), array([[2.],
           [3.]]))
    """
    if not issparse(X):
        features = np.flatnonzero((X != 0).any(axis=0))
        whole = len(features) == X.shape[1]
        return features, X if whole else np.ascontiguousarray(X[:, features])
    used = np.zeros(X.shape[1], bool)
    used[X.indices] = True
    features = np.flatnonzero(used)
    columns = (np.cumsum(used) - 1).astype(X.indices.dtype)
    shape = (X.shape[0], len(features))
    return features, csr_array((X.data, columns[X.indices], X.indptr), shape=shape)


def embed(X: Any, features: IntArray, weights: FloatArray) -> FloatArray:
    """Return ``X[:, features] @ weights`` in the type of the weights.

    >>> X, weights = np.array([[1.0, 2.0, 3.0]]), np.array([[10.0], [100.0]])
    >>> embed(X, np.array([0, 2]), weights), embed(csr_array(X), np.array([0, 2]), weights)
    (array([[310.]]), array([[310.]]))
    """
    if not issparse(X):
        used = X if len(features) == X.shape[1] else X[:, features]
        return used.astype(weights.dtype, copy=False) @ weights
    # Features without a weight point to a row of zeros after the others.
    columns = np.full(X.shape[1], len(weights), np.int32)
    columns[features] = np.arange(len(weights))
    padded = np.vstack([weights, np.zeros((1, weights.shape[1]), weights.dtype)])
    shape = (X.shape[0], len(padded))
    return sparse_times(csr_array((X.data, columns[X.indices], X.indptr), shape), padded)


# Squared distances that differ by less than this share of what they are computed from are equal:
# in a batch of another size, or of sparse rows, they may come out in another order.
_ROUNDING = 64 * float(np.finfo(np.float64).eps)


@saved
@dataclass
class Neighbours:
    """Finds the stored instances with the smallest Euclidean distance.

    Every distance is looked at, batch by batch, so that memory is bounded, sparse instances stay
    sparse and give the same neighbours as dense ones, and the number of features does not matter.
    Of equally distant instances those stored first are taken.

    If fewer than ``n_neighbors`` are stored, all of them.

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
        self.stored_ = X
        return self

    def kneighbors(self, X: Any = None) -> IntArray:
        """Return the indices of each instance's neighbours among the stored ones, nearest first.

        By default each stored instance's own neighbours, itself left out.
        """
        stored, alone = self.stored_, X is None
        queries = stored if alone else X.astype(stored.dtype, copy=False)
        n = min(self.n_neighbors, stored.shape[0] - alone)
        if n <= 0 or queries.shape[0] == 0:
            return np.empty((queries.shape[0], max(n, 0)), np.intp)
        if not issparse(stored):
            origin = _origin(stored)
            if origin.any():
                stored, queries = stored - origin, queries - origin
        norms = row_norms(queries, squared=True).astype(np.float64)

        def nearest(distances: FloatArray, start: int) -> IntArray:
            rows = np.arange(len(distances))
            if alone:
                distances[rows, start + rows] = np.inf
            return _smallest(distances, n, norms[start + rows])

        chunks = pairwise_distances_chunked(
            queries, stored, reduce_func=nearest, metric="euclidean", working_memory=MEMORY
        )
        return np.concatenate(list(chunks))


def _origin(stored: FloatArray) -> FloatArray:
    """Return where to put the origin of dense instances.

    Distances do not depend on it, but their rounding does: features far from zero are moved there.
    """
    means = stored.mean(axis=0, dtype=np.float64)
    variances = stored.var(axis=0, dtype=np.float64)
    far = np.square(means) > FAR_OFF * variances
    return np.where(far, means, 0.0).astype(stored.dtype)


def _smallest(distances: FloatArray, n: int, norms: FloatArray) -> IntArray:
    """Return the columns of each row's n smallest values, of equal ones the first columns.

    ``norms`` are the squared lengths of the rows' instances.
    """
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
