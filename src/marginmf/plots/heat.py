"""Tables of numbers in colour: heat maps, and which level was taken for which."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from marginmf._utils.types import Float64Array, IntArray
from marginmf.plots.style import (
    FAINT,
    INK,
    LABEL_SIZE,
    PALE_INK,
    TICK_SIZE,
    axes_or_new,
    label_axes,
    shades,
    write_text,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh

#: Above this share of the darkest shade a cell is dark enough for white letters.
DARK = 0.7
#: More rows or columns than this are drawn without numbers, which would not fit their cells.
MOST_NUMBERED = 12
#: More rows or columns than this have no lines between them, which would hide the cells.
MOST_SEPARATED = 40


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
    """Draw a table of numbers as shades, with a bar that says what they mean.

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

    Returns
    -------
    Axes
        The first row is on top.

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
        for (row, column), value in np.ndenumerate(table):
            if np.isfinite(value):
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

    Parameters
    ----------
    true, predicted : sequence of float
        Ratings; every one is one of ``levels``.
    levels : sequence of float
        The scale, such as a fitted model's ``levels_``.
    ax, title
        The Axes to draw into, by default a new figure; and a title.

    Returns
    -------
    Axes
        Rows are true levels, the highest on top, and add up to 100 %; a level without ratings
        has an empty row.  Scales of more than 12 levels are drawn without the numbers.

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
        for (row, column), share in np.ndenumerate(shares):
            if not np.isnan(share):
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
    shares: Float64Array = counts / np.where(totals > 0, totals, np.nan)
    return shares


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
    n_rows, n_columns = values.shape
    return ax.pcolormesh(
        np.arange(n_columns),
        np.arange(n_rows),
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
