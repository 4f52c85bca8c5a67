"""Row losses, compiled: one kernel for each loss.

Losses are known by their position in the table of losses.  A loss of the user's own is compiled
into its own copy of the kernel, in the process.
"""

from collections.abc import Callable
from functools import lru_cache, partial
from types import FunctionType
from typing import Any
from zlib import crc32

import numpy as np

from marginmf.backends.cpu.compiling import inline, kernel, sources
from marginmf.backends.cpu.inner_loops import VECTOR_CODE
from marginmf.losses import REAL, TWO_LEVEL, RealLoss, TwoLevelLoss
from marginmf.thresholds import prototype_sign, threshold_sign

_threshold_sign = inline(threshold_sign)
_prototype_sign = inline(prototype_sign)


def _dispatcher(losses: list[Any]) -> Any:
    """Compile ``loss(code, ...) -> (value, derivative)`` for the code-th loss of the list."""
    value, derivative = inline(losses[0].value), inline(losses[0].derivative)
    if len(losses) == 1:
        return inline(lambda code, *args: (value(*args), derivative(*args)))
    rest = _dispatcher(losses[1:])

    @inline
    def dispatch(code: int, *args: float) -> Any:
        if code == 0:
            return value(*args), derivative(*args)
        return rest(code - 1, *args)

    return dispatch


_two_level_loss = _dispatcher(list(TWO_LEVEL.values()))
_real_loss = _dispatcher(list(REAL.values()))

# The low bits of a kernel's key are the loss's position in the table.
_POSITION = 255


def _key(losses: list[Any], loss: Any) -> int:
    """Return the key of a loss: its position in the table, and a checksum of its definition.

    With the checksum in its closure, a kernel is compiled anew when a loss changes; see `sources`.
    """
    functions = (loss.value, loss.derivative, threshold_sign, prototype_sign)
    codes = (function.__code__ for function in functions)
    definition = [(code.co_code, code.co_consts, code.co_names) for code in codes]
    return crc32(repr(definition).encode(), sources(VECTOR_CODE)) << 8 | losses.index(loss)


# The losses of one row, or of a part of it: they fill in the derivatives by the scores, add to
# those by the thresholds, and return the loss.  The key is a constant inside the kernels, so the
# other losses are compiled away, and the compiler sees that views of one row do not overlap.
# Together that turns them into vector code, ten times faster than asking for the loss in the loop.


@inline
def two_level_row(key, x, level, cut, weight):
    """Judge scores by whether their level is above the cut."""
    total = 0.0
    for k in range(len(x)):
        y = 1.0 if level[k] > cut else -1.0
        value, derivative = _two_level_loss(key & _POSITION, y * x[k])
        total += value
        weight[k] = y * derivative
    return total


@inline
def threshold_row(key, x, level, thresholds, reach, weight, by_threshold):
    """Judge scores against the thresholds of their row."""
    weight[:] = 0
    total = 0.0
    for r in range(len(thresholds)):
        threshold, slope = thresholds[r], 0.0
        for k in range(len(x)):
            sign = _threshold_sign(level[k], r, reach)
            value, derivative = _two_level_loss(key & _POSITION, sign * (threshold - x[k]))
            total += abs(sign) * value
            slope += sign * derivative
            weight[k] -= sign * derivative
        by_threshold[r] += slope
    return total


@inline
def real_row(key, x, target, weight):
    """Judge scores against real targets."""
    total = 0.0
    for k in range(len(x)):
        value, derivative = _real_loss(key & _POSITION, target[k], x[k])
        total += value
        weight[k] = derivative
    return total


def make_proximal_rows(key: int) -> Any:
    """Make the kernel of a row loss against the means of the row's levels.

    A row's entries may lie in several blocks: their scores and levels are brought together, and
    the derivatives are taken back.  ``losses`` and ``means`` are filled, as are the ``weights``.
    """

    @kernel
    def proximal_rows(start, stop, indptr, scores, levels, losses, weights, means):
        n_levels, longest = means.shape[1], 0
        for i in range(start, stop):
            length = 0
            for block in range(indptr.shape[0]):
                length += indptr[block, i + 1] - indptr[block, i]
            longest = max(longest, length)
        counts, sums, pulls = np.empty(n_levels), np.empty(n_levels), np.empty(n_levels)
        all_x, all_weight = np.empty(longest, scores.dtype), np.empty(longest, scores.dtype)
        all_level = np.empty(longest, levels.dtype)
        for i in range(start, stop):
            n = 0
            for block in range(indptr.shape[0]):
                first, last = indptr[block, i], indptr[block, i + 1]
                all_x[n : n + last - first] = scores[first:last]
                all_level[n : n + last - first] = levels[first:last]
                n += last - first
            x, level, weight = all_x[:n], all_level[:n], all_weight[:n]
            weight[:] = 0
            counts[:] = 0
            sums[:] = 0
            for k in range(n):
                counts[level[k]] += 1
                sums[level[k]] += x[k]
            total = 0.0
            for r in range(n_levels):
                if counts[r] == 0:
                    means[i, r] = np.nan
                    continue
                mean, push = sums[r] / counts[r], 0.0
                for k in range(n):
                    distance = x[k] - mean
                    sign = _prototype_sign(level[k], r)
                    own = 1.0 - abs(sign)
                    value, derivative = _two_level_loss(key & _POSITION, sign * distance)
                    total += abs(sign) * value + own * distance * distance
                    push += sign * derivative
                    weight[k] += sign * derivative + own * 2.0 * distance
                means[i, r] = mean
                pulls[r] = push / counts[r]
            # Every score moves its own level's mean, and with it what the other levels feel.
            for k in range(n):
                weight[k] -= pulls[level[k]]
            losses[i] = total
            n = 0
            for block in range(indptr.shape[0]):
                first, last = indptr[block, i], indptr[block, i + 1]
                weights[first:last] = weight[n : n + last - first]
                n += last - first

    return proximal_rows


def make_label_rows(key: int, real: int) -> Any:
    """Make the kernel of `label_losses`: of targets -1 and 1 where real is 1, else of margins."""

    @kernel
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
                if real == 1:
                    value, derivative = _real_loss(key & _POSITION, y, x[k])
                    x[k] = derivative
                else:
                    value, derivative = _two_level_loss(key & _POSITION, y * x[k])
                    x[k] = y * derivative
                total += value
            for k in range(len(present)):
                signs[present[k]] = -1.0
            losses[i] = total

    return label_rows


_make_real_label_rows, _make_two_level_label_rows = (
    partial(make_label_rows, real=real) for real in (1, 0)
)


@lru_cache(maxsize=128)
def for_loss(make: Callable[[int], Any], loss: TwoLevelLoss | RealLoss) -> Any:
    """Return the kernel that the factory makes for a loss.

    A loss of the user's own gets a copy of the kernel, and of the row losses that it calls, in
    which the table holds this loss alone: the same code with global names bound anew.  On disk the
    copy would be taken for the original.
    """
    real = isinstance(loss, RealLoss)
    losses: list[Any] = list((REAL if real else TWO_LEVEL).values())
    if loss in losses:
        return make(_key(losses, loss))
    source = make(0).py_func
    names = {**globals(), **source.__globals__}
    names["_real_loss" if real else "_two_level_loss"] = _dispatcher([loss])
    for row_loss in (two_level_row, threshold_row, real_row):
        names[row_loss.py_func.__name__] = inline(_rebound(row_loss.py_func, names))
    return kernel(_rebound(source, names), disk=False)


def for_label_loss(loss: TwoLevelLoss | RealLoss) -> Any:
    """Return the kernel of `marginmf.backends.labels.label_losses` for a loss."""
    real = isinstance(loss, RealLoss)
    return for_loss(_make_real_label_rows if real else _make_two_level_label_rows, loss)


def _rebound(function: Any, names: dict[str, Any]) -> FunctionType:
    """Return the same function with other global names."""
    return FunctionType(
        function.__code__, names, function.__name__, function.__defaults__, function.__closure__
    )
