"""PLST and CPLST: the principal directions of the labels, predicted by ridge regression."""

from abc import abstractmethod
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from marginmf._utils.indicators import counts
from marginmf._utils.parameters import check_number
from marginmf._utils.types import Float64Array
from marginmf.labels.algebra.grams import Gram, LabelGram, leading_eigenvectors
from marginmf.labels.base import method
from marginmf.labels.baselines.ridge import Ridge
from marginmf.labels.linear import LabelSpaceTransformer


@dataclass(eq=False, repr=False)
class _PrincipalLabels(LabelSpaceTransformer):
    """Codes labels by the leading eigenvectors of a matrix, and predicts the codes."""

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

    The centred labels are projected on their leading singular vectors; ridge regression predicts
    the few numbers that each row has then, and the vectors decode them.

    Parameters
    ----------
    n_factors : int
        How many singular vectors; no more than the rank of the labels are used.
    reg : float
        The regularisation strength of the ridge regression.
    decision, tune_for, top1_if_empty, cv
        How scores become label sets; see `DecisionTuned`.  The paper has ``decision="sign"``,
        which is rounding to 0 and 1.

    Attributes
    ----------
    feature_map_ : array of shape (n_features, n_components)
        The weights of the ridge regression.
    label_factors_ : array of shape (n_components, n_labels)
        The singular vectors.
    feature_means_, label_means_ : array
        What features and labels were centred with.
    thresholds_ : array of shape (n_labels,)
        A label is predicted where its score is above.
    classes_ : array
        The names of the labels, or their numbers.

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
    training labels.  A direction that is large but cannot be predicted is left out.

    Parameters
    ----------
    n_factors : int
        How many directions; no more than the rank of the matrix are used.
    reg : float
        The regularisation strength of the ridge regression.
    decision, tune_for, top1_if_empty, cv
        How scores become label sets; see `DecisionTuned`.  The paper has ``decision="sign"``,
        which is rounding to 0 and 1.

    Attributes
    ----------
    feature_map_ : array of shape (n_features, n_components)
        The weights of the ridge regression.
    label_factors_ : array of shape (n_components, n_labels)
        The directions.
    feature_means_, label_means_ : array
        What features and labels were centred with.
    thresholds_ : array of shape (n_labels,)
        A label is predicted where its score is above.
    classes_ : array
        The names of the labels, or their numbers.

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
