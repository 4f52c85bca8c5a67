"""Passes over ratings and over vectors that know nothing of losses.

A compiler makes vector code of a plain loop, but for the ten to a hundred factors of a row it
spends as long before and after the vector part as inside it, and it keeps nothing in registers
from one rating to the next.  Two loops are therefore given to Numba as LLVM code: the inner product
of two rows, and the step back from one row's weights to the gradients of both sides.

All arrays are in C order.  Each kernel works on the range ``start:stop`` of rows, entries or
blocks and writes nothing outside it.
"""

from typing import Any

import numpy as np
from numba import carray, njit, types
from numba.extending import intrinsic

from marginmf.backends.code import FASTMATH, Code

_kernel = njit(cache=True, nogil=True, fastmath=set(FASTMATH))
_inline = njit(nogil=True, forceinline=True, fastmath=set(FASTMATH))

# Numbers in one vector.
_WIDTH = 8

# Numbers of a vector that are worked on at a time.  Fixed, so that threads do not change the
# rounding of sums; a block of what is used several times stays in the nearest cache.
DOT_BLOCK, PASS_BLOCK = 16_384, 4_096


@intrinsic
def _pointer(typing_context, address, like):
    """Return an address as a pointer to numbers like those of an array."""

    def generate(context, builder, signature, arguments):
        return builder.inttoptr(arguments[0], context.get_value_type(signature.return_type))

    return types.CPointer(like.dtype)(types.uintp, like), generate


@_inline
def _vector_at(address, like):
    """Return the vector at an address, which is as long as another one and of the same kind.

    So that kernels take any number of vectors without being compiled for each number.
    """
    return carray(_pointer(address, like), like.shape)


@intrinsic
def _dot_at(typing_context, a, first_a, b, first_b, n):
    """Return the inner product of ``n`` numbers of ``a`` and of ``b``."""
    signature = a.dtype(a, types.intp, b, types.intp, types.intp)

    def generate(context, builder, signature, arguments):
        array_a, first_a, array_b, first_b, n = arguments
        code = Code(context, builder, a.dtype)
        at_a, at_b = code.place(a, array_a, first_a), code.place(b, array_b, first_b)
        sums = [code.variable(code.zeros(_WIDTH)) for _ in range(2)]

        def add(k, width, total):
            product = code.multiply(code.load(at_a, k, width), code.load(at_b, k, width))
            code.add_to(total, product)

        # Two sums, so that one addition need not wait for the other.
        with code.loop(0, n, 2 * _WIDTH) as k:
            add(k, _WIDTH, sums[0])
            add(code.plus(k, _WIDTH), _WIDTH, sums[1])
        done = code.multiple(n, 2 * _WIDTH)
        with code.loop(done, n, _WIDTH) as k:
            add(k, _WIDTH, sums[0])
        half, one = _WIDTH // 2, code.variable(code.zeros(1))
        rest = code.variable(code.zeros(half))
        with code.loop(code.multiple(n, _WIDTH), n, half) as k:
            add(k, half, rest)
        with code.loop(code.multiple(n, half), n, 1) as k:
            add(k, 1, one)
        total = code.halved(code.add(builder.load(sums[0]), builder.load(sums[1])))
        return code.add(code.total(code.add(total, builder.load(rest))), builder.load(one))

    return signature, generate


@intrinsic
def _score_4(typing_context, U, V, row, indices, first, out, at):
    """Put the scores of four entries of a row into ``out``; the row is read once for all four."""
    signature = types.void(U, V, types.intp, indices, types.intp, out, types.intp)

    def generate(context, builder, signature, arguments):
        array_U, array_V, row, array_indices, first, array_out, at = arguments
        code = Code(context, builder, U.dtype)
        n, at_index = code.length(U, array_U, 1), code.place(indices, array_indices, first)
        at_u = code.place(U, array_U, builder.mul(row, n))
        at_v = [
            code.place(V, array_V, builder.mul(code.index(indices, at_index, code.number(k)), n))
            for k in range(4)
        ]
        sums, rest, one = (
            [code.variable(code.zeros(width)) for _ in at_v] for width in (_WIDTH, 4, 1)
        )

        def add(k, width, totals):
            u = code.load(at_u, k, width)
            for place, total in zip(at_v, totals, strict=True):
                code.add_to(total, code.multiply(u, code.load(place, k, width)))

        with code.loop(0, n, _WIDTH) as k:
            add(k, _WIDTH, sums)
        with code.loop(code.multiple(n, _WIDTH), n, 4) as k:
            add(k, 4, rest)
        with code.loop(code.multiple(n, 4), n, 1) as k:
            add(k, 1, one)
        totals = code.four_totals(
            [
                code.add(code.halved(builder.load(a)), builder.load(b))
                for a, b in zip(sums, rest, strict=True)
            ]
        )
        ones = code.joined([builder.load(variable) for variable in one])
        code.store(code.add(totals, ones), code.place(out, array_out, at), code.number(0))
        return context.get_dummy_value()

    return signature, generate


def _make_spread(width: int, n_vectors: int) -> Any:
    """Make the step back for ``width * n_vectors`` neighbouring factors.

    The row's own factors and gradient stay in registers while its entries pass by.  Where the
    columns' gradient has no rows it is left alone.
    """

    @intrinsic
    def spread(typing_context, U, V, by_U, by_V, row, factor, indices, first, weights, n):
        signature = types.void(
            *(U, V, by_U, by_V, types.intp, types.intp, indices, types.intp, weights, types.intp)
        )

        def generate(context, builder, signature, arguments):
            array_U, array_V, array_by_U, array_by_V = arguments[:4]
            row, factor, array_indices, first, array_weights, n = arguments[4:]
            code = Code(context, builder, U.dtype)
            n_factors = code.length(U, array_U, 1)
            both = builder.icmp_signed("!=", code.length(by_V, array_by_V, 0), code.number(0))
            own = builder.add(builder.mul(row, n_factors), factor)
            at_u, at_by_u = code.place(U, array_U, own), code.place(by_U, array_by_U, own)
            at_v, at_by_v = code.place(V, array_V, factor), code.place(by_V, array_by_V, factor)
            at_index = code.place(indices, array_indices, first)
            at_weight = code.place(weights, array_weights, code.number(0))
            steps = [code.number(width * k) for k in range(n_vectors)]
            u = [code.load(at_u, step, width) for step in steps]
            totals = [code.variable(code.load(at_by_u, step, width)) for step in steps]
            with code.loop(0, n, 1) as k:
                weight = code.spread(builder.load(builder.gep(at_weight, [k])), width)
                column = code.index(indices, at_index, k)
                start = builder.mul(column, n_factors)
                for q, step in enumerate(steps):
                    place = builder.add(start, step)
                    code.add_to(totals[q], code.multiply(weight, code.load(at_v, place, width)))
                    with builder.if_then(both, likely=True):
                        sum_v = code.load(at_by_v, place, width)
                        sum_v = code.add(sum_v, code.multiply(weight, u[q]))
                        code.store(sum_v, at_by_v, place)
            for total, step in zip(totals, steps, strict=True):
                code.store(builder.load(total), at_by_u, step)
            return context.get_dummy_value()

        return signature, generate

    return spread


_spread_32, _spread_16, _spread_8, _spread_4, _spread_1 = (
    _make_spread(*size) for size in ((8, 4), (8, 2), (8, 1), (4, 1), (1, 1))
)


@_inline
def _score_row(row, first, n, indices, U, V, out):
    """Fill ``out`` with the scores of one row's entries."""
    n_factors, done = U.shape[1], n & ~3
    for k in range(0, done, 4):
        _score_4(U, V, row, indices, first + k, out, k)
    for k in range(done, n):
        out[k] = _dot_at(U, row * n_factors, V, np.intp(indices[first + k]) * n_factors, n_factors)


@_inline
def _spread_row(row, first, n, indices, weights, U, V, by_U, by_V):
    """Add what one row's weights give to the gradients of the row and of its columns."""
    n_factors, p = U.shape[1], 0
    while p + 32 <= n_factors:
        _spread_32(U, V, by_U, by_V, row, p, indices, first, weights, n)
        p += 32
    if p + 16 <= n_factors:
        _spread_16(U, V, by_U, by_V, row, p, indices, first, weights, n)
        p += 16
    if p + 8 <= n_factors:
        _spread_8(U, V, by_U, by_V, row, p, indices, first, weights, n)
        p += 8
    if p + 4 <= n_factors:
        _spread_4(U, V, by_U, by_V, row, p, indices, first, weights, n)
        p += 4
    while p < n_factors:
        _spread_1(U, V, by_U, by_V, row, p, indices, first, weights, n)
        p += 1


@_kernel
def spread(start, stop, indptr, indices, U, V, by_U, by_V, room, weights):
    """Add what given weights give to the gradients of both sides."""
    for block in range(indptr.shape[0]):
        for i in range(start, stop):
            end = indptr[block, i + 1]
            for first in range(indptr[block, i], end, room.shape[1]):
                n = min(room.shape[1], end - first)
                _spread_row(i, first, n, indices, weights[first : first + n], U, V, by_U, by_V)


@_kernel
def scores(start, stop, rows, columns, U, V, out):
    """Fill ``out`` with the inner products of rows of U and of V."""
    n = U.shape[1]
    for k in range(start, stop):
        out[k] = _dot_at(U, np.intp(rows[k]) * n, V, np.intp(columns[k]) * n, n)


@_kernel
def sparse_product(start, stop, indptr, indices, weights, dense, out):
    """Fill rows of ``out`` with those of a sparse matrix times a dense one."""
    nothing = out[:0]
    for i in range(start, stop):
        first, n = indptr[i], indptr[i + 1] - indptr[i]
        out[i] = 0
        _spread_row(i, first, n, indices, weights[first : first + n], out, dense, out, nothing)


@_kernel
def gather(start, stop, values, order, out):
    """Fill ``out`` with values in another order."""
    for k in range(start, stop):
        out[k] = values[order[k]]


@_kernel
def sum_parts(start, stop, parts, out):
    """Add to rows of ``out`` the same rows of all parts, part after part."""
    for i in range(start, stop):
        for part in range(parts.shape[0]):
            row, total = parts[part, i], out[i]
            for p in range(total.shape[0]):
                total[p] += row[p]


@_kernel
def dot(start, stop, a, b, block, out):
    """Fill ``out`` with the inner products of blocks of two vectors."""
    for part in range(start, stop):
        # Views, because the compiler makes vector code of loops over whole arrays alone.
        x, y = a[part * block : (part + 1) * block], b[part * block : (part + 1) * block]
        total = 0.0
        for k in range(len(x)):
            total += np.float64(x[k]) * np.float64(y[k])
        out[part] = total


@_kernel
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


@_kernel
def combine(start, stop, scales, addresses, block, out):
    """Fill blocks of ``out`` with the sums of several vectors, each times a number."""
    for part in range(start, stop):
        first, last = part * block, min((part + 1) * block, out.shape[0])
        total = out[first:last]
        total[:] = 0
        for row in range(addresses.shape[0]):
            vector, scale = _vector_at(addresses[row], out)[first:last], scales[row]
            for k in range(last - first):
                total[k] += scale * vector[k]


@_kernel
def axpy(start, stop, scale, a, b):
    """Add ``scale * a`` to ``b``."""
    x, y = a[start:stop], b[start:stop]
    for k in range(len(x)):
        y[k] += scale * x[k]


@_kernel
def scale(start, stop, factor, a):
    """Multiply ``a`` in place."""
    x = a[start:stop]
    for k in range(len(x)):
        x[k] *= factor


KERNELS: tuple[Any, ...] = (
    *(scores, spread, sparse_product, gather, sum_parts),
    *(dot, dots, combine, axpy, scale),
)
