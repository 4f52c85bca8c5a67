"""What every label estimator has in common: fit, scores, the decision rule, predictions."""

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from marginmf._utils.indicators import counts
from marginmf._utils.parameters import n_threads, unfitted, use_plain_numbers
from marginmf._utils.saved import Length, Methods, Names, Optional, Sized, floats
from marginmf._utils.sparse import check_sparse
from marginmf._utils.types import Float64Array, FloatArray, IntArray
from marginmf.checkpoints import CheckpointLike, open_checkpoint
from marginmf.labels.calibration import LabelCalibrator, Tuner, Tuning
from marginmf.labels.decisions import (
    CANDIDATES,
    DECISIONS,
    EXPECTED,
    DecisionRule,
    ExpectedRule,
    ThresholdSearch,
    check_rule,
)
from marginmf.labels.order import Fold, OrderedFit, fingerprint_arrays, inner_folds
from marginmf.labels.targets import (
    Targets,
    as_features,
    check_forms,
    label_names,
    read_targets,
)
from marginmf.persistence import LabelCounts, Savable

#: The parameters of the decision rule.
RULE = ("decision", "tune_for", "top1_if_empty", "cv", "calibrate")
#: What is learned of it.
LEARNED_RULE = ("decision_", "thresholds_", "shift_", "top1_if_empty_", "calibration_")
#: What features may be; `as_features` has a sentence of its own for numbers that are not finite.
ACCEPTED: dict[str, Any] = {
    "accept_sparse": "csr",
    "dtype": [np.float64, np.float32],
    "order": "C",
    "ensure_all_finite": False,
}
#: Scores are worked on in batches of about this many bytes.
BATCH_BYTES = 2**25
#: Every label method by its name on the command line.
METHODS = Methods("label")
#: Registers a label method: model files and the command line know it from then on.
method = METHODS.register


@dataclass(eq=False, repr=False)
class LabelsEstimator(OrderedFit, Savable, ClassifierMixin, BaseEstimator):
    """A classifier of rows that have sets of labels.

    Subclasses say how to learn from features and an indicator of labels (`_fit`), and how to
    score rows (`_scores`); `_check` refuses parameters, and ``_saved`` declares what was learned
    (see `marginmf._utils.saved`).

    Parameters
    ----------
    decision : {"auto", "sign", "global", "per_label", "jaccard", "f1"}
        The rule that turns scores into label sets; see `marginmf.labels.decisions`.  Sign: labels
        whose score is above 0.  Global: above one threshold.  Per label: above a threshold of each
        label's own.  Jaccard and f1: the labels whose overlap with the true ones is expected to be
        largest, given their probabilities.  Auto: for accuracy "jaccard" and for example F1 "f1",
        unless one threshold is better on rows held out by more than a standard error; for macro F1
        the better of "per_label" and one threshold; for the others one threshold.
    tune_for : {"accuracy", "example_f1", "micro_f1", "macro_f1", "hamming"}
        The measure that the rule is chosen for.
    top1_if_empty : bool or "auto"
        Whether a row that would get no label gets its best one.  Auto: if every training row has a
        label, but not with ``decision="sign"``.  Where rows may stay empty, "auto" does not choose
        "jaccard" or "f1", which give every row a label.
    cv : int
        The number of folds that thresholds are chosen on.
    calibrate : bool
        Whether `predict_proba` is wanted even where it costs a cross-validation: with
        ``decision="sign"``, or of a vector of classes.  Thresholds are chosen on the same scores
        that probabilities are learned from, so that these cost nothing with the other rules.

    Attributes
    ----------
    decision_ : str
        The rule that is followed.
    thresholds_ : array of shape (n_labels,)
        A label is predicted where its score is above; infinite for a label that is never predicted.
        An expected-overlap rule does not follow them.
    shift_ : float
        What an expected-overlap rule adds to the logits.
    top1_if_empty_ : bool
        Whether a row that would get no label gets its best one.
    calibration_ : Calibration
        How scores become probabilities, if this was learned.
    classes_ : array
        The names of the labels, or their numbers.
    """

    #: The name on the command line and a line about the method; see `method`.
    command_name: ClassVar[str]
    summary: ClassVar[str]
    _saved: ClassVar[dict[str, Any]] = {
        "targets_": Sized(Targets, "labels"),
        "classes_": Names("classes"),
        "thresholds_": Optional(floats("labels", most=None)),
        "top1_if_empty_": Optional(bool),
        "calibration_": Optional("Calibration"),
        "decision_": Optional(str),
        "shift_": Optional(float),
        "n_features_in_": Length("features"),
        "feature_names_in_": Optional(Names("features")),
        "n_samples_fit_": int,
        "_labels": Optional("Varying"),
    }
    _counts_type = LabelCounts
    _unfitted_inside = True  # where `_flaws` of the model that holds it says when
    #: Attributes whose estimators see other features than this one.
    _separate: ClassVar[frozenset[str]] = frozenset()

    _: KW_ONLY
    decision: str = "auto"
    tune_for: str = "accuracy"
    top1_if_empty: bool | str = "auto"
    cv: int = 3
    calibrate: bool = False

    def fit(self, X: Any, y: Any, *, checkpoint: CheckpointLike = None) -> Self:
        """Learn labels from features; what was learned before is forgotten.

        Parameters
        ----------
        X : matrix of shape (n_samples, n_features)
            The features: an array, a sparse matrix or a data frame.
        y : matrix of shape (n_samples, n_labels)
            Which labels every row has: ones and zeros, in an array, a sparse matrix or a data
            frame, whose column names become the names of the labels.  Or a vector of classes: then
            a prediction is the class with the highest score, and no decision rule is needed.
        checkpoint : path or Checkpoint, optional
            A folder that keeps what was done while the fit runs.  If it is interrupted or killed,
            the same call resumes it and ends at the same answer, to the last bit.  The folder is
            removed when the fit has succeeded.  See `marginmf.checkpoints.Checkpoint`.
        """
        # In a copy, so that a fit that fails or is interrupted changes nothing.
        fitted = unfitted(self, ("_labels",))
        fitted._check_loaded()
        names = label_names(y)
        check_forms(X, y)
        features, y = validate_data(fitted, X, y, multi_output=True, **ACCEPTED)
        features = as_features(features, fitted)
        indicator, fitted.targets_ = read_targets(y, names)
        fitted.classes_ = fitted.targets_.classes
        fitted.n_samples_fit_ = features.shape[0]
        data = fingerprint_arrays(features, indicator)
        with open_checkpoint(checkpoint, self, data) as fitted._checkpoint:
            rule = fitted._rule
            # Classes need no thresholds, and their sign needs no tuning.
            wants_thresholds = not fitted.targets_.vector and rule["decision"] != "sign"
            wants_tuning = wants_thresholds or rule["calibrate"]
            fitted._learn(features, indicator, wants_tuning and features.shape[0] > 1)
        del fitted._checkpoint
        self.__dict__ = fitted.__dict__
        return self

    def decision_function(self, X: Any) -> FloatArray:
        """Return how far the score of every label is above what makes it predicted.

        A label is predicted where this is above 0 (and, with thresholds and ``top1_if_empty_``, a
        row without any gets the largest).  Of thresholds it is the score minus the threshold; of an
        expected-overlap rule the logit minus the row's own limit, so that only the labels of one
        row can be compared: `predict_proba` compares rows.

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
            found = self._label_scores(batch)
            if not self.targets_.vector:
                rule, decided_by = self._rule_for(found)
                found = rule.excess(decided_by)
            scores[rows] = found
        return self.targets_.scores(scores)

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
        scores = (self._label_scores(batch) for _, batch in self._batches(self._features(X)))
        if self.targets_.vector:
            return np.concatenate([self.targets_.class_of(each) for each in scores])
        rules = map(self._rule_for, scores)
        return self.targets_.sets(rule(decided_by) for rule, decided_by in rules)

    def _rule_for(self, scores: FloatArray) -> tuple[DecisionRule | ExpectedRule, Any]:
        """Return the rule that is followed, and what it decides by: scores, or their logits."""
        # Models of older files follow their thresholds, and have the parameter alone.
        rule = getattr(self, "decision_", "global")
        if rule in EXPECTED:
            possible = np.isfinite(self.thresholds_)
            return ExpectedRule(rule, self.shift_, possible), self.calibration_.logits(scores)
        top1 = getattr(self, "top1_if_empty_", self.top1_if_empty)
        return DecisionRule(self.thresholds_, bool(top1)), scores

    @property
    def predict_proba(self) -> Callable[[Any], Float64Array]:
        """Return the probability of every label: ``model.predict_proba(X)``.

        A logistic curve of the label's score, learned from scores of rows that were held out (see
        `marginmf.labels.calibration`).  The decision rule makes label sets as good as possible,
        which is not the same as the labels that are more likely than not.

        From an X of shape (n_samples, n_features) to an array of shape (n_samples, n_labels); of a
        vector of classes, of shape (n_samples, n_classes), whose rows add up to 1.

        Raises
        ------
        AttributeError
            If the model has learned no probabilities; see ``calibrate``.
        """
        # An attribute that is absent, as scikit-learn's classifiers have it.
        fitted = self.__sklearn_is_fitted__()
        if not fitted and not self._rule["calibrate"]:
            raise AttributeError(f"{type(self).__name__} has no probabilities yet: fit it first.")
        if fitted and not hasattr(self, "calibration_"):
            raise AttributeError(
                f"{type(self).__name__} has learned no probabilities: set calibrate=True and fit "
                "it again."
            )
        return self._probabilities

    def _probabilities(self, X: Any) -> Float64Array:
        found = [
            self.calibration_(self._label_scores(batch))
            for _, batch in self._batches(self._features(X))
        ]
        return self.targets_.probabilities(np.concatenate(found))

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the share of rows whose labels, or whose class, are all predicted right."""
        check_sparse(y, "y")
        return float(super().score(X, y, sample_weight))

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "targets_")

    @property
    def _probability_scores(self) -> bool:
        """Whether scores are probabilities minus one half."""
        return False

    @property
    def _chosen_alone(self) -> str:
        """The parameter that `fit` chooses and the fit of a fold does not; empty if none."""
        return ""

    @property
    def _rule(self) -> dict[str, Any]:
        """The parameters of the decision rule that are in force."""
        return {name: getattr(self, name) for name in RULE}

    @abstractmethod
    def _check(self) -> None:
        """Raise a sentence if a parameter cannot be used."""

    def _fit_each(self, X: Any, Y: csr_array, folds: list[Fold]) -> Iterator["LabelsEstimator"]:
        """Fit a copy to the training rows of each fold; a method may share work among them."""
        for number in range(len(folds)):
            yield self._fit_fold(X, Y, folds, number)

    def _fit_fold(self, X: Any, Y: csr_array, folds: list[Fold], number: int) -> "LabelsEstimator":
        model: LabelsEstimator = clone(self)
        model._checkpoint = self._checkpoint.scope(f"fold {number + 1}")
        model._fit_in_order(X[folds[number].train], Y[folds[number].train])
        del model._checkpoint
        return model

    def _learn(self, X: Any, Y: csr_array, tuned: bool) -> None:
        """Fit to all rows, with a rule chosen by cross-validation or, if not tuned, the sign."""
        if tuned:
            self._set_rule(self._tune(self._cross_fit(X, Y), Y), Y)
        else:
            self._set_rule(None, Y)
            self._fit_in_order(X, Y)

    def _tune(self, scored: Iterable[tuple[IntArray, FloatArray]], Y: csr_array) -> Tuning:
        """Learn the rule and probabilities from scores of rows held out."""
        tuner = self._make_tuner(Y)
        for rows, scores in scored:
            tuner.add(scores, Y[rows].toarray() > 0)
        return tuner.result()

    def _cross_fit(self, X: Any, Y: csr_array) -> Iterator[tuple[IntArray, FloatArray]]:
        """Fit to all rows, and yield scores that rows got from a model that had not seen them.

        The fit is done when all batches of rows have been taken.  A method may know a cheaper way
        than a fit for each fold, and may leave rows out if there are very many.
        """
        yield from self._hold_out(X, Y)
        self._fit_in_order(X, Y)

    def _hold_out(self, X: Any, Y: csr_array) -> Iterator[tuple[IntArray, FloatArray]]:
        """Yield the scores of the rows of each fold by a model of the others, batch by batch."""
        folds = inner_folds(X, Y, self._rule["cv"])
        for model, fold in zip(self._fit_each(X, Y, folds), folds, strict=True):
            for rows in batches(fold.test, Y.shape[1]):
                yield rows, model._label_scores(X[rows])

    def _prepare_inside(self, inside: "LabelsEstimator", X: Any, Y: csr_array) -> None:
        """Tell an estimator that is a part of this one what it learns, as `fit` would."""
        inside.set_params(**self._rule)
        use_plain_numbers(inside)
        inside._check()
        inside.targets_ = Targets(np.arange(Y.shape[1]), False, True, Y.dtype)
        inside.classes_ = inside.targets_.classes
        inside.n_samples_fit_, inside.n_features_in_ = X.shape

    def _learn_inside(self, inside: Any, X: Any, Y: csr_array, tuned: bool) -> Any:
        """Return an estimator that is a part of this one, fitted to what is checked already."""
        self._prepare_inside(inside, X, Y)
        inside._checkpoint = self._checkpoint
        inside._learn(X, Y, tuned)
        del inside._checkpoint
        return inside

    def _set_rule(self, tuning: Tuning | None, Y: csr_array) -> None:
        """Keep what was learned from rows held out, if any were."""
        if tuning is not None:
            self.calibration_ = tuning.calibration
        if self.targets_.vector:
            return
        self.decision_ = "sign" if tuning is None else tuning.decision
        self.shift_ = 0.0 if tuning is None else tuning.shift
        self.thresholds_ = np.zeros(Y.shape[1]) if tuning is None else tuning.thresholds
        # A label that nobody has is never predicted, whatever the rule.
        self.thresholds_[counts(Y, axis=0) == 0] = np.inf
        self.top1_if_empty_ = self._fills_empty(Y)

    def _fills_empty(self, Y: csr_array) -> bool:
        """Whether a row that would get no label gets its best one."""
        rule = self._rule
        if rule["top1_if_empty"] != "auto":
            return bool(rule["top1_if_empty"])
        return rule["decision"] != "sign" and bool((np.diff(Y.indptr) > 0).all())

    def _make_tuner(self, Y: csr_array) -> Tuner:
        decision, tune_for = self._rule["decision"], self._rule["tune_for"]
        fills_empty = self._fills_empty(Y)
        if decision == "auto" and not fills_empty and CANDIDATES[tune_for][-1] in EXPECTED:
            decision = "global"
        only_zero = np.zeros(1) if decision == "sign" else None
        threads = n_threads(getattr(self, "n_jobs", None))
        search = ThresholdSearch(Y.shape[1], fills_empty, only_zero, threads)
        calibrator = LabelCalibrator(counts(Y, axis=0), Y.shape[0], self._probability_scores)
        classify = self.targets_.codes_of if self.targets_.vector else None
        return Tuner(search, calibrator, decision, tune_for, classify)

    def _flaws(self, lengths: Mapping[str, int]) -> Iterator[str]:
        """Yield what is wrong with a loaded model whose arrays have the right shapes."""
        mine, asked = self.targets_.classes, self.classes_
        if asked is not mine and not (asked.dtype == mine.dtype and np.array_equal(asked, mine)):
            yield ".classes_ are not those of its targets"
        names = getattr(self, "feature_names_in_", None)
        if names is not None and names.dtype.kind != "O":
            yield ".feature_names_in_ are not text"
        if self.targets_.vector:
            return
        thresholds = getattr(self, "thresholds_", None)
        if thresholds is None:
            yield ".thresholds_ is missing"
        elif not (np.isfinite(thresholds) | (thresholds == np.inf)).all():
            yield ".thresholds_ has a number that is no threshold"
        yield from self._rule_flaws()
        if not hasattr(self, "top1_if_empty_") and self.top1_if_empty not in (False, True):
            yield ".top1_if_empty_ is missing"

    def _rule_flaws(self) -> Iterator[str]:
        # Models of older files have none, and follow their thresholds.
        rule = getattr(self, "decision_", "global")
        if rule not in DECISIONS or rule == "auto":
            yield f".decision_ is {rule!r}, which is no rule"
        elif rule in EXPECTED and not hasattr(self, "calibration_"):
            yield ".calibration_ is missing, which its decision rule needs"
        elif rule in EXPECTED and not np.isfinite(getattr(self, "shift_", np.nan)):
            yield ".shift_ is not a finite number"

    def _learned_from(self) -> LabelCounts:
        thresholds = np.asarray(getattr(self, "thresholds_", ()), np.float64)
        finite = thresholds[np.isfinite(thresholds)]
        extremes = (float(finite.min()), float(finite.max())) if len(finite) else ()
        return LabelCounts(len(self.classes_), self.n_features_in_, self.n_samples_fit_, *extremes)

    def _check_loaded(self) -> None:
        """Refuse parameters that cannot be used, in a fit and in a loaded model."""
        check_rule(self._rule)
        self._check()

    def _features(self, X: Any) -> Any:
        check_is_fitted(self)
        check_sparse(X, "X")
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
    """Divide rows into batches whose scores take a bounded amount of memory."""
    # The search for thresholds keeps a few hundred numbers a row, however few labels there are.
    size = max(1, BATCH_BYTES // (8 * max(n_labels, 256)))
    for start in range(0, len(rows), size):
        yield rows[start : start + size]
