"""The lists of several models on the same splits: which are better, and is the difference real."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import Any

import numpy as np

from marginmf._utils.types import Float64Array
from marginmf.metrics import LIST_METRICS
from marginmf.protocols.lists import OVERALL, ListRule, ListScores, checked_metric, judge_lists
from marginmf.protocols.splits import SplitProtocol, fit_split, split_ratings
from marginmf.ratings.ids import IdIndex
from marginmf.ratings.tables import make_frame
from marginmf.stats import bootstrap_interval, holm, paired_randomisation_test


@dataclass(eq=False)
class ListComparison:
    """How good the lists of several models are, on the same splits.

    What is measured of a user is averaged over the splits that judged the user, and means,
    intervals and tests are over users; what is measured of all lists together is averaged over
    the splits.

    Parameters
    ----------
    rule : ListRule
        The length of the lists, and what is relevant.
    scores : dict of str to list of ListScores
        By model, those of each split.
    seconds : dict of str to list of float
        By model, how long each fit took.
    """

    rule: ListRule
    scores: dict[str, list[ListScores]] = field(default_factory=dict)
    seconds: dict[str, list[float]] = field(default_factory=dict)

    def add(self, name: str, scores: ListScores, seconds: float) -> None:
        """Add another split of a model."""
        self.scores.setdefault(name, []).append(scores)
        self.seconds.setdefault(name, []).append(seconds)

    def values(self, name: str, metric: str = "ndcg") -> Float64Array:
        """Return a measure of every user, the mean over the splits that judged the user."""
        splits = self.scores[name]
        users = reduce(IdIndex.union, (IdIndex(own.users, "user") for own in splits))
        totals, times = np.zeros((2, len(users)))
        for own in splits:
            rows = users.encode(own.users)
            totals[rows] += own.values[checked_metric(metric)]
            times[rows] += 1
        means: Float64Array = totals / times
        return means

    def mean(self, name: str, metric: str = "ndcg") -> float:
        """Return a model's mean of a measure."""
        if metric == "seconds":
            return float(np.mean(self.seconds[name]))
        if metric in OVERALL:
            return float(np.mean([own.overall[metric] for own in self.scores[name]]))
        return float(self.values(name, metric).mean())

    def interval(
        self, name: str, metric: str = "ndcg", confidence: float = 0.95
    ) -> tuple[float, float]:
        """Return where a model's mean of a measure over users lies, by the bootstrap."""
        return bootstrap_interval(self.values(name, metric), confidence)

    def best(self, metric: str = "ndcg") -> str:
        """Return the model with the highest mean of a measure."""
        return max(self.scores, key=lambda name: self.mean(name, checked_metric(metric)))

    def p_values(self, metric: str = "ndcg") -> dict[str, float]:
        """Return how likely each difference from the best model is, if there is none in truth.

        By the randomisation test of pairs of users, with Holm's correction for the number of
        models; 1 for the best model itself.
        """
        best = self.best(metric)
        others = [name for name in self.scores if name != best]
        of_best = self.values(best, metric)
        found = [paired_randomisation_test(self.values(name, metric), of_best) for name in others]
        adjusted = dict(zip(others, holm(found), strict=True))
        return {name: adjusted.get(name, 1.0) for name in self.scores}

    def frame(self, metrics: Sequence[str] = tuple(LIST_METRICS), confidence: float = 0.95) -> Any:
        """Return a table with a row for each model, by the names given.

        Parameters
        ----------
        metrics : sequence of str
            Some of `marginmf.metrics.LIST_METRICS`; the first one decides which model is the best.
        confidence : float
            That of the intervals.

        Returns
        -------
        frame
            ``method``; each measure with the ends of its interval (``ndcg``, ``ndcg_low``,
            ``ndcg_high``); ``coverage``, ``novelty`` and ``popularity``; ``difference`` of the
            first measure from that of the best model, and its ``p_value``; and ``seconds`` of a
            fit.  It is of the first library of pandas, polars and pyarrow that is installed; else,
            a dictionary of arrays.
        """
        if isinstance(metrics, str) or not metrics:
            raise ValueError(f"metrics={metrics!r} must be a sequence of measures, one at least.")
        first, names = checked_metric(metrics[0]), list(self.scores)
        columns: dict[str, list[Any]] = {"method": names}
        for metric in metrics:
            ends = [self.interval(name, metric, confidence) for name in names]
            columns[metric] = [self.mean(name, metric) for name in names]
            columns[f"{metric}_low"] = [low for low, _ in ends]
            columns[f"{metric}_high"] = [high for _, high in ends]
        for metric in OVERALL:
            columns[metric] = [self.mean(name, metric) for name in names]
        highest = self.mean(self.best(first), first)
        columns["difference"] = [mean - highest for mean in columns[first]]
        columns["p_value"] = list(self.p_values(first).values())
        columns["seconds"] = [self.mean(name, "seconds") for name in names]
        return make_frame({key: np.array(column) for key, column in columns.items()})


def compare_lists(
    models: Mapping[str, Any],
    pairs: Any,
    ratings: Any,
    protocol: SplitProtocol,
    rule: ListRule | None = None,
    *,
    user_features: Any = None,
    item_features: Any = None,
    step: Callable[[str], None] = lambda text: None,
) -> ListComparison:
    """Judge the lists of several models on the same splits.

    Parameters
    ----------
    models : mapping of str to estimator
        What to judge, by name; they are cloned, not changed.
    pairs, ratings
        All the data.  Ratings may be None where there are none, for methods that make lists from
        who has what.
    protocol : HoldOut, KFold, WeakGeneralisation or StrongGeneralisation
        How to split it.
    rule : ListRule, optional
        The length of the lists, and what is relevant; by default ``ListRule()``.
    user_features, item_features : optional
        Side information of all of them, as in ``fit``.
    step : callable
        Called with a few words before each fit.

    Returns
    -------
    ListComparison

    Examples
    --------
    >>> from marginmf.datasets import make_ratings
    >>> from marginmf.protocols import HoldOut
    >>> from marginmf.ratings import ALS, BiasOnly
    >>> data = make_ratings(60, 40, n_factors=2, observed=0.5, random_state=0)
    >>> models = {"ALS": ALS(n_factors=2, random_state=0), "averages": BiasOnly()}
    >>> found = compare_lists(models, data.pairs, data.ratings, HoldOut(), ListRule(k=5))
    >>> frame = found.frame(["ndcg"])
    >>> frame["method"].tolist(), list(frame.columns)[1:4]
    (['ALS', 'averages'], ['ndcg', 'ndcg_low', 'ndcg_high'])
    """
    if not models:
        raise ValueError("There are no models to compare: name one at least.")
    comparison = ListComparison(ListRule() if rule is None else rule)
    splits = split_ratings(pairs, ratings, protocol, user_features, item_features)
    for number, split in enumerate(splits, start=1):
        comparison.rule.threshold(split.train)  # a fault is found before a fit
        for name, model in models.items():
            step(f"{name}, split {number}")
            fitted, seconds = fit_split(model, split)
            test = split.test_pairs, split.test_ratings
            scores = judge_lists(fitted, *test, comparison.rule, training=split.train)
            comparison.add(name, scores, seconds)
    return comparison
