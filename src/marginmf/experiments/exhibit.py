"""An exhibit: one table or figure of the thesis, the cells it needs, and how it is shown."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Literal

from marginmf.experiments.blocks import Block
from marginmf.experiments.cell import Cell
from marginmf.experiments.store import Store

#: Quick: a coarse version in minutes.  Full: what the figures are quoted from.
Scale = Literal["quick", "full"]


@dataclass(frozen=True)
class Exhibit:
    """A table or a figure.

    Parameters
    ----------
    name : str
        What it is asked for by.
    chapter : int
        The chapter of the thesis.
    kind : {"table", "figure"}
        What it is.
    title : str
        What it shows, in a few words.
    cells : callable
        From the scale to the cells that it needs.  Cells that several exhibits need are run once.
    show : callable
        From a `Store` and the scale to the blocks of its section in the report.  Cells may be
        missing.
    """

    name: str
    chapter: int
    kind: Literal["table", "figure"]
    title: str
    cells: Callable[[Scale], Sequence[Cell]]
    show: Callable[[Store, Scale], Sequence[Block]]


#: The modules, in the order of the thesis; each has an ``EXHIBIT``.
MODULES = (
    "chapter3.losses",
    "chapter3.two_levels",
    "chapter3.convergence",
    "chapter3.margins",
    "chapter3.worked_example",
    "chapter3.validation",
    "chapter3.nmae",
    "chapter3.ranks",
    "chapter3.training_error",
    "chapter3.running_time",
    "chapter3.recovery",
    "chapter4.proximity",
    "chapter4.trade_off",
    "chapter4.errors",
    "chapter5.training_size",
    "chapter5.label_sets",
    "chapter5.f1",
    "chapter5.friedman",
    "chapter5.critical_difference",
    "chapter6.groups",
    "chapter6.sensitivity",
    "chapter6.groups_and_rank",
    "chapter6.measures",
    "chapter6.friedman",
    "chapter6.critical_difference",
)


def exhibits(names: Sequence[str] = ()) -> list[Exhibit]:
    """Return the exhibits of these names, or all of them, in the order of the thesis.

    >>> [one.name for one in exhibits(["nmae"])]
    ['nmae']
    """
    known = {one.name: one for one in map(_load, MODULES)}
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(
            f"There is no table or figure {unknown[0]!r}; the known ones are {', '.join(known)}."
        )
    return [one for name, one in known.items() if not names or name in names]


def _load(module: str) -> Exhibit:
    exhibit: Exhibit = import_module(f"marginmf.experiments.{module}").EXHIBIT
    return exhibit
