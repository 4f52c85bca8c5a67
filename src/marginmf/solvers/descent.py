"""The loop that every solver here shares: choose a direction, search along it, repeat.

A solver is this loop with its own way to choose directions (`Directions`) and its own line
search.  After every iteration the point is usable, so callbacks can stop, watch or save it.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, Protocol

from marginmf.solvers.line_search import Backtracking, Step, StrongWolfe, along
from marginmf.solvers.monitor import Callback, Monitor, Result, Stopping, StopReason
from marginmf.solvers.vector import NumpyVectors, Vector, VectorSpace

#: Returns the value at a point and a gradient that the solver may keep and change.
Objective = Callable[[Any], tuple[float, Any]]


class Directions(ABC):
    """Chooses where to go from the gradients seen so far."""

    def __init__(self, space: VectorSpace) -> None:
        self.space = space

    @abstractmethod
    def choose(self, gradient: Vector) -> Vector:
        """Return a new vector: the direction to search from here."""

    def learn(self, direction: Vector, gradient: Vector, step: Step) -> None:  # noqa: B027
        """Note that ``step`` was taken along ``direction`` from where ``gradient`` was."""

    def forget(self) -> bool:
        """Go back to steepest descent; return whether there was anything to forget."""
        return False

    def first_length(self, slope: float, previous: Step, previous_slope: float) -> float:
        """Guess a step length from the slope here, the last step, and the slope before it."""
        # As if the next step gained as much to first order as the last one did.
        return previous.length * previous_slope / slope


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


class Descent(ABC):
    """A solver that goes downhill along one direction after another."""

    line_search: StrongWolfe | Backtracking

    @abstractmethod
    def directions(self, space: VectorSpace) -> Directions:
        """Return a fresh chooser of directions."""

    def minimise(
        self,
        objective: Objective,
        start: Vector,
        stopping: Stopping | None = None,
        callbacks: Sequence[Callback] = (),
        space: VectorSpace | None = None,
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
        space = space or NumpyVectors()
        monitor = Monitor(stopping or Stopping(), callbacks)
        objective = monitor.counted(objective)
        directions = self.directions(space)

        point = space.copy(start)
        value, gradient = objective(point)
        reason = monitor.record(value, norm(space, gradient), point)
        previous: Step | None = None
        previous_slope = 0.0
        while reason is None:
            direction = directions.choose(gradient)
            slope = space.dot(gradient, direction)
            step = None
            if slope < 0:
                if previous is None:
                    length = opening_length(space, point, direction)
                else:
                    length = directions.first_length(slope, previous, previous_slope)
                here = Step(0.0, value, slope, point, gradient)
                step = self.line_search(along(objective, space, point, direction), here, length)
            if step is None:
                # What was learned may mislead: try plain steepest descent before giving up.
                if not directions.forget():
                    return monitor.result(point, StopReason.PRECISION)
                previous = None
                continue
            directions.learn(direction, gradient, step)
            previous, previous_slope = step, slope
            point, value, gradient = step.point, step.value, step.gradient
            reason = monitor.record(value, norm(space, gradient), point)
        return monitor.result(point, reason)


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
    direction = space.copy(gradient)
    space.scale(-1.0, direction)
    return direction
