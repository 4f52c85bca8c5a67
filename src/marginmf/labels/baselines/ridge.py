"""Ridge regression of labels on features, and of their principal directions (PLST, CPLST)."""

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array

from marginmf._utils.indicators import counts
from marginmf._utils.parameters import check_number
from marginmf._utils.saved import Optional
from marginmf._utils.types import Float64Array, FloatArray, IntArray
from marginmf.labels.algebra.kernels import DualRidge
from marginmf.labels.algebra.matrices import Gram, leading_eigenvectors, orient, take_rows
from marginmf.labels.algebra.products import Products, are_few, has_few_rows, row_products
from marginmf.labels.algebra.ridge import Ridge
from marginmf.labels.base import method
from marginmf.labels.baselines.rowfree import RowFreeTransformer, label_gram
from marginmf.labels.linear import LinearScores, affine
from marginmf.labels.strengths import ChosenStrength, StrengthSearch, middle

#: The strengths that "auto" may try; it begins in the middle and goes on where that is better.
REGS = (0.01, 0.1, 1.0, 10.0, 100.0, 1000.0, 10_000.0)


@method("ridge-embedding")
@dataclass(eq=False, repr=False)
class RidgeEmbedding(ChosenStrength, LinearScores):
    """Ridge regression of all labels, as numbers 0 and 1, on the features.

    It is what embeddings of labels by ridge regression become when they keep every direction, and
    so the method that they have to be compared with.  What models of the other folds predict for
    rows held out follows from the products of all rows, without a fit for each fold.

    Parameters
    ----------
    reg : float or "auto"
        The regularisation strength.  Auto looks for the best from 0.01 to 10,000 on rows held out:
        by the log loss of probabilities where the decision rule follows these, else by what
        thresholds reach of ``tune_for``.

    Attributes
    ----------
    reg_ : float
        The strength that is used.
    intercept_ : array of shape (n_labels,)
        What is added; a score is the prediction minus one half.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=100, n_classes=6, random_state=0)
    >>> RidgeEmbedding(reg=10.0).fit(X, Y).predict(X).shape
    (100, 6)
    """

    reg: float | str = "auto"

    # The regression of a constant label is that constant, and rare labels stay comparable.
    _varying_only: ClassVar[bool] = False
    _saved: ClassVar[dict[str, Any]] = {"reg_": Optional(float)}

    def _fit(self, X: Any, Y: csr_array) -> None:
        regs: Sequence[float] = REGS if self.reg == "auto" else (float(self.reg),)
        if are_few(X):
            solve = self._solve_by_products(X, Y)
        elif has_few_rows(X) and regs[0] > 0 and not Ridge(X, regs[0]).is_drowned:
            solve = self._solve_by_rows(X, Y)
        else:
            solve = self._solve_by_refits(X, Y)
        solution = StrengthSearch(self, Y, solve).best(regs, middle(regs))
        self.reg_ = solution.reg
        self.coef_, intercept = solution.learned
        self.intercept_ = intercept - 0.5
        self._keep_held_out(solution.held_out)

    def _solve_by_products(self, X: Any, Y: csr_array) -> Callable[[float], Any]:
        """Return what learns with a strength, where there are few features."""
        parts, whole = self._fold_parts(X.shape[0]), Products.of(X, Y)

        @cache  # not needed where no row is held out
        def others(number: int) -> Products:
            return whole.without(Products.of(X[parts[number]], Y[parts[number]]))

        def learn(products: Products, reg: float) -> tuple[Float64Array, Float64Array]:
            coef = np.ascontiguousarray(Ridge(X, reg, products=products).solve(Y).T)
            return coef, products.labels.means - coef @ products.means

        def solve(reg: float) -> Any:
            model = cache(lambda number: learn(others(number), reg))
            return learn(whole, reg), self._hold_out_by(X, Y, parts, model)

        return solve

    def _hold_out_by(
        self, X: Any, Y: csr_array, parts: list[IntArray], model: Callable[[int], Any]
    ) -> Iterator[tuple[IntArray, FloatArray]]:
        """Yield predictions of the rows of each part by its weights and intercepts."""

        def score(number: int, rows: IntArray) -> FloatArray:
            coef, intercept = model(number)
            return affine(X[rows], coef.T, intercept)

        return self._score_some(parts, Y.shape[1], score)

    def _solve_by_rows(self, X: Any, Y: csr_array) -> Callable[[float], Any]:
        """Return what learns with a strength, where there are few rows."""
        parts = self._fold_parts(X.shape[0])
        ready, (means, _) = Ridge(X, 1.0).ready
        matrix = row_products(ready, means)

        def solve(reg: float) -> Any:
            ridge = DualRidge(matrix, reg)
            duals, intercept = ridge.weights(Y)
            # The duals add up to zero, so the features need not be centred.
            coef = np.ascontiguousarray((ready.T @ duals).T)
            held_out = zip(parts, ridge.held_out(Y, duals, parts), strict=True)
            return (coef, intercept - coef @ Ridge(X, reg).means), held_out

        return solve

    def _solve_by_refits(self, X: Any, Y: csr_array) -> Callable[[float], Any]:
        """Return what learns with a strength, where both are many."""
        parts = self._fold_parts(X.shape[0])

        def learn(rows: Any, labels: csr_array, reg: float) -> tuple[Float64Array, Float64Array]:
            ridge = Ridge(rows, reg)
            coef = np.ascontiguousarray(ridge.solve(labels).T)
            return coef, counts(labels, axis=0) / labels.shape[0] - coef @ ridge.means

        def learn_others(number: int, reg: float) -> tuple[Float64Array, Float64Array]:
            others = np.setdiff1d(np.arange(X.shape[0]), parts[number], assume_unique=True)
            return learn(take_rows(X, others), Y[others], reg)

        def solve(reg: float) -> Any:
            model = cache(lambda number: learn_others(number, reg))
            return learn(X, Y, reg), self._hold_out_by(X, Y, parts, model)

        return solve


@dataclass(eq=False, repr=False)
class _PrincipalLabels(RowFreeTransformer):
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

    # Centred labels that do not vary cost nothing, and their means are their scores.
    _varying_only: ClassVar[bool] = False

    def _check(self) -> None:
        check_number(self, "n_factors", int, 1)
        check_number(self, "reg", float, 0)

    @abstractmethod
    def _gram(self, ridge: Ridge, Y: csr_array) -> Gram:
        """Return the matrix whose eigenvectors code the labels."""

    def _fit_varying(self, X: Any, Y: csr_array, products: Products | None) -> None:
        ridge = Ridge(X, float(self.reg), products=products)
        directions = leading_eigenvectors(self._gram(ridge, Y), self.n_factors)
        directions = directions * orient(directions)
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
        return label_gram(Y, ridge.products)


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
