"""Measures of how good predictions are."""

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
    "frobenius_relative_error",
    "mean_absolute_error",
    "normalised_mean_absolute_error",
    "ratings_report",
    "root_mean_squared_error",
    "zero_one_error",
]
