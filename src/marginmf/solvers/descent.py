"""Solvers that choose a direction, search along it, and repeat.

`Descent` is that loop; a solver is this loop with its own way to choose directions (`Directions`)
and its own line search: gradient descent and conjugate gradients, which Kumar's thesis uses, and
limited-memory BFGS.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.linalg import solve_triangular

from marginmf._utils.saved import saved
from marginmf._utils.types import Float64Array
from marginmf.solvers.line_search import Backtracking, Step, StrongWolfe, along
from marginmf.solvers.run import Counted, Objective, State
from marginmf.solvers.vectors import BufferPool, Vector, Vectors, dot, norm


class Taken(NamedTuple):
    """A step that was taken: its length, and the slope where it began."""

    length: float
    slope: float


class Memory(NamedTuple):
    """What directions have learned, as vectors and numbers under names of their own."""

    vectors: Mapping[str, Sequence[Vector]]
    numbers: Mapping[str, Sequence[float]]


class Directions(ABC):
    """Chooses where to go from the gradients seen so far."""

    def __init__(self, pool: BufferPool) -> None:
        self.pool = pool

    @abstractmethod
    def choose(self, gradient: Vector) -> Vector:
        """Return a new vector: the direction to search from here."""

    def learn(self, direction: Vector, here: Step, step: Step) -> None:
        """Learn from a step along ``direction`` from ``here``; keep or release both's vectors."""
        self.pool.release(direction, here.gradient)

    def forget(self) -> bool:
        """Go back to steepest descent; return False if the last direction was that already."""
        return False

    def first_length(self, slope: float, last: Taken) -> float:
        """Guess a step length from the slope here and the last step."""
        # As if the next step gained as much to first order as the last one did.
        return last.length * last.slope / slope

    def memory(self) -> Memory:
        """Return what was learned."""
        if type(self).learn is not Directions.learn:
            raise NotImplementedError(
                f"{type(self).__name__} learns but has no memory() and recall(): write both, so "
                "that a fit with a checkpoint can resume."
            )
        return Memory({}, {})

    def recall(self, memory: Memory) -> None:  # noqa: B027
        """Know what another one of the same kind had in its memory."""


class Descent(ABC):
    """A solver that goes downhill along one direction after another."""

    line_search: StrongWolfe | Backtracking

    @abstractmethod
    def directions(self, pool: BufferPool) -> Directions:
        """Return a fresh chooser of directions."""

    def steps(self, objective: Objective, start: Any, vectors: Vectors) -> Iterator[State]:
        """Yield a state after every iteration; see `Solver.steps`."""
        pool = BufferPool(vectors)
        directions = self.directions(pool)
        counted = Counted.of(objective, start)
        last: Taken | None = None
        if isinstance(start, State):
            pool.keep(*start.own_vectors())
            here = _at(start.point, start.value, *start.vectors["gradient"])
            last = Taken(*start.numbers["last step"]) if start.numbers["last step"] else None
            directions.recall(Memory(start.vectors, start.numbers))
        else:
            # The start is never written to: every step is to a new point.
            here = _at(start, *counted(start))
            yield from self._yield_state(here, last, directions, counted)
        while True:
            step, last = self._step(counted, directions, here, last)
            if step is None:
                return
            here = step
            yield from self._yield_state(here, last, directions, counted)

    def _yield_state(
        self, here: Step, last: Taken | None, directions: Directions, counted: Counted
    ) -> Iterator[State]:
        """Yield the state here; tell the pool if it must be kept."""
        pool, memory = directions.pool, directions.memory()
        state = State(
            here.point,
            here.value,
            norm(pool, here.gradient),
            counted.n_evaluations,
            vectors={"gradient": [here.gradient], **memory.vectors},
            numbers={"last step": last or [], **memory.numbers},
        )
        yield state
        if state.is_kept:
            pool.keep(*state.own_vectors())

    def _step(
        self, objective: Objective, directions: Directions, here: Step, last: Taken | None
    ) -> tuple[Step | None, Taken | None]:
        """Return where the next step leads and how it was taken; None if none leads down."""
        pool = directions.pool
        while True:
            direction = directions.choose(here.gradient)
            here = here._replace(length=0.0, slope=dot(pool, here.gradient, direction))
            step = None
            if here.slope < 0:
                if last is None:
                    length = opening_length(pool, here.point, direction)
                else:
                    length = directions.first_length(here.slope, last)
                walk = along(objective, pool, here.point, direction)
                step = self.line_search(walk, here, length)
            if step is not None:
                directions.learn(direction, here, step)
                return step, Taken(step.length, here.slope)
            pool.release(direction)
            # What was learned may mislead: try plain steepest descent before giving up.
            if not directions.forget():
                return None, None
            last = None


@saved
@dataclass(frozen=True)
class GradientDescent(Descent):
    """Steepest descent; each step is first tried at twice the length of the last one."""

    line_search = Backtracking()

    def directions(self, pool: BufferPool) -> Directions:
        """Return a fresh chooser of directions."""
        return _Steepest(pool)


class _Steepest(Directions):
    """Minus the gradient."""

    def choose(self, gradient: Vector) -> Vector:
        return downhill(self.pool, gradient)

    def first_length(self, slope: float, last: Taken) -> float:
        return 2.0 * last.length


@saved
@dataclass(frozen=True)
class ConjugateGradient(Descent):
    """Polak-Ribiere+ conjugate gradients with a strong-Wolfe line search."""

    line_search = StrongWolfe(curvature=0.1)

    def directions(self, pool: BufferPool) -> Directions:
        """Return a fresh chooser of directions."""
        return _Conjugate(pool)


class _Conjugate(Directions):
    """Steepest descent bent towards the last direction by ``beta = max(0, g.(g - g')/|g'|^2)``."""

    def __init__(self, pool: BufferPool) -> None:
        super().__init__(pool)
        self.last: tuple[Vector, Vector] | None = None  # a direction, the gradient where it began

    def choose(self, gradient: Vector) -> Vector:
        if self.last is None:
            return downhill(self.pool, gradient)
        last_direction, last_gradient = self.last
        squared, overlap = self.pool.dots((gradient, last_gradient), gradient)
        beta = max(0.0, (squared - overlap) / dot(self.pool, last_gradient, last_gradient))
        return self.pool.combine((-1.0, beta), (gradient, last_direction))

    def learn(self, direction: Vector, here: Step, step: Step) -> None:
        self.pool.release(*(self.last or ()))
        self.last = (direction, here.gradient)

    def forget(self) -> bool:
        knew_something = self.last is not None
        self.pool.release(*(self.last or ()))
        self.last = None
        return knew_something

    def memory(self) -> Memory:
        return Memory({"last direction and gradient": self.last or ()}, {})

    def recall(self, memory: Memory) -> None:
        vectors = memory.vectors["last direction and gradient"]
        self.last = (vectors[0], vectors[1]) if vectors else None


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

    def directions(self, pool: BufferPool) -> Directions:
        """Return a fresh chooser of directions."""
        return _LimitedMemory(pool, self.memory)


class Pair(NamedTuple):
    """A step, and by how much the gradient fell over it: before minus after."""

    step: Vector
    fall: Vector


class _LimitedMemory(Directions):
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
        """Return minus the guessed inverse Hessian times the gradient; drop the oldest pair."""
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
        # Dropped as soon as it was used, before the search makes new vectors.
        if len(self.pairs) == self.n_pairs:
            self._drop_oldest()
        return direction

    def learn(self, direction: Vector, here: Step, step: Step) -> None:
        # The direction is ours now, and the gradient here is where its fall is written.
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
        # The pairs do not tell: the oldest, or the only one, was dropped as soon as it was used.
        was_curved, self.is_curved = self.is_curved, False
        for pair in self.pairs:
            self.pool.release(*pair)
        self._clear()
        return was_curved

    def first_length(self, slope: float, last: Taken) -> float:
        return 1.0  # the direction comes with its length

    def memory(self) -> Memory:
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


def _at(point: Vector, value: float, gradient: Vector) -> Step:
    """Return the step that leads nowhere: a line search begins here."""
    return Step(0.0, value, 0.0, point, gradient)


def opening_length(vectors: Vectors, point: Vector, direction: Vector) -> float:
    """Return a first step that moves the point by a tenth of its own length.

    That is the right order of magnitude whatever the scale of the objective; at the origin, which
    has no length, the step has length one.
    """
    return (0.1 * norm(vectors, point) or 1.0) / norm(vectors, direction)


def downhill(vectors: Vectors, gradient: Vector) -> Vector:
    """Return the direction of steepest descent."""
    return vectors.combine((-1.0,), (gradient,))
