"""What to say about users and items that were not seen in training."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from marginmf._typing import Float64Array, IntArray
from marginmf.ratings.data import Ratings
from marginmf.ratings.ids import IdIndex
from marginmf.ratings.rows import Side

#: So many ratings drawn from all ratings are added to those of one user or item.
PRIOR_STRENGTH = 5.0


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
    """

    by_user: IntArray
    by_item: IntArray
    overall: Float64Array
    placed: Side | None = None

    @classmethod
    def of(cls, data: Ratings) -> "LevelFrequencies":
        """Count the levels of some ratings."""
        overall = np.bincount(data.codes, minlength=data.n_levels).astype(np.float64)
        return cls(data.level_counts("user"), data.level_counts("item"), overall)

    def distribution(self, users: IntArray, items: IntArray) -> Float64Array:
        """Return the probability of each level for each pair; code -1 means unknown.

        >>> data = Ratings.of([("ann", "x"), ("bob", "x"), ("bob", "y")], [1, 1, 5])
        >>> frequencies = LevelFrequencies.of(data)
        >>> frequencies.distribution(np.array([-1, -1]), np.array([-1, 0])).round(2)
        array([[0.6 , 0.4 ],
               [0.71, 0.29]])
        """
        # One more of each level, so that no level is impossible.
        prior = self.overall + 1.0
        counts = np.tile(PRIOR_STRENGTH * prior / prior.sum(), (len(users), 1))
        counts[users >= 0] += self.by_user[users[users >= 0]]
        counts[items >= 0] += self.by_item[items[items >= 0]]
        distribution: Float64Array = counts / counts.sum(axis=1, keepdims=True)
        return distribution

    def log_odds(self, users: IntArray, items: IntArray) -> Float64Array:
        """Return the log-odds that the rating is above each level; code -1 means unknown."""
        distribution = self.distribution(users, items)
        above = distribution[:, ::-1].cumsum(axis=1)[:, -2::-1]
        below = distribution.cumsum(axis=1)[:, :-1]
        log_odds: Float64Array = np.log(above) - np.log(below)
        return log_odds

    def placing(self, side: Side, data: Ratings) -> "LevelFrequencies":
        """Return these frequencies with the users, or the items, of other ratings."""
        counts: Any = {f"by_{side}": data.level_counts(side)}
        return replace(self, **counts, placed=side)

    def changed(self, before: Ratings, after: Ratings) -> "LevelFrequencies":
        """Return the frequencies when the ratings at hand change; what is not at hand stays."""
        new = LevelFrequencies.of(after)
        if self.placed is None:
            return new
        # Of the side that was given, the counts are of training; the newcomers are not in them.
        if self.placed == "user":
            by_item = _moved(self.by_item, before.items, after.items, new.by_item)
            return replace(self, by_user=new.by_user, by_item=by_item)
        by_user = _moved(self.by_user, before.users, after.users, new.by_user)
        return replace(self, by_user=by_user, by_item=new.by_item)


def _moved(counts: IntArray, before: IdIndex, after: IdIndex, others: IntArray) -> IntArray:
    """Return counts at the places that their ids have in another vocabulary, and others' there."""
    moved = others.copy()
    moved[after.encode(before.ids)] = counts
    return moved
