"""Limited-memory BFGS: Newton's direction guessed from the last few steps."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from marginmf._typing import Float64Array
from marginmf.solvers.descent import Descent, Directions, Memory, Taken, downhill
from marginmf.solvers.line_search import Step, StrongWolfe
from marginmf.solvers.vector import Vector, VectorSpace


class Pair(NamedTuple):
    """A step, and the change of the gradient over it."""

    step: Vector
    change: Vector


@dataclass(frozen=True)
class LBFGS(Descent):
    """L-BFGS with a strong-Wolfe line search.

    Parameters
    ----------
    memory : int
        How many past steps shape the direction.  On factorisations more than a few hardly save
        an iteration, and every one costs four passes over memory.
    """

    memory: int = 3
    line_search = StrongWolfe(curvature=0.9)

    def directions(self, space: VectorSpace) -> "LBFGSDirections":
        """Return a fresh chooser of directions."""
        return LBFGSDirections(space, self.memory)


class LBFGSDirections(Directions):
    """The inverse Hessian in its compact form (Nocedal and Wright, section 7.2; Byrd et al. 1994).

    With the steps ``S`` and the changes ``Y`` of the gradient as columns, it is a small matrix
    between ``[S, Y]`` and its transpose.  So a direction takes one pass for the inner products with
    the gradient and one for the sum, instead of a pass for each of them one after the other.  The
    inner products of steps and changes with one another follow from those with the gradients,
    because a change is a difference of gradients.
    """

    def __init__(self, space: VectorSpace, memory: int) -> None:
        super().__init__(space)
        self.n_pairs = memory
        self._clear()

    def _clear(self) -> None:
        self.pairs: list[Pair] = []
        # Inner products: steps with changes (its upper triangle is used), changes with changes,
        # and both, steps first, with the gradient here.
        self.steps_changes: Float64Array = np.empty((0, 0))
        self.changes_changes: Float64Array = np.empty((0, 0))
        self.with_gradient: Float64Array = np.empty(0)

    def choose(self, gradient: Vector) -> Vector:
        """Return minus the guessed inverse Hessian times the gradient."""
        if not self.pairs:
            return downhill(self.space, gradient)
        by_step, by_change = np.split(self.with_gradient, 2)
        products = self.steps_changes.diagonal()
        scale = products[-1] / self.changes_changes[-1, -1]
        of_changes = solve_triangular(self.steps_changes, by_step)
        of_steps = solve_triangular(
            self.steps_changes,
            products * of_changes + scale * (self.changes_changes @ of_changes - by_change),
            trans="T",
        )
        steps, changes = zip(*self.pairs, strict=True)
        scales = np.concatenate((-of_steps, scale * of_changes, [-scale]))
        return self.space.combine(scales.tolist(), (*steps, *changes, gradient))

    def learn(self, direction: Vector, gradient: Vector, step: Step) -> None:
        """Keep the pair if the curvature along it is positive; the direction is ours now."""
        space = self.space
        space.scale(step.length, direction)
        change = space.combine((1.0, -1.0), (step.gradient, gradient))
        squared, product = space.dots((change, direction), change)
        # The Wolfe conditions promise product > 0; rounding can break the promise.
        sound = product > 1e-10 * (squared * space.dot(direction, direction)) ** 0.5
        if sound and len(self.pairs) == self.n_pairs:
            self._drop_oldest()
        pairs = [*self.pairs, Pair(direction, change)] if sound else self.pairs
        if not pairs:
            return
        steps, changes = zip(*pairs, strict=True)
        found = np.array(space.dots((*steps, *changes), step.gradient))
        if sound:
            n = len(self.pairs)
            before = self.with_gradient.reshape(2, n)
            with_steps, with_changes = found.reshape(2, n + 1)[:, :n] - before
            self.steps_changes = _bordered(self.steps_changes, with_steps, 0 * with_steps, product)
            self.changes_changes = _bordered(
                self.changes_changes, with_changes, with_changes, squared
            )
        self.pairs, self.with_gradient = pairs, found

    def _drop_oldest(self) -> None:
        self.pairs = self.pairs[1:]
        self.steps_changes = self.steps_changes[1:, 1:]
        self.changes_changes = self.changes_changes[1:, 1:]
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
        steps, changes = zip(*self.pairs, strict=True) if self.pairs else ((), ())
        return Memory(
            {"steps": steps, "changes": changes},
            {
                "steps and changes": self.steps_changes.ravel().tolist(),
                "changes and changes": self.changes_changes.ravel().tolist(),
                "with gradient": self.with_gradient.tolist(),
            },
        )

    def recall(self, memory: Memory) -> None:
        """Know these pairs."""
        vectors, numbers = memory
        pairs = zip(vectors["steps"], vectors["changes"], strict=True)
        self.pairs = [Pair(*pair) for pair in pairs]
        square = (len(self.pairs), len(self.pairs))
        self.steps_changes = np.reshape(numbers["steps and changes"], square)
        self.changes_changes = np.reshape(numbers["changes and changes"], square)
        self.with_gradient = np.array(numbers["with gradient"], np.float64)


def _bordered(
    matrix: Float64Array, column: Float64Array, row: Float64Array, corner: float
) -> Float64Array:
    """Return a square matrix with one more column and one more row."""
    return np.block([[matrix, column[:, None]], [row[None, :], np.array([[corner]])]])
