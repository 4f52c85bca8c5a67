"""One loop for every solver: it takes states, and stopping, callbacks and checkpoints watch.

A solver yields a `State` after every iteration.  `minimise` records it, asks the callbacks, the
stopping rules and the early stopping whether to go on, and hands the run to whatever saves it.
"""

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple, Protocol, Self

from marginmf._utils.random import GeneratorState
from marginmf._utils.saved import saved
from marginmf.solvers.vectors import NumpyVectors, Vector, Vectors, copy

#: Iterations over which the fall of the objective is averaged: single ones vary too much.
PATIENCE = 3

#: Returns the value at a point and a gradient that is the solver's own: it may write over it.
Objective = Callable[[Any], tuple[float, Any]]


@dataclass(eq=False)
class State:
    """A solver after an iteration: all it takes to resume as if it had never stopped.

    The point never changes; the next step may write over the other vectors, unless they are kept.
    """

    #: Where the solver is (for a sampler, its sample), the objective there, its gradient's norm.
    point: Vector
    value: float
    gradient_norm: float
    #: How many times the objective was evaluated so far.
    n_evaluations: int = 0
    #: The length of the last step as a share of the point's norm; infinity where steps do not tell
    #: how far the minimum is.
    step_share: float = math.inf
    #: What else the solver has to know, under names of its own.
    vectors: Mapping[str, Sequence[Vector]] = field(default_factory=dict)
    numbers: Mapping[str, Sequence[float]] = field(default_factory=dict)
    #: The random generators as they were after this iteration.
    generators: Mapping[str, GeneratorState] = field(default_factory=dict)
    is_kept: bool = field(default=False, init=False)

    def keep(self) -> Self:
        """Ask the solver to leave the vectors as they are, which costs no copy; return self."""
        self.is_kept = True
        return self

    def groups(self) -> tuple[Mapping[str, Any], ...]:
        """Return what else the solver has to know: vectors, numbers and generators by name."""
        return self.vectors, self.numbers, self.generators

    def own_vectors(self) -> list[Vector]:
        """Return all vectors but the point."""
        return [vector for group in self.vectors.values() for vector in group]


class Solver(Protocol):
    """Anything that looks for a minimum step by step."""

    def steps(self, objective: Any, start: Any, vectors: Vectors) -> Iterator[State]:
        """Yield a state after every iteration, until no step leads further.

        The start is a point, which is not changed: the first state is that of the point itself.  Or
        a state of the same solver to resume from: the first state is the one after it.
        """


class Counted:
    """An objective that counts its evaluations, and is otherwise as it was."""

    def __init__(self, objective: Any, n_evaluations: int = 0) -> None:
        self.objective, self.n_evaluations = objective, n_evaluations

    @classmethod
    def of(cls, objective: Any, start: Any = None) -> "Counted":
        """Return the objective as one that counts, from where a state left off."""
        if isinstance(objective, Counted):
            return objective
        return cls(objective, start.n_evaluations if isinstance(start, State) else 0)

    def __call__(self, point: Vector) -> tuple[float, Any]:
        """Evaluate the objective."""
        self.n_evaluations += 1
        return self.objective(point)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.objective, name)


class StopReason(StrEnum):
    """Why a minimisation stopped."""

    OBJECTIVE = "the objective fell by less than tol"
    GRADIENT = "the gradient became smaller than gradient_tol"
    STEP = "the step became shorter than step_tol"
    MAX_ITER = "max_iter iterations were done"
    MAX_SECONDS = "max_seconds were over"
    CALLBACK = "a callback asked to stop"
    HELD_OUT = "the error on held-out data no longer fell"
    PRECISION = "no step lowers the objective further at this precision"
    PAUSED = "it was paused, to go on later"


@dataclass(frozen=True)
class Stopping:
    """Rules that end a minimisation; the first one that holds ends it.

    Parameters
    ----------
    max_iter : int
        The maximum number of iterations.
    tol : float
        The least share by which an iteration lowers the objective, averaged over the last three.
    gradient_tol : float
        The least norm of the gradient, as a share of its norm at the start.
    max_seconds : float
        Stop after the first iteration that ends later than this.
    step_tol : float
        The shortest step, as a share of the point's norm; for solvers whose steps tell how far
        the minimum is, such as `APG`.
    """

    max_iter: int = 100
    tol: float = 1e-4
    gradient_tol: float = 1e-5
    max_seconds: float = math.inf
    step_tol: float = 0.0


@saved
class Record(NamedTuple):
    """The numbers of one iteration when it was done, seconds counted from the start."""

    iteration: int
    objective: float
    gradient_norm: float
    n_evaluations: int
    seconds: float


@dataclass(frozen=True)
class Progress:
    """What a callback sees after every iteration; ``point`` is usable as it is."""

    record: Record
    point: Any
    max_iter: int


#: Called after every iteration; return True, or the reason, to stop.
Callback = Callable[[Progress], bool | StopReason | None]


@dataclass(frozen=True)
class EarlyStopping:
    """Stop when a second measure no longer falls, and keep the best point by it.

    Parameters
    ----------
    error_at : callable
        From a point to its error on held-out data; called once after every iteration.
    patience : int
        Stop after this number of iterations in a row without a new smallest error.
    """

    error_at: Callable[[Any], float]
    patience: int


@dataclass(frozen=True, eq=False)
class Paused:
    """A minimisation after an iteration: give it to `minimise` as the start to resume it.

    With early stopping, ``errors`` has the error of every iteration in the history.
    """

    state: State
    history: Sequence[Record]
    errors: Sequence[float] = ()
    best_point: Vector | None = None

    def keep(self) -> Self:
        """Ask the solver to leave the vectors as they are; see `State.keep`."""
        self.state.keep()
        return self


#: Called with the run after every iteration that is not the last; return True to pause there.
Save = Callable[[Paused], bool | None]


@dataclass(frozen=True)
class Result:
    """The point that was found, how, and why it stopped there; errors are on held-out data."""

    point: Any
    history: list[Record]
    reason: StopReason
    n_evaluations: int
    errors: list[float] = field(default_factory=list)

    @property
    def objective(self) -> float:
        """The objective at the point."""
        return self.history[-1].objective

    @property
    def n_iter(self) -> int:
        """How many iterations were done."""
        return self.history[-1].iteration


def minimise(
    solver: Solver,
    objective: Any,
    start: Any,
    stopping: Stopping | None = None,
    callbacks: Sequence[Callback] = (),
    vectors: Vectors | None = None,
    *,
    early_stopping: EarlyStopping | None = None,
    save: Save | None = None,
) -> Result:
    """Minimise a function.

    Parameters
    ----------
    solver : Solver
        The method, such as ``LBFGS()``, or any object with ``steps``.
    objective : callable
        From a point to ``(value, gradient)``; some solvers ask more of it.
    start : vector or Paused
        The point to begin at, which is not changed; or a run to resume, to the very same end.
    stopping : Stopping, optional
        When to end.
    callbacks : sequence of callable
        Called with a `Progress` after every iteration; one that returns True stops.
    vectors : Vectors, optional
        Arithmetic for the vectors; NumPy arrays by default.
    early_stopping : EarlyStopping, optional
        A second measure that ends the run, and whose best point is the result's.
    save : callable, optional
        Called with a `Paused` after every iteration that is not the last; if it returns True,
        the run pauses there.  It must `keep` what it wants to have longer than that.

    Examples
    --------
    >>> import numpy as np
    >>> from marginmf.solvers import LBFGS
    >>> result = minimise(LBFGS(), lambda x: (float(x @ x), 2 * x), np.array([3.0, -4.0]))
    >>> result.objective < 1e-9, str(result.reason)
    (True, 'the gradient became smaller than gradient_tol')
    """
    vectors = vectors or NumpyVectors()
    monitor, watch = Monitor(stopping or Stopping(), callbacks), None
    if early_stopping is not None:
        watch = _Watch(early_stopping, vectors)
        monitor.callbacks = [*callbacks, watch]

    def pauses(state: State) -> bool:
        watched = () if watch is None else (tuple(watch.errors), watch.best_point)
        return save is not None and bool(save(Paused(state, tuple(monitor.history), *watched)))

    point, reason = start, None
    if isinstance(start, Paused):
        monitor.resume(start.history)
        if watch is not None:
            watch.errors, watch.best_point = list(start.errors), start.best_point
        start, point = start.state, start.state.point
        reason = StopReason.PAUSED if pauses(start) else None
    counted = Counted(objective, monitor.n_evaluations)
    steps = iter(solver.steps(counted, start, vectors))
    while reason is None:
        state = next(steps, None)
        # The evaluations of a last step that led nowhere count too.
        monitor.n_evaluations = counted.n_evaluations
        if state is None:
            reason = StopReason.PRECISION
            break
        point = state.point
        reason = monitor.record(state.value, state.gradient_norm, point, state.step_share)
        if reason is None and pauses(state):
            reason = StopReason.PAUSED
        del state  # the next step can free what it no longer needs
    if not monitor.history:
        raise RuntimeError(f"{type(solver).__name__}.steps() yielded no state, not even the start.")
    if watch is None:
        return monitor.result(point, reason)
    return monitor.result(watch.best_point, reason, watch.errors)


@dataclass
class Monitor:
    """Keeps the history of one minimisation and says when it is over."""

    stopping: Stopping
    callbacks: Sequence[Callback] = ()
    history: list[Record] = field(default_factory=list)
    n_evaluations: int = 0
    _start: float = field(default_factory=time.perf_counter)

    def resume(self, history: Sequence[Record]) -> None:
        """Go on after these iterations, clock included."""
        self.history.extend(history)
        self.n_evaluations = history[-1].n_evaluations
        self._start -= history[-1].seconds

    def record(
        self, objective: float, gradient_norm: float, point: Any, step_share: float = math.inf
    ) -> StopReason | None:
        """Record where an iteration ended; return why to stop here, or None to go on."""
        seconds = time.perf_counter() - self._start
        now = Record(len(self.history), objective, gradient_norm, self.n_evaluations, seconds)
        if not math.isfinite(objective):
            raise FloatingPointError(
                f"The objective is {objective} at iteration {now.iteration}: the start is outside "
                "the loss's domain, or the numbers overflow. Scale the data, or choose settings "
                "nearer to the defaults."
            )
        self.history.append(now)
        progress = Progress(now, point, self.stopping.max_iter)
        # Every callback is called, so that one which stops does not hide the iteration from others.
        answers = [answer for callback in self.callbacks if (answer := callback(progress))]
        if not answers:
            return self._reason(now, step_share)
        reasons = (answer for answer in answers if isinstance(answer, StopReason))
        return next(reasons, StopReason.CALLBACK)

    def _reason(self, now: Record, step_share: float) -> StopReason | None:
        rules, history, fall = self.stopping, self.history, math.inf
        least_gradient = rules.gradient_tol * history[0].gradient_norm
        if len(history) > PATIENCE:
            fall = (history[-1 - PATIENCE].objective - now.objective) / PATIENCE
        checks = (
            (StopReason.GRADIENT, now.gradient_norm <= least_gradient),
            (StopReason.STEP, step_share <= rules.step_tol),
            (StopReason.OBJECTIVE, fall <= rules.tol * abs(now.objective)),
            (StopReason.MAX_ITER, now.iteration >= rules.max_iter),
            (StopReason.MAX_SECONDS, now.seconds >= rules.max_seconds),
        )
        return next((reason for reason, holds in checks if holds), None)

    def result(self, point: Any, reason: StopReason, errors: Sequence[float] = ()) -> Result:
        """Return everything a caller wants to know."""
        return Result(point, self.history, reason, self.n_evaluations, list(errors))


@dataclass
class _Watch:
    """The callback of early stopping: it measures every point and keeps a copy of the best."""

    rule: EarlyStopping
    vectors: Vectors
    errors: list[float] = field(default_factory=list)
    best_point: Any = None

    def __call__(self, progress: Progress) -> StopReason | None:
        self.errors.append(float(self.rule.error_at(progress.point)))
        best = self.errors.index(min(self.errors))
        waited = len(self.errors) - 1 - best
        if waited == 0:
            self.best_point = copy(self.vectors, progress.point)
        return StopReason.HELD_OUT if waited >= self.rule.patience else None
