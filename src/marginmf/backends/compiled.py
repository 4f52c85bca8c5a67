"""Row losses, compiled: one kernel for each loss.

Rules that keep them quick to load: signatures of arrays and numbers only (a compiled function as
an argument would defeat the cache on disk), no parallel twins (see `marginmf.backends.threads`),
and losses known by their place in the table of losses.  A loss of the user's own is compiled into
its own copy of the kernel, in the process.

Each works on the range ``start:stop`` of rows or entries and writes nothing outside it.
"""

from collections.abc import Callable
from functools import cache, lru_cache
from pathlib import Path
from types import FunctionType
from typing import Any
from zlib import crc32

import numpy as np
from numba import njit

from marginmf.backends import counting, passes, products, ranking
from marginmf.backends.code import FASTMATH
from marginmf.backends.passes import _inline, _kernel
from marginmf.losses import REAL, TWO_LEVEL, RealLoss, TwoLevelLoss
from marginmf.thresholds import prototype_sign, threshold_sign

_threshold_sign = _inline(threshold_sign)
_prototype_sign = _inline(prototype_sign)


def _dispatcher(losses: list[Any]) -> Any:
    """Compile ``loss(code, ...) -> (value, derivative)`` for the code-th loss of the list."""
    value, derivative = _inline(losses[0].value), _inline(losses[0].derivative)
    if len(losses) == 1:
        return _inline(lambda code, *args: (value(*args), derivative(*args)))
    rest = _dispatcher(losses[1:])

    @_inline
    def dispatch(code: int, *args: float) -> Any:
        if code == 0:
            return value(*args), derivative(*args)
        return rest(code - 1, *args)

    return dispatch


_two_level_loss = _dispatcher(list(TWO_LEVEL.values()))
_real_loss = _dispatcher(list(REAL.values()))

# The low bits of a kernel's key are the loss's place in the table.
_PLACE = 255


def _key(losses: list[Any], loss: Any) -> int:
    """Return the key of a loss: its place in the table, and a checksum of its definition.

    An integer in a closure is part of the key of the cache on disk, which otherwise looks at the
    kernel's own source file alone: with the checksum, a loss that was changed is compiled anew,
    and so is what the kernels take from the other files here.
    """
    functions = (loss.value, loss.derivative, threshold_sign, prototype_sign)
    codes = (function.__code__ for function in functions)
    definition = [(code.co_code, code.co_consts, code.co_names) for code in codes]
    return crc32(repr(definition).encode(), _sources()) << 8 | losses.index(loss)


@cache
def _sources() -> int:
    """Return a checksum of the files that the kernels' parts come from."""
    checksum = 0
    for module in ("code", "compiled", "passes"):
        checksum = crc32((Path(__file__).parent / f"{module}.py").read_bytes(), checksum)
    return checksum


# The losses of one row, or of a part of it: they fill in the derivatives by the scores, add to
# those by the thresholds, and return the loss.  The key is a constant inside the kernels that call
# them, so the other losses are compiled away.  The loops run over views of one row, which lets the
# compiler see that nothing overlaps.  Together that turns them into vector code, ten times faster
# than asking for the loss in the loop.


@_inline
def _two_level_row(key, x, level, cut, weight):
    total = 0.0
    for k in range(len(x)):
        y = 1.0 if level[k] > cut else -1.0
        value, derivative = _two_level_loss(key & _PLACE, y * x[k])
        total += value
        weight[k] = y * derivative
    return total


@_inline
def _threshold_row(key, x, level, thresholds, reach, weight, by_threshold):
    weight[:] = 0
    total = 0.0
    for r in range(len(thresholds)):
        threshold, slope = thresholds[r], 0.0
        for k in range(len(x)):
            sign = _threshold_sign(level[k], r, reach)
            value, derivative = _two_level_loss(key & _PLACE, sign * (threshold - x[k]))
            total += abs(sign) * value
            slope += sign * derivative
            weight[k] -= sign * derivative
        by_threshold[r] += slope
    return total


@_inline
def _real_row(key, x, target, weight):
    total = 0.0
    for k in range(len(x)):
        value, derivative = _real_loss(key & _PLACE, target[k], x[k])
        total += value
        weight[k] = derivative
    return total


# Each factory below makes the kernel for one loss of the table.


def make_two_level_rows(key: int) -> Any:
    """Make the kernel of `Kernels.two_level_rows` for a loss."""

    @_kernel
    def two_level_rows(start, stop, indptr, scores, levels, cut, losses, weights):
        for i in range(start, stop):
            row = slice(indptr[i], indptr[i + 1])
            losses[i] = _two_level_row(key, scores[row], levels[row], cut, weights[row])

    return two_level_rows


def make_threshold_rows(key: int) -> Any:
    """Make the kernel of `Kernels.threshold_rows` for a loss."""

    @_kernel
    def threshold_rows(
        start, stop, indptr, scores, levels, thresholds, reach, losses, weights, by_threshold
    ):
        for i in range(start, stop):
            row = slice(indptr[i], indptr[i + 1])
            by_threshold[i] = 0
            losses[i] = _threshold_row(
                key, scores[row], levels[row], thresholds[i], reach, weights[row], by_threshold[i]
            )

    return threshold_rows


def make_proximal_rows(key: int) -> Any:
    """Make the kernel of `Kernels.proximal_rows` for a loss."""

    @_kernel
    def proximal_rows(start, stop, indptr, scores, levels, losses, weights, means):
        n_levels = means.shape[1]
        counts, sums, pulls = np.empty(n_levels), np.empty(n_levels), np.empty(n_levels)
        for i in range(start, stop):
            row = slice(indptr[i], indptr[i + 1])
            x, level, weight = scores[row], levels[row], weights[row]
            weight[:] = 0
            counts[:] = 0
            sums[:] = 0
            for k in range(len(x)):
                counts[level[k]] += 1
                sums[level[k]] += x[k]
            total = 0.0
            for r in range(n_levels):
                if counts[r] == 0:
                    means[i, r] = np.nan
                    continue
                mean, push = sums[r] / counts[r], 0.0
                for k in range(len(x)):
                    distance = x[k] - mean
                    sign = _prototype_sign(level[k], r)
                    own = 1.0 - abs(sign)
                    value, derivative = _two_level_loss(key & _PLACE, sign * distance)
                    total += abs(sign) * value + own * distance * distance
                    push += sign * derivative
                    weight[k] += sign * derivative + own * 2.0 * distance
                means[i, r] = mean
                pulls[r] = push / counts[r]
            # Every score moves its own level's mean, and with it what the other levels feel.
            for k in range(len(x)):
                weight[k] -= pulls[level[k]]
            losses[i] = total

    return proximal_rows


def make_real_rows(key: int) -> Any:
    """Make the kernel of `Kernels.real_rows` for a loss."""

    @_kernel
    def real_rows(start, stop, indptr, scores, targets, losses, weights):
        for i in range(start, stop):
            row = slice(indptr[i], indptr[i + 1])
            losses[i] = _real_row(key, scores[row], targets[row], weights[row])

    return real_rows


def make_label_rows(key: int) -> Any:
    """Make the kernel of `Kernels.label_rows` for a loss."""

    @_kernel
    def label_rows(start, stop, indptr, indices, scores, losses):
        n_labels = scores.shape[1]
        signs = np.full(n_labels, -1.0)
        for i in range(start, stop):
            present = indices[indptr[i] : indptr[i + 1]]
            for k in range(len(present)):
                signs[present[k]] = 1.0
            x = scores[i]
            total = 0.0
            for k in range(n_labels):
                y = signs[k]
                value, derivative = _two_level_loss(key & _PLACE, y * x[k])
                total += value
                x[k] = y * derivative
            for k in range(len(present)):
                signs[present[k]] = -1.0
            losses[i] = total

    return label_rows


_compiled: list[Any] = [
    *passes.KERNELS,
    *(ranking.expected_ratings, ranking.top_n),
    *(products.gram_rows, counting.count_above),
]


def n_compilations() -> int:
    """Return how many kernels this process had to compile, those from the cache not counted."""
    return sum(sum(kernel.stats.cache_misses.values()) for kernel in _compiled)


@lru_cache(maxsize=128)
def for_loss(make: Callable[[int], Any], loss: TwoLevelLoss | RealLoss) -> Any:
    """Return the kernel that the factory makes for a loss.

    A loss of the user's own is not in the table.  It gets a copy of the kernel, and of the row
    losses that the kernel calls, in which the table holds this loss alone: the same code with
    global names bound anew.  The copy must not be cached on disk, where it would be taken for the
    original.
    """
    real = isinstance(loss, RealLoss)
    losses: list[Any] = list((REAL if real else TWO_LEVEL).values())
    if loss in losses:
        kernel = make(_key(losses, loss))
    else:
        source = make(0).py_func
        names = {
            **globals(),
            **source.__globals__,
            "_real_loss" if real else "_two_level_loss": _dispatcher([loss]),
        }
        for row_loss in (_two_level_row, _threshold_row, _real_row):
            names[row_loss.py_func.__name__] = _inline(_rebound(row_loss.py_func, names))
        kernel = njit(nogil=True, fastmath=set(FASTMATH))(_rebound(source, names))
    _compiled.append(kernel)
    return kernel


def _rebound(function: Any, names: dict[str, Any]) -> FunctionType:
    """Return the same function with other global names."""
    return FunctionType(
        function.__code__, names, function.__name__, function.__defaults__, function.__closure__
    )
