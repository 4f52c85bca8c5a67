"""What to say about users and items that were not seen in training."""

from dataclasses import dataclass

import numpy as np

from marginmf._typing import Float64Array, FloatArray, IntArray
from marginmf.ratings.data import Ratings

#: So many ratings drawn from all ratings are added to those of one user or item.
PRIOR_STRENGTH = 5.0


@dataclass(frozen=True, eq=False)
class LevelFrequencies:
    """How often each level was used: by each user, for each item, and in all.

    An unknown user is judged by the item's level frequencies, an unknown item by the user's, and
    a pair with both unknown by all ratings; small counts are drawn towards all ratings.  The
    prediction that follows is the median of these frequencies.
    """

    by_user: IntArray
    by_item: IntArray
    overall: Float64Array

    @classmethod
    def of(cls, data: Ratings) -> "LevelFrequencies":
        """Count the levels of some ratings."""
        # One more of each level, so that no level is impossible.
        counts = np.bincount(data.codes, minlength=data.n_levels) + 1.0
        return cls(data.level_counts("user"), data.level_counts("item"), counts / counts.sum())

    def distribution(self, users: IntArray, items: IntArray) -> Float64Array:
        """Return the probability of each level; code -1 means unknown."""
        counts = np.zeros((len(users), len(self.overall)))
        only_user, only_item = (users >= 0) & (items < 0), (users < 0) & (items >= 0)
        counts[only_user] = self.by_user[users[only_user]]
        counts[only_item] = self.by_item[items[only_item]]
        counts += PRIOR_STRENGTH * self.overall
        distribution: Float64Array = counts / counts.sum(axis=1, keepdims=True)
        return distribution

    def log_odds(self, users: IntArray, items: IntArray) -> FloatArray:
        """Return the log-odds that the rating is above each level; code -1 means unknown."""
        distribution = self.distribution(users, items)
        above = distribution[:, ::-1].cumsum(axis=1)[:, -2::-1]
        below = distribution.cumsum(axis=1)[:, :-1]
        log_odds: FloatArray = np.log(above) - np.log(below)
        return log_odds
