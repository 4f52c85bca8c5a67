"""Items as points and users as lines ``x . direction = offset``, for models of two factors."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from marginmf._utils.types import Float64Array
from marginmf.plots.style import (
    COLOURS,
    INK,
    PALE_INK,
    TICK_SIZE,
    axes_or_new,
    label_axes,
    legend_below,
    level_colours,
    write_text,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Where along a line its arrow may stand.
ALONG = (0.06, 0.94, 0.16, 0.84, 0.28, 0.72)
#: More points than this are drawn without their names.
MOST_NAMED = 30
#: How far lines may widen the picture beyond its points, as a multiple of their extent.
WIDEST = 2.0


@dataclass(frozen=True)
class _Window:
    """What of the plane is drawn."""

    low: Float64Array
    high: Float64Array

    def clip(self, direction: Float64Array, offset: float) -> Float64Array | None:
        """Return the ends of the line ``x . direction = offset`` in the window; None if outside.

        >>> _Window(np.zeros(2), np.ones(2)).clip(np.array([1.0, 0.0]), 0.25).tolist()
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


def item_map(
    items: Any,
    users: Any,
    ax: "Axes | None" = None,
    *,
    threshold: float = 0.0,
    item_names: Sequence[str] | None = None,
    user_names: Sequence[str] | None = None,
    title: str | None = None,
) -> "Axes":
    """Draw a two-level model: items as points, each user as a line with the liked items beyond it.

    Parameters
    ----------
    items : array of shape (n_items, 2)
        Their factors, such as ``item_factors_`` of a BMMMF of two factors.
    users : array of shape (n_users, 2)
        Their factors, such as ``user_factors_``.
    threshold : float
        A user likes the items whose score is at least this.
    item_names, user_names : sequence of str, optional
        By default ``V1``, ``V2``, ... and ``U1``, ``U2``, ...
    ax, title
        The Axes to draw into, by default a new figure; and a title.

    Returns
    -------
    Axes
        The arrow of a line points to the side that the user likes.

    Examples
    --------
    >>> ax = item_map([[1, 0], [0, 1]], [[1, 1], [-1, 0.5]], threshold=0.1)
    >>> sorted(text.get_text() for text in ax.texts if text.get_text())
    ['U1', 'U2', 'V1', 'V2']
    """
    points, directions = _plane(items, "items"), _plane(users, "users")
    window = _window_on(points, directions, np.full(len(directions), threshold))
    ax = axes_or_new(ax)
    _draw_points(ax, points, INK, _names("V", item_names, points))
    placed: list[Float64Array] = list(points)
    names = _names("U", user_names, directions)
    for direction, name, colour in zip(directions, names, cycle(COLOURS[:6]), strict=False):
        ends = _draw_line(ax, window, direction, threshold, color=colour, linewidth=1.4)
        if ends is not None:
            placed.append(_draw_arrow(ax, window, ends, direction, name, colour, placed))
    return _frame(ax, window, title)


def user_map(
    items: Any,
    ratings: Any,
    direction: Any,
    ax: "Axes | None" = None,
    *,
    thresholds: Any = None,
    prototypes: Any = None,
    boundaries: Any = None,
    levels: Any = None,
    title: str | None = None,
) -> "Axes":
    """Draw what one user rated, as the user's model sees it: points, and parallel lines.

    For MMMF give ``thresholds``: lines between the levels, each with its margins, one to either
    side.  For PMMMF give ``prototypes``: a line through the items of each level, in its colour;
    and ``boundaries``, where one level ends and the next begins.

    Parameters
    ----------
    items : array of shape (n_items, 2)
        The factors of the items that the user rated.
    ratings : sequence of float
        The user's ratings of them.
    direction : array of shape (2,)
        The user's own factors.
    thresholds : sequence of float, optional
        The user's row of an MMMF's ``thresholds_``.
    prototypes, boundaries : sequence of float, optional
        The user's rows of a PMMMF's ``prototypes_`` and ``boundaries_``.  Levels that the user
        never used, which are not finite there, have no line.
    levels : sequence of float, optional
        The scale; by default the ratings that there are.
    ax, title
        The Axes to draw into, by default a new figure; and a title.

    Examples
    --------
    >>> items = [[0.1, 0.0], [1.4, 0.5], [2.9, -0.4]]
    >>> ax = user_map(items, [1, 2, 3], [1.0, 0.2], thresholds=[0.7, 2.2])
    >>> len(ax.lines)  # two thresholds, and a margin to either side of each
    6
    """
    points, normal = _plane(items, "items"), _plane([direction], "direction")[0]
    stars = np.asarray(ratings, np.float64)
    if stars.shape != (len(points),):
        raise ValueError(f"There are {len(points)} items but {stars.size} ratings of them.")
    scale = np.unique(stars if levels is None else np.asarray(levels, np.float64))
    colours = level_colours(len(scale))
    cuts, centres = _offsets(thresholds), _offsets(prototypes)
    if prototypes is not None and len(centres) != len(scale):
        raise ValueError(
            f"There are {len(centres)} prototypes for {len(scale)} levels: pass levels=, the whole "
            "scale."
        )
    ends = _offsets(boundaries)
    wanted = np.concatenate([cuts, centres, ends])
    wanted = wanted[np.isfinite(wanted)]
    window = _window_on(points, np.tile(normal, (len(wanted), 1)), wanted)
    ax = axes_or_new(ax)
    for cut in cuts[np.isfinite(cuts)]:
        _draw_line(ax, window, normal, cut, color=INK, linewidth=1.4)
        for margin in (cut - 1.0, cut + 1.0):
            _draw_line(ax, window, normal, margin, color=PALE_INK, linewidth=0.9, linestyle="--")
    for centre, colour in zip(centres, colours, strict=False):
        if np.isfinite(centre):
            _draw_line(ax, window, normal, centre, color=colour, linewidth=1.8)
    for end in np.unique(ends[np.isfinite(ends)]):
        _draw_line(ax, window, normal, end, color=PALE_INK, linewidth=1.0, linestyle="--")
    for level, colour in zip(scale, colours, strict=True):
        chosen = points[stars == level]
        if len(chosen):
            _draw_points(ax, chosen, colour, label=f"{level:g}")
    _frame(ax, window, title)
    legend_below(ax, columns=min(6, len(scale)), title="rating")
    return ax


def _offsets(values: Any) -> Float64Array:
    return np.empty(0) if values is None else np.asarray(values, np.float64)


def _names(letter: str, given: Sequence[str] | None, of: Float64Array) -> list[str]:
    names = [f"{letter}{number + 1}" for number in range(len(of))] if given is None else list(given)
    if len(names) != len(of):
        raise ValueError(f"There are {len(names)} names for {len(of)} rows of factors.")
    return names


def _draw_arrow(
    ax: "Axes",
    window: _Window,
    ends: Float64Array,
    direction: Float64Array,
    name: str,
    colour: str,
    placed: Sequence[Float64Array],
) -> Float64Array:
    """Draw an arrow to the positive side where there is most room, and return its tip."""
    step = direction / np.sqrt(direction @ direction) * 0.07 * (window.high - window.low)[0]
    tips = [ends[0] + share * (ends[1] - ends[0]) + step for share in ALONG]
    inside = [tip for tip in tips if (tip > window.low).all() and (tip < window.high).all()] or tips
    tip: Float64Array = max(
        inside, key=lambda at: min(float(np.square(at - other).sum()) for other in placed)
    )
    arrow = {"arrowstyle": "-|>", "color": colour, "shrinkA": 0, "shrinkB": 0}
    ax.annotate("", tuple(tip), xytext=tuple(tip - step), arrowprops=arrow)
    x, y = tip + 0.45 * step
    write_text(ax, x, y, name, colour=colour)
    return tip


def _plane(values: Any, what: str) -> Float64Array:
    """Return an array with a row of two numbers for each point, or say why there is none."""
    array = np.asarray(values, np.float64)
    if array.ndim != 2 or array.shape[1] != 2 or not len(array):
        raise ValueError(
            f"The {what} have the shape {array.shape}: only models of two factors can be drawn."
        )
    return array


def _window_on(points: Float64Array, directions: Float64Array, offsets: Float64Array) -> _Window:
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
    return _Window(middle - half, middle + half)


def _draw_points(
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


def _draw_line(
    ax: "Axes", window: _Window, direction: Float64Array, offset: float, **look: Any
) -> Float64Array | None:
    """Draw ``x . direction = offset`` across the window, and return its ends, if it is there."""
    if not direction.any():
        return None
    ends = window.clip(direction, offset)
    if ends is not None:
        ax.plot(*ends.T, **look)
    return ends


def _frame(ax: "Axes", window: _Window, title: str | None) -> "Axes":
    """Show the window, with the same scale along both axes."""
    ax.set_xlim(window.low[0], window.high[0])
    ax.set_ylim(window.low[1], window.high[1])
    ax.set_aspect("equal")
    label_axes(ax, title, "factor 1", "factor 2")
    return ax
