"""Binary relevance: every label by itself."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from marginmf._typing import FloatArray
from marginmf.labels.baselines.one_each import (
    PROBES,
    OneEach,
    fit_each,
    linear_weights,
    rows_of_each,
)
from marginmf.labels.constant import Varying
from marginmf.labels.features import take_rows
from marginmf.labels.order import sample_order
from marginmf.labels.tuned import scores_of


@dataclass(eq=False, repr=False)
class BinaryRelevance(OneEach):
    """One binary classifier for each label, by default a linear support vector machine.

    Parameters
    ----------
    estimator : classifier, optional
        Any scikit-learn classifier of two classes that has ``decision_function`` or
        ``predict_proba``; by default a `LinearSVC` with the hinge loss and
        ``C=1``.
    n_jobs : int or None
        How many labels are learned at a time, as in scikit-learn: None is one, -1 is as many as
        there are processors.  The result does not depend on it.
    decision, tune_for, top1_if_empty, cv
        How scores become label sets; see `DecisionTuned`.

    Attributes
    ----------
    coef_ : array of shape (n_labels, n_features)
        The weights of the features, if every classifier is linear.
    intercept_ : array of shape (n_labels,)
        The intercepts, if every classifier is linear.  A label that all rows have, or none, has
        1 or -1 here, and no weights.
    estimators_ : list of classifiers
        The classifier of each label, if they are not linear; None for labels that all rows have,
        or none.
    thresholds_ : array of shape (n_labels,)
        A label is predicted where its score is above.
    classes_ : array
        The names of the labels, or their numbers.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=100, n_classes=4, random_state=0)
    >>> model = BinaryRelevance(decision="sign").fit(X, Y)
    >>> model.predict(X).shape, model.coef_.shape
    ((100, 4), (4, 20))
    """

    estimator: Any = None
    n_jobs: int | None = None

    def _fit(self, X: Any, Y: csr_array) -> None:
        # Solvers that go from row to row depend on the order of the rows.
        order = sample_order(X, Y)
        X, Y = take_rows(X, order), Y[order]
        self._labels = Varying.of(Y)
        rows_of = rows_of_each(self._labels.part(Y))
        fitted = fit_each(self.estimator, ((X, rows) for rows in rows_of), self.n_jobs)
        linear = linear_weights(fitted, (X[:PROBES] for _ in fitted))
        varying = np.flatnonzero(self._labels.varying)
        if linear is None:
            self.estimators_: list[Any] = [None] * Y.shape[1]
            for label, classifier in zip(varying, fitted, strict=True):
                self.estimators_[label] = classifier
            return
        weights, intercepts = linear
        self.coef_ = np.zeros((Y.shape[1], X.shape[1]))
        for label, coef in zip(varying, weights, strict=True):
            self.coef_[label] = coef
        self.intercept_ = self._labels.filled(intercepts[None])[0]

    def _scores(self, X: Any) -> FloatArray:
        if hasattr(self, "coef_"):
            scores: FloatArray = X @ self.coef_.T + self.intercept_
            return scores
        fitted = [each for each in self.estimators_ if each is not None]
        return self._labels.filled(np.hstack([scores_of(each, X, 1) for each in fitted]))
