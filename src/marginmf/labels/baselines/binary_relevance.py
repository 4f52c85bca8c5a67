"""Binary relevance: a binary classifier for every label."""

import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from joblib import Parallel, delayed
from scipy.sparse import csr_array, issparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from marginmf._utils.parameters import check_n_jobs
from marginmf._utils.saved import Optional, floats
from marginmf._utils.types import Float64Array, FloatArray, IntArray
from marginmf.labels.base import LabelsEstimator, method
from marginmf.labels.linear import LinearScores
from marginmf.labels.order import Seen
from marginmf.labels.wrappers import check_classifier, score_flaws, scores_of, takes_sparse

#: How often the default classifier goes through the rows at most.
PASSES = 300
#: How many rows tell whether a classifier is what its weights say.
PROBES = 8


class OneEach(LabelsEstimator):
    """An estimator with a binary classifier for each label; none given means the default one."""

    estimator: Any
    n_jobs: int | None

    def _check(self) -> None:
        if self.estimator is not None:
            check_classifier(self.estimator, "LinearSVC()")
        check_n_jobs(self)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.estimator is None or takes_sparse(self.estimator)
        return tags


def missing(model: Any, *attributes: str) -> Iterator[str]:
    """Yield those of the attributes that a loaded model lacks."""
    for attribute in attributes:
        if getattr(model, attribute, None) is None:
            yield f".{attribute} is missing"


def fit_each(
    estimator: Any, problems: Iterable[tuple[Any, IntArray]], n_jobs: int | None
) -> list[Any]:
    """Fit a copy of the estimator to each problem: features, and which rows have the label."""
    # In processes, because liblinear's random numbers are the same ones for all threads.
    work = (delayed(_fit_one)(estimator, X, rows) for X, rows in problems)
    fitted: list[Any] = Parallel(n_jobs)(work)
    return fitted


def rows_of_each(Y: csr_array) -> list[IntArray]:
    """Return which rows have each label."""
    columns = Y.tocsc()
    return [columns.indices[a:b] for a, b in pairwise(columns.indptr)]


def linear_weights(
    estimators: list[Any], features: Iterable[Any]
) -> tuple[list[Float64Array], Float64Array] | None:
    """Return the weights and the intercepts of classifiers, or None if they are not all linear.

    A classifier is linear if it has weights and they give its own scores.

    Parameters
    ----------
    estimators : list of classifiers
        Fitted classifiers.
    features : iterable of matrices
        A few rows for each of them.
    """
    weights: list[Float64Array] = []
    intercepts = np.zeros(len(estimators))
    for k, (estimator, X) in enumerate(zip(estimators, features, strict=True)):
        coef = getattr(estimator, "coef_", None)
        if coef is None or not hasattr(estimator, "decision_function"):
            return None
        flat = np.ravel(coef.toarray() if issparse(coef) else coef).astype(np.float64)
        intercept = np.ravel(getattr(estimator, "intercept_", 0.0))
        if len(flat) != X.shape[1] or len(intercept) != 1:
            return None
        scores = scores_of(estimator, X, 1)[:, 0]
        if not np.allclose(X @ flat + intercept, scores, atol=1e-6 * np.abs(scores).max()):
            return None
        weights.append(flat)
        intercepts[k] = intercept[0]
    return weights, intercepts


def _fit_one(estimator: Any, X: Any, rows: IntArray) -> Any:
    # int64, as in DecisionTuned.
    has_label = np.zeros(X.shape[0], np.int64)
    has_label[rows] = 1
    if estimator is not None:
        return clone(estimator).fit(X, has_label)
    with warnings.catch_warnings():
        # Where features are few and dense the last digits of the weights take very long.  They do
        # not matter: from 300 passes on to 10,000, accuracy moves by less than 0.001 on emotions,
        # yeast and CAL500, up or down.
        warnings.simplefilter("ignore", ConvergenceWarning)
        default = LinearSVC(C=1.0, loss="hinge", dual=True, max_iter=PASSES, random_state=0)
        return default.fit(X, has_label)


@method("binary-relevance")
@dataclass(eq=False, repr=False)
class BinaryRelevance(OneEach, LinearScores):
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

    _saved: ClassVar[dict[str, Any]] = {
        "coef_": Optional(floats("labels", "features")),
        "intercept_": Optional(floats("labels")),
        "estimators_": Optional(list),
        "_labels": "Varying",
    }

    def _flaws(self, lengths: Mapping[str, int]) -> Iterator[str]:
        yield from super()._flaws(lengths)
        if hasattr(self, "coef_"):
            yield from missing(self, "coef_", "intercept_")
            return
        yield from missing(self, "estimators_")
        assert self._labels is not None
        varying = self._labels.varying
        if len(self.estimators_) != len(varying) or not varying.any():
            yield ".estimators_ are not one for each label"
        for label, each in enumerate(self.estimators_):
            if varying[label]:
                yield from score_flaws(each, f".estimators_.{label}", 1, lengths["features"])
            elif each is not None:
                yield f".estimators_.{label} has nothing to predict"

    def _fit(self, X: Any, Y: csr_array) -> None:
        fitted = fit_each(self.estimator, ((X, rows) for rows in rows_of_each(Y)), self.n_jobs)
        linear = linear_weights(fitted, (X[:PROBES] for _ in fitted))
        if linear is None:
            self.estimators_: list[Any] = fitted
            return
        weights, self.intercept_ = linear
        self.coef_ = np.array(weights).reshape(Y.shape[1], X.shape[1])

    def _restore(self, seen: Seen, learned: Collection[str]) -> None:
        super()._restore(seen, learned)
        if hasattr(self, "coef_"):
            assert self._labels is not None
            self.intercept_ = self._labels.filled(self.intercept_[None])[0]
            return
        found = dict(zip(seen.labels, self.estimators_, strict=True))
        self.estimators_ = [found.get(label) for label in range(seen.n_labels)]

    def _scores(self, X: Any) -> FloatArray:
        if hasattr(self, "coef_"):
            return LinearScores._scores(self, X)
        fitted = [each for each in self.estimators_ if each is not None]
        return np.hstack([scores_of(each, X, 1) for each in fitted])
