"""Ridge regression of the labels on the features: the plainest of all linear methods."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from marginmf._indicators import counts
from marginmf._parameters import check_number
from marginmf._typing import FloatArray
from marginmf.backends.threads import one_blas_thread
from marginmf.labels.base import LabelsEstimator
from marginmf.labels.ridge import Ridge


@dataclass(eq=False, repr=False)
class RidgeEmbedding(LabelsEstimator):
    """Ridge regression of all labels, as numbers 0 and 1, on the features.

    It is what embeddings of labels by ridge regression become when they keep every direction, and
    so the method that they have to be compared with.

    Parameters
    ----------
    reg : float
        The weight of the penalty on the squared weights.
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

    def _check(self) -> None:
        check_number(self, "reg", float, 0)

    def _fit(self, X: Any, Y: csr_array) -> None:
        ridge = Ridge(X, float(self.reg))
        with one_blas_thread():
            self.coef_ = np.ascontiguousarray(ridge.solve(Y).T)
        means = counts(Y, axis=0) / Y.shape[0]
        self.intercept_ = means - self.coef_ @ ridge.means - 0.5

    def _scores(self, X: Any) -> FloatArray:
        scores: FloatArray = X @ self.coef_.T + self.intercept_
        return scores
