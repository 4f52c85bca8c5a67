"""The few operations that a solver needs of the vectors it moves.

A NumPy array, an array on a GPU and a vector whose parts live on many machines are three
implementations of `VectorSpace`, and every solver is written once for all of them.
"""

from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from marginmf._typing import FloatArray

Vector = Any


class VectorSpace(Protocol):
    """Arithmetic on vectors of one kind."""

    def dot(self, a: Vector, b: Vector) -> float:
        """Return the inner product of two vectors, summed in float64."""

    def dots(self, vectors: Sequence[Vector], b: Vector) -> list[float]:
        """Return the inner products of several vectors with one, in one pass over it."""

    def combine(
        self, scales: Sequence[float], vectors: Sequence[Vector], out: Vector | None = None
    ) -> Vector:
        """Return the sum of vectors, each times a number; at least one, in one pass.

        It is written over ``out``, a vector that is none of them, or else a new one.
        """

    def axpy(self, scale: float, a: Vector, b: Vector) -> None:
        """Add ``scale * a`` to ``b`` in place."""

    def scale(self, scale: float, a: Vector) -> None:
        """Multiply ``a`` in place."""

    def copy(self, a: Vector) -> Vector:
        """Return a vector equal to ``a`` that shares no memory with it."""


class NumpyVectors:
    """One-dimensional NumPy arrays.

    >>> space = NumpyVectors()
    >>> b = np.array([1.0, 2.0])
    >>> space.axpy(2.0, np.array([1.0, 1.0]), b)
    >>> b
    array([3., 4.])
    """

    def dot(self, a: FloatArray, b: FloatArray) -> float:
        """Return the inner product of two vectors, summed in float64."""
        return float(np.sum(np.multiply(a, b, dtype=np.float64)))

    def dots(self, vectors: Sequence[FloatArray], b: FloatArray) -> list[float]:
        """Return the inner products of several vectors with one."""
        return [self.dot(a, b) for a in vectors]

    def combine(
        self,
        scales: Sequence[float],
        vectors: Sequence[FloatArray],
        out: FloatArray | None = None,
    ) -> FloatArray:
        """Return the sum of vectors, each times a number."""
        first = vectors[0]
        total = np.multiply(first, first.dtype.type(scales[0]), out=out)
        for scale, vector in zip(scales[1:], vectors[1:], strict=True):
            self.axpy(scale, vector, total)
        return total

    def axpy(self, scale: float, a: FloatArray, b: FloatArray) -> None:
        """Add ``scale * a`` to ``b`` in place."""
        b += b.dtype.type(scale) * a

    def scale(self, scale: float, a: FloatArray) -> None:
        """Multiply ``a`` in place."""
        a *= a.dtype.type(scale)

    def copy(self, a: FloatArray) -> FloatArray:
        """Return a vector equal to ``a`` that shares no memory with it."""
        return a.copy()


class Recycling:
    """A vector space that makes new vectors out of those that nobody needs any more.

    Vectors are large: to ask for the memory of one, and to be given it page by page, takes longer
    than to fill it.

    Parameters
    ----------
    space : VectorSpace
        Who does the arithmetic.
    keep : bool
        Leave released vectors alone, because somebody keeps them after all.

    Examples
    --------
    >>> space = Recycling(NumpyVectors())
    >>> old = np.array([1.0, 2.0])
    >>> space.release(old)
    >>> space.combine((2.0,), (np.array([3.0, 4.0]),)) is old
    True
    """

    def __init__(self, space: VectorSpace, keep: bool = False) -> None:
        self._space, self._keep, self._released = space, keep, list[Vector]()
        self.dot, self.dots, self.copy = space.dot, space.dots, space.copy
        self.axpy, self.scale = space.axpy, space.scale

    def release(self, *vectors: Vector) -> None:
        """Take vectors that nobody needs any more."""
        if not self._keep:
            self._released.extend(vectors)

    def combine(
        self, scales: Sequence[float], vectors: Sequence[Vector], out: Vector | None = None
    ) -> Vector:
        """Return the sum of vectors, each times a number."""
        if out is None and self._released:
            out = self._released.pop()
        return self._space.combine(scales, vectors, out)
