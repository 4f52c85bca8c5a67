"""What every label estimator has in common: fit, scores, the decision rule, predictions."""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, Self

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from marginmf._indicators import counts
from marginmf._parameters import check_choice, unfitted
from marginmf._saving import Savable
from marginmf._typing import Array, BoolArray, Float64Array, FloatArray, IntArray
from marginmf.labels.checks import as_features, check_none_missing, label_names
from marginmf.labels.decisions import (
    DECISIONS,
    MEASURES,
    DecisionRule,
    ThresholdSearch,
)
from marginmf.labels.folds import Fold, inner_folds
from marginmf.labels.targets import Targets, read_targets

#: What the decision rule is made of.
RULE = ("decision", "tune_for", "top1_if_empty", "cv")
#: What features may be; `as_features` has a sentence of its own for numbers that are not finite.
ACCEPTED: dict[str, Any] = {
    "accept_sparse": "csr",
    "dtype": [np.float64, np.float32],
    "order": "C",
    "ensure_all_finite": False,
}
#: Scores are worked on in batches of about this many bytes.
BATCH_BYTES = 2**25


@dataclass(eq=False, repr=False)
class LabelsEstimator(Savable, ClassifierMixin, BaseEstimator, ABC):
    """A classifier of rows that have sets of labels.

    Subclasses say how to learn from features and an indicator of labels (`_fit`), and how to
    score rows (`_scores`); `_check` refuses parameters.
    """

    _: KW_ONLY
    decision: str = "global"
    tune_for: str = "accuracy"
    top1_if_empty: bool = False
    cv: int = 3

    def fit(self, X: Any, y: Any) -> Self:
        """Learn labels from features; what was learned before is forgotten.

        Parameters
        ----------
        X : matrix of shape (n_samples, n_features)
            The features: an array, a sparse matrix or a data frame.
        y : matrix of shape (n_samples, n_labels)
            Which labels every row has: ones and zeros, in an array, a sparse matrix or a data
            frame, whose column names become the names of the labels.  A vector of classes is
            taken too: then a prediction is the class with the highest score, and no decision rule
            is needed.

        Returns
        -------
        self
        """
        # In a copy, so that a fit that fails or is interrupted changes nothing.
        fitted = unfitted(self)
        fitted._check_decision()
        fitted._check()
        names = label_names(y)
        check_none_missing(y)
        features, y = validate_data(
            fitted,
            X,
            y,
            multi_output=True,
            **ACCEPTED,
        )
        features = as_features(features, fitted)
        indicator, fitted.targets_ = read_targets(y, names)
        fitted.classes_ = fitted.targets_.classes
        fitted.n_samples_fit_ = features.shape[0]
        fitted._learn(features, indicator, fitted._needs_tuning(features))
        self.__dict__ = fitted.__dict__
        return self

    def decision_function(self, X: Any) -> FloatArray:
        """Return how far the score of every label is above its threshold.

        A label is predicted where this is above 0 (and, with ``top1_if_empty``, a row without any
        gets the largest).

        Parameters
        ----------
        X : matrix of shape (n_samples, n_features)

        Returns
        -------
        array of shape (n_samples, n_labels)
            For a vector of two classes, of shape (n_samples,).
        """
        features = self._features(X)
        scores = np.empty((features.shape[0], self.targets_.n_columns))
        for rows, batch in self._batches(features):
            found = self._scores(batch)
            scores[rows] = found if self.targets_.vector else self._rule().excess(found)
        shaped: FloatArray = self.targets_.scores(scores)
        return shaped

    def predict(self, X: Any) -> Any:
        """Return the labels of every row, in the form that `fit` was given.

        Parameters
        ----------
        X : matrix of shape (n_samples, n_features)

        Returns
        -------
        array or sparse matrix of shape (n_samples, n_labels)
            Ones and zeros; sparse if the labels in `fit` were.  For a vector, the class of every
            row.
        """
        features = self._features(X)
        if self.targets_.vector:
            classes = [self.targets_.class_of(self._scores(x)) for _, x in self._batches(features)]
            found: Array = np.concatenate(classes)
            return found
        rule = self._rule()
        return self.targets_.sets(rule(self._scores(x)) for _, x in self._batches(features))

    def _rule(self) -> DecisionRule:
        return DecisionRule(self.thresholds_, self.top1_if_empty)

    @abstractmethod
    def _check(self) -> None:
        """Raise a sentence if a parameter cannot be used."""

    @abstractmethod
    def _fit(self, X: Any, Y: csr_array) -> None:
        """Learn to score from features and an indicator of ones."""

    @abstractmethod
    def _scores(self, X: Any) -> FloatArray:
        """Return a score for every row of a batch and every label, above 0 if rather there."""

    def _fit_each(self, X: Any, Y: csr_array, folds: list[Fold]) -> Iterator["LabelsEstimator"]:
        """Fit a copy to the training rows of each fold; a method may share work among them."""
        for fold in folds:
            model = clone(self)
            model._fit(X[fold.train], Y[fold.train])
            yield model

    def _needs_tuning(self, X: Any) -> bool:
        """Whether thresholds have to be chosen: not for classes, nor by their sign."""
        return not self.targets_.vector and self.decision != "sign" and X.shape[0] > 1

    def _learn(self, X: Any, Y: csr_array, tuned: bool) -> None:
        """Fit to all rows, with thresholds chosen by cross-validation or, if not tuned, of 0."""
        self._take_thresholds(self._tuned(X, Y)[0] if tuned else np.zeros(Y.shape[1]), Y)
        self._fit(X, Y)

    def _learned_inside(
        self, inside: "LabelsEstimator", X: Any, Y: csr_array, tuned: bool
    ) -> "LabelsEstimator":
        """Return an estimator that is a part of this one, fitted to what is checked already."""
        inside.set_params(**{name: getattr(self, name) for name in RULE})
        inside._check()
        inside.targets_ = Targets(np.arange(Y.shape[1]), False, True, Y.dtype)
        inside.classes_ = inside.targets_.classes
        inside.n_samples_fit_, inside.n_features_in_ = X.shape
        inside._learn(X, Y, tuned)
        return inside

    def _take_thresholds(self, thresholds: Float64Array, Y: csr_array) -> None:
        if self.targets_.vector:
            return
        self.thresholds_ = thresholds
        # A label that nobody has is never predicted, whatever the rule.
        self.thresholds_[counts(Y, axis=0) == 0] = np.inf

    def _tuned(self, X: Any, Y: csr_array) -> tuple[Float64Array, float]:
        """Return thresholds, and the measure that they reach on rows held out in turn."""
        only_zero = np.zeros(1) if self.decision == "sign" else None
        search = ThresholdSearch(Y.shape[1], self.top1_if_empty, only_zero)
        for scores, present in self._held_out(X, Y):
            search.add(scores, present)
        return search.best(self.decision, self.tune_for)

    def _held_out(self, X: Any, Y: csr_array) -> Iterator[tuple[FloatArray, BoolArray]]:
        """Score the rows of each fold by a model of the others, batch by batch."""
        folds = inner_folds(X, self.cv, Y)
        for model, fold in zip(self._fit_each(X, Y, folds), folds, strict=True):
            for rows in batches(fold.test, Y.shape[1]):
                yield model._scores(X[rows]), Y[rows].toarray() > 0

    def _check_decision(self) -> None:
        check_choice(self, "decision", DECISIONS)
        check_choice(self, "tune_for", MEASURES)
        if not isinstance(self.top1_if_empty, bool | np.bool_):
            raise ValueError(f"top1_if_empty={self.top1_if_empty!r} must be True or False.")
        if not isinstance(self.cv, Integral) or self.cv < 2:
            raise ValueError(f"cv={self.cv!r} must be a whole number >= 2: how many folds.")

    def _features(self, X: Any) -> Any:
        check_is_fitted(self)
        return as_features(validate_data(self, X, reset=False, **ACCEPTED), self)

    def _batches(self, X: Any) -> Iterator[tuple[slice, Any]]:
        for rows in batches(np.arange(X.shape[0]), self.targets_.n_columns):
            part = slice(int(rows[0]), int(rows[-1]) + 1)
            yield part, X[part]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_label = True
        return tags


def batches(rows: IntArray, n_labels: int) -> Iterator[IntArray]:
    """Cut rows into parts whose scores take a bounded amount of memory."""
    # The search for thresholds keeps a few hundred numbers a row, however few labels there are.
    size = max(1, BATCH_BYTES // (8 * max(n_labels, 256)))
    for start in range(0, len(rows), size):
        yield rows[start : start + size]
