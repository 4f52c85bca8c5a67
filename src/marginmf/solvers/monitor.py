"""When to stop, what happened, and who may watch: shared by every solver."""

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, NamedTuple

#: Iterations over which the fall of the objective is averaged: single ones vary too much.
PATIENCE = 3


class StopReason(StrEnum):
    """Why a solver stopped."""

    OBJECTIVE = "the objective fell by less than tol"
    GRADIENT = "the gradient became smaller than gradient_tol"
    STEP = "the step became shorter than step_tol"
    MAX_ITER = "max_iter iterations were done"
    MAX_SECONDS = "max_seconds were over"
    CALLBACK = "a callback asked to stop"
    HELD_OUT = "the error on held-out data no longer fell"
    PRECISION = "no step lowers the objective further at this precision"


@dataclass(frozen=True)
class Stopping:
    """Rules that end a minimisation; the first one that holds ends it.

    Parameters
    ----------
    max_iter : int
        The most iterations.
    tol : float
        Stop when an iteration lowers the objective by less than this share of it, on the average
        of the last three.
    gradient_tol : float
        Stop when the gradient's norm is below this share of its norm at the start.
    max_seconds : float
        Stop after the first iteration that ends later than this.
    step_tol : float
        Stop when a step is shorter than this share of the point's norm; for solvers whose steps
        say how far the minimum is, such as `APG`.
    """

    max_iter: int = 100
    tol: float = 1e-4
    gradient_tol: float = 1e-5
    max_seconds: float = math.inf
    step_tol: float = 0.0


class Record(NamedTuple):
    """One iteration: where it stood when it was done, seconds counted from the start."""

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
class Result:
    """Where a solver ended, how it got there, why it stopped, and how many gradients it took.

    ``errors`` has an error on held-out data for every record, where one was measured.
    """

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


@dataclass(frozen=True)
class State:
    """Where a solver stood after an iteration: all it takes to go on as if it had never stopped.

    Solvers do not change the vectors of a state, so that it can be kept without a copy and be
    written at any moment, an interruption in the middle of the next iteration included.

    Parameters
    ----------
    history : sequence of Record
        The iterations so far; the last one is where this is.
    vectors, numbers : mapping of str to sequence
        What else the solver has to know, under names of its own.
    """

    history: Sequence[Record]
    vectors: Mapping[str, Sequence[Any]]
    numbers: Mapping[str, Sequence[float]] = field(default_factory=dict)


#: Called with a state after every iteration that is not the last one.
Save = Callable[[State], None]


@dataclass
class Monitor:
    """Keeps the history of one minimisation and says when it is over."""

    stopping: Stopping
    callbacks: Sequence[Callback] = ()
    history: list[Record] = field(default_factory=list)
    n_evaluations: int = 0
    _start: float = field(default_factory=time.perf_counter)

    @classmethod
    def begin(
        cls, stopping: Stopping | None, callbacks: Sequence[Callback], resume: State | None
    ) -> "Monitor":
        """Return a monitor at the start or, given a state, as it was there, clock included."""
        monitor = cls(stopping or Stopping(), callbacks)
        if resume is not None:
            monitor.history.extend(resume.history)
            monitor.n_evaluations = resume.history[-1].n_evaluations
            monitor._start -= resume.history[-1].seconds
        return monitor

    def counted(self, objective: Callable[[Any], Any]) -> Callable[[Any], Any]:
        """Return the objective with its evaluations counted."""

        def evaluate(point: Any) -> Any:
            self.n_evaluations += 1
            return objective(point)

        return evaluate

    def record(
        self, objective: float, gradient_norm: float, point: Any, step: float = math.inf
    ) -> StopReason | None:
        """Note where an iteration ended; return why to stop here, or None to go on.

        ``step`` is the length of the step that led here, as a share of the point's norm.
        """
        now = Record(
            iteration=len(self.history),
            objective=objective,
            gradient_norm=gradient_norm,
            n_evaluations=self.n_evaluations,
            seconds=time.perf_counter() - self._start,
        )
        if not math.isfinite(objective):
            raise FloatingPointError(
                f"The objective is {objective} at iteration {now.iteration}. The start is outside "
                "the loss's domain or the numbers overflow: scale the data, raise reg, or use "
                "dtype='float64'."
            )
        self.history.append(now)
        progress = Progress(now, point, self.stopping.max_iter)
        # Every callback is called, so that one which stops does not hide the iteration from others.
        answers = [answer for callback in self.callbacks if (answer := callback(progress))]
        if answers:
            reasons = (answer for answer in answers if isinstance(answer, StopReason))
            return next(reasons, StopReason.CALLBACK)
        return self._reason(now, step)

    def fall(self) -> float:
        """Return how far an iteration lowered the objective, on the average of the last three."""
        if len(self.history) <= PATIENCE:
            return math.inf
        return (self.history[-1 - PATIENCE].objective - self.history[-1].objective) / PATIENCE

    def _reason(self, now: Record, step: float) -> StopReason | None:
        rules, first = self.stopping, self.history[0]
        if now.gradient_norm <= rules.gradient_tol * first.gradient_norm:
            return StopReason.GRADIENT
        if step <= rules.step_tol:
            return StopReason.STEP
        if self.fall() <= rules.tol * abs(now.objective):
            return StopReason.OBJECTIVE
        if now.iteration >= rules.max_iter:
            return StopReason.MAX_ITER
        if now.seconds >= rules.max_seconds:
            return StopReason.MAX_SECONDS
        return None

    def result(self, point: Any, reason: StopReason) -> Result:
        """Return everything a caller wants to know."""
        return Result(point, self.history, reason, self.n_evaluations)
