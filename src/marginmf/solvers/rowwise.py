"""Many small convex problems side by side, each at its own pace.

All rows are evaluated together, which is what compiled kernels do best, and nothing else is shared:
every row has its own L-BFGS memory, line search and end.  So the answer for a row does not depend
on the rows beside it, and easy rows do not wait for hard ones.
"""

from dataclasses import dataclass, fields, replace
from typing import Protocol, Self

import numpy as np

from marginmf._utils.types import Array, Float64Array, FloatArray, IntArray

#: Past steps that shape a row's direction.
MEMORY = 6
#: The weak Wolfe conditions: a step must lower the value by the first share of what the slope
#: promises, and flatten the slope to the second share.
DECREASE, CURVATURE = 1e-4, 0.9
#: Values this share apart may differ by rounding alone.
ROUNDING = 1e-6
#: A line search that has halved or doubled its step more often has failed.
MAX_TRIES = 25
#: A row whose value falls by less than this share in this number of rounds is as low as it gets:
#: where the loss has kinks, the gradient does not tell.
LEAST_FALL, PATIENCE = 1e-6, 30
#: Rows that are done are set aside when they are this share of all.
SHARE_DONE = 0.25


class RowProblems(Protocol):
    """Problems that are evaluated together."""

    def __call__(self, points: FloatArray) -> tuple[Float64Array, FloatArray]:
        """Return the value of every row, and the gradient by every row."""

    def take(self, which: IntArray) -> "RowProblems":
        """Return some of the problems."""


def minimise_rows(
    problems: RowProblems, start: FloatArray, tol: float = 1e-5, max_rounds: int = 300
) -> FloatArray:
    """Return the minimum of every row's problem, to the tolerance or to the numbers' precision.

    Parameters
    ----------
    problems : RowProblems
        Convex problems, one for each row.
    start : array of shape (n_rows, n_parameters)
        Where to begin; it is not changed.
    tol : float
        A row is done when the norm of its gradient is this share of what it was at the start, or
        when its value falls no more.
    max_rounds : int
        The maximum number of evaluations of a row.

    Examples
    --------
    >>> class Parabolas:
    ...     def __init__(self, steepness):
    ...         self.steepness = steepness
    ...     def __call__(self, x):
    ...         away = x - 3.0
    ...         return (self.steepness * away**2).sum(axis=1), 2 * self.steepness * away
    ...     def take(self, which):
    ...         return Parabolas(self.steepness[which])
    >>> minimise_rows(Parabolas(np.array([[1.0], [50.0]])), np.zeros((2, 1))).round(3)
    array([[3.],
           [3.]])
    """
    points = start.copy()
    rows = _Rows.begin(problems, points, tol)
    for number in range(max_rounds):
        done = ~rows.running
        if done.sum() >= SHARE_DONE * len(done):
            points[rows.index[done]] = rows.point[done]
            left = np.flatnonzero(rows.running)
            if len(left) == 0:
                return points
            rows, problems = rows.take(left), problems.take(left)
        rows.advance(problems, slot=number % MEMORY)
        if (number + 1) % PATIENCE == 0:
            rows.stop_where_level()
    points[rows.index] = rows.point
    return points


@dataclass
class _Rows:
    """The state of every row; the first axis of every array is the row."""

    index: IntArray
    running: Array
    point: FloatArray
    value: Float64Array
    earlier: Float64Array
    gradient: FloatArray
    target: Float64Array
    # The line search: from the point along the direction, between two lengths.
    direction: FloatArray
    slope: Float64Array
    length: Float64Array
    shortest: Float64Array
    longest: Float64Array
    tries: IntArray
    # The memory: steps, changes of the gradient over them, and 1 / (step . change), 0 for none.
    steps: FloatArray
    changes: FloatArray
    weights: Float64Array
    scale: Float64Array

    @classmethod
    def begin(cls, problems: RowProblems, start: FloatArray, tol: float) -> Self:
        """Evaluate the start and set out from there."""
        n, n_parameters = start.shape
        value, gradient = problems(start)
        if not np.isfinite(value).all():
            row = int(np.argmin(np.isfinite(value)))
            raise FloatingPointError(
                f"The objective of row {row} is {value[row]} at its start: the factors that are "
                "given are not finite, or the start is outside the loss's domain."
            )
        rows = cls(
            index=np.arange(n),
            running=np.ones(n, bool),
            point=start.copy(),
            value=value,
            earlier=value.copy(),
            gradient=gradient,
            target=tol * _norm(gradient),
            direction=np.zeros_like(start),
            tries=np.zeros(n, int),
            steps=np.zeros((n, MEMORY, n_parameters), start.dtype),
            changes=np.zeros((n, MEMORY, n_parameters), start.dtype),
            weights=np.zeros((n, MEMORY)),
            # Filled in by `_forget`.
            **{name: np.zeros(n) for name in ("slope", "length", "shortest", "longest", "scale")},
        )
        rows.running = _norm(gradient) > rows.target
        rows._forget(rows.running)
        return rows

    def take(self, which: IntArray) -> Self:
        """Return some of the rows."""
        return replace(self, **{f.name: getattr(self, f.name)[which] for f in fields(self)})

    def advance(self, problems: RowProblems, slot: int) -> None:
        """Evaluate one step of every row, and learn from it in a slot of the memory."""
        point = self.point + _column(self.length, self.point) * self.direction
        # A step may go too far: what overflows there is refused like any value that is too high.
        with np.errstate(over="ignore", invalid="ignore"):
            value, gradient = problems(point)
            slope = _dot(gradient, self.direction)
        promised = self.value + DECREASE * self.length * self.slope
        # Close to the minimum the fall drowns in rounding, and the slope has to do instead: the
        # approximate Wolfe conditions of Hager and Zhang (2005).
        flat = value <= self.value + ROUNDING * np.abs(self.value)
        flat &= slope <= (2 * DECREASE - 1) * self.slope
        low = (value <= promised) | flat
        far = slope >= CURVATURE * self.slope
        self.longest = np.where(low, self.longest, self.length)
        self.shortest = np.where(low & ~far, self.length, self.shortest)

        taken = low & far & self.running
        self._learn(taken, point - self.point, gradient - self.gradient, slot)
        np.copyto(self.point, point, where=taken[:, None])
        np.copyto(self.gradient, gradient, where=taken[:, None])
        np.copyto(self.value, value, where=taken)
        self.running &= _norm(self.gradient) > self.target
        self._aim(taken, slot)

    def stop_where_level(self) -> None:
        """Stop the rows whose value has hardly fallen since the last call."""
        self.running &= self.earlier - self.value > LEAST_FALL * np.abs(self.value)
        self.earlier = self.value.copy()

    def _learn(self, taken: Array, step: FloatArray, change: FloatArray, slot: int) -> None:
        """Remember the steps along which the curvature is positive."""
        product, square = _dot(step, change), _dot(change, change)
        kept = taken & (product > 1e-10 * np.sqrt(_dot(step, step) * square))
        self.steps[:, slot] = np.where(kept[:, None], step, 0)
        self.changes[:, slot] = np.where(kept[:, None], change, 0)
        self.weights[:, slot] = np.divide(1.0, product, out=np.zeros_like(product), where=kept)
        np.divide(product, square, out=self.scale, where=kept)

    def _aim(self, taken: Array, slot: int) -> None:
        """Choose a new direction where a step was taken, and another length where it was not."""
        np.copyto(self.direction, self._newton_direction(slot), where=taken[:, None])
        np.copyto(self.slope, _dot(self.direction, self.gradient), where=taken)
        middle = (self.shortest + self.longest) / 2
        self.length = np.where(np.isinf(self.longest), 2 * self.length, middle)
        self.length[~self.running] = 0.0
        self.tries += 1
        self._begin_search(taken)
        # What was learned may mislead: try plain steepest descent before giving up.
        failed = self.running & ((self.tries > MAX_TRIES) | (self.slope >= 0))
        knew_something = self.weights.any(axis=1)
        self.running &= ~failed | knew_something
        self._forget(failed & knew_something)

    def _newton_direction(self, slot: int) -> FloatArray:
        """Return minus the guessed inverse Hessian times the gradient; see `LBFGS`."""
        newest_first = [(slot - age) % MEMORY for age in range(MEMORY)]
        direction, shares = -self.gradient, []
        for k in newest_first:
            share = self.weights[:, k] * _dot(self.steps[:, k], direction)
            direction -= _column(share, direction) * self.changes[:, k]
            shares.append(share)
        direction *= _column(self.scale, direction)
        for k, share in zip(reversed(newest_first), reversed(shares), strict=True):
            correction = self.weights[:, k] * _dot(self.changes[:, k], direction)
            direction += _column(share - correction, direction) * self.steps[:, k]
        return direction

    def _forget(self, which: Array) -> None:
        """Go back to steepest descent, with a first step of length one."""
        if not which.any():
            return
        np.divide(1.0, _norm(self.gradient), out=self.scale, where=which)
        self.weights[which] = 0
        steepest = -_column(self.scale, self.gradient) * self.gradient
        np.copyto(self.direction, steepest, where=which[:, None])
        np.copyto(self.slope, _dot(self.direction, self.gradient), where=which)
        self._begin_search(which)

    def _begin_search(self, which: Array) -> None:
        self.length[which] = 1.0
        self.shortest[which] = 0.0
        self.longest[which] = np.inf
        self.tries[which] = 0


def _dot(a: FloatArray, b: FloatArray) -> Float64Array:
    # Rows are short: sums in float64 would cost three times as much and change nothing.
    return np.einsum("ip,ip->i", a, b).astype(np.float64)


def _norm(a: FloatArray) -> Float64Array:
    return np.sqrt(_dot(a, a))


def _column(numbers: Float64Array, like: FloatArray) -> FloatArray:
    """Return numbers as a column of the other array's precision."""
    return numbers.astype(like.dtype)[:, None]
