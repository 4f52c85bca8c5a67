"""Split ratings, fit every method, measure the errors: the work of several commands, in silence."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from marginmf._utils.types import Float64Array
from marginmf.cli.options import ProtocolOptions
from marginmf.cli.scores import Scores
from marginmf.datasets import RatingsTable
from marginmf.metrics import ratings_report
from marginmf.protocols import (
    HoldOut,
    KFold,
    ListComparison,
    ListRule,
    SplitProtocol,
    StrongGeneralisation,
    judge_lists,
    splits,
)
from marginmf.protocols import WeakGeneralisation as Weak
from marginmf.protocols.splits import Split
from marginmf.ratings import Ratings

FEWEST_RATINGS = 20


@dataclass(frozen=True, eq=False)
class Trial:
    """One method on one split: its errors, how long its fit took, and what came of it."""

    errors: dict[str, float]
    seconds: float
    model: Any
    predicted: Float64Array


def make_protocol(options: ProtocolOptions, seed: int) -> SplitProtocol:
    """Return the protocol of that name, with the options that belong to it."""
    common: dict[str, Any] = {"n_splits": options.splits, "random_state": seed}
    if options.name == "holdout":
        return HoldOut(test_size=options.test_size, **common)
    if options.name == "kfold":
        if options.splits < 2:
            raise ValueError("kfold holds each part out once and needs 2 splits or more.")
        return KFold(**common)
    if options.name == "weak":
        return Weak(held_out=options.held_out, **common)
    users = options.train_users
    return StrongGeneralisation(
        n_train_users=int(users) if users > 1 else users,
        held_out=options.held_out,
        min_ratings=options.min_ratings,
        **common,
    )


def split_ratings(
    table: RatingsTable,
    protocol: SplitProtocol,
    features: Mapping[str, Any] | None = None,
    lists: bool = False,
) -> Iterator[Split]:
    """Yield the splits of a protocol; new users have the features that the table has of them.

    For ``lists`` one level is enough: there may be no ratings.
    """
    if len(table) < FEWEST_RATINGS:
        raise ValueError(
            f"{table.name} has {len(table)} ratings, too few to hold some of them out: give at "
            f"least {FEWEST_RATINGS}."
        )
    ratings = None if lists and len(table.levels) == 1 else table.ratings
    if not lists:
        Ratings.of(table.pairs, ratings)  # so that a fault anywhere is found now
    for split in splits.split_ratings(table.pairs, ratings, protocol, **(features or {})):
        if len(split.test_rows) == 0:
            raise ValueError(
                f"{table.name}: no user has enough ratings to hold some of them out ({protocol}); "
                "hold fewer out, or take another protocol."
            )
        yield split


def warm_up(models: Iterable[Any], split: Split, lists: bool = False) -> None:
    """Fit every method to a few ratings, so that no fit is charged for compiling the kernels."""
    few = np.zeros(len(split.train), bool)
    few[np.linspace(0, len(few) - 1, FEWEST_RATINGS).astype(np.int64)] = True
    sample = split.train.subset(few)
    for model in models:
        has = model.get_params()
        light = {"max_iter": 1, "verbose": 0, "reg": 1.0, "n_estimators": 1}
        quick = clone(model).set_params(**{key: light[key] for key in light if key in has})
        quick.fit(sample)
        if lists:
            quick.recommend(quick.users_.ids[:1], n=1)
        else:
            quick.predict(split.test_pairs[:1])


def judge(model: Any, split: Split) -> Trial:
    """Fit a fresh copy of a method to a split and measure its errors."""
    fitted, seconds = splits.fit_split(model, split)
    predicted = fitted.predict(split.test_pairs)
    errors = ratings_report(split.test_ratings, predicted, split.train.levels)
    return Trial(errors, seconds, fitted, predicted)


def compare(
    models: Mapping[str, Any],
    table: RatingsTable,
    protocol: SplitProtocol,
    step: Callable[[str], None] = lambda text: None,
    features: Mapping[str, Any] | None = None,
) -> dict[str, Scores]:
    """Judge every method on every split; ``step`` hears of each fit before it starts."""
    scores = {name: Scores() for name in models}
    for name, split in _fits(models, split_ratings(table, protocol, features), step):
        trial = judge(models[name], split)
        scores[name].add(trial.errors, trial.seconds)
    return scores


def compare_lists(
    models: Mapping[str, Any],
    table: RatingsTable,
    protocol: SplitProtocol,
    rule: ListRule,
    step: Callable[[str], None] = lambda text: None,
    features: Mapping[str, Any] | None = None,
) -> ListComparison:
    """Judge the lists of every method on every split, as `compare` judges ratings."""
    comparison = ListComparison(rule)
    for name, split in _fits(
        models, split_ratings(table, protocol, features, True), step, lists=True
    ):
        fitted, seconds = splits.fit_split(models[name], split)
        test = split.test_pairs, split.test_ratings
        comparison.add(name, judge_lists(fitted, *test, rule, training=split.train), seconds)
    return comparison


def _fits(
    models: Mapping[str, Any],
    found: Iterable[Split],
    step: Callable[[str], None],
    lists: bool = False,
) -> Iterator[tuple[str, Split]]:
    """Yield every method with every split, after the kernels have been compiled."""
    for number, split in enumerate(found, start=1):
        if number == 1:
            step("Compiling the kernels, which takes long only the first time")
            warm_up(models.values(), split, lists)
        for name in models:
            step(f"{name}, split {number}")
            yield name, split
