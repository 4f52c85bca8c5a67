"""The table of metrics, and the reports and scorers that are made from it."""

import re
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from math import isnan
from typing import Any, Literal

import numpy as np

from marginmf._utils.indicators import as_indicators
from marginmf._utils.parameters import suggestion
from marginmf.metrics import labels, lists, ratings

MetricKind = Literal["ratings", "labels", "lists", "seconds"]


@dataclass(frozen=True)
class Metric:
    """A metric: what it is called, which direction is better, and how it is computed.

    Parameters
    ----------
    name : str
        Its name in reports, scorers, comparisons and on the command line.
    heading : str
        How tables and figures write it.
    higher_is_better : bool or None
        None for what has no better direction, such as the popularity of what is recommended.
    digits : int
        Decimals in tables.
    kind : {"ratings", "labels", "lists", "seconds"}
        What it measures.
    function : callable, optional
        Takes true and predicted ratings (NMAE the levels too); or true label sets and predicted
        ones, scores or probabilities; or hits, numbers of relevant items and k, and returns a
        value for each user.  None for what only comparisons measure.

    Examples
    --------
    >>> mae = metric("mae")
    >>> mae.heading, mae.higher_is_better, mae([1, 2], [2, 2])
    ('MAE', False, 0.5)
    >>> mae.format(2 / 3), mae.best({"a": 0.7, "b": 0.8}), metric("ndcg").title(10)
    ('0.6667', 'a', 'nDCG@10')
    """

    name: str
    heading: str
    higher_is_better: bool | None
    digits: int
    kind: MetricKind
    function: Callable[..., Any] | None = None

    def __call__(self, *arguments: Any) -> Any:
        """Return the value of the function."""
        if self.function is None:
            raise TypeError(f"{self.name} has no function: comparisons measure it.")
        return self.function(*arguments)

    @property
    def is_per_user(self) -> bool:
        """Whether every user has a value: those of lists do, unless they are of all lists."""
        return self.kind == "lists" and self.function is not None

    def title(self, k: int | None = None) -> str:
        """Return the heading, for metrics of every user's list with the length of the lists."""
        return f"{self.heading}@{k}" if self.is_per_user and k is not None else self.heading

    def format(self, value: float) -> str:
        """Write a value with the digits of the metric."""
        return f"{value:.{self.digits}f}"

    def best(self, values: Mapping[str, float]) -> str | None:
        """Return the name with the best value; None where no direction is better."""
        known = {name: value for name, value in values.items() if not isnan(value)}
        if self.higher_is_better is None or not known:
            return None
        return (max if self.higher_is_better else min)(known, key=known.__getitem__)


#: The metrics of predicted ratings by name.
RATINGS_METRICS: Mapping[str, Metric] = {
    name: Metric(name, heading, False, 4, "ratings", function)
    for name, heading, function in (
        ("mae", "MAE", ratings.mean_absolute_error),
        ("zero_one", "zero-one", ratings.zero_one_error),
        ("rmse", "RMSE", ratings.root_mean_squared_error),
        ("nmae", "NMAE", ratings.normalised_mean_absolute_error),
        ("fre", "FRE", ratings.frobenius_relative_error),
    )
}

#: The metrics of label sets by name.
LABEL_METRICS: Mapping[str, Metric] = {
    name: Metric(name, heading, higher_is_better, 3, "labels", function)
    for name, heading, higher_is_better, function in (
        ("hamming", "Hamming", False, labels.hamming_loss),
        ("accuracy", "accuracy", True, labels.jaccard_accuracy),
        ("subset_accuracy", "subset accuracy", True, labels.subset_accuracy),
        ("example_f1", "example F1", True, labels.example_f1),
        ("macro_f1", "macro F1", True, labels.macro_f1),
        ("micro_f1", "micro F1", True, labels.micro_f1),
    )
}


#: At which ranks precision and nDCG of label scores are measured.
CUTOFFS = (1, 3, 5)


def _at_k(name: str, k: int) -> Metric:
    heading = {"precision": "precision", "ndcg": "nDCG"}[name]
    function = partial(getattr(labels, f"{name}_at_k"), k=k)
    return Metric(f"{name}_at_{k}", f"{heading}@{k}", True, 3, "labels", function)


#: The metrics of label scores by name; `metric` knows precision and nDCG at any other k too.
RANKING_METRICS: Mapping[str, Metric] = {
    **{f"{name}_at_{k}": _at_k(name, k) for name in ("precision", "ndcg") for k in CUTOFFS},
    "coverage": Metric("coverage", "coverage", False, 2, "labels", labels.coverage),
}

#: The metrics of labels' probabilities by name.
PROBABILITY_METRICS: Mapping[str, Metric] = {
    name: Metric(name, heading, False, 4, "labels", function)
    for name, heading, function in (
        ("log_loss", "log loss", labels.log_loss),
        ("calibration_error", "calibration error", labels.calibration_error),
    )
}

#: The metrics of every user's list by name.
LIST_METRICS: Mapping[str, Metric] = {
    name: Metric(name, heading, True, 4, "lists", function)
    for name, (heading, function) in lists.PER_USER.items()
}

#: What is measured of all lists together, by name: more of it is neither better nor worse.
EXPOSURE_METRICS: Mapping[str, Metric] = {
    name: Metric(name, name, None, digits, "lists")
    for name, digits in (("coverage", 4), ("novelty", 2), ("popularity", 4))
}

_TABLES = (
    *(RATINGS_METRICS, LABEL_METRICS, RANKING_METRICS, PROBABILITY_METRICS),
    *(LIST_METRICS, EXPOSURE_METRICS),
)
#: Every metric; `metric` finds one by its name.
METRICS: tuple[Metric, ...] = (
    *(one for table in _TABLES for one in table.values()),
    Metric("seconds", "seconds", False, 2, "seconds"),
)


def metric(name: str, kind: MetricKind | None = None) -> Metric:
    """Return a metric by its name.

    Parameters
    ----------
    name : str
        Such as ``"mae"``; for label scores also precision and nDCG at any k, such as
        ``"precision_at_10"``.
    kind : {"ratings", "labels", "lists"}, optional
        What it must measure.  Labels and lists both have a ``coverage``; by default it is that of
        labels.  The seconds of a fit are known to all kinds.

    Examples
    --------
    >>> metric("coverage", "lists").higher_is_better is None
    True
    >>> metric("ndcg_at_10").heading
    'nDCG@10'
    """
    kinds = {kind, "seconds"} if kind else {one.kind for one in METRICS}
    known = {one.name: one for one in reversed(METRICS) if one.kind in kinds}
    found = re.fullmatch(r"(precision|ndcg)_at_([1-9][0-9]*)", name, re.ASCII)
    if found and "labels" in kinds:
        return _at_k(found[1], int(found[2]))
    if name not in known:
        names = [one for one in reversed(known) if kind is None or one != "seconds"]
        which = f"{kind.removesuffix('s')} metric" if kind else "metric"
        raise ValueError(
            f"There is no {which} {name!r}; the known ones are {', '.join(names)}."
            f"{suggestion(name, names)}"
        )
    return known[name]


def describe_metrics(names: Iterable[str]) -> dict[str, Metric]:
    """Return the metrics of one report by name: all of one kind, if a kind has them all.

    A name that the table does not have is its own heading, and has no better direction.

    >>> described = describe_metrics(["ndcg", "coverage", "regret"])
    >>> described["coverage"].kind, described["regret"].higher_is_better
    ('lists', None)
    """
    wanted, best = list(names), dict[str, Metric]()
    kinds: tuple[MetricKind, ...] = ("ratings", "labels", "lists")
    for kind in kinds:
        own = {}
        for name in wanted:
            with suppress(ValueError):
                own[name] = metric(name, kind)
        best = max(best, own, key=len)
    return {name: best.get(name, Metric(name, name, None, 4, "seconds")) for name in wanted}


def ratings_report(true: Any, predicted: Any, levels: Any = None) -> dict[str, float]:
    """Return every metric of predicted ratings by name; NMAE only where the scale is given.

    FRE is NaN where every true rating is 0: an error relative to them has no meaning.

    >>> report = ratings_report([1, 2, 3], [1, 2, 5], levels=[1, 2, 3, 4, 5])
    >>> sorted(report)
    ['fre', 'mae', 'nmae', 'rmse', 'zero_one']
    """
    report = {}
    for name, one in RATINGS_METRICS.items():
        if name == "nmae":
            if levels is not None:
                report[name] = one(true, predicted, levels)
        else:
            report[name] = one(true, predicted) if name != "fre" or np.any(true) else float("nan")
    return report


def labels_report(
    Y: Any,
    predicted: Any,
    scores: Any = None,
    k: int | Iterable[int] = CUTOFFS,
    probabilities: Any = None,
) -> dict[str, float]:
    """Return every metric of label sets by name; those of what else is given too.

    Parameters
    ----------
    Y, predicted : indicator tables of shape (n_samples, n_labels)
        The true and the predicted label sets, dense or sparse.
    scores : array of shape (n_samples, n_labels), optional
        The scores by which labels are ranked, as `decision_function` gives them.
    k : int or several
        At which ranks to measure precision and nDCG.
    probabilities : array of shape (n_samples, n_labels), optional
        The probability of every label, as `predict_proba` gives it.

    Examples
    --------
    >>> Y, scores = np.array([[1, 0, 1], [0, 1, 0]]), np.array([[2.0, -1, -2], [-1, 3, -2]])
    >>> report = labels_report(Y, scores > 0, scores, k=1)
    >>> list(report)  # doctest: +NORMALIZE_WHITESPACE
    ['hamming', 'accuracy', 'subset_accuracy', 'example_f1', 'macro_f1', 'micro_f1',
     'precision_at_1', 'ndcg_at_1', 'coverage']
    >>> report["accuracy"], report["precision_at_1"], report["coverage"]
    (0.75, 1.0, 2.0)
    """
    true, found = as_indicators(Y, predicted)
    report = {name: one(true, found) for name, one in LABEL_METRICS.items()}
    if scores is not None:
        ranks = labels.true_ranks(true, scores)
        cutoffs = list(k) if isinstance(k, Iterable) else [k]
        report |= {f"precision_at_{cutoff}": ranks.precision(cutoff) for cutoff in cutoffs}
        report |= {f"ndcg_at_{cutoff}": ranks.ndcg(cutoff) for cutoff in cutoffs}
        report["coverage"] = ranks.coverage()
    if probabilities is not None:
        report |= {name: one(true, probabilities) for name, one in PROBABILITY_METRICS.items()}
    return report


def label_scorer(name: str) -> "LabelScorer":
    """Return a scorer for scikit-learn: ``GridSearchCV(..., scoring=label_scorer("accuracy"))``.

    Parameters
    ----------
    name : str
        A name from `LABEL_METRICS`, `RANKING_METRICS` or `PROBABILITY_METRICS`, or precision or
        nDCG at any k, such as ``"precision_at_10"``.

    Returns
    -------
    callable
        ``scorer(estimator, X, Y)``; higher is better, so errors are negated.  Metrics of scores
        ask the estimator for its `decision_function`, else for its `predict_proba`; those of
        probabilities need `predict_proba`.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> from sklearn.model_selection import cross_val_score
    >>> X, Y = np.zeros((4, 1)), np.array([[1, 0], [1, 0], [1, 0], [1, 1]])
    >>> cross_val_score(DummyClassifier(), X, Y, cv=2, scoring=label_scorer("accuracy"))
    array([1.  , 0.75])
    """
    found = metric(str(name), "labels")
    if found.function is None:
        raise ValueError(f"{name} is measured by comparisons; it cannot score an estimator.")
    return LabelScorer(found)


@dataclass(frozen=True)
class LabelScorer:
    """A scorer that `label_scorer` returns.

    `sklearn.metrics.make_scorer` would take two labels for two classes, and so keep only one column
    of `predict_proba`.
    """

    metric: Metric

    def __call__(self, estimator: Any, X: Any, Y: Any) -> float:
        """Return how good an estimator is on some data: higher is better."""
        name = self.metric.name
        if name in LABEL_METRICS:
            judged = estimator.predict(X)
        elif name in PROBABILITY_METRICS:
            judged = label_probabilities(estimator, X, name)
        else:
            judged = label_scores(estimator, X, name)
        value = float(self.metric(Y, judged))
        return value if self.metric.higher_is_better else -value


def label_scores(estimator: Any, X: Any, name: str) -> Any:
    """Return the scores by which an estimator ranks labels, for the metric of that name."""
    if hasattr(estimator, "decision_function"):
        return estimator.decision_function(X)
    if not hasattr(estimator, "predict_proba"):
        raise ValueError(
            f"{name} ranks labels by their scores, but {type(estimator).__name__} has neither "
            "decision_function nor predict_proba."
        )
    return label_probabilities(estimator, X, name)


def label_probabilities(estimator: Any, X: Any, name: str) -> Any:
    """Return the probability that an estimator gives to every label, for the metric of that name.

    Raises
    ------
    ValueError
        If it has none.
    """
    if not hasattr(estimator, "predict_proba"):
        hint = " Fit it with calibrate=True." if hasattr(estimator, "calibrate") else ""
        raise ValueError(
            f"{name} judges probabilities, but {type(estimator).__name__} has no predict_proba."
            f"{hint}"
        )
    probabilities = estimator.predict_proba(X)
    if not isinstance(probabilities, list):
        return probabilities
    # Forests and neighbours give a table for each label, with a column for each class; the class 1
    # has none where a label was never seen.
    tables = zip(probabilities, estimator.classes_, strict=True)
    columns = (np.asarray(table)[:, np.asarray(own) == 1].sum(axis=1) for table, own in tables)
    return np.column_stack(list(columns))
