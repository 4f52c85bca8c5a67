"""How the objective fell while models were fitted."""

from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import TYPE_CHECKING, Any, Literal

from marginmf.plots.style import COLOURS, FAINT, INK, TICK_SIZE, axes_or_new, calm
from marginmf.solvers import Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes

History = Sequence[Record]


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
    ax : Axes, optional
        Where to draw; by default a new figure.
    against : {"iterations", "seconds"}
        What the horizontal axis counts.  Seconds of a stage count from the start of that stage.
    title : str, optional
        A title.

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
    if against not in ("iterations", "seconds"):
        raise ValueError(f"against={against!r} is not known. Choose 'iterations' or 'seconds'.")
    kept = {name: _stages(model) for name, model in models.items() if hasattr(model, "history_")}
    if not kept:
        raise ValueError(
            f"None of the models ({', '.join(models) or 'there are none'}) has a history to draw: "
            "fit at least one factoriser first."
        )
    ax = axes_or_new(ax)
    for (name, stages), colour in zip(kept.items(), cycle(COLOURS), strict=False):
        _draw(ax, name, stages, colour, against)
    calm(ax, title, against, "objective (start = 100%)")
    ax.yaxis.set_major_formatter("{x:.0%}")
    if against == "iterations":
        _whole_numbers(ax)
    ax.set_xlim(left=0)
    ax.grid(color=FAINT, linewidth=0.6)
    ax.legend(frameon=False, fontsize=TICK_SIZE, labelcolor=INK)
    return ax


def _stages(model: Any) -> list[History]:
    """Return one history for each stage; most models have a single stage."""
    history = model.history_
    return [history] if isinstance(history[0], Record) else list(history)


def _draw(ax: "Axes", name: str, stages: list[History], colour: str, against: str) -> None:
    single = len(stages) == 1
    for number, history in enumerate(stages):
        label = name if single else f"{name} ({len(stages)} stages)"
        ax.plot(
            [record.iteration if against == "iterations" else record.seconds for record in history],
            [record.objective / history[0].objective for record in history],
            color=colour,
            linewidth=2.2 if single else 1.3,
            # A dot where the solver stopped.
            marker="o",
            markersize=4,
            markevery=[-1],
            # Matplotlib leaves labels that begin with an underscore out of the legend.
            label=label if number == 0 else f"_{label}",
        )


def _whole_numbers(ax: "Axes") -> None:
    from matplotlib.ticker import MaxNLocator

    ax.xaxis.set_major_locator(MaxNLocator("auto", integer=True))
