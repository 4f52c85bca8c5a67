"""Errors of ratings methods on held-out ratings, and how long they take to fit."""

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.base import clone

from marginmf._utils.types import IntArray
from marginmf.datasets import RatingsTable
from marginmf.experiments.cell import Values
from marginmf.experiments.data import Data, ratings_of
from marginmf.experiments.measures.bands import fit_into_band
from marginmf.metrics import ratings_report
from marginmf.protocols import HoldOut, StrongGeneralisation, WeakGeneralisation
from marginmf.ratings import ALS, BMMMF, HMF, MMMF, PMF, PMMMF, BiasOnly, MarginEnsemble, Ratings
from marginmf.ratings.estimator import RatingsEstimator
from marginmf.ratings.factoriser import Factoriser

#: Methods by the names that the thesis and the report give them.
METHODS: Mapping[str, Any] = {
    "ALS": ALS,
    "BMMMF": BMMMF,
    "Biases": BiasOnly,
    "E-MMMF": MarginEnsemble,
    "HMF": HMF,
    "MMMF": MMMF,
    "Margin ensemble": MarginEnsemble,
    "PHMF": HMF,
    "PMF": PMF,
    "PMMMF": PMMMF,
}

#: Splits of a data set are numbered; their seeds begin here.
FIRST_SEED = 1


def make_method(name: str, params: Mapping[str, Any], n_jobs: int = 1) -> RatingsEstimator:
    """Return an unfitted method; what is random in it has a seed of its own."""
    method = METHODS[name](**params)
    bare: dict[str, Any] = {}
    if isinstance(method, Factoriser):
        # As in the thesis: its own rule, which needs no probabilities, and its rank.
        bare = {"calibrate": False, "n_factors": 100}
    elif isinstance(method, MarginEnsemble):
        # From levels alone, as all others in these tables.
        bare = {"implicit": None, "n_estimators": 30}
    method.set_params(**{key: value for key, value in bare.items() if key not in params})
    if "random_state" in method.get_params():
        method.set_params(random_state=0, n_jobs=n_jobs)
    estimator: RatingsEstimator = method
    return estimator


def rows_of(
    table: RatingsTable, protocol: Mapping[str, Any], split: int
) -> tuple[IntArray, IntArray | None, IntArray]:
    """Return the rows to train on, to fold in (if users are new) and to test on.

    ``{"name": "weak"}`` holds out one rating of every user; ``{"name": "strong", ...}`` some users
    whole, with the arguments of `StrongGeneralisation`; ``{"name": "share", "train": 0.8}`` all but
    a random share.
    """
    seed, name = FIRST_SEED + split, protocol["name"]
    if name == "strong":
        given = {key: value for key, value in protocol.items() if key != "name"}
        strong = StrongGeneralisation(n_splits=1, random_state=seed, **given)
        return next(strong.split(table.pairs))
    splitter: Any = (
        WeakGeneralisation(n_splits=1, random_state=seed)
        if name == "weak"
        else HoldOut(n_splits=1, random_state=seed, test_size=1 - protocol["train"])
    )
    train, test = next(splitter.split(table.pairs))
    return train, None, test


def rating_errors(
    data: Data,
    protocol: Mapping[str, Any],
    split: int,
    method: str,
    params: Mapping[str, Any],
    band: Mapping[str, Any] | None = None,
) -> Values:
    """Return the errors on held-out ratings and on those learned from.

    With a ``band``, such as ``{"measure": "mae", "low": 0.07, "high": 0.09}``, the weight of the
    penalty is the one that brings the training error into the band, as chapters 3 and 4 of the
    thesis compare methods.
    """
    table = ratings_of(data)
    train, fold_in, test = rows_of(table, protocol, split)
    ratings, pairs, levels = table.ratings, table.pairs, table.levels
    # The scale of all the ratings: a level may be missing from one training set by chance.
    known = Ratings.of(pairs[train], ratings[train], levels=levels)
    estimator = make_method(method, params)

    def training_errors(model: RatingsEstimator) -> dict[str, float]:
        return ratings_report(ratings[train], model.predict(pairs[train], output="rule"), levels)

    begin = time.perf_counter()
    if band is None:
        model = clone(estimator).fit(known)
    else:
        low, high, measured = band["low"], band["high"], band["measure"]
        model = fit_into_band(
            estimator, known, lambda one: training_errors(one)[measured], low, high
        )
    seconds = time.perf_counter() - begin
    judged = model
    if fold_in is not None:
        judged = model.fold_in(pairs[fold_in], ratings[fold_in])
    return {
        "test": ratings_report(ratings[test], judged.predict(pairs[test], output="rule"), levels),
        "train": training_errors(model),
        "n_test": len(test),
        "fit_seconds": seconds,
        **facts_of(model),
    }


def fit_time(
    data: Data, method: str, params: Mapping[str, Any], repetition: int, n_jobs: int = 1
) -> Values:
    """Return how long one fit to all the ratings takes, imports and compilation apart."""
    table = ratings_of(data)
    known = Ratings.of(table.pairs, table.ratings)
    few = Ratings.of(table.pairs[:2000], table.ratings[:2000], levels=table.levels)
    make_method(method, params, n_jobs).fit(few)
    begin, cpu = time.perf_counter(), time.process_time()
    model = make_method(method, params, n_jobs).fit(known)
    return {
        "fit_seconds": time.perf_counter() - begin,
        "cpu_seconds": time.process_time() - cpu,
        **facts_of(model),
    }


def facts_of(model: RatingsEstimator) -> Values:
    """Return what a fit has chosen and how much work it was."""
    found: Values = {}
    if hasattr(model, "reg_"):
        found["reg"] = np.round(model.reg_, 6).tolist()
    if hasattr(model, "n_evaluations_"):
        found["gradients"] = int(model.n_evaluations_)
    return found
