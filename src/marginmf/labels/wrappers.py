"""Estimators around others: one chooses decision rules and parameters, one scales features."""

import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array, issparse
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import ParameterGrid

from marginmf._utils.parameters import MOST
from marginmf._utils.saved import ListOf, Optional, floats, saved
from marginmf._utils.types import Float64Array, FloatArray
from marginmf.labels.algebra.matrices import feature_factors, fill_columns
from marginmf.labels.base import LEARNED_RULE, RULE, LabelsEstimator
from marginmf.labels.calibration import Tuning
from marginmf.labels.decisions import check_rule

#: How many combinations of parameters a search may have.
MOST_CANDIDATES = 100_000


@dataclass(eq=False, repr=False, kw_only=True)
class Wrapper(LabelsEstimator):
    """An estimator around another, whose decision rule it follows unless it is given its own.

    Parameters
    ----------
    decision, tune_for, top1_if_empty, cv, calibrate : optional
        How scores become label sets and probabilities; see `LabelsEstimator`.  None is what the
        estimator inside has.  One that is given to both, and not the same, is an error.
    """

    estimator: Any = field(kw_only=False)
    decision: str | None = None  # type: ignore[assignment]
    tune_for: str | None = None  # type: ignore[assignment]
    top1_if_empty: bool | str | None = None  # type: ignore[assignment]
    cv: int | None = None  # type: ignore[assignment]
    calibrate: bool | None = None  # type: ignore[assignment]

    @property
    def _rule(self) -> dict[str, Any]:
        return {**self._inner_rule, **self._own_rule}

    @property
    def _own_rule(self) -> dict[str, Any]:
        own = {name: getattr(self, name) for name in RULE}
        return {name: value for name, value in own.items() if value is not None}

    @property
    def _inner_rule(self) -> dict[str, Any]:
        if isinstance(self.estimator, LabelsEstimator):
            return self.estimator._rule
        return {name: getattr(LabelsEstimator, name) for name in RULE}

    def _refuse_two_rules(self) -> None:
        """Raise a sentence if this and the estimator inside have been given different rules."""
        inner = self._inner_rule
        for name, own in self._own_rule.items():
            # What the estimator inside has by default was not given.
            if inner[name] not in (own, getattr(LabelsEstimator, name)):
                raise ValueError(
                    f"{type(self).__name__} has {name}={own!r}, but the "
                    f"{type(self.estimator).__name__} inside has {name}={inner[name]!r}: set it in "
                    "one of them."
                )

    def _check_loaded(self) -> None:
        check_rule(self._own_rule)
        self._check()


@saved
@dataclass(eq=False, repr=False)
class DecisionTuned(Wrapper):
    """A classifier with thresholds, and parameters if wanted, chosen on rows held out in turn.

    Every candidate is fitted once on each fold; its best thresholds follow from the scores of the
    rows held out, and the candidate that reaches most with its best common threshold is fitted to
    all rows.  So parameters and thresholds are chosen together, for the price of one
    cross-validation.

    Parameters
    ----------
    estimator : classifier
        Any scikit-learn classifier for an indicator of labels that has ``decision_function`` or
        ``predict_proba``, the estimators of `marginmf.labels` included.
    param_grid : mapping or list of mappings, optional
        Candidates for the estimator's parameters, as in scikit-learn's ``GridSearchCV``.
    decision, tune_for, top1_if_empty, cv, calibrate
        How scores become label sets, and what parameters are chosen for; see `LabelsEstimator`.  If
        not given, those of the estimator inside, where it has any.

    Attributes
    ----------
    estimator_ : classifier
        The estimator, fitted to all rows.
    best_params_ : dict
        The candidate that was chosen.
    cv_values_ : list of float
        What every candidate reached with its best common threshold, in the order of
        ``ParameterGrid(param_grid)``: the measure (for Hamming loss, minus the number of wrong
        labels) or, for a vector of classes, the share of them that is right.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from sklearn.linear_model import RidgeClassifier
    >>> X, Y = make_multilabel_classification(n_samples=200, random_state=0)
    >>> tuned = DecisionTuned(RidgeClassifier(), param_grid={"alpha": [1.0, 100.0]}).fit(X, Y)
    >>> tuned.best_params_, tuned.predict(X).shape
    ({'alpha': 100.0}, (200, 5))
    """

    param_grid: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]] | None = None

    # The estimator may look for an order of its own, and the user for the one that was given.
    _order = None
    _saved: ClassVar[dict[str, Any]] = {
        "estimator_": BaseEstimator,
        "best_params_": dict,
        "cv_values_": Optional(ListOf(float)),
        "_labels": "Varying",
    }

    def _flaws(self, lengths: Mapping[str, int]) -> Iterator[str]:
        yield from super()._flaws(lengths)
        # Where no label varies there was nothing to learn, and it is never asked.
        if self._labels is not None and self._labels.varying.any():
            n_varying = int(self._labels.varying.sum())
            yield from score_flaws(self.estimator_, ".estimator_", n_varying)

    def _check(self) -> None:
        check_classifier(self.estimator, "OneVsRestClassifier(LinearSVC())")
        if self.param_grid is None:
            return
        # Counted and not listed: a few short lists have more combinations than fit in memory.
        grids = ParameterGrid(self.param_grid).param_grid
        n_candidates = sum(math.prod(map(len, grid.values())) for grid in grids)
        if not 1 <= n_candidates <= MOST_CANDIDATES:
            number = "too many" if n_candidates else "no"
            raise ValueError(
                f"param_grid={self.param_grid!r:.60} has {number} candidates: give at least one, "
                f"and at most {MOST_CANDIDATES:,}."
            )
        unused = sorted(set(RULE).intersection(name for grid in grids for name in grid))
        if unused and isinstance(self.estimator, LabelsEstimator):
            raise ValueError(
                f"param_grid has {unused[0]!r}, which is a parameter of DecisionTuned itself: give "
                "it there."
            )

    def _learn(self, X: Any, Y: csr_array, tuned: bool) -> None:
        self._refuse_two_rules()
        self.best_params_: dict[str, Any] = {}
        if self.param_grid is None or X.shape[0] < 2:
            super()._learn(X, Y, tuned)
            return
        candidates = list(ParameterGrid(self.param_grid))
        trials = [self._evaluate(k, params, X, Y) for k, params in enumerate(candidates)]
        self.cv_values_ = [trial.value for trial in trials]
        best = int(np.argmax(self.cv_values_))
        self.best_params_ = candidates[best]
        self._set_rule(trials[best], Y)
        self._fit_in_order(X, Y)

    @property
    def _chosen_alone(self) -> str:
        return "" if self.param_grid is None else "param_grid"

    def _evaluate(self, number: int, params: Mapping[str, Any], X: Any, Y: csr_array) -> Tuning:
        """Return a candidate's thresholds, and what it reaches with the best common one."""
        trial: DecisionTuned = clone(self)
        trial._checkpoint = self._checkpoint.scope(f"candidate {number + 1}")
        trial.set_params(estimator=trial.estimator.set_params(**params), param_grid=None)
        trial.targets_ = self.targets_
        return trial._tune(trial._hold_out(X, Y), Y)

    def _fit(self, X: Any, Y: csr_array) -> None:
        self.best_params_ = getattr(self, "best_params_", {})
        self.estimator_ = clone(self.estimator).set_params(**self.best_params_)
        if Y.shape[1] == 0:
            return
        if isinstance(self.estimator_, LabelsEstimator):
            # Its thresholds would be chosen twice; scores are all that is wanted of it.
            self._learn_inside(self.estimator_, X, Y, False)
        else:
            # int64: scikit-learn's LabelBinarizer fails where small integers cannot count labels.
            indicator = Y.toarray().astype(np.int64)
            # One label is an ordinary vector of two classes: many refuse a column.
            tags = getattr(self.estimator_, "__sklearn_tags__", None)
            takes_vectors = tags is None or tags().target_tags.single_output
            single = indicator.shape[1] == 1 and takes_vectors
            self.estimator_.fit(X, indicator[:, 0] if single else indicator)

    def _scores(self, X: Any) -> FloatArray:
        assert self._labels is not None
        return scores_of(self.estimator_, X, int(self._labels.varying.sum()))

    @property
    def _probability_scores(self) -> bool:
        return scores_are_probabilities(self.estimator)

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


def scores_are_probabilities(estimator: Any) -> bool:
    """Return whether a classifier's scores, see `scores_of`, are probabilities minus one half."""
    if isinstance(estimator, LabelsEstimator):
        return estimator._probability_scores
    return not hasattr(estimator, "decision_function")


def takes_sparse(estimator: Any) -> bool:
    """Return whether a classifier learns from sparse features, as far as it tells."""
    tags = getattr(estimator, "__sklearn_tags__", None)
    return tags is None or bool(tags().input_tags.sparse)


def n_scores(estimator: Any) -> int | None:
    """Return how many labels a fitted classifier gives scores for; None if it does not tell."""
    if isinstance(estimator, LabelsEstimator):
        return estimator.targets_.n_columns if hasattr(estimator, "targets_") else None
    if hasattr(estimator, "coef_"):
        return 1 if estimator.coef_.ndim == 1 else len(estimator.coef_)
    return len(estimator.estimators_) if hasattr(estimator, "estimators_") else None


def score_flaws(
    estimator: Any, name: str, n_labels: int, n_features: int | None = None
) -> Iterator[str]:
    """Yield what is wrong with a loaded classifier that should score labels from features."""
    found, features = n_scores(estimator), getattr(estimator, "n_features_in_", None)
    if found is None:
        yield f"{name} has not learned anything that gives scores"
    elif found != n_labels:
        yield f"{name} scores {found} labels, but {n_labels} are wanted of it"
    if n_features is not None and features != n_features:
        yield f"{name} has other features than the model"
    if not isinstance(estimator, LabelsEstimator):  # scikit-learn's, with one for each label
        for k, each in enumerate(getattr(estimator, "estimators_", ())):
            yield from score_flaws(each, f"{name}.estimators_.{k}", 1)


def scores_of(estimator: Any, X: Any, n_labels: int) -> FloatArray:
    """Return scores above 0 for labels that are more likely there than not, in columns."""
    if isinstance(estimator, LabelsEstimator):
        return estimator._label_scores(X)
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


class Transformed(Wrapper):
    """An estimator of `marginmf.labels` that sees the features through a map learned from X."""

    # All that is for the estimator inside to say.
    _order, _varying_only = None, False
    _saved: ClassVar[dict[str, Any]] = {"estimator_": LabelsEstimator}

    @abstractmethod
    def _learn_map(self, X: Any) -> Any:
        """Learn the map from some features, and return what it makes of them."""

    @abstractmethod
    def _map(self, X: Any) -> Any:
        """Return what the map makes of features."""

    def _flaws(self, lengths: Mapping[str, int]) -> Iterator[str]:
        yield from super()._flaws(lengths)
        yield from score_flaws(self.estimator_, ".estimator_", lengths["labels"])

    def _check(self) -> None:
        if not isinstance(self.estimator, LabelsEstimator):
            name = type(self).__name__
            raise ValueError(
                f"estimator={self.estimator!r} is not a method of marginmf.labels; for a "
                f"classifier of scikit-learn, put DecisionTuned around it and {name} around that."
            )
        self.estimator._check()

    def _learn(self, X: Any, Y: csr_array, tuned: bool) -> None:
        # The estimator inside chooses the rule, because it may choose more with it.
        self._refuse_two_rules()
        self._fit(X, Y, tuned)
        for name in LEARNED_RULE:
            if hasattr(self.estimator_, name):
                setattr(self, name, getattr(self.estimator_, name))

    def _fit(self, X: Any, Y: csr_array, tuned: bool = False) -> None:
        inside = clone(self.estimator)
        self.estimator_ = self._learn_inside(inside, self._learn_map(X), Y, tuned)

    @property
    def _chosen_alone(self) -> str:
        return str(self.estimator._chosen_alone)

    @property
    def _probability_scores(self) -> bool:
        return scores_are_probabilities(self.estimator)

    def _scores(self, X: Any) -> FloatArray:
        return self.estimator_._label_scores(self._map(X))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if hasattr(self.estimator, "__sklearn_tags__"):
            inner = self.estimator.__sklearn_tags__()
            tags.input_tags.sparse = inner.input_tags.sparse
            tags.non_deterministic = inner.non_deterministic
        return tags


@saved
@dataclass(eq=False, repr=False)
class Scaled(Transformed):
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
    decision, tune_for, top1_if_empty, cv, calibrate
        How scores become label sets; see `LabelsEstimator`.  If not given, those of the estimator
        inside.

    Attributes
    ----------
    estimator_ : LabelsEstimator
        The estimator, fitted to the scaled features.
    offset_, factor_ : array of shape (n_features,)
        A feature x becomes ``x * factor_ + offset_``.

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

    _saved: ClassVar[dict[str, Any]] = {
        "offset_": floats("features"),
        "factor_": floats("features", most=MOST),
    }

    def _map(self, X: Any) -> Any:
        return scale_features(X, self.offset_, self.factor_)

    def _learn_map(self, X: Any) -> Any:
        self.factor_, least = feature_factors(X)
        self.offset_ = -least * self.factor_
        return self._map(X)


def scale_features(X: Any, offset: Float64Array, factor: Float64Array) -> Any:
    """Return ``X * factor + offset``, sparse if X is, always in double precision.

    Rounded to single precision, the same numbers would not be the same rows any more.
    """
    if not issparse(X):
        return X * factor + offset
    stretched = csr_array((X.data * factor[X.indices], X.indices, X.indptr), shape=X.shape)
    moved = np.flatnonzero(offset)
    if len(moved) == 0:
        return stretched
    everywhere = np.broadcast_to(offset[moved], (X.shape[0], len(moved)))
    return csr_array(stretched + fill_columns(everywhere, moved, X.shape[1]))
