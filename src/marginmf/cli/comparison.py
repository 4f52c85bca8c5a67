"""Split ratings, fit every method, measure the errors: the work of the demo, without a word."""

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from sklearn.base import clone

from marginmf._typing import Array, Float64Array, IntArray
from marginmf.datasets import RatingsTable
from marginmf.metrics import mean_absolute_error, root_mean_squared_error, zero_one_error
from marginmf.protocols import HoldOut
from marginmf.ratings import Ratings

FEWEST_RATINGS = 20


@dataclass(frozen=True, eq=False)
class Split:
    """Ratings to learn from and ratings to be judged on."""

    train: Ratings
    sample: Ratings
    test_pairs: Array
    test_ratings: Float64Array
    test_rows: IntArray


@dataclass(frozen=True)
class Score:
    """How one method did on the held-out ratings, and how long its fit took."""

    mae: float
    zero_one: float
    rmse: float
    seconds: float


@dataclass(frozen=True, eq=False)
class Comparison:
    """Every method's score, predictions of the held-out ratings, and fitted model, by name."""

    scores: dict[str, Score]
    predicted: dict[str, Float64Array]
    models: dict[str, Any]

    @property
    def best(self) -> str:
        """The method with the smallest mean absolute error."""
        return min(self.scores, key=lambda name: self.scores[name].mae)


def hold_out(table: RatingsTable, seed: int) -> Split:
    """Hold a random fifth of the ratings out."""
    if len(table) < FEWEST_RATINGS:
        raise ValueError(
            f"{table.name} has {len(table)} ratings, too few to hold a fifth of them out: give at "
            f"least {FEWEST_RATINGS}."
        )
    pairs, ratings = table.pairs, table.ratings
    # All of them, so that a fault anywhere is found now, and the scale is the whole one.
    levels = Ratings.of(pairs, ratings).levels
    train, test = next(HoldOut(n_splits=1, random_state=seed).split(pairs))
    few = train[:FEWEST_RATINGS]
    return Split(
        Ratings.of(pairs[train], ratings[train], levels=levels),
        Ratings.of(pairs[few], ratings[few], levels=levels),
        pairs[test],
        ratings[test],
        test,
    )


def warm_up(models: Mapping[str, Any], split: Split) -> None:
    """Fit every method to a few ratings, so that no fit is charged for compiling the kernels."""
    for model in models.values():
        quick = clone(model).set_params(max_iter=1)
        if "verbose" in quick.get_params():
            quick.set_params(verbose=0)
        quick.fit(split.sample).predict(split.test_pairs[:1])


def compare(models: Mapping[str, Any], split: Split) -> Comparison:
    """Fit every method and measure its errors."""
    scores, predicted = {}, {}
    for name, model in models.items():
        started = time.perf_counter()
        model.fit(split.train)
        seconds = time.perf_counter() - started
        predicted[name] = model.predict(split.test_pairs)
        scores[name] = _score(split.test_ratings, predicted[name], seconds)
    return Comparison(scores, predicted, dict(models))


def _score(true: Float64Array, predicted: Float64Array, seconds: float) -> Score:
    return Score(
        mean_absolute_error(true, predicted),
        zero_one_error(true, predicted),
        root_mean_squared_error(true, predicted),
        seconds,
    )
