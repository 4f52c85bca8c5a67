"""Chapter 3's rating systems: how they are made, and how they are tested on new users."""

import time
from collections.abc import Iterator, Mapping
from copy import copy
from importlib import import_module
from operator import attrgetter
from typing import Any, Literal, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from marginmf.datasets import RatingsTable
from marginmf.metrics import chance_error, log_loss, ratings_report, zero_one_error
from marginmf.metrics import root_mean_squared_error as rmse
from marginmf.ratings import MMMF, MarginEnsemble, Ratings
from marginmf.ratings.estimator import Distributional
from studies.harness.cell import Values

#: How many ratings to compile kernels with, so that no seconds of a fit are those of a compiler.
FEW = 2000


class System(NamedTuple):
    """Where a system is in the library, and what makes it the model that a name stands for."""

    module: str
    name: str
    params: Mapping[str, Any] = {}

    def make(self, params: Mapping[str, Any]) -> Any:
        return attrgetter(self.name)(import_module(self.module))(**{**self.params, **params})


def _baseline(module: str, name: str, **params: Any) -> System:
    return System(f"marginmf.ratings.baselines.{module}", name, params)


#: By the names that the thesis gives them; each is imported when it is made.
SYSTEMS: Mapping[str, System] = {
    "Attitude": _baseline("attitude", "Attitude"),
    "BPMF": _baseline("bpmf", "BPMF"),
    "E-MMMF votes": System(__name__, "Votes"),
    "GP-LVM": _baseline("gplvm", "GPLVM"),
    "Gibbs MMMF": _baseline("gibbs_mmmf", "GibbsMMMF"),
    # One in four of its forty sweeps is kept: folding in takes as long for each as a fit of five.
    "Gibbs MMMF published": _baseline("gibbs_mmmf", "GibbsMMMF.published", n_samples=10, thin=4),
    "Gibbs iPMMMF": _baseline("gibbs_ipmmmf", "GibbsIPMMMF"),
    "Imputed SVD": _baseline("svd", "ImputedSVD"),
    "NMF": _baseline("nmf", "NMF"),
    "SVD": _baseline("svd", "SVD"),
    "URP": _baseline("urp", "URP"),
    "iBPMMMF": _baseline("ipmmmf", "IPMMMF", bayesian=True),
    "iBPMMMF published": _baseline("ipmmmf", "IPMMMF", bayesian=True, prior_items=0.0),
    "iPMMMF": _baseline("ipmmmf", "IPMMMF", bayesian=False),
}


def make_system(name: str, params: Mapping[str, Any], n_jobs: int = 1) -> Any:
    """Return an unfitted system with a fixed seed; its own rule needs no probabilities."""
    method = SYSTEMS[name].make(params)
    wanted = {"random_state": 0, "n_jobs": n_jobs, "calibrate": False}
    return method.set_params(
        **{key: value for key, value in wanted.items() if key in method.get_params()}
    )


class Votes(BaseEstimator):
    """E-MMMF as the thesis describes it: MMMFs vote with whole stars.

    They differ by their random starts and, with ``bagging``, by their ratings: as many as there are
    are drawn with repetition for each, and count once.  The regularisation strength is the one that
    a single MMMF chooses for itself, times ``share``: members that are averaged may be weaker.
    """

    def __init__(
        self,
        n_estimators: int = 30,
        *,
        n_factors: int = 100,
        share: float = 1.0,
        vote: Literal["median", "mean"] = "median",
        bagging: bool = False,
        random_state: int = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.n_estimators, self.n_factors = n_estimators, n_factors
        self.share, self.vote, self.bagging = share, vote, bagging
        self.random_state, self.n_jobs = random_state, n_jobs

    def fit(self, ratings: Ratings) -> Self:
        self.reg_ = self.share * self._member(0, "auto").fit(ratings).reg_
        self.members_ = [
            self._member(seed, self.reg_).fit(self._bag(ratings, seed))
            for seed in range(self.n_estimators)
        ]
        return self

    def _bag(self, ratings: Ratings, seed: int) -> Ratings:
        if not self.bagging:
            return ratings
        drawn = np.random.default_rng((self.random_state, seed)).integers(
            len(ratings), size=len(ratings)
        )
        return ratings.subset(np.bincount(drawn, minlength=len(ratings)) > 0)

    def _member(self, seed: int, reg: Any) -> MMMF:
        fixed = {"calibrate": False, "n_jobs": self.n_jobs}
        return MMMF(self.n_factors, reg, random_state=self.random_state + seed, **fixed)

    def fold_in(self, pairs: Any, ratings: Any) -> Self:
        folded = copy(self)
        folded.members_ = [member.fold_in(pairs, ratings) for member in self.members_]
        return folded

    def predict(self, pairs: Any, output: str = "rule") -> np.ndarray:
        votes = np.array([member.predict(pairs, output="rule") for member in self.members_])
        middle = np.median(votes, axis=0) if self.vote == "median" else votes.mean(axis=0)
        levels = self.members_[0].levels_
        nearest: np.ndarray = levels[np.abs(middle[:, None] - levels).argmin(axis=1)]
        return nearest


def draw_tests(
    users: np.ndarray, fold_in: np.ndarray, test: np.ndarray, n_draws: int, seed: int
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the rows that fold new users in and the ones to test on, draw by draw.

    The first draw is the one given.  Each of the others tests on another rating of every user, so
    that no rating is tested on twice.

    >>> users = np.array([0, 0, 0, 1, 1, 1])
    >>> for rows, test in draw_tests(users, np.array([0, 2, 3, 5]), np.array([1, 4]), 3, seed=0):
    ...     print(rows, test)
    [0 2 3 5] [1 4]
    [1 2 4 5] [0 3]
    [0 1 3 4] [2 5]
    """
    yield fold_in, test
    shuffled = np.random.default_rng(seed).permutation(fold_in)
    by_user = shuffled[np.argsort(users[shuffled], kind="stable")]
    _, starts, counts = np.unique(users[by_user], return_index=True, return_counts=True)
    ranks = np.arange(len(by_user)) - np.repeat(starts, counts)
    every = np.union1d(fold_in, test)
    for draw in range(n_draws - 1):
        chosen = np.sort(by_user[ranks == draw])
        yield np.setdiff1d(every, chosen), chosen


class Judged:
    """The answers of a model on test ratings, draw by draw, and what it took to find them."""

    def __init__(self, table: RatingsTable) -> None:
        self.table, self.rows, self.rules = table, list[np.ndarray](), list[np.ndarray]()
        self.distributions: list[np.ndarray] = []

    def ask(self, model: Any, rows: np.ndarray) -> None:
        """Ask a model for the ratings in these rows, by its own rule."""
        pairs = self.table.pairs[rows]
        self.rows.append(rows)
        self.rules.append(model.predict(pairs, output="rule"))
        # The others have a distribution only after another fit, which calibrates it.
        if isinstance(model, Distributional | MarginEnsemble):
            self.distributions.append(model.predict_proba(pairs))

    def values(self) -> Values:
        """Return the errors over all draws, and how far chance may have moved the NMAE."""
        levels, ratings = self.table.levels, self.table.ratings
        rows, rules = np.concatenate(self.rows), np.concatenate(self.rules)
        true = ratings[rows]
        test = ratings_report(true, rules, levels)
        if self.distributions:
            distribution = np.concatenate(self.distributions)
            test["log_loss"] = log_loss(true, distribution, levels)
            test["zero_one_mode"] = zero_one_error(true, levels[distribution.argmax(axis=1)])
            test["rmse_mean"] = rmse(true, distribution @ levels)
        off = np.abs(rules - true) / chance_error(levels)
        return {
            "test": test,
            "standard_error": clustered_error(off, self.table.users[rows]),
            "draws": [
                ratings_report(ratings[own], rule, levels)["nmae"]
                for own, rule in zip(self.rows, self.rules, strict=True)
            ],
            "n_test": len(self.rows[0]),
        }


def clustered_error(values: np.ndarray, clusters: np.ndarray) -> float:
    """Return the standard error of a mean whose values belong together in clusters of one size.

    >>> clustered_error(np.array([0.0, 0.0, 1.0, 1.0]), np.array([0, 0, 1, 1]))
    0.5
    """
    _, codes, counts = np.unique(clusters, return_inverse=True, return_counts=True)
    means = np.bincount(codes, values) / counts
    return float(means.std(ddof=1) / np.sqrt(len(means)))


def measure_system(
    method: Any, table: RatingsTable, rows: tuple[np.ndarray, ...], n_draws: int, seed: int
) -> tuple[Any, Values]:
    """Return the fitted method, and its errors and seconds.

    ``rows`` are those to train on, to fold in (only where users are new) and to test on.  The
    method is fitted once, however many draws there are.  Seconds are those of the processor,
    compilation apart; those of folding in are of one draw.
    """
    train, *fold_in, test = rows
    few = train[:FEW]
    warm = clone(method).fit(read_rows(table, few))
    if fold_in:
        warm.fold_in(table.pairs[few], table.ratings[few])
    judged, begin = Judged(table), time.process_time()
    model = method.fit(read_rows(table, train))
    seconds = {"fit_cpu_seconds": time.process_time() - begin}
    if fold_in:
        # What only new users have rated is unknown to the model.
        learned = np.isin(table.items, table.items[train])
        total = 0.0
        for given, asked in draw_tests(table.users, fold_in[0], test, n_draws, seed):
            own = given[learned[given]]
            begin = time.process_time()
            folded = model.fold_in(table.pairs[own], table.ratings[own])
            total += time.process_time() - begin
            judged.ask(folded, asked)
        seconds["fold_in_cpu_seconds"] = total / n_draws
    else:
        judged.ask(model, test)
    return model, {**judged.values(), **seconds}


def read_rows(table: RatingsTable, rows: np.ndarray) -> Ratings:
    """Return some ratings on the scale of all: a level may be missing by chance."""
    return Ratings.of(table.pairs[rows], table.ratings[rows], levels=table.levels)
