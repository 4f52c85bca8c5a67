"""Any scikit-learn multi-label classifier under a decision rule chosen by cross-validation."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from marginmf._typing import Float64Array, FloatArray
from marginmf.labels.base import RULE, LabelsEstimator
from marginmf.labels.constant import Varying


@dataclass(eq=False, repr=False)
class DecisionTuned(LabelsEstimator):
    """A classifier with thresholds, and parameters if wanted, chosen on rows held out in turn.

    Every candidate is fitted once on each fold; its best thresholds follow from the scores of the
    rows held out, and the candidate that reaches most with its own thresholds is fitted to all
    rows.  So parameters and thresholds are chosen together, for the price of one
    cross-validation.

    Parameters
    ----------
    estimator : classifier
        Any scikit-learn classifier for an indicator of labels that has ``decision_function`` or
        ``predict_proba``, the estimators of `marginmf.labels` included.
    param_grid : mapping or list of mappings, optional
        Candidates for the estimator's parameters, as in scikit-learn's ``GridSearchCV``.
    decision : {"sign", "global", "per_label"}
        The rule; see `marginmf.labels.decisions`.
    tune_for : {"accuracy", "micro_f1", "macro_f1", "hamming"}
        The measure that thresholds and parameters are chosen for.
    top1_if_empty : bool
        Whether a row that would get no label gets its best one.
    cv : int
        How many folds.

    Attributes
    ----------
    estimator_ : classifier
        The estimator, fitted to all rows.
    thresholds_ : array of shape (n_labels,)
        A label is predicted where its score is above.
    best_params_ : dict
        The candidate that was chosen.
    cv_values_ : list of float
        What every candidate reached, in the order of ``ParameterGrid(param_grid)``: the measure
        (for Hamming loss, minus the number of wrong labels) or, for a vector of classes, the share
        of them that is right.
    classes_ : array
        The names of the labels, or their numbers.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from sklearn.linear_model import RidgeClassifier
    >>> X, Y = make_multilabel_classification(n_samples=200, random_state=0)
    >>> tuned = DecisionTuned(RidgeClassifier(), param_grid={"alpha": [1.0, 100.0]}).fit(X, Y)
    >>> tuned.best_params_, tuned.predict(X).shape
    ({'alpha': 100.0}, (200, 5))
    """

    estimator: Any
    param_grid: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]] | None = None

    def _check(self) -> None:
        check_classifier(self.estimator, "OneVsRestClassifier(LinearSVC())")
        if self.param_grid is None:
            return
        candidates = list(ParameterGrid(self.param_grid))
        if not candidates:
            raise ValueError(f"param_grid={self.param_grid!r} has no candidates.")
        inside = isinstance(self.estimator, LabelsEstimator)
        for name in sorted({name for candidate in candidates for name in candidate}):
            if inside and name in RULE:
                raise ValueError(
                    f"param_grid has {name!r}, which is a parameter of DecisionTuned itself: the "
                    "rule of the estimator inside is not used."
                )

    def _learn(self, X: Any, Y: csr_array, tuned: bool) -> None:
        self.best_params_: dict[str, Any] = {}
        if self.param_grid is None or X.shape[0] < 2:
            super()._learn(X, Y, tuned)
            return
        candidates = list(ParameterGrid(self.param_grid))
        trials = [self._judged(params, X, Y) for params in candidates]
        self.cv_values_ = [value for _, value in trials]
        best = int(np.argmax(self.cv_values_))
        self.best_params_ = candidates[best]
        self._take_thresholds(trials[best][0] if tuned else np.zeros(Y.shape[1]), Y)
        self._fit(X, Y)

    def _judged(
        self, params: Mapping[str, Any], X: Any, Y: csr_array
    ) -> tuple[Float64Array, float]:
        """Return a candidate's best thresholds, and what it reaches with them."""
        trial: DecisionTuned = clone(self)
        trial.set_params(estimator=trial.estimator.set_params(**params), param_grid=None)
        if not self.targets_.vector:
            return trial._tuned(X, Y)
        # Classes are predicted without thresholds: how many are right?
        right = [
            self.targets_.codes_of(scores) == self.targets_.codes_of(present - 0.5)
            for scores, present in trial._held_out(X, Y)
        ]
        return np.zeros(Y.shape[1]), float(np.concatenate(right).mean())

    def _fit(self, X: Any, Y: csr_array) -> None:
        self._labels = Varying.of(Y)
        self.estimator_ = clone(self.estimator).set_params(**getattr(self, "best_params_", {}))
        part = self._labels.part(Y)
        if part.shape[1] == 0:
            return
        if isinstance(self.estimator_, LabelsEstimator):
            # Its thresholds would be chosen twice; scores are all that is wanted of it.
            self._learned_inside(self.estimator_, X, part, False)
        else:
            # int64, because scikit-learn's LabelBinarizer goes wrong on small integers when there
            # are more labels than they can count.
            indicator = part.toarray().astype(np.int64)
            # One label is an ordinary vector of two classes: many refuse a column.
            single = indicator.shape[1] == 1 and takes_vectors(self.estimator_)
            self.estimator_.fit(X, indicator[:, 0] if single else indicator)

    def _scores(self, X: Any) -> FloatArray:
        n_varying = int(self._labels.varying.sum())
        if n_varying == 0:
            return self._labels.filled(np.zeros((X.shape[0], 0)))
        return self._labels.filled(scores_of(self.estimator_, X, n_varying))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = takes_sparse(self.estimator)
        return tags


def check_classifier(estimator: Any, example: str) -> None:
    """Raise a sentence unless an object can be fitted and gives scores."""
    if not hasattr(estimator, "fit") or isinstance(estimator, type):
        raise ValueError(
            f"estimator={estimator!r} is not a classifier; give an object such as {example}."
        )
    if not any(hasattr(estimator, name) for name in ("decision_function", "predict_proba")):
        raise ValueError(
            f"{type(estimator).__name__} has neither decision_function nor "
            "predict_proba, so there are no scores to choose thresholds on."
        )


def takes_sparse(estimator: Any) -> bool:
    """Return whether a classifier learns from sparse features, as far as it tells."""
    tags = getattr(estimator, "__sklearn_tags__", None)
    return tags is None or bool(tags().input_tags.sparse)


def takes_vectors(estimator: Any) -> bool:
    """Return whether a classifier learns from a vector of classes, as far as it tells."""
    tags = getattr(estimator, "__sklearn_tags__", None)
    return tags is None or bool(tags().target_tags.single_output)


def scores_of(estimator: Any, X: Any, n_labels: int) -> FloatArray:
    """Return scores above 0 for labels that are more likely there than not, a column a label."""
    if isinstance(estimator, LabelsEstimator):
        return estimator._scores(X)
    if hasattr(estimator, "decision_function"):
        scores = np.asarray(estimator.decision_function(X), np.float64)
        return scores.reshape(X.shape[0], n_labels)
    probabilities = estimator.predict_proba(X)
    if isinstance(probabilities, list):  # a table of two columns for every label
        return np.column_stack([each[:, 1] for each in probabilities]) - 0.5
    probabilities = np.asarray(probabilities, np.float64)
    if n_labels == 1:  # a vector of two classes
        probabilities = probabilities[:, [-1]]
    return probabilities - 0.5
