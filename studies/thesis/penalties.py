"""Regularisation strengths where chapters 3 and 4 compare methods: chosen, scaled and tuned.

HMF takes one strength for each stage, other methods a single one.  A strength chosen for a stage
with next to no ratings on one side is noise: such a stage takes that of its nearest neighbour.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from marginmf._utils.types import BoolArray, Float64Array, IntArray
from marginmf.datasets import RatingsTable
from marginmf.metrics import ratings_report
from marginmf.ratings import HMF, Ratings
from studies.harness.cell import Values

#: A stage is rare if one of its sides has a smaller share of the ratings than this.
RARE = 0.01
#: The range of regularisation strengths, and how often its logarithm is halved: to one per cent.
WEAKEST, STRONGEST, MAX_FITS = 0.01, 1000.0, 10
#: The share of the training entries that strengths are chosen on in `measure_recovery`.
HELD_OUT = 0.1


def rare_stages(codes: IntArray, n_levels: int) -> BoolArray:
    """Return which stages ("above level q?") have next to no ratings on one of their sides.

    >>> rare_stages(np.repeat([0, 1, 2], [1, 150, 49]), 3)
    array([ True, False])
    """
    below = np.bincount(codes, minlength=n_levels).cumsum()[:-1] / len(codes)
    return np.minimum(below, 1 - below) < RARE


def guard_rare(chosen: np.ndarray, rare: BoolArray) -> np.ndarray:
    """Return what was chosen for each stage, rare stages with the choice of their neighbour.

    >>> guard_rare(np.array([80.0, 2.0, 3.0, 90.0]), np.array([True, False, False, True]))
    array([2., 2., 3., 3.])
    """
    known = np.flatnonzero(~rare)
    if len(known) == 0 or len(chosen) != len(rare):
        return chosen
    nearest = np.abs(np.arange(len(rare))[:, None] - known).argmin(axis=1)
    return chosen[known[nearest]]


def choose_strengths(estimator: Any, ratings: Ratings) -> Float64Array:
    """Return what ``reg="auto"`` chooses on held-out training ratings, rare stages guarded."""
    chosen = np.atleast_1d(clone(estimator).set_params(reg="auto").fit(ratings).reg_)
    return guard_rare(chosen, rare_stages(ratings.codes, ratings.n_levels))


def with_strengths(estimator: Any, regs: Float64Array | float) -> Any:
    """Return an unfitted copy with one strength, or one for each stage."""
    plain = np.asarray(regs, float)
    return clone(estimator).set_params(reg=plain.item() if plain.size == 1 else plain.tolist())


def fit_into_band(
    estimator: Any,
    ratings: Ratings,
    error: Callable[[Any], float],
    low: float,
    high: float,
    base: Float64Array | None = None,
) -> Any:
    """Return the estimator fitted with strengths whose training error is between low and high.

    They are multiples of the base, by default one strength for everything.  The error grows with
    them, so bisection finds them.  Where even the weakest leave more, as with few factors, the fit
    nearest to the band is returned.
    """
    shape = np.ones(1) if base is None else base / np.exp(np.log(base).mean())
    begin, end = math.log(WEAKEST), math.log(STRONGEST)
    nearest, distance = None, math.inf
    for _ in range(MAX_FITS):
        middle = (begin + end) / 2
        model = with_strengths(estimator, math.exp(middle) * shape).fit(ratings)
        found = error(model)
        off = max(low - found, found - high, 0.0)
        if nearest is None or off < distance:
            nearest, distance = model, off
        if off == 0:
            break
        begin, end = (middle, end) if found < low else (begin, middle)
    return nearest


def measure_recovery(
    table: RatingsTable, rows: Mapping[str, IntArray], estimator: Any, regs: Sequence[float]
) -> Values:
    """Learn from the ``"train"`` rows with every candidate, and score the completed matrix.

    Strengths are those with the smallest zero-one error, each stage's of its own, and are chosen
    twice: ``"validated"`` on a tenth of the training entries, which those candidates have not
    learned from, and ``"tuned"`` on the entries that are scored.  Those are ``"held_out"``, the
    ``"test"`` rows, and ``"all"``, training entries included.
    """
    train, levels = rows["train"], table.levels
    codes = np.searchsorted(levels, table.ratings[train])
    rare = rare_stages(codes, len(levels))
    order = np.random.default_rng(0).permutation(train)
    aside, rest = np.split(order, [round(HELD_OUT * len(train))])

    def answers(learned: IntArray, asked: IntArray | slice) -> list[np.ndarray]:
        known = Ratings.of(table.pairs[learned], table.ratings[learned], levels=levels)
        fits = (with_strengths(estimator, reg).fit(known) for reg in regs)
        return [_answers(model, table.pairs[asked]) for model in fits]

    def choose(found: Sequence[np.ndarray], asked: IntArray | slice) -> IntArray:
        wrong = np.array([_wrong(one, table.ratings[asked], levels) for one in found])
        # Of equals the strongest.
        return guard_rare(len(regs) - 1 - wrong[::-1].argmin(axis=0), rare)

    def score(chosen: IntArray, asked: IntArray | slice) -> float:
        columns = [whole[k][asked, q] for q, k in enumerate(chosen)]
        predicted = _complete(np.column_stack(columns), levels)
        return ratings_report(table.ratings[asked], predicted, levels)["fre"]

    validated = choose(answers(rest, aside), aside)
    whole = answers(train, slice(None))
    values: Values = {"regs": {"validated": [regs[k] for k in validated]}}
    for name, asked in {"held_out": rows["test"], "all": slice(None)}.items():
        tuned = choose([one[asked] for one in whole], asked)
        values[name] = {"validated": score(validated, asked), "tuned": score(tuned, asked)}
        values["regs"][f"tuned, {name}"] = [regs[k] for k in tuned]
    return values


def _answers(model: Any, pairs: np.ndarray) -> np.ndarray:
    """Return what a model says of pairs: of each stage yes or no, or in one column the level."""
    if isinstance(model, HMF):
        return model.decision_function(pairs) >= 0
    return model.predict(pairs, output="rule")[:, None]


def _wrong(answers: np.ndarray, ratings: np.ndarray, levels: np.ndarray) -> Float64Array:
    """Return the zero-one error of every column."""
    truth = ratings[:, None] > levels[:-1] if answers.dtype == bool else ratings[:, None]
    return (answers != truth).mean(axis=0)


def _complete(answers: np.ndarray, levels: np.ndarray) -> np.ndarray:
    """Return the levels that answers stand for: the first whose stage says no, or the highest."""
    if answers.dtype != bool:
        return answers[:, 0]
    return levels[np.where(answers.all(axis=1), len(levels) - 1, answers.argmin(axis=1))]
