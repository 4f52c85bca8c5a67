"""The label metrics by name: as tables, as a report, and as scikit-learn scorers."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from marginmf._utils.indicators import as_indicators
from marginmf._utils.parameters import suggestion
from marginmf.metrics.label_ranking import coverage, ndcg_at_k, precision_at_k, true_ranks
from marginmf.metrics.labels import (
    example_f1,
    hamming_loss,
    jaccard_accuracy,
    macro_f1,
    micro_f1,
    subset_accuracy,
)

#: A metric, and whether more is better.
LabelMetric = tuple[Callable[[Any, Any], float], bool]

#: The metrics of label sets by name.
LABEL_METRICS: Mapping[str, LabelMetric] = {
    "hamming": (hamming_loss, False),
    "accuracy": (jaccard_accuracy, True),
    "subset_accuracy": (subset_accuracy, True),
    "example_f1": (example_f1, True),
    "macro_f1": (macro_f1, True),
    "micro_f1": (micro_f1, True),
}

#: The metrics of scores by name; `label_scorer` knows precision and nDCG at any other k too.
RANKING_METRICS: Mapping[str, LabelMetric] = {
    **{f"precision_at_{k}": (partial(precision_at_k, k=k), True) for k in (1, 3, 5)},
    **{f"ndcg_at_{k}": (partial(ndcg_at_k, k=k), True) for k in (1, 3, 5)},
    "coverage": (coverage, False),
}


def labels_report(
    Y: Any, predicted: Any, scores: Any = None, k: int | Iterable[int] = (1, 3, 5)
) -> dict[str, float]:
    """Return every metric of label sets by name; those of scores too where they are given.

    Parameters
    ----------
    Y, predicted : indicator tables of shape (n_samples, n_labels)
        The true and the predicted label sets, dense or sparse.
    scores : array of shape (n_samples, n_labels), optional
        The scores by which labels are ranked, as `decision_function` gives them.
    k : int or several
        For which first places to measure precision and nDCG.

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
    report = {name: metric(true, found) for name, (metric, _) in LABEL_METRICS.items()}
    if scores is not None:
        ranks, places = true_ranks(true, scores), list(k) if isinstance(k, Iterable) else [k]
        report |= {f"precision_at_{place}": ranks.precision(place) for place in places}
        report |= {f"ndcg_at_{place}": ranks.ndcg(place) for place in places}
        report["coverage"] = ranks.coverage()
    return report


def label_scorer(name: str) -> "LabelScorer":
    """Return a scorer for scikit-learn: ``GridSearchCV(..., scoring=label_scorer("accuracy"))``.

    Parameters
    ----------
    name : str
        A name from `LABEL_METRICS` or `RANKING_METRICS`, or precision or nDCG at any k, such as
        ``"precision_at_10"``.

    Returns
    -------
    callable
        ``scorer(estimator, X, Y)``, the greater the better: errors are negated.  Metrics of scores
        ask the estimator for its `decision_function`, else for its `predict_proba`.

    Examples
    --------
    >>> from sklearn.dummy import DummyClassifier
    >>> from sklearn.model_selection import cross_val_score
    >>> X, Y = np.zeros((4, 1)), np.array([[1, 0], [1, 0], [1, 0], [1, 1]])
    >>> cross_val_score(DummyClassifier(), X, Y, cv=2, scoring=label_scorer("accuracy"))
    array([1.  , 0.75])
    """
    metric, greater_is_better = (
        LABEL_METRICS.get(str(name)) or RANKING_METRICS.get(str(name)) or _at_any_k(str(name))
    )
    return LabelScorer(name, metric, 1 if greater_is_better else -1, name not in LABEL_METRICS)


def _at_any_k(name: str) -> LabelMetric:
    found = re.fullmatch(r"(precision|ndcg)_at_([1-9][0-9]*)", name, re.ASCII)
    if found is None:
        known = [*LABEL_METRICS, *RANKING_METRICS]
        raise ValueError(
            f"There is no label metric {name!r}; the known ones are {', '.join(known)}."
            f"{suggestion(name, known)}"
        )
    return partial(precision_at_k if found[1] == "precision" else ndcg_at_k, k=int(found[2])), True


@dataclass(frozen=True)
class LabelScorer:
    """A scikit-learn scorer; `label_scorer` makes it.

    It is not one of `sklearn.metrics.make_scorer`, which takes two labels for two classes and then
    keeps only one column of `predict_proba`.

    >>> label_scorer("hamming").sign
    -1
    """

    name: str
    metric: Callable[[Any, Any], float]
    sign: int
    ranks: bool

    def __call__(self, estimator: Any, X: Any, Y: Any) -> float:
        """Return how good an estimator is on some data: the greater, the better."""
        predicted = self._scores(estimator, X) if self.ranks else estimator.predict(X)
        return self.sign * self.metric(Y, predicted)

    def _scores(self, estimator: Any, X: Any) -> Any:
        if hasattr(estimator, "decision_function"):
            return estimator.decision_function(X)
        if not hasattr(estimator, "predict_proba"):
            raise ValueError(
                f"{self.name} ranks labels by their scores, but {type(estimator).__name__} has "
                "neither decision_function nor predict_proba."
            )
        probabilities = estimator.predict_proba(X)
        if not isinstance(probabilities, list):
            return probabilities
        # One table a label, as forests and neighbours give it, with a column for each of 0 and 1.
        columns = zip(probabilities, estimator.classes_, strict=True)
        return np.column_stack([_of_one(table, classes) for table, classes in columns])


def _of_one(table: Any, classes: Any) -> Any:
    """Return the probability of 1, which has no column where a label was never seen."""
    return np.asarray(table)[:, np.asarray(classes) == 1].sum(axis=1)
