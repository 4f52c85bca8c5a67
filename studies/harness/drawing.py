"""Figures: their look, panels in rows, and SVG files that are the same every time."""

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Okabe and Ito's colours, which people with any kind of colour vision can tell apart.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#F0E442")
INK, PALE_INK, FAINT = "#303030", "#9A9A9A", "#DADADA"

Draw = Callable[["Axes"], object]


def new_figure(width: float, height: float) -> "Figure":
    """Return an empty figure, in inches, that belongs to no window and no backend."""
    from matplotlib.figure import Figure
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    layout = ConstrainedLayoutEngine(w_pad=0.15, h_pad=0.1)
    return Figure(figsize=(width, height), dpi=120, layout=layout)


def draw_panels(draws: Sequence[Draw], columns: int, width: float, height: float) -> "Figure":
    """Return a figure with a panel for each function, in rows of at most `columns`."""
    columns = min(columns, len(draws))
    rows = math.ceil(len(draws) / columns)
    figure = new_figure(width * columns, height * rows)
    axes = figure.subplots(rows, columns, squeeze=False).ravel()
    for ax, draw in zip(axes, draws, strict=False):
        draw(ax)
    for ax in axes[len(draws) :]:
        ax.remove()
    return figure


def label_axes(ax: "Axes", title: str | None, x_label: str, y_label: str) -> None:
    """Label the Axes, and remove every line that carries no information."""
    if title:
        ax.set_title(title, fontsize=12, color=INK, loc="left", pad=10)
    ax.set_xlabel(x_label, fontsize=11, color=INK)
    ax.set_ylabel(y_label, fontsize=11, color=INK, labelpad=8)
    ax.tick_params(labelsize=10, colors=INK, length=0)
    ax.spines[["top", "right"]].set_visible(False)
    ax.spines[["left", "bottom"]].set_color(FAINT)
    ax.set_axisbelow(True)


def save_svg(figure: "Figure", file: Path) -> None:
    """Write a figure; its text stays text, and the same drawing gives the same bytes."""
    from matplotlib import rc_context

    file.parent.mkdir(parents=True, exist_ok=True)
    # The salt makes the ids depend on what is drawn alone.
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": file.stem}):
        figure.savefig(file, metadata={"Date": None, "Creator": None})
