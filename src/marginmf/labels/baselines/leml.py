"""LEML: low-rank least squares from features to labels (Yu, Jain, Kar and Dhillon, 2014).

Minimises ``1/2 |Y - X W H|^2 + reg/2 (|W|^2 + |H|^2)`` over W (features by factors) and H (factors
by labels) in turns, each of which is exact.  In the basis of the eigenvectors of ``X^T X``, and in
that of ``H H^T``, all equations for W come apart: every entry of it is a quotient.  Rows occur in
``X^T X`` and ``X^T Y`` alone.
"""

from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from scipy.sparse import csr_array, issparse

from marginmf._utils.parameters import check_flag, check_number, check_size, resolve_size
from marginmf._utils.random import as_generator
from marginmf._utils.saved import ANYTHING, floats
from marginmf._utils.types import Float64Array
from marginmf.labels.algebra.matrices import ImplicitNormal
from marginmf.labels.algebra.products import ROUNDING, Products, Spectrum, moments_around
from marginmf.labels.algebra.ridge import conjugate_gradients
from marginmf.labels.base import method
from marginmf.labels.baselines.rowfree import RowFreeTransformer, feature_means, label_gram

#: The most features, or rows if these are fewer, whose eigenvectors are computed.
MOST_EIGENVECTORS = 5000
#: The residual at which conjugate gradients stop, as a share of where they began, and their most
#: iterations: W need not be exact while H is still to change.
TOLERANCE, ITERATIONS = 1e-2, 20
#: The entries of H are below this at the start.
START = 0.1


class Regression(Protocol):
    """Features and labels, as the alternation sees them."""

    def best_weights(self, H: Float64Array, reg: float, W: Float64Array | None) -> Float64Array:
        """Return the best W for given H; W is where to start from, if that is known."""

    def products(self, W: Float64Array) -> tuple[Float64Array, Float64Array]:
        """Return ``W^T X^T X W`` and ``W^T X^T Y``."""

    def lift(self, weights: Float64Array) -> Float64Array:
        """Return W as weights of the features."""


@dataclass(frozen=True, eq=False)
class ByEigenvectors:
    """Weights are those of the eigenvectors of ``X^T X``, and always exact."""

    spectrum: Spectrum

    def best_weights(self, H: Float64Array, reg: float, W: Float64Array | None) -> Float64Array:
        """Return the best W for given H: in its own basis and that of H, entries are quotients."""
        sizes, Q = _eigenvectors(H @ H.T)
        target = self.spectrum.cross @ (H.T @ Q)
        below = np.multiply.outer(self.spectrum.values, sizes) + reg
        # Without a penalty, what no label asks for is zero.
        return np.divide(target, below, out=np.zeros_like(target), where=sizes > 0) @ Q.T

    def products(self, W: Float64Array) -> tuple[Float64Array, Float64Array]:
        """Return ``W^T X^T X W`` and ``W^T X^T Y``."""
        return W.T @ (self.spectrum.values[:, None] * W), W.T @ self.spectrum.cross

    def lift(self, weights: Float64Array) -> Float64Array:
        """Return W as weights of the features."""
        return self.spectrum.lift(weights)


@dataclass(frozen=True, eq=False)
class ByIterations:
    """Weights are those of the features; for many of them, and as many rows."""

    normal: ImplicitNormal
    cross: Any  # X^T Y, sparse if X is; not centred
    label_sums: Float64Array

    @classmethod
    def of(cls, X: Any, Y: csr_array, centred: bool) -> "ByIterations":
        """Prepare the products; sparse features are never made dense."""
        X = X.astype(np.float64, copy=False)
        means, squares = moments_around(X, centred)
        cross = csr_array(X.T @ Y) if issparse(X) else (Y.T @ X).T
        return cls(ImplicitNormal(X, means, squares), cross, Y.sum(axis=0))

    def best_weights(self, H: Float64Array, reg: float, W: Float64Array | None) -> Float64Array:
        """Return W nearly, by a ridge regression for each eigenvector of ``H H^T``."""
        sizes, Q = _eigenvectors(H @ H.T)

        def apply(Z: Float64Array) -> Float64Array:
            return self.normal.apply(Z) * sizes + reg * Z

        mixing = H.T @ Q
        target = self.cross @ mixing
        target -= np.outer(self.normal.means, self.label_sums @ mixing)
        start = np.zeros_like(target) if W is None else W @ Q
        diagonal = np.multiply.outer(self.normal.diagonal, sizes) + reg
        diagonal[diagonal == 0.0] = 1.0
        left = target - apply(start)
        step, _ = conjugate_gradients(apply, diagonal, left, TOLERANCE, ITERATIONS)
        return (start + step) @ Q.T

    def products(self, W: Float64Array) -> tuple[Float64Array, Float64Array]:
        """Return ``W^T X^T X W`` and ``W^T X^T Y``."""
        with_labels = (self.cross.T @ W).T
        with_labels -= np.outer(self.normal.means @ W, self.label_sums)
        return W.T @ self.normal.apply(W), with_labels

    def lift(self, weights: Float64Array) -> Float64Array:
        """Return W as weights of the features, which it is."""
        return weights


def _eigenvectors(matrix: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Return the eigenvalues of a matrix that has no negative ones, and its eigenvectors."""
    values, vectors = np.linalg.eigh(matrix)
    values[values <= ROUNDING * values.max(initial=0.0)] = 0.0
    return values, vectors


@method("leml")
@dataclass(eq=False, repr=False)
class LEML(RowFreeTransformer):
    """Low-rank empirical risk minimisation: least squares through a few factors.

    Weights from features to labels are a product of two matrices of few factors, each with a
    squared penalty, which are learned in turns (Yu and others, 2014).  The sum of the two penalties
    is ``reg`` times the sum of the singular values of the weights, so that a large ``reg`` removes
    factors.  Labels are 0 and 1; the paper has ``decision="sign"``, which is rounding to these.

    Parameters
    ----------
    n_factors : int or float
        How many factors, or how many as a share of the labels that vary; no more than the rank of
        the features are used.
    reg : float
        The regularisation strength.
    max_iter : int
        The most turns.  Few of them regularise too: ten are part of the published method.
    tol : float
        Stop when a turn lowers the objective by less than this share.
    fit_intercept : bool
        Whether features and labels are centred; the published method does not.
    random_state : int, Generator or None
        Seeds the factors at the start.

    Attributes
    ----------
    feature_means_, label_means_ : array
        What features and labels were centred with: zeros without an intercept.
    objectives_ : array of shape (n_iter_,)
        The objective after every turn.
    n_iter_ : int
        How many turns were taken.

    Notes
    -----
    The logistic and squared hinge losses of the paper are those of `MLCHMF` with ``max_depth=0``,
    which is the same model, learned by gradients.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=100, n_classes=6, random_state=0)
    >>> model = LEML(n_factors=0.5, decision="sign", random_state=0).fit(X, Y)
    >>> model.predict(X).shape, model.transform(X).shape
    ((100, 6), (100, 3))
    """

    n_factors: int | float = 0.4
    reg: float = 1.0
    max_iter: int = 10
    tol: float = 1e-4
    fit_intercept: bool = False
    random_state: Any = None

    _saved: ClassVar[dict[str, Any]] = {
        "objectives_": floats("turns", most=None),
        "n_iter_": ANYTHING,
    }

    def _check(self) -> None:
        check_size(self, "n_factors")
        check_number(self, "max_iter", int, 1)
        check_number(self, "reg", float, 0)
        check_number(self, "tol", float, 0)
        as_generator(self.random_state)
        check_flag(self, "fit_intercept")

    def _fit_nothing(self, X: Any) -> None:
        super()._fit_nothing(X)
        self.objectives_: Float64Array = np.zeros(0)
        self.n_iter_ = 0

    def _fit_varying(self, X: Any, Y: csr_array, products: Products | None) -> None:
        (n_rows, width), n_labels = X.shape, Y.shape[1]
        rank = min(n_rows, width)
        centred = bool(self.fit_intercept)
        regression: Regression
        if rank > MOST_EIGENVECTORS:
            regression = ByIterations.of(X, Y, centred)
        else:
            spectrum = Spectrum.of(X, Y, centred, products)
            regression, rank = ByEigenvectors(spectrum), len(spectrum.values)
        gram = label_gram(Y, products)
        squares = gram.trace if centred else float(gram.counts.sum())
        n_factors = max(1, min(resolve_size(self.n_factors, n_labels), rank))
        generator = self._checkpoint.generator("factors", self.random_state)
        start = generator.uniform(0.0, START, (n_factors, n_labels))
        W, H, self.objectives_ = self._take_turns(regression, start, squares)
        self.n_iter_ = len(self.objectives_)
        self.feature_map_, self.label_factors_ = regression.lift(W), H
        self.feature_means_, self.label_means_ = np.zeros(width), np.zeros(n_labels)
        if centred:
            self.feature_means_, self.label_means_ = feature_means(X, products), gram.means

    def _take_turns(
        self, regression: Regression, H: Float64Array, squares: float
    ) -> tuple[Float64Array, Float64Array, Float64Array]:
        """Return W, H and the objective after every turn; ``squares`` is the sum of those of Y."""
        reg, values = float(self.reg), [np.inf]
        W = None
        for _ in range(self.max_iter):
            W = regression.best_weights(H, reg, W)
            inner, cross = regression.products(W)
            sizes, E = _eigenvectors(inner)
            inverse = np.divide(1.0, sizes + reg, out=np.zeros_like(sizes), where=sizes > 0)
            H = E @ (inverse[:, None] * (E.T @ cross))
            fit = squares + float(np.sum(H * (inner @ H - 2.0 * cross)))
            values.append(0.5 * (fit + reg * float(np.sum(W * W) + np.sum(H * H))))
            if values[-2] - values[-1] <= self.tol * values[-1]:
                break
        assert W is not None
        return W, H, np.array(values[1:])
