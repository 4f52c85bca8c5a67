"""The few operations that solvers need of vectors: NumPy arrays, or arrays on other devices."""

import math
from collections.abc import Sequence
from typing import Any, Protocol

import numpy as np

from marginmf._utils.types import Array, FloatArray

Vector = Any


class Vectors(Protocol):
    """Arithmetic on vectors of one kind.

    No operation changes a vector without returning it: callers use what is returned.
    """

    def dots(self, vectors: Sequence[Vector], b: Vector) -> list[float]:
        """Return the inner products of several vectors with one, summed in float64."""

    def combine(
        self, scales: Sequence[float], vectors: Sequence[Vector], out: Vector | None = None
    ) -> Vector:
        """Return the sum of one or more vectors, each times a number.

        The sum may be written over ``out``: the first of the vectors, or one that is not among
        them.  An implementation may ignore it; without it the result is a new vector.
        """

    def to_host(self, vector: Vector) -> Array:
        """Return the numbers of a vector as a NumPy array, which may share its memory."""

    def from_host(self, array: Array) -> Vector:
        """Return the vector with these numbers, which may share the array's memory."""


class NumpyVectors:
    """NumPy arrays of any shape.

    >>> NumpyVectors().combine((1.0, 2.0), (np.array([1.0, 2.0]), np.array([1.0, 1.0])))
    array([3., 4.])
    """

    def dots(self, vectors: Sequence[FloatArray], b: FloatArray) -> list[float]:
        """Return the inner products of several vectors with one, summed in float64."""
        return [float(np.sum(np.multiply(a, b, dtype=np.float64))) for a in vectors]

    def combine(
        self, scales: Sequence[float], vectors: Sequence[FloatArray], out: FloatArray | None = None
    ) -> FloatArray:
        """Return the sum of vectors, each times a number; see `Vectors.combine`."""
        first = vectors[0]
        total = np.multiply(first, first.dtype.type(scales[0]), out=out)
        for scale, vector in zip(scales[1:], vectors[1:], strict=True):
            total += total.dtype.type(scale) * vector
        return total

    def to_host(self, vector: FloatArray) -> FloatArray:
        """Return the vector itself."""
        return vector

    def from_host(self, array: FloatArray) -> FloatArray:
        """Return the array itself."""
        return array


class BufferPool:
    """Writes sums over vectors that are no longer needed: to allocate one takes longer.

    >>> pool = BufferPool(NumpyVectors())
    >>> old = np.array([1.0, 2.0])
    >>> pool.release(old)
    >>> pool.combine((2.0,), (np.array([3.0, 4.0]),)) is old
    True
    """

    def __init__(self, vectors: Vectors) -> None:
        self._vectors = vectors
        self._released: list[Vector] = []
        self._kept: dict[int, Vector] = {}
        self.dots, self.to_host, self.from_host = vectors.dots, vectors.to_host, vectors.from_host

    def release(self, *vectors: Vector) -> None:
        """Take vectors that the solver no longer needs; those to keep are not reused."""
        self._released += [vector for vector in vectors if not self._let_go(vector)]

    def keep(self, *vectors: Vector) -> None:
        """Never write over these vectors: a state that somebody keeps holds them."""
        self._kept.update((id(vector), vector) for vector in vectors)

    def combine(
        self, scales: Sequence[float], vectors: Sequence[Vector], out: Vector | None = None
    ) -> Vector:
        """Return the sum of vectors, each times a number; ``out`` is left alone if it is kept."""
        if out is not None and self._let_go(out):
            out = None
        if out is None and self._released:
            out = self._released.pop()
        return self._vectors.combine(scales, vectors, out)

    def _let_go(self, vector: Vector) -> bool:
        """Drop the reference to a vector that is kept; return whether it was."""
        return self._kept.pop(id(vector), None) is not None


def dot(vectors: Vectors, a: Vector, b: Vector) -> float:
    """Return the inner product of two vectors."""
    return vectors.dots((a,), b)[0]


def norm(vectors: Vectors, a: Vector) -> float:
    """Return the Euclidean norm."""
    return math.sqrt(dot(vectors, a, a))


def copy(vectors: Vectors, a: Vector) -> Vector:
    """Return an equal vector that shares no memory with this one."""
    return vectors.combine((1.0,), (a,))


def opening_length(vectors: Vectors, point: Vector, direction: Vector) -> float:
    """Return a first step that moves the point by a tenth of its norm; from the origin, by one."""
    return (0.1 * norm(vectors, point) or 1.0) / norm(vectors, direction)


def downhill(vectors: Vectors, gradient: Vector) -> Vector:
    """Return the direction of steepest descent."""
    return vectors.combine((-1.0,), (gradient,))
