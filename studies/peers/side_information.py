"""What who rated what, and side information, are worth: on known, cold and new users and items.

Run by hand, for example::

    python -m studies side-information               # everything, about half an hour
    python -m studies side-information known cold    # sections, on MovieLens 100K
    python -m studies side-information new-users penalty --splits 1   # on MovieLens 1M

Each section prints a Markdown table.  MAE is of the median, zero-one error of the mode and RMSE of
the mean of predicted distributions; seconds are CPU seconds of a fit and its calibration.
"""

import time
import warnings
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable
from contextlib import nullcontext
from copy import copy
from typing import Any
from unittest.mock import patch

import numpy as np
from scipy.sparse import csr_array
from sklearn.base import clone

from marginmf.datasets import RatingsTable
from marginmf.metrics import chance_error
from marginmf.protocols import StrongGeneralisation
from marginmf.ratings import ALS, HMF, MMMF, PMF, BiasOnly, MarginEnsemble, Ratings
from marginmf.ratings.features import FeatureTable
from marginmf.ratings.fitting.priors import raters
from studies.harness.markdown import print_header, print_row
from studies.peers.adapters.common import set_known
from studies.peers.problems import load_table, rating_errors, split_rows, split_strong

#: The seeds of splits, those of the command ``accuracy``.
SEEDS = (1, 2, 3)
#: How many to warm up with, the share of cold items, and that of users who choose a penalty.
TINY, COLD, JUDGES = 5000, 0.1, 0.1
#: Ratings of every new user that are held out: as in the thesis, and for less noise.
HELD_OUT = (1, 5)
#: Ratings that cold users and items are folded in from; all are tested on those after the last.
FIRST = (0, 3, 5, 10)
FACTORS = (0.3, 0.5, 1.0, 2.0, 4.0)
MEASURES = ("mae", "zero_one", "rmse_real", "log_loss", "ece")
HEADS = ("MAE", "zero-one", "RMSE", "log loss", "ECE", "CPU seconds")
MODES = (None, "items", "users", "both")
BOTH = "user item"
#: What the features are called, and the first letters of the parameters they are given as.
FEATURES = {"": "", "item": ", items' features", "user": ", users' features"}
FEATURES |= {BOTH: ", both features", "random": ", random raters"}
#: Estimators, and the features that they are given.
KNOWN = [
    *((MMMF(implicit=mode), "") for mode in MODES),
    *((HMF(implicit=mode), "") for mode in MODES),
    *((MMMF(), features) for features in ("item", "user", BOTH)),
    *((MMMF(implicit="both"), features) for features in ("item", BOTH)),
    (MarginEnsemble(implicit=None), ""),
    *((MarginEnsemble(), features) for features in ("", "item", BOTH, "random")),
]
COLD_CASES = [
    *(MMMF(), MMMF(implicit="both"), HMF(implicit="both")),
    *(MarginEnsemble(), ALS(bias=True), PMF(bias=True)),
]
NEW_USERS = {
    "HMF()": HMF(),
    "MMMF()": MMMF(),
    "MMMF(implicit='items')": MMMF(implicit="items"),
    "MMMF(implicit='both')": MMMF(implicit="both"),
    "ensemble of 4, implicit=None": MarginEnsemble(implicit=None, n_estimators=4),
    "ensemble of 4, implicit='items'": MarginEnsemble(implicit="items", n_estimators=4),
    "ensemble of 4": MarginEnsemble(n_estimators=4),
}


def load_features(table: RatingsTable) -> dict[str, FeatureTable]:
    """Return the features that a dataset comes with, by the names of parameters."""
    names = {side: f"{side}_features" for side in ("user", "item")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of a film without a year
        return {name: FeatureTable.of(getattr(table, name), side) for side, name in names.items()}


def random_raters(data: Ratings, side: Any) -> csr_array:
    """Return, for each row, as many random raters as it has; for the same row always the same."""
    true = raters(data, side)
    counts = np.diff(true.indptr)
    orders = (np.random.default_rng([len(counts), row]) for row in range(len(counts)))
    chosen = [rng.permutation(true.shape[1])[:k] for rng, k in zip(orders, counts, strict=True)]
    indices = np.concatenate(chosen).astype(np.int32)
    drawn = csr_array((true.data, indices, true.indptr), shape=true.shape)
    drawn.sort_indices()
    return drawn


def find_errors(model: Any, table: RatingsTable, rows: Any) -> dict[str, float]:
    distribution = model.predict_proba(table.pairs[rows])
    answers = {"distribution": distribution, "estimate": distribution @ model.levels_}
    return rating_errors(table.ratings[rows], answers, model.levels_)


def fit(estimator: Any, table: RatingsTable, rows: Any, **features: Any) -> tuple[Any, float]:
    """Return a fitted, calibrated model, and the CPU seconds that it took."""
    pairs, ratings = table.pairs[rows], table.ratings[rows]
    model = set_known(clone(estimator), random_state=0)
    begin = time.process_time()
    model.fit(pairs, ratings, **features).predict_proba(pairs[:1])
    return model, time.process_time() - begin


def print_errors(
    name: str, estimator: Any, splits: Iterable[tuple[Any, Any]], **features: FeatureTable
) -> None:
    """Print the errors and seconds of a method on MovieLens 100K, averaged over splits."""
    table, runs = load_table("ml-100k"), []
    for train, test in splits:
        if not runs:  # nobody is charged for compilation
            fit(estimator, table, train[:TINY], **features)
        model, seconds = fit(estimator, table, train, **features)
        found = find_errors(model, table, test)
        runs.append([*(found[measure] for measure in MEASURES), seconds])
    *errors, seconds = map(float, np.mean(runs, axis=0))
    print_row(name, *errors, f"{seconds:.1f}")


def section_known(args: Namespace) -> None:
    """MovieLens 100K, 80/20; items have genres and years, users age, gender and occupation."""
    table = load_table("ml-100k")
    features = load_features(table)
    print_header("method", *HEADS)
    splits = [split_rows(table, "80/20", seed) for seed in SEEDS[: args.splits]]
    for estimator, wanted in KNOWN:
        chosen = {name: own for name, own in features.items() if name[:4] in wanted.split()}
        replaced = patch("marginmf.ratings.fitting.priors.raters", random_raters)
        with replaced if wanted == "random" else nullcontext():
            print_errors(f"{estimator}{FEATURES[wanted]}", estimator, splits, **chosen)


def section_cold(args: Namespace) -> None:
    """MovieLens 100K, a tenth of the items, or of the users, held out with all their ratings."""
    table = load_table("ml-100k")
    features = load_features(table)
    for side, ids in (("item", table.items), ("user", table.users)):
        print_header(f"cold {side}s", *HEADS)
        splits = [split_cold(ids, seed) for seed in SEEDS[: args.splits]]
        print_errors("no features: frequencies of levels", BiasOnly(), splits)
        own = f"{side}_features"
        for estimator in COLD_CASES:
            print_errors(str(estimator), estimator, splits, **{own: features[own]})
        print()


def split_cold(ids: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows of known ids and of cold ones."""
    known = np.random.default_rng(seed).permutation(np.unique(ids))
    is_cold = np.isin(ids, known[: round(COLD * len(known))])
    return np.flatnonzero(~is_cold), np.flatnonzero(is_cold)


def section_first_ratings(args: Namespace) -> None:
    """The same without features: MAE of cold ids folded in from their first ratings, at random."""
    table = load_table("ml-100k")
    print_header("method", "cold", *(f"{n} ratings" for n in FIRST))
    for name, estimator in list(NEW_USERS.items())[:3]:
        for side, ids in (("items", table.items), ("users", table.users)):
            found: list[list[float]] = []
            for seed in SEEDS[: args.splits]:
                train, cold = split_cold(ids, seed)
                cold = np.random.default_rng(seed).permutation(cold)
                position = np.argsort(np.argsort(ids[cold], kind="stable"))
                _, codes, counts = np.unique(ids[cold], return_inverse=True, return_counts=True)
                nth = position - (np.cumsum(counts) - counts)[codes]
                model, _ = fit(estimator, table, train)
                fold_in = model.fold_in if side == "users" else model.fold_in_items
                found.append([])
                for n in FIRST:
                    given, asked = cold[nth < n], cold[nth >= FIRST[-1]]
                    new = fold_in(table.pairs[given], table.ratings[given]) if n else model
                    found[-1].append(find_errors(new, table, asked)["mae"])
            print_row(name, side, *map(float, np.mean(found, axis=0)))


def find_folded_error(model: Any, table: RatingsTable, given: Any, asked: Any) -> float:
    new = model.fold_in(table.pairs[given], table.ratings[given])
    return find_errors(new, table, asked)["mae"]


def section_new_users(args: Namespace) -> None:
    """MovieLens 1M, 5,000 users to train on and 1,040 folded in from all but 1 or 5 ratings."""
    table = load_table("ml-1m")
    names = [f"{measure}, {n} held out" for measure in ("NMAE", "MAE") for n in HELD_OUT]
    print_header("method", "splits", *names, "CPU seconds", "to fold in")
    for name, estimator in NEW_USERS.items():
        found, seconds = [], []
        for seed in SEEDS[: args.splits]:
            splits = [split_strong(table, n, seed) for n in HELD_OUT]
            model, took = fit(estimator, table, splits[0][0])
            begin = time.process_time()
            found.append([find_folded_error(model, table, *split[1:]) for split in splits])
            seconds.append([took, (time.process_time() - begin) / len(splits)])
        maes = np.mean(found, axis=0)
        figures = map(float, [*(maes / chance_error(table.levels)), *maes])
        print_row(name, len(found), *figures, *(f"{s:.1f}" for s in np.mean(seconds, axis=0)))


def section_penalty(args: Namespace) -> None:
    """MAE with reg times a factor, of training users who were held out and of new users."""
    table = load_table("ml-1m")
    print_header("method", "split", "judged on", *(f"{factor:g}" for factor in FACTORS))
    for name, estimator in list(NEW_USERS.items())[:3]:
        for seed in SEEDS[: args.splits]:
            train, *new = split_strong(table, HELD_OUT[-1], seed)
            inner = StrongGeneralisation(1 - JUDGES, HELD_OUT[-1], n_splits=1, random_state=0)
            fewer, *judges = (train[rows] for rows in next(inner.split(table.pairs[train])))
            model, _ = fit(estimator, table, train)
            # With its penalty, because a path for the model of fewer users would end nearby.
            regs = np.asarray(model.reg_).tolist()
            other, _ = fit(clone(estimator).set_params(reg=regs), table, fewer)
            for who, one, rows in (("training users", other, judges), ("new users", model, new)):
                found = []
                for factor in FACTORS:
                    changed = copy(one)
                    changed.reg_ = np.multiply(one.reg_, factor)
                    found.append(find_folded_error(changed, table, *rows))
                print_row(name, seed, who, *found)


SECTIONS = {
    "known": section_known,
    "cold": section_cold,
    "first-ratings": section_first_ratings,
    "new-users": section_new_users,
    "penalty": section_penalty,
}


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--splits", type=int, default=len(SEEDS), help="how many splits, up to 3")
