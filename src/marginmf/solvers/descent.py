"""Solvers that choose a direction, search along it, and repeat.

`Descent` is that loop; a solver is this loop with its own `Directions` and its own line search.
Line searches look for a sufficient fall, ``f(a) <= f(0) + c1 a f'(0)``.  Strong Wolfe also wants
the slope to have flattened, ``|f'(a)| <= c2 |f'(0)|``, which keeps directions downhill.  (Nocedal
and Wright, Numerical Optimization, 2nd edition, algorithms 3.1, 3.5 and 3.6, cubic interpolation.)
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from scipy.linalg.lapack import dtrtrs

from marginmf._utils.parameters import check_whole
from marginmf._utils.saved import saved
from marginmf._utils.types import Float64Array
from marginmf.solvers.run import Counted, Objective, State
from marginmf.solvers.vectors import (
    BufferPool,
    Vector,
    Vectors,
    dot,
    downhill,
    norm,
    opening_length,
)

SUFFICIENT_FALL = 1e-4


class Step(NamedTuple):
    """A point along a direction: its step length, value, slope, position and gradient."""

    length: float
    value: float
    slope: float
    point: Any
    gradient: Any

    def numbers(self) -> "Step":
        """Return this without its vectors, which are large and seldom needed again."""
        return self._replace(point=None, gradient=None)


Walk = Callable[[float], Step]


@dataclass(frozen=True)
class Backtracking:
    """Halve the step until the objective falls enough."""

    max_trials: int = 40

    def __call__(self, walk: Walk, start: Step, first_length: float) -> Step | None:
        """Return a step that lowers the objective, or None if there is none."""
        for trial in range(self.max_trials):
            step = walk(0.5**trial * first_length)
            if _falls_enough(step, start):
                return step
        return None


@dataclass(frozen=True)
class StrongWolfe:
    """Bracket a step that satisfies the strong Wolfe conditions, then close in on it."""

    curvature: float = 0.9  # the share of the first slope that may be left (c2)
    max_trials: int = 20  # evaluations, after which the best step so far is taken

    def __call__(self, walk: Walk, start: Step, first_length: float) -> Step | None:
        """Return a step that lowers the objective, or None if there is none."""
        before, step = start, walk(first_length)
        for trials_left in range(self.max_trials, 0, -1):
            rises = before is not start and step.value >= before.value
            # Names are bound anew, so that vectors that are no longer needed are freed at once.
            if rises or not _falls_enough(step, start):
                step = step.numbers()
                return self._close_in(walk, start, before, step, trials_left)
            if self._is_flat(step, start):
                return step
            if step.slope >= 0:
                before = before.numbers()
                return self._close_in(walk, start, step, before, trials_left)
            before, step = step, walk(_extrapolate(before, step))
        return before

    def _close_in(self, walk: Walk, start: Step, low: Step, high: Step, trials: int) -> Step | None:
        """Shrink the bracket of a good step; ``low`` is its better end, ``high`` only numbers."""
        for _ in range(trials):
            if math.isclose(low.length, high.length, rel_tol=1e-9):
                break  # the minimum is a corner: no step is flat, and none is better
            step = walk(_interpolate(low, high))
            if not _falls_enough(step, start) or step.value >= low.value:
                high = step = step.numbers()
            else:
                if self._is_flat(step, start):
                    return step
                if step.slope * (high.length - low.length) >= 0:
                    high = low.numbers()
                low = step
        return low if low is not start else None

    def _is_flat(self, step: Step, start: Step) -> bool:
        return abs(step.slope) <= -self.curvature * start.slope


def _falls_enough(step: Step, start: Step) -> bool:
    # Written so that a value that is not a number does not pass.
    return step.value <= start.value + SUFFICIENT_FALL * step.length * start.slope


def _extrapolate(before: Step, step: Step) -> float:
    """Return a longer step: where the cubic through both has its minimum, within reason."""
    shortest, longest = 2.0 * step.length, 10.0 * step.length
    guess = _cubic_minimum(before, step)
    return min(max(guess, shortest), longest) if math.isfinite(guess) else longest


def _interpolate(low: Step, high: Step) -> float:
    """Return a step inside the bracket, not too close to its ends."""
    width = high.length - low.length
    guess = _cubic_minimum(low, high)
    if not math.isfinite(guess):
        return low.length + 0.5 * width
    ends = sorted((low.length + 0.1 * width, low.length + 0.9 * width))
    return min(max(guess, ends[0]), ends[1])


def _cubic_minimum(a: Step, b: Step) -> float:
    """Return where the cubic with the values and slopes of both steps is smallest, or NaN."""
    if not (math.isfinite(b.value) and math.isfinite(b.slope)):
        return math.nan
    d1 = a.slope + b.slope - 3.0 * (a.value - b.value) / (a.length - b.length)
    inside = d1 * d1 - a.slope * b.slope
    if inside < 0:
        return math.nan
    d2 = math.copysign(math.sqrt(inside), b.length - a.length)
    below = b.slope - a.slope + 2.0 * d2
    return b.length - (b.length - a.length) * (b.slope + d2 - d1) / below if below else math.nan


#: A step that was taken: its length, and the slope where it began.
Taken = tuple[float, float]
#: What directions have learned, as vectors and numbers under names of their own.
Memory = tuple[Mapping[str, Sequence[Vector]], Mapping[str, Sequence[float]]]


class Directions(ABC):
    """Chooses where to go from the gradients seen so far."""

    def __init__(self, pool: BufferPool) -> None:
        self.pool = pool

    @abstractmethod
    def choose(self, gradient: Vector) -> Vector:
        """Return the direction to search from here, as a new vector."""

    def learn(self, direction: Vector, here: Step, step: Step) -> None:
        """Learn from a step along ``direction`` from ``here``; keep or release their vectors."""
        self.pool.release(direction, here.gradient)

    def forget(self) -> bool:
        """Go back to steepest descent; return False if the last direction was that already."""
        return False

    def first_length(self, slope: float, last: Taken) -> float:
        """Guess a step length from the slope here and the last step."""
        # As if the next step gained as much to first order as the last one did.
        length, slope_before = last
        return length * slope_before / slope

    def memory(self) -> Memory:
        """Return what was learned."""
        if type(self).learn is not Directions.learn:
            raise NotImplementedError(
                f"{type(self).__name__} learns but has no memory() and recall(): write both, so "
                "that a fit with a checkpoint can resume."
            )
        return {}, {}

    def recall(self, memory: Memory) -> None:  # noqa: B027
        """Know what another one of the same kind had in its memory."""


class Descent:
    """A solver that goes downhill along one direction after another."""

    line_search: StrongWolfe | Backtracking
    #: From the pool to a fresh chooser of directions: a class of them, or a method.
    directions: Callable[[BufferPool], Directions]

    def steps(self, objective: Objective, start: Any, vectors: Vectors) -> Iterator[State]:
        """Yield a state after every iteration; see `Solver.steps`."""
        pool = BufferPool(vectors)
        directions = self.directions(pool)
        counted = Counted.of(objective, start)
        here: Step | None
        last: Taken | None = None
        is_new = not isinstance(start, State)
        if is_new:
            # The start is never written to: every step is to a new point.
            value, gradient = counted(start)
            here = Step(0.0, value, 0.0, start, gradient)
            del gradient  # so that it is freed when the solver no longer needs it
        else:
            pool.keep(*start.own_vectors())
            here = Step(0.0, start.value, 0.0, start.point, *start.vectors["gradient"])
            if start.numbers["last step"]:
                length, slope = start.numbers["last step"]
                last = length, slope
            directions.recall((start.vectors, start.numbers))
        while here is not None:
            if is_new:
                own_vectors, own_numbers = directions.memory()
                state = State(
                    here.point,
                    here.value,
                    norm(pool, here.gradient),
                    counted.n_evaluations,
                    vectors={"gradient": [here.gradient], **own_vectors},
                    numbers={"last step": last or [], **own_numbers},
                )
                yield state
                if state.is_kept:
                    pool.keep(*state.own_vectors())
                del state, own_vectors
            here, last = self._step(counted, directions, here, last)
            is_new = True

    def _step(
        self, objective: Objective, directions: Directions, here: Step, last: Taken | None
    ) -> tuple[Step | None, Taken | None]:
        """Return where the next step leads and how it was taken; None if none leads down."""
        pool = directions.pool
        while True:
            direction = directions.choose(here.gradient)
            here = here._replace(length=0.0, slope=dot(pool, here.gradient, direction))
            if here.slope < 0:
                if last is None:
                    length = opening_length(pool, here.point, direction)
                else:
                    length = directions.first_length(here.slope, last)
                walk = partial(_walk, objective, pool, here.point, direction)
                step = self.line_search(walk, here, length)
                if step is not None:
                    directions.learn(direction, here, step)
                    return step, (step.length, here.slope)
            pool.release(direction)
            # What was learned may mislead: try plain steepest descent before giving up.
            if not directions.forget():
                return None, None
            last = None


def _walk(
    objective: Objective, vectors: Vectors, point: Vector, direction: Vector, length: float
) -> Step:
    there = vectors.combine((1.0, length), (point, direction))
    value, gradient = objective(there)
    return Step(length, value, dot(vectors, gradient, direction), there, gradient)


class _Steepest(Directions):
    def choose(self, gradient: Vector) -> Vector:
        return downhill(self.pool, gradient)

    def first_length(self, slope: float, last: Taken) -> float:
        return 2.0 * last[0]


@saved
@dataclass(frozen=True)
class GradientDescent(Descent):
    """Steepest descent; each step is first tried at twice the length of the last one."""

    line_search = Backtracking()
    directions = _Steepest


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
        last, self.last = self.last, None
        self.pool.release(*(last or ()))
        return last is not None

    def memory(self) -> Memory:
        return {"last direction and gradient": self.last or ()}, {}

    def recall(self, memory: Memory) -> None:
        vectors = memory[0]["last direction and gradient"]
        self.last = (vectors[0], vectors[1]) if vectors else None


@saved
@dataclass(frozen=True)
class ConjugateGradient(Descent):
    """Polak-Ribiere+ conjugate gradients with a strong-Wolfe line search."""

    line_search = StrongWolfe(curvature=0.1)
    directions = _Conjugate


@saved
@dataclass(frozen=True)
class LBFGS(Descent):
    """L-BFGS with a strong-Wolfe line search.

    Parameters
    ----------
    memory : int
        How many past steps shape the direction.  Each costs two vectors and four passes over
        memory.  Factorisations of ratings take as many gradients with one as with six.
    """

    _saved: ClassVar[dict[str, Any]] = {"memory": int}
    memory: int = 5
    line_search = StrongWolfe(curvature=0.9)

    def directions(self, pool: BufferPool) -> Directions:
        """Return a fresh chooser of directions."""
        return _LimitedMemory(pool, check_whole("memory", self.memory))


class _LimitedMemory(Directions):
    """The inverse Hessian in its compact form (Nocedal and Wright, section 7.2; Byrd et al. 1994).

    With the steps ``S`` and the falls ``F`` of the gradient (before minus after) as columns, it is
    a small matrix between ``[S, F]`` and its transpose.  So a direction takes one pass for the
    inner products with the gradient and one for the sum.  The inner products of steps and falls
    with one another follow from those with the gradients.
    """

    def __init__(self, pool: BufferPool, memory: int) -> None:
        super().__init__(pool)
        self.n_pairs = memory
        self.is_curved = False  # whether pairs shaped the last direction
        self._clear()

    def _clear(self) -> None:
        self.pairs: list[tuple[Vector, Vector]] = []  # a step, and the gradient's fall over it
        # Inner products: minus steps with falls (the upper triangle), falls, all with the gradient.
        self.steps_falls: Float64Array = np.empty((0, 0))
        self.falls_falls: Float64Array = np.empty((0, 0))
        self.with_gradient: Float64Array = np.empty(0)

    def choose(self, gradient: Vector) -> Vector:
        self.is_curved = bool(self.pairs)
        if not self.pairs:
            return downhill(self.pool, gradient)
        by_step, by_fall = self.with_gradient.reshape(2, -1)
        products = self.steps_falls.diagonal()
        scale = products[-1] / self.falls_falls[-1, -1]
        # LAPACK itself: in small fits, checks around it would take longer.
        lower = self.steps_falls.T
        of_falls = dtrtrs(lower, by_step, lower=1, trans=1)[0]
        right = products * of_falls + scale * (self.falls_falls @ of_falls + by_fall)
        of_steps = dtrtrs(lower, right, lower=1)[0]
        steps, falls = zip(*self.pairs, strict=True)
        scales = np.concatenate((-of_steps, -scale * of_falls, [-scale]))
        direction = self.pool.combine(scales.tolist(), (*steps, *falls, gradient))
        # Dropped as soon as it was used, before the search makes new vectors.
        if len(self.pairs) == self.n_pairs:
            oldest, *self.pairs = self.pairs
            self.pool.release(*oldest)
            self.steps_falls = self.steps_falls[1:, 1:]
            self.falls_falls = self.falls_falls[1:, 1:]
            self.with_gradient = self.with_gradient.reshape(2, -1)[:, 1:].ravel()
        return direction

    def learn(self, direction: Vector, here: Step, step: Step) -> None:
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
        pairs = [*self.pairs, (direction, fall)] if sound else self.pairs
        if not pairs:
            return
        steps, falls = zip(*pairs, strict=True)
        found = np.array(pool.dots((*steps, *falls), step.gradient))
        if sound:
            n = len(self.pairs)
            before = self.with_gradient.reshape(2, n)
            with_steps, with_falls = found.reshape(2, n + 1)[:, :n] - before
            self.steps_falls = _bordered(self.steps_falls, [*with_steps, product])
            self.falls_falls = _bordered(self.falls_falls, [*-with_falls, squared])
        self.pairs, self.with_gradient = pairs, found

    def forget(self) -> bool:
        # The pairs do not tell: the only one may have been dropped as soon as it was used.
        was_curved, self.is_curved = self.is_curved, False
        for pair in self.pairs:
            self.pool.release(*pair)
        self._clear()
        return was_curved

    def first_length(self, slope: float, last: Taken) -> float:
        return 1.0  # the direction comes with its length

    def memory(self) -> Memory:
        steps, falls = zip(*self.pairs, strict=True) if self.pairs else ((), ())
        return {"steps": steps, "falls": falls}, {
            "steps and falls": self.steps_falls.ravel().tolist(),
            "falls and falls": self.falls_falls.ravel().tolist(),
            "with gradient": self.with_gradient.tolist(),
        }

    def recall(self, memory: Memory) -> None:
        vectors, numbers = memory
        self.pairs = list(zip(vectors["steps"], vectors["falls"], strict=True))
        n = len(self.pairs)
        self.steps_falls = np.reshape(numbers["steps and falls"], (n, n))
        self.falls_falls = np.reshape(numbers["falls and falls"], (n, n))
        self.with_gradient = np.array(numbers["with gradient"], np.float64)


def _bordered(matrix: Float64Array, edge: list[float]) -> Float64Array:
    """Return the matrix with one more column, and the same numbers as one more row."""
    larger = np.empty((len(edge), len(edge)))
    larger[:-1, :-1] = matrix
    larger[:, -1] = larger[-1] = edge
    return larger
