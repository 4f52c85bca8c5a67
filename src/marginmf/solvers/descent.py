"""The loop that every solver here shares: choose a direction, search along it, repeat.

A solver is this loop with its own way to choose directions (`Directions`) and its own line
search.  After every iteration the point is usable, so callbacks can stop, watch or save it.
"""

import inspect
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, TypeGuard

from marginmf.solvers.line_search import Backtracking, Step, StrongWolfe, along
from marginmf.solvers.monitor import Callback, Monitor, Result, Save, State, Stopping, StopReason
from marginmf.solvers.vector import NumpyVectors, Recycling, Vector, VectorSpace

#: Returns the value at a point and a gradient that is the solver's own: it may write over it.
Objective = Callable[[Any], tuple[float, Any]]


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

    def __init__(self, space: Recycling) -> None:
        self.space = space

    @abstractmethod
    def choose(self, gradient: Vector) -> Vector:
        """Return a new vector: the direction to search from here."""

    def learn(self, direction: Vector, here: Step, step: Step) -> None:  # noqa: B027
        """Note that ``step`` was taken along ``direction`` from ``here``.

        The direction and the gradient here are no longer needed by anybody else.
        """

    def forget(self) -> bool:
        """Go back to steepest descent; return whether there was anything to forget."""
        return False

    def first_length(self, slope: float, last: Taken) -> float:
        """Guess a step length from the slope here and the last step."""
        # As if the next step gained as much to first order as the last one did.
        return last.length * last.slope / slope

    def memory(self) -> Memory:
        """Return what was learned, in vectors that are not changed afterwards."""
        if type(self).learn is not Directions.learn:
            raise NotImplementedError(
                f"{type(self).__name__} learns but has no memory() and recall(): write both, so "
                "that a fit with a checkpoint can resume."
            )
        return Memory({}, {})

    def recall(self, memory: Memory) -> None:  # noqa: B027
        """Know what another one of the same kind had in its memory."""


class Solver(Protocol):
    """Anything that finds a minimum and says how."""

    def minimise(
        self,
        objective: Any,
        start: Vector,
        stopping: Stopping | None = None,
        callbacks: Sequence[Callback] = (),
        space: VectorSpace | None = None,
    ) -> Result:
        """Minimise a function; see `Descent.minimise`."""


class ResumableSolver(Solver, Protocol):
    """A solver that can go on from where it stood after any iteration."""

    def minimise(
        self,
        objective: Any,
        start: Vector,
        stopping: Stopping | None = None,
        callbacks: Sequence[Callback] = (),
        space: VectorSpace | None = None,
        resume: State | None = None,
        save: Save | None = None,
    ) -> Result:
        """Minimise a function; see `Descent.minimise`."""


def can_resume(solver: Solver) -> TypeGuard[ResumableSolver]:
    """Return whether a solver's ``minimise`` takes ``resume`` and ``save``."""
    return {"resume", "save"} <= set(inspect.signature(solver.minimise).parameters)


class Descent(ABC):
    """A solver that goes downhill along one direction after another."""

    line_search: StrongWolfe | Backtracking

    @abstractmethod
    def directions(self, space: Recycling) -> Directions:
        """Return a fresh chooser of directions."""

    def minimise(
        self,
        objective: Objective,
        start: Vector,
        stopping: Stopping | None = None,
        callbacks: Sequence[Callback] = (),
        space: VectorSpace | None = None,
        resume: State | None = None,
        save: Save | None = None,
    ) -> Result:
        """Minimise a smooth function.

        Parameters
        ----------
        objective : callable
            From a point to ``(value, gradient)``.
        start : vector
            Where to begin; it is not changed.
        stopping : Stopping, optional
            When to end.
        callbacks : sequence of callable
            Called with a `Progress` after every iteration; one that returns True stops.
        space : VectorSpace, optional
            Arithmetic for the vectors; NumPy arrays by default.
        resume : State, optional
            Go on from here, instead of from ``start``, to the very same end.
        save : callable, optional
            Called with the `State` after every iteration that is not the last.

        Returns
        -------
        Result
            The point, the history and the reason for stopping.

        Examples
        --------
        >>> import numpy as np
        >>> from marginmf.solvers import LBFGS
        >>> result = LBFGS().minimise(lambda x: (float(x @ x), 2 * x), np.array([3.0, -4.0]))
        >>> result.objective < 1e-9, str(result.reason)
        (True, 'the gradient became smaller than gradient_tol')
        """
        in_states = save is not None or resume is not None
        space = Recycling(space or NumpyVectors(), keep=in_states)
        monitor = Monitor.begin(stopping, callbacks, resume)
        objective = monitor.counted(objective)
        directions = self.directions(space)

        reason: StopReason | None = None
        last: Taken | None = None
        if resume is None:
            point = start  # never written to: every step is to a new point
            value, gradient = objective(point)
            reason = monitor.record(value, norm(space, gradient), point)
        else:
            (point,), (gradient,) = resume.vectors["point"], resume.vectors["gradient"]
            gradient = space.copy(gradient)
            value = resume.history[-1].objective
            last = Taken(*resume.numbers["last step"]) if resume.numbers["last step"] else None
            directions.recall(Memory(resume.vectors, resume.numbers))
        while reason is None:
            if save is not None:
                vectors, numbers = directions.memory()
                # A copy, because the next step may write over the gradient.
                vectors = {"point": [point], "gradient": [space.copy(gradient)], **vectors}
                numbers = {"last step": last or [], **numbers}
                save(State(tuple(monitor.history), vectors, numbers))
            here = Step(0.0, value, 0.0, point, gradient)
            step, last = self._step(objective, directions, here, last)
            if step is None:
                return monitor.result(point, StopReason.PRECISION)
            point, value, gradient = step.point, step.value, step.gradient
            reason = monitor.record(value, norm(space, gradient), point)
        return monitor.result(point, reason)

    def _step(
        self, objective: Objective, directions: Directions, here: Step, last: Taken | None
    ) -> tuple[Step | None, Taken | None]:
        """Return where the next step leads and how it was taken; None if none leads down."""
        space = directions.space
        while True:
            direction = directions.choose(here.gradient)
            here = here._replace(slope=space.dot(here.gradient, direction))
            step = None
            if here.slope < 0:
                if last is None:
                    length = opening_length(space, here.point, direction)
                else:
                    length = directions.first_length(here.slope, last)
                walk = along(objective, space, here.point, direction)
                step = self.line_search(walk, here, length)
            if step is not None:
                directions.learn(direction, here, step)
                return step, Taken(step.length, here.slope)
            # What was learned may mislead: try plain steepest descent before giving up.
            if not directions.forget():
                return None, None
            last = None


def norm(space: VectorSpace, a: Vector) -> float:
    """Return the Euclidean norm."""
    return math.sqrt(space.dot(a, a))


def opening_length(space: VectorSpace, point: Vector, direction: Vector) -> float:
    """Return a first step that moves the point by a tenth of its own length.

    That is the right order of magnitude whatever the scale of the objective; at the origin, which
    has no length, the step has length one.
    """
    return (0.1 * norm(space, point) or 1.0) / norm(space, direction)


def downhill(space: VectorSpace, gradient: Vector) -> Vector:
    """Return the direction of steepest descent."""
    return space.combine((-1.0,), (gradient,))
