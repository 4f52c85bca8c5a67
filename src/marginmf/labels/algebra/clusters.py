"""Seeded k-means whose answer depends on the rows alone, not on their form or on threads."""

import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.exceptions import ConvergenceWarning

from marginmf._utils.concurrency import after_fork
from marginmf._utils.types import Float64Array, IntArray
from marginmf.backends.threads import one_openmp_thread
from marginmf.labels.algebra.matrices import row_blocks, with_small_indices

#: Above this many rows k-means learns from small batches of them.
MOST_ROWS = 20_000
#: The most iterations of k-means.
ITERATIONS = 100
#: Rows of which more than this share is not zero are faster in an array.
DENSE = 0.25
#: Whose turn it is to change the filters of warnings, which all threads share, and the change.
_turn = threading.Lock()
_changed: list[Any] = []


@after_fork
def _start_again() -> None:
    """Give a forked child a lock that nobody holds, and filters that nobody has changed."""
    global _turn
    _turn = threading.Lock()
    while _changed:
        _changed.pop().__exit__(None, None, None)


def choose_form(X: Any) -> Any:
    """Return rows in float64, sparse or not as their zeros decide, whatever form they have.

    On rows of few different numbers many distances are equal, and which of them counts as the
    smallest is a matter of rounding, which differs between sparse and dense rows.  A sparse matrix
    becomes dense only where that takes less than three times its memory.

    >>> type(choose_form(np.eye(5))).__name__, choose_form(csr_array(np.ones((1, 2)))).tolist()
    ('csr_array', [[1.0, 1.0]])
    """
    if issparse(X):
        n_used = int(np.count_nonzero(X.data))
    else:
        n_used = sum(int(np.count_nonzero(rows)) for rows in row_blocks(X, X.shape[1]))
    if n_used > DENSE * X.shape[0] * X.shape[1]:
        X = X.toarray() if issparse(X) else X
        return np.ascontiguousarray(X, np.float64)
    return with_small_indices(csr_array(X).astype(np.float64))


def find_centres(X: Any, n_clusters: int, seed: int) -> Float64Array:
    """Return the centres of clusters of rows; for the form of X see `choose_form`."""
    if n_clusters == 1:
        return np.asarray(X.mean(axis=0), np.float64).reshape(1, -1)
    centres: Float64Array = _cluster(X, n_clusters, seed).cluster_centers_
    return centres


def find_clusters(X: Any, n_clusters: int, seed: int) -> IntArray:
    """Return the cluster of every row; for the form of X see `choose_form`."""
    if n_clusters == 1:
        return np.zeros(X.shape[0], np.int64)
    return np.asarray(_cluster(X, n_clusters, seed).labels_, np.int64)


def _cluster(X: Any, n_clusters: int, seed: int) -> Any:
    """Return k-means from one start, quietly: rows may be fewer, or more alike, than clusters."""
    kind = KMeans if X.shape[0] <= MOST_ROWS else MiniBatchKMeans
    found = kind(n_clusters, n_init=1, max_iter=ITERATIONS, random_state=seed)
    with one_openmp_thread(), quietly():
        return found.fit(X)


@contextmanager
def quietly() -> Iterator[None]:
    """Without warnings of clusters that are fewer than asked for, or not connected."""
    filters = warnings.catch_warnings()
    with _turn, filters:
        _changed.append(filters)
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", "Graph is not fully connected")
        try:
            yield
        finally:
            _changed.clear()
