"""Ridge regression of labels on features, by the way that suits their shape.

With X and Y centred, the weights are ``B = (X^T X + reg I)^{-1} X^T Y``, or, which is the same,
``X^T (X X^T + reg I)^{-1} Y``: a matrix as wide as the features or as long as the rows has to be
factorised, whichever is smaller.  Where both are large, conjugate gradients need products with X
alone.  Sparse features are never made dense.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve, eigh
from scipy.sparse import csr_array, issparse
from sklearn.exceptions import ConvergenceWarning

from marginmf._typing import Float64Array
from marginmf.labels.grams import (
    ImplicitNormal,
    cross_product,
    feature_moments,
    formed_normal,
    row_blocks,
)

#: The largest matrix that is factorised has so many rows.
LARGEST = 8192
#: A penalty below this share of the trace is lost in rounding.
ROUNDING = 1e-12
#: When conjugate gradients stop: this small a share of the right-hand side, so many iterations.
TOLERANCE, ITERATIONS = 1e-10, 1000

Solve = Callable[[Float64Array], Float64Array]


@dataclass(frozen=True, eq=False)
class Ridge:
    """The least squares of labels by features, with a penalty on the squared weights.

    Parameters
    ----------
    X : array or csr_array of shape (n_rows, n_features)
        The features.
    reg : float
        The weight of the penalty.  Without one, the smallest of all the best weights.

    Examples
    --------
    >>> X, Y = np.array([[0.0], [1.0], [5.0]]), csr_array([[0.0], [1.0], [1.0]])
    >>> Ridge(X, 1.0).solve(Y)
    array([[0.13333333]])
    """

    X: Any
    reg: float

    @cached_property
    def moments(self) -> tuple[Float64Array, Float64Array]:
        """The mean of every feature, and the sum of squares around it."""
        return feature_moments(self.X)

    @property
    def means(self) -> Float64Array:
        """The mean of every feature."""
        return self.moments[0]

    def solve(self, Y: csr_array, M: Float64Array | None = None) -> Float64Array:
        """Return the weights of the features for the targets ``Y M``, or Y; centred.

        Parameters
        ----------
        Y : csr_array of shape (n_rows, n_labels)
            The labels.
        M : array of shape (n_labels, n_targets), optional
            What the labels are multiplied with.

        Returns
        -------
        array of shape (n_features, n_targets)
        """
        n, width = self.X.shape
        if width <= min(n, LARGEST):
            return self._wide(self._cross(Y, M))
        if n <= LARGEST:
            return self._from_rows(self._long(_centred(Y, M)))
        return self._iterated(self._cross(Y, M))

    def explained(self, Y: csr_array, weights: Float64Array) -> Float64Array:
        """Return the products of centred labels and what the weights make of the features."""
        product = np.zeros((Y.shape[1], weights.shape[1]))
        shift, start = self.means @ weights, 0
        for rows in row_blocks(self.X, weights.shape[1]):
            stop = start + rows.shape[0]
            # The columns of what is multiplied add up to zero, so Y need not be centred.
            product += Y[start:stop].T @ (rows @ weights - shift)
            start = stop
        return product

    @cached_property
    def _wide(self) -> Solve:
        """The inverse of ``X^T X + reg I``."""
        matrix = formed_normal(self.X, self.moments, np.float64).matrix
        return _inverse(matrix.astype(np.float64, copy=False), self.reg)

    @cached_property
    def _long(self) -> Solve:
        """The inverse of ``X X^T + reg I``."""
        X = self.X.astype(np.float64, copy=False)
        if not issparse(X):
            centred = X - self.means
            return _inverse(centred @ centred.T, self.reg)
        products = (X @ X.T).toarray()
        with_means = X @ self.means
        products -= with_means[:, None]
        products -= with_means
        products += self.means @ self.means
        return _inverse(products, self.reg)

    def _from_rows(self, duals: Float64Array) -> Float64Array:
        weights: Float64Array = self.X.T @ duals
        weights -= np.outer(self.means, duals.sum(axis=0))
        return weights

    def _iterated(self, rhs: Float64Array) -> Float64Array:
        normal = ImplicitNormal(self.X.astype(np.float64, copy=False), *self.moments)
        # Without a penalty, steps in other units would not lead to the smallest weights.
        diagonal = normal.diagonal + self.reg if self.reg else np.ones(self.X.shape[1])
        return _conjugate_gradients(lambda Z: normal.apply(Z) + self.reg * Z, diagonal, rhs)

    def _cross(self, Y: csr_array, M: Float64Array | None) -> Float64Array:
        """Return ``X^T Y M``, centred."""
        if M is not None:
            return cross_product(self.X, self.means, Y, M)
        product = Y.T @ self.X.astype(np.float64, copy=False)
        product = product.toarray() if issparse(product) else product
        product -= np.outer(np.bincount(Y.indices, minlength=Y.shape[1]), self.means)
        transposed: Float64Array = product.T
        return transposed


def _centred(Y: csr_array, M: Float64Array | None) -> Float64Array:
    targets: Float64Array = Y.toarray() if M is None else Y @ M
    targets -= targets.mean(axis=0)
    return targets


def _inverse(matrix: Float64Array, reg: float) -> Solve:
    """Return what multiplies by the inverse of ``matrix + reg I``; the matrix is overwritten."""
    trace = float(np.trace(matrix))
    if reg > ROUNDING * trace:
        matrix[np.diag_indices_from(matrix)] += reg
        factor = cho_factor(matrix, lower=True, overwrite_a=True, check_finite=False)
        return lambda rhs: cho_solve(factor, rhs, check_finite=False)
    values, vectors = eigh(matrix, overwrite_a=True, check_finite=False)
    kept = values > ROUNDING * trace
    inverse = np.divide(1.0, values + reg, out=np.zeros_like(values), where=kept)
    return lambda rhs: (vectors * inverse) @ (vectors.T @ rhs)


def _conjugate_gradients(apply: Solve, diagonal: Float64Array, rhs: Float64Array) -> Float64Array:
    """Solve for all columns of the right-hand side side by side, preconditioned by a diagonal."""
    scale = 1.0 / diagonal[:, None]
    found, left = np.zeros_like(rhs), rhs.copy()
    enough = TOLERANCE * np.linalg.norm(rhs, axis=0)
    direction = scale * left
    energy = np.sum(left * direction, axis=0)
    for _ in range(ITERATIONS):
        product = apply(direction)
        step = _ratio(energy, np.sum(direction * product, axis=0))
        found += step * direction
        left -= step * product
        if (np.linalg.norm(left, axis=0) <= enough).all():
            return found
        scaled = scale * left
        before, energy = energy, np.sum(left * scaled, axis=0)
        direction = scaled + _ratio(energy, before) * direction
    warnings.warn(
        f"Conjugate gradients left some of the ridge regression unsolved after {ITERATIONS} "
        "iterations: scale the features, or raise reg.",
        ConvergenceWarning,
        stacklevel=2,
    )
    return found


def _ratio(above: Float64Array, below: Float64Array) -> Float64Array:
    """Divide; where there is nothing left to do, the ratio is 0."""
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0)
