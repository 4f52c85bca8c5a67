"""Ranked lists on held-out ratings: how much of what users like the lists of a model find."""

from dataclasses import dataclass
from math import isfinite
from numbers import Real
from typing import Any, Literal

import numpy as np
from sklearn.utils import gen_batches

from marginmf._utils.parameters import check_whole
from marginmf._utils.types import Array, Float64Array, IntArray
from marginmf.metrics import LIST_METRICS, metric
from marginmf.metrics.lists import exposure
from marginmf.ratings.data import Ratings
from marginmf.ratings.estimator import RatingsEstimator
from marginmf.ratings.ids import IdIndex, id_column
from marginmf.ratings.lists.relevance import RankedBy, item_shares
from marginmf.ratings.positive import PositiveOnly
from marginmf.ratings.scales import as_values, lowest_liked
from marginmf.ratings.tables import split_pairs, table_columns
from marginmf.stats import bootstrap_interval

#: How many entries of lists are in memory at a time.
ENTRIES_AT_A_TIME = 2**21


@dataclass(frozen=True)
class ListRule:
    """How lists are made, and what counts as right.

    Parameters
    ----------
    k : int
        The length of the lists.  They are shorter where fewer items are left.
    level : None, "any" or float
        Which held-out ratings are relevant: those at this level or above.  None is the lowest level
        above the mean of the training ratings, which is what a user likes; with "any", all are.
    by : {"relevance", "expected", "chance"}, optional
        What `recommend` ranks items by; None is the estimator's own default.  What is relevant here
        is liked there.  Methods that predict no ratings have one way to rank, and ignore this.

    Examples
    --------
    >>> from marginmf.ratings import Ratings
    >>> data = Ratings.of([("ann", "x"), ("ann", "y"), ("bob", "x")], [2, 4, 5])
    >>> ListRule().threshold(data), ListRule(level=5).threshold(data)
    (4.0, 5.0)
    """

    k: int = 10
    level: float | Literal["any"] | None = None
    by: RankedBy | None = None

    def __post_init__(self) -> None:
        check_whole("k", self.k)
        level = self.level
        number = isinstance(level, Real) and not isinstance(level, bool) and isfinite(level)
        if not (level is None or level == "any" or number):
            raise ValueError(f"level={level!r} is not a rating. Give a number, 'any' or None.")
        if self.by not in (None, "relevance", "expected", "chance"):
            raise ValueError(
                f"by={self.by!r} is not known. Choose 'relevance', 'expected' or 'chance'."
            )

    def threshold(self, training: Ratings) -> float:
        """Return from which rating on an item is relevant; it must be on the training scale."""
        levels, level = training.levels, self.level
        if level == "any":
            return -np.inf
        if level is None:
            return lowest_liked(levels, float(training.values.mean()))
        if training.exact is None:
            known, scale = level in levels, ", ".join(f"{one:g}" for one in levels)
        else:  # levels are means of bins, and any rating will do
            low, high = training.exact.min(), training.exact.max()
            known, scale = low <= level <= high, f"{low:g} to {high:g}"
        if not known:
            raise ValueError(f"level={level:g} is not on the scale of the ratings: {scale}.")
        return float(level)

    def options(self, model: Any, threshold: float) -> dict[str, Any]:
        """Return what a model's `recommend` is told beside the users and the length."""
        if not isinstance(model, RatingsEstimator):
            return {"unknown": "fallback"} if isinstance(model, PositiveOnly) else {}
        options: dict[str, Any] = {} if self.by is None else {"by": self.by}
        options["unknown"] = "fallback"  # a protocol may well ask for users that it held out
        above = model.levels_[model.levels_ >= threshold]
        if self.by != "expected" and 0 < len(above) < len(model.levels_):
            options["level"] = float(above[0])
        return options


@dataclass(frozen=True, eq=False)
class ListScores:
    """How good a model's lists are, user by user.

    Parameters
    ----------
    users : array
        The ids of the users judged: those with a relevant held-out item.
    values : dict of str to array
        For each of `marginmf.metrics.LIST_METRICS`, the value of every user.
    overall : dict of str to float
        Coverage of the model's items, novelty and popularity of all lists together.
    """

    users: Array
    values: dict[str, Float64Array]
    overall: dict[str, float]

    def mean(self, name: str) -> float:
        """Return a metric's mean over the users, or what is measured of all lists together."""
        wanted = metric(name, "lists").name
        return self.overall[wanted] if wanted in self.overall else float(self.values[wanted].mean())

    def interval(self, name: str, confidence: float = 0.95) -> tuple[float, float]:
        """Return where a metric's mean over users lies, by the bootstrap."""
        if not metric(name, "lists").is_per_user:
            raise ValueError(f"{name} is measured of all lists together: it has no interval.")
        return bootstrap_interval(self.values[name], confidence)

    def report(self) -> dict[str, float]:
        """Return every metric's mean, and how many users it is of."""
        means = {name: self.mean(name) for name in self.values}
        return {**means, **self.overall, "n_users": len(self.users)}


def judge_lists(
    model: Any, pairs: Any, ratings: Any, rule: ListRule, *, training: Ratings | None = None
) -> ListScores:
    """Make lists for the users of held-out ratings, and measure how much they find.

    Lists hold no items that the user rated in training.  Users without a relevant held-out item
    are left out.  Held-out items that the model does not know count as relevant, although no list
    can have them; users that training did not see get the lists that `recommend` has for them.

    Parameters
    ----------
    model : estimator
        Fitted; any with ``recommend(users, n=...)``, ``items_`` and ``ratings_``.
    pairs, ratings
        What was held out, in any form that ``fit`` takes.
    rule : ListRule
        The length of the lists, and what is relevant.
    training : Ratings, optional
        The ratings that the model was fitted to, which say what users like and how popular items
        are; by default ``model.ratings_``, which are those of the new users after a fold-in.

    Examples
    --------
    >>> from marginmf.ratings import BiasOnly
    >>> pairs = [("ann", "x"), ("ann", "y"), ("bob", "x"), ("bob", "z"), ("cy", "z")]
    >>> model = BiasOnly().fit(pairs, [5, 3, 4, 2, 3])
    >>> scores = judge_lists(model, [("cy", "x"), ("cy", "y")], [5, 1], ListRule(k=2))
    >>> scores.users.tolist(), scores.mean("recall")
    (['cy'], 1.0)
    """
    training = model.ratings_ if training is None else training
    threshold = rule.threshold(training)
    relevant = _Relevant(pairs, ratings, threshold)
    options = rule.options(model, threshold)
    n_ranks = min(rule.k, len(model.items_))
    blocks: dict[str, list[Float64Array]] = {name: [] for name in LIST_METRICS}
    counts = np.zeros(len(model.items_), np.int64)
    for rows in gen_batches(len(relevant.users), max(1, ENTRIES_AT_A_TIME // n_ranks)):
        ids, columns = relevant.users.ids[rows], ("user", "item", "rank")
        frame = model.recommend(ids, n=rule.k, **options)
        users, items, ranks = table_columns(frame, *columns)
        hits = np.zeros((len(ids), n_ranks), bool)
        found = relevant.users.encode(users)
        hits[found - rows.start, ranks.astype(np.int64) - 1] = relevant.has(found, items)
        counts += np.bincount(model.items_.encode(items), minlength=len(counts))
        for name, one in LIST_METRICS.items():
            blocks[name].append(one(hits, relevant.n_items[rows], rule.k))
    values = {name: np.concatenate(own) for name, own in blocks.items()}
    codes = training.items.encode(model.items_.ids)
    shares = np.where(codes >= 0, item_shares(training)[codes], 0.0)
    return ListScores(relevant.users.ids, values, exposure(counts, shares))


class _Relevant:
    """Who should find what: pairs of codes as one number each, ascending."""

    def __init__(self, pairs: Any, ratings: Any, threshold: float) -> None:
        user_ids, item_ids = split_pairs(pairs)
        values = as_values(ratings)
        if len(user_ids) != len(values):
            raise ValueError(f"There are {len(user_ids)} pairs but {len(values)} ratings.")
        liked = values >= threshold
        if not liked.any():
            floor = "at all" if threshold == -np.inf else f"of {threshold:g} or above"
            raise ValueError(f"There is no held-out rating {floor}, so no item is relevant.")
        user_ids, item_ids = id_column(user_ids, "user")[liked], id_column(item_ids, "item")[liked]
        self.users, self.items = IdIndex(user_ids, "user"), IdIndex(item_ids, "item")
        rows = self.users.encode(user_ids).astype(np.int64)
        self.cells = np.unique(rows * len(self.items) + self.items.encode(item_ids))
        self.n_items = np.bincount(self.cells // len(self.items), minlength=len(self.users))

    def has(self, users: IntArray, items: Array) -> Array:
        """Return which pairs of a user's code and an item's id are relevant."""
        codes = self.items.encode(items, quiet=True).astype(np.int64)
        cells = users.astype(np.int64) * len(self.items) + codes
        index = np.minimum(np.searchsorted(self.cells, cells), len(self.cells) - 1)
        return (codes >= 0) & (self.cells[index] == cells)
