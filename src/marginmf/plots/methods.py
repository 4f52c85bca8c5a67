"""How methods compare: their metrics side by side, and the critical-difference diagram."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from marginmf.metrics import describe_metrics
from marginmf.plots.style import (
    COLOURS,
    INK,
    PALE_INK,
    TICK_SIZE,
    TITLE_SIZE,
    label_axes,
    new_figure,
    write_text,
)
from marginmf.stats import cliques

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Heights are in rows of text: the bracket and the numbers above the axis, bars and names below.
BRACKET, NUMBERS, FIRST_BAR, BETWEEN_BARS = 1.9, 0.35, 0.45, 0.38
#: How far the names stand from the axis, as a share of it.
ASIDE = 0.04
#: In inches: how high a row is, how wide a letter, and how wide the axis with the mean ranks.
ROW, LETTER, AXIS = 0.26, 0.085, 5.5
#: More numbers than this would not fit along the axis: only some are written.
MOST_NUMBERS = 16


def error_bars(scores: Mapping[str, Mapping[str, Sequence[float]]]) -> "Figure":
    """Draw a panel for each metric: a dot at each method's mean, a bar of one standard deviation.

    Dots and not columns, so that the axis may start near the errors and small differences show;
    the best of each panel is filled, by the direction that `marginmf.metrics.METRICS` has for the
    metric.  Of a metric that is not in that table, none is.

    Parameters
    ----------
    scores : mapping of str to mapping of str to sequence of float
        For every method, for every metric, its value on each split.

    Examples
    --------
    >>> figure = error_bars({"HMF": {"mae": [0.67, 0.68]}, "ALS": {"mae": [0.70, 0.71]}})
    >>> len(figure.axes), [label.get_text() for label in figure.axes[0].get_yticklabels()]
    (1, ['HMF', 'ALS'])
    """
    if not scores:
        raise ValueError("There are no scores to draw: give those of one method at least.")
    methods = list(scores)
    metrics = describe_metrics(scores[methods[0]])
    figure = new_figure(1.2 + 2.4 * len(metrics), 1.2 + 0.4 * len(methods))
    panels = figure.subplots(1, len(metrics), sharey=True, squeeze=False)[0]
    for ax, (name, metric) in zip(panels, metrics.items(), strict=True):
        means = {method: float(np.mean(scores[method][name])) for method in methods}
        best = metric.best(means)
        for row, method in enumerate(methods):
            values = scores[method][name]
            ax.errorbar(
                means[method],
                row,
                xerr=np.std(values, ddof=1) if len(values) > 1 else None,
                fmt="o",
                markersize=7,
                color=COLOURS[0],
                markerfacecolor=COLOURS[0] if best and means[method] == means[best] else "white",
                capsize=3,
            )
        label_axes(ax, None, metric.heading, "", grid="x")
        ax.margins(x=0.15, y=0.1)
    panels[0].set_yticks(range(len(methods)), methods, color=INK)
    panels[0].invert_yaxis()  # in the order given, from the top
    return figure


def critical_difference(
    ranks: Mapping[str, float],
    cd: float,
    ax: "Axes | None" = None,
    title: str | None = None,
) -> "Axes":
    """Draw methods along an axis of mean ranks; a bar joins those that do not differ.

    Parameters
    ----------
    ranks : mapping of str to float
        The mean rank of each method, such as `marginmf.stats.average_ranks` returns.
    cd : float
        The critical difference, such as `marginmf.stats.nemenyi_critical_difference` returns.
    ax, title
        The Axes to draw into, by default a new figure; and a title.

    Returns
    -------
    Axes
        The best method is on the left.  The better half is named on the left, each with its mean
        rank, and the other half on the right.

    Examples
    --------
    >>> ranks = {"A": 1.5, "B": 2.2, "C": 3.9, "D": 2.4}
    >>> ax = critical_difference(ranks, cd=1.25)
    >>> [text.get_text() for text in ax.texts][-4:]
    ['A  1.50', 'B  2.20', '3.90  C', '2.40  D']
    """
    if len(ranks) < 2:
        raise ValueError(f"There are ranks of {len(ranks)} method(s): two are needed.")
    ordered = sorted(ranks, key=lambda name: ranks[name])
    bars = cliques(ranks, cd)
    half = (len(ordered) + 1) // 2
    first_row = FIRST_BAR + BETWEEN_BARS * len(bars) + 0.6
    bottom = first_row + half - 0.4
    if ax is None:
        ax = _new_axes(ordered, half, BRACKET + 1.2 + bottom, title)
    last = float(len(ranks))
    ax.set_xlim(1.0, max(last, 1.0 + cd))
    ax.set_ylim(bottom, -BRACKET - 0.8)  # rows count downwards
    ax.set_axis_off()
    if title:
        ax.set_title(title, fontsize=TITLE_SIZE, color=INK, loc="left")
    _draw_axis(ax, len(ranks))
    _draw_bracket(ax, cd)
    for number, bar in enumerate(bars):
        height = FIRST_BAR + BETWEEN_BARS * number
        ends = [ranks[bar[0]] - 0.04, ranks[bar[-1]] + 0.04]
        ax.plot(ends, [height] * 2, color=COLOURS[0], linewidth=4, solid_capstyle="round", zorder=3)
    aside = ASIDE * (last - 1)
    # On either side the outermost method is named first, so that no line crosses another.
    for side, names in ((1.0 - aside, ordered[:half]), (last + aside, ordered[: half - 1 : -1])):
        _name_methods(ax, ranks, names, side, first_row, left=side < 1.0)
    return ax


def _new_axes(names: Sequence[str], half: int, rows: float, title: str | None) -> "Axes":
    """Return Axes that are wide enough for the longest names and high enough for all rows."""
    letters = max(map(len, names[:half])) + max(map(len, names[half:]))
    width = AXIS + LETTER * letters
    return new_figure(width, ROW * rows + (0.4 if title else 0.1)).subplots()


def _draw_axis(ax: "Axes", count: int) -> None:
    ax.plot([1, count], [0, 0], color=INK, linewidth=1.2)
    for rank in range(1, count + 1, 1 + (count - 1) // MOST_NUMBERS):
        ax.plot([rank] * 2, [0, -0.2], color=INK, linewidth=1.2)
        write_text(ax, rank, -NUMBERS, str(rank), va="bottom")


def _draw_bracket(ax: "Axes", cd: float) -> None:
    ends = [1.0, 1.0, 1.0 + cd, 1.0 + cd]
    tip, level = -BRACKET + 0.2, -BRACKET
    ax.plot(ends, [tip, level, level, tip], color=INK, linewidth=1.2)
    write_text(ax, 1.0 + cd / 2, level - 0.1, f"CD = {cd:.2f}", va="bottom")


def _name_methods(
    ax: "Axes",
    ranks: Mapping[str, float],
    names: Sequence[str],
    side: float,
    first_row: float,
    *,
    left: bool,
) -> None:
    """Lead a line from each rank down, then aside to the name."""
    for row, name in enumerate(names):
        height = first_row + row
        rank = ranks[name]
        ax.plot(
            [rank, rank, side], [0, height, height], color=PALE_INK, linewidth=0.9, clip_on=False
        )
        ax.plot([rank], [0], marker="o", markersize=4, color=INK, clip_on=False)
        ax.annotate(
            f"{name}  {rank:.2f}" if left else f"{rank:.2f}  {name}",
            (side, height),
            xytext=(-4 if left else 4, 0),
            textcoords="offset points",
            ha="right" if left else "left",
            va="center",
            fontsize=TICK_SIZE,
            color=INK,
            annotation_clip=False,
        )
