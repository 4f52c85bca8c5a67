"""Value and gradient of one embedding: features to few numbers, and those to labels.

    J(U, V) = sum over instances i and labels l of loss(y_il, (x_i U V)_l) + reg / 2 (|U|^2 + |V|^2)

with y in {-1, +1}, a loss of the margin (the product of the two) or of target and score, and a
constant feature after those of x_i, so that the last row of U is an intercept.  With E = XU and G
the derivatives of the loss by the scores EV, the gradient is ``X^T G V^T + reg U`` and
``E^T G + reg V``: O(nnz(X) d + N d L) for N instances, rank d, L labels.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse

from marginmf._utils.types import FloatArray, IntArray
from marginmf.backends.labels import label_losses, sparse_times, vectors
from marginmf.backends.threads import run
from marginmf.losses import REAL, RealLoss, TwoLevelLoss, real_loss, two_level_loss
from marginmf.solvers.vectors import dot

#: Scores that are worked on together: few enough for a processor's own cache.  However many
#: instances there are, no table of all their scores is ever made.
BLOCK = 65_536
#: The fewest instances of a block, however many labels there are: products of single rows are slow.
FEWEST_ROWS = 16
#: Columns of a dense X that are multiplied together in the gradient by U.
COLUMNS = 512


def label_loss(loss: str | TwoLevelLoss | RealLoss) -> TwoLevelLoss | RealLoss:
    """Return the loss of that name, or the loss itself, if labels can have it; else explain."""
    if not (isinstance(loss, RealLoss) or (isinstance(loss, str) and loss in REAL)):
        return two_level_loss(loss)
    found = real_loss(loss)
    if found.positive:
        raise ValueError(
            f"loss={found.name!r} is for positive numbers, but labels are targets of -1 and 1. "
            "Choose 'squared' or a two-level loss such as 'smooth_hinge'."
        )
    return found


class LabelObjective:
    """The objective of one embedding, as a function of one flat parameter vector.

    The parameters are of the type of X; sums over instances and labels are in float64.  Y has one
    stored entry for each label of an instance.  The number of threads does not change the result.
    The caller keeps BLAS to one thread (`marginmf.backends.threads.one_blas_thread`).
    """

    def __init__(
        self,
        X: Any,
        Y: Any,
        reg: float,
        n_factors: int,
        loss: TwoLevelLoss | RealLoss,
        n_threads: int = 1,
    ) -> None:
        self.X, self.Y = X, Y
        self.reg = float(reg)
        self.loss = loss
        self.dtype = X.dtype
        self.n_threads = n_threads
        #: Arithmetic for solvers, with the same threads.
        self.vectors = vectors(n_threads)
        #: The shapes of U and V.
        self.shapes = (X.shape[1] + 1, n_factors), (n_factors, Y.shape[1])
        # Sums over instances go along the columns of X, which its transpose has in rows.
        self._transposed = csr_array(X.T) if issparse(X) else None
        # Instances are shared out in parts of at least as many rows as there are labels, so that a
        # part's share of the gradient by V takes no more memory than its rows of E do.
        n_labels = Y.shape[1]
        self._rows = max(FEWEST_ROWS, BLOCK // n_labels)
        self._parts = _bounds(X.shape[0], max(n_labels, self._rows))

    def join(self, U: FloatArray, V: FloatArray) -> FloatArray:
        """Return one parameter vector."""
        return np.concatenate([np.ravel(U), np.ravel(V)]).astype(self.dtype)

    def split(self, point: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return U (features to factors, the intercept last) and V as views of a vector."""
        first, second = self.shapes
        end = first[0] * first[1]
        return point[:end].reshape(first), point[end:].reshape(second)

    def __call__(self, point: FloatArray) -> tuple[float, FloatArray]:
        """Return the value and the gradient at a point."""
        U, V = self.split(point)
        gradient = np.empty_like(point)
        by_U, by_V = self.split(gradient)
        embedded = self._embed(U)
        by_embedded = np.empty_like(embedded)
        losses = np.empty(len(embedded))
        shares = np.zeros((len(self._parts) - 1, *V.shape), self.dtype)

        def work(first: int, last: int) -> None:
            share = shares[np.searchsorted(self._parts, first)]
            for start, stop in self._blocks(first, last):
                rows = slice(start, stop)
                scores = embedded[rows] @ V
                indptr = self.Y.indptr[start : stop + 1]
                losses[rows] = label_losses(indptr, self.Y.indices, scores, self.loss)
                np.dot(scores, V.T, out=by_embedded[rows])
                share += embedded[rows].T @ scores

        run(work, self._parts, self.n_threads)
        # In the order of the parts, not in the order in which they were ready.
        by_V[:] = shares.sum(axis=0, dtype=np.float64)
        self._sum_over_instances(by_embedded, by_U)
        gradient = self.vectors.combine((1.0, self.reg), (gradient, point), out=gradient)
        penalty = 0.5 * self.reg * dot(self.vectors, point, point)
        return float(losses.sum()) + penalty, gradient

    def n_errors(self, point: FloatArray) -> IntArray:
        """Return how many labels of each instance have a score of the wrong sign (0 is minus)."""
        U, V = self.split(point)
        embedded = self._embed(U)
        errors = np.empty(len(embedded), np.int64)

        def work(first: int, last: int) -> None:
            for start, stop in self._blocks(first, last):
                present = self.Y[start:stop].toarray() != 0
                errors[start:stop] = ((embedded[start:stop] @ V > 0) != present).sum(axis=1)

        run(work, self._parts, self.n_threads)
        return errors

    def _blocks(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """Yield the blocks of a part: instances whose scores are in memory together."""
        for start in range(first, last, self._rows):
            yield start, min(start + self._rows, last)

    def _embed(self, U: FloatArray) -> FloatArray:
        """Return XU, with the intercept."""
        embedded = np.empty((self.X.shape[0], U.shape[1]), self.dtype)

        def work(start: int, stop: int) -> None:
            np.dot(self.X[start:stop], U[:-1], out=embedded[start:stop])

        if issparse(self.X):
            sparse_times(self.X, U, embedded, self.n_threads)
        else:
            run(work, self._parts, self.n_threads)
        embedded += U[-1]
        return embedded

    def _sum_over_instances(self, by_embedded: FloatArray, by_U: FloatArray) -> None:
        """Fill the gradient by U with ``X^T by_embedded``; the constant feature is one."""

        def work(start: int, stop: int) -> None:
            np.dot(self.X[:, start:stop].T, by_embedded, out=by_U[start:stop])

        if self._transposed is not None:
            sparse_times(self._transposed, by_embedded, by_U[:-1], self.n_threads)
        else:
            run(work, _bounds(self.X.shape[1], COLUMNS), self.n_threads)
        by_U[-1] = by_embedded.sum(axis=0, dtype=np.float64)


def _bounds(n: int, length: int) -> IntArray:
    """Cut ``range(n)`` into parts of that length; the last one may be shorter."""
    return np.append(np.arange(0, n, length), n)
