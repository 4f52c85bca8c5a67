"""Stopping early: a second measure of every point says when to stop, and which point to keep."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from marginmf.solvers.descent import Solver, can_resume
from marginmf.solvers.monitor import Callback, Progress, Result, Save, State, Stopping, StopReason
from marginmf.solvers.vector import NumpyVectors, Vector, VectorSpace

#: What a state has on top of what the solver itself put into it.
KEPT, ERRORS = "kept point", "held-out errors"


@dataclass(frozen=True)
class EarlyStopped:
    """A solver that stops when a second measure no longer falls, and keeps the best point by it.

    Parameters
    ----------
    solver : solver
        Who minimises the objective.
    error_at : callable
        From a point to what should be small beside the objective, such as the error on data that
        the objective does not see.  It is asked once after every iteration.
    patience : int
        Stop after so many iterations in a row without a new smallest error.

    Examples
    --------
    >>> import numpy as np
    >>> from marginmf.solvers import LBFGS
    >>> target = np.array([1.0, 2.0])
    >>> bowl = lambda x: (float(x @ (x * [1, 9])), 2 * x * [1, 9])
    >>> solver = EarlyStopped(LBFGS(), lambda x: float(np.abs(x - target).sum()), patience=2)
    >>> result = solver.minimise(bowl, np.array([3.0, 4.0]))
    >>> len(result.errors) == result.n_iter + 1
    True
    >>> solver.error_at(result.point) == min(result.errors)
    True
    """

    solver: Solver
    error_at: Callable[[Any], float]
    patience: int

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
        """Minimise a function as the solver does; see `Descent.minimise`.

        The result's point is the one with the smallest error, and ``errors`` has the error of
        every point in its history.
        """
        watch = _Watch(self.error_at, self.patience, space or NumpyVectors())
        options: dict[str, Any] = {}
        if can_resume(self.solver):
            if resume is not None:
                watch.recall(resume)
            if save is not None:
                options["save"] = lambda state: save(watch.added_to(state))
            options["resume"] = resume
        callbacks = [*callbacks, watch]
        result = self.solver.minimise(objective, start, stopping, callbacks, space, **options)
        return replace(result, point=watch.kept, errors=watch.errors)


@dataclass
class _Watch:
    """The callback that measures every point; it remembers across an interruption."""

    error_at: Callable[[Any], float]
    patience: int
    space: VectorSpace
    errors: list[float] = field(default_factory=list)
    kept: Any = None

    def __call__(self, progress: Progress) -> StopReason | None:
        self.errors.append(float(self.error_at(progress.point)))
        best = self.errors.index(min(self.errors))
        if best == len(self.errors) - 1:
            self.kept = self.space.copy(progress.point)
        waited = len(self.errors) - 1 - best
        return StopReason.HELD_OUT if waited >= self.patience else None

    def added_to(self, state: State) -> State:
        vectors = {**state.vectors, KEPT: [self.kept]}
        numbers = {**state.numbers, ERRORS: list(self.errors)}
        return State(state.history, vectors, numbers)

    def recall(self, state: State) -> None:
        (self.kept,), self.errors = state.vectors[KEPT], list(state.numbers[ERRORS])
