"""What items are ranked by: expected ratings, chances to be liked, and relevance.

Of every pair there is a distribution over the levels.  Lists are ranked by its mean (the expected
rating), by the chance of a rating at a level or above it (the chance to like), or by relevance: the
chance that the user takes the item (`marginmf.ratings.exposure`) times the chance to like it then.
"""

from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from marginmf._utils.types import Float64Array, FloatArray, IntArray
from marginmf.backends.ranking import expected_ratings
from marginmf.ratings.calibration import Calibrator, certainty, side_columns
from marginmf.ratings.exposure import Exposure
from marginmf.ratings.fallback import LevelFrequencies
from marginmf.ratings.scales import lowest_liked
from marginmf.ratings.search import Lists

if TYPE_CHECKING:
    from marginmf.ratings.base import RatingsPredictor

#: Codes of items, or a range of them.
Columns = IntArray | slice
RankedBy = Literal["relevance", "expected", "chance"]

#: So much of the range of scores blocks and pairs may differ: far more than rounding in float32.
TOLERANCE = 2e-5


class MarginBlock(NamedTuple):
    """What the margins of all of some users and items are the sum of.

    Scores are of shape (n_margins, n_users, n_items), or (1, n_users, n_items) where all margins
    share them, and offsets of shape (n_users, n_margins).
    """

    scores: FloatArray
    offsets: FloatArray


class ExpectedValues:
    """The expected value of a level, less that of the lowest, of all users and some items.

    Parameters
    ----------
    model : RatingsPredictor
        A fitted model, calibrated.
    values : array of shape (n_levels,)
        The value of each level, ascending.
    items : array of int, optional
        The items that there are columns for, as codes; by default all.
    """

    def __init__(
        self, model: "RatingsPredictor", values: Float64Array, items: IntArray | None = None
    ) -> None:
        self.model, self.values, self.items = model, values - values[0], items
        self.cell_bytes = 4 * (len(values) + 1)  # margins, expected values and ties in float32
        self.tolerance = TOLERANCE * float(np.ptp(values))

    def block(self, users: IntArray, columns: slice) -> tuple[FloatArray, FloatArray]:
        """Return the values of a block, and the sums of margins that break their ties.

        User -1 is unknown.
        """
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
        block = model._margin_block(users, items)
        return expected_block(block, calibrator, model._frequencies, users, numbers, self.values)


class Relevance:
    """The chance to take an item times the chance to like it; parameters as in `ExpectedValues`.

    Parameters
    ----------
    exposure : Exposure
        Who takes what.
    liked : array of bool, of shape (n_levels,)
        The levels that mean that an item is liked.
    """

    def __init__(
        self,
        model: "RatingsPredictor",
        exposure: Exposure,
        liked: Any,
        items: IntArray | None = None,
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


def liked_levels(model: "RatingsPredictor", level: float | None) -> Any:
    """Return which levels are at that level or above it; by default, above the mean rating.

    Raises ValueError where that is not a level, or the lowest one, which all ratings reach.
    """
    levels = model.levels_
    if level is None:
        overall = model._frequencies.overall
        return levels >= lowest_liked(levels, float(overall @ levels / overall.sum()))
    if level not in levels[1:]:
        listed = ", ".join(f"{each:g}" for each in levels[1:])
        raise ValueError(f"level={level!r} must be a level above the lowest: {listed}.")
    return levels >= level


def item_scores(
    model: "RatingsPredictor", by: RankedBy, level: float | None, items: IntArray | None
) -> "ExpectedValues | Relevance":
    """Return what the items of a model's lists are ranked by."""
    if by not in ("relevance", "expected", "chance"):
        raise ValueError(f"by={by!r} is not known. Choose 'relevance', 'expected' or 'chance'.")
    if by == "expected":
        if level is not None:
            raise ValueError(
                "level says which ratings mean that an item is liked, which expected ratings do "
                "not ask: leave it out, or rank by='relevance' or by='chance'."
            )
        return ExpectedValues(model, model.levels_, items)
    liked = liked_levels(model, level)
    if by == "chance":
        return ExpectedValues(model, liked.astype(np.float64), items)
    exposure = model.fit_exposure()._exposure
    assert exposure is not None
    return Relevance(model, exposure, liked, items)


def expected_block(
    block: MarginBlock,
    calibrator: Calibrator,
    frequencies: LevelFrequencies,
    users: IntArray,
    items: IntArray,
    values: Float64Array,
) -> tuple[FloatArray, FloatArray]:
    """Return expected values, less that of the lowest level, and what breaks their ties."""
    n_margins, n_steps = block.offsets.shape[1], len(values) - 1
    user_features = frequencies.side_features("user", users)
    item_features = frequencies.side_features("item", items)
    by_user, by_item = side_columns(n_margins, n_steps, user_features.shape[1] > n_steps)
    shrink, shift = certainty(n_steps)
    arguments = (
        block.scores,
        block.offsets,
        calibrator.bounds[:, :n_margins],
        calibrator.weights[:, :n_margins],
        calibrator.intercepts + calibrator.part(user_features, by_user),
        calibrator.part(item_features, by_item).T,
        shrink * np.diff(values),
    )
    expected, ties = expected_ratings(
        *(np.ascontiguousarray(argument, np.float32) for argument in arguments)
    )
    expected += np.float32(shift @ np.diff(values))
    return expected, ties


def sum_of_margins(margins: FloatArray) -> Float64Array:
    """Return what breaks ties of expected ratings; infinite margins say nothing about items.

    >>> sum_of_margins(np.array([[np.inf, 0.5, -1.0]]))
    array([-0.5])
    """
    total: Float64Array = np.where(np.isfinite(margins), margins, 0.0).sum(axis=1)
    return total
