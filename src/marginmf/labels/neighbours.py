"""The nearest stored instances of new ones."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.metrics import pairwise_distances_chunked
from sklearn.utils.extmath import row_norms

from marginmf._typing import FloatArray, IntArray
from marginmf.labels.grams import FAR_OFF

#: Mebibytes of distances that are held at a time.
MEMORY = 16
# Squared distances that differ by less than this share of what they are computed from are equal:
# in a batch of another size, or of sparse rows, they may come out in another order.
_ROUNDING = 64 * float(np.finfo(np.float64).eps)


@dataclass
class Neighbours:
    """Finds the stored instances with the smallest Euclidean distance.

    Every distance is looked at, batch by batch, so that memory is bounded, sparse instances stay
    sparse and give the same neighbours as dense ones, and the number of features does not matter.
    Of equally distant instances those stored first are taken.

    Parameters
    ----------
    n_neighbors : int
        How many neighbours each instance gets; if fewer are stored, all of them.

    Attributes
    ----------
    stored_ : array or csr_array of shape (n_stored, n_features)
        The instances to search; all that a fitted object knows.

    Examples
    --------
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

    def fit(self, X: Any) -> "Neighbours":
        """Store the instances to search."""
        self.stored_ = X
        return self

    def kneighbors(self, X: Any = None) -> IntArray:
        """Return the places of each instance's neighbours among the stored ones, nearest first.

        Parameters
        ----------
        X : array or csr_array of shape (n_samples, n_features), optional
            Whose neighbours; by default each stored instance's own, itself left out.

        Returns
        -------
        array of shape (n_samples, n)
            With ``n`` the smaller of ``n_neighbors`` and how many there are.
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
    origin: FloatArray = np.where(far, means, 0.0).astype(stored.dtype)
    return origin


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
    nearest: IntArray = columns[order[starts[:, None] + np.arange(n)]]
    return nearest
