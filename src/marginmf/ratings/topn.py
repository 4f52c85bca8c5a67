"""The items that users would like best: `recommend` of every ratings estimator."""

from collections.abc import Callable
from numbers import Integral
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from marginmf._ids import shown
from marginmf._threads import n_threads
from marginmf._typing import Array, Float64Array, FloatArray, IntArray
from marginmf.ratings.blocks import Columns
from marginmf.ratings.exclusions import Lists, refused_by, refused_pairs
from marginmf.ratings.frames import as_ids, known_codes, make_frame
from marginmf.ratings.search import best

if TYPE_CHECKING:
    from marginmf.ratings.recommender import Recommender

UnknownUsers = Literal["fallback", "raise", "skip"]

#: So much of the scale blocks and pairs may differ: far more than rounding in float32 does.
TOLERANCE = 2e-5
#: How many answers of a filter function are in memory at a time.
ANSWERS_AT_A_TIME = 2**24


def recommend(
    model: "Recommender",
    users: Any,
    n: int,
    exclude_seen: bool,
    candidates: Any,
    leave_out: Any,
    unknown: UnknownUsers,
) -> Any:
    """Return the frame of `Recommender.recommend`."""
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
    user_codes = codes[found.rows]
    return make_frame(
        {
            "user": ids[found.rows],
            "item": model.items_.ids[item_codes],
            "rank": found.ranks,
            "score": model.levels_[0] + found.scores,
            "rating": model._predict_codes(user_codes, item_codes),
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
        model: "Recommender",
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
        place = self._places()
        if exclude_seen:
            seen = Lists(model.ratings_.indptr, model.ratings_.indices)
            self._excluded.append(lambda rows: _among(seen.of(codes[rows]), place))
        if callable(leave_out):
            item_ids = model.items_.ids if items is None else model.items_.ids[items]
            self._excluded.append(lambda rows: refused_by(leave_out, ids[rows], item_ids))
            self.rows_at_a_time = max(1, ANSWERS_AT_A_TIME // max(1, self.n_columns))
        elif leave_out is not None:
            refused = refused_pairs(leave_out, ids, model.items_, place)
            self._excluded.append(refused.of)

    def block(self, rows: IntArray, columns: slice) -> tuple[FloatArray, FloatArray]:
        items: Columns = columns if self.items is None else self.items[columns]
        return self.model._expected_block(self.codes[rows], items)

    def pairs(self, rows: IntArray, columns: IntArray) -> tuple[Float64Array, Float64Array]:
        items = columns if self.items is None else self.items[columns]
        return self.model._expected_pairs(self.codes[rows], items)

    def excluded(self, rows: IntArray) -> Lists:
        lists = [excluded(rows) for excluded in self._excluded]
        return Lists.union(lists, len(rows), self.n_columns)

    def _places(self) -> IntArray | None:
        """Return the place of every item among the candidates, -1 for none; None: all are."""
        if self.items is None:
            return None
        place = np.full(len(self.model.items_), -1, np.int32)
        place[self.items] = np.arange(len(self.items))
        return place


def _among(lists: Lists, place: IntArray | None) -> Lists:
    return lists if place is None else lists.among(place)
