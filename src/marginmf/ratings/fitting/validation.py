"""Ratings that are not learned from: they choose, stop and calibrate.

A `ValidationSplit` holds some ratings out.  ``reg="auto"`` takes the strength that predicts them
best along a path (`choose_regs`).  The fit at the final values has two parts: the first learns from
the others, and the held-out ratings calibrate its margins (`train_calibrated`) or also say when to
stop (`train_and_stop_early`); the second learns from all ratings.
"""

import math
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from marginmf._utils.types import BoolArray, Float64Array, FloatArray, IntArray
from marginmf.backends import Backend
from marginmf.progress import Report
from marginmf.ratings.data import Ratings
from marginmf.ratings.fitting.calibration import Calibrator, features_of
from marginmf.ratings.fitting.fallback import LevelFrequencies
from marginmf.ratings.fitting.objective import Parameters, first_thresholds
from marginmf.ratings.fitting.stages import Solution, Training
from marginmf.solvers import Callback
from marginmf.tuning import RegularisationPath, follow_path

#: Which share of the ratings is set aside.
SHARE = 0.1
#: Calibrators are fitted to this many ratings, or to all there are: with fewer, their weights are
#: uncertain enough to cost accuracy.
ENOUGH = 20_000


#: How much of the random start is added to a solution before the next candidate starts there.
PERTURBATION = 0.5
#: Errors along a path need no more precision than this; the final fit has its own.
PATH_TOL = 3e-3
#: Paths begin at this share of the strength that leaves nothing but zeros: the best one is seldom
#: above it, and the walk turns round where it is.
PATH_BEGIN = 0.15
#: Power iterations for the largest singular value, which is that strength.
POWER_ITERATIONS = 20
#: How much stronger penalties are of use where factors are built from features.
WITH_PRIORS = 3.0
#: How many iterations with all ratings come last after early stopping.
FINISHING = 3

TINY = 1e-300


@dataclass(frozen=True, eq=False)
class ValidationSplit:
    """Ratings to learn from, and the users, items, levels and indices of those set aside."""

    train: Ratings
    users: IntArray
    items: IntArray
    codes: IntArray
    entries: IntArray

    @classmethod
    def at_random(
        cls, data: Ratings, rng: np.random.Generator, share: float = SHARE
    ) -> "ValidationSplit":
        """Set a random share of the ratings aside: at least one, and not all."""
        held = np.zeros(len(data), bool)
        n = min(max(1, round(share * len(data))), max(1, len(data) - 1))
        held[rng.permutation(len(data))[:n]] = True
        return cls.of(data, held)

    @classmethod
    def of(cls, data: Ratings, held: BoolArray) -> "ValidationSplit":
        """Set the marked ratings aside; users, items and levels keep their codes.

        Ratings set aside whose user or item has no other rating tell nothing about a factorisation
        and are not looked at, unless there are no others.
        """
        train, entries = data.subset(~held), np.flatnonzero(held)
        rated = np.bincount(train.indices, minlength=data.n_items) > 0
        fair = (np.diff(train.indptr) > 0)[data.rows[held]] & rated[data.indices[held]]
        if fair.any():
            entries = entries[fair]
        return cls(train, data.rows[entries], data.indices[entries], data.codes[entries], entries)

    @classmethod
    def to_calibrate(cls, data: Ratings, rng: np.random.Generator) -> "list[ValidationSplit]":
        """Set disjoint shares of the ratings aside, one after the other, until it is enough."""
        n_parts = min(round(1 / SHARE), len(data))
        if n_parts < 2:
            return [cls.at_random(data, rng)]
        part = rng.permutation(len(data)) % n_parts
        return [cls.of(data, part == k) for k in range(n_calibrations(len(data)))]

    @cached_property
    def frequencies(self) -> LevelFrequencies:
        """What is known of users and items from the ratings to learn from."""
        return LevelFrequencies.of(self.train)

    def features(self, margins: Sequence[FloatArray]) -> FloatArray:
        """Return what probabilities are calibrated on: margins, level frequencies and biases."""
        return features_of(margins, self.frequencies, self.users, self.items)


def n_calibrations(n_ratings: int) -> int:
    """Return how many shares `ValidationSplit.to_calibrate` sets aside."""
    most = max(1, min(round(1 / SHARE), n_ratings))
    return min(most, math.ceil(ENOUGH / (SHARE * n_ratings)))


def calibrated_on(splits: Sequence[ValidationSplit], margins: Sequence[FloatArray]) -> Calibrator:
    """Return what turns margins into probabilities, fitted to the ratings set aside."""
    features = [split.features([own]) for split, own in zip(splits, margins, strict=True)]
    codes = np.concatenate([split.codes for split in splits])
    return Calibrator.fit(np.vstack(features), codes, splits[0].train.n_levels)


def calibration_seed(random_state: Any) -> int:
    """Return a number to seed the hold-out with, also where the user gave none."""
    if isinstance(random_state, Integral):
        return int(random_state)
    generator = np.random.default_rng(random_state if random_state is None else 0)
    return int(generator.integers(2**31))


class HoldoutTrial(NamedTuple):
    """Stages that learn from all but the ratings set aside."""

    training: Training
    split: ValidationSplit

    def margins(self, solutions: Sequence[Solution]) -> FloatArray:
        """Return the margins that all stages' solutions give the ratings set aside."""
        return self.training.margins(solutions, self.split.users, self.split.items)

    def error_at(self, stage: int, parameters: Parameters) -> float:
        """Return the error of a stage's solution on the ratings set aside."""
        own, split = self.training.stages[stage], self.split
        return own.error(own.margins(parameters, split.users, split.items), split.codes)


class Tried(NamedTuple):
    """What one candidate gave: its error, and a solution for every trial."""

    reg: float
    error: float
    solutions: Sequence[Parameters]


def choose_regs(
    trials: Sequence[HoldoutTrial],
    rngs: Sequence[np.random.Generator],
    candidates_below: Callable[[float], Float64Array],
    metric: str,
    report: Report,
) -> list[RegularisationPath]:
    """Follow the regularisation path of every stage on all trials, which differ in their splits."""
    # Copies, so that the final fit starts where it would with the chosen reg given.
    rngs, training = deepcopy(rngs), trials[0].training
    chosen: dict[int, tuple[RegularisationPath, Tried | None]] = {}

    def choose(k: int, backend: Backend) -> RegularisationPath:
        after, limit = training.stages[k].after, strength_limit(training, k)
        begin, near = PATH_BEGIN * limit, None
        if after is not None:
            begin, near = chosen[after][0].best, chosen[after][1]
        walk = _Walk(trials, k, training.random_start(k, rngs[k]), backend, report, near)
        path = follow_path(walk.errors_at, metric, candidates_below(limit), max(begin, TINY))
        chosen[k] = path, walk.best
        return path

    for trial in trials:
        _ = trial.training.resident  # before stages that run side by side all ask for it
    return training.each(choose)


@dataclass
class _Walk:
    """The candidates of one stage, each from the nearest solution that is known."""

    trials: Sequence[HoldoutTrial]
    stage: int
    start: Parameters
    backend: Backend
    report: Report
    near: Tried | None
    best: Tried | None = None
    last: Tried | None = None

    def errors_at(self, reg: float) -> Float64Array:
        """Return the error of a candidate on every split."""
        tried = [self.near] if self.last is None else [self.best, self.last]
        known = [one for one in tried if one is not None]
        nearest = min(known, key=lambda one: abs(np.log(one.reg / reg)), default=None)
        errors, solutions = [], []
        for k, trial in enumerate(self.trials):
            part = trial.training.stages[self.stage].name or "path"
            start = self.start
            if nearest is not None:
                start = perturbed_start(nearest.solutions[k], self.start)
            name, shown = f"hold-out {k + 1}, {part}, reg {reg!r}", f"{part}, reg {reg:.3g}"
            about = (reg, start, self.backend, name, self.report(shown))
            parameters, _ = trial.training.solve(self.stage, *about)
            errors.append(trial.error_at(self.stage, parameters))
            solutions.append(parameters)
        self.last = Tried(reg, float(np.mean(errors)), solutions)
        # Of equals the strongest, as the path itself chooses.
        if self.best is None or (self.last.error, -reg) < (self.best.error, -self.best.reg):
            self.best = self.last
        return np.array(errors)


def perturbed_start(solution: Parameters, start: Parameters) -> Parameters:
    """Return a solution with some of the random start added.

    A stronger penalty has shrunk directions to nothing that a weaker one would keep, and nothing is
    a saddle point, which takes long to leave.
    """
    return solution._replace(
        users=solution.users + PERTURBATION * start.users,
        items=solution.items + PERTURBATION * start.items,
    )


def strength_limit(training: Training, stage: int) -> float:
    """Return about the smallest strength that leaves nothing but zeros: a singular value."""
    data, dtype, spec = training.data, training.dtype, training.stages[stage].spec
    thresholds = first_thresholds(data, spec).astype(dtype)
    slopes = training.backend.row_losses(data, spec, np.zeros(len(data), dtype), thresholds)[1]
    matrix = csr_array((slopes, data.indices, data.indptr), shape=(data.n_users, data.n_items))
    vector: Float64Array = np.ones(data.n_items)
    size = 0.0
    for _ in range(POWER_ITERATIONS):
        vector = matrix.T @ (matrix @ (vector / max(float(np.linalg.norm(vector)), TINY)))
        size = float(np.sqrt(np.linalg.norm(vector)))
    return size if training.priors is None else WITH_PRIORS * size


#: Every stage's solution, and what turns their margins into probabilities.
Validated = tuple[list[Solution], Calibrator]


def train_calibrated(
    training: Training,
    trials: Iterable[HoldoutTrial],
    regs: Sequence[float],
    rngs: Sequence[np.random.Generator],
    report: Report,
    callbacks: Sequence[Callback],
) -> Validated:
    """Learn from all but the ratings set aside, to calibrate on those; then from all ratings.

    The last part starts anew: going on from an earlier one would be quicker but train longer, and
    predict a little worse.  Callbacks see the last part alone.
    """
    splits, margins = [], []
    for k, trial in enumerate(trials, start=1):
        solutions = trial.training.train(regs, deepcopy(rngs), report, f"held out {k}")
        splits.append(trial.split)
        margins.append(trial.margins(solutions))
    solutions = training.train(regs, rngs, report, callbacks=callbacks)
    return solutions, calibrated_on(splits, margins)


def train_and_stop_early(
    training: Training,
    trial: HoldoutTrial,
    regs: Sequence[float],
    rngs: Sequence[np.random.Generator],
    report: Report,
    callbacks: Sequence[Callback],
    patience: int,
) -> Validated:
    """Learn from all but the ratings set aside until their error no longer falls; then from all.

    The second part goes on from the best point of the first for a few iterations, which predicts as
    well as a fit from the start for as many.  Callbacks see both parts.
    """
    stopped_by = trial.error_at, patience
    first = trial.training.train(regs, rngs, report, "", callbacks, stopped_by)
    finishing = replace(training, stopping=replace(training.stopping, max_iter=FINISHING))
    starts = [solution.parameters for solution in first]
    second = finishing.train(regs, starts, report, "all ratings", callbacks)
    joined = []
    for (_, result), (parameters, last) in zip(first, second, strict=True):
        n_evaluations = result.n_evaluations + last.n_evaluations
        result = replace(result, point=last.point, n_evaluations=n_evaluations)
        joined.append(Solution(parameters, result))
    return joined, calibrated_on([trial.split], [trial.margins(first)])
