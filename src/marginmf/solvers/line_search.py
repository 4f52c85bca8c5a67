"""How far to go along a direction: strong Wolfe conditions, or simple backtracking.

Both look for a step with a sufficient fall, ``f(a) <= f(0) + c1 a f'(0)``.  Strong Wolfe also
wants the slope to have flattened, ``|f'(a)| <= c2 |f'(0)|``, which L-BFGS and conjugate gradients
need for their directions to stay downhill.  (Nocedal and Wright, Numerical Optimization, 2nd
edition, algorithms 3.1, 3.5 and 3.6, with cubic interpolation.)
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from marginmf.solvers.vectors import Vectors, dot

SUFFICIENT_FALL = 1e-4


class Step(NamedTuple):
    """A point along the direction: its step length, value, slope, position and gradient."""

    length: float
    value: float
    slope: float
    point: Any
    gradient: Any

    def numbers(self) -> "Step":
        """Return this without its vectors: they are large, and seldom needed again."""
        return self._replace(point=None, gradient=None)


Walk = Callable[[float], Step]


def along(
    objective: Callable[[Any], tuple[float, Any]], vectors: Vectors, point: Any, direction: Any
) -> Walk:
    """Return a function from a step length to the `Step` there."""

    def walk(length: float) -> Step:
        there = vectors.combine((1.0, length), (point, direction))
        value, gradient = objective(there)
        return Step(length, value, dot(vectors, gradient, direction), there, gradient)

    return walk


@dataclass(frozen=True)
class Backtracking:
    """Halve the step until the objective falls enough."""

    max_trials: int = 40

    def __call__(self, walk: Walk, start: Step, first_length: float) -> Step | None:
        """Return a step that lowers the objective, or None if there is none."""
        length = first_length
        for _ in range(self.max_trials):
            step = walk(length)
            if _falls_enough(step, start):
                return step
            length *= 0.5
        return None


@dataclass(frozen=True)
class StrongWolfe:
    """Bracket a step that satisfies the strong Wolfe conditions, then close in on it.

    ``curvature`` is the share of the first slope that may be left (c2).  After ``max_trials``
    evaluations the best step so far is taken.
    """

    curvature: float = 0.9
    max_trials: int = 20

    def __call__(self, walk: Walk, start: Step, first_length: float) -> Step | None:
        """Return a step that lowers the objective, or None if there is none."""
        before, step = start, walk(first_length)
        for trials_left in range(self.max_trials, 0, -1):
            overshot = not _falls_enough(step, start) or (
                before is not start and step.value >= before.value
            )
            if overshot:
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
        """Shrink the bracket around a good step; ``low`` is always its better end.

        The other end is only numbers.
        """
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
