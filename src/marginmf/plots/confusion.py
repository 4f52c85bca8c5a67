"""Which level was taken for which."""

from typing import TYPE_CHECKING, Any

import numpy as np

from marginmf._utils.types import Float64Array, IntArray
from marginmf.plots.cells import MOST_NUMBERED, draw_cells, name_cells, write_cell
from marginmf.plots.style import PALE_INK, axes_or_new, calm

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
    ax : Axes, optional
        Where to draw; by default a new figure.
    title : str, optional
        A title.

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
    shares = confusion_shares(true, predicted, scale)
    ax = axes_or_new(ax)
    draw_cells(ax, np.nan_to_num(shares), 0.0, 1.0)
    if len(scale) <= MOST_NUMBERED:
        _write_shares(ax, shares)
    names = [f"{level:g}" for level in scale]
    name_cells(ax, names, names)
    calm(ax, title, "predicted level", "true level (rows add up to 100%)")
    ax.spines[:].set_visible(False)
    return ax


def confusion_shares(true: Any, predicted: Any, scale: Float64Array) -> Float64Array:
    """Return row-normalised counts of (true, predicted) levels; NaN in rows without ratings.

    >>> confusion_shares([1, 1], [1, 2], np.array([1.0, 2.0]))
    array([[0.5, 0.5],
           [nan, nan]])
    """
    rows, columns = _places(true, scale, "true"), _places(predicted, scale, "predicted")
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


def _write_shares(ax: "Axes", shares: Float64Array) -> None:
    for (row, column), share in np.ndenumerate(shares):
        if not np.isnan(share):
            # What rounds to 0 % steps back.
            pale = PALE_INK if share < 0.005 else None
            write_cell(ax, row, column, f"{share:.0%}", share, bold=row == column, colour=pale)


def _places(ratings: Any, scale: Float64Array, what: str) -> IntArray:
    values = np.ravel(np.asarray(ratings, np.float64))
    strange = ~np.isin(values, scale)
    if strange.any():
        row = int(np.argmax(strange))
        raise ValueError(
            f"The {what} rating {values[row]:g} in row {row} is not one of the levels "
            f"{', '.join(f'{level:g}' for level in scale)}."
        )
    return np.searchsorted(scale, values)
