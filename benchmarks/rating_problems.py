"""Ratings as every method gets them: the same splits, the same order, judged the same way."""

import csv
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np

from benchmarks.harness import Arrays, Problem
from marginmf.datasets import RatingsTable, load_ratings
from marginmf.datasets.cache import DATA_FOLDER, data_folder
from marginmf.datasets.known_formats import open_member
from marginmf.metrics import (
    chance_error,
    expected_calibration_error,
    log_loss,
    mean_absolute_error,
    root_mean_squared_error,
    zero_one_error,
)
from marginmf.protocols import WeakGeneralisation
from marginmf.ratings.fitting.calibration import ANSWERS

SPLITS = ("weak", "80/20")
#: The five folds that come with MovieLens 100K; the seed is the number of the fold.
PUBLISHED_FOLDS = "u1-u5"
#: The part of the ratings to train on.
SHARES = {"80/20": (4, 5), "90/10": (9, 10)}
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
    if split == PUBLISHED_FOLDS:
        return published_fold(table, seed)
    part, whole = SHARES[split]
    rows = np.random.default_rng(seed).permutation(len(table))
    n_train = len(rows) * part // whole
    return rows[:n_train], rows[n_train:]


def published_fold(table: RatingsTable, fold: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of ``u1.base`` and ``u1.test``, or of another fold of MovieLens 100K."""
    lines = _lines(table.name, f"u{fold}.test")
    pairs = [tuple(map(int, line.split()[:2])) for line in lines]
    row_of = {pair: row for row, pair in enumerate(map(tuple, table.pairs.tolist()))}
    test = np.array([row_of[pair] for pair in pairs])
    return np.setdiff1d(np.arange(len(table)), test), test


@cache
def side_information(data: str) -> Arrays:
    """Return age, gender and occupation of users, as far as published, and genres of films.

    Each is a group of columns with ones: ages by steps of five years.
    """
    users: list[list[str]] = []
    if data == "ml-100k":
        users = [line.split("|") for line in _lines(data, "u.user")]
        users = [[user, gender, age, job] for user, age, gender, job, _ in users]
        films = [line.split("|") for line in _lines(data, "u.item")]
        flags = [(film, enumerate(marks)) for film, _, _, _, _, *marks in films]
        genres = [(film, [str(k) for k, mark in marks if mark == "1"]) for film, marks in flags]
    elif data == "ml-1m":
        users = [line.split("::")[:4] for line in _lines(data, "users.dat")]
        films = [line.split("::") for line in _lines(data, "movies.dat")]
        genres = [(film, listed.split("|")) for film, _, listed in films]
    else:
        films = list(csv.reader(_lines(data, "movies.csv")))[1:]
        genres = [(film, listed.split("|")) for film, _, listed in films]
    of_users = [
        one_hot([gender] for _, gender, *_ in users),
        one_hot([str(int(age) // 5)] for _, _, age, _ in users),
        one_hot([job] for *_, job in users),
    ]
    of_films = [one_hot(listed for _, listed in genres)]
    return {
        "user_ids": np.array([int(user) for user, *_ in users], np.int64),
        "user_features": np.hstack(of_users),
        "user_groups": _widths(of_users),
        "item_ids": np.array([int(film) for film, _ in genres], np.int64),
        "item_features": np.hstack(of_films),
        "item_groups": _widths(of_films),
    }


def _widths(groups: Sequence[np.ndarray]) -> np.ndarray:
    return np.array([group.shape[1] for group in groups if group.size], np.int64)


def one_hot(values: Iterable[Sequence[str]]) -> np.ndarray:
    """Return a column for every value, and in every row a one for each of its values.

    >>> one_hot([["drama"], ["comedy", "drama"]]).tolist()
    [[0.0, 1.0], [1.0, 1.0]]
    """
    rows = list(values)
    names = sorted({name for row in rows for name in row})
    return np.array([[float(name in row) for name in names] for row in rows]).reshape(
        len(rows), len(names)
    )


def _lines(data: str, member: str) -> list[str]:
    """Return the lines of a file in the archive that the owner of a data set publishes."""
    archive = (data_folder(None) or Path()) / "original" / f"{data}.zip"
    if not archive.is_file():
        raise SystemExit(
            f"{member} of {data} is in the archive of its owner, and {archive} is not there.\n"
            f"Set {DATA_FOLDER} to a folder that has original/{data}.zip."
        )
    with open_member(archive, member) as file:
        text = file.read().decode("utf-8" if member.endswith(".csv") else "latin-1")
    return [line.strip() for line in text.split("\n") if line.strip()]


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


def described_problem(data: str, split: str, seed: int) -> Problem:
    """Return a split of a data set, and what is known of its users and items."""
    return replace(rating_problem(data, split, seed), side=side_information(data))


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
        errors["mae_real"] = mean_absolute_error(true, estimate)
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
