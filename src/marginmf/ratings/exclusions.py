"""Which items are left out of a user's list: those seen, and those that a filter refuses."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from marginmf._ids import shown
from marginmf._typing import Array, IntArray
from marginmf.ratings.columns import split_pairs
from marginmf.ratings.ids import IdIndex

#: A function of a user's id and item ids that says which items may stay.
Keeps = Callable[[Any, Array], Any]


class Lists(NamedTuple):
    """Columns of every row, ascending, in compressed form."""

    indptr: IntArray
    columns: IntArray

    def of(self, rows: IntArray) -> "Lists":
        """Return the lists of some rows; those of row -1 are empty."""
        known = np.maximum(rows, 0)
        # Where nobody is known there may be no row 0 either.
        starts = self.indptr[known] if len(self.indptr) > 1 else np.zeros(len(rows), np.int64)
        stops = self.indptr[known + 1] if len(self.indptr) > 1 else starts
        lengths = np.where(rows >= 0, stops - starts, 0)
        indptr = np.concatenate(([0], np.cumsum(lengths)))
        places = np.arange(indptr[-1]) + np.repeat(starts - indptr[:-1], lengths)
        return Lists(indptr, self.columns[places])

    def among(self, place: IntArray) -> "Lists":
        """Return the lists with columns numbered by their ``place``, without those of place -1."""
        columns = place[self.columns]
        kept = columns >= 0
        indptr = np.concatenate(([0], np.cumsum(kept)))[self.indptr]
        return Lists(indptr, columns[kept])

    @classmethod
    def from_pairs(cls, rows: IntArray, columns: IntArray, n_rows: int, n_columns: int) -> "Lists":
        """Sort pairs of rows and columns into lists; repeats count once."""
        cells = np.unique(rows.astype(np.int64) * n_columns + columns)
        indptr = np.searchsorted(cells, np.arange(n_rows + 1) * np.int64(n_columns))
        return cls(indptr, (cells % max(n_columns, 1)).astype(np.int32))

    @classmethod
    def union(cls, lists: "list[Lists]", n_rows: int, n_columns: int) -> "Lists":
        """Return what is in any of the lists of each row."""
        if len(lists) == 1:
            return lists[0]
        numbers = np.arange(n_rows)
        rows = [np.repeat(numbers, np.diff(each.indptr)) for each in lists]
        columns = [each.columns for each in lists]
        empty = np.empty(0, np.int64)
        return cls.from_pairs(
            np.concatenate([empty, *rows]), np.concatenate([empty, *columns]), n_rows, n_columns
        )


def refused_pairs(pairs: Any, users: Array, items: IdIndex, place: IntArray | None) -> Lists:
    """Return the candidates that a filter in the form of pairs refuses, for each of the users.

    Pairs of other users and other items change nothing.
    """
    try:
        user_ids, item_ids = split_pairs(pairs)
    except ValueError as error:
        raise ValueError(
            "filter must be a function of a user's id and an array of item ids, or (user, item) "
            f"pairs to leave out. {error}"
        ) from None
    asked = IdIndex(users, "user")
    row_of = np.empty(len(asked), np.int64)
    row_of[asked.encode(users)] = np.arange(len(users))
    rows, columns = asked.encode(user_ids), items.encode(item_ids)
    known = (rows >= 0) & (columns >= 0)
    rows, columns = row_of[rows[known]], columns[known]
    lists = Lists.from_pairs(rows, columns, len(users), len(items))
    return lists if place is None else lists.among(place)


def refused_by(keeps: Keeps, users: Array, item_ids: Array) -> Lists:
    """Return the candidates that a function refuses, asked once for each of the users."""
    refused = []
    for user in users:
        user = user.item() if isinstance(user, np.generic) else user
        mask = np.asarray(keeps(user, item_ids))
        if mask.dtype != bool or mask.shape != item_ids.shape:
            raise ValueError(
                f"filter must return one True or False for each of the {len(item_ids)} items, but "
                f"for user {shown(user)} it returned {mask.dtype} of shape {mask.shape}."
            )
        refused.append(np.flatnonzero(~mask).astype(np.int32))
    indptr = np.concatenate(([0], np.cumsum([len(each) for each in refused]))).astype(np.int64)
    return Lists(indptr, np.concatenate([np.empty(0, np.int32), *refused]))
