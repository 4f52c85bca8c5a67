"""The row problems of variational max-margin factorisation, compiled.

The loss of one rating by its score x is convex and piecewise linear: with the cost as the unit, its
slope is minus the code of the rating's level below all kinks and rises by one at each of them,
which are ``t - margin`` for thresholds t at or above the level and ``t + margin`` for those below.
So each problem has one unknown and one or many kinks, and is solved exactly.  Rows are independent:
kernels work on a range of them and write nothing outside it.
"""

from typing import Any

import numpy as np

from marginmf.backends.cpu.compiling import inline, kernel

#: How near to 0 and 1 a probability may come.
FLOOR = 1e-10
#: Halvings of the interval along which an item's factors move.
HALVINGS = 40


@inline
def fill_kinks(code, thresholds, margin, kinks):
    """Write where the slope of the loss of a rating rises, in rising order."""
    for r in range(len(thresholds)):
        kink = thresholds[r] + (margin if r < code else -margin)
        q = r
        while q > 0 and kinks[q - 1] > kink:
            kinks[q] = kinks[q - 1]
            q -= 1
        kinks[q] = kink


@inline
def proximal(centre, step, lowest, kinks):
    """Return the x that minimises ``(x - centre)^2 / 2`` plus the step times the loss.

    The slope of the loss is ``-lowest`` below all kinks, which are sorted.
    """
    n, previous = len(kinks), -np.inf
    for q in range(n):
        x = centre + step * (lowest - q)
        if x <= kinks[q]:
            return max(x, previous)
        previous = kinks[q]
    return max(centre + step * (lowest - n), previous)


@inline
def excess(x, code, thresholds, margin):
    """Return the loss of a rating at a score, with the cost as the unit."""
    total = 0.0
    for r in range(len(thresholds)):
        gap = x - thresholds[r]
        total += max(0.0, margin - gap if r < code else margin + gap)
    return total


@inline
def slope_at(x, code, thresholds, margin):
    """Return the slope of the loss of a rating at a score, with the cost as the unit."""
    total = 0.0
    for r in range(len(thresholds)):
        gap = x - thresholds[r]
        if r < code:
            total -= 1.0 if gap < margin else 0.0
        else:
            total += 1.0 if gap > -margin else 0.0
    return total


@inline
def dot(a, b):
    """Return the inner product of two vectors."""
    total = 0.0
    for k in range(len(a)):
        total += a[k] * b[k]
    return total


@inline
def add_scaled(out, scale, a):
    """Add a multiple of one vector to another."""
    for k in range(len(a)):
        out[k] += scale * a[k]


@kernel
def improve_items(
    start: Any,
    stop: Any,
    indptr: Any,
    users: Any,
    codes: Any,
    factors: Any,
    offsets: Any,
    thresholds: Any,
    cost: Any,
    margin: Any,
    n_passes: Any,
    tolerance: Any,
    duals: Any,
    items: Any,
) -> None:
    """Lower ``|v|^2 / 2`` plus the losses of scores ``offset + u . v`` of every item, in place.

    A dual number for each rating, a slope of its loss, stands for ``v = -sum dual u``.  All
    dual numbers but one fixed, the best one is found exactly.  What the passes end with is taken if
    it is better than the v of before, or else the best point between them.
    """
    n_factors, n_thresholds = factors.shape[1], thresholds.shape[1]
    longest = 0
    for j in range(start, stop):
        longest = max(longest, indptr[j + 1] - indptr[j])
    # Copied for each item, because passes over rows that lie apart wait for memory.
    rows, kinks = np.empty((longest, n_factors)), np.empty((longest, n_thresholds))
    norms, starts = np.empty(longest), np.empty(longest)
    before, change = np.empty(longest), np.empty(longest)
    v = np.empty(n_factors)
    for j in range(start, stop):
        first, n = indptr[j], indptr[j + 1] - indptr[j]
        levels, own = codes[first : first + n], duals[first : first + n]
        v[:] = 0.0
        for e in range(n):
            i, u = users[first + e], rows[e]
            u[:] = factors[i]
            fill_kinks(levels[e], thresholds[i], margin, kinks[e])
            norms[e], starts[e] = dot(u, u), offsets[i]
            before[e] = offsets[i] + dot(u, items[j])
            add_scaled(v, -own[e], u)
        for _ in range(n_passes):
            moved = 0.0
            for e in range(n):
                if norms[e] < 1e-12:
                    continue
                u = rows[e]
                centre = starts[e] + dot(u, v) + norms[e] * own[e]
                x = proximal(centre, cost * norms[e], np.float64(levels[e]), kinks[e])
                found = (centre - x) / norms[e]
                if found != own[e]:
                    add_scaled(v, own[e] - found, u)
                    moved = max(moved, abs(found - own[e]))
                    own[e] = found
            if moved <= tolerance * cost:
                break
        here, there = 0.5 * dot(items[j], items[j]), 0.5 * dot(v, v)
        for e in range(n):
            theta = thresholds[users[first + e]]
            x = starts[e] + dot(rows[e], v)
            here += cost * excess(before[e], levels[e], theta, margin)
            there += cost * excess(x, levels[e], theta, margin)
            change[e] = x - before[e]
        share = 1.0
        if there > here:
            for k in range(n_factors):
                v[k] -= items[j, k]
            along, length = dot(items[j], v), dot(v, v)
            low = 0.0
            for _ in range(HALVINGS):
                middle = 0.5 * (low + share)
                slope = along + middle * length
                for e in range(n):
                    i = users[first + e]
                    x = before[e] + middle * change[e]
                    slope += cost * change[e] * slope_at(x, levels[e], thresholds[i], margin)
                if slope > 0:
                    share = middle
                else:
                    low = middle
            add_scaled(items[j], low, v)
        else:
            items[j] = v


@inline
def sigmoid(x):
    """Return the logistic function, kept away from 0 and 1."""
    if x > 0:
        p = 1.0 / (1.0 + np.exp(-x))
    else:
        e = np.exp(x)
        p = e / (1.0 + e)
    return min(max(p, FLOOR), 1.0 - FLOOR)


@inline
def first_stop(distances, weights, n, value, sign, odds, slope, cost):
    """Return how far to go from a value, through kinks at some distances, none of them sorted.

    The minimum is where ``sigmoid(odds - slope)`` is the value, or at a kink where it no longer
    lies ahead.  Kinks are divided by one of them, and one half is left alone, until none is left.
    """
    low, high, limit = 0, n, np.inf
    while low < high:
        a, b, c = distances[low], distances[(low + high) // 2], distances[high - 1]
        pivot = max(min(a, b), min(max(a, b), c))
        less, k, more, passed = low, low, high, 0.0
        while k < more:  # less than the pivot, equal to it, greater
            d = distances[k]
            if d > pivot:
                more -= 1
                distances[k], distances[more] = distances[more], d
                weights[k], weights[more] = weights[more], weights[k]
                continue
            passed += weights[k]
            if d < pivot:
                distances[k], distances[less] = distances[less], d
                weights[k], weights[less] = weights[less], weights[k]
                less += 1
            k += 1
        beyond = slope + sign * cost * passed
        if sign * (sigmoid(odds - beyond) - value) > pivot:
            slope, low = beyond, more
        else:
            limit, high = pivot, less
    return min(max(sign * (sigmoid(odds - slope) - value), 0.0), limit)


@inline
def position(x, kinks):
    """Return how many of the finite kinks are not above x."""
    p = 0
    while kinks[p + 1] <= x:
        p += 1
    return p


@inline
def improve_probabilities(codes, columns, kinks, odds, cost, own, x, room, events):
    """Minimise over each of a user's probabilities in turn, and keep the scores up to date.

    ``room`` has the slope of every rating's loss and the kinks below and above its score;
    ``kinks`` those of every level, between minus and plus infinity.
    """
    n = len(codes)
    for e in range(n):
        table = kinks[codes[e]]
        p = position(x[e], table)
        room[0, e], room[1, e], room[2, e] = p - codes[e], table[p], table[p + 1]
    crossing = np.empty(n, np.int64)
    for k in range(len(own)):
        column, value = columns[k, :n], own[k]
        slope = cost * dot(column, room[0, :n])
        full = sigmoid(odds[k] - slope) - value
        if full == 0.0:
            continue
        n_crossing = 0
        for e in range(n):
            end = x[e] + full * column[e]
            crossing[n_crossing] = e
            n_crossing += (end > room[2, e]) | (end < room[1, e])
        sign, n_events = (1.0 if full > 0 else -1.0), 0
        for c in range(n_crossing):
            e = crossing[c]
            table, p = kinks[codes[e]], np.int64(room[0, e]) + codes[e]
            end, size = x[e] + full * column[e], abs(column[e])
            if end > x[e]:
                p += 1
                while table[p] < end:
                    events[0, n_events] = max((table[p] - x[e]) / size, 0.0)
                    events[1, n_events] = size
                    n_events, p = n_events + 1, p + 1
            else:
                while table[p] > end:
                    events[0, n_events] = max((x[e] - table[p]) / size, 0.0)
                    events[1, n_events] = size
                    n_events, p = n_events + 1, p - 1
        step = full
        if n_events > 0:
            step = sign * first_stop(
                events[0], events[1], n_events, value, sign, odds[k], slope, cost
            )
            if step == 0.0:
                continue
        own[k] = min(max(value + step, FLOOR), 1.0 - FLOOR)
        add_scaled(x, step, column)
        for c in range(n_crossing):
            e = crossing[c]
            table = kinks[codes[e]]
            p = position(x[e], table)
            room[0, e], room[1, e], room[2, e] = p - codes[e], table[p], table[p + 1]


@inline
def proximal_of_many(centre, step, lowest, kinks):
    """Return what `proximal` does for many kinks in any order, which are divided as above."""
    low, high, previous = 0, len(kinks), -np.inf
    while low < high:
        a, b, c = kinks[low], kinks[(low + high) // 2], kinks[high - 1]
        pivot = max(min(a, b), min(max(a, b), c))
        less, q, more = low, low, high
        while q < more:
            kink = kinks[q]
            if kink > pivot:
                more -= 1
                kinks[q], kinks[more] = kinks[more], kink
                continue
            if kink < pivot:
                kinks[q], kinks[less] = kinks[less], kink
                less += 1
            q += 1
        if centre + step * (lowest - less) <= pivot:
            high = less
        elif centre + step * (lowest - more) <= pivot:
            return pivot
        else:
            low, previous = more, pivot
    return max(centre + step * (lowest - low), previous)


@inline
def improve_thresholds(codes, x, centres, spread, cost, margin, own, scratch):
    """Minimise over each of a user's thresholds, which do not depend on one another."""
    n = len(codes)
    for r in range(len(own)):
        below = 0
        for e in range(n):
            under = codes[e] <= r
            scratch[e] = x[e] + (margin if under else -margin)
            below += under
        step = spread * spread * cost
        own[r] = proximal_of_many(centres[r], step, np.float64(below), scratch[:n])


@kernel
def improve_users(
    start: Any,
    stop: Any,
    indptr: Any,
    indices: Any,
    codes: Any,
    items: Any,
    odds: Any,
    centres: Any,
    spread: Any,
    cost: Any,
    margin: Any,
    n_rounds: Any,
    factors: Any,
    thresholds: Any,
    losses: Any,
) -> None:
    """Improve every user's probabilities, then their thresholds, n times, in place.

    ``odds`` are what the prior adds to the log-odds of each factor.  Losses are those of every user
    at the end, the penalty on thresholds included; with no rounds, those of what is given.
    """
    n_factors, n_thresholds = factors.shape[1], thresholds.shape[1]
    longest = 0
    for i in range(start, stop):
        longest = max(longest, indptr[i + 1] - indptr[i])
    columns, x = np.empty((n_factors, longest)), np.empty(longest)
    room, events = np.empty((3, longest)), np.empty((2, longest * n_thresholds))
    kinks = np.empty((n_thresholds + 1, n_thresholds + 2))
    kinks[:, 0], kinks[:, n_thresholds + 1] = -np.inf, np.inf
    for i in range(start, stop):
        first, n = indptr[i], indptr[i + 1] - indptr[i]
        own, levels, theta = factors[i], codes[first : first + n], thresholds[i]
        for e in range(n):
            v = items[indices[first + e]]
            for k in range(n_factors):
                columns[k, e] = v[k]
            x[e] = dot(own, v)
        for _ in range(n_rounds):
            for level in range(n_thresholds + 1):
                fill_kinks(level, theta, margin, kinks[level, 1 : n_thresholds + 1])
            improve_probabilities(levels, columns, kinks, odds, cost, own, x[:n], room, events)
            improve_thresholds(levels, x, centres, spread, cost, margin, theta, room[0])
        total = 0.0
        for e in range(n):
            total += cost * excess(x[e], levels[e], theta, margin)
        for r in range(n_thresholds):
            total += 0.5 * ((theta[r] - centres[r]) / spread) ** 2
        losses[i] = total
