"""The measures of a method over several splits, and which of them are better."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np


class Measure(NamedTuple):
    """How a measure is written: its heading and its digits; and whether more of it is better."""

    heading: str
    digits: int = 4
    more_is_better: bool = False


#: The errors of `marginmf.metrics.ratings_report`, and how long a fit took.
RATINGS = {
    "mae": Measure("MAE"),
    "zero_one": Measure("zero-one"),
    "rmse": Measure("RMSE"),
    "nmae": Measure("NMAE"),
    "fre": Measure("FRE"),
    "seconds": Measure("seconds", 2),
}
#: The measures of `marginmf.metrics.labels_report`, and how long a fit took.
LABELS = {
    "accuracy": Measure("accuracy", 3, more_is_better=True),
    "hamming": Measure("Hamming", 3),
    "subset_accuracy": Measure("subset accuracy", 3, more_is_better=True),
    "example_f1": Measure("example F1", 3, more_is_better=True),
    "macro_f1": Measure("macro F1", 3, more_is_better=True),
    "micro_f1": Measure("micro F1", 3, more_is_better=True),
    **{f"precision_at_{k}": Measure(f"precision@{k}", 3, more_is_better=True) for k in (1, 3, 5)},
    **{f"ndcg_at_{k}": Measure(f"nDCG@{k}", 3, more_is_better=True) for k in (1, 3, 5)},
    "coverage": Measure("coverage", 2),
    "seconds": Measure("seconds", 2),
}
MEASURES = RATINGS | LABELS


@dataclass
class Scores:
    """The measures and seconds of one method, a list over the splits for each of them."""

    values: dict[str, list[float]] = field(default_factory=dict)

    def add(self, measured: Mapping[str, float], seconds: float) -> None:
        """Add another split."""
        for name, value in {**measured, "seconds": seconds}.items():
            self.values.setdefault(name, []).append(value)

    def mean(self, name: str) -> float:
        """Return the mean over the splits."""
        return float(np.mean(self.values[name]))

    def deviation(self, name: str) -> float | None:
        """Return the standard deviation over the splits, None if there is only one."""
        values = self.values[name]
        return float(np.std(values, ddof=1)) if len(values) > 1 else None


def best(scores: Mapping[str, Scores], name: str) -> str:
    """Return the method with the best mean.

    >>> two = {"a": Scores({"mae": [1.0], "accuracy": [0.5]}), "b": Scores({"mae": [2.0]})}
    >>> two["b"].values["accuracy"] = [0.75]
    >>> best(two, "mae"), best(two, "accuracy")
    ('a', 'b')
    """
    choose = max if MEASURES[name].more_is_better else min
    return choose(scores, key=lambda method: scores[method].mean(name))
