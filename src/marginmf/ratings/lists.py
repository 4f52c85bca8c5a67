"""Lists: the items that users would like best, and neighbours in the space of factors."""

from collections.abc import Callable
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np

from marginmf._ids import shown
from marginmf._threads import n_threads
from marginmf._typing import Array, Float64Array, FloatArray, IntArray
from marginmf.backends import Backend
from marginmf.backends.ranking import expected_ratings
from marginmf.ratings.calibration import Calibrator, certainty, median, side_columns
from marginmf.ratings.fallback import LevelFrequencies
from marginmf.ratings.ids import IdIndex
from marginmf.ratings.search import Lists, best, refused_by, refused_pairs
from marginmf.ratings.tables import as_ids, known_codes, make_frame

if TYPE_CHECKING:
    from marginmf.ratings.base import RatingsPredictor

#: Codes of items, or a range of them.
Columns = IntArray | slice


def as_stages(factors: FloatArray) -> FloatArray:
    """Return factors with an axis for the stages, of which most methods have one."""
    return factors if factors.ndim == 3 else factors[None]


def block_product(left: FloatArray, right: FloatArray, out: FloatArray | None = None) -> FloatArray:
    """Return the inner products of all rows of one with all rows of the other, in float32."""
    left, right = (side.astype(np.float32, copy=False) for side in (left, right))
    product: FloatArray = np.matmul(left, right.T, out=out)
    return product


class MarginBlock(NamedTuple):
    """What the margins of all of some users and items are the sum of.

    Scores are of shape (n_margins, n_users, n_items), or (1, n_users, n_items) where all margins
    share them, and offsets of shape (n_users, n_margins).
    """

    scores: FloatArray
    offsets: FloatArray


def expected_block(
    block: MarginBlock,
    calibrator: Calibrator,
    frequencies: LevelFrequencies,
    users: IntArray,
    items: IntArray,
    levels: Float64Array,
) -> tuple[FloatArray, FloatArray]:
    """Return expected ratings, counted from the lowest level, and what breaks their ties."""
    n_margins, n_steps = block.offsets.shape[1], len(levels) - 1
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
        shrink * np.diff(levels),
    )
    expected, ties = expected_ratings(
        *(np.ascontiguousarray(argument, np.float32) for argument in arguments)
    )
    expected += np.float32(shift @ np.diff(levels))
    return expected, ties


def sum_of_margins(margins: FloatArray) -> Float64Array:
    """Return what breaks ties of expected ratings; infinite margins say nothing about items.

    >>> sum_of_margins(np.array([[np.inf, 0.5, -1.0]]))
    array([-0.5])
    """
    total: Float64Array = np.where(np.isfinite(margins), margins, 0.0).sum(axis=1)
    return total


def expected_ratings_block(
    model: "RatingsPredictor", users: IntArray, items: Columns
) -> tuple[FloatArray, FloatArray]:
    """Return expected ratings above the lowest level, and ties, of codes; -1 is unknown."""
    if (users >= 0).all():
        return _expected_known(model, users, items)
    numbers = np.arange(len(model.items_))[items]
    strangers = expected_ratings_pairs(model, np.full(len(numbers), -1), numbers)
    known = users >= 0
    expected, ties = (np.tile(row.astype(np.float32), (len(users), 1)) for row in strangers)
    if known.any():
        expected[known], ties[known] = _expected_known(model, users[known], items)
    return expected, ties


def expected_ratings_pairs(
    model: "RatingsPredictor", users: IntArray, items: IntArray
) -> tuple[Float64Array, Float64Array]:
    """Return the same for pairs, in float64 and independent of what else is asked for."""
    heights = model.levels_ - model.levels_[0]
    expected = np.einsum("nq,q->n", model._code_distribution(users, items), heights)
    return expected, sum_of_margins(model._code_margins(users, items))


def _expected_known(
    model: "RatingsPredictor", users: IntArray, items: Columns
) -> tuple[FloatArray, FloatArray]:
    numbers = np.arange(len(model.items_))[items]
    calibrator = model._calibrator
    if calibrator is None:  # a method that gives a distribution itself
        shape = (len(users), len(numbers))
        pairs = np.repeat(users, shape[1]), np.tile(numbers, shape[0])
        found = expected_ratings_pairs(model, *pairs)
        return tuple(part.reshape(shape).astype(np.float32) for part in found)  # type: ignore
    block = model._margin_block(users, items)
    return expected_block(block, calibrator, model._frequencies, users, numbers, model.levels_)


UnknownUsers = Literal["fallback", "raise", "skip"]

#: So much of the scale blocks and pairs may differ: far more than rounding in float32 does.
TOLERANCE = 2e-5
#: How many answers of a filter function are in memory at a time.
ANSWERS_AT_A_TIME = 2**24


def recommend(
    model: "RatingsPredictor",
    users: Any,
    n: int,
    exclude_seen: bool,
    candidates: Any,
    leave_out: Any,
    unknown: UnknownUsers,
) -> Any:
    """Return the frame of `RatingsEstimator.recommend`."""
    check_length(n)
    ids = model.users_.ids if users is None else as_ids(users, model.users_)
    codes = model.users_.encode(ids)
    ids, codes = _with_unknown(ids, codes, unknown)
    items = None
    if candidates is not None:
        items = np.sort(known_codes(as_ids(candidates, model.items_), model.items_, "candidates"))
    scorer = _ExpectedRatings(model, ids, codes, items, exclude_seen, leave_out)
    found = best(scorer, int(n), n_threads(model.n_jobs))
    item_codes = found.columns if items is None else items[found.columns]
    distribution = model._code_distribution(codes[found.rows], item_codes)
    return make_frame(
        {
            "user": ids[found.rows],
            "item": model.items_.ids[item_codes],
            "rank": found.ranks,
            "score": model.levels_[0] + found.scores,
            "rating": median(distribution, model.levels_),
        },
        users,
    )


def check_length(n: Any) -> None:
    """Raise ValueError unless n can be the length of a list."""
    if not isinstance(n, Integral) or isinstance(n, bool) or n < 1:
        raise ValueError(f"n={n!r} must be a whole number >= 1.")


def _with_unknown(ids: Array, codes: IntArray, unknown: UnknownUsers) -> tuple[Array, IntArray]:
    """Return ids and codes after dealing with users that training did not see."""
    if unknown not in ("fallback", "raise", "skip"):
        raise ValueError(f"unknown={unknown!r} is not known. Choose 'fallback', 'raise' or 'skip'.")
    known = codes >= 0
    if unknown == "fallback" or known.all():
        return ids, codes
    if unknown == "skip":
        return ids[known], codes[known]
    raise ValueError(
        f"{int((~known).sum())} of {len(ids)} users were not seen in training; the first is "
        f"{shown(ids[np.argmin(known)])}."
    )


class _ExpectedRatings:
    """Expected ratings above the lowest level, of users asked for (rows) and candidates."""

    def __init__(
        self,
        model: "RatingsPredictor",
        ids: Array,
        codes: IntArray,
        items: IntArray | None,
        exclude_seen: bool,
        leave_out: Any,
    ) -> None:
        self.model, self.ids, self.codes, self.items = model, ids, codes, items
        self.n_rows = len(codes)
        self.n_columns = len(model.items_) if items is None else len(items)
        n_cuts = len(model.levels_) - 1
        self.cell_bytes = 4 * (n_cuts + 2)  # margins, expected ratings and ties in float32
        self.tolerance = TOLERANCE * float(np.ptp(model.levels_))
        self.rows_at_a_time = max(1, self.n_rows)
        self._excluded: list[Callable[[IntArray], Lists]] = []
        position = self._positions()
        if exclude_seen:
            seen = Lists(model.ratings_.indptr, model.ratings_.indices)
            self._excluded.append(lambda rows: _among(seen.of(codes[rows]), position))
        if callable(leave_out):
            item_ids = model.items_.ids if items is None else model.items_.ids[items]
            self._excluded.append(lambda rows: refused_by(leave_out, ids[rows], item_ids))
            self.rows_at_a_time = max(1, ANSWERS_AT_A_TIME // max(1, self.n_columns))
        elif leave_out is not None:
            refused = refused_pairs(leave_out, ids, model.items_, position)
            self._excluded.append(refused.of)

    def block(self, rows: IntArray, columns: slice) -> tuple[FloatArray, FloatArray]:
        items: Columns = columns if self.items is None else self.items[columns]
        return expected_ratings_block(self.model, self.codes[rows], items)

    def pairs(self, rows: IntArray, columns: IntArray) -> tuple[Float64Array, Float64Array]:
        items = columns if self.items is None else self.items[columns]
        return expected_ratings_pairs(self.model, self.codes[rows], items)

    def excluded(self, rows: IntArray) -> Lists:
        lists = [excluded(rows) for excluded in self._excluded]
        return Lists.union(lists, len(rows), self.n_columns)

    def _positions(self) -> IntArray | None:
        """Return the index of every item among the candidates, -1 for none; None: all are."""
        if self.items is None:
            return None
        position = np.full(len(self.model.items_), -1, np.int32)
        position[self.items] = np.arange(len(self.items))
        return position


def _among(lists: Lists, position: IntArray | None) -> Lists:
    return lists if position is None else lists.among(position)


def similar(model: "RatingsPredictor", values: Any, n: int, index: IdIndex, side: str) -> Any:
    """Return the frame of `similar_items` or `similar_users`; ``side`` names the factors."""
    check_length(n)
    factors = getattr(model, side, None)
    if factors is None:
        raise ValueError(
            f"{type(model).__name__} has no factors, so no {index.what} is more similar than "
            "another. Use a method with factors, such as HMF, MMMF or ALS."
        )
    ids = as_ids(values, index)
    codes = known_codes(ids, index, f"{index.what}s")
    scorer = _Cosines(as_stages(factors), codes, model._arithmetic())
    found = best(scorer, int(n), n_threads(model.n_jobs))
    return make_frame(
        {
            index.what: ids[found.rows],
            "similar": index.ids[found.columns],
            "rank": found.ranks,
            "similarity": found.scores,
        },
        values,
    )


class _Cosines:
    """Cosines of the factors of some ids (rows) with those of all (columns)."""

    cell_bytes = 4 * 2  # a product and the sum of the stages' products, in float32
    tolerance = 1e-5

    def __init__(self, factors: FloatArray, codes: IntArray, backend: Backend) -> None:
        self.factors, self.codes, self.backend = factors, codes, backend
        self.n_rows, self.n_columns = len(codes), factors.shape[1]
        self.rows_at_a_time = max(1, self.n_rows)
        squares = np.einsum("qjd,qjd->j", factors, factors, dtype=np.float64)
        # What has no length is similar to nothing: 0, not 0/0.
        with np.errstate(divide="ignore"):
            self.scale = np.where(squares > 0, 1.0 / np.sqrt(squares), 0.0)

    def block(self, rows: IntArray, columns: slice) -> tuple[FloatArray, FloatArray]:
        codes = self.codes[rows]
        left, right = (self.scale[side, None].astype(np.float32) for side in (codes, columns))
        cosines = sum(block_product(F[codes] * left, F[columns] * right) for F in self.factors)
        return cosines, cosines  # type: ignore[return-value]  # there is at least one stage

    def pairs(self, rows: IntArray, columns: IntArray) -> tuple[Float64Array, Float64Array]:
        codes = self.codes[rows]
        products = np.zeros(len(rows))
        for stage in self.factors:
            products += self.backend.scores(codes, columns, stage, stage)
        cosines = np.clip(products * (self.scale[codes] * self.scale[columns]), -1.0, 1.0)
        return cosines, cosines

    def excluded(self, rows: IntArray) -> Lists:
        return Lists(np.arange(len(rows) + 1), self.codes[rows])
