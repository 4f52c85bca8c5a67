"""The figures of the report, put together from those of `marginmf.plots`."""

import math
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from types import SimpleNamespace
from typing import Any

import numpy as np

from marginmf import plots
from marginmf.plots.style import COLOURS, INK, PALE_INK, label_axes, with_colours
from studies.harness import Store, Values
from studies.harness.drawing import draw_panels
from studies.thesis.published import WorkedExample
from studies.thesis.samples import Sample, TradeOff

#: The size of a panel that stands alone, and of one among others, in inches.
SINGLE, PANEL = (6.4, 4.2), (4.4, 3.6)


def losses_figure() -> Any:
    return draw_panels([lambda ax: plots.loss_curves(ax=ax)], 1, *SINGLE)


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
) -> Any:
    """Draw a line for each name through the means of its samples, with their spreads if wanted."""

    def draw(ax: Any) -> None:
        shown = {name: _split(along, spreads) for name, along in lines.items()}
        plots.curves(x, shown, ax, x_label=x_label, y_label=y_label, log_x=log_x)
        if descending:
            ax.invert_xaxis()
            ax.set_xticks(list(x), [f"{value:g}" for value in x], minor=False)
            ax.set_xticks([], minor=True)
        if from_zero:
            ax.set_ylim(bottom=0)

    return draw_panels([draw], 1, *SINGLE)


def _split(along: Sequence[Sample], spreads: bool = True) -> tuple[list[float], list[float] | None]:
    return [one.mean for one in along], [one.spread for one in along] if spreads else None


def trade_off_figure(trade_offs: Mapping[str, TradeOff], store: Store, error: str) -> Any:
    """Draw test errors against training errors, a panel for each title.

    What lies to the right of where some curve ends is not shown: there the penalty leaves nothing
    of the factors, and one such point may squeeze all that matters into a corner.
    """

    def draw(title: str, one: TradeOff, ax: Any) -> None:
        found = {name: one.curve(store, name) for name in one.methods}
        drawn = {name: curve for name, curve in found.items() if curve[0]}
        labels = {"x_label": f"training {error}", "y_label": f"test {error}"}
        trains = {name: train for name, (train, _) in drawn.items()}
        tests = {name: _split(test) for name, (_, test) in drawn.items()}
        plots.curves(trains, tests, ax, title=title or None, **labels)
        _limit_to_common(ax, list(drawn.values()))

    draws = [partial(draw, title, one) for title, one in trade_offs.items()]
    if len(draws) == 1:
        return draw_panels(draws, 1, *SINGLE)
    return draw_panels(draws, 2 if len(draws) < 6 else 3, *PANEL)


def _limit_to_common(ax: Any, drawn: Sequence[tuple[Sequence[float], Sequence[Sample]]]) -> None:
    """End the axes where the first of the curves ends, with a margin."""
    if not drawn:
        return
    end, tests = min(train[-1] for train, _ in drawn), np.empty(0)
    for (train, test), side in product(drawn, (-1, 1)):
        shown = [*(value for value in train if value < end), end]
        edge = [point.mean + side * point.spread for point in test]
        tests = np.append(tests, np.interp(shown, train, edge))
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
) -> Any:
    """Draw a map for each title; with ``shared``, one scale of colours for all."""
    every = np.concatenate([one.ravel() for one in maps.values()])
    draw = partial(
        plots.heat_map,
        row_label=row_label,
        column_label=column_label,
        value_label=value_label,
        limits=(float(every.min()), float(every.max())) if shared else None,
        annotate=".2f" if shared else ".3f",
    )
    draws = [partial(draw, one, rows, columns, title=title) for title, one in maps.items()]
    return draw_panels(draws, 2, 6.0, 4.2)


def objectives_figure(found: Mapping[str, Sequence[Sequence[float]]]) -> Any:
    """Draw objectives after every iteration, a panel for each title and a curve for each start."""

    def draw(title: str, starts: Sequence[Sequence[float]], ax: Any) -> None:
        for objective, colour in with_colours(starts):
            ax.plot(range(len(objective)), objective, color=colour, linewidth=1.6)
        label_axes(ax, title, "iterations", "objective", grid="both")
        ax.set_xlim(left=0)

    return draw_panels([partial(draw, *panel) for panel in found.items()], 2, *PANEL)


def two_level_figure(example: WorkedExample) -> Any:
    draw = partial(plots.item_map, example["V"], example["U"], threshold=example["threshold"])
    return draw_panels([draw], 1, 7.0, 6.0)


def user_views_figure(views: Mapping[str, Values]) -> Any:
    """Draw one user's items and lines, a panel for each title."""

    def draw(title: str, view: Values, ax: Any) -> None:
        names = ("thresholds", "prototypes", "boundaries")
        lines = {name: view[name] for name in names if name in view}
        points = (view["points"], view["ratings"], view["direction"])
        plots.user_map(*points, ax, title=title or None, **lines)

    return draw_panels([partial(draw, *panel) for panel in views.items()], 2, 5.6, 4.8)


def groups_figure(factors: np.ndarray, groups: np.ndarray) -> Any:
    model = SimpleNamespace(label_factors_=factors, label_groups_=groups)
    return draw_panels([partial(plots.group_sparsity, model)], 1, *SINGLE)


def critical_difference_figure(ranks: Mapping[str, Mapping[str, float]], cd: float) -> Any:
    height = 1.5 + 0.3 * math.ceil(max(map(len, ranks.values())) / 2)
    draws = [partial(plots.critical_difference, of, cd, title=title) for title, of in ranks.items()]
    return draw_panels(draws, 2, 6.4, height)


def hierarchy_figure(Y: np.ndarray, steps: Sequence[np.ndarray]) -> Any:
    """Draw the observed matrix, and what is known after every stage."""
    titles = [f"after stage {number}" for number in range(1, len(steps))]
    matrices = {"observed": Y, **dict(zip([*titles, "completed"], steps, strict=True))}

    def draw(title: str, matrix: np.ndarray, ax: Any) -> None:
        """Write the entries: observed ones in ink, predicted ones in colour."""
        ax.imshow(matrix > 0, cmap="Greys", vmin=0, vmax=12, aspect="auto")
        for (row, column), value in np.ndenumerate(matrix):
            known = Y[row, column] > 0
            style = {"color": INK if known else COLOURS[1] if value else PALE_INK}
            style |= {"fontweight": "normal" if known else "bold", "ha": "center", "va": "center"}
            ax.text(column, row, str(value) if value else "·", **style)
        label_axes(ax, title, "", "", spines=False)
        ax.set(xticks=[], yticks=[])

    return draw_panels([partial(draw, *panel) for panel in matrices.items()], 3, 3.2, 2.4)
