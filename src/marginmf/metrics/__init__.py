"""Measures of how good predictions are; `marginmf.metrics.lists` has those of ranked lists."""

from marginmf.metrics import lists
from marginmf.metrics.label_ranking import coverage, ndcg_at_k, precision_at_k
from marginmf.metrics.label_scorers import (
    LABEL_METRICS,
    RANKING_METRICS,
    label_scorer,
    labels_report,
)
from marginmf.metrics.labels import (
    example_f1,
    hamming_loss,
    jaccard_accuracy,
    macro_f1,
    micro_f1,
    subset_accuracy,
)
from marginmf.metrics.lists import LIST_METRICS
from marginmf.metrics.probabilities import expected_calibration_error, log_loss
from marginmf.metrics.ratings import (
    METRICS,
    chance_error,
    frobenius_relative_error,
    mean_absolute_error,
    normalised_mean_absolute_error,
    ratings_report,
    root_mean_squared_error,
    zero_one_error,
)

__all__ = [
    "LABEL_METRICS",
    "LIST_METRICS",
    "METRICS",
    "RANKING_METRICS",
    "chance_error",
    "coverage",
    "example_f1",
    "expected_calibration_error",
    "frobenius_relative_error",
    "hamming_loss",
    "jaccard_accuracy",
    "label_scorer",
    "labels_report",
    "lists",
    "log_loss",
    "macro_f1",
    "mean_absolute_error",
    "micro_f1",
    "ndcg_at_k",
    "normalised_mean_absolute_error",
    "precision_at_k",
    "ratings_report",
    "root_mean_squared_error",
    "subset_accuracy",
    "zero_one_error",
]
