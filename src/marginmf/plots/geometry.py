"""Items as points and users as lines, for models of two factors."""

from collections.abc import Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from marginmf._utils.types import Float64Array
from marginmf.plots.plane import Window, draw_line, draw_points, framed, plane, window_on
from marginmf.plots.style import (
    COLOURS,
    INK,
    PALE_INK,
    TICK_SIZE,
    axes_or_new,
    legend_below,
    level_colours,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: Where along a line its arrow may stand.
ALONG = (0.06, 0.94, 0.16, 0.84, 0.28, 0.72)


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
    ax : Axes, optional
        Where to draw; by default a new figure.
    threshold : float
        A user likes the items whose score is at least this.
    item_names, user_names : sequence of str, optional
        By default ``V1``, ``V2``, ... and ``U1``, ``U2``, ...
    title : str, optional
        A title.

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
    points, directions = plane(items, "items"), plane(users, "users")
    window = window_on(points, directions, np.full(len(directions), threshold))
    ax = axes_or_new(ax)
    draw_points(ax, points, INK, _names("V", item_names, points))
    placed: list[Float64Array] = list(points)
    names = _names("U", user_names, directions)
    for direction, name, colour in zip(directions, names, cycle(COLOURS[:6]), strict=False):
        ends = draw_line(ax, window, direction, threshold, color=colour, linewidth=1.4)
        if ends is not None:
            placed.append(_draw_arrow(ax, window, ends, direction, name, colour, placed))
    return framed(ax, window, title)


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
    ax : Axes, optional
        Where to draw; by default a new figure.
    thresholds : sequence of float, optional
        The user's row of an MMMF's ``thresholds_``.
    prototypes, boundaries : sequence of float, optional
        The user's rows of a PMMMF's ``prototypes_`` and ``boundaries_``.  Levels that the user
        never used, which are not finite there, have no line.
    levels : sequence of float, optional
        The scale; by default the ratings that there are.
    title : str, optional
        A title.

    Examples
    --------
    >>> items = [[0.1, 0.0], [1.4, 0.5], [2.9, -0.4]]
    >>> ax = user_map(items, [1, 2, 3], [1.0, 0.2], thresholds=[0.7, 2.2])
    >>> len(ax.lines)  # two thresholds, and a margin to either side of each
    6
    """
    points, normal = plane(items, "items"), plane([direction], "direction")[0]
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
    window = window_on(points, np.tile(normal, (len(wanted), 1)), wanted)
    ax = axes_or_new(ax)
    for cut in cuts[np.isfinite(cuts)]:
        draw_line(ax, window, normal, cut, color=INK, linewidth=1.4)
        for margin in (cut - 1.0, cut + 1.0):
            draw_line(ax, window, normal, margin, color=PALE_INK, linewidth=0.9, linestyle="--")
    for centre, colour in zip(centres, colours, strict=False):
        if np.isfinite(centre):
            draw_line(ax, window, normal, centre, color=colour, linewidth=1.8)
    for end in np.unique(ends[np.isfinite(ends)]):
        draw_line(ax, window, normal, end, color=PALE_INK, linewidth=1.0, linestyle="--")
    for level, colour in zip(scale, colours, strict=True):
        chosen = points[stars == level]
        if len(chosen):
            draw_points(ax, chosen, colour, label=f"{level:g}")
    framed(ax, window, title)
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
    window: Window,
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
    ax.annotate(
        name,
        tuple(tip + 0.45 * step),
        ha="center",
        va="center",
        fontsize=TICK_SIZE,
        color=colour,
    )
    return tip
