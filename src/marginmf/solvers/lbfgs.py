"""Limited-memory BFGS: Newton's direction guessed from the last few steps."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from marginmf._typing import Float64Array
from marginmf.solvers.descent import Descent, Directions, Memory, Taken, downhill
from marginmf.solvers.line_search import Step, StrongWolfe
from marginmf.solvers.vector import Recycling, Vector


class Pair(NamedTuple):
    """A step, and by how much the gradient fell over it: before minus after."""

    step: Vector
    fall: Vector


@dataclass(frozen=True)
class LBFGS(Descent):
    """L-BFGS with a strong-Wolfe line search.

    Parameters
    ----------
    memory : int
        How many past steps shape the direction.  Factorisations of ratings take as many gradients
        with one as with six, and every one costs two vectors and four passes over memory.
    """

    memory: int = 1
    line_search = StrongWolfe(curvature=0.9)

    def directions(self, space: Recycling) -> "LBFGSDirections":
        """Return a fresh chooser of directions."""
        return LBFGSDirections(space, self.memory)


class LBFGSDirections(Directions):
    """The inverse Hessian in its compact form (Nocedal and Wright, section 7.2; Byrd et al. 1994).

    With the steps ``S`` and the falls ``F`` of the gradient as columns, it is a small matrix
    between ``[S, F]`` and its transpose.  So a direction takes one pass for the inner products with
    the gradient and one for the sum, instead of a pass for each of them one after the other.  The
    inner products of steps and falls with one another follow from those with the gradients,
    because a fall is a difference of gradients.
    """

    def __init__(self, space: Recycling, memory: int) -> None:
        super().__init__(space)
        self.n_pairs = memory
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
        if not self.pairs:
            return downhill(self.space, gradient)
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
        direction = self.space.combine(scales.tolist(), (*steps, *falls, gradient))
        if len(self.pairs) == self.n_pairs:
            self._drop_oldest()
        return direction

    def learn(self, direction: Vector, here: Step, step: Step) -> None:
        """Keep the pair if the curvature along it is positive.

        The direction is ours now, and the gradient here is where its fall is written.
        """
        space, fall = self.space, here.gradient
        product = step.length * (step.slope - here.slope)
        space.axpy(-1.0, step.gradient, fall)
        squared = space.dot(fall, fall)
        # The Wolfe conditions promise product > 0; rounding can break the promise.
        sound = product > 1e-10 * abs(step.length * here.slope) and squared > 0
        if step.length != 1.0:
            space.scale(step.length, direction)
        pairs = [*self.pairs, Pair(direction, fall)] if sound else self.pairs
        if not pairs:
            return
        steps, falls = zip(*pairs, strict=True)
        found = np.array(space.dots((*steps, *falls), step.gradient))
        if sound:
            n = len(self.pairs)
            before = self.with_gradient.reshape(2, n)
            with_steps, with_falls = found.reshape(2, n + 1)[:, :n] - before
            self.steps_falls = _bordered(self.steps_falls, with_steps, 0 * with_steps, product)
            self.falls_falls = _bordered(self.falls_falls, -with_falls, -with_falls, squared)
        self.pairs, self.with_gradient = pairs, found

    def _drop_oldest(self) -> None:
        oldest, *self.pairs = self.pairs
        self.space.release(*oldest)
        self.steps_falls = self.steps_falls[1:, 1:]
        self.falls_falls = self.falls_falls[1:, 1:]
        self.with_gradient = self.with_gradient.reshape(2, -1)[:, 1:].ravel()

    def forget(self) -> bool:
        """Go back to steepest descent; return whether there was anything to forget."""
        knew_something = bool(self.pairs)
        self._clear()
        return knew_something

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
