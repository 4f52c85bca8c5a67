"""Accelerated proximal gradient: for a smooth function plus a penalty with corners.

Beck and Teboulle's FISTA with the adaptive restart of O'Donoghue and Candes: momentum that leads
uphill is dropped, which makes the method linear where the objective is strongly convex.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from marginmf.penalties import Penalty
from marginmf.solvers.run import Counted, Objective, State
from marginmf.solvers.vectors import Vector, Vectors, copy, dot, downhill, norm, opening_length


@dataclass(frozen=True)
class Composite:
    """The objective of `APG`: a smooth function plus a penalty.

    ``lipschitz``, the largest curvature of the smooth part, is by default found by backtracking.
    """

    smooth: Objective
    penalty: Penalty
    lipschitz: float | None = None

    def __call__(self, point: Vector) -> tuple[float, Vector]:
        """Return the value and the gradient of the smooth part."""
        return self.smooth(point)


class Position(NamedTuple):
    """A point, the gradient of the smooth part there, and the objective (smooth and penalty)."""

    point: Vector
    gradient: Vector
    objective: float


@dataclass(frozen=True)
class APG:
    """Accelerated proximal gradient (FISTA) with adaptive restart; its objective is a `Composite`.

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
    The ``gradient_norm`` of a state is ``lipschitz |step|`` of the proximal gradient step, which
    is zero at a minimum and nowhere else.  Of the rules of `Stopping`, ``gradient_tol`` looks at
    that, and ``step_tol`` at ``|step|`` against the point's norm.

    Other schemes than "function" let the objective rise now and then, which the rule ``tol``
    takes for the end: give them ``tol=-math.inf``, and ``step_tol`` or ``gradient_tol``.

    Examples
    --------
    >>> import numpy as np
    >>> from marginmf.penalties import L1
    >>> from marginmf.solvers import minimise
    >>> target = np.array([3.0, -0.5])
    >>> half_square = lambda x: (float((x - target) @ (x - target)) / 2, x - target)
    >>> minimise(APG(), Composite(half_square, L1(1.0), lipschitz=1.0), np.zeros(2)).point
    array([2., 0.])
    """

    restart: Literal["function", "gradient"] | None = "function"
    affine: bool = False

    def steps(self, objective: Any, start: Any, vectors: Vectors) -> Iterator[State]:
        """Yield a state after every iteration; see `Solver.steps`."""
        if self.restart not in ("function", "gradient", None):
            raise ValueError(
                f"restart={self.restart!r} is not known. Choose 'function', 'gradient' or None."
            )
        counted = Counted.of(objective, start)
        moves = _Moves(counted, vectors, self.affine)
        weight = last_weight = 1.0  # b_t and b_{t-1} in Kumar's thesis

        def state(length: float, share: float) -> State:
            # None of its vectors is ever written over.
            return State(
                here.point,
                here.objective,
                moves.lipschitz * length,
                counted.n_evaluations,
                share,
                {"gradient": [here.gradient], "before": [before.point, before.gradient]},
                {"weights and curvature": [weight, last_weight, moves.lipschitz]},
            )

        if isinstance(start, State):
            (gradient,) = start.vectors["gradient"]
            last_point, last_gradient = start.vectors["before"]
            here = Position(start.point, gradient, start.value)
            before = Position(last_point, last_gradient, math.nan)
            weight, last_weight, moves.lipschitz = start.numbers["weights and curvature"]
        else:
            here = before = moves.position(copy(vectors, start))
            moves.guess_curvature(here)
            yield state(moves.length(here, moves.prox(here)), math.inf)
        while True:
            ahead = moves.extrapolate(here, before, (last_weight - 1.0) / weight)
            new = moves.take(ahead)
            if self.restart == "function" and not new.objective <= here.objective:
                if ahead is not here:
                    weight, ahead, new = 1.0, here, moves.take(here)
                if not new.objective <= here.objective:
                    return
            elif self.restart == "gradient" and moves.turns_back(ahead, new, here):
                weight = 1.0
            last_weight, weight = weight, (1.0 + math.sqrt(1.0 + 4.0 * weight * weight)) / 2.0
            before, here = here, new
            length, size = moves.length(ahead, new.point), norm(vectors, new.point)
            share = length / size if size else math.inf if length else 0.0
            yield state(length, share)


class _Moves:
    """Proximal gradient steps of one minimisation, with the curvature known or found on the way."""

    def __init__(self, objective: Counted, vectors: Vectors, affine: bool) -> None:
        self.objective, self.vectors, self.affine = objective, vectors, affine
        self.penalty: Penalty = objective.penalty
        self.backtracks = objective.lipschitz is None
        self.lipschitz = float(objective.lipschitz or 0.0)

    def position(self, point: Vector) -> Position:
        value, gradient = self.objective(point)
        return Position(point, gradient, value + self.penalty.value(point))

    def guess_curvature(self, here: Position) -> None:
        """Start backtracking from the curvature downhill, which is never more than the largest."""
        if not self.backtracks:
            return
        direction = downhill(self.vectors, here.gradient)
        size, self.lipschitz = norm(self.vectors, direction), 1.0
        if size:
            length = opening_length(self.vectors, here.point, direction)
            _, gradient = self.objective(self._sum(here.point, length, direction))
            change = self._sum(gradient, -1.0, here.gradient)
            self.lipschitz = norm(self.vectors, change) / (length * size) or 1.0

    def extrapolate(self, here: Position, before: Position, momentum: float) -> Position:
        """Return where the momentum leads; its objective is not needed, and unknown."""
        if momentum == 0.0:
            return here
        scales = (1.0, momentum, -momentum)
        point = self.vectors.combine(scales, (here.point, here.point, before.point))
        if self.affine:
            gradients = (here.gradient, here.gradient, before.gradient)
            return Position(point, self.vectors.combine(scales, gradients), math.nan)
        return Position(point, self.objective(point)[1], math.nan)

    def prox(self, start: Position) -> Vector:
        step = 1.0 / self.lipschitz if self.lipschitz else 1.0  # a constant has no curvature
        return self.penalty.prox(self._sum(start.point, -step, start.gradient), step)

    def take(self, start: Position) -> Position:
        """Take a step, the shorter the more curved the smooth part turns out to be."""
        while True:
            new = self.position(self.prox(start))
            if not self.backtracks:
                return new
            step = self._sum(new.point, -1.0, start.point)
            change = self._sum(new.gradient, -1.0, start.gradient)
            along_change, squared = self.vectors.dots((change, step), step)
            # For a quadratic this is "below the parabola"; for other convex functions twice as
            # much is sure to be.  Values of the function would drown in rounding near the end.
            bend = (1.0 if self.affine else 2.0) * along_change
            if bend <= self.lipschitz * squared * (1.0 + 1e-6):
                return new
            self.lipschitz *= 2.0

    def length(self, start: Position, point: Vector) -> float:
        return norm(self.vectors, self._sum(point, -1.0, start.point))

    def turns_back(self, ahead: Position, new: Position, here: Position) -> bool:
        """Return whether the step from ahead points against the way from here to its end."""
        step = self._sum(ahead.point, -1.0, new.point)
        return dot(self.vectors, step, self._sum(new.point, -1.0, here.point)) > 0.0

    def _sum(self, a: Vector, scale: float, b: Vector) -> Vector:
        """Return ``a + scale b`` as a new vector."""
        return self.vectors.combine((1.0, scale), (a, b))
