"""The gradient of a ratings objective in one pass over the ratings.

Ratings are dealt into blocks of columns whose factors fit into a cache.  The blocks depend on the
data alone, and so does the order in which every sum is made.  For a few entries of a row at a time:
their scores, their loss, and back to both sides' gradients, while the columns' factors are still in
the nearest cache.

A kernel works on one block, band after band of the rows.  Blocks run side by side: each waits,
before every band, until the block before it is done with the band.  So nobody else writes the
band's rows or the block's columns meanwhile: there is no copy of a gradient, and the result is the
same for any number of threads and bands.  A kernel that has waited for long returns the band that
it waits for, and is called again.

What the penalty gives is where gradients begin: the columns' at the start of their block, a row's
in the first block.  Where the columns' gradient is not wanted it has no rows.  ``scratch`` is two
rows, scores and weights: sharing memory would keep the losses from becoming vector code.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import numpy as np

from marginmf._utils.types import Array, IntArray
from marginmf.backends import threads
from marginmf.backends.cpu.compiling import inline, kernel, sources
from marginmf.backends.cpu.inner_loops import (
    VECTOR_CODE,
    load_acquire,
    scatter_row,
    score_row,
    store_release,
)
from marginmf.backends.cpu.losses import real_row, threshold_row, two_level_row
from marginmf.backends.rows import Rows
from marginmf.backends.threads import row_parts, run

# Numbers between two blocks' progress: threads that write close to each other wait for each other.
STRIDE = 8

# Polls before a waiting kernel returns, so that its thread can yield.
_POLLS = 4_000


@inline
def _wait_for_band(progress, block, band):
    """Wait until the block before is done with a band; return whether it is."""
    if block == 0:
        return True
    for _ in range(_POLLS):  # noqa: SIM110
        if load_acquire(progress, (block - 1) * STRIDE) > band:
            return True
    return False


@inline
def _mark_done(progress, block, band):
    store_release(progress, block * STRIDE, band + 1)


@inline
def _open_block(block, edges, reg, V, by_V, squares):
    """Fill a block of the columns' gradient with what the penalty gives; note the squares."""
    if by_V.shape[0] == 0:
        return
    total = 0.0
    for j in range(edges[block], edges[block + 1]):
        v, by_v = V[j], by_V[j]
        for p in range(len(v)):
            by_v[p] = reg * v[p]
            total += np.float64(v[p]) * np.float64(v[p])
    squares[block] = total


@inline
def _open_row(i, reg, U, by_U):
    """Fill a row's gradient with what the penalty gives; return the penalty."""
    u, by_u = U[i], by_U[i]
    total = 0.0
    for p in range(len(u)):
        by_u[p] = reg * u[p]
        total += np.float64(u[p]) * np.float64(u[p])
    return 0.5 * reg * total


def _make_gradient(kind: int, key: int) -> Any:
    """Make the kernel for a loss of one kind; the branches of the others are compiled away."""

    @kernel
    def gradient(
        block, band, bands, progress, edges, reg, squares, indptr, indices, U, V, by_U, by_V,
        scratch, labels, cut, thresholds, reach, losses, by_threshold,
    ):  # fmt: skip
        if band == 0:
            _open_block(block, edges, reg, V, by_V, squares)
        for b in range(band, bands.shape[0] - 1):
            if not _wait_for_band(progress, block, b):
                return b
            for i in range(bands[b], bands[b + 1]):
                if block == 0:
                    losses[i] = _open_row(i, reg, U, by_U)
                first, end = indptr[block, i], indptr[block, i + 1]
                while first < end:
                    n = min(scratch.shape[1], end - first)
                    x, weights, own = scratch[0, :n], scratch[1, :n], labels[first : first + n]
                    score_row(i, first, n, indices, U, V, x)
                    if kind == 0:
                        losses[i] += two_level_row(key, x, own, cut, weights)
                    elif kind == 1:
                        losses[i] += threshold_row(
                            key, x, own, thresholds[i], reach, weights, by_threshold[i]
                        )
                    else:
                        losses[i] += real_row(key, x, own, weights)
                    scatter_row(i, first, n, indices, weights, U, V, by_U, by_V)
                    first += n
            _mark_done(progress, block, b)
        return bands.shape[0] - 1

    return gradient


#: From the key of a loss to the kernel: for levels above a cut, learned thresholds, real targets.
make_two_level_gradient, make_threshold_gradient, make_real_gradient = (
    partial(_make_gradient, kind) for kind in range(3)
)


def _make_kernels(key: int) -> Any:
    @kernel
    def scatter_gradient(
        block, band, bands, progress, indptr, indices, U, V, by_U, by_V, scratch, weights
    ):
        """Add what given derivatives by the scores give to both sides' gradients."""
        _ = key
        for b in range(band, bands.shape[0] - 1):
            if not _wait_for_band(progress, block, b):
                return b
            for i in range(bands[b], bands[b + 1]):
                first, end = indptr[block, i], indptr[block, i + 1]
                scatter_row(i, first, end - first, indices, weights[first:end], U, V, by_U, by_V)
            _mark_done(progress, block, b)
        return bands.shape[0] - 1

    @kernel
    def score_rows(start, stop, indptr, indices, U, V, out):
        """Fill ``out`` with the scores of all entries of some rows, in every block."""
        _ = key
        for block in range(indptr.shape[0]):
            for i in range(start, stop):
                first, end = indptr[block, i], indptr[block, i + 1]
                score_row(i, first, end - first, indices, U, V, out[first:end])

    return scatter_gradient, score_rows


scatter_gradient, score_rows = _make_kernels(sources(VECTOR_CODE))


@dataclass(frozen=True)
class BlockSizes:
    """How ratings are divided into blocks, tuned on matrices of 1 to 50 million ratings."""

    #: What fits into the second cache of most processors: a block's factors and their gradient.
    cache_bytes: int = 1 << 18
    #: The fewest entries that a row should have in a block on average: a row's own factors are
    #: fetched once for them.
    shortest: int = 8
    #: Matrices of ``many`` entries and more have at least ``parallel`` blocks, which is how many
    #: threads can work at once, with half as many entries of a row in each if need be.
    parallel: int = 16
    many: int = 5_000_000
    #: The most blocks.
    most: int = 64
    #: The cost of all columns relative to all entries, and of opening a row relative to one entry.
    column: float = 0.1
    opening: float = 4.0
    #: About how many entries of a block a thread works on before it tells the next block.
    band: int = 2_048

    def n_blocks(self, n_entries: int, n_rows: int, n_columns: int, n_factors: int) -> int:
        """Return how many blocks of columns suit a matrix."""
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


@dataclass(frozen=True, eq=False)
class RatingBlocks:
    """The entries of a matrix, block after block of its columns, row after row in each.

    Row ``i`` owns the entries ``indptr[b, i]:indptr[b, i + 1]`` of block ``b``, whose first column
    is ``edges[b]``.
    """

    indptr: IntArray
    indices: IntArray
    edges: IntArray

    @classmethod
    def suited(cls, rows: Rows, n_columns: int, n_factors: int) -> "RatingBlocks":
        """Deal entries into as many blocks as suit the matrix."""
        n_blocks = SIZES.n_blocks(len(rows), rows.n_rows, n_columns, n_factors)
        return cls.of(rows, n_columns, n_blocks)

    @classmethod
    def of(cls, rows: Rows, n_columns: int, n_blocks: int) -> "RatingBlocks":
        """Deal entries into blocks; in a block they keep their order."""
        if n_blocks == 1:
            return cls(rows.indptr[None], rows.indices, np.array([0, n_columns]))
        edges = _edges(rows, n_columns, n_blocks)
        counts = np.zeros((n_blocks, rows.n_rows + 1), np.int64)
        block_of = _block_of(edges)
        for part, entries in rows.parts():
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
        for part, entries in rows.parts():
            blocks = block_of[rows.indices[entries]]
            for block in range(len(self.indptr)):
                there = slice(self.indptr[block, part.start], self.indptr[block, part.stop])
                dealt[there] = values[entries][blocks == block]
        return dealt

    @cached_property
    def row_ends(self) -> IntArray:
        """How many entries the first rows have together, from no row to all of them."""
        return (self.indptr - self.indptr[:, :1]).sum(axis=0)

    @cached_property
    def bands(self) -> IntArray:
        """Rows that divide every block into bands of about equal work."""
        n_entries, n_blocks = len(self.indices), len(self.indptr)
        if n_blocks == 1:
            return np.array([0, self.indptr.shape[1] - 1])
        return row_parts(self.row_ends, max(1, min(n_entries // (n_blocks * SIZES.band), 1024)))


def over_blocks(
    work: Callable[..., int], blocks: RatingBlocks, n_threads: int, n_factors: int
) -> None:
    """Call ``work(block, band, progress)`` for every block, several at a time."""
    n_blocks, n_bands = len(blocks.indptr), len(blocks.bands) - 1
    progress = np.zeros(n_blocks * STRIDE, np.int64)

    def task(block: int, _: int) -> None:
        band = 0
        try:
            while (band := work(block, band, progress)) < n_bands:
                time.sleep(0)
        finally:
            # After an error nobody must wait for us: the result is of no use anyway.
            progress[block * STRIDE] = n_bands

    # Blocks are taken in their order, so that each waits for one that is at work.  Without the
    # vector code there is no promise that threads see each other's progress.
    is_worth_it = VECTOR_CODE and len(blocks.indices) * n_factors > threads.SMALLEST_TASK
    run(task, np.arange(n_blocks + 1), n_threads if is_worth_it else 1)


def _edges(rows: Rows, n_columns: int, n_blocks: int) -> IntArray:
    """Return columns between blocks of about equal work: the slowest sets the pace of threads."""
    # Columns count a little too: a block of columns that hardly anybody rated would not fit into a
    # cache.  The first block has fewer entries, since it begins every row's gradient.
    n_entries = max(len(rows), 1)
    counts = np.bincount(rows.indices, minlength=n_columns)
    size = np.cumsum(counts / n_entries + SIZES.column / n_columns)
    size += SIZES.opening * rows.n_rows / n_entries
    inner = np.searchsorted(size, size[-1] * np.arange(1, n_blocks) / n_blocks) + 1
    return np.concatenate(([0], np.minimum(inner, n_columns), [n_columns]))


def _block_of(edges: IntArray) -> IntArray:
    """Return the block of every column."""
    return np.repeat(np.arange(len(edges) - 1, dtype=np.uint8), np.diff(edges))
