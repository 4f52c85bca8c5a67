"""Accelerated proximal gradient: for a smooth function plus a penalty with corners.

Beck and Teboulle's FISTA with the adaptive restart of O'Donoghue and Candes: momentum is dropped
as soon as it leads uphill, which makes the method linear where the objective is strongly convex.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, Protocol

from marginmf.solvers.descent import Objective, downhill, norm, opening_length
from marginmf.solvers.monitor import Callback, Monitor, Result, Stopping, StopReason
from marginmf.solvers.vector import NumpyVectors, Vector, VectorSpace

Restart = Literal["function", "gradient"]


class Penalty(Protocol):
    """The part of an objective that has corners; see `marginmf.penalties`."""

    def value(self, a: Any) -> float:
        """Return the penalty at a point."""

    def prox(self, a: Any, step: float) -> Any:
        """Return a new point, which minimises ``penalty(p) + |p - a|^2 / (2 step)``."""


class Place(NamedTuple):
    """A point, the gradient of the smooth part there, and the objective (smooth and penalty)."""

    point: Vector
    gradient: Vector
    objective: float


@dataclass(frozen=True)
class APG:
    """Accelerated proximal gradient (FISTA) with adaptive restart.

    Parameters
    ----------
    restart : {"function", "gradient"} or None
        When to drop the momentum.  Function: when the objective rises; that step is taken back,
        so that the objective never rises.  Gradient: when the step points away from where the
        momentum goes; nothing is taken back.  None: never, which is plain FISTA.
    affine : bool
        The gradient is an affine function, as that of a least-squares loss is.  It then need not
        be evaluated where the momentum leads: one evaluation an iteration is enough.

    Notes
    -----
    Other schemes than "function" let the objective rise now and then, which the rule ``tol`` of
    `Stopping` takes for the end: give them ``tol=-math.inf``, and ``step_tol`` or
    ``gradient_tol``.
    """

    restart: Restart | None = "function"
    affine: bool = False

    def minimise(
        self,
        smooth: Objective,
        penalty: Penalty,
        start: Vector,
        lipschitz: float | None = None,
        stopping: Stopping | None = None,
        callbacks: Sequence[Callback] = (),
        space: VectorSpace | None = None,
    ) -> Result:
        """Minimise ``smooth(x) + penalty(x)``.

        Parameters
        ----------
        smooth : callable
            From a point to ``(value, gradient)``.
        penalty : Penalty
            The part with corners.
        start : vector
            Where to begin; it is not changed.
        lipschitz : float, optional
            The largest curvature of the smooth part; steps are its inverse.  By default it is
            found by backtracking.
        stopping : Stopping, optional
            When to end.  ``gradient_tol`` and ``step_tol`` look at the proximal gradient step:
            the first at ``lipschitz |step|`` against the start's, the second at ``|step|``
            against the point's norm.
        callbacks : sequence of callable
            Called with a `Progress` after every iteration; one that returns True stops.
        space : VectorSpace, optional
            Arithmetic for the vectors; NumPy arrays, of any shape, by default.

        Returns
        -------
        Result
            The point, the history and the reason for stopping.  ``gradient_norm`` in the history
            is ``lipschitz |step|``, which is zero at a minimum and nowhere else.

        Examples
        --------
        >>> import numpy as np
        >>> from marginmf.penalties import L1
        >>> target = np.array([3.0, -0.5])
        >>> result = APG().minimise(
        ...     lambda x: (float((x - target) @ (x - target)) / 2, x - target),
        ...     L1(1.0),
        ...     np.zeros(2),
        ...     lipschitz=1.0,
        ... )
        >>> result.point
        array([2., 0.])
        """
        if self.restart not in ("function", "gradient", None):
            raise ValueError(
                f"restart={self.restart!r} is not known. Choose 'function', 'gradient' or None."
            )
        monitor = Monitor.begin(stopping, callbacks, None)
        steps = _Steps(
            monitor.counted(smooth),
            penalty,
            space or NumpyVectors(),
            self.affine,
            0.0 if lipschitz is None else float(lipschitz),
            lipschitz is None,
        )
        return self._run(steps, start, monitor)

    def _run(self, steps: "_Steps", start: Vector, monitor: Monitor) -> Result:
        space = steps.space
        here = before = steps.place(space.copy(start))
        steps.guess_curvature(here)
        length = steps.length(here, steps.prox(here))
        reason = monitor.record(here.objective, steps.lipschitz * length, here.point)
        weight = last_weight = 1.0  # the thesis's b_t and b_{t-1}
        while reason is None:
            ahead = steps.extrapolate(here, before, (last_weight - 1.0) / weight)
            new = steps.take(ahead)
            if self.restart == "function" and not new.objective <= here.objective:
                if ahead is not here:
                    weight = 1.0
                    ahead = here
                    new = steps.take(here)
                if not new.objective <= here.objective:
                    return monitor.result(here.point, StopReason.PRECISION)
            elif self.restart == "gradient" and steps.turns_back(ahead, new, here):
                weight = 1.0
            last_weight, weight = weight, (1.0 + math.sqrt(1.0 + 4.0 * weight * weight)) / 2.0
            before, here = here, new
            length = steps.length(ahead, new.point)
            size = norm(space, new.point)
            share = length / size if size else math.inf if length else 0.0
            reason = monitor.record(new.objective, steps.lipschitz * length, new.point, share)
        return monitor.result(here.point, reason)


@dataclass
class _Steps:
    """Proximal gradient steps of one minimisation, with the curvature known or found on the way."""

    smooth: Objective
    penalty: Penalty
    space: VectorSpace
    affine: bool
    lipschitz: float
    backtracks: bool

    def place(self, point: Vector) -> Place:
        value, gradient = self.smooth(point)
        return Place(point, gradient, value + self.penalty.value(point))

    def guess_curvature(self, here: Place) -> None:
        """Start backtracking from the curvature downhill, which is never more than the largest."""
        if not self.backtracks:
            return
        direction = downhill(self.space, here.gradient)
        if not norm(self.space, direction):
            self.lipschitz = 1.0
            return
        length = opening_length(self.space, here.point, direction)
        _, gradient = self.smooth(self._sum(here.point, length, direction))
        change = self._sum(gradient, -1.0, here.gradient)
        curvature = norm(self.space, change) / (length * norm(self.space, direction))
        self.lipschitz = curvature or 1.0

    def extrapolate(self, here: Place, before: Place, momentum: float) -> Place:
        """Return where the momentum leads; its objective is not needed, and unknown."""
        if momentum == 0.0:
            return here
        point = self._ahead(here.point, before.point, momentum)
        if self.affine:
            return Place(point, self._ahead(here.gradient, before.gradient, momentum), math.nan)
        return Place(point, self.smooth(point)[1], math.nan)

    def prox(self, place: Place) -> Vector:
        step = 1.0 / self.lipschitz if self.lipschitz else 1.0  # a constant has no curvature
        return self.penalty.prox(self._sum(place.point, -step, place.gradient), step)

    def take(self, place: Place) -> Place:
        """Take a step, the shorter the more curved the smooth part turns out to be."""
        while True:
            new = self.place(self.prox(place))
            if not self.backtracks:
                return new
            step = self._sum(new.point, -1.0, place.point)
            change = self._sum(new.gradient, -1.0, place.gradient)
            # For a quadratic this is "below the parabola"; for other convex functions twice as
            # much is sure to be.  Values of the function would drown in rounding near the end.
            bend = (1.0 if self.affine else 2.0) * self.space.dot(step, change)
            if bend <= self.lipschitz * self.space.dot(step, step) * (1.0 + 1e-6):
                return new
            self.lipschitz *= 2.0

    def length(self, place: Place, point: Vector) -> float:
        return norm(self.space, self._sum(point, -1.0, place.point))

    def turns_back(self, ahead: Place, new: Place, here: Place) -> bool:
        """Return whether the step from ahead points against the way from here to its end."""
        step = self._sum(ahead.point, -1.0, new.point)
        return self.space.dot(step, self._sum(new.point, -1.0, here.point)) > 0.0

    def _ahead(self, here: Vector, before: Vector, momentum: float) -> Vector:
        ahead = self._sum(here, momentum, here)
        self.space.axpy(-momentum, before, ahead)
        return ahead

    def _sum(self, a: Vector, scale: float, b: Vector) -> Vector:
        """Return ``a + scale b`` as a new vector."""
        total = self.space.copy(a)
        self.space.axpy(scale, b, total)
        return total
