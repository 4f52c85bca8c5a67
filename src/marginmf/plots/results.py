"""Results: predictions as heat maps, metrics of methods side by side, and critical differences."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from marginmf._utils.types import Float64Array, IntArray
from marginmf.metrics import describe_metrics
from marginmf.plots.style import (
    COLOURS,
    FAINT,
    INK,
    LABEL_SIZE,
    PALE_INK,
    TICK_SIZE,
    TITLE_SIZE,
    axes_or_new,
    label_axes,
    new_figure,
    shades,
    write_text,
)
from marginmf.stats import cliques

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh
    from matplotlib.figure import Figure

#: Above this share of the darkest shade a cell is dark enough for white letters.
DARK = 0.7
#: More rows or columns than this are drawn without numbers, which would not fit their cells.
MOST_NUMBERED = 12
#: More rows or columns than this have no lines between them, which would hide the cells.
MOST_SEPARATED = 40
#: Heights are in rows of text: the bracket and the numbers above the axis, bars and names below.
BRACKET, NUMBERS, FIRST_BAR, BETWEEN_BARS = 1.9, 0.35, 0.45, 0.38
#: How far the names stand from the axis, as a share of it.
ASIDE = 0.04
#: In inches: how high a row is, how wide a letter, and how wide the axis with the mean ranks.
ROW, LETTER, AXIS = 0.26, 0.085, 5.5
#: More numbers than this would not fit along the axis: only some are written.
MOST_NUMBERS = 16


def heat_map(
    values: Any,
    rows: Sequence[Any],
    columns: Sequence[Any],
    ax: "Axes | None" = None,
    *,
    title: str | None = None,
    row_label: str = "",
    column_label: str = "",
    value_label: str = "",
    limits: tuple[float, float] | None = None,
    annotate: str | None = None,
) -> "Axes":
    """Draw a table of numbers as shades, the first row on top, and a bar that says what they mean.

    Parameters
    ----------
    values : array of shape (n_rows, n_columns)
        Finite numbers; NaN, for what was not measured, is grey.
    rows, columns : sequence
        Their names, or the numbers that they stand for.
    ax, title
        The Axes to draw into, by default a new figure; and a title.
    row_label, column_label, value_label : str
        What the rows, the columns and the values are.
    limits : tuple of float, optional
        The values of the lightest and the darkest shade; by default the smallest and the largest.
        Figures that are looked at side by side need the same.
    annotate : str, optional
        How to write the number into each cell, such as ``".2f"``; by default it is not written.

    Examples
    --------
    >>> ax = heat_map([[0.1, 0.2], [0.3, 0.4]], [1, 10], ["a", "b"], annotate=".1f")
    >>> [text.get_text() for text in ax.texts]
    ['0.1', '0.2', '0.3', '0.4']
    """
    table = np.asarray(values, np.float64)
    if table.shape != (len(rows), len(columns)):
        raise ValueError(
            f"The values have the shape {table.shape}, but there are names of {len(rows)} rows and "
            f"{len(columns)} columns."
        )
    if not np.isfinite(table).any():
        raise ValueError("There are no values to draw: all of them are missing.")
    low, high = limits or (float(np.nanmin(table)), float(np.nanmax(table)))
    ax = axes_or_new(ax)
    cells = _draw_cells(ax, table, low, high)
    if annotate is not None:
        for row, column in np.argwhere(np.isfinite(table)):
            value = table[row, column]
            shade = (value - low) / (high - low) if high > low else 0.0
            write_text(ax, column, row, format(value, annotate), colour=_ink(shade))
    _name_cells(ax, rows, columns)
    ax.invert_yaxis()
    label_axes(ax, title, column_label, row_label, spines=False)
    bar = ax.figure.colorbar(cells, ax=ax)
    bar.outline.set_visible(False)
    bar.set_label(value_label, fontsize=LABEL_SIZE, color=INK)
    bar.ax.tick_params(labelsize=TICK_SIZE, colors=INK, length=0)
    return ax


def level_confusion(
    true: Any, predicted: Any, levels: Any, ax: "Axes | None" = None, title: str | None = None
) -> "Axes":
    """Draw, for each true level, the share of its ratings that each level was predicted for.

    Rows are true levels, the highest on top, and add up to 100 %; a level without ratings has an
    empty row.  Scales of more than 12 levels are drawn without the numbers.

    Parameters
    ----------
    true, predicted : sequence of float
        Ratings; every one is one of ``levels``.
    levels : sequence of float
        The scale, such as a fitted model's ``levels_``.
    ax, title
        The Axes to draw into, by default a new figure; and a title.

    Examples
    --------
    >>> ax = level_confusion([1, 1, 2, 2], [1, 2, 2, 2], levels=[1, 2])
    >>> [text.get_text() for text in ax.texts]
    ['50%', '50%', '0%', '100%']
    """
    scale = np.unique(np.asarray(levels, np.float64))
    shares = _confusion_shares(true, predicted, scale)
    ax = axes_or_new(ax)
    _draw_cells(ax, np.nan_to_num(shares), 0.0, 1.0)
    if len(scale) <= MOST_NUMBERED:
        for row, column in np.argwhere(np.isfinite(shares)):
            share = shares[row, column]
            ink = PALE_INK if share < 0.005 else _ink(share)  # what rounds to 0 % steps back
            weight = "bold" if row == column else "normal"
            write_text(ax, column, row, f"{share:.0%}", colour=ink, fontweight=weight)
    _name_cells(ax, scale.tolist(), scale.tolist())
    label_axes(ax, title, "predicted level", "true level (rows add up to 100%)", spines=False)
    return ax


def _confusion_shares(true: Any, predicted: Any, scale: Float64Array) -> Float64Array:
    """Return row-normalised counts of (true, predicted) levels; NaN in rows without ratings."""
    rows, columns = _level_codes(true, scale, "true"), _level_codes(predicted, scale, "predicted")
    if rows.shape != columns.shape:
        raise ValueError(
            f"There are {len(rows)} true ratings but {len(columns)} predicted ones: they belong "
            "together one by one."
        )
    counts = np.zeros((len(scale), len(scale)))
    np.add.at(counts, (rows, columns), 1)
    totals = counts.sum(axis=1, keepdims=True)
    return counts / np.where(totals > 0, totals, np.nan)


def _level_codes(ratings: Any, scale: Float64Array, what: str) -> IntArray:
    values = np.ravel(np.asarray(ratings, np.float64))
    strange = ~np.isin(values, scale)
    if strange.any():
        row = int(np.argmax(strange))
        raise ValueError(
            f"The {what} rating {values[row]:g} in row {row} is not one of the levels "
            f"{', '.join(f'{level:g}' for level in scale)}."
        )
    return np.searchsorted(scale, values)


def _draw_cells(ax: "Axes", values: Float64Array, low: float, high: float) -> "QuadMesh":
    """Draw a cell for each value, white at ``low`` and darkest at ``high``; NaN is grey."""
    rows, columns = map(np.arange, values.shape)
    return ax.pcolormesh(
        columns,
        rows,
        np.ma.masked_invalid(values),
        cmap=shades().with_extremes(bad=FAINT),
        vmin=low,
        vmax=high,
        edgecolors="white" if max(values.shape) <= MOST_SEPARATED else "none",
        linewidth=1.5,
    )


def _ink(shade: float) -> str:
    """Return a colour of letters that is legible on a shade from 0 to 1."""
    return "white" if shade > DARK else INK


def _name_cells(ax: "Axes", rows: Sequence[Any], columns: Sequence[Any]) -> None:
    """Name every row and column, or where there are many every second, third, ..."""
    for names, set_ticks in ((rows, ax.set_yticks), (columns, ax.set_xticks)):
        named = range(0, len(names), 1 + (len(names) - 1) // MOST_NUMBERED)
        shown = [names[index] for index in named]
        set_ticks(named, [name if isinstance(name, str) else f"{name:g}" for name in shown])


def error_bars(scores: Mapping[str, Mapping[str, Sequence[float]]]) -> "Figure":
    """Draw a panel for each metric: a dot at each method's mean, a bar of one standard deviation.

    The best of each panel is filled, by the direction that `marginmf.metrics.METRICS` has for the
    metric; of a metric that is not in that table, none is.

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
        for row, (method, mean) in enumerate(means.items()):
            values = scores[method][name]
            reach = np.std(values, ddof=1) if len(values) > 1 else None
            face = COLOURS[0] if best and mean == means[best] else "white"
            look: dict[str, Any] = {"color": COLOURS[0], "markerfacecolor": face, "markersize": 7}
            ax.errorbar(mean, row, xerr=reach, fmt="o", capsize=3, **look)
        label_axes(ax, None, metric.heading, "", grid="x")
        ax.margins(x=0.15, y=0.1)
    panels[0].set_yticks(range(len(methods)), methods, color=INK)
    panels[0].invert_yaxis()  # in the order given, from the top
    return figure


def critical_difference(
    ranks: Mapping[str, float], cd: float, ax: "Axes | None" = None, title: str | None = None
) -> "Axes":
    """Draw methods along an axis of mean ranks; a bar joins those that do not differ.

    The best method is on the left.  The better half is named on the left, each with its mean rank,
    and the other half on the right.

    Parameters
    ----------
    ranks : mapping of str to float
        The mean rank of each method, such as `marginmf.stats.average_ranks` returns.
    cd : float
        The critical difference, such as `marginmf.stats.nemenyi_critical_difference` returns.
    ax, title
        The Axes to draw into, by default a new figure; and a title.

    Examples
    --------
    >>> ranks = {"A": 1.5, "B": 2.2, "C": 3.9, "D": 2.4}
    >>> ax = critical_difference(ranks, cd=1.25)
    >>> [text.get_text() for text in ax.texts][-4:]
    ['A  1.50', 'B  2.20', '3.90  C', '2.40  D']
    """
    if len(ranks) < 2:
        raise ValueError(f"There are ranks of {len(ranks)} method(s): two are needed.")
    ordered = sorted(ranks, key=ranks.__getitem__)
    bars = cliques(ranks, cd)
    half = (len(ordered) + 1) // 2
    first_row = FIRST_BAR + BETWEEN_BARS * len(bars) + 0.6
    bottom = first_row + half - 0.4
    if ax is None:  # wide enough for the longest names and high enough for all rows
        letters = max(map(len, ordered[:half])) + max(map(len, ordered[half:]))
        height = ROW * (BRACKET + 1.2 + bottom) + (0.4 if title else 0.1)
        ax = new_figure(AXIS + LETTER * letters, height).subplots()
    last = float(len(ranks))
    ax.set_xlim(1.0, max(last, 1.0 + cd))
    ax.set_ylim(bottom, -BRACKET - 0.8)  # rows count downwards
    ax.set_axis_off()
    if title:
        ax.set_title(title, fontsize=TITLE_SIZE, color=INK, loc="left")
    line: dict[str, Any] = {"color": INK, "linewidth": 1.2}
    ax.plot([1, last], [0, 0], **line)
    for rank in range(1, len(ranks) + 1, 1 + (len(ranks) - 1) // MOST_NUMBERS):
        ax.plot([rank] * 2, [0, -0.2], **line)
        write_text(ax, rank, -NUMBERS, str(rank), va="bottom")
    tip = -BRACKET + 0.2
    ax.plot([1.0, 1.0, 1.0 + cd, 1.0 + cd], [tip, -BRACKET, -BRACKET, tip], **line)
    write_text(ax, 1.0 + cd / 2, -BRACKET - 0.1, f"CD = {cd:.2f}", va="bottom")
    for number, bar in enumerate(bars):
        height = FIRST_BAR + BETWEEN_BARS * number
        ends = [ranks[bar[0]] - 0.04, ranks[bar[-1]] + 0.04]
        ax.plot(ends, [height] * 2, color=COLOURS[0], linewidth=4, solid_capstyle="round", zorder=3)
    aside = ASIDE * (last - 1)
    # On either side the outermost method is named first, so that no line crosses another.
    for side, names in ((1.0 - aside, ordered[:half]), (last + aside, ordered[: half - 1 : -1])):
        _name_methods(ax, ranks, names, side, first_row)
    return ax


def _name_methods(
    ax: "Axes", ranks: Mapping[str, float], names: Sequence[str], side: float, first_row: float
) -> None:
    """Lead a line from each rank down, then aside to the name."""
    left = side < 1.0
    look: dict[str, Any] = {"ha": "right" if left else "left", "va": "center", "color": INK}
    for row, name in enumerate(names):
        height, rank = first_row + row, ranks[name]
        path = [rank, rank, side], [0, height, height]
        ax.plot(*path, color=PALE_INK, linewidth=0.9, clip_on=False)
        ax.plot([rank], [0], marker="o", markersize=4, color=INK, clip_on=False)
        ax.annotate(
            f"{name}  {rank:.2f}" if left else f"{rank:.2f}  {name}",
            (side, height),
            xytext=(-4 if left else 4, 0),
            textcoords="offset points",
            fontsize=TICK_SIZE,
            annotation_clip=False,
            **look,
        )
