"""Ratings in blocks of columns whose factors fit into a cache, and blocks side by side in threads.

The blocks depend on the data alone, and so does the order in which every sum is made: each block
goes through the rows from the first to the last, and through a row's entries from left to right.
Threads take one block after another; a block follows the one before it at a distance of one band of
rows (`marginmf.backends.cpu.gradients`).  So there is no copy of anybody's gradient, and the result
is the same for any number of threads and bands.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from marginmf._utils.types import Array, IntArray
from marginmf.backends.cpu.gradients import STRIDE
from marginmf.backends.cpu.inner_loops import VECTOR_CODE
from marginmf.backends.rows import Rows
from marginmf.backends.threads import row_parts, run, useful


@dataclass(frozen=True)
class BlockSizes:
    """How ratings are cut into blocks; found by trying on matrices of one to fifty million ratings.

    Attributes
    ----------
    cache_bytes : int
        What fits into the second cache of most processors: a block's factors and their gradient.
    shortest : int
        The fewest entries that a row should have in a block on average: a row's own factors are
        fetched once for them.
    parallel, many : int
        Matrices of ``many`` entries and more have at least ``parallel`` blocks, which is how many
        threads can work at once, with half as many entries of a row in each if need be.
    most : int
        The most blocks.
    column, opening : float
        What all columns, and what beginning a row's gradient, take in units of all entries, and of
        one.
    band : int
        About how many entries of a block a thread works on before it tells the next block.
    """

    cache_bytes: int = 1 << 18
    shortest: int = 8
    parallel: int = 16
    many: int = 5_000_000
    most: int = 64
    column: float = 0.1
    opening: float = 4.0
    band: int = 2_048

    def n_blocks(self, n_entries: int, n_rows: int, n_columns: int, n_factors: int) -> int:
        """Return how many blocks of columns suit a matrix.

        >>> BlockSizes().n_blocks(1_000_000, 6_000, 3_700, 100)
        12
        """
        row_length = n_entries / max(n_rows, 1)
        fitting = 8 * n_columns * n_factors / self.cache_bytes
        wanted = min(fitting, row_length / self.shortest)
        if n_entries >= self.many:
            wanted = max(wanted, min(self.parallel, 2 * row_length / self.shortest))
        if wanted < 2:
            return 1
        # An even number, which suits two threads.
        return int(min(2 * np.ceil(wanted / 2), self.most, n_columns))


SIZES = BlockSizes()

# Entries that are dealt at a time: it takes wide temporary arrays.
_AT_A_TIME = 1 << 18


@dataclass(frozen=True, eq=False)
class Blocks:
    """The entries of a matrix, block after block of its columns, row after row in each.

    Row ``i`` owns the entries ``indptr[b, i]:indptr[b, i + 1]`` of block ``b``.  ``edges[b]`` is
    the first column of a block.
    """

    indptr: IntArray
    indices: IntArray
    edges: IntArray

    @classmethod
    def of(cls, rows: Rows, n_columns: int, n_blocks: int) -> "Blocks":
        """Deal entries into blocks; in a block they keep their order.

        >>> rows = Rows(np.array([1.0, 2.0]), np.array([0, 2, 3]), np.arange(3), np.zeros(3, int))
        >>> Blocks.of(rows, n_columns=4, n_blocks=2).indptr
        array([[0, 1, 1],
               [1, 2, 3]])
        """
        if n_blocks == 1:
            return cls(rows.indptr[None], rows.indices, np.array([0, n_columns]))
        edges = _edges(rows, n_columns, n_blocks)
        counts = np.zeros((n_blocks, rows.n_rows + 1), np.int64)
        block_of = _block_of(edges)
        for part, entries in _parts(rows):
            blocks, n_rows = block_of[rows.indices[entries]], part.stop - part.start
            row = np.repeat(np.arange(n_rows), np.diff(rows.indptr)[part])
            found = np.bincount(blocks.astype(np.int64) * n_rows + row, minlength=n_blocks * n_rows)
            counts[:, 1:][:, part] = found.reshape(n_blocks, n_rows)
        starts = np.concatenate(([0], counts.sum(axis=1).cumsum()[:-1]))
        indptr = counts.cumsum(axis=1) + starts[:, None]
        dealt = cls(indptr, rows.indices, edges)
        return cls(indptr, dealt.deal(rows, rows.indices), edges)

    def deal(self, rows: Rows, values: Array) -> Array:
        """Return values of the entries, one each, in the order of the blocks."""
        if len(self.indptr) == 1:
            return values
        dealt, block_of = np.empty_like(values), _block_of(self.edges)
        for part, entries in _parts(rows):
            blocks = block_of[rows.indices[entries]]
            for block in range(len(self.indptr)):
                there = slice(self.indptr[block, part.start], self.indptr[block, part.stop])
                dealt[there] = values[entries][blocks == block]
        return dealt

    @cached_property
    def row_ends(self) -> IntArray:
        """How many entries the first rows have together, from no row to all of them."""
        ends: IntArray = (self.indptr - self.indptr[:, :1]).sum(axis=0)
        return ends

    def bands(self) -> IntArray:
        """Return rows that divide every block into bands of about equal work."""
        n_entries, n_blocks = len(self.indices), len(self.indptr)
        if n_blocks == 1:
            return np.array([0, self.indptr.shape[1] - 1])
        return row_parts(self.row_ends, max(1, min(n_entries // (n_blocks * SIZES.band), 1024)))


def over_blocks(
    kernel: Callable[..., int], blocks: Blocks, bands: IntArray, n_threads: int, n_factors: int
) -> None:
    """Call ``kernel(block, band, progress)`` for every block, several at a time.

    The kernel returns the band that it has come to; see `marginmf.backends.cpu.gradients`.
    """
    n_blocks, n_bands = len(blocks.indptr), len(bands) - 1
    progress = np.zeros(n_blocks * STRIDE, np.int64)

    def task(block: int, _: int) -> None:
        band = 0
        try:
            while (band := kernel(block, band, progress)) < n_bands:
                time.sleep(0)
        finally:
            # After an error nobody must wait for us: the result is of no use anyway.
            progress[block * STRIDE] = n_bands

    # Blocks are taken in their order, so that each waits for one that is at work.  Without the
    # vector code there is no promise that threads see each other's progress.
    work = len(blocks.indices) * n_factors
    run(task, np.arange(n_blocks + 1), useful(n_threads, work) if VECTOR_CODE else 1)


def _edges(rows: Rows, n_columns: int, n_blocks: int) -> IntArray:
    """Return columns between blocks that take about equally long.

    They have about as many entries each, because the slowest block sets the pace of the threads.
    Columns count a little too: a block of columns that hardly anybody rated would not fit into a
    cache.  The first block has fewer entries, since it begins every row's gradient.
    """
    n_entries = max(len(rows), 1)
    counts = np.bincount(rows.indices, minlength=n_columns)
    size = np.cumsum(counts / n_entries + SIZES.column / n_columns)
    size += SIZES.opening * rows.n_rows / n_entries
    inner = np.searchsorted(size, size[-1] * np.arange(1, n_blocks) / n_blocks) + 1
    return np.concatenate(([0], np.minimum(inner, n_columns), [n_columns]))


def _block_of(edges: IntArray) -> IntArray:
    """Return the block of every column."""
    return np.repeat(np.arange(len(edges) - 1, dtype=np.uint8), np.diff(edges))


def _parts(rows: Rows) -> list[tuple[slice, slice]]:
    """Return neighbouring rows, and where their entries are, a bounded number at a time."""
    bounds = row_parts(rows.indptr, 1 + len(rows) // _AT_A_TIME)
    return [
        (slice(int(a), int(b)), slice(int(rows.indptr[a]), int(rows.indptr[b])))
        for a, b in pairwise(bounds)
    ]
