"""The inner loops that kernels are compiled with: the vector code, or plain ones.

The plain loops are the oracle of the vector code's tests.  They serve where that does not work, for
example with a Numba whose private parts have changed, and where the environment variable
``MARGINMF_PLAIN_KERNELS`` is set.
"""

import os
import warnings
from typing import Any, NamedTuple

import numpy as np

from marginmf.backends.cpu.compiling import inline


@inline
def _dot_at(a, first_a, b, first_b, n):
    """Return the inner product of ``n`` numbers of ``a`` and of ``b``."""
    x, y = a.ravel()[first_a : first_a + n], b.ravel()[first_b : first_b + n]
    total = a.dtype.type(0)
    for k in range(n):
        total += x[k] * y[k]
    return total


@inline
def _score_row(row, first, n, indices, U, V, out):
    """Fill ``out`` with the scores of one row's entries."""
    u = U[row]
    for k in range(n):
        v, total = V[indices[first + k]], U.dtype.type(0)
        for p in range(len(u)):
            total += u[p] * v[p]
        out[k] = total


@inline
def _scatter_row(row, first, n, indices, weights, U, V, by_U, by_V):
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
def _load_acquire(array, index):
    """Return a number; without a promise about what other threads wrote before it."""
    return array[index]


@inline
def _store_release(array, index, value):
    """Change a number; without a promise about when other threads see it."""
    array[index] = np.int64(value)


class Loops(NamedTuple):
    """One kind of inner loops."""

    dot_at: Any
    score_row: Any
    scatter_row: Any
    load_acquire: Any
    store_release: Any


PLAIN = Loops(_dot_at, _score_row, _scatter_row, _load_acquire, _store_release)


def _choose() -> Loops:
    """Return the vector code if it works here, else the plain loops."""
    if os.environ.get("MARGINMF_PLAIN_KERNELS"):
        return PLAIN
    try:
        from marginmf.backends.cpu import vector_code

        # From the cache on disk, so this costs a few milliseconds after the first time.
        factors, indices = np.ones((5, 19), np.float32), np.arange(5, dtype=np.int32)
        arguments = (factors, factors, 0 * factors, 0 * factors, indices, np.zeros(1, np.int64))
        if abs(vector_code.probe(*arguments) - 5 * 19.0) < 1e-6:
            return Loops(*(getattr(vector_code, name) for name in Loops._fields))
        reason = "it computes something else"
    except Exception as error:  # whatever Numba raises when its private parts have changed
        reason = str(error)
    warnings.warn(
        f"The vector code does not work with this version of Numba ({reason}): plain loops are "
        "used, which take two to three times as long.",
        RuntimeWarning,
        stacklevel=2,
    )
    return PLAIN


_loops = _choose()
#: Whether kernels are compiled with the vector code.
VECTOR_CODE = _loops is not PLAIN
dot_at, score_row, scatter_row, load_acquire, store_release = _loops
