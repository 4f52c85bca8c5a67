"""Limited-memory BFGS: Newton's direction guessed from the last few steps."""

from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from marginmf._utils.saved import saved
from marginmf._utils.types import Float64Array
from marginmf.solvers.descent import Descent, Directions, Memory, Taken, downhill
from marginmf.solvers.line_search import Step, StrongWolfe
from marginmf.solvers.vectors import BufferPool, Vector, dot


class Pair(NamedTuple):
    """A step, and by how much the gradient fell over it: before minus after."""

    step: Vector
    fall: Vector


@saved
@dataclass(frozen=True)
class LBFGS(Descent):
    """L-BFGS with a strong-Wolfe line search.

    Parameters
    ----------
    memory : int
        How many past steps shape the direction.  Each costs two vectors and four passes over
        memory.  Factorisations of ratings, whose vectors are long, take as many gradients with one
        as with six, and ask for one.
    """

    _saved: ClassVar[dict[str, Any]] = {"memory": int}

    memory: int = 5
    line_search = StrongWolfe(curvature=0.9)

    def directions(self, pool: BufferPool) -> "LBFGSDirections":
        """Return a fresh chooser of directions."""
        return LBFGSDirections(pool, self.memory)


class LBFGSDirections(Directions):
    """The inverse Hessian in its compact form (Nocedal and Wright, section 7.2; Byrd et al. 1994).

    With the steps ``S`` and the falls ``F`` of the gradient as columns, it is a small matrix
    between ``[S, F]`` and its transpose.  So a direction takes one pass for the inner products with
    the gradient and one for the sum, instead of a pass for each of them one after the other.  The
    inner products of steps and falls with one another follow from those with the gradients,
    because a fall is a difference of gradients.
    """

    def __init__(self, pool: BufferPool, memory: int) -> None:
        super().__init__(pool)
        self.n_pairs = memory
        self.is_curved = False  # whether pairs shaped the last direction
        self._clear()

    def _clear(self) -> None:
        self.pairs: list[Pair] = []
        # Inner products: minus steps with falls (its upper triangle is used), falls with falls,
        # and both, steps first, with the gradient here.
        self.steps_falls: Float64Array = np.empty((0, 0))
        self.falls_falls: Float64Array = np.empty((0, 0))
        self.with_gradient: Float64Array = np.empty(0)

    def choose(self, gradient: Vector) -> Vector:
        """Return minus the guessed inverse Hessian times the gradient.

        The oldest pair is dropped as soon as it was used, before the search makes new vectors.
        """
        self.is_curved = bool(self.pairs)
        if not self.pairs:
            return downhill(self.pool, gradient)
        by_step, by_fall = np.split(self.with_gradient, 2)
        products = self.steps_falls.diagonal()
        scale = products[-1] / self.falls_falls[-1, -1]
        of_falls = solve_triangular(self.steps_falls, by_step)
        of_steps = solve_triangular(
            self.steps_falls,
            products * of_falls + scale * (self.falls_falls @ of_falls + by_fall),
            trans="T",
        )
        steps, falls = zip(*self.pairs, strict=True)
        scales = np.concatenate((-of_steps, -scale * of_falls, [-scale]))
        direction = self.pool.combine(scales.tolist(), (*steps, *falls, gradient))
        if len(self.pairs) == self.n_pairs:
            self._drop_oldest()
        return direction

    def learn(self, direction: Vector, here: Step, step: Step) -> None:
        """Keep the pair if the curvature along it is positive.

        The direction is ours now, and the gradient here is where its fall is written.
        """
        pool = self.pool
        product = step.length * (step.slope - here.slope)
        fall = pool.combine((1.0, -1.0), (here.gradient, step.gradient), out=here.gradient)
        squared = dot(pool, fall, fall)
        # The Wolfe conditions promise product > 0; rounding can break the promise.
        sound = product > 1e-10 * abs(step.length * here.slope) and squared > 0
        if not sound:
            pool.release(direction, fall)
        elif step.length != 1.0:
            direction = pool.combine((step.length,), (direction,), out=direction)
        pairs = [*self.pairs, Pair(direction, fall)] if sound else self.pairs
        if not pairs:
            return
        steps, falls = zip(*pairs, strict=True)
        found = np.array(pool.dots((*steps, *falls), step.gradient))
        if sound:
            n = len(self.pairs)
            before = self.with_gradient.reshape(2, n)
            with_steps, with_falls = found.reshape(2, n + 1)[:, :n] - before
            self.steps_falls = _bordered(self.steps_falls, with_steps, 0 * with_steps, product)
            self.falls_falls = _bordered(self.falls_falls, -with_falls, -with_falls, squared)
        self.pairs, self.with_gradient = pairs, found

    def _drop_oldest(self) -> None:
        oldest, *self.pairs = self.pairs
        self.pool.release(*oldest)
        self.steps_falls = self.steps_falls[1:, 1:]
        self.falls_falls = self.falls_falls[1:, 1:]
        self.with_gradient = self.with_gradient.reshape(2, -1)[:, 1:].ravel()

    def forget(self) -> bool:
        """Go back to steepest descent; return False if the last direction was that already.

        The pairs do not tell: the oldest, or the only one, was dropped as soon as it was used.
        """
        was_curved, self.is_curved = self.is_curved, False
        for pair in self.pairs:
            self.pool.release(*pair)
        self._clear()
        return was_curved

    def first_length(self, slope: float, last: Taken) -> float:
        """Return one: the direction comes with its length."""
        return 1.0

    def memory(self) -> Memory:
        """Return the pairs and their inner products."""
        steps, falls = zip(*self.pairs, strict=True) if self.pairs else ((), ())
        return Memory(
            {"steps": steps, "falls": falls},
            {
                "steps and falls": self.steps_falls.ravel().tolist(),
                "falls and falls": self.falls_falls.ravel().tolist(),
                "with gradient": self.with_gradient.tolist(),
            },
        )

    def recall(self, memory: Memory) -> None:
        """Know these pairs."""
        vectors, numbers = memory
        pairs = zip(vectors["steps"], vectors["falls"], strict=True)
        self.pairs = [Pair(*pair) for pair in pairs]
        square = (len(self.pairs), len(self.pairs))
        self.steps_falls = np.reshape(numbers["steps and falls"], square)
        self.falls_falls = np.reshape(numbers["falls and falls"], square)
        self.with_gradient = np.array(numbers["with gradient"], np.float64)


def _bordered(
    matrix: Float64Array, column: Float64Array, row: Float64Array, corner: float
) -> Float64Array:
    """Return a square matrix with one more column and one more row."""
    return np.block([[matrix, column[:, None]], [row[None, :], np.array([[corner]])]])
