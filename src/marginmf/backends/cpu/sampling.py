"""Draws of many rows' factors at once, each from a normal distribution of its own, compiled."""

from math import erfc
from typing import Any

import numpy as np

from marginmf.backends.cpu.compiling import inline, kernel, sources
from marginmf.backends.cpu.inner_loops import VECTOR_CODE, scatter_row

#: Numbers of factors that are copied together, so that they stay in the nearest cache.
NUMBERS_AT_A_TIME = 2_000


@inline
def _factorise(matrix):
    """Replace the upper triangle of a positive definite matrix by R, where ``R^T R`` is it."""
    n = matrix.shape[0]
    for k in range(n):
        row = matrix[k]
        scale = 1.0 / np.sqrt(row[k])
        for q in range(k, n):
            row[q] *= scale
        for p in range(k + 1, n):
            other, factor = matrix[p], row[p]
            for q in range(p, n):
                other[q] -= factor * row[q]


@inline
def _draw(matrix, right, noise):
    """Replace ``g`` by a draw from ``N(P^-1 g, P^-1)``, of ``P = R^T R`` and standard noise."""
    n = matrix.shape[0]
    for k in range(n):
        right[k] /= matrix[k, k]
        for q in range(k + 1, n):
            right[q] -= matrix[k, q] * right[k]
    for k in range(n):
        right[k] += noise[k]
    for k in range(n - 1, -1, -1):
        total = right[k]
        for q in range(k + 1, n):
            total -= matrix[k, q] * right[q]
        right[k] = total / matrix[k, k]


def _make_draw_rows(key: int) -> Any:
    """Make the kernel, whose inner loops come from other files; see `sources`."""

    @kernel(error_model="numpy")
    def draw_rows(
        start, stop, indptr, indices, given, weights, linear, precision, shift, noise, out
    ):
        """Fill rows of ``out`` with draws, as `marginmf.backends.Backend.draw_rows` says.

        One weight, or one row of noise, is that of all.  All sums are in float64, also those of
        the Gram matrix: with large weights its rounding in float32 would be larger than the prior,
        and its sum with this no longer positive definite.
        """
        _ = key
        n_factors = given.shape[1]
        at_a_time = max(NUMBERS_AT_A_TIME // n_factors, 8)
        chunk = np.empty((at_a_time, n_factors))
        weighted = np.empty((n_factors, at_a_time))
        linear_chunk, order = np.empty(at_a_time), np.arange(at_a_time)
        gram = np.empty((n_factors, n_factors))
        sums = np.empty((1, n_factors))
        nothing = gram[:0]
        matrix, right = np.empty((n_factors, n_factors)), np.empty(n_factors)
        for i in range(start, stop):
            gram[:] = 0
            sums[:] = 0
            for first in range(indptr[i], indptr[i + 1], at_a_time):
                n = min(at_a_time, indptr[i + 1] - first)
                for k in range(n):
                    weight = weights[first + k] if weights.shape[0] > 1 else weights[0]
                    own, copied = given[indices[first + k]], chunk[k]
                    for p in range(n_factors):
                        copied[p] = own[p]
                        weighted[p, k] = weight * copied[p]
                    linear_chunk[k] = linear[first + k]
                scatter_row(0, 0, n, order, linear_chunk, sums, chunk, sums, nothing)
                for p in range(n_factors):
                    scatter_row(p, 0, n, order, weighted[p], gram, chunk, gram, nothing)
            for p in range(n_factors):
                right[p] = shift[p] + sums[0, p]
                for q in range(p, n_factors):
                    matrix[p, q] = precision[p, q] + gram[p, q]
            _factorise(matrix)
            _draw(matrix, right, noise[i if noise.shape[0] > 1 else 0])
            for p in range(n_factors):
                out[i, p] = right[p]

    return draw_rows


draw_rows = _make_draw_rows(sources(VECTOR_CODE))


@kernel(error_model="numpy")
def gaussian_chances(start, stop, users, items, U, V, scales, edges, above):
    """Add up the chances of pairs to be above the edges, and divide by the number of samples.

    ``U`` and ``V`` have a first axis for samples, in which a number is normal around the product of
    its factors; ``scales`` are one over its standard deviations.
    """
    n_samples, n_factors = U.shape[0], U.shape[2]
    half = np.sqrt(0.5)
    for s in range(n_samples):
        own_U, own_V, scale = U[s], V[s], half * scales[s]
        for k in range(start, stop):
            u, v, score = own_U[users[k]], own_V[items[k]], 0.0
            for p in range(n_factors):
                score += np.float64(u[p]) * np.float64(v[p])
            for q in range(edges.shape[0]):
                above[k, q] += 0.5 * erfc(scale * (edges[q] - score))
    for k in range(start, stop):
        for q in range(edges.shape[0]):
            above[k, q] /= n_samples
