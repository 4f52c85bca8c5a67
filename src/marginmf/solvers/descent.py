"""Solvers that choose a direction, search along it, and repeat.

`Descent` is that loop; a solver is this loop with its own way to choose directions (`Directions`)
and its own line search.  The two of Kumar's thesis are here: gradient descent and conjugate
gradients.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from marginmf._utils.saved import saved
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
        """Note that ``step`` was taken along ``direction`` from ``here``.

        The direction and the gradient here belong to this object from now on: it keeps them, or
        releases them.
        """
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
            yield from self._shown(here, last, directions, counted)
        while True:
            step, last = self._step(counted, directions, here, last)
            if step is None:
                return
            here = step
            yield from self._shown(here, last, directions, counted)

    def _shown(
        self, here: Step, last: Taken | None, directions: Directions, counted: Counted
    ) -> Iterator[State]:
        """Yield the state here; if it is to be kept, tell the pool."""
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

    def directions(self, pool: BufferPool) -> "SteepestDirections":
        """Return a chooser of directions."""
        return SteepestDirections(pool)


class SteepestDirections(Directions):
    """Minus the gradient."""

    def choose(self, gradient: Vector) -> Vector:
        """Return minus the gradient."""
        return downhill(self.pool, gradient)

    def first_length(self, slope: float, last: Taken) -> float:
        """Return twice the last step's length."""
        return 2.0 * last.length


@saved
@dataclass(frozen=True)
class ConjugateGradient(Descent):
    """Polak-Ribiere+ conjugate gradients with a strong-Wolfe line search."""

    line_search = StrongWolfe(curvature=0.1)

    def directions(self, pool: BufferPool) -> "ConjugateDirections":
        """Return a fresh chooser of directions."""
        return ConjugateDirections(pool)


class ConjugateDirections(Directions):
    """Steepest descent bent towards the last direction by ``beta = max(0, g.(g - g')/|g'|^2)``."""

    def __init__(self, pool: BufferPool) -> None:
        super().__init__(pool)
        self.last: tuple[Vector, Vector] | None = None

    def choose(self, gradient: Vector) -> Vector:
        """Return the next conjugate direction; beta = 0 is a restart."""
        if self.last is None:
            return downhill(self.pool, gradient)
        last_direction, last_gradient = self.last
        squared, overlap = self.pool.dots((gradient, last_gradient), gradient)
        beta = max(0.0, (squared - overlap) / dot(self.pool, last_gradient, last_gradient))
        return self.pool.combine((-1.0, beta), (gradient, last_direction))

    def learn(self, direction: Vector, here: Step, step: Step) -> None:
        """Remember the direction and the gradient where it began."""
        self.pool.release(*(self.last or ()))
        self.last = (direction, here.gradient)

    def forget(self) -> bool:
        """Go back to steepest descent; return False if the last direction was that already."""
        knew_something = self.last is not None
        self.pool.release(*(self.last or ()))
        self.last = None
        return knew_something

    def memory(self) -> Memory:
        """Return the last direction and the gradient where it began."""
        return Memory({"last direction and gradient": self.last or ()}, {})

    def recall(self, memory: Memory) -> None:
        """Go on from that direction and gradient."""
        vectors = memory.vectors["last direction and gradient"]
        self.last = (vectors[0], vectors[1]) if vectors else None


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
