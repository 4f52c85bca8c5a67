"""The gradient of a ratings objective in one pass over the ratings.

For a few entries of a row at a time: their scores, their loss, and back to both sides' gradients,
while the columns' factors are still in the nearest cache.  The loss stands in between as in
`marginmf.backends.compiled`: one kernel for each loss of the table.

Each works on the range ``start:stop`` of rows, block after block.  Losses and gradients are added
to what is there.  The
columns' gradient is everybody's: whoever works on several ranges at a time gives each range a
gradient of its own and adds them up afterwards.  Where it is not wanted it has no rows.  ``room``
is two rows of scratch space, as long as the entries that are worked on at a time: scores and
weights, which must not share memory, or the losses are not turned into vector code.
"""

from typing import Any

from marginmf.backends.compiled import _real_row, _threshold_row, _two_level_row
from marginmf.backends.passes import _kernel, _score_row, _spread_row


def make_two_level_gradient(key: int) -> Any:
    """Make the kernel of `Kernels.two_level_gradient` for a loss."""

    @_kernel
    def two_level_gradient(
        start, stop, indptr, indices, U, V, by_U, by_V, room, levels, cut, losses
    ):
        for block in range(indptr.shape[0]):
            for i in range(start, stop):
                end = indptr[block, i + 1]
                for first in range(indptr[block, i], end, room.shape[1]):
                    n = min(room.shape[1], end - first)
                    x, weights = room[0, :n], room[1, :n]
                    _score_row(i, first, n, indices, U, V, x)
                    losses[i] += _two_level_row(key, x, levels[first : first + n], cut, weights)
                    _spread_row(i, first, n, indices, weights, U, V, by_U, by_V)

    return two_level_gradient


def make_threshold_gradient(key: int) -> Any:
    """Make the kernel of `Kernels.threshold_gradient` for a loss."""

    @_kernel
    def threshold_gradient(
        start,
        stop,
        indptr,
        indices,
        U,
        V,
        by_U,
        by_V,
        room,
        levels,
        thresholds,
        reach,
        losses,
        by_threshold,
    ):
        for block in range(indptr.shape[0]):
            for i in range(start, stop):
                end = indptr[block, i + 1]
                for first in range(indptr[block, i], end, room.shape[1]):
                    n = min(room.shape[1], end - first)
                    x, weights, level = room[0, :n], room[1, :n], levels[first : first + n]
                    _score_row(i, first, n, indices, U, V, x)
                    losses[i] += _threshold_row(
                        key, x, level, thresholds[i], reach, weights, by_threshold[i]
                    )
                    _spread_row(i, first, n, indices, weights, U, V, by_U, by_V)

    return threshold_gradient


def make_real_gradient(key: int) -> Any:
    """Make the kernel of `Kernels.real_gradient` for a loss."""

    @_kernel
    def real_gradient(start, stop, indptr, indices, U, V, by_U, by_V, room, targets, losses):
        for block in range(indptr.shape[0]):
            for i in range(start, stop):
                end = indptr[block, i + 1]
                for first in range(indptr[block, i], end, room.shape[1]):
                    n = min(room.shape[1], end - first)
                    x, weights = room[0, :n], room[1, :n]
                    _score_row(i, first, n, indices, U, V, x)
                    losses[i] += _real_row(key, x, targets[first : first + n], weights)
                    _spread_row(i, first, n, indices, weights, U, V, by_U, by_V)

    return real_gradient
