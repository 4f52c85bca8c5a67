"""Label estimators that see every feature between 0 and 1."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.base import clone

from marginmf._typing import Float64Array, FloatArray
from marginmf.labels.base import RULE, LabelsEstimator
from marginmf.labels.features import filled_columns
from marginmf.labels.folds import Fold


@dataclass(eq=False, repr=False)
class Scaled(LabelsEstimator):
    """An estimator whose features are moved and stretched so that they lie between 0 and 1.

    The penalties of most methods treat all features alike, so features of different units should
    be brought to one scale first; the literature's tables are made so for dense features.  Each
    feature's least and greatest values are those of the training rows, and are kept with the
    model; later values may lie outside.  A feature that is always the same becomes 0.

    A pipeline of scikit-learn does the same, but is not kept in the files of `marginmf.load`, and
    learns the decision rule's folds one by one.

    Parameters
    ----------
    estimator : LabelsEstimator
        A method of `marginmf.labels`.
    decision, tune_for, top1_if_empty, cv
        How scores become label sets; see `DecisionTuned`.  What the estimator itself has for these
        is not used.

    Attributes
    ----------
    estimator_ : LabelsEstimator
        The estimator, fitted to the scaled features.
    offset_, factor_ : array of shape (n_features,)
        A feature x becomes ``x * factor_ + offset_``.
    thresholds_ : array of shape (n_labels,)
        A label is predicted where its score is above.
    classes_ : array
        The names of the labels, or their numbers.

    Notes
    -----
    Sparse features stay sparse where the least value of each is 0, as it is of counts of words.  A
    feature with values on both sides of 0 is filled up, because its zeros become something else.

    Examples
    --------
    >>> from marginmf.labels import GroPLE
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=100, n_classes=4, random_state=0)
    >>> model = Scaled(GroPLE(n_factors=3, random_state=0), decision="sign").fit(1000 * X, Y)
    >>> same = Scaled(GroPLE(n_factors=3, random_state=0), decision="sign").fit(X, Y)
    >>> bool((model.predict(1000 * X) == same.predict(X)).all())
    True
    """

    estimator: Any

    def _check(self) -> None:
        if not isinstance(self.estimator, LabelsEstimator):
            raise ValueError(
                f"estimator={self.estimator!r} is not a method of marginmf.labels; for a "
                "classifier of scikit-learn, put DecisionTuned around it and Scaled around that."
            )
        self.estimator._check()

    def _learn(self, X: Any, Y: csr_array, tuned: bool) -> None:
        # The estimator inside chooses the thresholds, because it may choose more with them.
        inside = clone(self.estimator)
        self.estimator_ = self._learned_inside(inside, self._learn_scale(X), Y, tuned)
        self._take_thresholds(self.estimator_.thresholds_, Y)

    def _fit(self, X: Any, Y: csr_array) -> None:
        inside = clone(self.estimator)
        self.estimator_ = self._learned_inside(inside, self._learn_scale(X), Y, False)

    def _fit_each(self, X: Any, Y: csr_array, folds: list[Fold]) -> Iterator[LabelsEstimator]:
        # One scale for all folds, so that the estimator inside may share work among them.
        rule = {name: getattr(self, name) for name in RULE}
        inner = clone(self.estimator).set_params(**rule)
        for inside in inner._fit_each(self._learn_scale(X), Y, folds):
            model: Scaled = clone(self)
            model.offset_, model.factor_, model.estimator_ = self.offset_, self.factor_, inside
            yield model

    def _scores(self, X: Any) -> FloatArray:
        return self.estimator_._scores(scaled(X, self.offset_, self.factor_))

    def _learn_scale(self, X: Any) -> Any:
        """Keep the scale of some features, and return them scaled."""
        least, greatest = (_extreme(X, kind) for kind in ("min", "max"))
        span = greatest - least
        # A difference that is lost in the rounding of its terms is none.
        constant = span <= 4 * np.finfo(np.float64).eps * np.maximum(abs(least), abs(greatest))
        self.factor_ = np.where(constant, 0.0, 1.0 / np.where(constant, 1.0, span))
        self.offset_ = -least * self.factor_
        return scaled(X, self.offset_, self.factor_)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        inner = getattr(self.estimator, "__sklearn_tags__", None)
        if inner is not None:
            tags.input_tags.sparse = inner().input_tags.sparse
            tags.non_deterministic = inner().non_deterministic
        return tags


def scaled(X: Any, offset: Float64Array, factor: Float64Array) -> Any:
    """Return ``X * factor + offset``, sparse if X is, always in double precision.

    Rounded to single precision, the same numbers would not be the same rows any more.

    >>> X = csr_array([[0.0, 2.0], [4.0, 1.0]])
    >>> scaled(X, np.array([0.0, -1.0]), np.array([0.25, 1.0])).toarray().tolist()
    [[0.0, 1.0], [1.0, 0.0]]
    """
    if not issparse(X):
        return X * factor + offset
    stretched = csr_array((X.data * factor[X.indices], X.indices, X.indptr), shape=X.shape)
    moved = np.flatnonzero(offset)
    if len(moved) == 0:
        return stretched
    everywhere = np.broadcast_to(offset[moved], (X.shape[0], len(moved)))
    return csr_array(stretched + filled_columns(everywhere, moved, X.shape[1]))


def _extreme(X: Any, kind: str) -> Float64Array:
    extreme = getattr(X, kind)(axis=0)
    found: Float64Array = np.asarray(extreme.toarray() if issparse(extreme) else extreme, float)
    return found.ravel()
