"""`Rows`: ratings as one side sees them, without the ids."""

from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Literal

import numpy as np

from marginmf._typing import Float64Array, IntArray
from marginmf.backends.interface import Entries
from marginmf.backends.threads import row_parts

#: Entries that are worked on at a time where that takes wide temporary arrays.
BLOCK = 1 << 18

#: Whose rows: users and items take the same part, with roles exchanged.
Side = Literal["user", "item"]


@dataclass(frozen=True, eq=False)
class Rows:
    """Ratings in compressed rows: row ``i`` owns the entries ``indptr[i]:indptr[i + 1]``.

    Entry ``k`` is a rating at level ``codes[k]`` between row ``rows[k]`` and column ``indices[k]``.
    Rows are users and columns items, or the other way round; what works on one side's rows works
    on the other's.

    Parameters
    ----------
    levels : array of shape (n_levels,)
        The scale, ascending.
    indptr, indices, codes : array
        The entries; codes are places in ``levels``.
    """

    levels: Float64Array
    indptr: IntArray
    indices: IntArray
    codes: IntArray

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def n_rows(self) -> int:
        """How many rows there are."""
        return len(self.indptr) - 1

    @property
    def n_levels(self) -> int:
        """How many levels the scale has."""
        return len(self.levels)

    @property
    def values(self) -> Float64Array:
        """The ratings themselves, in the order of the entries."""
        return self.levels[self.codes]

    @property
    def entries(self) -> Entries:
        """Which columns every row has entries in."""
        return Entries(self.indptr[None], self.indices)

    def in_blocks(self, n_columns: int, n_blocks: int) -> tuple[Entries, IntArray]:
        """Return the entries in blocks of neighbouring columns, and their codes.

        >>> rows = Rows(np.array([1.0, 2.0]), np.array([0, 2, 3]), np.arange(3), np.zeros(3, int))
        >>> rows.in_blocks(n_columns=4, n_blocks=2)[0].indptr
        array([[0, 2, 2],
               [2, 2, 3]])
        """
        if n_blocks == 1:
            return self.entries, self.codes
        if n_blocks not in self._blocked:
            self._blocked[n_blocks] = self._dealt(n_columns, n_blocks)
        return self._blocked[n_blocks]

    @cached_property
    def _blocked(self) -> dict[int, tuple[Entries, IntArray]]:
        return {}

    def _dealt(self, n_columns: int, n_blocks: int) -> tuple[Entries, IntArray]:
        """Deal the entries into blocks of columns; in a block they keep their order."""
        block_of = (np.arange(n_columns) * n_blocks // max(n_columns, 1)).astype(np.uint8)
        parts = [slice(*bounds) for bounds in pairwise(row_parts(self.indptr, self._n_parts))]
        counts = np.zeros((n_blocks, self.n_rows + 1), np.int64)
        for part in parts:
            blocks = block_of[self.indices[self._of_rows(part)]]
            n_rows = int(part.stop - part.start)
            row = np.repeat(np.arange(n_rows), np.diff(self.indptr)[part])
            cells = blocks.astype(np.int64) * n_rows + row
            found = np.bincount(cells, minlength=n_blocks * n_rows)
            counts[:, 1:][:, part] = found.reshape(n_blocks, n_rows)
        starts = np.concatenate(([0], counts.sum(axis=1).cumsum()[:-1]))
        indptr = counts.cumsum(axis=1) + starts[:, None]
        indices, codes = np.empty_like(self.indices), np.empty_like(self.codes)
        for part in parts:
            entries = self._of_rows(part)
            blocks = block_of[self.indices[entries]]
            for block in range(n_blocks):
                there = slice(indptr[block, part.start], indptr[block, part.stop])
                indices[there] = self.indices[entries][blocks == block]
                codes[there] = self.codes[entries][blocks == block]
        return Entries(indptr, indices), codes

    @property
    def _n_parts(self) -> int:
        """How many parts to work on after one another where that takes wide temporary arrays."""
        return 1 + len(self) // BLOCK

    def _of_rows(self, part: slice) -> slice:
        """Return where the entries of neighbouring rows are."""
        return slice(int(self.indptr[part.start]), int(self.indptr[part.stop]))

    @cached_property
    def rows(self) -> IntArray:
        """The row of every entry."""
        return np.repeat(np.arange(self.n_rows, dtype=np.int32), np.diff(self.indptr))

    def entries_of(self, which: IntArray) -> IntArray:
        """Return the places of some rows' entries, row after row.

        >>> rows = Rows(np.array([1.0, 2.0]), np.array([0, 2, 3]), np.arange(3), np.zeros(3, int))
        >>> rows.entries_of(np.array([1, 0]))
        array([2, 0, 1])
        """
        lengths = np.diff(self.indptr)[which]
        shifts = self.indptr[which] - (np.cumsum(lengths) - lengths)
        places: IntArray = np.repeat(shifts, lengths) + np.arange(lengths.sum())
        return places

    def take(self, which: IntArray) -> "Rows":
        """Return some of the rows, in the order given."""
        entries = self.entries_of(which)
        indptr = np.concatenate(([0], np.cumsum(np.diff(self.indptr)[which])))
        return Rows(self.levels, indptr, self.indices[entries], self.codes[entries])
