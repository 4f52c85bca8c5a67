"""Ridge regression of labels on features, by the way that suits their shape.

With X and Y centred, the weights are ``B = (X^T X + reg I)^{-1} X^T Y``, or, which is the same,
``X^T (X X^T + reg I)^{-1} Y``: a matrix as wide as the features or as long as the rows has to be
factorised, the smaller of the two.  Where both are large, conjugate gradients need products with X
alone.  Sparse features are never made dense.
"""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import LinAlgError, cho_factor, cho_solve, eigh
from scipy.sparse import csr_array, issparse
from sklearn.exceptions import ConvergenceWarning

from marginmf._utils.indicators import counts
from marginmf._utils.parameters import check_number
from marginmf._utils.types import Float64Array
from marginmf.labels.algebra.grams import (
    ImplicitNormal,
    cross_product,
    feature_moments,
    formed_normal,
    ready_for_products,
    row_blocks,
)
from marginmf.labels.base import method
from marginmf.labels.linear import LinearScores

#: The most rows of a matrix that is factorised.
LARGEST = 8192
#: What is below this share of the whole is lost in rounding.
ROUNDING = 1e-12
#: A penalty that is a smaller share of the squares of all features has no effect on their products.
DROWNED = 1e-12
#: When conjugate gradients stop: the residual as a share of the right-hand side, the iterations.
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
        The regularisation strength.  Without one, the smallest of all the best weights.

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
        # Where products of rows drown the penalty in their rounding, iterations in the units of
        # each feature do not.
        drowned = self.reg < DROWNED * float(self.moments[1].sum())
        if n <= LARGEST and not (self.reg and drowned):
            return self._from_rows(self._long(_centred(Y, M)))
        return self._iterated(self._cross(Y, M))

    def explained(self, Y: csr_array, weights: Float64Array) -> Float64Array:
        """Return the products of centred labels and what the weights make of the features."""
        X, (means, _) = self._ready
        product = np.zeros((Y.shape[1], weights.shape[1]))
        shift, start = means @ weights, 0
        for rows in row_blocks(X, weights.shape[1]):
            stop = start + rows.shape[0]
            # The columns of what is multiplied add up to zero, so Y need not be centred.
            product += Y[start:stop].T @ (rows @ weights - shift)
            start = stop
        return product

    @cached_property
    def _ready(self) -> tuple[Any, tuple[Float64Array, Float64Array]]:
        """Features to make products of, in float64 where they are sparse, and their moments."""
        X = self.X.astype(np.float64, copy=False) if issparse(self.X) else self.X
        return ready_for_products(X, self.moments)

    @cached_property
    def _wide(self) -> Solve:
        """The inverse of ``X^T X + reg I``."""
        matrix = formed_normal(*self._ready, np.float64).matrix
        return _inverse(matrix.astype(np.float64, copy=False), self.reg)

    @cached_property
    def _long(self) -> Solve:
        """The inverse of ``X X^T + reg I``."""
        X, (means, _) = self._ready
        if not issparse(X):
            centred = X - means
            return _inverse(centred @ centred.T, self.reg)
        products = (X @ X.T).toarray()
        with_means = X @ means
        products -= with_means[:, None]
        products -= with_means
        products += means @ means
        return _inverse(products, self.reg)

    def _from_rows(self, duals: Float64Array) -> Float64Array:
        X, (means, _) = self._ready
        weights: Float64Array = X.T @ duals
        weights -= np.outer(means, duals.sum(axis=0))
        return weights

    def _iterated(self, rhs: Float64Array) -> Float64Array:
        X, moments = self._ready
        normal = ImplicitNormal(X.astype(np.float64, copy=False), *moments)
        # Without a penalty, steps in other units would not lead to the smallest weights.
        diagonal = normal.diagonal + self.reg if self.reg else np.ones(X.shape[1])
        return _conjugate_gradients(lambda Z: normal.apply(Z) + self.reg * Z, diagonal, rhs)

    def _cross(self, Y: csr_array, M: Float64Array | None) -> Float64Array:
        """Return ``X^T Y M``, centred."""
        X, (means, _) = self._ready
        if M is not None:
            return cross_product(X, means, Y, M)
        product = Y.T @ X.astype(np.float64, copy=False)
        product = product.toarray() if issparse(product) else product
        product -= np.outer(counts(Y, axis=0), means)
        transposed: Float64Array = product.T
        return transposed


def _centred(Y: csr_array, M: Float64Array | None) -> Float64Array:
    targets: Float64Array = Y.toarray() if M is None else Y @ M
    targets -= targets.mean(axis=0)
    return targets


def _inverse(matrix: Float64Array, reg: float) -> Solve:
    """Return what multiplies by the inverse of ``matrix + reg I``."""
    if reg > 0 and (solve := _by_cholesky(matrix, reg)) is not None:
        return solve
    values, vectors = eigh(matrix, check_finite=False)
    kept = values > ROUNDING * max(float(values[-1]), 0.0)
    inverse = np.divide(1.0, values + reg, out=np.zeros_like(values), where=kept)
    return lambda rhs: (vectors * inverse) @ (vectors.T @ rhs)


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


@method("ridge-embedding")
@dataclass(eq=False, repr=False)
class RidgeEmbedding(LinearScores):
    """Ridge regression of all labels, as numbers 0 and 1, on the features.

    It is what embeddings of labels by ridge regression become when they keep every direction, and
    so the method that they have to be compared with.

    Parameters
    ----------
    reg : float
        The regularisation strength.
    decision, tune_for, top1_if_empty, cv
        How scores become label sets; see `DecisionTuned`.

    Attributes
    ----------
    coef_ : array of shape (n_labels, n_features)
        The weights of the features.
    intercept_ : array of shape (n_labels,)
        What is added; a score is the prediction minus one half.
    thresholds_ : array of shape (n_labels,)
        A label is predicted where its score is above.
    classes_ : array
        The names of the labels, or their numbers.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=100, n_classes=6, random_state=0)
    >>> RidgeEmbedding(reg=10.0).fit(X, Y).predict(X).shape
    (100, 6)
    """

    reg: float = 1.0

    # The regression of a constant label is that constant, and rare labels stay comparable.
    _varying_only: ClassVar[bool] = False

    def _check(self) -> None:
        check_number(self, "reg", float, 0)

    def _fit(self, X: Any, Y: csr_array) -> None:
        ridge = Ridge(X, float(self.reg))
        self.coef_ = np.ascontiguousarray(ridge.solve(Y).T)
        means = counts(Y, axis=0) / Y.shape[0]
        self.intercept_ = means - self.coef_ @ ridge.means - 0.5
