"""Ridge regression of labels on features, and of their principal directions (PLST, CPLST).

With X and Y centred, the weights are ``B = (X^T X + reg I)^{-1} X^T Y``, or, which is the same,
``X^T (X X^T + reg I)^{-1} Y``: the smaller of the two matrices is factorised.  Where both are
large, conjugate gradients need products with X alone.  Sparse features are never made dense.
"""

import warnings
from abc import abstractmethod
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
from marginmf.labels.algebra.matrices import (
    Gram,
    ImplicitNormal,
    LabelGram,
    cross_product,
    feature_moments,
    form_normal,
    leading_eigenvectors,
    prepare_products,
    row_blocks,
)
from marginmf.labels.base import LabelSpaceTransformer, LinearScores, method

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
    """Ridge regression of labels on features; without a penalty, the smallest best weights."""

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
        """Return the weights of the features (rows) for the centred targets ``Y M``, or Y."""
        n, width = self.X.shape
        if width <= min(n, LARGEST):
            return self._solve_by_features(self._cross(Y, M))
        X, (means, squares) = self._ready
        # Where products of rows drown the penalty in their rounding, iterations in the units of
        # each feature do not.
        drowned = self.reg < DROWNED * float(self.moments[1].sum())
        if n <= LARGEST and not (self.reg and drowned):
            targets: Float64Array = Y.toarray() if M is None else Y @ M
            duals = self._solve_by_rows(targets - targets.mean(axis=0))
            return X.T @ duals - np.outer(means, duals.sum(axis=0))
        normal = ImplicitNormal(X.astype(np.float64, copy=False), means, squares)
        # Without a penalty, steps in other units would not lead to the smallest weights.
        diagonal = squares + self.reg if self.reg else np.ones(width)
        return _conjugate_gradients(
            lambda Z: normal.apply(Z) + self.reg * Z, diagonal, self._cross(Y, M)
        )

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
        return prepare_products(X, self.moments)

    @cached_property
    def _solve_by_features(self) -> Solve:
        """The inverse of ``X^T X + reg I``."""
        matrix = form_normal(*self._ready, np.float64).matrix
        return _inverse(matrix.astype(np.float64, copy=False), self.reg)

    @cached_property
    def _solve_by_rows(self) -> Solve:
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

    def _cross(self, Y: csr_array, M: Float64Array | None) -> Float64Array:
        """Return ``X^T Y M``, centred."""
        X, (means, _) = self._ready
        if M is not None:
            return cross_product(X, means, Y, M)
        product = Y.T @ X.astype(np.float64, copy=False)
        product = product.toarray() if issparse(product) else product
        product -= np.outer(counts(Y, axis=0), means)
        return product.T


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

    Attributes
    ----------
    intercept_ : array of shape (n_labels,)
        What is added; a score is the prediction minus one half.

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


@dataclass(eq=False, repr=False)
class _PrincipalLabels(LabelSpaceTransformer):
    """Codes labels by the leading eigenvectors of a matrix, and predicts the codes.

    Parameters
    ----------
    n_factors : int
        How many eigenvectors; no more than the rank of the matrix are used.
    reg : float
        The regularisation strength of the ridge regression.
    """

    n_factors: int = 100
    reg: float = 1.0

    def _check(self) -> None:
        check_number(self, "n_factors", int, 1)
        check_number(self, "reg", float, 0)

    @abstractmethod
    def _gram(self, ridge: Ridge, Y: csr_array) -> Gram:
        """Return the matrix whose eigenvectors code the labels."""

    def _fit(self, X: Any, Y: csr_array) -> None:
        ridge = Ridge(X, float(self.reg))
        directions = leading_eigenvectors(self._gram(ridge, Y), self.n_factors)
        # An eigenvector has no sign of its own: its cubes shall add up to something positive.
        directions = np.where((directions**3).sum(axis=0) < 0, -directions, directions)
        self.feature_map_ = ridge.solve(Y, directions)
        self.feature_means_ = ridge.means
        self.label_means_ = counts(Y, axis=0) / Y.shape[0]
        self.label_factors_ = np.ascontiguousarray(directions.T)


@method("plst")
class PLST(_PrincipalLabels):
    """Principal label space transformation (Tai and Lin, 2012).

    The centred labels are projected on their leading singular vectors, which are the eigenvectors
    of ``Y^T Y``; ridge regression predicts the few numbers that each row has then, and the vectors
    decode them.  The paper has ``decision="sign"``, which is rounding to 0 and 1.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=100, n_classes=6, random_state=0)
    >>> model = PLST(n_factors=3).fit(X, Y)
    >>> model.predict(X).shape, model.transform(X).shape
    ((100, 6), (100, 3))
    """

    def _gram(self, ridge: Ridge, Y: csr_array) -> Gram:
        return LabelGram.of(Y)


@method("cplst")
class CPLST(_PrincipalLabels):
    """Conditional principal label space transformation (Chen and Lin, 2012).

    As `PLST`, but the directions are those of the labels as the features can predict them: the
    leading eigenvectors of ``Y^T H Y``, where ``H Y`` is what ridge regression makes of the
    training labels.  A direction that is large but cannot be predicted is left out.  The paper has
    ``decision="sign"``, which is rounding to 0 and 1.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=100, n_classes=6, random_state=0)
    >>> model = CPLST(n_factors=3).fit(X, Y)
    >>> model.predict(X).shape, model.transform(X).shape
    ((100, 6), (100, 3))
    """

    def _gram(self, ridge: Ridge, Y: csr_array) -> Gram:
        return PredictableGram(ridge, Y)


@dataclass(frozen=True, eq=False)
class PredictableGram:
    """``Y^T H Y`` of centred labels, with H the matrix that makes predictions of targets."""

    ridge: Ridge
    Y: csr_array

    @cached_property
    def counts(self) -> Float64Array:
        """How many rows have each label."""
        return counts(self.Y, axis=0).astype(np.float64)

    @property
    def trace(self) -> float:
        """The trace of ``Y^T Y``, which this one's does not exceed."""
        return float(np.sum(self.counts * (1.0 - self.counts / self.Y.shape[0])))

    @cached_property
    def matrix(self) -> Float64Array:
        """The whole matrix."""
        product = self.ridge.explained(self.Y, self.ridge.solve(self.Y))
        return 0.5 * (product + product.T)

    def apply(self, M: Float64Array) -> Float64Array:
        """Return the product with another matrix."""
        return self.ridge.explained(self.Y, self.ridge.solve(self.Y, M))
