"""Limited-memory BFGS: Newton's direction guessed from the last few steps."""

from collections import deque
from dataclasses import dataclass
from typing import NamedTuple

from marginmf.solvers.descent import Descent, Directions, Memory, Taken, downhill, norm
from marginmf.solvers.line_search import Step, StrongWolfe
from marginmf.solvers.vector import Vector, VectorSpace


class Pair(NamedTuple):
    """A step, the change of the gradient over it, and their inner product."""

    step: Vector
    change: Vector
    product: float


@dataclass(frozen=True)
class LBFGS(Descent):
    """L-BFGS with a strong-Wolfe line search.

    Parameters
    ----------
    memory : int
        How many past steps shape the direction.  On factorisations more than a few hardly save
        an iteration, and every one costs ten passes over memory.
    """

    memory: int = 4
    line_search = StrongWolfe(curvature=0.9)

    def directions(self, space: VectorSpace) -> "LBFGSDirections":
        """Return a fresh chooser of directions."""
        return LBFGSDirections(space, self.memory)


class LBFGSDirections(Directions):
    """The two-loop recursion (Nocedal and Wright, algorithm 7.4)."""

    def __init__(self, space: VectorSpace, memory: int) -> None:
        super().__init__(space)
        self.pairs: deque[Pair] = deque(maxlen=memory)

    def choose(self, gradient: Vector) -> Vector:
        """Return minus the guessed inverse Hessian times the gradient."""
        space, direction = self.space, downhill(self.space, gradient)
        if not self.pairs:
            return direction
        shares = []
        for pair in reversed(self.pairs):
            share = space.dot(pair.step, direction) / pair.product
            space.axpy(-share, pair.change, direction)
            shares.append(share)
        newest = self.pairs[-1]
        space.scale(newest.product / space.dot(newest.change, newest.change), direction)
        for pair, share in zip(self.pairs, reversed(shares), strict=True):
            correction = space.dot(pair.change, direction) / pair.product
            space.axpy(share - correction, pair.step, direction)
        return direction

    def learn(self, direction: Vector, gradient: Vector, step: Step) -> None:
        """Keep the pair if the curvature along it is positive; the direction is ours now."""
        space = self.space
        space.scale(step.length, direction)
        change = space.copy(step.gradient)
        space.axpy(-1.0, gradient, change)
        product = space.dot(direction, change)
        # The Wolfe conditions promise product > 0; rounding can break the promise.
        if product > 1e-10 * norm(space, direction) * norm(space, change):
            self.pairs.append(Pair(direction, change, product))

    def forget(self) -> bool:
        """Go back to steepest descent; return whether there was anything to forget."""
        knew_something = bool(self.pairs)
        self.pairs.clear()
        return knew_something

    def first_length(self, slope: float, last: Taken) -> float:
        """Return one: the direction comes with its length."""
        return 1.0

    def memory(self) -> Memory:
        """Return the pairs."""
        steps, changes, products = zip(*self.pairs, strict=True) if self.pairs else ((), (), ())
        return Memory({"steps": steps, "changes": changes}, {"products": products})

    def recall(self, memory: Memory) -> None:
        """Know these pairs."""
        vectors, numbers = memory
        triples = zip(vectors["steps"], vectors["changes"], numbers["products"], strict=True)
        self.pairs.extend(Pair(*triple) for triple in triples)
