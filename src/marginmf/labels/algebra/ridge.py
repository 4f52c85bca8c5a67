"""Ridge regression of many targets at once: by features, by rows, or by iterations.

With X and Y centred, the weights are ``B = (X^T X + reg I)^{-1} X^T Y``, or, which is the same,
``X^T (X X^T + reg I)^{-1} Y``: the smaller of the two matrices is factorised.  Where both are
large, conjugate gradients need products with X alone.  Sparse features are never made dense.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh
from scipy.sparse import csr_array, issparse
from sklearn.exceptions import ConvergenceWarning

from marginmf._utils.types import Float64Array
from marginmf.labels.algebra.matrices import (
    ImplicitNormal,
    cross_product,
    form_normal,
    prepare_products,
    row_blocks,
)
from marginmf.labels.algebra.products import (
    ROUNDING,
    Products,
    are_few,
    has_few_rows,
    label_products,
    moments_around,
    row_products,
)

#: A penalty that is a smaller share of the squares of all features has no effect on their products.
DROWNED = 1e-12
#: When conjugate gradients stop: the residual as a share of the right-hand side, the iterations.
TOLERANCE, ITERATIONS = 1e-10, 1000

Solve = Callable[[Float64Array], Float64Array]


@dataclass(frozen=True, eq=False)
class Ridge:
    """Ridge regression of labels on features; without a penalty, the smallest best weights."""

    X: Any
    reg: float
    #: Whether features and labels are centred, which is what an intercept does.
    centred: bool = True
    #: The products of these features and labels, centred alike, if they are known.
    products: Products | None = None

    @cached_property
    def moments(self) -> tuple[Float64Array, Float64Array]:
        """The mean of every feature, and the sum of squares around it; or around zero."""
        return moments_around(self.X, self.centred)

    @property
    def means(self) -> Float64Array:
        """The mean of every feature; zero without centring."""
        return self.moments[0]

    @property
    def is_drowned(self) -> bool:
        """Whether products of rows drown the penalty in their rounding.

        Iterations in the units of each feature do not.
        """
        return self.reg < DROWNED * float(self.moments[1].sum())

    def solve(self, Y: csr_array, M: Float64Array | None = None) -> Float64Array:
        """Return the weights of the features (rows) for the centred targets ``Y M``, or Y."""
        if are_few(self.X):
            return self._solve_by_features(self._cross(Y, M))
        X, (means, squares) = self.ready
        if has_few_rows(X) and not (self.reg and self.is_drowned):
            targets: Float64Array = Y.toarray() if M is None else Y @ M
            duals = self._solve_by_rows(targets - targets.mean(axis=0) * self.centred)
            return X.T @ duals - np.outer(means, duals.sum(axis=0))
        normal = ImplicitNormal(X.astype(np.float64, copy=False), means, squares)
        # Without a penalty, steps in other units would not lead to the smallest weights.
        diagonal = squares + self.reg if self.reg else np.ones(X.shape[1])
        found, is_solved = conjugate_gradients(
            lambda Z: normal.apply(Z) + self.reg * Z,
            diagonal[:, None],
            self._cross(Y, M),
            TOLERANCE,
            ITERATIONS,
        )
        if not is_solved:
            warnings.warn(
                f"Conjugate gradients left some of the ridge regression unsolved after "
                f"{ITERATIONS} iterations: scale the features, or raise reg.",
                ConvergenceWarning,
                stacklevel=2,
            )
        return found

    def explained(self, Y: csr_array, weights: Float64Array) -> Float64Array:
        """Return the products of centred labels and what the weights make of the features."""
        X, (means, _) = self.ready
        product = np.zeros((Y.shape[1], weights.shape[1]))
        shift, start = means @ weights, 0
        for rows in row_blocks(X, weights.shape[1]):
            stop = start + rows.shape[0]
            # The columns of what is multiplied add up to zero, so Y need not be centred.
            product += Y[start:stop].T @ (rows @ weights - shift)
            start = stop
        return product

    @cached_property
    def ready(self) -> tuple[Any, tuple[Float64Array, Float64Array]]:
        """Features to make products of, in float64 where they are sparse, and their moments."""
        X = self.X.astype(np.float64, copy=False) if issparse(self.X) else self.X
        return prepare_products(X, self.moments)

    @cached_property
    def _solve_by_features(self) -> Solve:
        """The inverse of ``X^T X + reg I``."""
        if self.products is not None:
            return inverse(self.products.normal, self.reg)
        formed: Any = form_normal(*self.ready, np.float64).matrix
        return inverse(formed, self.reg)

    @cached_property
    def _solve_by_rows(self) -> Solve:
        """The inverse of ``X X^T + reg I``."""
        X, (means, _) = self.ready
        return inverse(row_products(X, means), self.reg)

    def _cross(self, Y: csr_array, M: Float64Array | None) -> Float64Array:
        """Return ``X^T Y M``, centred."""
        if self.products is not None:
            return self.products.cross if M is None else self.products.cross @ M
        X, (means, _) = self.ready
        if M is not None:
            return cross_product(X, means, Y, M)
        return label_products(X, means, Y)


def inverse(matrix: Float64Array, reg: float) -> Solve:
    """Return what multiplies by the inverse of ``matrix + reg I``."""
    if reg > 0 and (solve := _by_cholesky(matrix, reg)) is not None:
        return solve
    values, vectors = eigh(matrix, check_finite=False)
    kept = values > ROUNDING * max(float(values[-1]), 0.0)
    inverted = np.divide(1.0, values + reg, out=np.zeros_like(values), where=kept)
    return lambda rhs: (vectors * inverted) @ (vectors.T @ rhs)


def _by_cholesky(matrix: Float64Array, reg: float) -> Solve | None:
    """Return the same by a factorisation, or None if the penalty is lost in rounding."""
    # With a diagonal of ones, features of small numbers are not lost beside those of large ones.
    scale = 1.0 / np.sqrt(matrix.diagonal() + reg)[:, None]
    balanced = matrix * scale.T
    balanced *= scale
    balanced[np.diag_indices_from(balanced)] = 1.0
    try:
        factor = cho_factor(balanced, lower=True, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return None
    # The squared diagonal of the factor is what those before each one leave of it.
    if np.square(factor[0].diagonal()).min(initial=1.0) <= ROUNDING:
        return None
    return lambda rhs: scale * cho_solve(factor, scale * rhs, check_finite=False)


def conjugate_gradients(
    apply: Solve, diagonal: Float64Array, rhs: Float64Array, tol: float, max_iter: int
) -> tuple[Float64Array, bool]:
    """Solve for all columns of the right-hand side side by side, preconditioned by a diagonal.

    Returns the solution, and whether what is left of every column is at most that share of it.
    """
    scale = 1.0 / diagonal
    found, left = np.zeros_like(rhs), rhs.copy()
    enough = tol * np.linalg.norm(rhs, axis=0)
    direction = scale * left
    energy = np.sum(left * direction, axis=0)
    for _ in range(max_iter):
        product = apply(direction)
        step = _ratio(energy, np.sum(direction * product, axis=0))
        found += step * direction
        left -= step * product
        if (np.linalg.norm(left, axis=0) <= enough).all():
            return found, True
        scaled = scale * left
        before, energy = energy, np.sum(left * scaled, axis=0)
        direction = scaled + _ratio(energy, before) * direction
    return found, False


def _ratio(above: Float64Array, below: Float64Array) -> Float64Array:
    """Divide; where there is nothing left to do, the ratio is 0."""
    return np.divide(above, below, out=np.zeros_like(above), where=below > 0)
