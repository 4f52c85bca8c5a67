"""`Ratings`: the one container of observed ratings that every ratings method works on."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Literal

import numpy as np
from scipy import sparse

from marginmf._utils.ids import shown
from marginmf._utils.parameters import check_option, warn
from marginmf._utils.saved import (
    Optional,
    Scale,
    Shaped,
    Sized,
    are_row_ends,
    are_sorted_in_rows,
    counts,
    floats,
    saved,
)
from marginmf._utils.types import Array, BoolArray, Float64Array, IntArray
from marginmf.backends.rows import SIDES, Rows, Side
from marginmf.datasets.table import as_pairs
from marginmf.ratings import scales, tables
from marginmf.ratings.features import Features, FeatureTable
from marginmf.ratings.ids import IdIndex, id_column
from marginmf.ratings.tables import SourceTable

#: What tables with a column for each level may take.
MOST_BYTES = 2 << 30

Duplicates = Literal["raise", "last", "mean"]


@saved
@dataclass(frozen=True, eq=False)
class Ratings(Rows):
    """Observed ratings on an ordered scale, by user and by item; absent means unobserved.

    Make one with `Ratings.of`.  Entry ``k`` is a rating by user ``rows[k]`` of item ``indices[k]``
    at level ``codes[k]``; entries are sorted by user, then item.  User ``i`` has the entries
    ``indptr[i]:indptr[i + 1]``, item ``j`` ``item_order[item_indptr[j]:item_indptr[j + 1]]``.

    Parameters
    ----------
    levels : array of shape (n_levels,)
        The scale, ascending.
    indptr, indices, codes : array
        The view by user; codes are indices into ``levels``.
    users, items : IdIndex
        The ids, both ways.
    exact : array, optional
        The ratings themselves, where levels are the means of bins; see ``n_levels`` of `of`.
    user_features, item_features : Features, optional
        Side information, with a row for each user, and for each item.
    source : SourceTable
        What the columns and the levels are called where the ratings came from.
    """

    users: IdIndex
    items: IdIndex
    exact: Float64Array | None = None
    user_features: Features | None = None
    item_features: Features | None = None
    source: SourceTable = field(default_factory=SourceTable)

    _saved: ClassVar[dict[str, Any]] = {
        "users": Sized(IdIndex, "users"),
        "items": Sized(IdIndex, "items"),
        "levels": Scale("levels"),
        "indptr": counts("users + 1"),
        "indices": Shaped(("int32",), ("ratings",), "items"),
        "codes": Shaped(("int16", "int32"), ("ratings",), "levels"),
        "exact": Optional(floats("ratings")),
        "user_features": Optional(Features),
        "item_features": Optional(Features),
        "source": Optional(SourceTable),
    }

    def _flaws(self, lengths: Mapping[str, int]) -> Iterator[str]:
        """Yield what is wrong with loaded ratings whose arrays have the right shapes."""
        if not are_row_ends(self.indptr, len(self.indices)):
            yield " are not divided among the users"
        elif not are_sorted_in_rows(self.indices, self.indptr):
            yield " are not in the order of the items"
        for side in SIDES:
            features = self.features(side)
            if features is not None and features.matrix.shape[0] != len(self.index(side)):
                yield f".{side}_features are of other {side}s"

    @classmethod
    def of(
        cls,
        data: Any,
        values: Any = None,
        *,
        user: Any = None,
        item: Any = None,
        rating: Any = None,
        duplicates: Duplicates = "raise",
        levels: Any = None,
        n_levels: int | None = None,
        users: IdIndex | None = None,
        items: IdIndex | None = None,
        user_features: Any = None,
        item_features: Any = None,
        names: Mapping[str, str] | None = None,
    ) -> "Ratings":
        """Make ratings from pairs, a data frame, a sparse matrix or other ratings.

        Parameters
        ----------
        data : pairs, data frame, sparse matrix or Ratings
            (user, item) pairs as an array with two columns, a list or a frame, together with
            ``values``; a frame with the columns user, item and rating; or a SciPy sparse matrix,
            whose stored entries are the ratings (a stored 0 is a rating of 0).
        values : sequence of float, optional
            The ratings of the pairs.
        user, item, rating : optional
            The columns of a frame; by default those with usual names, such as ``userId``,
            ``movieId`` and ``stars``.
        duplicates : {"raise", "last", "mean"}
            What to do when a pair occurs again: an error, keep the last, or the level that is
            nearest to the mean.
        levels : sequence of float or str, optional
            The scale; by default the values that occur, or the order of a categorical column.
            Words, from the lowest, become 1, 2 and so on.  Without it, words for two levels, such
            as ``like`` and ``dislike``, are 1 and 0.
        n_levels : int, optional
            Where more values than this occur, bin them into this many levels of about as many
            ratings each.  Predictions are means of bins; methods that estimate a number learn from
            the ratings themselves.
        users, items : IdIndex, optional
            Vocabularies to keep to; ratings by other users, or of other items, are left out.
        user_features, item_features : data frame, dict of columns or pair (ids, matrix), optional
            Side information; see `marginmf.ratings.features.FeatureTable.of`.  Ids that have
            features but no rating are known too.  That of other `Ratings` is not kept where
            ``users``, ``items`` or a scale is given.
        names : dict, optional
            What columns may be called beside the usual names, such as a model's ``column_names_``.

        Examples
        --------
        >>> data = Ratings.of([("ann", "Alien"), ("bob", "Brazil"), ("ann", "Brazil")], [4, 2, 5])
        >>> data
        Ratings(3 ratings of 2 items by 2 users, levels 2, 4, 5)
        >>> data.levels[data.codes]
        array([4., 5., 2.])
        """
        check_option("duplicates", duplicates, ("raise", "last", "mean"))
        if values is not None and (isinstance(data, Ratings) or sparse.issparse(data)):
            what = "A Ratings object" if isinstance(data, Ratings) else "A sparse matrix"
            raise ValueError(f"{what} holds its own ratings: leave the second argument out.")
        as_it_is = all(given is None for given in (levels, n_levels, users, items))
        if isinstance(data, Ratings) and as_it_is:
            return data.with_features(user_features, item_features)
        chosen = {"user": user, "item": item, "rating": rating}
        table, library = _given(data, values, names, chosen), tables.library_name(data)
        user_ids, item_ids = id_column(table.users, "user"), id_column(table.items, "item")
        values, words = scales.read_values(table, levels)
        levels = range(1, len(words) + 1) if words else levels
        source = SourceTable(table.columns, words, library if library in tables.LIBRARIES else None)
        if len(user_ids) != len(values):
            raise ValueError(
                f"There are {len(user_ids)} pairs but {len(values)} ratings: one rating belongs "
                "to each pair."
            )
        if len(user_ids) != len(item_ids):
            raise ValueError(f"There are {len(user_ids)} users but {len(item_ids)} items.")
        if len(values) == 0:
            raise ValueError("There are no ratings at all: nothing can be learned from them.")
        scale, codes, exact = scales.coded(values, levels, n_levels)
        known = np.ones(len(codes), bool)
        for given, ids in ((users, user_ids), (items, item_ids)):
            if given is not None:
                known &= given.encode(ids) >= 0
        if not known.all():
            user_ids, item_ids, codes = user_ids[known], item_ids[known], codes[known]
            exact = None if exact is None else exact[known]
        users = IdIndex(user_ids, "user") if users is None else users
        items = IdIndex(item_ids, "item") if items is None else items
        n_ids, shape = len(users) + len(items), (len(users), len(items))
        if (n_bytes := 8 * n_ids * len(scale)) > MOST_BYTES:
            raise ValueError(
                f"{len(scale)} levels of {n_ids} users and items would take "
                f"{n_bytes / 2**30:.1f} GiB to count. Round the ratings to fewer values, or bin "
                "them with Ratings.of(..., n_levels=10)."
            )
        rows, columns = users.encode(user_ids), items.encode(item_ids)
        matrix = sparse.coo_array((codes, (rows, columns)), shape=shape).tocsr()
        if matrix.nnz < len(codes):  # SciPy has added equal pairs up.
            kept, codes, exact = _without_duplicates(
                *(rows, columns, codes, exact, scale, duplicates, users, items)
            )
            rows, columns = rows[kept], columns[kept]
            matrix = sparse.coo_array((codes, (rows, columns)), shape=shape).tocsr()
        exact = None if exact is None else exact[np.lexsort((columns, rows))]
        indices = matrix.indices.astype(np.int32, copy=False)
        entries = matrix.indptr.astype(np.int64), indices, matrix.data
        made = cls(scale, *entries, users, items, exact, source=source)
        return made.with_features(user_features, item_features)

    def __repr__(self) -> str:
        shown = ", ".join(f"{level:g}" for level in self.levels[:12])
        more = ", ..." if self.n_levels > 12 else ""
        return (
            f"Ratings({len(self)} ratings of {self.n_items} items by {self.n_users} users, "
            f"levels {shown}{more})"
        )

    @property
    def values(self) -> Float64Array:
        """The ratings themselves, in the order of the entries."""
        return self.levels[self.codes] if self.exact is None else self.exact

    @property
    def pairs(self) -> Array:
        """The (user, item) pairs, in the order of the entries."""
        return as_pairs(self.users.ids[self.rows], self.items.ids[self.indices])

    def with_features(self, user_features: Any = None, item_features: Any = None) -> "Ratings":
        """Return these ratings with side information, as in `of`; ids that have it become known."""
        data: Ratings = self
        for side, source in zip(SIDES, (user_features, item_features), strict=True):
            if source is not None:
                data = _with_features(data, side, source)
        return data

    def features(self, side: Side) -> Features | None:
        """Return the side information of users, or of items."""
        return self.user_features if side == "user" else self.item_features

    def described(self, side: Side, features: Features | None) -> "Ratings":
        """Return the same ratings with other side information of users, or of items."""
        changed: Any = {f"{side}_features": features}
        return replace(self, **changed)

    def index(self, side: Side) -> IdIndex:
        """Return the vocabulary of users, or of items."""
        return self.users if side == "user" else self.items

    @property
    def n_users(self) -> int:
        """How many users there are."""
        return len(self.users)

    @property
    def n_items(self) -> int:
        """How many items there are."""
        return len(self.items)

    @property
    def arrays(self) -> dict[str, Array]:
        """Everything that was observed: two containers hold the same if these are the same."""
        described = {
            f"{side}'s {name}": array
            for side in SIDES
            if (features := self.features(side)) is not None
            for name, array in features.arrays.items()
        }
        return {
            **described,
            "users": self.users.ids,
            "items": self.items.ids,
            "levels": self.levels,
            "ratings per user": self.indptr,
            "rated items": self.indices,
            "ratings": self.codes if self.exact is None else self.exact,
        }

    @cached_property
    def _entries_by_item(self) -> Any:
        """The index of every entry in the view by user, as a sparse matrix in columns."""
        narrow = np.int32 if len(self) < 2**31 else np.int64
        # SciPy takes one type for both index arrays: the narrow one, or it would make wide copies.
        entries = (np.arange(len(self), dtype=narrow), self.indices, self.indptr.astype(narrow))
        return sparse.csr_array(entries, shape=(self.n_users, self.n_items)).tocsc()

    @cached_property
    def item_indptr(self) -> IntArray:
        """Where each item's entries begin in the view by item."""
        return self._entries_by_item.indptr.astype(np.int64)

    @property
    def item_indices(self) -> IntArray:
        """The user of every entry in the view by item."""
        return self._entries_by_item.indices.astype(np.int32, copy=False)

    @property
    def item_order(self) -> IntArray:
        """For every entry in the view by item, its index in the view by user."""
        return self._entries_by_item.data

    @cached_property
    def by_item(self) -> Rows:
        """The same ratings with an item in each row."""
        codes = self.codes[self.item_order]
        return Rows(self.levels, self.item_indptr, self.item_indices, codes)

    def view(self, side: Side) -> Rows:
        """Return the view by user, or by item."""
        return self if side == "user" else self.by_item

    def subset(self, kept: BoolArray) -> "Ratings":
        """Return the marked entries as ratings; users, items and levels keep their codes."""
        indptr = _row_ends(self.rows[kept], self.n_users)
        exact = None if self.exact is None else self.exact[kept]
        return replace(
            self, indptr=indptr, indices=self.indices[kept], codes=self.codes[kept], exact=exact
        )

    def level_counts(self, side: Side) -> IntArray:
        """Return how often each user used, or each item got, each level."""
        n = self.n_users if side == "user" else self.n_items
        counts = np.zeros(n * self.n_levels, np.int64)
        # Many rows at a time, but not all: the numbers of their cells are wide.
        for part, entries in self.parts():
            first, last = part.start, part.stop
            owner = self.indices[entries].astype(np.int64)
            if side == "user":
                owner = np.repeat(np.arange(first, last), np.diff(self.indptr[first : last + 1]))
            cells = owner * self.n_levels + self.codes[entries]
            low = int(cells.min(initial=0)) if side == "item" else first * self.n_levels
            found = np.bincount(cells - low)
            counts[low : low + len(found)] += found
        return counts.reshape(n, self.n_levels)


def _row_ends(rows: IntArray, n_rows: int) -> IntArray:
    return np.concatenate([[0], np.bincount(rows, minlength=n_rows).cumsum()]).astype(np.int64)


def _with_features(data: Ratings, side: Side, source: Any) -> Ratings:
    table, index = FeatureTable.of(source, side), data.index(side)
    described = IdIndex(table.ids, side)
    missing = described.encode(index.ids, quiet=True) < 0
    if missing.all() and len(index):
        raise ValueError(
            f"None of the {len(index)} {side}s that have ratings is among those with features: "
            f"ids are like {shown(index.ids[0])} there and like {shown(described.ids[0])} here."
        )
    warn_of_missing_features(missing, side)
    data = restricted(data, side, index.union(described))
    return data.described(side, Features.of(table, data.index(side)))


def warn_of_missing_features(missing: BoolArray, side: Side) -> None:
    """Warn of users or items, if any, that have no features where others have."""
    if missing.any():
        warn(
            f"{int(missing.sum())} of {len(missing)} {side}s have no features: they are learned "
            "from their ratings alone.",
        )


def _given(
    data: Any, values: Any, names: Mapping[str, str] | None, chosen: Mapping[str, Any]
) -> tables.Given:
    """Return users, items and ratings, and what they are called."""
    if isinstance(data, Ratings):
        ids = data.users.ids[data.rows], data.items.ids[data.indices]
        return tables.Given(*ids, data.values, data.source.columns, data.source.level_names)
    return tables.given_ratings(data, values, names=names, **chosen)


def _without_duplicates(
    rows: IntArray,
    columns: IntArray,
    codes: IntArray,
    exact: Float64Array | None,
    scale: Float64Array,
    duplicates: Duplicates,
    users: IdIndex,
    items: IdIndex,
) -> tuple[IntArray, IntArray, Float64Array | None]:
    """Return one entry for each pair, their codes and exact ratings, by the rule for duplicates."""
    pairs = rows.astype(np.int64) * len(items) + columns
    distinct, group = np.unique(pairs, return_inverse=True)
    counts = np.bincount(group)
    if duplicates == "raise":
        repeated = np.flatnonzero(counts > 1)
        listed = ", ".join(
            f"({shown(users.ids[pair // len(items)])}, {shown(items.ids[pair % len(items)])})"
            for pair in distinct[repeated[:3]]
        )
        raise ValueError(
            f"{len(repeated)} (user, item) pairs occur more than once: {listed}"
            f"{', ...' if len(repeated) > 3 else ''}. Remove the repeats, or choose with "
            "Ratings.of(..., duplicates='last') or duplicates='mean'."
        )
    if duplicates == "last":
        last = np.zeros(len(distinct), np.int64)
        last[group] = np.arange(len(codes))  # a later entry overwrites an earlier one
        return last, codes[last], None if exact is None else exact[last]
    first = np.zeros(len(distinct), np.int64)
    first[group[::-1]] = np.arange(len(codes))[::-1]
    means = np.bincount(group, scale[codes] if exact is None else exact) / counts
    return first, scales.nearest_codes(means, scale), None if exact is None else means


def restricted(data: Ratings, side: Side, ids: IdIndex) -> Ratings:
    """Return the ratings by some users, or of some items, alone; the other side stays whole."""
    users = ids if side == "user" else data.users
    items = ids if side == "item" else data.items
    rows = users.encode(data.users.ids)[data.rows]
    columns = items.encode(data.items.ids)[data.indices]
    kept = np.flatnonzero((rows >= 0) & (columns >= 0))
    # The order of ids, and so of entries, may change where ids cannot be compared.
    kept = kept[np.lexsort((columns[kept], rows[kept]))]
    exact = None if data.exact is None else data.exact[kept]
    return assemble(data, users, items, rows[kept], columns[kept], data.codes[kept], exact)


def observed(data: Ratings) -> Ratings:
    """Return ratings without ids that have neither ratings nor features: they are unknown."""
    for side in SIDES:
        index, features = data.index(side), data.features(side)
        known = np.zeros(len(index), bool)
        known[np.flatnonzero(np.diff(data.indptr)) if side == "user" else data.indices] = True
        if features is not None:
            known |= np.diff(features.matrix.indptr) > 0
        if not known.all():
            data = restricted(data, side, IdIndex(index.ids[known], index.what))
    return data


def assemble(
    like: Ratings,
    users: IdIndex,
    items: IdIndex,
    rows: IntArray,
    columns: IntArray,
    codes: IntArray,
    exact: Float64Array | None = None,
) -> Ratings:
    """Make ratings of entries that are in order, with the features that others have."""
    entries = columns.astype(np.int32, copy=False), codes.astype(scales.CODE, copy=False)
    ends = _row_ends(rows, len(users))
    data = Ratings(like.levels, ends, *entries, users, items, exact, source=like.source)
    for side in SIDES:
        own, index, known = like.features(side), data.index(side), like.index(side)
        if own is not None:
            data = data.described(side, own if index is known else own.joined(index, known))
    return data
