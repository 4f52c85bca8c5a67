"""Methods that learn from products of features and labels alone, whatever the number of rows."""

from abc import abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import clone

from marginmf._utils.types import Float64Array
from marginmf.backends.threads import one_blas_thread
from marginmf.labels.algebra.matrices import LabelGram, feature_moments
from marginmf.labels.algebra.products import Products, are_few
from marginmf.labels.base import LabelsEstimator
from marginmf.labels.linear import LabelSpaceTransformer
from marginmf.labels.order import Fold


class RowFree(LabelsEstimator):
    """A label estimator that learns from ``X^T X``, ``X^T Y`` and ``Y^T Y``.

    Where thresholds are chosen, the products of the training rows of a fold are those of all rows
    minus those of the rows held out: two passes over the rows serve all folds and the final fit.
    """

    #: The products of the rows to learn from, labels as they were given; there while thresholds are
    #: chosen only.
    _known: Products | None = None

    @abstractmethod
    def _fit_varying(self, X: Any, Y: csr_array, products: Products | None) -> None:
        """Learn from labels that vary, one at least; the products may be known."""

    @abstractmethod
    def _fit_nothing(self, X: Any) -> None:
        """Learn from rows without any label that varies."""

    def _fit(self, X: Any, Y: csr_array) -> None:
        if Y.shape[1] == 0:
            self._fit_nothing(X)
            return
        # Where rows are the smaller side, their products are another matrix.
        known = self._known if are_few(X) else None
        self._fit_varying(self._prepare(X), Y, known and known.take(self._seen.labels))

    def _learn(self, X: Any, Y: csr_array, tuned: bool) -> None:
        if tuned and self._shares_products(X, Y):
            self._known = self._make_products(self._prepare(X), Y)
        super()._learn(X, Y, tuned)
        if self._known is not None:
            del self._known

    def _fit_each(self, X: Any, Y: csr_array, folds: list[Fold]) -> Iterator[LabelsEstimator]:
        if self._known is None:
            yield from super()._fit_each(X, Y, folds)
            return
        prepared = self._prepare(X)
        for number, fold in enumerate(folds):
            model = clone(self)
            model._checkpoint = self._checkpoint.scope(f"fold {number + 1}")
            held_out = self._make_products(prepared[fold.test], Y[fold.test])
            model._known = self._known.without(held_out)
            model._fit_in_order(X[fold.train], Y[fold.train])
            del model._checkpoint, model._known
            yield model

    def _make_products(self, X: Any, Y: csr_array) -> Products:
        with one_blas_thread():  # products that BLAS shares out are rounded differently
            return Products.of(X, Y)

    def _shares_products(self, X: Any, Y: csr_array) -> bool:
        """Whether the products of features are formed, so that folds can share them."""
        return are_few(X)

    def _prepare(self, X: Any) -> Any:
        """Return what is done to each row before anything else."""
        return X


class RowFreeTransformer(RowFree, LabelSpaceTransformer):
    """The same with a map from features to factors, and from factors to labels."""

    _varying_only = True

    def _fit_nothing(self, X: Any) -> None:
        self.feature_map_ = np.zeros((X.shape[1], 0))
        self.label_factors_ = np.zeros((0, 0))
        self.feature_means_, self.label_means_ = np.zeros(X.shape[1]), np.zeros(0)


def label_gram(Y: csr_array, products: Products | None) -> LabelGram:
    """Return ``Y^T Y``, which may be known."""
    return LabelGram.of(Y) if products is None else products.labels


def feature_means(X: Any, products: Products | None) -> Float64Array:
    """Return the mean of every feature, which may be known."""
    return feature_moments(X)[0] if products is None else products.means
