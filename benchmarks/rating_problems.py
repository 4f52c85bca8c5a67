"""Ratings as every method gets them: the same splits, the same order, judged the same way."""

from functools import cache

import numpy as np

from benchmarks.harness import Arrays, Problem
from marginmf.datasets import RatingsTable, load_ratings
from marginmf.metrics import (
    chance_error,
    expected_calibration_error,
    log_loss,
    mean_absolute_error,
    root_mean_squared_error,
    zero_one_error,
)
from marginmf.protocols import WeakGeneralisation
from marginmf.ratings.calibration import ANSWERS

SPLITS = ("weak", "80/20")
ORDERS = ("sorted", "file", "shuffled")
#: Ratings to warm up with.
TINY = 2000


@cache
def table_of(name: str) -> RatingsTable:
    return load_ratings(name)


def split_rows(table: RatingsTable, split: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows to train on and to test on."""
    if split == "weak":
        protocol = WeakGeneralisation(n_splits=1, random_state=seed)
        train, test = next(protocol.split(table.pairs))
        return train, test
    rows = np.random.default_rng(seed).permutation(len(table))
    n_train = len(rows) * 4 // 5
    return rows[:n_train], rows[n_train:]


def in_order(table: RatingsTable, rows: np.ndarray, order: str, seed: int) -> np.ndarray:
    """Return rows by user and item, as in the file, or shuffled.

    Methods that go through the ratings one by one depend on it, in time and in what they learn.
    """
    rows = np.sort(rows)
    if order == "shuffled":
        return np.random.default_rng(seed).permutation(rows)
    if order == "sorted":
        return rows[np.lexsort((table.items[rows], table.users[rows]))]
    return rows


def rating_problem(data: str, split: str, seed: int, order: str = "sorted") -> Problem:
    """Return a split of a data set; the seed is the number of the repetition."""
    table = table_of(data)
    train, test = split_rows(table, split, seed)
    train = in_order(table, train, order, seed)
    tiny, levels, true = train[:: max(1, len(train) // TINY)], table.levels, table.ratings[test]
    return Problem(
        _columns(table, train, rated=True),
        _columns(table, test, rated=False),
        _columns(table, tiny, rated=True),
        _columns(table, tiny[:100], rated=False),
        lambda answers: rating_errors(true, answers, levels),
    )


def _columns(table: RatingsTable, rows: np.ndarray, rated: bool) -> Arrays:
    columns = {"users": table.users[rows], "items": table.items[rows]}
    return {**columns, "ratings": table.ratings[rows]} if rated else columns


def rating_errors(true: np.ndarray, answers: Arrays, levels: np.ndarray) -> dict[str, float]:
    """Return the errors of integer and of real-valued predictions.

    Integer predictions are those of the method's own rule, or the nearest level to its estimate.
    Where there is a distribution, the MAE is that of its median and the zero-one error that of its
    mode; what the rule would give is there too, under its own name.
    """
    estimate, distribution = answers.get("estimate"), answers.get("distribution")
    rule = answers["rule"] if "rule" in answers else nearest(answers["estimate"], levels)
    median = mode = rule
    if distribution is not None:
        median, mode = (ANSWERS[name](distribution, levels) for name in ("median", "mode"))
    errors = {
        "mae": mean_absolute_error(true, median),
        "zero_one": zero_one_error(true, mode),
        "nmae": mean_absolute_error(true, median) / chance_error(levels),
        "rmse": root_mean_squared_error(true, median),
        "rule_mae": mean_absolute_error(true, rule),
        "rule_zero_one": zero_one_error(true, rule),
        "rule_rmse": root_mean_squared_error(true, rule),
    }
    if estimate is not None:
        errors["rmse_real"] = root_mean_squared_error(true, estimate)
    if distribution is not None:
        errors["log_loss"] = log_loss(true, distribution, levels)
        errors["ece"] = expected_calibration_error(true, distribution, levels)
    return errors


def nearest(estimates: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Return the nearest level to each estimate.

    >>> nearest(np.array([0.2, 3.4, 9.0, np.nan]), np.array([1.0, 2.0, 3.0, 4.0, 5.0]))
    array([ 1.,  3.,  5., nan])
    """
    closest = levels[np.abs(estimates[:, None] - levels).argmin(axis=1)]
    return np.where(np.isnan(estimates), np.nan, closest)
