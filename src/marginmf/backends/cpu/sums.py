"""Sums over long vectors, and inner products of pairs of rows, compiled.

Each kernel works on a range of blocks or pairs and writes nothing outside it.  Blocks have a fixed
length, so that threads do not change the rounding of sums; a block of what is used several times
stays in the nearest cache.
"""

from typing import Any

import numpy as np
from numba import carray, types
from numba.extending import intrinsic

from marginmf._utils.types import FloatArray
from marginmf.backends.cpu.compiling import inline, kernel, sources
from marginmf.backends.cpu.inner_loops import VECTOR_CODE, dot_at, scatter_row
from marginmf.backends.threads import row_bounds, run

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
    """Return the vector at an address, which is as long as another one and of the same kind.

    So that kernels take any number of vectors without being compiled for each number.
    """
    return carray(_pointer(address, like), like.shape)


def _make_scores(key: int) -> Any:
    @kernel
    def scores(start, stop, rows, columns, U, V, out):
        _ = key
        n = U.shape[1]
        for k in range(start, stop):
            out[k] = dot_at(U, np.intp(rows[k]) * n, V, np.intp(columns[k]) * n, n)

    return scores


def _make_sparse_product(key: int) -> Any:
    @kernel
    def sparse_product(start, stop, indptr, indices, weights, dense, out):
        _ = key
        nothing = out[:0]
        for i in range(start, stop):
            first, n = indptr[i], indptr[i + 1] - indptr[i]
            scatter_row(i, first, n, indices, weights[first : first + n], out, dense, out, nothing)

    return sparse_product


#: Fills its last argument with the inner products of rows of U and of V.
scores = _make_scores(sources(VECTOR_CODE))
#: Adds the rows of a sparse matrix times a dense one to those of its last argument.
sparse_product = _make_sparse_product(sources(VECTOR_CODE))


def add_sparse_product(
    matrix: Any, weights: FloatArray, dense: FloatArray, out: FloatArray, n_threads: int
) -> None:
    """Add a sparse matrix of these weights, stored by rows, times a dense one to ``out``."""

    def task(start: int, stop: int) -> None:
        sparse_product(start, stop, matrix.indptr, matrix.indices, weights, dense, out)

    run(task, row_bounds(matrix.indptr, n_threads, dense.shape[1]), n_threads)


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
