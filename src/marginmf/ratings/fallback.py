"""What is known of users and items without a factorisation: level frequencies and biases."""

from dataclasses import dataclass, replace
from typing import Any, ClassVar, TypeVar

import numpy as np

from marginmf._utils.saved import Optional, counts, floats, saved
from marginmf._utils.types import Float64Array, IntArray
from marginmf.backends.rows import Side
from marginmf.ratings.biases import BiasProblem, biases_given, fit_biases, mean_rating
from marginmf.ratings.data import Ratings
from marginmf.ratings.ids import IdIndex

AnyArray = TypeVar("AnyArray", IntArray, Float64Array)

#: This many ratings drawn from all ratings are added to those of one user or item.
PRIOR_STRENGTH = 5.0


@saved
@dataclass(frozen=True, eq=False)
class LevelFrequencies:
    """How often each level was used: by each user, for each item, and in all.

    What is known of a pair speaks for it: the levels that the item got if the user is unknown,
    those that the user gave if the item is unknown, both if both are known, and all ratings if
    neither is.  Small counts are drawn towards all ratings, as if `PRIOR_STRENGTH` more ratings
    had been drawn from those.  The prediction that follows is the median.

    Parameters
    ----------
    by_user, by_item : array of shape (n_users, n_levels), (n_items, n_levels)
        How often each user gave, and each item got, each level.
    overall : array of shape (n_levels,)
        How often each level was used in all.
    placed : {"user", "item"}, optional
        Which side's ids came after training, if one's did: the counts of the other side are then
        of ratings that are not at hand.
    mean : float
        The mean rating.
    user_biases, item_biases : array of shape (n_users,), (n_items,), optional
        What each user and each item adds to the mean, damped as the counts are.  Unlike the
        frequencies, which are of one side alone, they allow for whom the other side consists of.
        Models that were saved before there were biases have none.
    """

    _saved: ClassVar[dict[str, Any]] = {
        "by_user": counts("users", "levels"),
        "by_item": counts("items", "levels"),
        "overall": floats("levels"),
        "mean": Optional(float),
        "user_biases": Optional(floats("users")),
        "item_biases": Optional(floats("items")),
    }
    by_user: IntArray
    by_item: IntArray
    overall: Float64Array
    placed: Side | None = None
    mean: float = 0.0
    user_biases: Float64Array | None = None
    item_biases: Float64Array | None = None

    @classmethod
    def of(cls, data: Ratings) -> "LevelFrequencies":
        """Count the levels of some ratings, and find the biases."""
        counts = data.level_counts("user"), data.level_counts("item")
        overall = counts[0].sum(axis=0).astype(np.float64)
        mean = mean_rating(data, counts[0])
        biases = fit_biases(BiasProblem(data, mean, PRIOR_STRENGTH, *counts))
        return cls(*counts, overall, None, mean, *biases)

    def distribution(self, users: IntArray, items: IntArray) -> Float64Array:
        """Return the probability of each level for each pair; code -1 means unknown.

        >>> data = Ratings.of([("ann", "x"), ("bob", "x"), ("bob", "y")], [1, 1, 5])
        >>> frequencies = LevelFrequencies.of(data)
        >>> frequencies.distribution(np.array([-1, -1]), np.array([-1, 0])).round(2)
        array([[0.6 , 0.4 ],
               [0.71, 0.29]])
        """
        counts = self._counts(users, items)
        distribution: Float64Array = counts / counts.sum(axis=1, keepdims=True)
        return distribution

    def log_odds(self, users: IntArray, items: IntArray) -> Float64Array:
        """Return the log-odds that the rating is above each level; code -1 means unknown."""
        return _log_odds(self._counts(users, items))

    def side_features(self, side: Side, codes: IntArray) -> Float64Array:
        """Return what a calibration knows of some users, or items: log-odds, then the bias."""
        table, rows = self.features_table(side, codes)
        features: Float64Array = table[rows]
        return features

    def features_table(self, side: Side, codes: IntArray) -> tuple[Float64Array, IntArray]:
        """Return a table of `side_features`, and the row that each of the codes has in it.

        A row for every id where there are more codes than ids: each is then computed once.

        >>> data = Ratings.of([("ann", "x"), ("bob", "x"), ("bob", "y")], [1, 1, 5])
        >>> table, rows = LevelFrequencies.of(data).features_table("item", np.array([1, 0, 1]))
        >>> table[:, 0].round(2), rows
        (array([-0.92,  0.  ]), array([1, 0, 1]))
        """
        counts = self.by_user if side == "user" else self.by_item
        biases = self.user_biases if side == "user" else self.item_biases
        if len(codes) < len(counts):
            counts, biases = counts[codes], None if biases is None else biases[codes]
            codes = np.arange(len(codes))
        table = _log_odds(counts + self._prior)
        return (table if biases is None else np.column_stack([table, biases])), codes

    def _counts(self, users: IntArray, items: IntArray) -> Float64Array:
        """Return how often each level was used by the users and for the items, and the prior."""
        counts = np.tile(self._prior, (len(users), 1))
        counts[users >= 0] += self.by_user[users[users >= 0]]
        counts[items >= 0] += self.by_item[items[items >= 0]]
        return counts

    @property
    def _prior(self) -> Float64Array:
        # One more of each level, so that no level is impossible.
        counts = self.overall + 1.0
        prior: Float64Array = PRIOR_STRENGTH * counts / counts.sum()
        return prior

    def placing(self, side: Side, data: Ratings) -> "LevelFrequencies":
        """Return these frequencies with the users, or the items, of other ratings."""
        own: Any = {f"by_{side}": data.level_counts(side)}
        given = self.item_biases if side == "user" else self.user_biases
        if given is not None:
            own[f"{side}_biases"] = biases_given(side, data, self.mean, PRIOR_STRENGTH, given)
        return replace(self, **own, placed=side)

    def changed(self, before: Ratings, after: Ratings) -> "LevelFrequencies":
        """Return the frequencies when the ratings at hand change; what is not at hand stays."""
        new = LevelFrequencies.of(after)
        if self.user_biases is None:  # as the calibrator expects it
            new = replace(new, mean=0.0, user_biases=None, item_biases=None)
        if self.placed is None:
            return new
        # Of the side that was given, the counts are of training; the newcomers are not in them.
        if self.placed == "user":
            ids = before.items, after.items
            by_item = _moved(self.by_item, *ids, new.by_item)
            kept = replace(self, by_item=by_item)
            if self.item_biases is not None and new.item_biases is not None:
                biases = _moved(self.item_biases, *ids, new.item_biases)
                kept = replace(kept, item_biases=biases)
        else:
            ids = before.users, after.users
            by_user = _moved(self.by_user, *ids, new.by_user)
            kept = replace(self, by_user=by_user)
            if self.user_biases is not None and new.user_biases is not None:
                biases = _moved(self.user_biases, *ids, new.user_biases)
                kept = replace(kept, user_biases=biases)
        return kept.placing(self.placed, after)


def _log_odds(counts: Float64Array) -> Float64Array:
    """Return the log-odds of being above each level but the last, from counts of all levels."""
    above = counts[:, ::-1].cumsum(axis=1)[:, -2::-1]
    below = counts.cumsum(axis=1)[:, :-1]
    log_odds: Float64Array = np.log(above) - np.log(below)
    return log_odds


def _moved(values: AnyArray, before: IdIndex, after: IdIndex, others: AnyArray) -> AnyArray:
    """Return values where their ids are in another vocabulary, and others' there."""
    moved = others.copy()
    moved[after.encode(before.ids)] = values
    return moved
