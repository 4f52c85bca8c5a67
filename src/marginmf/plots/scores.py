"""The errors of several methods side by side."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from marginmf.metrics import describe_metrics
from marginmf.plots.style import COLOURS, FAINT, INK, calm, new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def error_bars(scores: Mapping[str, Mapping[str, Sequence[float]]]) -> "Figure":
    """Draw a panel for each metric: a dot at each method's mean, a bar of one standard deviation.

    Dots and not columns, so that the axis may start near the errors and small differences show;
    the best of each panel is filled, by the direction that `marginmf.metrics.METRICS` has for the
    metric.  Of a metric that is not in that table, none is.

    Parameters
    ----------
    scores : mapping of str to mapping of str to sequence of float
        For every method, for every metric, its value on each split.

    Returns
    -------
    Figure

    Examples
    --------
    >>> figure = error_bars({"HMF": {"mae": [0.67, 0.68]}, "ALS": {"mae": [0.70, 0.71]}})
    >>> len(figure.axes), [label.get_text() for label in figure.axes[0].get_yticklabels()]
    (1, ['HMF', 'ALS'])
    """
    if not scores:
        raise ValueError("There are no scores to draw: give those of one method at least.")
    methods = list(scores)
    metrics = describe_metrics(scores[methods[0]])
    figure = new_figure(1.2 + 2.4 * len(metrics), 1.2 + 0.4 * len(methods))
    panels = figure.subplots(1, len(metrics), sharey=True, squeeze=False)[0]
    for ax, (name, metric) in zip(panels, metrics.items(), strict=True):
        means = {method: float(np.mean(scores[method][name])) for method in methods}
        best = metric.best(means)
        for row, method in enumerate(methods):
            values = scores[method][name]
            ax.errorbar(
                means[method],
                row,
                xerr=np.std(values, ddof=1) if len(values) > 1 else None,
                fmt="o",
                markersize=7,
                color=COLOURS[0],
                markerfacecolor=COLOURS[0] if best and means[method] == means[best] else "white",
                capsize=3,
            )
        calm(ax, None, metric.heading, "")
        ax.grid(axis="x", color=FAINT, linewidth=0.6)
        ax.margins(x=0.15, y=0.1)
    panels[0].set_yticks(range(len(methods)), methods, color=INK)
    panels[0].invert_yaxis()  # in the order given, from the top
    return figure
