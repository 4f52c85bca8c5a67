"""The hinge loss as a mixture of Gaussians: weights of scores, thresholds, probabilities, features.

With ``z = margin - T (theta - x)``, where T is 1 for ratings at or below the threshold theta and -1
above it, ``exp(-cost max(0, z))`` is the integral of a Gaussian in ``z`` over its scale, which has
an inverse Gaussian distribution given the rest (Polson and Scott, 2011).  A score x then has, from
each threshold, the weight ``omega = cost^2 / 4 / scale`` and the linear term
``omega (theta - T margin) - cost T / 2``.  Every kernel sums over one row at a time, so the answers
do not depend on how rows are divided among threads.
"""

from typing import Any

import numpy as np

from marginmf.backends.cpu.compiling import inline, kernel, sources
from marginmf.backends.cpu.inner_loops import VECTOR_CODE, dot_at, score_row

#: Distances from the corner of the hinge are taken for this at least: weights must stay finite.
NEAREST = 1e-10


@inline
def _weight(distance, cost, normal, uniform):
    """Return ``cost^2 / 4`` times a draw from the inverse Gaussian with mean 2/(cost distance).

    Its shape is 1.  This is the sampler of Michael, Schucany and Haas (1976).  With a = 1 / mean,
    the smaller root is ``2 / s``, the larger ``s / (2 a^2)``, and the smaller is taken with
    probability ``s / (s + 2 a)``: nothing cancels, however large the mean.
    """
    a = 0.5 * cost * max(distance, NEAREST)
    square = normal * normal
    s = 2.0 * a + square + np.sqrt(square * (square + 4.0 * a))
    smaller = uniform * (s + 2.0 * a) <= s
    above = 2.0 if smaller else s
    below = s if smaller else 2.0 * a * a
    return 0.25 * cost * cost * above / below


@inline
def _mean_weight(distance, cost):
    """Return the mean of `_weight` over its draws."""
    return 0.5 * cost / max(distance, NEAREST)


@kernel(error_model="numpy")
def draw_weights(distances, cost, normals, uniforms, out):
    """Fill ``out`` with weights of scores that are so far from the corner of the hinge."""
    for k in range(len(distances)):
        out[k] = _weight(distances[k], cost, normals[k], uniforms[k])


@inline
def _fill_signs(codes, r, signs):
    """Fill ``signs`` with 1 for ratings at or below a threshold, -1 for others."""
    for k in range(len(signs)):
        signs[k] = 1.0 if codes[k] <= r else -1.0


@inline
def _fill_weights(signs, offsets, cost, margin, normals, uniforms, omega):
    """Fill ``omega`` with weights, given ``theta - x``; with their means if there is no noise."""
    if len(normals) == 0:
        for k in range(len(omega)):
            omega[k] = _mean_weight(abs(margin - signs[k] * offsets[k]), cost)
    else:
        for k in range(len(omega)):
            distance = abs(margin - signs[k] * offsets[k])
            omega[k] = _weight(distance, cost, normals[k], uniforms[k])


@inline
def _redraw_features(z, by_feature, x, w, b, log_odds, uniforms):
    """Draw which features a row has, one after the other; ``x`` are its entries' scores.

    Features that nobody else has (whose log-odds are minus infinity) stay as they are.
    """
    for k in range(len(z)):
        if log_odds[k] == -np.inf:
            continue
        v, gain = by_feature[k], log_odds[k]
        for j in range(len(x)):
            gain += v[j] * (b[j] - w[j] * (x[j] - z[k] * v[j] + 0.5 * v[j]))
        has = 1.0 if uniforms[k] * (1.0 + np.exp(-gain)) < 1.0 else 0.0
        if has != z[k]:
            for j in range(len(x)):
                x[j] += (has - z[k]) * v[j]
            z[k] = has


@inline
def _copy_columns(V, columns, z, by_feature, x):
    """Fill in what features add to scores of entries, and the scores."""
    x[:] = 0.0
    for j in range(len(columns)):
        own = V[columns[j]]
        for k in range(len(z)):
            by_feature[k, j] = own[k]
            x[j] += z[k] * own[k]


@kernel(error_model="numpy")
def draw_features(start, stop, indptr, indices, weights, linear, V, log_odds, uniforms, Z):
    """Draw which features rows have, when how many others have them is given.

    ``uniforms`` has a row for each row and a column for each feature, as ``Z`` does.
    """
    longest = 0
    for i in range(start, stop):
        longest = max(longest, indptr[i + 1] - indptr[i])
    memory, scores = np.empty((Z.shape[1], longest)), np.empty(longest)
    for i in range(start, stop):
        own = slice(indptr[i], indptr[i + 1])
        columns = indices[own]
        by_feature, x = memory[:, : len(columns)], scores[: len(columns)]
        _copy_columns(V, columns, Z[i], by_feature, x)
        _redraw_features(Z[i], by_feature, x, weights[own], linear[own], log_odds, uniforms[i])


@inline
def _birth_chances(x, w, b, rate, variance, chances):
    """Fill in how likely numbers of features are that nobody else has; they add up to one.

    What c new features add to a score is normal with variance ``c variance``: given that, the
    scores' terms are integrated in closed form.
    """
    chances[0] = highest = 0.0
    for c in range(1, len(chances)):
        total = 0.0
        for j in range(len(x)):
            g = w[j] * x[j] - b[j]
            total += g * g / (w[j] + 1.0 / (c * variance)) - np.log1p(c * variance * w[j])
        chances[c] = 0.5 * total + c * np.log(rate)
        for n in range(2, c + 1):
            chances[c] -= np.log(n)
        highest = max(highest, chances[c])
    total = 0.0
    for c in range(len(chances)):
        chances[c] = np.exp(chances[c] - highest)
        total += chances[c]
    for c in range(len(chances)):
        chances[c] /= total


@kernel(error_model="numpy")
def next_birth(
    position,
    order,
    indptr,
    indices,
    weights,
    linear,
    V,
    Z,
    counts,
    concentration,
    variance,
    most_births,
    max_factors,
    uniforms,
    scores,
):
    """Draw the features of rows in this order, up to one that is to have new features.

    Returns its position and the number of new features; or the end of the order and 0.

    Parameters
    ----------
    V, Z : array
        The columns' weights of features, and which rows have which: of all features so far.
    counts : array
        How many rows have each feature; changed.
    concentration : float
        Of the Indian buffet process: how many features a row has in the mean.
    most_births : int
        How many features may be new in a row.
    max_factors : int
        How many features rows may have together.
    uniforms : array of shape (n_rows, 1 + at least as many as there are features)
    scores : array
        To be filled with the scores of the entries of the row that is to have new features.
    """
    n_rows, n_features = len(indptr) - 1, Z.shape[1]
    memory, log_odds = np.empty((n_features, len(scores))), np.empty(n_features)
    all_chances = np.empty(most_births + 1)
    while position < len(order):
        i = order[position]
        own, z = slice(indptr[i], indptr[i + 1]), Z[i]
        columns, w, b = indices[own], weights[own], linear[own]
        by_feature, x = memory[:, : len(columns)], scores[: len(columns)]
        for k in range(n_features):
            counts[k] -= np.int64(z[k])
            log_odds[k] = -np.inf
            if counts[k] > 0:
                log_odds[k] = np.log(counts[k] / (n_rows - counts[k]))
        _copy_columns(V, columns, z, by_feature, x)
        _redraw_features(z, by_feature, x, w, b, log_odds, uniforms[i, 1:])
        n_used = 0
        for k in range(n_features):
            # Births are drawn in place of the features that are the row's alone.  Only now: those
            # that it shares must be drawn given them, or the chain has another distribution.
            if counts[k] == 0 and z[k] > 0.0:
                z[k] = 0.0
                for j in range(len(x)):
                    x[j] -= by_feature[k, j]
            counts[k] += np.int64(z[k])
            if counts[k] > 0:
                n_used += 1
        # The features that were the row's alone leave room for as many new ones.
        most = min(most_births, max_factors - n_used)
        chances = all_chances[: most + 1]
        _birth_chances(x, w, b, concentration / n_rows, variance, chances)
        left, n_new = uniforms[i, 0], 0
        while n_new < most and left >= chances[n_new]:
            left -= chances[n_new]
            n_new += 1
        if n_new > 0:
            return position, n_new
        position += 1
    return position, 0


def _make_kernels(key: int) -> Any:
    """Make the kernels whose inner loops come from other files; see `sources`."""

    @kernel(error_model="numpy")
    def user_terms(
        start,
        stop,
        indptr,
        indices,
        codes,
        U,
        V,
        prior,
        cost,
        margin,
        noise,
        threshold_noise,
        shared,
        thresholds,
        weights,
        linear,
    ):
        """Draw the scales of rows' entries, then the rows' thresholds; fill in the scores' terms.

        Parameters
        ----------
        prior : array of shape (2, n_thresholds)
            The means and the precisions of thresholds.
        noise : array of shape (2, n_thresholds, n_entries)
            Standard normal and uniform numbers for the entries from row ``start`` on; if they are
            ``shared``, for the entries of any row.  Without any, scales have conditional means.
        threshold_noise : array of shape (n_rows, n_thresholds)
            Standard normal numbers for the rows from ``start`` on; with shared noise, for all rows.
        thresholds : array of shape (n_rows, n_thresholds)
            The old ones, and in the end the new ones.
        weights, linear : array
            To be filled, for every entry.
        """
        _ = key
        n_thresholds, longest = thresholds.shape[1], 0
        for i in range(start, stop):
            longest = max(longest, indptr[i + 1] - indptr[i])
        scores, offsets = np.empty(longest, U.dtype), np.empty(longest)
        signs, omega = np.empty(longest), np.empty(longest)
        drawn = noise.shape[2] > 0
        for i in range(start, stop):
            first = indptr[i]
            n = indptr[i + 1] - first
            x, T, off, om = scores[:n], signs[:n], offsets[:n], omega[:n]
            w, b = weights[first : first + n], linear[first : first + n]
            score_row(i, first, n, indices, U, V, x)
            w[:] = 0.0
            b[:] = 0.0
            at = 0 if shared or not drawn else first - indptr[start]
            size = n if drawn else 0
            for r in range(n_thresholds):
                theta = thresholds[i, r]
                _fill_signs(codes[first : first + n], r, T)
                for k in range(n):
                    off[k] = theta - x[k]
                normals, uniforms = noise[0, r, at : at + size], noise[1, r, at : at + size]
                _fill_weights(T, off, cost, margin, normals, uniforms, om)
                precision, pull = prior[1, r], prior[1, r] * prior[0, r]
                for k in range(n):
                    precision += om[k]
                    pull += om[k] * (x[k] + T[k] * margin) + 0.5 * cost * T[k]
                theta = pull / precision
                theta += threshold_noise[i if shared else i - start, r] / np.sqrt(precision)
                thresholds[i, r] = theta
                for k in range(n):
                    w[k] += om[k]
                    b[k] += om[k] * (theta - T[k] * margin) - 0.5 * cost * T[k]

    @kernel(error_model="numpy")
    def item_terms(
        start,
        stop,
        indptr,
        indices,
        codes,
        V,
        U,
        thresholds,
        cost,
        margin,
        noise,
        weights,
        linear,
    ):
        """Draw the scales of rows' entries when thresholds are those of columns, and stay.

        ``noise`` is that of every row; see `user_terms`, also for what is filled in.
        """
        _ = key
        n_thresholds, longest = thresholds.shape[1], 0
        for j in range(start, stop):
            longest = max(longest, indptr[j + 1] - indptr[j])
        scores, offsets = np.empty(longest, V.dtype), np.empty(longest)
        signs, omega = np.empty(longest), np.empty(longest)
        for j in range(start, stop):
            first = indptr[j]
            n = indptr[j + 1] - first
            x, T, off, om = scores[:n], signs[:n], offsets[:n], omega[:n]
            w, b = weights[first : first + n], linear[first : first + n]
            score_row(j, first, n, indices, V, U, x)
            w[:] = 0.0
            b[:] = 0.0
            for r in range(n_thresholds):
                _fill_signs(codes[first : first + n], r, T)
                for k in range(n):
                    off[k] = thresholds[indices[first + k], r] - x[k]
                _fill_weights(T, off, cost, margin, noise[0, r, :n], noise[1, r, :n], om)
                for k in range(n):
                    w[k] += om[k]
                    b[k] += om[k] * (off[k] + x[k] - T[k] * margin) - 0.5 * cost * T[k]

    @kernel(error_model="numpy")
    def hinge_sums(start, stop, indptr, indices, codes, U, V, thresholds, margin, out):
        """Fill ``out`` with every row's sum of hinge losses."""
        _ = key
        for i in range(start, stop):
            first = indptr[i]
            x, total = np.empty(indptr[i + 1] - first, U.dtype), 0.0
            score_row(i, first, len(x), indices, U, V, x)
            for r in range(thresholds.shape[1]):
                theta = thresholds[i, r]
                for k in range(len(x)):
                    above = x[k] - theta
                    total += max(0.0, margin + (above if codes[first + k] <= r else -above))
            out[i] = total

    @kernel(error_model="numpy")
    def add_distributions(start, stop, rows, columns, U, V, thresholds, cost, margin, out):
        """Add to ``out`` the probabilities of levels, ``exp(-cost hinges)`` normalised.

        Factors and thresholds have an axis for samples first, which are added up.
        """
        _ = key
        n_factors, n_thresholds = U.shape[2], thresholds.shape[2]
        energies = np.zeros(n_thresholds + 1)
        for s in range(U.shape[0]):
            for p in range(start, stop):
                i, j = np.intp(rows[p]), np.intp(columns[p])
                x = np.float64(dot_at(U[s], i * n_factors, V[s], j * n_factors, n_factors))
                # From a level to the next, one threshold is no longer above but below.
                lowest = 0.0
                for r in range(n_thresholds):
                    above = x - thresholds[s, i, r]
                    step = max(0.0, margin - above) - max(0.0, margin + above)
                    energies[r + 1] = energies[r] + step
                    lowest = min(lowest, energies[r + 1])
                total = 0.0
                for v in range(n_thresholds + 1):
                    total += np.exp(cost * (lowest - energies[v]))
                for v in range(n_thresholds + 1):
                    out[p, v] += np.exp(cost * (lowest - energies[v])) / total

    return user_terms, item_terms, hinge_sums, add_distributions


user_terms, item_terms, hinge_sums, add_distributions = _make_kernels(sources(VECTOR_CODE))
