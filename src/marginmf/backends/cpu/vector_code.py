"""The two inner loops of every gradient, as LLVM code with vectors in it.

For the ten to a hundred factors of a row, the vector code that a compiler makes of a plain loop
spends as long before and after the vector part as inside it, and keeps nothing in registers from
one rating to the next.  So the scores of a row's entries (`score_row`) and the step back from their
derivatives to the gradients (`scatter_row`) are given to Numba as LLVM code, which is the same on
every processor: LLVM splits or joins the vectors to fit its registers.

This is the one module that uses what Numba does not promise to keep: where it fails, the plain
loops of `marginmf.backends.cpu.inner_loops` serve.  All arrays are in C order.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from marginmf.backends.cpu.compiling import FASTMATH, inline, kernel

# Numbers in one vector.
_WIDTH = 8

_INT32 = ir.IntType(32)


class _Code:
    """Writes LLVM code for vectors of one kind of floating-point number."""

    def __init__(self, context: Any, builder: Any, dtype: Any) -> None:
        self.context, self.builder = context, builder
        self.scalar = context.get_value_type(dtype)
        self.intp = context.get_value_type(types.intp)
        self.align = dtype.bitwidth // 8

    def number(self, value: int) -> Any:
        return ir.Constant(self.intp, value)

    def plus(self, index: Any, n: int) -> Any:
        return self.builder.add(index, self.number(n))

    def multiple(self, n: Any, step: int) -> Any:
        """Return the largest multiple of the step (a power of two) that is at most n."""
        return self.builder.and_(n, self.number(-step))

    def address(self, array_type: Any, array: Any, first: Any) -> Any:
        data = self.context.make_array(array_type)(self.context, self.builder, array).data
        return self.builder.gep(data, [first])

    def length(self, array_type: Any, array: Any, axis: int) -> Any:
        shape = self.context.make_array(array_type)(self.context, self.builder, array).shape
        return self.builder.extract_value(shape, axis)

    def variable(self, value: Any) -> Any:
        """Return a variable; LLVM keeps it in a register."""
        return cgutils.alloca_once_value(self.builder, value)

    def zeros(self, width: int) -> Any:
        kind = self._kind(width)
        return ir.Constant(kind, 0.0 if width == 1 else [0.0] * width)

    def load(self, pointer: Any, position: Any, width: int) -> Any:
        return self.builder.load(self._at(pointer, position, self._kind(width)), align=self.align)

    def index(self, array_type: Any, pointer: Any, position: Any) -> Any:
        """Return a whole number from memory, as wide as indices are."""
        value = self.builder.load(self.builder.gep(pointer, [position]))
        return self.context.cast(self.builder, value, array_type.dtype, types.intp)

    def joined(self, values: Any) -> Any:
        vector = ir.Constant(self._kind(len(values)), ir.Undefined)
        for lane, value in enumerate(values):
            vector = self.builder.insert_element(vector, value, ir.Constant(_INT32, lane))
        return vector

    def store(self, value: Any, pointer: Any, position: Any) -> None:
        self.builder.store(value, self._at(pointer, position, value.type), align=self.align)

    def add(self, a: Any, b: Any) -> Any:
        return self.builder.fadd(a, b, flags=FASTMATH)

    def multiply(self, a: Any, b: Any) -> Any:
        return self.builder.fmul(a, b, flags=FASTMATH)

    def add_to(self, variable: Any, value: Any) -> None:
        self.builder.store(self.add(self.builder.load(variable), value), variable)

    def spread(self, value: Any, width: int) -> Any:
        """Return a vector that holds one number everywhere."""
        if width == 1:
            return value
        undefined = ir.Constant(self._kind(width), ir.Undefined)
        vector = self.builder.insert_element(undefined, value, ir.Constant(_INT32, 0))
        return self.builder.shuffle_vector(vector, undefined, self._lanes([0] * width))

    def shuffled(self, a: Any, b: Any, lanes: Any) -> Any:
        """Return numbers of two vectors by their positions in the two together."""
        return self.builder.shuffle_vector(a, b, self._lanes(lanes))

    def halved(self, vector: Any) -> Any:
        half = vector.type.count // 2
        low, high = (
            self.shuffled(vector, vector, lanes) for lanes in (range(half), range(half, 2 * half))
        )
        return self.add(low, high)

    def four_totals(self, vectors: Any) -> Any:
        """Return the sums of four vectors of four numbers as one vector."""
        a, b, c, d = vectors
        ab, cd = (
            self.add(self.shuffled(x, y, (0, 4, 2, 6)), self.shuffled(x, y, (1, 5, 3, 7)))
            for x, y in ((a, b), (c, d))
        )
        return self.add(self.shuffled(ab, cd, (0, 1, 4, 5)), self.shuffled(ab, cd, (2, 3, 6, 7)))

    def total(self, vector: Any) -> Any:
        while vector.type.count > 1:
            vector = self.halved(vector)
        return self.builder.extract_element(vector, ir.Constant(_INT32, 0))

    @contextmanager
    def loop(self, start: Any, stop: Any, step: int) -> Iterator[Any]:
        """Write what is inside into a loop over ``start, start + step, ...``, whole steps only."""
        start = self.number(start) if isinstance(start, int) else start
        n_steps = self.builder.sdiv(self.builder.sub(stop, start), self.number(step))
        with cgutils.for_range(self.builder, n_steps) as loop:
            yield self.builder.add(start, self.builder.mul(loop.index, self.number(step)))

    def _kind(self, width: int) -> Any:
        return self.scalar if width == 1 else ir.VectorType(self.scalar, width)

    def _at(self, pointer: Any, position: Any, kind: Any) -> Any:
        return self.builder.bitcast(self.builder.gep(pointer, [position]), kind.as_pointer())

    @staticmethod
    def _lanes(lanes: Any) -> Any:
        return ir.Constant(ir.VectorType(_INT32, len(lanes)), list(lanes))


@intrinsic
def dot_at(typing_context, a, first_a, b, first_b, n):
    """Return the inner product of ``n`` numbers of ``a`` and of ``b``."""
    signature = a.dtype(a, types.intp, b, types.intp, types.intp)

    def generate(context, builder, signature, arguments):
        array_a, first_a, array_b, first_b, n = arguments
        code = _Code(context, builder, a.dtype)
        at_a, at_b = code.address(a, array_a, first_a), code.address(b, array_b, first_b)
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
        code = _Code(context, builder, U.dtype)
        n, at_index = code.length(U, array_U, 1), code.address(indices, array_indices, first)
        at_u = code.address(U, array_U, builder.mul(row, n))
        at_v = [
            code.address(V, array_V, builder.mul(code.index(indices, at_index, code.number(k)), n))
            for k in range(4)
        ]
        sums, rest, one = (
            [code.variable(code.zeros(width)) for _ in at_v] for width in (_WIDTH, 4, 1)
        )

        def add(k, width, totals):
            u = code.load(at_u, k, width)
            for position, total in zip(at_v, totals, strict=True):
                code.add_to(total, code.multiply(u, code.load(position, k, width)))

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
        code.store(code.add(totals, ones), code.address(out, array_out, at), code.number(0))
        return context.get_dummy_value()

    return signature, generate


def _make_scatter(width: int, n_vectors: int) -> Any:
    """Make the step back for ``width * n_vectors`` neighbouring factors.

    The row's own factors and gradient stay in registers while its entries pass by.  Where the
    columns' gradient has no rows it is left alone.
    """

    @intrinsic
    def scatter(typing_context, U, V, by_U, by_V, row, factor, indices, first, weights, n):
        signature = types.void(
            *(U, V, by_U, by_V, types.intp, types.intp, indices, types.intp, weights, types.intp)
        )

        def generate(context, builder, signature, arguments):
            array_U, array_V, array_by_U, array_by_V = arguments[:4]
            row, factor, array_indices, first, array_weights, n = arguments[4:]
            code = _Code(context, builder, U.dtype)
            n_factors = code.length(U, array_U, 1)
            both = builder.icmp_signed("!=", code.length(by_V, array_by_V, 0), code.number(0))
            own = builder.add(builder.mul(row, n_factors), factor)
            at_u, at_by_u = code.address(U, array_U, own), code.address(by_U, array_by_U, own)
            at_v, at_by_v = code.address(V, array_V, factor), code.address(by_V, array_by_V, factor)
            at_index = code.address(indices, array_indices, first)
            at_weight = code.address(weights, array_weights, code.number(0))
            steps = [code.number(width * k) for k in range(n_vectors)]
            u = [code.load(at_u, step, width) for step in steps]
            totals = [code.variable(code.load(at_by_u, step, width)) for step in steps]
            with code.loop(0, n, 1) as k:
                weight = code.spread(builder.load(builder.gep(at_weight, [k])), width)
                column = code.index(indices, at_index, k)
                start = builder.mul(column, n_factors)
                for q, step in enumerate(steps):
                    position = builder.add(start, step)
                    code.add_to(totals[q], code.multiply(weight, code.load(at_v, position, width)))
                    with builder.if_then(both, likely=True):
                        sum_v = code.load(at_by_v, position, width)
                        sum_v = code.add(sum_v, code.multiply(weight, u[q]))
                        code.store(sum_v, at_by_v, position)
            for total, step in zip(totals, steps, strict=True):
                code.store(builder.load(total), at_by_u, step)
            return context.get_dummy_value()

        return signature, generate

    return scatter


_scatter_32, _scatter_16, _scatter_8, _scatter_4, _scatter_1 = (
    _make_scatter(*size) for size in ((8, 4), (8, 2), (8, 1), (4, 1), (1, 1))
)


@inline
def score_row(row, first, n, indices, U, V, out):
    """Fill ``out`` with the scores of one row's entries."""
    n_factors, done = U.shape[1], n & ~3
    for k in range(0, done, 4):
        _score_4(U, V, row, indices, first + k, out, k)
    for k in range(done, n):
        out[k] = dot_at(U, row * n_factors, V, np.intp(indices[first + k]) * n_factors, n_factors)


@inline
def scatter_row(row, first, n, indices, weights, U, V, by_U, by_V):
    """Add what the derivatives by one row's scores give to both sides' gradients."""
    n_factors, p = U.shape[1], 0
    while p + 32 <= n_factors:
        _scatter_32(U, V, by_U, by_V, row, p, indices, first, weights, n)
        p += 32
    if p + 16 <= n_factors:
        _scatter_16(U, V, by_U, by_V, row, p, indices, first, weights, n)
        p += 16
    if p + 8 <= n_factors:
        _scatter_8(U, V, by_U, by_V, row, p, indices, first, weights, n)
        p += 8
    if p + 4 <= n_factors:
        _scatter_4(U, V, by_U, by_V, row, p, indices, first, weights, n)
        p += 4
    while p < n_factors:
        _scatter_1(U, V, by_U, by_V, row, p, indices, first, weights, n)
        p += 1


@intrinsic
def load_acquire(typing_context, array, index):
    """Return a number that another thread may change, and see what it wrote before."""
    signature = array.dtype(array, types.intp)

    def generate(context, builder, signature, arguments):
        pointer = _Code(context, builder, array.dtype).address(array, *arguments)
        return builder.load_atomic(pointer, "acquire", array.dtype.bitwidth // 8)

    return signature, generate


@intrinsic
def store_release(typing_context, array, index, value):
    """Change a number that another thread reads, after all that was written before."""
    signature = types.void(array, types.intp, array.dtype)

    def generate(context, builder, signature, arguments):
        *where, value = arguments
        pointer = _Code(context, builder, array.dtype).address(array, *where)
        builder.store_atomic(value, pointer, "release", array.dtype.bitwidth // 8)
        return context.get_dummy_value()

    return signature, generate


@kernel
def probe(U, V, by_U, by_V, indices, progress):
    """Use everything here once; return what the scores of the first row add up to."""
    out = np.empty(indices.shape[0], U.dtype)
    store_release(progress, 0, 1)
    score_row(0, 0, indices.shape[0], indices, U, V, out)
    scatter_row(0, 0, indices.shape[0], indices, out, U, V, by_U, by_V)
    return dot_at(out, 0, np.ones_like(out), 0, out.shape[0]) * load_acquire(progress, 0)
