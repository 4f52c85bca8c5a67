"""The inner loops of `marginmf.backends.cpu.vector_code` as ordinary Numba code.

They are the oracle of that module's tests, and serve in its place where it cannot be used: on a
platform that LLVM's vectors do not suit, or with a Numba whose private parts have changed.
"""
# What Numba compiles is typed by Numba.
# mypy: allow-untyped-defs, allow-untyped-decorators, allow-untyped-calls

import numpy as np

from marginmf.backends.cpu.compiling import inline


@inline
def dot_at(a, first_a, b, first_b, n):
    """Return the inner product of ``n`` numbers of ``a`` and of ``b``."""
    x, y = a.ravel()[first_a : first_a + n], b.ravel()[first_b : first_b + n]
    total = a.dtype.type(0)
    for k in range(n):
        total += x[k] * y[k]
    return total


@inline
def score_row(row, first, n, indices, U, V, out):
    """Fill ``out`` with the scores of one row's entries."""
    u = U[row]
    for k in range(n):
        v, total = V[indices[first + k]], U.dtype.type(0)
        for p in range(len(u)):
            total += u[p] * v[p]
        out[k] = total


@inline
def scatter_row(row, first, n, indices, weights, U, V, by_U, by_V):
    """Add what the derivatives by one row's scores give to both sides' gradients."""
    u, by_u, both = U[row], by_U[row], by_V.shape[0] > 0
    for k in range(n):
        column, weight = indices[first + k], weights[k]
        v = V[column]
        for p in range(len(u)):
            by_u[p] += weight * v[p]
        if both:
            by_v = by_V[column]
            for p in range(len(u)):
                by_v[p] += weight * u[p]


@inline
def load_acquire(array, index):
    """Return a number; without a promise about what other threads wrote before it."""
    return array[index]


@inline
def store_release(array, index, value):
    """Change a number; without a promise about when other threads see it."""
    array[index] = np.int64(value)
