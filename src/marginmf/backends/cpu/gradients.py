"""The gradient of a ratings objective in one pass over the ratings.

For a few entries of a row at a time: their scores, their loss, and back to both sides' gradients,
while the columns' factors are still in the nearest cache.  The loss stands in between as in
`marginmf.backends.cpu.losses`: one kernel for each loss of the table.

A kernel works on one block of columns, band after band of the rows.  Blocks run side by side: each
waits, before every band, until the block before it is done with the band.  So nobody else writes
the band's rows or the block's columns meanwhile, and every sum is made in the same order as by one
thread.  A kernel that has waited for long returns the band that it waits for, and is called again.

What the penalty gives is where gradients begin: the columns' at the start of their block, a row's
in the first block, where its loss begins with its part of the penalty.  Where the columns' gradient
is not wanted it has no rows.  ``scratch`` is two rows, as long as the entries that are worked on at
a time: scores and weights, which must not share memory, or the losses are not turned into vector
code.
"""

from typing import Any

import numpy as np

from marginmf.backends.cpu.compiling import inline, kernel, sources
from marginmf.backends.cpu.inner_loops import (
    VECTOR_CODE,
    load_acquire,
    scatter_row,
    score_row,
    store_release,
)
from marginmf.backends.cpu.losses import real_row, threshold_row, two_level_row

# Numbers between two blocks' progress: threads that write close to each other wait for each other.
STRIDE = 8

# How often to look before giving the time to somebody else.
_LOOKS = 4_000


@inline
def _is_ready(progress, block, band):
    """Wait until the block before is done with a band; return whether it is."""
    if block == 0:
        return True
    for _ in range(_LOOKS):  # noqa: SIM110
        if load_acquire(progress, (block - 1) * STRIDE) > band:
            return True
    return False


@inline
def _is_done(progress, block, band):
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


def make_two_level_gradient(key: int) -> Any:
    """Make the kernel for a two-level loss."""

    @kernel
    def two_level_gradient(
        block,
        band,
        bands,
        progress,
        edges,
        reg,
        squares,
        indptr,
        indices,
        U,
        V,
        by_U,
        by_V,
        scratch,
        levels,
        cut,
        losses,
    ):
        if band == 0:
            _open_block(block, edges, reg, V, by_V, squares)
        for b in range(band, bands.shape[0] - 1):
            if not _is_ready(progress, block, b):
                return b
            for i in range(bands[b], bands[b + 1]):
                if block == 0:
                    losses[i] = _open_row(i, reg, U, by_U)
                first, end = indptr[block, i], indptr[block, i + 1]
                while first < end:
                    n = min(scratch.shape[1], end - first)
                    x, weights = scratch[0, :n], scratch[1, :n]
                    score_row(i, first, n, indices, U, V, x)
                    losses[i] += two_level_row(key, x, levels[first : first + n], cut, weights)
                    scatter_row(i, first, n, indices, weights, U, V, by_U, by_V)
                    first += n
            _is_done(progress, block, b)
        return bands.shape[0] - 1

    return two_level_gradient


def make_threshold_gradient(key: int) -> Any:
    """Make the kernel for a loss against learned thresholds."""

    @kernel
    def threshold_gradient(
        block,
        band,
        bands,
        progress,
        edges,
        reg,
        squares,
        indptr,
        indices,
        U,
        V,
        by_U,
        by_V,
        scratch,
        levels,
        thresholds,
        reach,
        losses,
        by_threshold,
    ):
        if band == 0:
            _open_block(block, edges, reg, V, by_V, squares)
        for b in range(band, bands.shape[0] - 1):
            if not _is_ready(progress, block, b):
                return b
            for i in range(bands[b], bands[b + 1]):
                if block == 0:
                    losses[i] = _open_row(i, reg, U, by_U)
                first, end = indptr[block, i], indptr[block, i + 1]
                while first < end:
                    n = min(scratch.shape[1], end - first)
                    x, weights, level = scratch[0, :n], scratch[1, :n], levels[first : first + n]
                    score_row(i, first, n, indices, U, V, x)
                    losses[i] += threshold_row(
                        key, x, level, thresholds[i], reach, weights, by_threshold[i]
                    )
                    scatter_row(i, first, n, indices, weights, U, V, by_U, by_V)
                    first += n
            _is_done(progress, block, b)
        return bands.shape[0] - 1

    return threshold_gradient


def make_real_gradient(key: int) -> Any:
    """Make the kernel for a loss of real targets."""

    @kernel
    def real_gradient(
        block,
        band,
        bands,
        progress,
        edges,
        reg,
        squares,
        indptr,
        indices,
        U,
        V,
        by_U,
        by_V,
        scratch,
        targets,
        losses,
    ):
        if band == 0:
            _open_block(block, edges, reg, V, by_V, squares)
        for b in range(band, bands.shape[0] - 1):
            if not _is_ready(progress, block, b):
                return b
            for i in range(bands[b], bands[b + 1]):
                if block == 0:
                    losses[i] = _open_row(i, reg, U, by_U)
                first, end = indptr[block, i], indptr[block, i + 1]
                while first < end:
                    n = min(scratch.shape[1], end - first)
                    x, weights = scratch[0, :n], scratch[1, :n]
                    score_row(i, first, n, indices, U, V, x)
                    losses[i] += real_row(key, x, targets[first : first + n], weights)
                    scatter_row(i, first, n, indices, weights, U, V, by_U, by_V)
                    first += n
            _is_done(progress, block, b)
        return bands.shape[0] - 1

    return real_gradient


def _make_scatter_gradient(key: int) -> Any:
    @kernel
    def scatter_gradient(
        block, band, bands, progress, indptr, indices, U, V, by_U, by_V, scratch, weights
    ):
        _ = key
        for b in range(band, bands.shape[0] - 1):
            if not _is_ready(progress, block, b):
                return b
            for i in range(bands[b], bands[b + 1]):
                first, end = indptr[block, i], indptr[block, i + 1]
                scatter_row(i, first, end - first, indices, weights[first:end], U, V, by_U, by_V)
            _is_done(progress, block, b)
        return bands.shape[0] - 1

    return scatter_gradient


def _make_score_rows(key: int) -> Any:
    @kernel
    def score_rows(start, stop, indptr, indices, U, V, out):
        _ = key
        for block in range(indptr.shape[0]):
            for i in range(start, stop):
                first, end = indptr[block, i], indptr[block, i + 1]
                score_row(i, first, end - first, indices, U, V, out[first:end])

    return score_rows


#: Adds what given derivatives by the scores give to both sides' gradients.
scatter_gradient = _make_scatter_gradient(sources(VECTOR_CODE))
#: Fills its last argument with the scores of all entries of some rows, in every block.
score_rows = _make_score_rows(sources(VECTOR_CODE))
