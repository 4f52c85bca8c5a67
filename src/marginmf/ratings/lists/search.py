"""The n best columns of every row of a score matrix that is never whole in memory.

A first pass scores blocks by matrix products in float32 and keeps a few more columns than asked
for.  A second pass scores those one by one in float64 and ranks them, so that the answer does not
depend on blocks, threads or the BLAS library; where the first pass kept too few to be sure, it is
repeated with more.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
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
#: How many pairs of the second pass are in memory at a time.
PAIRS_AT_A_TIME = 2**18
#: This many more than asked for are kept by the first pass ...
MORE = 6
#: ... and this many times more when that was not enough.
GROWTH = 8


class ItemScores(Protocol):
    """Scores of rows given as codes (-1 is an unknown user), and of columns."""

    #: How much memory one cell of a block takes.
    cell_bytes: int
    #: How far the scores of blocks may be from those of pairs.
    tolerance: float

    def block(self, codes: IntArray, columns: slice) -> tuple[FloatArray, FloatArray]:
        """Return the scores of a block in float32, and what breaks their ties."""

    def pairs(self, codes: IntArray, columns: IntArray) -> tuple[Float64Array, Float64Array]:
        """Return the same of single pairs, independent of what else is asked for."""


@dataclass(frozen=True, eq=False)
class ScoreMatrix:
    """What is searched: the scores of some codes, in rows, with columns that each row excludes."""

    scores: ItemScores
    codes: IntArray
    n_columns: int
    #: From rows to the columns that they leave out.
    excluded: Callable[[IntArray], "Lists"]
    #: How many rows `excluded` may be asked for at most.
    rows_at_a_time: int = sys.maxsize


class Found(NamedTuple):
    """The best columns, row after row and best first; fewer than n where fewer are left."""

    rows: IntArray
    columns: IntArray
    ranks: IntArray
    scores: Float64Array


def block_shape(cell_bytes: int, n_rows: int, n_columns: int, n_threads: int) -> tuple[int, int]:
    """Return the rows and columns of blocks of bounded memory, with work for every thread."""
    cells = max(1, BLOCK_BYTES // cell_bytes)
    rows = max(BLOCK_ROWS, cells // max(1, n_columns))
    rows = max(1, min(rows, -(-n_rows // n_threads), cells))
    columns = max(1, min(n_columns, cells // rows))
    # Columns in blocks of one length, instead of a last block that is next to nothing.
    n_blocks = max(1, -(-n_columns // columns))
    return rows, max(1, -(-n_columns // n_blocks))


def best(matrix: ScoreMatrix, n: int, n_threads: int = 1) -> Found:
    """Return the n best columns of every row, by score, then by ties, then by column."""
    n, n_rows = min(n, matrix.n_columns), len(matrix.codes)
    columns = np.full((n_rows, n), -1, np.int32)
    scores = np.empty(columns.shape)
    rows, kept = np.arange(n_rows, dtype=np.int32), n + MORE
    while n and len(rows):
        kept = min(kept, matrix.n_columns)
        at_a_time = max(1, min(PAIRS_AT_A_TIME // kept, matrix.rows_at_a_time))
        unclear = [
            _search(matrix, rows[k : k + at_a_time], kept, n_threads, columns, scores)
            for k in range(0, len(rows), at_a_time)
        ]
        rows, kept = np.concatenate(unclear), kept * GROWTH
    found, ranks = cells = np.nonzero(columns >= 0)
    return Found(found.astype(np.int32), columns[cells], ranks + 1, scores[cells])


def _search(
    matrix: ScoreMatrix,
    rows: IntArray,
    kept: int,
    n_threads: int,
    columns: IntArray,
    scores: Float64Array,
) -> IntArray:
    """Fill in some rows of the result, and return those for which more must be kept."""
    codes, n_columns = matrix.codes[rows], matrix.n_columns
    likely = _first_pass(matrix, rows, kept, n_threads)
    # In the order of columns, with what is missing behind: equal pairs then rank by column.
    found = np.sort(np.where(likely.columns < 0, n_columns, likely.columns), axis=1)
    there = found < n_columns
    exact, ties = np.full(found.shape, -np.inf), np.full(found.shape, -np.inf)
    pairs = np.repeat(codes, there.sum(axis=1)), found[there]
    exact[there], ties[there] = matrix.scores.pairs(*pairs)

    ranked = Best.none_yet(len(rows), columns.shape[1], np.float64)
    nothing = np.zeros(len(rows) + 1, np.int64), np.empty(0, np.int32)
    top_n(exact, ties, *nothing, ranked)
    chosen = np.take_along_axis(found, np.maximum(ranked.columns, 0), axis=1)
    columns[rows] = np.where(ranked.columns < 0, -1, chosen)
    scores[rows] = ranked.scores
    # What the first pass dropped is no better than the last that it kept, give or take rounding.
    complete = (kept == n_columns) | ~there.all(axis=1)
    clear = complete | (likely.scores[:, -1] + matrix.scores.tolerance < ranked.scores[:, -1])
    return rows[~clear]


def _first_pass(matrix: ScoreMatrix, rows: IntArray, kept: int, n_threads: int) -> Best:
    """Return the columns that score best in blocks."""
    best, scores = Best.none_yet(len(rows), kept, np.float32), matrix.scores
    n_rows, n_columns = block_shape(scores.cell_bytes, len(rows), matrix.n_columns, n_threads)
    codes, (indptr, excluded) = matrix.codes[rows], matrix.excluded(rows)

    def task(start: int, stop: int) -> None:
        for first in range(0, matrix.n_columns, n_columns):
            columns = slice(first, min(first + n_columns, matrix.n_columns))
            block, ties = scores.block(codes[start:stop], columns)
            left_out = indptr[start : stop + 1]
            top_n(block, ties, left_out, excluded, best.rows(start, stop), first)

    with one_blas_thread():
        run(task, np.append(np.arange(0, len(rows), n_rows), len(rows)), n_threads)
    return best


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
        """Return which of some columns, of shape (n_rows, n), are in the lists of their rows."""
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
        empty, numbers = np.empty(0, np.int64), np.arange(n_rows)
        rows = [np.repeat(numbers, np.diff(each.indptr)) for each in lists]
        pairs = np.concatenate([empty, *rows]), np.concatenate([empty, *(c for _, c in lists)])
        return cls.from_pairs(*pairs, n_rows, n_columns)


def refused_pairs(pairs: Any, users: Array, items: IdIndex, position: IntArray | None) -> Lists:
    """Return the candidates that a filter in the form of pairs refuses, for each of the users."""
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


def refused_by(keeps: Callable[..., Any], users: Array, item_ids: Array) -> Lists:
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
