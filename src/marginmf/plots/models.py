"""What models learned: maps of two factors, the factors of groups of labels, trees of embeddings.

In a map, items are points and users are lines ``x . direction = offset``.
"""

from collections.abc import Iterator, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from marginmf._utils.types import Float64Array
from marginmf.plots.style import (
    COLOURS,
    FAINT,
    INK,
    PALE_INK,
    TICK_SIZE,
    axes_or_new,
    label_axes,
    legend_below,
    level_colours,
    shades,
    write_text,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from marginmf.labels import EmbeddingTree
    from marginmf.labels.tree import Node

#: Where along a line its arrow may stand.
ALONG = (0.06, 0.94, 0.16, 0.84, 0.28, 0.72)
#: More points than this are drawn without their names.
MOST_NAMED = 30
#: How far lines may widen the picture beyond its points, as a multiple of their extent.
WIDEST = 2.0
#: The faintest shade of a factor that is not zero, so that it can be told from one that is.
FAINTEST = 0.25
#: A group narrower than this share of the picture has no room for its number.
NARROWEST = 0.02
#: Nodes with at least this share of the instances are wide enough for their number.
NUMBERED = 0.06


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

    The arrow of a line points to the side that the user likes.

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

    Examples
    --------
    >>> ax = item_map([[1, 0], [0, 1]], [[1, 1], [-1, 0.5]], threshold=0.1)
    >>> sorted(text.get_text() for text in ax.texts if text.get_text())
    ['U1', 'U2', 'V1', 'V2']
    """
    points, directions = _plane(items, "items"), _plane(users, "users")
    names = _names("U", user_names, directions)
    plane = _Map(ax, title, points, directions, np.full(len(directions), threshold))
    plane.draw_points(points, INK, _names("V", item_names, points))
    placed: list[Float64Array] = list(points)
    for direction, name, colour in zip(directions, names, cycle(COLOURS[:6]), strict=False):
        ends = plane.draw_line(direction, threshold, color=colour, linewidth=1.4)
        if ends is not None:
            placed.append(plane.draw_arrow(ends, direction, name, colour, placed))
    return plane.ax


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
    if not (known := np.isin(stars, scale)).all():
        raise ValueError(f"The rating {stars[~known][0]:g} is not one of the levels.")
    colours = level_colours(len(scale))
    cuts, centres = _offsets(thresholds), _offsets(prototypes)
    if prototypes is not None and len(centres) != len(scale):
        raise ValueError(
            f"There are {len(centres)} prototypes for {len(scale)} levels: pass levels=, the whole "
            "scale."
        )
    ends = np.unique(_offsets(boundaries))
    wanted = np.concatenate([cuts, centres, ends])
    wanted = wanted[np.isfinite(wanted)]
    plane = _Map(ax, title, points, np.tile(normal, (len(wanted), 1)), wanted)
    for cut in cuts:
        plane.draw_line(normal, cut, color=INK, linewidth=1.4)
        for margin in (cut - 1.0, cut + 1.0):
            plane.draw_line(normal, margin, color=PALE_INK, linewidth=0.9, linestyle="--")
    for centre, colour in zip(centres, colours, strict=False):
        plane.draw_line(normal, centre, color=colour, linewidth=1.8)
    for end in ends:
        plane.draw_line(normal, end, color=PALE_INK, linewidth=1.0, linestyle="--")
    for level, colour in zip(scale, colours, strict=True):
        if (stars == level).any():
            plane.draw_points(points[stars == level], colour, label=f"{level:g}")
    legend_below(plane.ax, columns=min(6, len(scale)), title="rating")
    return plane.ax


def clip_line(
    low: Float64Array, high: Float64Array, direction: Float64Array, offset: float
) -> Float64Array | None:
    """Return the ends of the line ``x . direction = offset`` in a rectangle; None if outside."""
    along = np.array([-direction[1], direction[0]]) / np.hypot(*direction)
    foot = direction * offset / (direction @ direction)
    # From the foot, both coordinates must stay inside: an interval of steps for each.
    start, stop = -np.inf, np.inf
    for axis in (0, 1):
        if abs(along[axis]) < 1e-12:  # parallel to this edge, as far as can be seen
            if not low[axis] <= foot[axis] <= high[axis]:
                return None
            continue
        edges = (np.array([low[axis], high[axis]]) - foot[axis]) / along[axis]
        start, stop = max(start, edges.min()), min(stop, edges.max())
    return np.stack([foot + start * along, foot + stop * along]) if start < stop else None


class _Map:
    """A square of the plane with all points, and with the nearest point of every line not far off.

    Lines are ``x . direction = offset``.
    """

    def __init__(
        self,
        ax: "Axes | None",
        title: str | None,
        points: Float64Array,
        directions: Float64Array,
        offsets: Float64Array,
    ) -> None:
        low, high = points.min(axis=0), points.max(axis=0)
        reach = WIDEST * (float((high - low).max()) or 1.0)
        squares = np.square(directions).sum(axis=1, keepdims=True)
        feet = directions * offsets[:, None] / np.where(squares > 0, squares, np.inf)
        near = ((feet >= low - reach) & (feet <= high + reach)).all(axis=1)
        shown = np.vstack([points, feet[near]])
        low, high = shown.min(axis=0), shown.max(axis=0)
        # Square, so that right angles are seen as such without empty space.
        half = 0.58 * (float((high - low).max()) or 1.0)
        self.low, self.high = (low + high) / 2 - half, (low + high) / 2 + half
        self.ax = axes_or_new(ax)
        self.ax.set_xlim(self.low[0], self.high[0])
        self.ax.set_ylim(self.low[1], self.high[1])
        self.ax.set_aspect("equal")
        label_axes(self.ax, title, "factor 1", "factor 2")

    def draw_points(
        self, points: Float64Array, colour: Any, names: Sequence[str] = (), label: str | None = None
    ) -> None:
        """Draw points of one colour, with their names unless there are too many."""
        look: dict[str, Any] = {"edgecolors": "white", "linewidths": 0.6, "zorder": 3}
        x, y = points.T
        self.ax.scatter(x, y, s=26, color=[colour], label=label, **look)
        words: dict[str, Any] = {"textcoords": "offset points", "fontsize": TICK_SIZE, "color": INK}
        if 0 < len(names) <= MOST_NAMED:
            for point, name in zip(points.tolist(), names, strict=True):
                self.ax.annotate(name, point, xytext=(5, 4), **words)

    def draw_line(self, direction: Float64Array, offset: float, **look: Any) -> Float64Array | None:
        """Draw a line, unless there is none in the square, and return its ends."""
        if not direction.any() or not np.isfinite(offset):
            return None
        ends = clip_line(self.low, self.high, direction, offset)
        if ends is not None:
            self.ax.plot(*ends.T, **look)
        return ends

    def draw_arrow(
        self, ends: Float64Array, step: Float64Array, name: str, colour: str, placed: Any
    ) -> Float64Array:
        """Draw an arrow across a line where there is most room, and return its tip."""
        step = step / np.sqrt(step @ step) * 0.07 * (self.high - self.low)[0]
        tips = [ends[0] + share * (ends[1] - ends[0]) + step for share in ALONG]
        inside = [tip for tip in tips if ((tip > self.low) & (tip < self.high)).all()] or tips
        tip = max(inside, key=lambda at: min(np.square(at - other).sum() for other in placed))
        arrow = {"arrowstyle": "-|>", "color": colour, "shrinkA": 0, "shrinkB": 0}
        self.ax.annotate("", tuple(tip), xytext=tuple(tip - step), arrowprops=arrow)
        x, y = tip + 0.45 * step
        write_text(self.ax, x, y, name, colour=colour)
        return tip


def _offsets(values: Any) -> Float64Array:
    return np.empty(0) if values is None else np.asarray(values, np.float64)


def _names(letter: str, given: Sequence[str] | None, of: Float64Array) -> list[str]:
    names = [f"{letter}{number + 1}" for number in range(len(of))] if given is None else list(given)
    if len(names) != len(of):
        raise ValueError(f"There are {len(names)} names for {len(of)} rows of factors.")
    return names


def _plane(values: Any, what: str) -> Float64Array:
    """Return an array with a row of two numbers for each point, or say why there is none."""
    array = np.asarray(values, np.float64)
    if array.ndim != 2 or array.shape[1] != 2 or not len(array):
        raise ValueError(
            f"The {what} have the shape {array.shape}: only models of two factors can be drawn."
        )
    return array


def group_sparsity(model: Any, ax: "Axes | None" = None, title: str | None = None) -> "Axes":
    """Draw the factors of all labels, group by group: white where a group does not use a factor.

    Columns are labels, with lines between their groups; rows are factors, shaded by their size, the
    factor's largest being the darkest.

    Parameters
    ----------
    model : fitted GroPLE
        The model whose ``label_factors_`` are drawn.
    ax, title
        The Axes to draw into, by default a new figure; and a title.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from marginmf.labels import GroPLE
    >>> X, Y = make_multilabel_classification(n_classes=8, random_state=0)
    >>> ax = group_sparsity(GroPLE(n_groups=3, reg_group=5.0, random_state=0).fit(X, Y))
    >>> ax.get_xlabel(), len(ax.lines)  # a line between any two groups
    ('labels, by group', 2)
    """
    factors = getattr(model, "label_factors_", None)
    if factors is None or not hasattr(model, "label_groups_"):
        raise ValueError(
            f"{type(model).__name__} has no factors of labels to draw, or no groups of them: fit a "
            "GroPLE first."
        )
    groups = np.asarray(model.label_groups_)
    order = np.argsort(groups, kind="stable")
    names, starts = np.unique(groups[order], return_index=True)
    bounds = np.append(starts, len(groups))
    ax = axes_or_new(ax)
    look: dict[str, Any] = {"cmap": shades(), "aspect": "auto", "interpolation": "nearest"}
    ax.imshow(_shading(np.asarray(factors)[:, order]), vmin=0, vmax=1, **look)
    for bound in bounds[1:-1]:
        ax.axvline(bound - 0.5, color=INK, linewidth=0.8)
    wide = np.diff(bounds) >= NARROWEST * len(groups)
    centres = (bounds[:-1] + bounds[1:] - 1) / 2
    ax.set_xticks(centres[wide], [str(name) for name in names[wide]])
    label_axes(ax, title, "labels, by group", "factors", spines=False)
    return ax


def _shading(factors: Float64Array) -> Float64Array:
    """Return 0 for zeros, and for others a shade from faint to 1, the largest of its row."""
    sizes = np.abs(factors)
    largest = sizes.max(axis=1, keepdims=True, initial=0.0)
    shares = np.divide(sizes, largest, out=np.zeros_like(sizes), where=largest > 0)
    return np.where(sizes > 0, FAINTEST + (1.0 - FAINTEST) * shares, 0.0)


def embedding_tree(model: Any, ax: "Axes | None" = None, *, title: str | None = None) -> "Axes":
    """Draw the tree of a fitted MLCHMF: a bar for each node, as wide as it has instances.

    The dark part of a bar is kept there, and the pale part is divided among the bars below it;
    where there is nothing below, it is residue.

    Parameters
    ----------
    model : MLCHMF
        A fitted model.
    ax, title
        The Axes to draw into, by default a new figure; and a title.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> from marginmf.labels import MLCHMF
    >>> X, Y = make_multilabel_classification(n_samples=60, n_classes=4, random_state=0)
    >>> model = MLCHMF(max_depth=2, decision="sign", random_state=0).fit(X, Y)
    >>> ax = embedding_tree(model)
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('training instances', 'depth')
    """
    tree: EmbeddingTree | None = getattr(model, "tree_", None)
    if tree is None:
        raise ValueError(
            f"{type(model).__name__} has no tree of embeddings to draw: fit an MLCHMF first."
        )
    ax = axes_or_new(ax)
    placed = list(_placed(tree, -1, 0))
    numbers = [(node.depth, len(node.kept), node.residue, left) for node, left in placed]
    depths, kept, residues, lefts = zip(*numbers, strict=True)
    look: Any = {"height": 0.8, "edgecolor": "white"}
    ax.barh(depths, kept, left=lefts, color=COLOURS[0], label="kept", **look)
    ax.barh(depths, residues, left=np.add(lefts, kept), color=FAINT, label="not kept", **look)
    for node, left in placed:
        if node.size >= NUMBERED * tree.n_samples:
            n_kept = len(node.kept)
            on_kept = 2 * n_kept >= node.size
            x = left + (n_kept / 2 if on_kept else n_kept + node.residue / 2)
            write_text(ax, x, node.depth, str(node.index), colour="white" if on_kept else INK)
    ax.set_xlim(0, tree.n_samples)
    ax.set_yticks(sorted({node.depth for node in tree}))
    ax.invert_yaxis()  # from the top
    label_axes(ax, title, "training instances", "depth")
    ax.spines["left"].set_visible(False)
    legend_below(ax)
    return ax


def _placed(tree: "EmbeddingTree", parent: int, left: int) -> Iterator[tuple["Node", int]]:
    """Yield nodes and where their bars begin: under what their parent does not keep."""
    for node in tree.children(parent):
        yield node, left
        yield from _placed(tree, node.index, left + len(node.kept))
        left += node.size
