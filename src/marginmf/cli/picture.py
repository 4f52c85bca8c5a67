"""The pictures that commands draw."""

from pathlib import Path
from typing import TYPE_CHECKING

from marginmf import plots
from marginmf._utils.files import atomic_write
from marginmf._utils.types import Float64Array
from marginmf.cli.comparison import Trial
from marginmf.plots.style import new_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DRAWN = ("MMMF", "PMMMF", "HMF")


def draw(trials: dict[str, Trial], true: Float64Array, path: Path) -> None:
    """Draw training curves beside HMF's confusion of levels, and write the file whole."""
    figure = new_figure(11, 4.5)
    left, right = figure.subplots(1, 2)
    fitted = {name: trials[name].model for name in DRAWN}
    plots.training_curves(fitted, left, title="How the fits went")
    plots.level_confusion(
        true,
        trials["HMF"].predicted,
        fitted["HMF"].levels_,
        right,
        title="What HMF predicts for held-out ratings",
    )
    save_figure(figure, path)


def save_figure(figure: "Figure", path: Path) -> None:
    """Write a figure whole, in the form that the ending of the name says."""
    with atomic_write(path) as file:
        figure.savefig(file, format=path.suffix.lower().removeprefix("."))
