"""Sums over long vectors, sparse products, and least squares, compiled.

Each kernel works on a range of rows, blocks or pairs and writes nothing outside it.  Blocks have a
fixed length, so that threads do not change the rounding of sums; a block of what is used several
times stays in the nearest cache.
"""

from typing import Any

import numpy as np
from numba import carray, types
from numba.extending import intrinsic

from marginmf._utils.types import FloatArray, IntArray
from marginmf.backends.cpu.compiling import inline, kernel, sources
from marginmf.backends.cpu.inner_loops import VECTOR_CODE, dot_at, scatter_row, score_row
from marginmf.backends.rows import Rows
from marginmf.backends.threads import row_bounds, run

# Factors of columns that are read twice, for scores and for the way back, and that stay in the
# nearest cache in between.
NUMBERS_AT_A_TIME = 3_000

# Rows whose least-squares problems are solved in one call.
_SOLVE_BLOCK = 64

#: Numbers of a vector that are worked on at a time.
BLOCK = 4_096


@intrinsic
def _pointer(typing_context, address, like):
    """Return an address as a pointer to numbers like those of an array."""

    def generate(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

    return types.CPointer(like.dtype)(types.uintp, like), generate


@inline
def _vector_at(address, like):
    """Return the vector at an address, like another: so kernels take any number of vectors."""
    return carray(_pointer(address, like), like.shape)


@inline
def _dot(a, b):
    """Return the inner product of two short vectors, summed in float64."""
    total = 0.0
    for p in range(len(a)):
        total += np.float64(a[p]) * np.float64(b[p])
    return total


def _make_kernels(key: int) -> Any:
    """Make the kernels whose inner loops come from other files; see `sources`."""

    @kernel
    def scores(start, stop, rows, columns, U, V, out):
        """Fill ``out`` with the inner products of rows of U and of V."""
        _ = key
        n = U.shape[1]
        for k in range(start, stop):
            out[k] = dot_at(U, np.intp(rows[k]) * n, V, np.intp(columns[k]) * n, n)

    @kernel
    def sparse_product(start, stop, indptr, indices, weights, dense, out):
        """Add the rows of a sparse matrix times a dense one to those of ``out``."""
        _ = key
        nothing = out[:0]
        for i in range(start, stop):
            first, n = indptr[i], indptr[i + 1] - indptr[i]
            scatter_row(i, first, n, indices, weights[first : first + n], out, dense, out, nothing)

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
        at_a_time = max(NUMBERS_AT_A_TIME // n_factors, 8)
        scores, weights = np.empty(at_a_time, rows.dtype), np.empty(at_a_time, rows.dtype)
        # Matrices of one row: score_row and scatter_row take matrices.
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

    return scores, sparse_product, improve_rows


scores, sparse_product, improve_rows = _make_kernels(sources(VECTOR_CODE))


def add_sparse_product(
    matrix: Any, weights: FloatArray, dense: FloatArray, out: FloatArray, n_threads: int
) -> None:
    """Add a sparse matrix of these weights, stored by rows, times a dense one to ``out``."""
    bounds = row_bounds(matrix.indptr, n_threads, dense.shape[1])
    run(sparse_product, bounds, n_threads, matrix.indptr, matrix.indices, weights, dense, out)


@kernel
def dots(start, stop, addresses, b, block, out):
    """Fill ``out`` with the inner products of blocks of several vectors with blocks of one."""
    for part in range(start, stop):
        first, last = part * block, min((part + 1) * block, b.shape[0])
        other = b[first:last]
        for row in range(addresses.shape[0]):
            vector = _vector_at(addresses[row], b)[first:last]
            total = 0.0
            for k in range(last - first):
                total += np.float64(vector[k]) * np.float64(other[k])
            out[part, row] = total


@kernel
def combine(start, stop, scales, addresses, block, out):
    """Fill blocks of ``out`` with the sums of several vectors, each times a number."""
    for part in range(start, stop):
        first, last = part * block, min((part + 1) * block, out.shape[0])
        total = out[first:last]
        # The first one before all others: the sum may be written over it.
        vector, scale = _vector_at(addresses[0], out)[first:last], scales[0]
        for k in range(last - first):
            total[k] = scale * vector[k]
        for row in range(1, addresses.shape[0]):
            vector, scale = _vector_at(addresses[row], out)[first:last], scales[row]
            for k in range(last - first):
                total[k] += scale * vector[k]


@kernel
def gram_rows(start, stop, indptr, indices, values, by_column, rows, positions, out):
    """Fill rows of ``out`` with the upper triangle of ``X^T X``; the rest of them becomes zero.

    Column ``j`` of X has the entries ``by_column[j]:by_column[j + 1]`` in the order of its rows:
    entry ``t`` is in row ``rows[t]``, at ``positions[t]`` of the arrays of X.
    """
    for j in range(start, stop):
        total = out[j]
        total[:] = 0
        for t in range(by_column[j], by_column[j + 1]):
            first = positions[t]
            value = total.dtype.type(values[first])
            # Columns ascend within a row: those from here on are to the right of the diagonal.
            for k in range(first, indptr[rows[t] + 1]):
                total[indices[k]] += value * values[k]


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


def eigenbasis(factors: FloatArray, indices: IntArray) -> tuple[FloatArray, FloatArray]:
    """Return the eigenvalues and eigenvectors of ``v v^T``, averaged over all entries.

    The matrices ``sum_k v_k v_k^T`` of rows with n entries are about n times that average, and so,
    in the basis of its eigenvectors, nearly diagonal: a preconditioner that costs next to nothing.
    """
    counts = np.bincount(indices, minlength=len(factors))
    weighted = factors * np.sqrt(counts / max(len(indices), 1))[:, None]
    eigenvalues, vectors = np.linalg.eigh(weighted.T @ weighted)
    return np.maximum(eigenvalues, 0.0).astype(factors.dtype), vectors.astype(factors.dtype)


def solve_rows(
    start: int,
    stop: int,
    rows: Rows,
    targets: FloatArray,
    factors: FloatArray,
    ridge: float,
    out: FloatArray,
) -> None:
    """Fill rows of ``out`` with the ridge regression of their targets on their columns' factors."""
    # The work is matrix products, which BLAS does best and without the interpreter lock; there
    # is nothing to compile here.
    n_factors = factors.shape[1]
    diagonal = np.arange(n_factors)
    for first in range(start, stop, _SOLVE_BLOCK):
        block = range(first, min(first + _SOLVE_BLOCK, stop))
        grams = np.empty((len(block), n_factors, n_factors), factors.dtype)
        right = np.empty((len(block), n_factors, 1), factors.dtype)
        for k, i in enumerate(block):
            entries = slice(rows.indptr[i], rows.indptr[i + 1])
            own = factors[rows.indices[entries]]
            np.dot(own.T, own, out=grams[k])
            np.dot(targets[entries], own, out=right[k, :, 0])
        grams[:, diagonal, diagonal] += ridge
        out[first : block.stop] = np.linalg.solve(grams, right)[:, :, 0]
