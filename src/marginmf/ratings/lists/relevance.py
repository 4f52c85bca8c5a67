"""What items are ranked by: expected ratings, chances to be liked, and relevance.

Relevance is the chance that the user takes the item (`Exposure`) times the chance to like it then.
People do not rate at random: what they rate is what they come across and choose.  Who rated what is
therefore a model of its own, by item-item weights, and lists need both.
"""

from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from marginmf._utils.parameters import check_option
from marginmf._utils.saved import floats, saved
from marginmf._utils.types import Float64Array, FloatArray, IntArray
from marginmf.backends.ranking import expected_ratings
from marginmf.ratings.data import Ratings
from marginmf.ratings.fitting.calibration import certainty, side_columns
from marginmf.ratings.ids import IdIndex
from marginmf.ratings.lists.neighbours import ItemWeights, Neighbourhoods, chosen_strength
from marginmf.ratings.lists.search import Lists
from marginmf.ratings.scales import lowest_liked

#: Codes of items, or a range of them.
Columns = IntArray | slice
RankedBy = Literal["relevance", "expected", "chance"]
#: By what share of their range scores of blocks and of pairs may differ: far more than rounding.
TOLERANCE = 2e-5
#: How much of its popularity is added to the score of an item, for users who have any.  It ranks
#: items without any weight from those that the user has.
BASE = 0.01


class MarginBlock(NamedTuple):
    """Scores of shape (n_margins or 1, n_users, n_items), and offsets (n_users, n_margins)."""

    scores: FloatArray
    offsets: FloatArray


def as_stages(factors: FloatArray) -> FloatArray:
    """Return factors with an axis for the stages, of which most methods have one."""
    return factors if factors.ndim == 3 else factors[None]


def block_product(left: FloatArray, right: FloatArray, out: FloatArray | None = None) -> FloatArray:
    """Return the inner products of all rows of one with all rows of the other, in float32."""
    left, right = (side.astype(np.float32, copy=False) for side in (left, right))
    return np.matmul(left, right.T, out=out)


@saved
@dataclass(frozen=True, eq=False)
class Exposure:
    """The chance that users take items, from the items that they have and their weights.

    Of users who have none, it is the share of the users in training who have the item.
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
        cls, data: Ratings, rng: np.random.Generator, n_threads: int = 1, strength: Any = None
    ) -> "Exposure":
        """Learn who takes what from ratings, however high; choose the strength unless given."""
        learn = partial(Neighbourhoods.learner, n_threads=n_threads)
        chosen = chosen_strength(data, rng, learn) if strength is None else strength
        return cls(learn(data)(chosen), item_shares(data), chosen)

    def among(self, items: IntArray | None) -> "Exposure":
        """Return the chances of some items only; users may have others too. None is all items."""
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
        """Return a model of more items: those that changed are learned, the others stay."""
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
        return np.where(has.lengths(users) > 0, BASE, 1.0)[:, None]


def item_shares(data: Ratings) -> Float64Array:
    """Return the share of the users with ratings who rated each item."""
    n_users = int((np.diff(data.indptr) > 0).sum())
    return np.diff(data.item_indptr) / max(n_users, 1)


class ExpectedValues:
    """The expected value of a level, less that of the lowest, of all users and some items."""

    def __init__(self, model: Any, values: Float64Array, items: IntArray | None = None) -> None:
        self.model, self.values, self.items = model, values - values[0], items
        self.cell_bytes = 4 * (len(values) + 1)  # margins, expected values and ties in float32
        self.tolerance = TOLERANCE * float(np.ptp(values))

    def block(self, users: IntArray, columns: slice) -> tuple[FloatArray, FloatArray]:
        """Return the values of a block, and the sums of margins that break their ties."""
        items: Columns = columns if self.items is None else self.items[columns]
        known = users >= 0
        if known.all():
            return self._known(users, items)
        numbers = np.arange(len(self.model.items_))[items]
        strangers = self._pairs(np.full(len(numbers), -1), numbers)
        expected, ties = (np.tile(row.astype(np.float32), (len(users), 1)) for row in strangers)
        if known.any():
            expected[known], ties[known] = self._known(users[known], items)
        return expected, ties

    def pairs(self, users: IntArray, columns: IntArray) -> tuple[Float64Array, Float64Array]:
        """Return the same of pairs, in float64 and independent of what else is asked for."""
        return self._pairs(users, columns if self.items is None else self.items[columns])

    def _pairs(self, users: IntArray, items: IntArray) -> tuple[Float64Array, Float64Array]:
        distribution = self.model._code_distribution(users, items)
        expected = np.einsum("nq,q->n", distribution, self.values)
        return expected, sum_of_margins(self.model._code_margins(users, items))

    def _known(self, users: IntArray, items: Columns) -> tuple[FloatArray, FloatArray]:
        model = self.model
        numbers = np.arange(len(model.items_))[items]
        calibrator = model._calibrator
        if calibrator is None:  # a method that gives a distribution itself
            shape = (len(users), len(numbers))
            found = self._pairs(np.repeat(users, shape[1]), np.tile(numbers, shape[0]))
            return tuple(part.reshape(shape).astype(np.float32) for part in found)  # type: ignore
        block, steps = model._margin_block(users, items), np.diff(self.values)
        n_margins, n_steps = block.offsets.shape[1], len(steps)
        user_features = model._frequencies.side_features("user", users)
        item_features = model._frequencies.side_features("item", numbers)
        by_user, by_item = side_columns(n_margins, n_steps, user_features.shape[1] > n_steps)
        shrink, shift = certainty(n_steps)
        arguments = (
            *block,
            calibrator.bounds[:, :n_margins],
            calibrator.weights[:, :n_margins],
            calibrator.intercepts + calibrator.part(user_features, by_user),
            calibrator.part(item_features, by_item).T,
            shrink * steps,
        )
        arrays = (np.ascontiguousarray(argument, np.float32) for argument in arguments)
        expected, ties = expected_ratings(*arrays, unimodal=calibrator.unimodal)
        expected += np.float32(shift @ steps)
        return expected, ties


class Relevance:
    """The chance to take an item times the chance to like it, which some of the levels mean."""

    def __init__(
        self, model: Any, exposure: Exposure, liked: Any, items: IntArray | None = None
    ) -> None:
        self.likes = ExpectedValues(model, liked.astype(np.float64), items)
        self.exposure = exposure.among(items)
        self.has = Lists.rated(model.ratings_)
        self.cell_bytes = self.likes.cell_bytes + 4
        self.tolerance = self.likes.tolerance

    def block(self, users: IntArray, columns: slice) -> tuple[FloatArray, FloatArray]:
        """Return the relevance of a block, and what breaks its ties; user -1 is unknown."""
        scores, ties = self.likes.block(users, columns)
        scores *= self.exposure.block(self.has, users, columns)
        return scores, ties

    def pairs(self, users: IntArray, columns: IntArray) -> tuple[Float64Array, Float64Array]:
        """Return the same of pairs, in float64 and independent of what else is asked for."""
        liked, ties = self.likes.pairs(users, columns)
        return self.exposure.pairs(self.has, users, columns) * liked, ties

    def factors(
        self, users: IntArray, columns: IntArray, distribution: Float64Array
    ) -> dict[str, Float64Array]:
        """Return both chances of pairs, of which the distribution is known, by their names."""
        return {
            "take": self.exposure.pairs(self.has, users, columns),
            "like": distribution @ self.likes.values,
        }


def item_scores(
    model: Any, by: RankedBy, level: float | None, items: IntArray | None
) -> "ExpectedValues | Relevance":
    """Return what the items of a model's lists are ranked by."""
    check_option("by", by, ("relevance", "expected", "chance"))
    if by == "expected":
        if level is not None:
            raise ValueError(
                "level says which ratings mean that an item is liked, which expected ratings do "
                "not ask: leave it out, or rank by='relevance' or by='chance'."
            )
        return ExpectedValues(model, model.levels_, items)
    levels, overall = model.levels_, model._frequencies.overall
    if level is None:
        level = lowest_liked(levels, float(overall @ levels / overall.sum()))
    elif level not in levels[1:]:
        listed = ", ".join(f"{each:g}" for each in levels[1:])
        raise ValueError(f"level={level!r} must be a level above the lowest: {listed}.")
    liked = levels >= level
    if by == "chance":
        return ExpectedValues(model, liked.astype(np.float64), items)
    exposure = model._with_exposure()._exposure
    assert exposure is not None
    return Relevance(model, exposure, liked, items)


def sum_of_margins(margins: FloatArray) -> Float64Array:
    """Return what breaks ties of expected ratings; infinite margins say nothing about items."""
    return np.where(np.isfinite(margins), margins, 0.0).sum(axis=1)
