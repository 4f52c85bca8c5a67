"""Measures of how good predictions are."""

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
    "METRICS",
    "chance_error",
    "expected_calibration_error",
    "frobenius_relative_error",
    "log_loss",
    "mean_absolute_error",
    "normalised_mean_absolute_error",
    "ratings_report",
    "root_mean_squared_error",
    "zero_one_error",
]
