"""The compiled functions behind products with sparse matrices, which label methods are made of.

They keep the rules of `marginmf.kernels.compiled`.  A compiler makes vector code of a loop over
the columns of a dense row, but it does not know how many there are: for twenty of them it spends
more time around the vector code than inside it, and writes the sums to memory after every entry.
The inner loop is therefore given to Numba as LLVM code that holds up to `MOST` sums in registers
while the entries of a sparse row pass by.
"""
# What Numba compiles is typed by Numba.
# mypy: allow-untyped-defs, allow-untyped-decorators, allow-untyped-calls

from typing import Any

from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic

_kernel = njit(cache=True, nogil=True, fastmath={"reassoc", "contract", "nsz"})

#: Numbers in one vector, and the most that are summed up at a time.
LANES = 8
MOST = 4 * LANES
_FLAGS = ("contract", "nsz")


def _make_weighted_sum(n_vectors: int) -> Any:
    """Make the sum of weighted rows for ``n_vectors`` vectors of neighbouring columns.

    The columns begin at ``column``, and the last vector at ``tail``: where their number is no
    multiple of `LANES`, the last two vectors overlap, and what both hold is the same.
    """

    @intrinsic
    def weighted_sum(
        typing_context, indices, weights, first, last, dense, width, column, tail, out, place
    ):
        number = types.intp
        signature = types.void(
            *(indices, weights, number, number, dense, number, number, number, out, number)
        )

        def generate(context, builder, signature, arguments):
            arrays = {
                name: context.make_array(kind)(context, builder, argument).data
                for name, kind, argument in zip(
                    ("indices", "weights", "dense", "out"),
                    (indices, weights, dense, out),
                    (arguments[0], arguments[1], arguments[4], arguments[8]),
                    strict=True,
                )
            }
            first, last, width, column, tail, place = (arguments[k] for k in (2, 3, 5, 6, 7, 9))
            intp = context.get_value_type(number)
            scalar = context.get_value_type(dense.dtype)
            vector = ir.VectorType(scalar, LANES)
            size = context.get_abi_sizeof(scalar)
            lane0 = ir.Constant(ir.IntType(32), 0)
            everywhere = ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES)

            def at(array: Any, offset: Any) -> Any:
                return builder.bitcast(builder.gep(array, [offset]), vector.as_pointer())

            offsets = [builder.add(column, ir.Constant(intp, LANES * q)) for q in range(n_vectors)]
            offsets[-1] = tail
            zeros = ir.Constant(vector, [0.0] * LANES)
            sums = [cgutils.alloca_once_value(builder, zeros) for _ in offsets]
            with cgutils.for_range_slice(builder, first, last, ir.Constant(intp, 1)) as (k, _):
                weight = builder.load(builder.gep(arrays["weights"], [k]))
                lanes = builder.insert_element(ir.Constant(vector, ir.Undefined), weight, lane0)
                lanes = builder.shuffle_vector(lanes, lanes, everywhere)
                row = builder.load(builder.gep(arrays["indices"], [k]))
                row = builder.sext(row, intp) if row.type != intp else row
                start = builder.mul(row, width)
                for offset, total in zip(offsets, sums, strict=True):
                    found = builder.load(at(arrays["dense"], builder.add(start, offset)))
                    found.align = size
                    product = builder.fmul(lanes, found, flags=_FLAGS)
                    builder.store(builder.fadd(builder.load(total), product, flags=_FLAGS), total)
            for offset, total in zip(offsets, sums, strict=True):
                target = at(arrays["out"], builder.add(place, offset))
                builder.store(builder.load(total), target).align = size
            return context.get_dummy_value()

        return signature, generate

    return weighted_sum


_sum_1, _sum_2, _sum_3, _sum_4 = (_make_weighted_sum(n + 1) for n in range(4))


@_kernel
def sparse_product(start, stop, indptr, indices, weights, dense, out):
    """Fill rows of ``out`` with those of a sparse matrix times ``dense``; all in C order."""
    width = dense.shape[1]
    tail = width - LANES
    for i in range(start, stop):
        first, last = indptr[i], indptr[i + 1]
        if width < LANES:
            total = out[i]
            total[:] = 0
            for k in range(first, last):
                row = dense[indices[k]]
                for p in range(width):
                    total[p] += weights[k] * row[p]
            continue
        column, place = 0, i * width
        while width - column > MOST:
            end = column + MOST - LANES
            _sum_4(indices, weights, first, last, dense, width, column, end, out, place)
            column += MOST
        if width - column > 3 * LANES:
            _sum_4(indices, weights, first, last, dense, width, column, tail, out, place)
        elif width - column > 2 * LANES:
            _sum_3(indices, weights, first, last, dense, width, column, tail, out, place)
        elif width - column > LANES:
            _sum_2(indices, weights, first, last, dense, width, column, tail, out, place)
        else:
            _sum_1(indices, weights, first, last, dense, width, column, tail, out, place)


@_kernel
def gram_rows(start, stop, indptr, indices, values, by_column, rows, places, out):
    """Fill rows of ``out`` with the upper triangle of ``X^T X``; the rest of them becomes zero.

    Column ``j`` of X has the entries ``by_column[j]:by_column[j + 1]`` in the order of its rows:
    entry ``t`` is in row ``rows[t]``, at ``places[t]`` of the arrays of X.
    """
    for j in range(start, stop):
        total = out[j]
        total[:] = 0
        for t in range(by_column[j], by_column[j + 1]):
            first = places[t]
            value = total.dtype.type(values[first])
            # Columns ascend within a row: those from here on are to the right of the diagonal.
            for k in range(first, indptr[rows[t] + 1]):
                total[indices[k]] += value * values[k]
