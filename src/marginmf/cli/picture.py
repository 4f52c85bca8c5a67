"""The picture that the demo draws."""

import os
from pathlib import Path

from marginmf import plots
from marginmf._atomic import atomic_write
from marginmf._typing import Float64Array
from marginmf.cli.comparison import Comparison
from marginmf.plots.style import new_figure

FORMATS = (".png", ".svg", ".pdf")
DRAWN = ("MMMF", "PMMMF", "HMF")


def check_destination(path: Path) -> None:
    """Raise an error if no picture can be written there: better now than after the work."""
    if path.suffix.lower() not in FORMATS:
        raise ValueError(f"The picture {path} must end in one of {', '.join(FORMATS)}.")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; name a file for the picture.")
    folder = path.resolve().parent
    if not folder.is_dir():
        raise FileNotFoundError(
            f"There is no folder {folder} for the picture; make it, or name another with --picture."
        )
    if not os.access(folder, os.W_OK):
        raise PermissionError(
            f"The folder {folder} cannot be written to; name another with --picture."
        )


def draw(comparison: Comparison, true: Float64Array, path: Path) -> None:
    """Draw training curves beside HMF's confusion of levels, and write the file whole."""
    figure = new_figure(11, 4.5)
    left, right = figure.subplots(1, 2)
    fitted = {name: comparison.models[name] for name in DRAWN}
    plots.training_curves(fitted, left, title="How the fits went")
    plots.level_confusion(
        true,
        comparison.predicted["HMF"],
        fitted["HMF"].levels_,
        right,
        title="What HMF predicts for held-out ratings",
    )
    with atomic_write(path) as file:
        figure.savefig(file, format=path.suffix.lower().removeprefix("."))
