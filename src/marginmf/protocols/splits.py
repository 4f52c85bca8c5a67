"""Data on splits: what a model learns from, what it is judged on, and what came of it."""

import time
import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any, get_args

import numpy as np
from scipy import sparse
from sklearn.base import clone

from marginmf._utils.ids import as_id_column
from marginmf._utils.indicators import as_indicator
from marginmf._utils.parameters import check_option
from marginmf._utils.sparse import check_sparse
from marginmf._utils.types import Array, Float64Array, IntArray
from marginmf.backends.rows import SIDES
from marginmf.datasets import LabelsTable, RatingsTable
from marginmf.datasets.table import as_pairs
from marginmf.metrics import PROBABILITY_METRICS, labels_report, ratings_report
from marginmf.metrics.table import CUTOFFS, label_probabilities, label_scores
from marginmf.protocols.lists import ListRule, ListScores, judge_lists
from marginmf.protocols.splitters import n_rows, no_times, time_column
from marginmf.ratings.base import Output
from marginmf.ratings.data import Ratings
from marginmf.ratings.features import FeatureTable
from marginmf.ratings.ids import IdIndex, id_column
from marginmf.ratings.positive import PositiveOnly
from marginmf.ratings.scales import as_values, read_values
from marginmf.ratings.tables import check_pairs, given_ratings, is_table, split_pairs, take_rows

#: With fewer ratings there is nothing to hold out; as many rows are enough to compile kernels.
FEWEST = 20

#: The points of a predicted distribution.
OUTPUTS = get_args(Output)

#: A splitter, or (train, test) row numbers themselves.
Protocol = Any


@dataclass(frozen=True, eq=False)
class SplitResult:
    """What a model reached on a split.

    Parameters
    ----------
    values : dict of str to float
        By metric; ``seconds`` are those of the fit.
    lists : ListScores, optional
        The metrics of every user, where lists were judged.
    model, predicted : optional
        The fitted copy and, unless lists were judged, its predictions for the test rows.
    """

    values: dict[str, float]
    lists: ListScores | None = None
    model: Any = None
    predicted: Any = None


@dataclass(frozen=True, eq=False)
class RatingsSplit:
    """One split of ratings.

    Parameters
    ----------
    train : Ratings
        What models learn from.
    fold_in : Ratings or None
        Ratings of new users, which fold them in after the fit; of items in training alone.
    test_pairs, test_ratings, test_rows : array
        What models are judged on, and its row numbers in all the data.
    rule : ListRule, optional
        Judge lists by this rule instead of predicted ratings.
    output : {"median", "mode", "mean", "rule"}
        Which point of the predicted distribution is judged, as in ``predict``.
    """

    train: Ratings
    fold_in: Ratings | None
    test_pairs: Any
    test_ratings: Float64Array
    test_rows: IntArray
    rule: ListRule | None = None
    output: Output = "median"

    def evaluate(self, model: Any) -> SplitResult:
        """Fit a fresh copy of a model and measure its ratings or, by a rule, its lists."""
        if self.rule is not None:
            self.rule.threshold(self.train)  # a fault is found before a fit
        elif isinstance(model, PositiveOnly):
            raise ValueError(
                f"{type(model).__name__} makes lists and predicts no ratings: judge it with "
                "lists=ListRule()."
            )
        fitted, seconds = _timed_fit(model, self.train)
        fitted = fitted.fold_in(self.fold_in) if self.fold_in else fitted
        if self.rule is not None:
            test = self.test_pairs, self.test_ratings
            lists = judge_lists(fitted, *test, self.rule, training=self.train)
            values = {name: value for name, value in lists.report().items() if name != "n_users"}
            return SplitResult({**values, "seconds": seconds}, lists, fitted)
        # An estimator of one's own need not know any other answer than its own.
        other = {} if self.output == "median" else {"output": self.output}
        predicted = fitted.predict(self.test_pairs, **other)
        values = ratings_report(self.test_ratings, predicted, self.train.levels)
        return SplitResult({**values, "seconds": seconds}, None, fitted, predicted)

    def warm_up(self, model: Any) -> None:
        """Fit a copy of a model to a few ratings."""
        few = np.zeros(len(self.train), bool)
        few[np.linspace(0, len(few) - 1, FEWEST).astype(np.int64)] = True
        quick = _quick(model).fit(self.train.subset(few))
        if self.rule is None:
            quick.predict(take_rows(self.test_pairs, np.arange(1)))
        else:
            quick.recommend(quick.users_.ids[:1], n=1)


@dataclass(frozen=True, eq=False)
class LabelsSplit:
    """Samples to learn from, and samples to be judged on."""

    train: tuple[Any, Any]
    test: tuple[Any, Any]
    cutoffs: list[int]
    #: A metric of scores and one of probabilities that were asked for, if any were.
    ranked: str | None
    calibrated: str | None

    def evaluate(self, model: Any) -> SplitResult:
        """Fit a fresh copy of a model; measure its label sets, its scores and probabilities."""
        fitted, seconds = _timed_fit(model, *self.train)
        X, Y = self.test
        predicted, scores = fitted.predict(X), None
        has_scores = any(hasattr(fitted, one) for one in ("decision_function", "predict_proba"))
        if self.ranked or has_scores:
            scores = label_scores(fitted, X, self.ranked or "coverage")
        values = labels_report(Y, predicted, scores, self.cutoffs, self._probabilities(fitted))
        return SplitResult({**values, "seconds": seconds}, None, fitted, predicted)

    def _probabilities(self, fitted: Any) -> Any:
        """Return the probabilities of all labels; None where there are none, nor asked for."""
        X, Y = self.test
        if self.calibrated:
            return label_probabilities(fitted, X, self.calibrated)
        if not hasattr(fitted, "predict_proba"):
            return None
        # Of a single label, scikit-learn's classifiers may give those of two classes.
        found = label_probabilities(fitted, X, "")
        return found if np.shape(found) == Y.shape else None

    def warm_up(self, model: Any) -> None:
        """Fit a copy of a model to a few samples."""
        X, Y = (part[:FEWEST] for part in self.train)
        _quick(model).fit(X, Y).predict(X[:1])


def split_ratings(
    data: Any,
    protocol: Protocol,
    lists: ListRule | None = None,
    *,
    times: Any = None,
    output: Output = "median",
    user_features: Any = None,
    item_features: Any = None,
) -> Iterator[RatingsSplit]:
    """Yield the splits of ratings; ``split.evaluate(model)`` fits a model and measures it.

    Parameters
    ----------
    data, protocol, lists, times, output, user_features, item_features
        As in `compare`.

    Examples
    --------
    >>> from marginmf.datasets import make_ratings
    >>> from marginmf.protocols import HoldOut
    >>> from marginmf.ratings import BiasOnly
    >>> split = next(split_ratings(make_ratings(30, 30, random_state=0), HoldOut()))
    >>> result = split.evaluate(BiasOnly())
    >>> len(result.predicted) == len(split.test_ratings), sorted(result.values)[:2]
    (True, ['fre', 'mae'])
    """
    table = AllRatings(data, lists, times, output, user_features, item_features)
    yield from map(table.split, table.rows(protocol))


class AllRatings:
    """All the ratings of a comparison; without any, all that counts is who has what."""

    def __init__(
        self,
        data: Any,
        rule: ListRule | None = None,
        times: Any = None,
        output: Output = "median",
        user_features: Any = None,
        item_features: Any = None,
    ) -> None:
        self.name, self.pairs, self.ratings = _pairs_and_ratings(data, rule is not None)
        self.n_rows, self.rule, self.output = n_rows(self.pairs), rule, output
        # Times that nothing asks for may be anything, so they are looked at by the protocol alone.
        table = data[0] if isinstance(data, tuple) else data
        self.times, self.columns = time_column(table) if times is None else (times, [])
        check_option("output", output, OUTPUTS)
        if rule is not None and output != "median":
            raise ValueError(f"output={output!r} is an answer on ratings, but lists are judged.")
        if self.ratings is None:
            self.values, self.levels = np.ones(self.n_rows), np.array([0.0, 1.0])
        else:  # the scale is that of all ratings: a training set may lack a level by chance
            self.values = as_values(self.ratings).astype(np.float64, copy=False)
            self.levels = np.unique(self.values)
        if self.n_rows != len(self.values):
            raise ValueError(f"There are {self.n_rows} pairs but {len(self.values)} ratings.")
        if len(self.levels) == 1:
            raise ValueError(
                f"Every rating is {self.levels[0]:g}: with one level there is nothing to tell "
                "apart.\nFor methods that make lists from who has what, give None for ratings."
            )
        self.features = {  # read once, so that what is wrong with them is said once
            f"{side}_features": FeatureTable.of(own, side)
            for side, own in zip(SIDES, (user_features, item_features), strict=True)
            if own is not None
        }

    def rows(self, protocol: Protocol) -> Iterator[tuple[IntArray, ...]]:
        """Yield the row numbers of every split."""
        split = getattr(protocol, "split", lambda *_: protocol)
        timed = getattr(protocol, "needs_times", False)
        if timed and self.times is None:
            raise no_times(self.columns)
        for rows in split(self.pairs, self.ratings, *([self.times] if timed else ())):
            if len(rows[-1]) == 0:
                raise ValueError(
                    f"{self.name}: no user has enough ratings to hold some of them out "
                    f"({protocol}); hold fewer out, or take another protocol."
                )
            yield rows

    def split(self, rows: tuple[IntArray, ...]) -> RatingsSplit:
        """Return the ratings of a split."""

        def at(rows: IntArray, **known: Any) -> Ratings:
            pairs = take_rows(self.pairs, rows)
            return Ratings.of(pairs, self.values[rows], levels=self.levels, **known)

        train, *fold_in, test = rows
        known = at(train, **self.features)
        return RatingsSplit(
            known,
            at(fold_in[0], items=known.items) if fold_in else None,
            take_rows(self.pairs, test),
            self.values[test],
            test,
            self.rule,
            self.output,
        )

    def unknown_share(self, rows: tuple[IntArray, ...]) -> float:
        """Return which share of a split's test rows has a user or an item that was not learned."""
        *learned, test = rows
        unknown = np.zeros(len(test), bool)
        for codes in self._codes:
            seen = np.zeros(int(codes.max()) + 1, bool)
            for part in learned:
                seen[codes[part]] = True
            unknown |= ~seen[codes[test]]
        return float(unknown.mean())

    @cached_property
    def _codes(self) -> list[IntArray]:
        """The users and the items as whole numbers from 0."""
        return [IdIndex(ids).encode(ids) for ids in split_pairs(self.pairs)]

    @property
    def users(self) -> IdIndex | None:
        """The users' ids, each once, where lists are judged."""
        return None if self.rule is None else IdIndex(split_pairs(self.pairs)[0], "user")

    @property
    def settings(self) -> dict[str, Any]:
        """What is measured."""
        rule = self.rule
        kind = "lists" if rule else "ratings"
        return {"comparison": kind, "lists": rule and asdict(rule), "output": self.output}

    @property
    def arrays(self) -> dict[str, Array]:
        """What tells these ratings from others."""
        ids = zip(SIDES, split_pairs(self.pairs), strict=True)
        arrays = {f"{side}s": id_column(own, side) for side, own in ids}
        arrays["ratings"] = self.values
        for side, table in self.features.items():
            columns = {"ids": table.ids, **table.columns}
            arrays |= {f"{side}, {name}": column for name, column in columns.items()}
        return arrays


def _pairs_and_ratings(data: Any, lists: bool) -> tuple[str, Any, Any]:
    """Return the name of the data, the pairs, and the ratings, None where there are none."""
    if isinstance(data, RatingsTable):
        without = lists and len(data.levels) == 1
        return data.name, data.pairs, None if without else data.ratings
    if isinstance(data, Ratings):
        if data.user_features is not None or data.item_features is not None:
            raise ValueError(
                "Ratings with side information cannot be split: give (pairs, ratings), and the "
                "features as user_features= and item_features=."
            )
        return "The data", data.pairs, data.values
    if is_table(data):
        given = given_ratings(data)
        pairs = as_pairs(as_id_column(given.users, "user"), as_id_column(given.items, "item"))
        return "The data", pairs, read_values(given)[0]
    if isinstance(data, tuple) and len(data) == 2:
        check_pairs(data[0])
        return "The data", *data
    raise ValueError(
        "The data must be a RatingsTable, Ratings, a frame with the columns user, item and rating, "
        f"or a pair (pairs, ratings), not {type(data).__name__}."
    )


class AllSamples:
    """All the samples of a comparison; ``asked`` are metrics of more than sets that are wanted."""

    users = None  # no lists are judged

    def __init__(self, data: Any, asked: list[str]) -> None:
        if isinstance(data, LabelsTable):
            data = data.X, data.Y
        if not (isinstance(data, tuple) and len(data) == 2):
            raise ValueError(
                f"The data must be a LabelsTable or a pair (X, Y), not {type(data).__name__}."
            )
        for name, part in zip("XY", data, strict=True):
            check_sparse(part, name)
        X, Y = (part.tocsr() if sparse.issparse(part) else np.asarray(part) for part in data)
        n_samples, n_labels = as_indicator(Y, "Y").shape
        if X.ndim != 2 or X.shape[0] != n_samples:
            raise ValueError(
                f"X has the shape {X.shape} but Y {Y.shape}: both need a row for each sample."
            )
        named = {int(name.rpartition("_")[2]) for name in asked if "_at_" in name}
        self.cutoffs = sorted(named | {k for k in CUTOFFS if k <= n_labels})
        self.X, self.Y = X, Y
        self.ranked = next((name for name in asked if name not in PROBABILITY_METRICS), None)
        self.calibrated = next((name for name in asked if name in PROBABILITY_METRICS), None)

    def rows(self, protocol: Protocol) -> Iterator[tuple[IntArray, ...]]:
        """Yield the row numbers of every split."""
        yield from protocol.split(self.X, self.Y) if hasattr(protocol, "split") else protocol

    def split(self, rows: tuple[IntArray, ...]) -> LabelsSplit:
        """Return the samples of a split."""
        train, test = rows
        learned, judged = ((self.X[own], self.Y[own]) for own in (train, test))
        return LabelsSplit(learned, judged, self.cutoffs, self.ranked, self.calibrated)

    @property
    def settings(self) -> dict[str, Any]:
        """What is measured."""
        return {"comparison": "labels", "cutoffs": self.cutoffs}

    @property
    def arrays(self) -> dict[str, Array]:
        """What tells these samples from others."""
        arrays: dict[str, Array] = {}
        for name in ("X", "Y"):
            table: Any = getattr(self, name)
            if sparse.issparse(table):
                parts = {"values": table.data, "columns": table.indices, "rows": table.indptr}
                arrays |= {f"{name}, {part}": array for part, array in parts.items()}
            else:
                arrays[name] = table
        return arrays


#: The models whose kernels are compiled in this process.
_WARM: set[str] = set()


def warm_up(model: Any, split: RatingsSplit | LabelsSplit) -> None:
    """Fit a model to a few rows first, so that no seconds of a fit are those of a compiler."""
    key = f"{type(split).__name__} {model!r}"
    if key not in _WARM:
        _WARM.add(key)
        with warnings.catch_warnings(), suppress(Exception):  # a real fault is met again in the fit
            warnings.simplefilter("ignore")
            split.warm_up(model)


def _quick(model: Any) -> Any:
    """Return a copy of a model that compiles the same kernels in as little time as possible."""
    light = {"max_iter": 1, "verbose": 0, "reg": 1.0, "n_estimators": 1, "decision": "sign"}
    # An estimator around another has the parameters of that one too, as estimator__reg.
    named = {name: name.rpartition("__")[2] for name in model.get_params()}
    quick = {name: light[own] for name, own in named.items() if own in light}
    return clone(model).set_params(**quick)


def _timed_fit(model: Any, *data: Any) -> tuple[Any, float]:
    fresh = clone(model)
    started = time.perf_counter()
    fitted = fresh.fit(*data)
    return fitted, time.perf_counter() - started
