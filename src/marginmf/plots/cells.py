"""Cells in rows and columns, shaded by their values: what tables of colour are made of."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from marginmf._utils.types import Float64Array
from marginmf.plots.style import FAINT, INK, TICK_SIZE, shades

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh

#: Above this share of the darkest shade a cell is dark enough for white letters.
DARK = 0.7
#: More rows or columns than this are drawn without numbers, which would not fit their cells.
MOST_NUMBERED = 12
#: More rows or columns than this have no lines between them, which would hide the cells.
MOST_SEPARATED = 40


def draw_cells(ax: "Axes", values: Float64Array, low: float, high: float) -> "QuadMesh":
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


def write_cell(
    ax: "Axes",
    row: int,
    column: int,
    text: str,
    shade: float,
    *,
    bold: bool = False,
    colour: str | None = None,
) -> None:
    """Write into a cell, legibly on a shade from 0 to 1."""
    ax.text(
        column,
        row,
        text,
        ha="center",
        va="center",
        fontsize=TICK_SIZE,
        fontweight="bold" if bold else "normal",
        color=colour or ("white" if shade > DARK else INK),
    )


def name_cells(ax: "Axes", rows: Sequence[str], columns: Sequence[str]) -> None:
    """Name every row and column, or where there are many every second, third, ..."""
    for names, set_ticks in ((rows, ax.set_yticks), (columns, ax.set_xticks)):
        named = range(0, len(names), 1 + (len(names) - 1) // MOST_NUMBERED)
        set_ticks(named, [names[place] for place in named])
