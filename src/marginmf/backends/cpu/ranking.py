"""From scores to answers, compiled: probabilities, expected ratings, the n best, and counts."""

import math
from typing import Any

import numpy as np

from marginmf.backends.cpu.compiling import inline, kernel

# Division by zero cannot happen in the sigmoid, and asking whether it does would keep the compiler
# from making vector code of it.
_kernel, _inline = kernel(error_model="numpy"), inline(error_model="numpy")
# The same for a pair whatever else is asked for: sums keep their order.
_EXACT: dict[str, Any] = {"error_model": "numpy", "fastmath": {"contract", "nsz"}}
_exact = inline(**_EXACT)

# Columns that are worked on together: their margins fit in the fastest cache.
_TILE = 256

# Columns that are compared with the worst of the best together.
_GLANCE = 32

_LOG2_E = np.float32(np.log2(np.e))
_LOG_2 = np.float32(np.log(2.0))
_ZERO, _HALF, _ONE = np.float32(0.0), np.float32(0.5), np.float32(1.0)
# 1/3! to 1/6!, of the exponential series.
_C3, _C4, _C5, _C6 = (np.float32(1 / factorial) for factorial in (6, 24, 120, 720))
# Powers of two between which float32 has no infinity and no denormal numbers.
_LEAST, _MOST = np.float32(-126.0), np.float32(126.0)

# Dips of a distribution that may be nothing but float32's rounding, and differences of its peaks.
_FLAT, _NEAR = np.float32(1e-6), np.float32(1e-4)


@_inline
def _sigmoid(x):
    """Return ``1 / (1 + e^-x)`` in float32, by arithmetic alone so that it becomes vector code.

    ``e^-x = 2^whole e^rest`` with ``|rest| <= log(2) / 2``, where six terms of the series are
    exact to float32's last digit; the bits of ``2^whole`` are its exponent.
    """
    power = min(max(-x * _LOG2_E, _LEAST), _MOST)
    whole = np.floor(power + _HALF)
    r = (power - whole) * _LOG_2
    series = _C3 + r * (_C4 + r * (_C5 + r * _C6))
    series = _ONE + r * (_ONE + r * (_HALF + r * series))
    scale = np.int32((np.int32(whole) + np.int32(127)) << np.int32(23)).view(np.float32)
    return _ONE / (_ONE + series * scale)


# A curve, from 1 to 0, is the probability of being above more and more levels, first above none:
# level q has the probability curve[q] - curve[q + 1].


@_exact
def _bend(before, own, after, fallen):
    """Return how far probabilities fall to this level, or rise once they have fallen."""
    fall = before - own - (own - after)
    return max(fall, _ZERO), min(fallen, max(-fall, _ZERO))


@_exact
def _straighten(curve, first, last, sign):
    """Draw part of a curve as the tightest string above it (sign 1) or below it (sign -1)."""
    while first < last:
        begin, best = curve[first], first + 1
        slope = curve[best] - begin
        for k in range(first + 2, last + 1):
            other = (curve[k] - begin) / (k - first)
            if sign * other > sign * slope:
                best, slope = k, other
        for k in range(first + 1, best):
            curve[k] = begin + slope * (k - first)
        first = best


@_exact
def _make_unimodal(curve, mode):
    """Let probabilities rise up to the highest, that of the mode, and fall from there.

    They rise where the curve is concave and fall where it is convex.  Neighbours that are out of
    order get their mean, as in isotonic regression: there is no nearer distribution with this mode.
    """
    _straighten(curve, 0, mode, 1)
    _straighten(curve, mode + 1, len(curve) - 1, -1)


@_inline
def _expected_unimodal(chances, steps, curve):
    """Return the expected rating of a curve once it is unimodal.

    Where two levels are about as likely, rounding may decide which is the mode: it is the one with
    the higher answer here, so that no list ends before an item that should be in it.
    """
    highest, answer = _ZERO, _ZERO
    for q in range(len(steps) + 1):
        highest = max(highest, chances[q] - chances[q + 1])
    for mode in range(len(steps) + 1):
        if chances[mode] - chances[mode + 1] < highest - _NEAR:
            continue
        for q in range(len(curve)):
            curve[q] = chances[q]
        _make_unimodal(curve, mode)
        expected = _ZERO
        for q in range(len(steps)):
            expected += steps[q] * curve[q + 1]
        answer = max(answer, expected)
    return answer


@_kernel
def expected_ratings(
    scores, offsets, bounds, weights, user_terms, item_terms, steps, unimodal, expected, ties
):
    """Fill ``expected`` and ``ties``; see `marginmf.backends.ranking`."""
    n_steps, n_margins = weights.shape
    n_columns = scores.shape[2]
    clipped = np.empty((n_margins, _TILE), np.float32)
    sums, dips = np.empty(_TILE, np.float32), np.empty(_TILE, np.float32)
    # Of being above no level, above each but the last, and above all.
    chances = np.zeros((n_steps + 2, _TILE), np.float32)
    chances[0] = 1
    curve = np.empty(n_steps + 2, np.float32)
    for i in range(scores.shape[1]):
        for first in range(0, n_columns, _TILE):
            columns = slice(first, min(first + _TILE, n_columns))
            value, tie = expected[i, columns], ties[i, columns]
            n = len(value)
            partial = sums[:n]
            value[:] = 0
            tie[:] = 0
            for p in range(n_margins):
                x, margins = scores[p if scores.shape[0] > 1 else 0, i, columns], clipped[p, :n]
                offset, low, high = offsets[i, p], bounds[0, p], bounds[1, p]
                if np.isfinite(offset):
                    for j in range(n):
                        margin = x[j] + offset
                        tie[j] += margin
                        margins[j] = min(max(margin, low), high)
                else:
                    margins[:] = high if offset > 0 else low
            for q in range(n_steps):
                # All summands of the log-odds but the last are summed here, and the last one where
                # the sum is used: every loop less is a passage through memory less.
                item_term, last, summed = item_terms[q, columns], -1, False
                for p in range(n_margins):
                    if weights[q, p] == 0:
                        continue
                    if last >= 0:
                        weight, margins = weights[q, last], clipped[last, :n]
                        if summed:
                            for j in range(n):
                                partial[j] += weight * margins[j]
                        else:
                            for j in range(n):
                                partial[j] = item_term[j] + weight * margins[j]
                        summed = True
                    last = p
                base = partial if summed else item_term
                weight, margins = weights[q, last], clipped[last, :n]
                user_term, step = user_terms[i, q], steps[q]
                chance, lower = chances[q, :n], chances[q + 1, :n]
                for j in range(n):
                    above = _sigmoid(user_term + base[j] + weight * margins[j])
                    # A higher level cannot be more likely than a lower one.
                    lower[j] = min(chance[j], above)
                    value[j] += step * lower[j]
            if not unimodal:
                continue
            falls, dip = partial, dips[:n]
            falls[:] = 0
            dip[:] = 0
            for q in range(n_steps):
                before, own, after = chances[q, :n], chances[q + 1, :n], chances[q + 2, :n]
                # Sums: maxima would be stored where they are higher only, which is far slower.
                for j in range(n):
                    fall, rise = _bend(before[j], own[j], after[j], falls[j])
                    falls[j] += fall
                    dip[j] += rise
            for j in range(n):
                if dip[j] > _FLAT:
                    value[j] = _expected_unimodal(chances[:, j], steps, curve)


@_inline
def _worse(scores, ties, columns, a, b):
    """Whether entry a of a heap comes after entry b in the ranking."""
    if scores[a] != scores[b]:
        return scores[a] < scores[b]
    if ties[a] != ties[b]:
        return ties[a] < ties[b]
    return columns[a] > columns[b]


@_inline
def _swap(scores, ties, columns, a, b):
    scores[a], scores[b] = scores[b], scores[a]
    ties[a], ties[b] = ties[b], ties[a]
    columns[a], columns[b] = columns[b], columns[a]


@_inline
def _rise(scores, ties, columns, position):
    """Move an entry towards the root of the heap until its parent is worse."""
    while position > 0:
        parent = (position - 1) // 2
        if not _worse(scores, ties, columns, position, parent):
            break
        _swap(scores, ties, columns, position, parent)
        position = parent


@_inline
def _sink(scores, ties, columns, size):
    """Move the root down the heap until both its children are better."""
    position = 0
    while True:
        child = 2 * position + 1
        if child >= size:
            break
        if child + 1 < size and _worse(scores, ties, columns, child + 1, child):
            child += 1
        if not _worse(scores, ties, columns, child, position):
            break
        _swap(scores, ties, columns, position, child)
        position = child


@_kernel
def top_n(scores, ties, indptr, excluded, first, best, best_scores, best_ties):
    """Improve every row of ``best``; see `marginmf.backends.ranking`.

    The best so far are a heap with the worst of them at its root.  Columns are compared with it
    many at a time, and almost always none of them is better.
    """
    n_columns, n = scores.shape[1], best.shape[1]
    row = np.empty(n_columns, scores.dtype)
    for i in range(len(scores)):
        tie, heap, heap_scores, heap_ties = ties[i], best[i], best_scores[i], best_ties[i]
        row[:] = scores[i]
        left_out = excluded[indptr[i] : indptr[i + 1]]
        for k in range(np.searchsorted(left_out, first), len(left_out)):
            if left_out[k] >= first + n_columns:
                break
            row[left_out[k] - first] = -np.inf
        size = 0
        while size < n and heap[size] >= 0:
            size += 1
        # Worst first, a sorted row is a heap.
        for k in range(size // 2):
            _swap(heap_scores, heap_ties, heap, k, size - 1 - k)
        for begin in range(0, n_columns, _GLANCE):
            glance = row[begin : begin + _GLANCE]
            lowest = heap_scores[0] if size == n else -np.inf
            n_better = 0
            for j in range(len(glance)):
                n_better += glance[j] >= lowest
            if n_better == 0:
                continue
            for j in range(begin, begin + len(glance)):
                score = row[j]
                # Written so that NaN is skipped too.
                if not score > -np.inf:
                    continue
                if size < n:
                    heap[size], heap_scores[size], heap_ties[size] = j + first, score, tie[j]
                    _rise(heap_scores, heap_ties, heap, size)
                    size += 1
                elif score > heap_scores[0] or (score == heap_scores[0] and tie[j] > heap_ties[0]):
                    heap[0], heap_scores[0], heap_ties[0] = j + first, score, tie[j]
                    _sink(heap_scores, heap_ties, heap, size)
        # The worst goes to the end, again and again: best first remains.
        while size > 1:
            size -= 1
            _swap(heap_scores, heap_ties, heap, 0, size)
            _sink(heap_scores, heap_ties, heap, size)


@kernel(**_EXACT)
def chances_above(
    start, stop, margins, bounds, weights, user_terms, user_rows, item_terms, item_rows, unimodal,
    shrink, shift, out,
):  # fmt: skip
    """Fill ``out`` with the probability of a rating above each level, pair by pair.

    The log-odds of pair ``k`` are ``user_terms[user_rows[k]] + item_terms[item_rows[k]]`` plus the
    weights times the margins, clipped to the bounds.  Probabilities that rise from level to level
    are held down, those of the levels made unimodal if told so; then all are multiplied by
    ``shrink`` and moved by ``shift``, which keeps both.
    """
    n_steps, n_margins = weights.shape
    clipped, curve = np.empty(n_margins), np.empty(n_steps + 2)
    curve[0], curve[n_steps + 1] = 1.0, 0.0
    for k in range(start, stop):
        margin, chances = margins[k], out[k]
        user_term, item_term = user_terms[user_rows[k]], item_terms[item_rows[k]]
        for p in range(n_margins):
            clipped[p] = min(max(np.float64(margin[p]), bounds[0, p]), bounds[1, p])
        for q in range(n_steps):
            log_odds = user_term[q] + item_term[q]
            for p in range(n_margins):
                log_odds += weights[q, p] * clipped[p]
            curve[q + 1] = min(curve[q], 1.0 / (1.0 + math.exp(-log_odds)))
        if unimodal:
            falls, dips, mode = 0.0, 0.0, 0
            for q in range(n_steps):
                fall, rise = _bend(curve[q], curve[q + 1], curve[q + 2], falls)
                falls += fall
                dips += rise
            if dips > 0.0:
                for q in range(1, n_steps + 1):
                    if curve[q] - curve[q + 1] > curve[mode] - curve[mode + 1]:
                        mode = q
                _make_unimodal(curve, mode)
        for q in range(n_steps):
            chances[q] = shrink * curve[q + 1] + shift[q]


# No fastmath: counts and the comparisons behind them are exact.
@kernel(fastmath=False)
def count_above(
    start, stop, scores, present, top1, candidates, cells, scale, predicted, right, overlaps
):
    """Add the counts of rows ``start:stop``; see `marginmf.backends.labels.count_above`.

    The cells say about where a score is among the candidates: from there on it takes a step or two,
    where halving would take eight.
    """
    n, n_labels = len(candidates), scores.shape[1]
    lowest, last_cell = candidates[0], np.float64(len(cells) - 1)
    above, above_right = np.zeros(n + 1, np.int64), np.zeros(n + 1, np.int64)
    for i in range(start, stop):
        above[:] = 0
        above_right[:] = 0
        n_present = 0
        best = np.argmax(scores[i]) if top1 else -1
        for label in range(n_labels):
            there = present[i, label]
            n_present += there
            score = np.float64(scores[i, label])
            if label == best:
                k = n
            elif score > lowest:
                cell = (score - lowest) * scale
                # An infinite score is in the last cell too, whatever the scale.
                k = cells[int(cell) if cell < last_cell else len(cells) - 1]
                while k < n and candidates[k] < score:
                    k += 1
            else:
                continue  # most scores are below all candidates
            above[k] += 1
            predicted[label, k] += 1
            if there:
                above_right[k] += 1
                right[label, k] += 1
        n_above, n_right = 0, 0
        for k in range(n, 0, -1):
            # What is above k candidates is above the first k of them.
            n_above += above[k]
            n_right += above_right[k]
            if n_right:
                overlaps[0, k - 1] += n_right / (n_above + n_present - n_right)
                overlaps[1, k - 1] += 2 * n_right / (n_above + n_present)
