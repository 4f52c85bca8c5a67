"""Metrics of predictions; those of ranked lists of items are in `marginmf.metrics.lists`.

Ratings and labels both have a log loss: that of labels is `marginmf.metrics.labels.log_loss`.

`METRICS` is the table of all metrics, and `metric` finds one by its name: its heading, direction,
digits and its function.
"""

from marginmf.metrics import labels, lists
from marginmf.metrics.labels import (
    calibration_error,
    coverage,
    example_f1,
    hamming_loss,
    jaccard_accuracy,
    macro_f1,
    micro_f1,
    ndcg_at_k,
    precision_at_k,
    subset_accuracy,
)
from marginmf.metrics.ratings import (
    chance_error,
    expected_calibration_error,
    frobenius_relative_error,
    log_loss,
    mean_absolute_error,
    normalised_mean_absolute_error,
    root_mean_squared_error,
    zero_one_error,
)
from marginmf.metrics.table import (
    EXPOSURE_METRICS,
    LABEL_METRICS,
    LIST_METRICS,
    METRICS,
    PROBABILITY_METRICS,
    RANKING_METRICS,
    RATINGS_METRICS,
    Metric,
    describe_metrics,
    label_scorer,
    labels_report,
    metric,
    ratings_report,
)

__all__ = [
    "EXPOSURE_METRICS",
    "LABEL_METRICS",
    "LIST_METRICS",
    "METRICS",
    "PROBABILITY_METRICS",
    "RANKING_METRICS",
    "RATINGS_METRICS",
    "Metric",
    "calibration_error",
    "chance_error",
    "coverage",
    "describe_metrics",
    "example_f1",
    "expected_calibration_error",
    "frobenius_relative_error",
    "hamming_loss",
    "jaccard_accuracy",
    "label_scorer",
    "labels",
    "labels_report",
    "lists",
    "log_loss",
    "macro_f1",
    "mean_absolute_error",
    "metric",
    "micro_f1",
    "ndcg_at_k",
    "normalised_mean_absolute_error",
    "precision_at_k",
    "ratings_report",
    "root_mean_squared_error",
    "subset_accuracy",
    "zero_one_error",
]
