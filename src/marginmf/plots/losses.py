"""Losses against the margin."""

from collections.abc import Iterable
from itertools import cycle
from typing import TYPE_CHECKING

import numpy as np

from marginmf.losses import TWO_LEVEL, TwoLevelLoss
from marginmf.plots.style import COLOURS, FAINT, axes_or_new, calm, legend_below

if TYPE_CHECKING:
    from matplotlib.axes import Axes

#: The margins that are drawn: on both sides of 0 and 1, where losses turn.
LOWEST, HIGHEST = -2.0, 2.5


def loss_curves(
    losses: Iterable[str | TwoLevelLoss] | None = None,
    ax: "Axes | None" = None,
    *,
    title: str | None = None,
) -> "Axes":
    """Draw two-level losses as functions of the margin.

    Parameters
    ----------
    losses : iterable of str or TwoLevelLoss, optional
        Names or losses of your own; by default all of `marginmf.losses`.
    ax : Axes, optional
        Where to draw; by default a new figure.
    title : str, optional
        A title.

    Examples
    --------
    >>> ax = loss_curves(["zero_one", "hinge", "smooth_hinge"])
    >>> [line.get_label() for line in ax.lines]
    ['zero-one', 'hinge', 'smooth hinge']
    """
    drawn = [_loss(loss) for loss in (TWO_LEVEL if losses is None else losses)]
    if not drawn:
        raise ValueError("There are no losses to draw: give one at least.")
    ax = axes_or_new(ax)
    # A step at 0 is drawn as one.
    z = np.sort(np.append(np.linspace(LOWEST, HIGHEST, 451), [-1e-9, 1e-9]))
    for loss, colour in zip(drawn, cycle(COLOURS), strict=False):
        name = loss.name.replace("zero_one", "zero-one").replace("_", " ")
        ax.plot(z, loss.value(z), color=colour, linewidth=1.8, label=name)
    calm(ax, title, "margin z = y x", "loss")
    ax.set_xlim(LOWEST, HIGHEST)
    ax.set_ylim(bottom=0)
    ax.grid(color=FAINT, linewidth=0.6)
    legend_below(ax, columns=3)
    return ax


def _loss(loss: str | TwoLevelLoss) -> TwoLevelLoss:
    if isinstance(loss, TwoLevelLoss):
        return loss
    if loss not in TWO_LEVEL:
        raise ValueError(
            f"{loss!r} is not a two-level loss. Choose from {', '.join(map(repr, TWO_LEVEL))}, or "
            "pass a TwoLevelLoss."
        )
    return TWO_LEVEL[loss]
