"""The n best columns of every row of a score matrix that is never whole in memory.

A first look scores blocks of rows and columns by matrix products in float32, and keeps a few more
of the best than asked for.  A second look scores those one by one, always in the same way, and
ranks them.  So the answer does not depend on how the blocks were cut, on the number of threads or
on the BLAS library: where the first look cannot tell what belongs to the n best, it is repeated
with more kept.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from marginmf._utils.ids import shown
from marginmf._utils.types import Array, BoolArray, Float64Array, FloatArray, IntArray
from marginmf.backends.ranking import Best, top_n
from marginmf.backends.rows import Rows
from marginmf.backends.threads import one_blas_thread, run
from marginmf.ratings.ids import IdIndex
from marginmf.ratings.tables import split_pairs

#: How much memory a thread may use for the scores of a block.
BLOCK_BYTES = 8 * 2**20
#: Enough rows for matrix products at full speed.
BLOCK_ROWS = 256
#: How many pairs of the second look are in memory at a time.
PAIRS_AT_A_TIME = 2**18
#: This many more than asked for are kept by the first look ...
MORE = 6
#: ... and this many times more when that was not enough.
GROWTH = 8


class ItemScores(Protocol):
    """Scores of rows, or of users given as codes (-1 is unknown), and of columns."""

    #: How much memory one cell of a block takes.
    cell_bytes: int
    #: How far the scores of blocks may be from those of pairs.
    tolerance: float

    def block(self, rows: IntArray, columns: slice) -> tuple[FloatArray, FloatArray]:
        """Return the scores of a block, and what breaks their ties."""

    def pairs(self, rows: IntArray, columns: IntArray) -> tuple[Float64Array, Float64Array]:
        """Return the scores of single pairs, and what breaks their ties."""


class Scorer(ItemScores, Protocol):
    """What is searched: a matrix of scores."""

    n_rows: int
    n_columns: int
    #: How many rows may be asked for at most, because of what `excluded` holds for them.
    rows_at_a_time: int

    def excluded(self, rows: IntArray) -> tuple[IntArray, IntArray]:
        """Return the columns that rows leave out, ascending, in compressed form."""


class Found(NamedTuple):
    """The best columns, row after row and best first; fewer than n where fewer are left."""

    rows: IntArray
    columns: IntArray
    ranks: IntArray
    scores: Float64Array


def block_shape(scorer: Scorer, n_rows: int, n_threads: int) -> tuple[int, int]:
    """Return the rows and columns of blocks of bounded memory, with work for every thread."""
    cells = max(1, BLOCK_BYTES // scorer.cell_bytes)
    rows = max(BLOCK_ROWS, cells // max(1, scorer.n_columns))
    rows = max(1, min(rows, -(-n_rows // n_threads), cells))
    columns = max(1, min(scorer.n_columns, cells // rows))
    # Columns in blocks of one length, instead of a last block that is next to nothing.
    n_blocks = max(1, -(-scorer.n_columns // columns))
    return rows, max(1, -(-scorer.n_columns // n_blocks))


def best(scorer: Scorer, n: int, n_threads: int = 1) -> Found:
    """Return the n best columns of every row.

    The higher score is better; equal scores are ranked by their ties, then by column.
    """
    n = min(n, scorer.n_columns)
    columns = np.full((scorer.n_rows, n), -1, np.int32)
    scores = np.empty(columns.shape)
    rows, kept = np.arange(scorer.n_rows, dtype=np.int32), n + MORE
    while n and len(rows):
        kept = min(kept, scorer.n_columns)
        at_a_time = max(1, min(PAIRS_AT_A_TIME // kept, scorer.rows_at_a_time))
        unclear = [
            _search(scorer, rows[k : k + at_a_time], kept, n_threads, columns, scores)
            for k in range(0, len(rows), at_a_time)
        ]
        rows, kept = np.concatenate(unclear), kept * GROWTH
    found, ranks = cells = np.nonzero(columns >= 0)
    return Found(found.astype(np.int32), columns[cells], ranks + 1, scores[cells])


def _search(
    scorer: Scorer,
    rows: IntArray,
    kept: int,
    n_threads: int,
    columns: IntArray,
    scores: Float64Array,
) -> IntArray:
    """Fill in some rows of the result, and return those for which more must be kept."""
    likely = _first_look(scorer, rows, kept, n_threads)
    # In the order of columns, with what is missing behind: equal pairs then rank by column.
    found = np.sort(np.where(likely.columns < 0, scorer.n_columns, likely.columns), axis=1)
    there = found < scorer.n_columns
    exact, ties = np.full(found.shape, -np.inf), np.full(found.shape, -np.inf)
    exact[there], ties[there] = scorer.pairs(np.repeat(rows, there.sum(axis=1)), found[there])

    ranked = Best.none_yet(len(rows), columns.shape[1], np.float64)
    nothing = np.zeros(len(rows) + 1, np.int64), np.empty(0, np.int32)
    top_n(exact, ties, *nothing, ranked)
    chosen = np.take_along_axis(found, np.maximum(ranked.columns, 0), axis=1)
    columns[rows] = np.where(ranked.columns < 0, -1, chosen)
    scores[rows] = ranked.scores
    # What the first look dropped is no better than the last that it kept, give or take rounding.
    complete = (kept == scorer.n_columns) | ~there.all(axis=1)
    clear = complete | (likely.scores[:, -1] + scorer.tolerance < ranked.scores[:, -1])
    return rows[~clear]


def _first_look(scorer: Scorer, rows: IntArray, kept: int, n_threads: int) -> Best:
    """Return the columns that score best in blocks."""
    best = Best.none_yet(len(rows), kept, np.float32)
    n_rows, n_columns = block_shape(scorer, len(rows), n_threads)
    indptr, excluded = scorer.excluded(rows)

    def look(start: int, stop: int) -> None:
        for first in range(0, scorer.n_columns, n_columns):
            columns = slice(first, min(first + n_columns, scorer.n_columns))
            block, ties = scorer.block(rows[start:stop], columns)
            left_out = indptr[start : stop + 1]
            top_n(block, ties, left_out, excluded, best.rows(start, stop), first)

    with one_blas_thread():
        run(look, np.append(np.arange(0, len(rows), n_rows), len(rows)), n_threads)
    return best


#: A function of a user's id and item ids that says which items may stay.
Keeps = Callable[[Any, Array], Any]


class Lists(NamedTuple):
    """Columns of every row, ascending, in compressed form."""

    indptr: IntArray
    columns: IntArray

    @classmethod
    def rated(cls, data: Rows) -> "Lists":
        """Return what every user has rated."""
        return cls(data.indptr, data.indices)

    def of(self, rows: IntArray) -> "Lists":
        """Return the lists of some rows; those of row -1 are empty."""
        starts, lengths = self._bounds(rows)
        indptr = np.concatenate(([0], np.cumsum(lengths)))
        entries = np.arange(indptr[-1]) + np.repeat(starts - indptr[:-1], lengths)
        return Lists(indptr, self.columns[entries])

    def lengths(self, rows: IntArray) -> IntArray:
        """Return how long the lists of some rows are; those of row -1 are empty."""
        return self._bounds(rows)[1]

    def _bounds(self, rows: IntArray) -> tuple[IntArray, IntArray]:
        """Return where the lists of some rows begin, and how long they are."""
        known = np.maximum(rows, 0)
        # Where nobody is known there may be no row 0 either.
        starts = self.indptr[known] if len(self.indptr) > 1 else np.zeros(len(rows), np.int64)
        stops = self.indptr[known + 1] if len(self.indptr) > 1 else starts
        return starts, np.where(rows >= 0, stops - starts, 0)

    def among(self, position: IntArray | None) -> "Lists":
        """Return the lists with columns numbered by position, if any, without those of -1."""
        if position is None:
            return self
        columns = position[self.columns]
        kept = columns >= 0
        indptr = np.concatenate(([0], np.cumsum(kept)))[self.indptr]
        return Lists(indptr, columns[kept])

    def contain(self, columns: IntArray) -> BoolArray:
        """Return which of some columns, of shape (n_rows, n), are in the lists of their rows.

        >>> Lists(np.array([0, 2, 2]), np.array([3, 5])).contain(np.array([[5, 4], [3, -1]]))
        array([[ True, False],
               [False, False]])
        """
        n_columns = int(max(columns.max(initial=0), self.columns.max(initial=0))) + 1
        rows = np.repeat(np.arange(len(columns)), np.diff(self.indptr))
        cells = np.arange(len(columns))[:, None] * n_columns + columns
        return np.isin(cells, rows * n_columns + self.columns) & (columns >= 0)

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


def refused_pairs(pairs: Any, users: Array, items: IdIndex, position: IntArray | None) -> Lists:
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
    return Lists.from_pairs(rows, columns, len(users), len(items)).among(position)


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
