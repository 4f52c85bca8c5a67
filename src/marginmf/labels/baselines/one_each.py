"""A binary classifier for each of many labels."""

import warnings
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy.sparse import csr_array, issparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from marginmf._parameters import check_n_jobs
from marginmf._typing import Float64Array, IntArray
from marginmf.labels.base import LabelsEstimator
from marginmf.labels.tuned import check_classifier, scores_of, takes_sparse

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
