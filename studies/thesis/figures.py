"""The figures of the report, put together from those of `marginmf.plots`."""

import math
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from marginmf.plots import (
    critical_difference,
    curves,
    group_sparsity,
    heat_map,
    item_map,
    loss_curves,
    user_map,
)
from studies.harness import Store, Values
from studies.harness.drawing import (
    COLOURS,
    FAINT,
    INK,
    PALE_INK,
    Draw,
    draw_panels,
    label_axes,
)
from studies.thesis.published import WorkedExample
from studies.thesis.samples import Sample, TradeOff

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: The size of a panel that stands alone, and of one among others, in inches.
WIDTH, HEIGHT = 6.4, 4.2
PANEL_WIDTH, PANEL_HEIGHT = 4.4, 3.6


def losses_figure() -> "Figure":
    """Draw the two-level losses."""
    return draw_panels([lambda ax: loss_curves(ax=ax)], 1, WIDTH, HEIGHT)


def curves_figure(
    x: Sequence[float],
    lines: Mapping[str, Sequence[Sample]],
    x_label: str,
    y_label: str,
    *,
    log_x: bool = False,
    descending: bool = False,
    from_zero: bool = False,
    spreads: bool = True,
) -> "Figure":
    """Draw a line for each name through the means of its samples, with their spreads if wanted.

    Many spreads that overlap hide the lines: then a table has them.
    """

    def draw(ax: "Axes") -> None:
        shown = {
            name: (
                [one.mean for one in along],
                [one.spread for one in along] if spreads else None,
            )
            for name, along in lines.items()
        }
        curves(x, shown, ax, x_label=x_label, y_label=y_label, log_x=log_x)
        if descending:
            ax.invert_xaxis()
            ax.set_xticks(list(x), [f"{value:g}" for value in x], minor=False)
            ax.set_xticks([], minor=True)
        if from_zero:
            ax.set_ylim(bottom=0)

    return draw_panels([draw], 1, WIDTH, HEIGHT)


def trade_off_figure(trade_offs: Mapping[str, TradeOff], store: Store, error: str) -> "Figure":
    """Draw test errors against training errors, a panel for each title.

    What lies to the right of where some curve ends is not shown: there the penalty leaves nothing
    of the factors, and one such point may squeeze all that matters into a corner.
    """

    def panel(title: str, one: TradeOff) -> Draw:
        found = {name: one.curve(store, name) for name in one.methods}
        drawn = {name: curve for name, curve in found.items() if curve[0]}

        def draw(ax: "Axes") -> None:
            curves(
                {name: train for name, (train, _) in drawn.items()},
                {
                    name: ([point.mean for point in test], [point.spread for point in test])
                    for name, (_, test) in drawn.items()
                },
                ax,
                title=title or None,
                x_label=f"training {error}",
                y_label=f"test {error}",
            )
            _limit_to_common(ax, list(drawn.values()))

        return draw

    draws = [panel(title, one) for title, one in trade_offs.items()]
    if len(draws) == 1:
        return draw_panels(draws, 1, WIDTH, HEIGHT)
    return draw_panels(draws, 2 if len(draws) < 6 else 3, PANEL_WIDTH, PANEL_HEIGHT)


def _limit_to_common(ax: "Axes", drawn: Sequence[tuple[Sequence[float], Sequence[Sample]]]) -> None:
    """End the axes where the first of the curves ends, with a margin."""
    if not drawn:
        return
    end = min(train[-1] for train, _ in drawn)
    tests = np.concatenate(
        [
            np.interp(
                [*(value for value in train if value < end), end],
                train,
                [point.mean + side * point.spread for point in test],
            )
            for train, test in drawn
            for side in (-1, 1)
        ]
    )
    margin = 0.04 * (tests.max() - tests.min()) or 0.01
    ax.set_xlim(-0.03 * end, 1.03 * end)
    ax.set_ylim(tests.min() - margin, tests.max() + margin)


def heat_maps_figure(
    maps: Mapping[str, np.ndarray],
    columns: Sequence[str],
    rows: Sequence[str],
    column_label: str,
    row_label: str,
    value_label: str,
    *,
    shared: bool = True,
) -> "Figure":
    """Draw a map for each title; with ``shared``, one scale of colours for all."""
    every = np.concatenate([one.ravel() for one in maps.values()])
    limits = (float(every.min()), float(every.max())) if shared else None

    def panel(title: str, values: np.ndarray) -> Draw:
        return lambda ax: heat_map(
            values,
            rows,
            columns,
            ax,
            title=title,
            row_label=row_label,
            column_label=column_label,
            value_label=value_label,
            limits=limits,
            annotate=".2f" if shared else ".3f",
        )

    return draw_panels([panel(title, one) for title, one in maps.items()], 2, 6.0, 4.2)


def objectives_figure(found: Mapping[str, Sequence[Sequence[float]]]) -> "Figure":
    """Draw objectives after every iteration, a panel for each title and a curve for each start."""

    def panel(title: str, starts: Sequence[Sequence[float]]) -> Draw:
        def draw(ax: "Axes") -> None:
            for number, objective in enumerate(starts):
                colour = COLOURS[number % len(COLOURS)]
                ax.plot(range(len(objective)), objective, color=colour, linewidth=1.6)
            label_axes(ax, title, "iterations", "objective")
            ax.set_xlim(left=0)
            ax.grid(color=FAINT, linewidth=0.6)

        return draw

    draws = [panel(title, starts) for title, starts in found.items()]
    return draw_panels(draws, 2, PANEL_WIDTH, PANEL_HEIGHT)


def two_level_figure(example: WorkedExample) -> "Figure":
    """Draw the items among the users' lines."""

    def draw(ax: "Axes") -> None:
        item_map(example["V"], example["U"], ax, threshold=example["threshold"])

    return draw_panels([draw], 1, 7.0, 6.0)


def user_views_figure(views: Mapping[str, Values]) -> "Figure":
    """Draw one user's items and lines, a panel for each title."""

    def panel(title: str, view: Values) -> Draw:
        names = ("thresholds", "prototypes", "boundaries")
        lines = {name: view[name] for name in names if name in view}
        return lambda ax: user_map(
            view["points"], view["ratings"], view["direction"], ax, title=title or None, **lines
        )

    return draw_panels([panel(title, view) for title, view in views.items()], 2, 5.6, 4.8)


def groups_figure(factors: np.ndarray, groups: np.ndarray) -> "Figure":
    """Draw the factors of all labels, group by group."""
    model = SimpleNamespace(label_factors_=factors, label_groups_=groups)
    return draw_panels([lambda ax: group_sparsity(model, ax)], 1, WIDTH, HEIGHT)


def critical_difference_figure(ranks: Mapping[str, Mapping[str, float]], cd: float) -> "Figure":
    """Draw a diagram for each measure."""

    def panel(title: str, of: Mapping[str, float]) -> Draw:
        return lambda ax: critical_difference(of, cd, ax, title)

    longest = max(len(of) for of in ranks.values())
    height = 1.5 + 0.3 * math.ceil(longest / 2)
    return draw_panels([panel(title, of) for title, of in ranks.items()], 2, 6.4, height)


def hierarchy_figure(Y: np.ndarray, steps: Sequence[np.ndarray]) -> "Figure":
    """Draw the observed matrix, and what is known after every stage."""
    titles = [f"after stage {number}" for number in range(1, len(steps))]
    matrices = {"observed": Y, **dict(zip([*titles, "completed"], steps, strict=True))}

    def panel(title: str, matrix: np.ndarray) -> Draw:
        return lambda ax: _draw_matrix(ax, title, matrix, Y > 0)

    return draw_panels([panel(title, matrix) for title, matrix in matrices.items()], 3, 3.2, 2.4)


def _draw_matrix(ax: Any, title: str, matrix: np.ndarray, observed: np.ndarray) -> None:
    """Write the entries: observed ones in ink, predicted ones in colour."""
    ax.imshow(matrix > 0, cmap="Greys", vmin=0, vmax=12, aspect="auto")
    for (row, column), value in np.ndenumerate(matrix):
        known = observed[row, column]
        ax.text(
            column,
            row,
            str(value) if value else "·",
            ha="center",
            va="center",
            color=INK if known else COLOURS[1] if value else PALE_INK,
            fontweight="normal" if known else "bold",
        )
    label_axes(ax, title, "", "")
    ax.set_xticks([])
    ax.set_yticks([])
    ax.spines[:].set_visible(False)
