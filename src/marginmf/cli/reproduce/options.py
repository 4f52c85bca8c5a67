"""Options that the commands of ``marginmf reproduce`` share."""

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from marginmf.experiments import Exhibit, Store
    from marginmf.experiments.exhibit import Scale

Names = Annotated[
    list[str] | None,
    typer.Argument(metavar="NAME", help="Tables and figures.", show_default=False),
]


@dataclass(frozen=True)
class PlaceOptions:
    """Where everything that was measured is kept."""

    out: Annotated[
        Path, typer.Option("--out", metavar="FOLDER", help="Where what was measured is kept.")
    ] = Path("reproduction")

    def opened(self) -> "Store":
        """Return what is in the folder, which may be nothing yet."""
        from marginmf.experiments import Store

        return Store(self.out)

    def filled(self) -> "Store":
        """Return what is in the folder, which must be something."""
        store = self.opened()
        if not store.runs:
            raise ValueError(
                f"Nothing has been run in {self.out}; begin with marginmf reproduce run --all "
                "--quick, or name another folder with --out."
            )
        return store


@dataclass(frozen=True)
class ScaleOptions(PlaceOptions):
    """That, and how much of it is asked for."""

    quick: Annotated[
        bool, typer.Option("--quick", help="A coarse version, in minutes rather than hours.")
    ] = False


def named(names: list[str] | None) -> "list[Exhibit]":
    """Return the exhibits of these names, or all."""
    from marginmf import experiments

    return experiments.exhibits(names or [])


def count(number: int, noun: str) -> str:
    """Write a number of things.

    >>> count(1, "cell"), count(1200, "cell")
    ('1 cell', '1,200 cells')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def scale_of(store: "Store", quick: bool) -> "Scale":
    """Return the scale to report: full, unless quick is asked for or all that there is."""
    scales = {run["scale"] for run in store.runs.values()}
    return "quick" if quick or scales == {"quick"} else "full"
