"""Lines: any with their spread, objectives of fits, regularisation paths, and losses."""

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from marginmf._utils.parameters import check_option
from marginmf._utils.types import Float64Array
from marginmf.losses import TWO_LEVEL, TwoLevelLoss
from marginmf.plots.style import (
    INK,
    TICK_SIZE,
    axes_or_new,
    label_axes,
    legend_below,
    make_logarithmic,
    with_colours,
)
from marginmf.solvers import Record
from marginmf.tuning import RegularisationPath

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Numbers = Sequence[float] | Float64Array
#: A line is its means and, if it has one, its spread at each of them.
Line = tuple[Numbers, Numbers | None]

#: The margins that `loss_curves` draws: on both sides of 0 and 1, where losses turn.
LOWEST, HIGHEST = -2.0, 2.5


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
    ax, title
        The Axes to draw into, by default a new figure; and a title.
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
    check_option("spread", spread, ("band", "bars"))
    if not lines:
        raise ValueError("There are no lines to draw: give one at least.")
    ax = axes_or_new(ax)
    for (name, (means, reach)), colour in with_colours(lines.items()):
        positions = x.get(name) if isinstance(x, Mapping) else x
        if positions is None:
            raise ValueError(f"x has no positions for {name}: give them for every line.")
        if len(positions) != len(means):
            raise ValueError(
                f"{name} has {len(means)} means at {len(positions)} positions: one each is needed."
            )
        if reach is not None and len(reach) != len(means):
            raise ValueError(
                f"{name} has {len(means)} means, but a spread at {len(reach)} of them."
            )
        look: dict[str, Any] = {"color": colour, "linewidth": 1.6, "marker": "o", "markersize": 4}
        if reach is not None and spread == "bars":
            ax.errorbar(positions, means, yerr=reach, capsize=3, label=name, **look)
            continue
        ax.plot(positions, means, label=name, **look)
        if reach is not None:
            _draw_band(ax, positions, means, reach, colour, positive=log_y)
    label_axes(ax, title, x_label, y_label, grid="both")
    if log_x:
        make_logarithmic(ax, "x")
    if log_y:
        make_logarithmic(ax, "y")
    legend_below(ax, columns=min(3, len(lines)))
    return ax


def _draw_band(
    ax: "Axes", x: Numbers, means: Numbers, reach: Numbers, colour: str, positive: bool = False
) -> None:
    """Shade the spread; on a logarithmic axis (positive), its lower edge stays above zero."""
    middle, half = np.asarray(means, float), np.asarray(reach, float)
    low = middle - half
    if positive:
        low = np.where(low > 0, low, middle / 10)
    ax.fill_between(x, low, middle + half, color=colour, alpha=0.15, linewidth=0)


def training_curves(
    models: Mapping[str, Any],
    ax: "Axes | None" = None,
    *,
    against: Literal["iterations", "seconds"] = "iterations",
    title: str | None = None,
) -> "Axes":
    """Draw the objective, relative to its start, of every model that keeps a history.

    A model that is fitted in stages, as HMF is, has a thinner line for each stage, all in one
    colour; each stage starts at 1.

    Parameters
    ----------
    models : mapping of str to fitted estimator
        Names and models.  Models without ``history_``, such as BiasOnly, are left out.
    against : {"iterations", "seconds"}
        What the horizontal axis counts.  Seconds of a stage count from the start of that stage.
    ax, title
        The Axes to draw into, by default a new figure; and a title.

    Examples
    --------
    >>> from marginmf.datasets import make_ratings
    >>> from marginmf.ratings import HMF, MMMF
    >>> data = make_ratings(50, 40, n_factors=2, observed=0.5, random_state=0)
    >>> models = {"MMMF": MMMF(5, 1.0, random_state=0), "HMF": HMF(5, 1.0, random_state=0)}
    >>> for model in models.values():
    ...     _ = model.fit(data.pairs, data.ratings)
    >>> len(training_curves(models).lines)  # one for MMMF, four for the stages of HMF
    5
    """
    check_option("against", against, ("iterations", "seconds"))
    kept = {name: model.history_ for name, model in models.items() if hasattr(model, "history_")}
    if not kept:
        raise ValueError(
            f"None of the models ({', '.join(models) or 'there are none'}) has a history to draw: "
            "fit at least one factoriser first."
        )
    ax = axes_or_new(ax)
    for (name, history), colour in with_colours(kept.items()):
        stages = [history] if isinstance(history[0], Record) else history
        _draw_history(ax, name, stages, colour, against)
    label_axes(ax, title, against, "objective (start = 100%)", grid="both")
    ax.yaxis.set_major_formatter("{x:.0%}")
    if against == "iterations":
        from matplotlib.ticker import MaxNLocator

        ax.xaxis.set_major_locator(MaxNLocator("auto", integer=True))
    ax.set_xlim(left=0)
    ax.legend(frameon=False, fontsize=TICK_SIZE, labelcolor=INK)
    return ax


def _draw_history(
    ax: "Axes", name: str, stages: Sequence[Sequence[Record]], colour: str, against: str
) -> None:
    single = len(stages) == 1
    label = name if single else f"{name} ({len(stages)} stages)"
    # A dot where the solver stopped.
    look: dict[str, Any] = {"color": colour, "marker": "o", "markersize": 4, "markevery": [-1]}
    for history in stages:
        ax.plot(
            [record.iteration if against == "iterations" else record.seconds for record in history],
            [record.objective / history[0].objective for record in history],
            linewidth=2.2 if single else 1.3,
            label=label,
            **look,
        )
        label = f"_{name}"  # Matplotlib leaves these out of the legend: one entry is enough


def regularisation_path(
    model: Any, ax: "Axes | None" = None, *, title: str | None = None
) -> "Axes":
    """Draw the error on held-out ratings against the regularisation strength.

    A model that is fitted in stages, as HMF is, has a line for each stage.  The ring marks the
    chosen strength; the band, with several hold-outs, is one standard deviation between them.

    Parameters
    ----------
    model : fitted estimator
        One that was fitted with ``reg="auto"``.
    ax, title
        The Axes to draw into, by default a new figure; and a title.

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
    for stage, (path, colour) in enumerate(with_colours(paths), start=1):
        label = f"stage {stage}" if len(paths) > 1 else type(model).__name__
        ax.plot(path.regs, path.mean, color=colour, linewidth=1.6, marker="o", markersize=3.5)
        if path.errors.shape[1] > 1:
            _draw_band(ax, path.regs, path.mean, path.errors.std(axis=1), colour)
        height = float(np.interp(np.log(path.best), np.log(path.regs), path.mean))
        ring: dict[str, Any] = {"markersize": 10, "fillstyle": "none", "markeredgewidth": 1.8}
        ax.plot([path.best], [height], "o", color=colour, label=f"{label}: {path.best:.3g}", **ring)
    make_logarithmic(ax, "x")
    label_axes(ax, title, "reg", f"{paths[0].metric} on held-out ratings", grid="both")
    legend_below(ax)
    return ax


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
    ax, title
        The Axes to draw into, by default a new figure; and a title.

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
    # Two points near 0, so that a step there is drawn as one.
    z = np.sort(np.append(np.linspace(LOWEST, HIGHEST, 451), [-1e-9, 1e-9]))
    for loss, colour in with_colours(drawn):
        name = loss.name.replace("zero_one", "zero-one").replace("_", " ")
        ax.plot(z, loss.value(z), color=colour, linewidth=1.8, label=name)
    label_axes(ax, title, "margin z = y x", "loss", grid="both")
    ax.set_xlim(LOWEST, HIGHEST)
    ax.set_ylim(bottom=0)
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
