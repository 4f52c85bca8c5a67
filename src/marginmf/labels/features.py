"""Rows and columns of X, dense or sparse alike."""

from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from marginmf._typing import FloatArray, IntArray
from marginmf.labels.products import sparse_times


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


def filled_columns(values: FloatArray, columns: IntArray, width: int) -> csr_array:
    """Return a sparse matrix of that width in which some columns are full.

    >>> filled_columns(np.array([[1.0], [2.0]]), np.array([1]), 3).toarray().tolist()
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
    places = (np.cumsum(used) - 1).astype(X.indices.dtype)
    shape = (X.shape[0], len(features))
    return features, csr_array((X.data, places[X.indices], X.indptr), shape=shape)


def embed(X: Any, features: IntArray, weights: FloatArray) -> FloatArray:
    """Return ``X[:, features] @ weights`` in the type of the weights.

    >>> X, weights = np.array([[1.0, 2.0, 3.0]]), np.array([[10.0], [100.0]])
    >>> embed(X, np.array([0, 2]), weights), embed(csr_array(X), np.array([0, 2]), weights)
    (array([[310.]]), array([[310.]]))
    """
    if not issparse(X):
        used = X if len(features) == X.shape[1] else X[:, features]
        product: FloatArray = used.astype(weights.dtype, copy=False) @ weights
        return product
    # Features without a weight point to a row of zeros after the others.
    places = np.full(X.shape[1], len(weights), np.int32)
    places[features] = np.arange(len(weights))
    padded = np.vstack([weights, np.zeros((1, weights.shape[1]), weights.dtype)])
    shape = (X.shape[0], len(padded))
    return sparse_times(csr_array((X.data, places[X.indices], X.indptr), shape), padded)
