"""How ``reg="auto"`` was chosen: the error on held-out ratings along the path."""

from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from marginmf.plots.style import COLOURS, FAINT, axes_or_new, calm, legend_below, log_ticks
from marginmf.tuning import RegularisationPath

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def regularisation_path(
    model: Any, ax: "Axes | None" = None, *, title: str | None = None
) -> "Axes":
    """Draw the error on held-out ratings against the weight of the penalty.

    A model that is fitted in stages, as HMF is, has a line for each stage: the thesis's validation
    figures.  The ring marks the chosen weight; the band, with several hold-outs, is one standard
    deviation between them.

    Parameters
    ----------
    model : fitted estimator
        One that was fitted with ``reg="auto"``.
    ax : Axes, optional
        Where to draw; by default a new figure.
    title : str, optional
        A title.

    Examples
    --------
    >>> from marginmf.datasets import make_ratings
    >>> from marginmf.ratings import HMF
    >>> data = make_ratings(50, 40, n_factors=2, observed=0.5, random_state=0)
    >>> model = HMF(n_factors=5, random_state=0).fit(data.pairs, data.ratings)
    >>> ax = regularisation_path(model)
    >>> ax.get_xlabel(), ax.get_ylabel()
    ('reg', 'zero-one error on held-out ratings')
    """
    found = getattr(model, "reg_path_", None)
    if found is None:
        raise ValueError(
            f"{type(model).__name__} has no regularisation path to draw: fit it with reg='auto' "
            "first."
        )
    paths: list[RegularisationPath] = found if isinstance(found, list) else [found]
    ax = axes_or_new(ax)
    for stage, (path, colour) in enumerate(zip(paths, cycle(COLOURS), strict=False)):
        label = f"stage {stage + 1}" if len(paths) > 1 else type(model).__name__
        _draw(ax, path, colour, label)
    ax.set_xscale("log")
    log_ticks(ax.xaxis)
    calm(ax, title, "reg", f"{paths[0].metric} on held-out ratings")
    ax.grid(color=FAINT, linewidth=0.6)
    legend_below(ax)
    return ax


def _draw(ax: "Axes", path: RegularisationPath, colour: str, label: str) -> None:
    ax.plot(path.regs, path.mean, color=colour, linewidth=1.6, marker="o", markersize=3.5)
    if path.errors.shape[1] > 1:
        spread = path.errors.std(axis=1)
        ax.fill_between(
            path.regs, path.mean - spread, path.mean + spread, color=colour, alpha=0.15, linewidth=0
        )
    height = float(np.interp(np.log(path.best), np.log(path.regs), path.mean))
    ax.plot(
        [path.best],
        [height],
        marker="o",
        markersize=10,
        fillstyle="none",
        markeredgewidth=1.8,
        color=colour,
        label=f"{label}: {path.best:.3g}",
        linestyle="none",
    )
