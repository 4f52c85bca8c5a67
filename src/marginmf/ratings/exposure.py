"""Exposure: the chance that a user would take an item, whatever they would think of it.

People do not rate at random: what they rate is what they come across and choose.  Who rated what
is therefore a model of its own, by item-item weights, and lists need both: an item that a user
would love but never take is as little use in a list as one that they would take and regret.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array

from marginmf._utils.saved import floats, saved
from marginmf._utils.types import Float64Array, FloatArray, IntArray
from marginmf.backends.ranking import Best, top_n
from marginmf.metrics import LIST_METRICS
from marginmf.ratings.data import Ratings, restricted
from marginmf.ratings.ids import IdIndex
from marginmf.ratings.neighbours import ItemWeights, Neighbourhoods
from marginmf.ratings.search import Lists

#: The strengths of the penalty among which one is chosen, and the one where nothing can be chosen.
STRENGTHS = (10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0)
USUAL_STRENGTH = 300.0
#: It is chosen on lists of this length (the first ten alone are few enough for chance to choose),
#: for at most so many users, of at most so many items (those that most users have), which leaves
#: its cost bounded.
LENGTH, MOST_USERS, MOST_ITEMS = 50, 2000, 3000
#: The share of these users' ratings that is held out.
HELD_OUT = 0.2
#: How much of its popularity is added to the score of an item, for users who have any.  It ranks
#: what the items that a user has say nothing of.
BASE = 0.01


#: Makes ready to learn item-item weights from who has what, with one strength after another.
Learn = Callable[[Ratings], Callable[[float], ItemWeights]]


@saved
@dataclass(frozen=True, eq=False)
class Exposure:
    """The chance that users take items, from the items that they have.

    Parameters
    ----------
    weights : ItemWeights
        What each item adds to the scores of others.
    shares : array of shape (n_items,)
        The share of the users in training who have the item: what is said of users who have none.
    strength : float
        The strength of the weights' penalty.
    """

    _saved: ClassVar[dict[str, Any]] = {
        "weights": ItemWeights,
        "shares": floats("items"),
        "strength": float,
    }

    weights: ItemWeights
    shares: Float64Array
    strength: float

    @classmethod
    def fit(
        cls,
        data: Ratings,
        rng: np.random.Generator,
        n_threads: int = 1,
        strength: float | None = None,
    ) -> "Exposure":
        """Learn who takes what from ratings, however high; choose the strength unless given."""

        def learn(data: Ratings) -> Callable[[float], ItemWeights]:
            near = Neighbourhoods.of(data, n_threads=n_threads)
            return lambda strength: near.weights(strength, n_threads)

        chosen = chosen_strength(data, rng, learn) if strength is None else strength
        return cls(learn(data)(chosen), item_shares(data), chosen)

    def among(self, items: IntArray | None) -> "Exposure":
        """Return the same for some items, which users may have others of; None is all of them."""
        if items is None:
            return self
        return Exposure(self.weights.among(items), self.shares[items], self.strength)

    def block(self, has: Lists, users: IntArray, columns: slice) -> FloatArray:
        """Return the chances of some users and items in float32; user -1 has nothing."""
        scores = self.weights.block(has, users, columns)
        np.maximum(scores, 0, out=scores)
        bases = self._bases(has, users).astype(np.float32)
        scores += bases * self.shares[columns].astype(np.float32)
        return scores

    def pairs(self, has: Lists, users: IntArray, items: IntArray) -> Float64Array:
        """Return the chances of pairs in float64."""
        scores = np.maximum(self.weights.pairs(has, users, items), 0)
        return scores + self._bases(has, users)[:, 0] * self.shares[items]

    def updated(self, data: Ratings, before: IdIndex, changed: IdIndex) -> "Exposure":
        """Return a model of more items: those that changed are learned, the others stay.

        What the new items say of others is learned when the others are.
        """
        old, new = (data.items.encode(index.ids) for index in (before, changed))
        learned = Neighbourhoods.of(data, new).weights(self.strength)
        shares = item_shares(data)
        kept = np.setdiff1d(old, new)
        shares[kept] = self.shares[before.encode(data.items.ids[kept])]
        ours, theirs = self.weights.matrix.tocoo(), learned.matrix.tocoo()
        stays = np.isin(old[ours.row], kept)
        rows = np.concatenate([old[ours.row[stays]], new[theirs.row]])
        columns = np.concatenate([old[ours.col[stays]], theirs.col])
        values = np.concatenate([ours.data[stays], theirs.data])
        matrix = csr_array((values, (rows, columns)), shape=(data.n_items, data.n_items))
        return Exposure(ItemWeights(matrix), shares, self.strength)

    def _bases(self, has: Lists, users: IntArray) -> FloatArray:
        """Return how much of its popularity an item is given, a row for each user."""
        bases: FloatArray = np.where(has.lengths(users) > 0, BASE, 1.0)[:, None]
        return bases


def chosen_strength(data: Ratings, rng: np.random.Generator, learn: Learn) -> float:
    """Return the strength whose lists find most of what was held out, by nDCG.

    Parameters
    ----------
    data : Ratings
        Who has what.
    rng : Generator
        Chooses what is held out.
    learn : callable
        From who has what to a function of a strength that gives the weights.
    """
    popular = np.argsort(-np.diff(data.item_indptr), kind="stable")[:MOST_ITEMS]
    if len(popular) < data.n_items:
        data = restricted(data, "item", IdIndex(data.items.ids[np.sort(popular)], "item"))
    counts = np.diff(data.indptr)
    judged = rng.permutation(np.flatnonzero(counts >= 2))[:MOST_USERS]
    if not len(judged) or data.n_items < 2:
        return USUAL_STRENGTH
    is_judged = np.zeros(data.n_users, bool)
    is_judged[judged] = True
    held = is_judged[data.rows] & (rng.random(len(data)) < HELD_OUT)
    held[data.indptr[judged]] |= np.diff(data.indptr)[judged] < 1 / HELD_OUT
    if not held.any() or held.all():
        return USUAL_STRENGTH
    train, test = data.subset(~held), data.subset(held)
    has, wanted = Lists.rated(train), Lists.rated(test)
    judged = judged[np.diff(test.indptr)[judged] > 0]
    weights_at = learn(train)

    @cache
    def found(place: int) -> float:
        return _ndcg(weights_at(STRENGTHS[place]), has, wanted, judged)

    # Lists get better up to some strength and worse beyond it: a walk from the usual one finds it.
    place = STRENGTHS.index(USUAL_STRENGTH)
    for step in (1, -1):
        while 0 <= place + step < len(STRENGTHS) and found(place + step) > found(place):
            place += step
    return STRENGTHS[place]


def _ndcg(weights: ItemWeights, has: Lists, wanted: Lists, users: IntArray) -> float:
    """Return the mean nDCG of users' lists."""
    total = 0.0
    for start in range(0, len(users), 256):
        some = users[start : start + 256]
        scores = weights.block(has, some, slice(None))
        best = Best.none_yet(len(some), min(LENGTH, scores.shape[1]), np.float32)
        top_n(scores, scores, *has.of(some), best)
        relevant = wanted.of(some)
        hits = relevant.contain(best.columns)
        total += LIST_METRICS["ndcg"](hits, np.diff(relevant.indptr), LENGTH).sum()
    return total / len(users)


def item_shares(data: Ratings) -> Float64Array:
    """Return the share of the users with ratings who rated each item."""
    n_users = int((np.diff(data.indptr) > 0).sum())
    return np.diff(data.item_indptr) / max(n_users, 1)
