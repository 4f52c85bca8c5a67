"""Figures: panels in rows, and SVG files that are small and the same every time."""

import math
import re
from collections.abc import Callable, Sequence
from io import StringIO
from pathlib import Path
from typing import Any

from marginmf.plots.style import new_figure


def draw_panels(
    draws: Sequence[Callable[[Any], object]], columns: int, width: float, height: float
) -> Any:
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


def save_svg(figure: Any, file: Path) -> None:
    """Write a figure; its text stays text, and the same drawing gives the same bytes."""
    from matplotlib import rc_context

    drawn = StringIO()
    # The salt makes the ids depend on what is drawn alone; every text repeats the list of fonts.
    fonts = {"font.sans-serif": ["DejaVu Sans", "Arial"]}
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": file.stem, **fonts}):
        figure.savefig(drawn, format="svg", metadata={"Date": None, "Creator": None})
    # A hundredth of a point is enough, and comments repeat the text that follows them.
    text = re.sub(r"\s*<!--.*?-->", "", drawn.getvalue(), flags=re.DOTALL)
    text = re.sub(r"<[^>]*>", lambda tag: re.sub(r"(\.\d\d)\d+", r"\1", tag[0]), text)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(re.sub(r" *\n *", "\n", text))
