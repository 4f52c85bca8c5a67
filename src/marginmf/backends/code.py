"""Writes LLVM code for loops over vectors of numbers.

The loops of `marginmf.backends.passes` are written with it.  They are the same on every processor:
LLVM splits or joins the vectors to fit its registers.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from llvmlite import ir
from numba import types
from numba.core import cgutils

#: Sums may be reordered and products fused with them (that is what makes them vector code), but
#: NaN and infinity keep their meaning: all of fast arithmetic would assume that there are none.
FASTMATH = ("reassoc", "contract", "nsz")

_INT32 = ir.IntType(32)


class Code:
    """Writes LLVM code for vectors of one kind of floating-point number."""

    def __init__(self, context: Any, builder: Any, dtype: Any) -> None:
        self.context, self.builder = context, builder
        self.scalar = context.get_value_type(dtype)
        self.intp = context.get_value_type(types.intp)
        self.align = dtype.bitwidth // 8

    def number(self, value: int) -> Any:
        """Return an integer that is known now."""
        return ir.Constant(self.intp, value)

    def plus(self, place: Any, n: int) -> Any:
        """Return the place so many numbers further on."""
        return self.builder.add(place, self.number(n))

    def multiple(self, n: Any, step: int) -> Any:
        """Return the largest multiple of the step (a power of two) that is at most n."""
        return self.builder.and_(n, self.number(-step))

    def place(self, array_type: Any, array: Any, first: Any) -> Any:
        """Return a pointer into an array."""
        data = self.context.make_array(array_type)(self.context, self.builder, array).data
        return self.builder.gep(data, [first])

    def length(self, array_type: Any, array: Any, axis: int) -> Any:
        """Return how long an array is along an axis."""
        shape = self.context.make_array(array_type)(self.context, self.builder, array).shape
        return self.builder.extract_value(shape, axis)

    def variable(self, value: Any) -> Any:
        """Return room for a value that changes; LLVM keeps it in a register."""
        return cgutils.alloca_once_value(self.builder, value)

    def zeros(self, width: int) -> Any:
        """Return a vector of zeros, or zero."""
        kind = self._kind(width)
        return ir.Constant(kind, 0.0 if width == 1 else [0.0] * width)

    def load(self, pointer: Any, place: Any, width: int) -> Any:
        """Return numbers from memory."""
        return self.builder.load(self._at(pointer, place, self._kind(width)), align=self.align)

    def index(self, array_type: Any, pointer: Any, place: Any) -> Any:
        """Return a whole number from memory, as wide as places are."""
        value = self.builder.load(self.builder.gep(pointer, [place]))
        return self.context.cast(self.builder, value, array_type.dtype, types.intp)

    def joined(self, values: Any) -> Any:
        """Return numbers as a vector."""
        vector = ir.Constant(self._kind(len(values)), ir.Undefined)
        for lane, value in enumerate(values):
            vector = self.builder.insert_element(vector, value, ir.Constant(_INT32, lane))
        return vector

    def store(self, value: Any, pointer: Any, place: Any) -> None:
        """Put numbers into memory."""
        self.builder.store(value, self._at(pointer, place, value.type), align=self.align)

    def add(self, a: Any, b: Any) -> Any:
        """Return a sum."""
        return self.builder.fadd(a, b, flags=FASTMATH)

    def multiply(self, a: Any, b: Any) -> Any:
        """Return a product, number by number."""
        return self.builder.fmul(a, b, flags=FASTMATH)

    def add_to(self, variable: Any, value: Any) -> None:
        """Add to a variable."""
        self.builder.store(self.add(self.builder.load(variable), value), variable)

    def spread(self, value: Any, width: int) -> Any:
        """Return a vector that holds one number everywhere."""
        if width == 1:
            return value
        undefined = ir.Constant(self._kind(width), ir.Undefined)
        vector = self.builder.insert_element(undefined, value, ir.Constant(_INT32, 0))
        return self.builder.shuffle_vector(vector, undefined, self._lanes([0] * width))

    def shuffled(self, a: Any, b: Any, lanes: Any) -> Any:
        """Return numbers of two vectors by their places in the two together."""
        return self.builder.shuffle_vector(a, b, self._lanes(lanes))

    def halved(self, vector: Any) -> Any:
        """Return the sum of a vector's two halves."""
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
        """Return the sum of a vector's numbers."""
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

    def _at(self, pointer: Any, place: Any, kind: Any) -> Any:
        return self.builder.bitcast(self.builder.gep(pointer, [place]), kind.as_pointer())

    @staticmethod
    def _lanes(lanes: Any) -> Any:
        return ir.Constant(ir.VectorType(_INT32, len(lanes)), list(lanes))
