"""Split ratings, fit every method, measure the errors: the work of several commands, in silence."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from marginmf import protocols
from marginmf._utils.types import Float64Array
from marginmf.cli.options import ProtocolOptions
from marginmf.cli.scores import Scores
from marginmf.datasets import RatingsTable
from marginmf.protocols import (
    Comparison,
    HoldOut,
    KFold,
    ListRule,
    RatingsSplit,
    SplitProtocol,
    StrongGeneralisation,
    splits,
)
from marginmf.protocols import WeakGeneralisation as Weak
from marginmf.protocols.splits import FEWEST


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
) -> Iterator[RatingsSplit]:
    """Yield the splits of a protocol; new users have the features that the table has of them.

    For ``lists`` one level is enough: there may be no ratings.
    """
    if len(table) < FEWEST:
        raise ValueError(
            f"{table.name} has {len(table)} ratings, too few to hold some of them out: give at "
            f"least {FEWEST}."
        )
    rule = ListRule() if lists else None
    yield from protocols.split_ratings(table, protocol, rule, **(features or {}))


def warm_up(models: Iterable[Any], split: RatingsSplit) -> None:
    """Fit every method to a few ratings, so that no fit is charged for compiling the kernels."""
    for model in models:
        splits.warm_up(model, split)


def judge(model: Any, split: RatingsSplit) -> Trial:
    """Fit a fresh copy of a method to a split and measure its errors."""
    result = split.evaluate(model)
    errors = dict(result.values)
    return Trial(errors, errors.pop("seconds"), result.model, result.predicted)


def compare(
    models: Mapping[str, Any],
    table: RatingsTable,
    protocol: SplitProtocol,
    step: Callable[[str], None] = lambda text: None,
    features: Mapping[str, Any] | None = None,
) -> dict[str, Scores]:
    """Judge every method on every split; ``step`` hears of each fit before it starts."""
    found = protocols.compare(
        table, models, protocol, progress=lambda done, total, text: step(text), **(features or {})
    )
    return {name: Scores(own) for name, own in found.values.items()}


def compare_lists(
    models: Mapping[str, Any],
    table: RatingsTable,
    protocol: SplitProtocol,
    rule: ListRule,
    step: Callable[[str], None] = lambda text: None,
    features: Mapping[str, Any] | None = None,
) -> Comparison:
    """Judge the lists of every method on every split, as `compare` judges ratings."""
    return protocols.compare(
        table,
        models,
        protocol,
        lists=rule,
        progress=lambda done, total, text: step(text),
        **(features or {}),
    )
