"""Points, and lines ``x . direction = offset``, in the plane of two factors."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from marginmf._utils.types import Float64Array
from marginmf.plots.style import INK, TICK_SIZE, calm

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: More points than this are drawn without their names.
MOST_NAMED = 30
#: How far lines may widen the picture beyond its points, as a multiple of their extent.
WIDEST = 2.0


@dataclass(frozen=True)
class Window:
    """What of the plane is drawn."""

    low: Float64Array
    high: Float64Array

    def clip(self, direction: Float64Array, offset: float) -> Float64Array | None:
        """Return the ends of the line ``x . direction = offset`` in the window; None if outside.

        >>> Window(np.zeros(2), np.ones(2)).clip(np.array([1.0, 0.0]), 0.25).tolist()
        [[0.25, 0.0], [0.25, 1.0]]
        """
        along = np.array([-direction[1], direction[0]]) / np.hypot(*direction)
        foot = direction * offset / (direction @ direction)
        # From the foot, both coordinates must stay inside: an interval of steps for each.
        start, stop = -np.inf, np.inf
        for axis in (0, 1):
            if abs(along[axis]) < 1e-12:  # parallel to this edge, as far as can be seen
                if not self.low[axis] <= foot[axis] <= self.high[axis]:
                    return None
                continue
            edges = (np.array([self.low[axis], self.high[axis]]) - foot[axis]) / along[axis]
            start, stop = max(start, edges.min()), min(stop, edges.max())
        return np.stack([foot + start * along, foot + stop * along]) if start < stop else None


def plane(values: Any, what: str) -> Float64Array:
    """Return an array with a row of two numbers for each point, or say why there is none."""
    array = np.asarray(values, np.float64)
    if array.ndim != 2 or array.shape[1] != 2 or not len(array):
        raise ValueError(
            f"The {what} have the shape {array.shape}: only models of two factors can be drawn."
        )
    return array


def window_on(points: Float64Array, directions: Float64Array, offsets: Float64Array) -> Window:
    """Return a window with all points, and with the nearest point of every line not far off."""
    low, high = points.min(axis=0), points.max(axis=0)
    reach = WIDEST * (float((high - low).max()) or 1.0)
    squares = np.square(directions).sum(axis=1, keepdims=True)
    feet = directions * offsets[:, None] / np.where(squares > 0, squares, np.inf)
    near = ((feet >= low - reach) & (feet <= high + reach)).all(axis=1)
    shown = np.vstack([points, feet[near]])
    low, high = shown.min(axis=0), shown.max(axis=0)
    # Square, so that right angles are seen as such without empty space.
    half = 0.58 * (float((high - low).max()) or 1.0)
    middle = (low + high) / 2
    return Window(middle - half, middle + half)


def draw_points(
    ax: "Axes",
    points: Float64Array,
    colour: Any,
    names: Sequence[str] = (),
    label: str | None = None,
) -> None:
    """Draw points of one colour, with their names unless there are too many."""
    x, y = points.T
    ax.scatter(
        x, y, s=26, color=[colour], edgecolors="white", linewidths=0.6, label=label, zorder=3
    )
    if len(names) > MOST_NAMED:
        return
    for point, name in zip(points, names, strict=bool(names)):
        ax.annotate(
            name,
            (float(point[0]), float(point[1])),
            xytext=(5, 4),
            textcoords="offset points",
            fontsize=TICK_SIZE,
            color=INK,
        )


def draw_line(
    ax: "Axes", window: Window, direction: Float64Array, offset: float, **look: Any
) -> Float64Array | None:
    """Draw ``x . direction = offset`` across the window, and return its ends, if it is there."""
    if not direction.any():
        return None
    ends = window.clip(direction, offset)
    if ends is not None:
        ax.plot(*ends.T, **look)
    return ends


def framed(ax: "Axes", window: Window, title: str | None) -> "Axes":
    """Show the window, with the same scale along both axes."""
    ax.set_xlim(window.low[0], window.high[0])
    ax.set_ylim(window.low[1], window.high[1])
    ax.set_aspect("equal")
    calm(ax, title, "factor 1", "factor 2")
    return ax
