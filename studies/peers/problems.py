"""Problems as every method gets them: the same splits, the same order, judged the same way."""

import csv
import os
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import cache, partial
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
from scipy.sparse import csr_array

from marginmf.datasets import RatingsTable, load_labels, load_ratings, make_labels
from marginmf.metrics import (
    LIST_METRICS,
    chance_error,
    expected_calibration_error,
    labels_report,
    log_loss,
    mean_absolute_error,
    root_mean_squared_error,
    zero_one_error,
)
from marginmf.protocols import StrongGeneralisation, WeakGeneralisation
from studies.peers.adapters.common import LIKED, Codes
from studies.peers.bench import Arrays, MakeProblem, Problem

TITLES = {"ml-100k": "MovieLens 100K", "ml-1m": "MovieLens 1M"}
SPLITS = ("weak", "80/20")
#: The five folds that come with MovieLens 100K; the seed is the number of the fold.
PUBLISHED_FOLDS = "u1-u5"
#: The part of the ratings to train on.
SHARES = {"80/20": (4, 5), "90/10": (9, 10)}
ORDERS = ("sorted", "file", "shuffled")
#: The split that lists are tested on, and the same of its training ratings, to choose settings on.
LIST_SPLIT, INNER_SPLIT = "80/20", "80/20 of training"
LIST_LENGTH = 10
#: The split of label sets that comes with them, and no split at all.
OWN_SPLIT, ALL_ROWS = "the owner's split", "all rows"
#: Ratings and rows to warm up with.
TINY_RATINGS, TINY_ROWS = 2000, 200


@cache
def load_table(name: str) -> RatingsTable:
    return load_ratings(name)


def split_rows(table: RatingsTable, split: str, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows to train on and to test on."""
    if split == "weak":
        return next(WeakGeneralisation(n_splits=1, random_state=seed).split(table.pairs))
    if split == PUBLISHED_FOLDS:
        return published_fold(table, seed)
    part, whole = SHARES[split]
    rows = np.random.default_rng(seed).permutation(len(table))
    n_train = len(rows) * part // whole
    return rows[:n_train], rows[n_train:]


def split_strong(table: RatingsTable, held_out: int, seed: int) -> tuple[Any, Any, Any]:
    """Return rows of 5,000 users to train on, then rows of new ones to fold in and to test on."""
    protocol = StrongGeneralisation(5000, held_out, n_splits=1, random_state=seed)
    return next(protocol.split(table.pairs))


def published_fold(table: RatingsTable, fold: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of ``u1.base`` and ``u1.test``, or of another fold of MovieLens 100K."""
    lines = read_lines(table.name, f"u{fold}.test")
    pairs = [tuple(map(int, line.split()[:2])) for line in lines]
    row_of = {pair: row for row, pair in enumerate(map(tuple, table.pairs.tolist()))}
    test = np.array([row_of[pair] for pair in pairs])
    return np.setdiff1d(np.arange(len(table)), test), test


def read_lines(data: str, member: str) -> list[str]:
    """Return the lines of a file in the archive that the owner of a data set publishes."""
    archive = Path(os.environ.get("MARGINMF_DATA", "")) / "original" / f"{data}.zip"
    if not archive.is_file():
        raise SystemExit(
            f"{member} of {data} is in the archive of its owner, and {archive} does not exist.\n"
            f"Set MARGINMF_DATA to a folder that has original/{data}.zip."
        )
    with ZipFile(archive) as opened:
        [name] = [name for name in opened.namelist() if name.rpartition("/")[2] == member]
        text = opened.read(name).decode("utf-8" if member.endswith(".csv") else "latin-1")
    return [line.strip() for line in text.split("\n") if line.strip()]


def order_rows(table: RatingsTable, rows: np.ndarray, order: str, seed: int) -> np.ndarray:
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
    table = load_table(data)
    train, test = split_rows(table, split, seed)
    train = order_rows(table, train, order, seed)
    tiny, levels = train[:: max(1, len(train) // TINY_RATINGS)], table.levels
    true = table.ratings[test]
    asked = [_columns(table, rows, "users", "items") for rows in (test, tiny[:100])]
    judge = partial(rating_errors, true, levels=levels)
    return Problem(_columns(table, train), asked[0], _columns(table, tiny), asked[1], judge)


def _columns(table: RatingsTable, rows: Any, *names: str) -> Arrays:
    return {name: getattr(table, name)[rows] for name in names or ("users", "items", "ratings")}


def described_problem(data: str, split: str, seed: int, order: str = "sorted") -> Problem:
    """Return a split of a data set, and what is known of its users and items."""
    return replace(rating_problem(data, split, seed, order), side=side_information(data))


def rating_errors(true: np.ndarray, answers: Arrays, levels: np.ndarray) -> dict[str, float]:
    """Return the errors of integer and of real-valued predictions.

    Integer predictions are those of the method's own rule, or the nearest level to its estimate.
    Where there is a distribution, the MAE is that of its median and the zero-one error that of its
    mode; what the rule would give is there too, under its own name.
    """
    estimate, distribution = answers.get("estimate"), answers.get("distribution")
    rule = answers["rule"] if "rule" in answers else nearest_level(answers["estimate"], levels)
    median = mode = rule
    if distribution is not None:
        # The median is the lowest level that at least half of the probability is at or below.
        below = distribution[:, :-1].cumsum(axis=1) < 0.5
        median, mode = (
            np.where(np.isnan(distribution[:, 0]), np.nan, levels[codes])
            for codes in (np.count_nonzero(below, axis=1), distribution.argmax(axis=1))
        )
    mae, rmse = mean_absolute_error, root_mean_squared_error
    errors = {"mae": mae(true, median), "zero_one": zero_one_error(true, mode)}
    errors |= {"nmae": mae(true, median) / chance_error(levels), "rmse": rmse(true, median)}
    errors |= {"rule_mae": mae(true, rule), "rule_zero_one": zero_one_error(true, rule)}
    errors["rule_rmse"] = rmse(true, rule)
    if estimate is not None:
        errors |= {"rmse_real": rmse(true, estimate), "mae_real": mae(true, estimate)}
    if distribution is not None:
        errors["log_loss"] = log_loss(true, distribution, levels)
        errors["ece"] = expected_calibration_error(true, distribution, levels)
    return errors


def nearest_level(estimates: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Return the nearest level to each estimate.

    >>> nearest_level(np.array([0.2, 3.4, 9.0, np.nan]), np.array([1.0, 2.0, 3.0, 4.0, 5.0]))
    array([ 1.,  3.,  5., nan])
    """
    closest = levels[np.abs(estimates[:, None] - levels).argmin(axis=1)]
    return np.where(np.isnan(estimates), np.nan, closest)


@cache
def side_information(data: str) -> Arrays:
    """Return age, gender and occupation of users, as far as published, and genres of films.

    Each is a group of columns with ones: ages by steps of five years.
    """
    users: list[list[str]] = []
    if data == "ml-100k":
        users = [line.split("|") for line in read_lines(data, "u.user")]
        users = [[user, gender, age, job] for user, age, gender, job, _ in users]
        films = [line.split("|") for line in read_lines(data, "u.item")]
        flags = [(film, enumerate(marks)) for film, _, _, _, _, *marks in films]
        genres = [(film, [str(k) for k, mark in marks if mark == "1"]) for film, marks in flags]
    elif data == "ml-1m":
        users = [line.split("::")[:4] for line in read_lines(data, "users.dat")]
        films = [line.split("::") for line in read_lines(data, "movies.dat")]
        genres = [(film, listed.split("|")) for film, _, listed in films]
    else:
        films = list(csv.reader(read_lines(data, "movies.csv")))[1:]
        genres = [(film, listed.split("|")) for film, _, listed in films]
    known = [(gender, str(int(age) // 5), job) for _, gender, age, job in users]
    of_users = [one_hot([row[k]] for row in known) for k in range(3)]
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
    """Return a column for every value, and in every row a one for each of its values."""
    rows = list(values)
    names = sorted({name for row in rows for name in row})
    flags = [[float(name in row) for name in names] for row in rows]
    return np.array(flags).reshape(len(rows), len(names))


def list_problem(data: str, split: str, seed: int, order: str = "sorted") -> Problem:
    """Return a split whose users and items are codes, and the judge of the lists."""
    table = load_table(data)
    codes = [Codes(ids)(ids)[0] for ids in (table.users, table.items)]
    table = RatingsTable(table.name, *codes, table.ratings)
    train, test = split_rows(table, LIST_SPLIT, seed)
    if split == INNER_SPLIT:
        training = RatingsTable(table.name, *(code[train] for code in codes), table.ratings[train])
        train, test = (train[rows] for rows in split_rows(training, LIST_SPLIT, seed))
    train = order_rows(table, train, order, seed)
    shape = table.users.max() + 1, table.items.max() + 1
    liked = test[table.ratings[test] >= LIKED]
    seen, relevant = (
        csr_array((np.ones(len(k), bool), (table.users[k], table.items[k])), shape=shape)
        for k in (train, liked)
    )
    judge = partial(judge_lists, np.unique(table.users[train]), seen, relevant)
    return Problem(*_list_arrays(table, train, LIST_LENGTH), judge)


def _list_arrays(
    table: RatingsTable, train: np.ndarray, n: int
) -> tuple[Arrays, Arrays, Arrays, Arrays]:
    """Return ratings and the users who want lists, then a tiny part of both.

    That has whole users: someone with few ratings must still have unseen items.
    """
    few = train[np.isin(table.users[train], np.unique(table.users[train])[:20])]
    asked, few_asked = (
        {"users": np.unique(table.users[rows]), "n": np.array(n)} for rows in (train, few)
    )
    return _columns(table, train), asked, _columns(table, few), few_asked


def judge_lists(
    users: np.ndarray, seen: csr_array, relevant: csr_array, answers: Arrays
) -> dict[str, float]:
    """Return how good the lists of some users are; raise ValueError for lists that are not valid.

    Someone with relevant items and without a list has an empty one.
    """
    lists = answers["lists"]
    if lists.shape != (len(users), LIST_LENGTH) or lists.dtype.kind != "i":
        raise ValueError(
            f"lists are {lists.dtype} of shape {lists.shape}, not whole numbers of shape "
            f"({len(users)}, {LIST_LENGTH})"
        )
    everybody = np.full((relevant.shape[0], LIST_LENGTH), -1)
    everybody[users] = lists
    if _is_among(seen, everybody).any():
        raise ValueError("a list has an item that its user has rated")
    ordered = np.sort(everybody, axis=1)
    if ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any():
        raise ValueError("an item is twice in the list of a user")
    return list_quality(everybody, relevant, n_items=len(np.unique(seen.indices)))


def _is_among(pairs: csr_array, lists: np.ndarray) -> np.ndarray:
    """Return which items of the lists, a row for each user, are among the pairs."""
    rows = np.repeat(np.arange(len(lists)), lists.shape[1])
    found = np.asarray(pairs[rows, np.maximum(lists, 0).ravel()], bool)
    return found.reshape(lists.shape) & (lists >= 0)


def list_quality(lists: np.ndarray, relevant: csr_array, n_items: int) -> dict[str, float]:
    """Return the means over all users that have relevant items.

    Lists have items by rank, -1 where there is none; ``relevant`` is boolean, users by items, and
    ``n_items`` is the number of items that lists are made of, for the coverage.
    """
    n_relevant = np.diff(relevant.indptr)
    judged = n_relevant > 0
    hits, shown = _is_among(relevant, lists)[judged], lists[judged]
    quality = {
        name: float(measure(hits, n_relevant[judged], lists.shape[1]).mean())
        for name, measure in LIST_METRICS.items()
    }
    return {**quality, "coverage": len(np.unique(shown[shown >= 0])) / n_items}


def serving_problem(data: str, split: str, seed: int, order: str = "sorted") -> Problem:
    """Return all ratings, and the users who want lists; the split is such as ``"top 10"``."""
    table, n = load_table(data), int(split.split()[-1])
    rows = order_rows(table, np.arange(len(table)), order, 0)
    arrays = _list_arrays(table, rows, n)
    return Problem(*arrays, partial(check_lists, arrays[0], n))


def check_lists(seen: Arrays, n: int, answers: Arrays) -> dict[str, float]:
    """Raise ValueError unless every user has ``n`` different items, none of them seen."""
    users, items = answers["users"], answers["items"]
    everybody = np.unique(seen["users"])
    who, lengths = np.unique(users, return_counts=True)
    if not np.array_equal(who, everybody) or not (lengths == n).all():
        raise ValueError(
            f"there are {len(who)} lists of {lengths.min()} to {lengths.max()} items, not "
            f"{len(everybody)} lists of {n}"
        )
    # One number for each pair.
    base = int(max(seen["items"].max(), items.max())) + 1
    shown = users.astype(np.int64) * base + items
    if len(np.unique(shown)) < len(shown):
        raise ValueError("an item is twice in the list of a user")
    known = seen["users"].astype(np.int64) * base + seen["items"]
    if np.isin(shown, known).any():
        raise ValueError("a list has an item that its user has rated")
    return {"lists": float(len(who))}


def label_problem(data: str, split: str, repetition: int, order: str = "file") -> Problem:
    """Return the owner's split, or all rows to learn from and some of them to answer for."""
    if data[0].isdigit():
        n, features, labels = (int(part.replace(",", "")) for part in data.split(" x "))
        table = make_labels(n, features, labels, features_per_sample=50, random_state=0)
    else:
        table = load_labels(data)
    train, test = np.arange(table.n_samples), np.arange(500)
    if split == OWN_SPLIT:
        train, test = table.train_idx, table.test_idx
    true, tiny, tiny_test = table.Y[test], train[:TINY_ROWS], test[:TINY_ROWS]
    return Problem(
        csr_arrays(X=table.X[train], Y=table.Y[train]),
        csr_arrays(X=table.X[test]),
        csr_arrays(X=table.X[tiny], Y=table.Y[tiny]),
        csr_arrays(X=table.X[tiny_test]),
        lambda answers: labels_report(true, answers["labels"]),
    )


def csr_arrays(**matrices: Any) -> Arrays:
    """Return the arrays of CSR matrices, under the names that adapters look for."""
    return {
        f"{name}_{part}": np.asarray(getattr(matrix, part))
        for name, matrix in matrices.items()
        for part in ("data", "indices", "indptr", "shape")
    }


#: By the names that cells give them.
PROBLEMS: dict[str, MakeProblem] = {
    "ratings": rating_problem,
    "described": described_problem,
    "lists": list_problem,
    "serving": serving_problem,
    "labels": label_problem,
}
