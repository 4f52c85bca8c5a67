"""Lines with their spread: errors, times or scores against anything."""

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from marginmf._utils.types import Float64Array
from marginmf.plots.style import COLOURS, FAINT, axes_or_new, calm, legend_below, log_ticks

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Numbers = Sequence[float] | Float64Array
#: A line is its means and, if it has one, its spread at each of them.
Line = tuple[Numbers, Numbers | None]


def curves(
    x: Numbers | Mapping[str, Numbers],
    lines: Mapping[str, Line],
    ax: "Axes | None" = None,
    *,
    title: str | None = None,
    x_label: str = "",
    y_label: str = "",
    spread: Literal["band", "bars"] = "band",
    log_x: bool = False,
    log_y: bool = False,
) -> "Axes":
    """Draw a line for each name, with a band or bars for its spread.

    Parameters
    ----------
    x : sequence of float, or mapping of str to sequence of float
        Where the lines are measured: the same for all, or by name, as for test errors against
        training errors.
    lines : mapping of str to (sequence of float, sequence of float or None)
        For each name the means, and how far the spread reaches to either side, or None.
    ax : Axes, optional
        Where to draw; by default a new figure.
    title : str, optional
        A title.
    x_label, y_label : str
        What the axes are.
    spread : {"band", "bars"}
        How the spread is drawn.  Bars are clearer where lines are close together.
    log_x, log_y : bool
        Whether the axes are logarithmic.

    Examples
    --------
    >>> ax = curves([10, 20], {"HMF": ([0.41, 0.40], [0.01, 0.01]), "MMMF": ([0.44, 0.42], None)})
    >>> [line.get_label() for line in ax.lines], len(ax.collections)
    (['HMF', 'MMMF'], 1)
    """
    if spread not in ("band", "bars"):
        raise ValueError(f"spread={spread!r} is not known. Choose 'band' or 'bars'.")
    if not lines:
        raise ValueError("There are no lines to draw: give one at least.")
    ax = axes_or_new(ax)
    for (name, (means, reach)), colour in zip(lines.items(), cycle(COLOURS), strict=False):
        places = _places(x, name, len(means))
        if reach is not None and len(reach) != len(means):
            raise ValueError(
                f"{name} has {len(means)} means, but a spread at {len(reach)} of them."
            )
        look: dict[str, Any] = {"color": colour, "linewidth": 1.6, "marker": "o", "markersize": 4}
        if reach is not None and spread == "bars":
            ax.errorbar(places, means, yerr=reach, capsize=3, label=name, **look)
            continue
        ax.plot(places, means, label=name, **look)
        if reach is not None:
            low, high = _band(np.asarray(means, float), np.asarray(reach, float), positive=log_y)
            ax.fill_between(places, low, high, color=colour, alpha=0.15, linewidth=0)
    calm(ax, title, x_label, y_label)
    if log_x:
        ax.set_xscale("log")
        log_ticks(ax.xaxis)
    if log_y:
        ax.set_yscale("log")
        log_ticks(ax.yaxis)
    ax.grid(color=FAINT, linewidth=0.6)
    legend_below(ax, columns=min(3, len(lines)))
    return ax


def _places(x: Numbers | Mapping[str, Numbers], name: str, count: int) -> Numbers:
    places = x.get(name) if isinstance(x, Mapping) else x
    if places is None:
        raise ValueError(f"x has no places for {name}: give them for every line.")
    if len(places) != count:
        raise ValueError(f"{name} has {count} means at {len(places)} places: one each is needed.")
    return places


def _band(
    means: Float64Array, reach: Float64Array, *, positive: bool
) -> tuple[Float64Array, Float64Array]:
    """Return both edges of a band, the lower one above zero if there is no zero on the axis."""
    low = means - reach
    if positive:
        low = np.where(low > 0, low, means / 10)
    return low, means + reach
