"""Kernels of rows, ridge regression in their terms, and what it predicts for rows held out.

With ``S = (K + reg I)^{-1}`` and an intercept b that is not penalised, the weights of the rows are
``A = S (Y - 1 b^T)``.  The limit of ever larger constants added to K takes the intercept into S:
``S - S 1 1^T S / (1^T S 1)``.  With that S, the predictions for some rows B by a model of all the
others are exactly ``Y_B - (S_BB)^{-1} A_B``: one inverse serves all folds.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, get_lapack_funcs, solve
from scipy.sparse import csr_array, issparse
from sklearn.utils.extmath import row_norms

from marginmf._utils.types import Float64Array, FloatArray, IntArray
from marginmf.backends.labels import mirror
from marginmf.labels.algebra.matrices import row_blocks

#: How rows are made comparable before their distances are taken; see `prepare_rows`.
PREPARATIONS = ("none", "scale", "normalize")


def prepare_rows(X: Any, how: str, factor: Float64Array | None = None) -> Any:
    """Return rows to take distances of, in float64.

    None: as they are.  Scale: every feature divided by the difference of its greatest and least
    value in training (`feature_factors`).  Normalize: every row divided by its length.
    """
    X = X.astype(np.float64, copy=False)
    if how == "scale":
        assert factor is not None
        if not issparse(X):
            return X * factor
        return csr_array((X.data * factor[X.indices], X.indices, X.indptr), shape=X.shape)
    if how == "normalize":
        lengths = row_norms(X)
        inverse = np.divide(1.0, lengths, out=np.zeros_like(lengths), where=lengths > 0)
        if not issparse(X):
            return X * inverse[:, None]
        data = X.data * np.repeat(inverse, np.diff(X.indptr))
        return csr_array((data, X.indices, X.indptr), shape=X.shape)
    return X


def squared_distances(A: Any, B: Any) -> Float64Array:
    """Return the squared Euclidean distances of the rows of A (down) and B (across)."""
    product = A @ B.T
    squares: Float64Array = product.toarray() if issparse(product) else product
    squares *= -2.0
    squares += row_norms(A, squared=True)[:, None]
    squares += row_norms(B, squared=True)
    return np.maximum(squares, 0.0, out=squares)


def median_distance(X: Any) -> float:
    """Return the median squared distance of different rows, or 1 if there are none."""
    squares = squared_distances(X, X)[np.triu_indices(X.shape[0], 1)]
    apart = squares[squares > 1e-12 * max(float(squares.max(initial=0.0)), 1e-300)]
    return float(np.median(apart)) if len(apart) else 1.0


def rbf_kernel(A: Any, B: Any, gamma: float, dtype: Any = np.float64) -> FloatArray:
    """Return ``exp(-gamma |a - b|^2)``, computed in float64 a block of rows at a time."""
    kernel = np.empty((A.shape[0], B.shape[0]), dtype)
    start = 0
    for rows in row_blocks(A, B.shape[0]):
        squares = squared_distances(rows, B)
        squares *= -gamma
        kernel[start : start + rows.shape[0]] = np.exp(squares, out=squares)
        start += rows.shape[0]
    return kernel


@dataclass(frozen=True, eq=False)
class DualRidge:
    """Ridge regression on the rows of a kernel, with an intercept and one regularisation strength.

    Arithmetic is in the precision of the kernel, unless its factorisation needs more.

    Parameters
    ----------
    kernel : array of shape (n_rows, n_rows)
        The kernel; it is not changed.
    reg : float
        The regularisation strength, above 0.
    """

    kernel: FloatArray
    reg: float

    @cached_property
    def _inverse(self) -> tuple[FloatArray, FloatArray]:
        """The inverse of ``K + reg I`` with the intercept in it, and its shares of the rows."""
        inverse = _invert(self.kernel, self.reg)
        if inverse is None:  # the penalty is lost in the rounding of single precision
            inverse = _invert(self.kernel.astype(np.float64), self.reg)
        if inverse is None:
            raise ValueError(
                f"reg={self.reg:g} is too small for these rows, many of which are nearly equal: "
                "raise it."
            )
        sums = inverse.sum(axis=1, dtype=np.float64)
        shares = sums / sums.sum()
        inverse -= np.outer(sums, shares).astype(inverse.dtype)
        return inverse, shares

    def weights(self, Y: csr_array) -> tuple[FloatArray, Float64Array]:
        """Return the weights of the rows (down) for all targets, and the intercepts."""
        inverse, shares = self._inverse
        # The columns of the inverse add up to zero, so the intercepts drop out.
        product = Y.astype(inverse.dtype).T @ inverse
        return np.ascontiguousarray(product.T), Y.T @ shares

    def held_out(
        self, Y: csr_array, weights: FloatArray, parts: Sequence[IntArray]
    ) -> Iterator[FloatArray]:
        """Yield the predictions of each part's rows by the regression on the rows of the others."""
        inverse, _ = self._inverse
        for rows in parts:
            gaps = solve(inverse[np.ix_(rows, rows)], weights[rows], assume_a="pos")
            yield Y[rows].toarray() - gaps


def _invert(matrix: FloatArray, reg: float) -> FloatArray | None:
    """Return the inverse of ``matrix + reg I`` by a factorisation, or None if that fails."""
    factor = np.array(matrix, order="F")
    factor[np.diag_indices_from(factor)] += factor.dtype.type(reg)
    factorise, invert = get_lapack_funcs(("potrf", "potri"), (factor,))
    factor, failed = factorise(factor, lower=True, overwrite_a=True, clean=False)
    if failed:
        return None
    # What the rows before leave of the smallest pivot says how many digits are left.
    pivots = np.square(factor.diagonal())
    if pivots.min() <= 16 * np.finfo(factor.dtype).eps * pivots.max():
        return None
    inverse, failed = invert(factor, lower=True, overwrite_c=True)
    if failed:
        return None
    # Column by column below the diagonal is row by row above it.
    inverse = inverse.T
    mirror(inverse)
    return inverse


class LandmarkMoments:
    """Sums over rows that ridge regression on similarities to landmarks needs.

    Sums of the rows of a fold, taken from those of all, are the sums of the others.
    """

    def __init__(self, n_landmarks: int, n_labels: int) -> None:
        self.n = 0.0
        self.sums, self.label_sums = np.zeros(n_landmarks), np.zeros(n_labels)
        self.inner = np.zeros((n_landmarks, n_landmarks))
        self.cross = np.zeros((n_landmarks, n_labels))

    def add(self, features: FloatArray, Y: csr_array) -> None:
        """Count rows, given their similarities to the landmarks."""
        self.n += features.shape[0]
        self.sums += features.sum(axis=0)
        self.label_sums += np.bincount(Y.indices, minlength=Y.shape[1])
        self.inner += features.T @ features
        self.cross += (Y.T @ features).T

    def __add__(self, other: "LandmarkMoments") -> "LandmarkMoments":
        return self._with(np.add, other)

    def __sub__(self, other: "LandmarkMoments") -> "LandmarkMoments":
        return self._with(np.subtract, other)

    def _with(self, combine: Any, other: "LandmarkMoments") -> "LandmarkMoments":
        found = LandmarkMoments(0, 0)
        for name, own in vars(self).items():
            setattr(found, name, combine(own, getattr(other, name)))
        return found

    def weights(self, penalty: FloatArray, reg: float) -> tuple[Float64Array, Float64Array]:
        """Return the weights of the landmarks for all labels, and the intercepts."""
        means = self.sums / self.n
        matrix = self.inner - np.outer(self.sums, means) + reg * penalty
        # Landmarks that are nearly equal leave the matrix singular but for rounding.
        diagonal = np.diag_indices_from(matrix)
        matrix[diagonal] += 1e-9 * float(np.mean(matrix[diagonal]))
        right = self.cross - np.outer(means, self.label_sums)
        try:
            weights = solve(matrix, right, assume_a="pos", check_finite=False)
        except LinAlgError:
            raise ValueError(f"reg={reg:g} is too small for these rows: raise it.") from None
        return weights, self.label_sums / self.n - means @ weights
