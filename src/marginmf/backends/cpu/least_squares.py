"""The compiled functions behind the least-squares methods: biases, and alternating rows."""

from typing import Any

import numpy as np

from marginmf._utils.types import FloatArray, IntArray
from marginmf.backends.cpu.compiling import inline, kernel, sources
from marginmf.backends.cpu.inner_loops import VECTOR_CODE, scatter_row, score_row

# Factors of columns that are read twice, for scores and for the way back, and that stay in the
# nearest cache in between.
_NUMBERS_AT_A_TIME = 3_000


@kernel
def row_sums(start, stop, indptr, indices, values, out):
    """Fill ``out`` with every row's sum of its columns' values."""
    for i in range(start, stop):
        row = indices[indptr[i] : indptr[i + 1]]
        total = 0.0
        for k in range(len(row)):
            total += values[row[k]]
        out[i] = total


@kernel
def add_to_columns(indptr, indices, values, out):
    """Add every row's value to its columns: all rows in one call, because they share columns."""
    for i in range(len(indptr) - 1):
        row = indices[indptr[i] : indptr[i + 1]]
        for k in range(len(row)):
            out[row[k]] += values[i]


@inline
def _dot(a, b):
    """Return the inner product of two short vectors, summed in float64."""
    total = 0.0
    for p in range(len(a)):
        total += np.float64(a[p]) * np.float64(b[p])
    return total


def _make_improve_rows(key: int) -> Any:

    @kernel
    def improve_rows(
        start, stop, indptr, indices, targets, columns, ridge, eigenvalues, n_steps, rows
    ):
        """Take steps of conjugate gradients towards every row's ridge regression, in place.

        The matrix of row ``i`` is ``sum_k v_k v_k^T + ridge I`` over its columns' factors
        ``v_k``.  It is never formed: a step takes a score and a multiple of each ``v_k``.  The
        preconditioner is the diagonal ``n_i eigenvalues + ridge``, as `eigenbasis` explains.
        """
        _ = key
        n_factors, kind = rows.shape[1], rows.dtype.type
        at_a_time = max(_NUMBERS_AT_A_TIME // n_factors, 8)
        scores, weights = np.empty(at_a_time, rows.dtype), np.empty(at_a_time, rows.dtype)
        # Matrices of one row, because that is what the passes take.
        direction = np.empty((1, n_factors), rows.dtype)
        product = np.empty((1, n_factors), rows.dtype)
        nothing = product[:0]
        # In the usual letters: direction, matrix times direction, residual, preconditioned.
        p, q = direction[0], product[0]
        r, z = np.empty(n_factors, rows.dtype), np.empty(n_factors, rows.dtype)
        scales = np.empty(n_factors, rows.dtype)
        for i in range(start, stop):
            x, first, last = rows[i], indptr[i], indptr[i + 1]
            n_entries = kind(last - first)
            for f in range(n_factors):
                scales[f] = kind(1.0) / (n_entries * eigenvalues[f] + ridge)
                p[f] = x[f]
                q[f] = -ridge * x[f]
            # The residual of the normal equations: sum_k (y_k - x . v_k) v_k - ridge x.
            for begin in range(first, last, at_a_time):
                n = min(at_a_time, last - begin)
                score_row(0, begin, n, indices, direction, columns, scores)
                y = targets[begin : begin + n]
                for k in range(n):
                    weights[k] = y[k] - scores[k]
                scatter_row(0, begin, n, indices, weights, direction, columns, product, nothing)
            for f in range(n_factors):
                r[f] = q[f]
                z[f] = scales[f] * r[f]
                p[f] = z[f]
            size = _dot(r, z)
            for _ in range(n_steps):
                for f in range(n_factors):
                    q[f] = ridge * p[f]
                for begin in range(first, last, at_a_time):
                    n = min(at_a_time, last - begin)
                    score_row(0, begin, n, indices, direction, columns, scores)
                    scatter_row(0, begin, n, indices, scores, direction, columns, product, nothing)
                curvature = _dot(p, q)
                if size <= 0.0 or curvature <= 0.0:  # solved to the last digit
                    break
                step = kind(size / curvature)
                for f in range(n_factors):
                    x[f] += step * p[f]
                    r[f] -= step * q[f]
                    z[f] = scales[f] * r[f]
                before, size = size, _dot(r, z)
                turn = kind(size / before)
                for f in range(n_factors):
                    p[f] = z[f] + turn * p[f]

    return improve_rows


def eigenbasis(factors: FloatArray, indices: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return the eigenvalues and eigenvectors of ``v v^T``, averaged over all entries.

    The matrices ``sum_k v_k v_k^T`` of rows with n entries are about n times that average.  In
    the basis of its eigenvectors they are therefore nearly diagonal, and their diagonals are about
    n times the eigenvalues: a preconditioner that costs next to nothing.
    """
    counts = np.bincount(indices, minlength=len(factors))
    weighted = factors * np.sqrt(counts / max(len(indices), 1))[:, None]
    eigenvalues, vectors = np.linalg.eigh(weighted.T @ weighted)
    return np.maximum(eigenvalues, 0.0).astype(factors.dtype), vectors.astype(factors.dtype)


improve_rows = _make_improve_rows(sources(VECTOR_CODE))
