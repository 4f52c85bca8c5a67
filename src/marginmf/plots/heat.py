"""A table of numbers in colour."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from marginmf.plots.cells import draw_cells, name_cells, write_cell
from marginmf.plots.style import INK, LABEL_SIZE, TICK_SIZE, axes_or_new, calm

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
    ax : Axes, optional
        Where to draw; by default a new figure.
    title : str, optional
        A title.
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
    cells = draw_cells(ax, table, low, high)
    if annotate is not None:
        for (row, column), value in np.ndenumerate(table):
            if np.isfinite(value):
                shade = (value - low) / (high - low) if high > low else 0.0
                write_cell(ax, row, column, format(value, annotate), shade)
    name_cells(ax, [_written(name) for name in rows], [_written(name) for name in columns])
    ax.invert_yaxis()
    calm(ax, title, column_label, row_label)
    ax.spines[:].set_visible(False)
    bar = ax.figure.colorbar(cells, ax=ax)
    bar.outline.set_visible(False)
    bar.set_label(value_label, fontsize=LABEL_SIZE, color=INK)
    bar.ax.tick_params(labelsize=TICK_SIZE, colors=INK, length=0)
    return ax


def _written(name: Any) -> str:
    """Return a name as it is, and a number without needless digits."""
    return name if isinstance(name, str) else f"{name:g}"
