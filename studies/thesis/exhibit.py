"""An exhibit: one table or figure of the thesis, the cells it needs, and how it is shown."""

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from itertools import product
from typing import Any, Literal

from studies.harness import Cell, Store
from studies.harness.markdown import Block, Verdict
from studies.thesis.samples import NotRunError, Pick, Sample, require_sample

#: Quick: a coarse version in minutes.  Full: what the figures are quoted from.
Scale = Literal["quick", "full"]

#: In the order of the thesis; each has ``EXHIBITS``.
MODULES = (
    "chapter3_examples",
    "chapter3_errors",
    "chapter3_sizes",
    "chapter4",
    "chapter5",
    "chapter6",
)


class Exhibit:
    """A table or a figure: subclasses say which cells it needs, and make blocks of them.

    Most need cells at the points of a grid: they have `axes` and override `cells_at`.
    """

    #: What it is asked for by, its chapter of the thesis, what it is, and what it shows.
    name: str
    chapter: int
    kind: Literal["table", "figure"] = "figure"
    title: str
    #: The values along each axis of the grid.
    axes: Mapping[Scale, Sequence[Sequence[Any]]] = {}
    #: How many cells there are at each point, unless it says otherwise.
    n_splits: Mapping[Scale, int] = {"quick": 1, "full": 3}

    def points(self, scale: Scale) -> Iterable[tuple[Any, ...]]:
        return product(*self.axes[scale]) if self.axes else ()

    def cells_at(self, scale: Scale, *point: Any) -> list[Cell]:
        """Return the cells of one point, which are repetitions of each other."""
        raise NotImplementedError

    def cells(self, scale: Scale) -> list[Cell]:
        """Return all cells.  Those that several exhibits need are measured once."""
        return [cell for point in self.points(scale) for cell in self.cells_at(scale, *point)]

    def sample(self, store: Store, scale: Scale, pick: Pick, *point: Any) -> Sample:
        """Return what the cells of a point found; raise `NotRunError` if one was not run."""
        return require_sample(store, self.cells_at(scale, *point), pick)

    def blocks(self, store: Store, scale: Scale) -> Sequence[Block]:
        """Return its blocks, the verdict first; may raise `NotRunError` where a cell is missing."""
        raise NotImplementedError

    def show(self, store: Store, scale: Scale) -> Sequence[Block]:
        """Return the blocks, or a verdict that names the first cell that is missing."""
        try:
            return self.blocks(store, scale)
        except NotRunError as missing:
            return [Verdict("not run", str(missing))]


def exhibits(names: Sequence[str] = ()) -> list[Exhibit]:
    """Return the exhibits of these names, or all of them, in the order of the thesis."""
    known = {one.name: one for module in MODULES for one in _load(module)}
    for name in names:
        if name not in known:
            raise ValueError(
                f"There is no table or figure {name!r}; the known ones are {', '.join(known)}."
            )
    return [one for name, one in known.items() if not names or name in names]


def _load(module: str) -> Sequence[Exhibit]:
    return import_module(f"studies.thesis.{module}").EXHIBITS


def cells_of(exhibits: Iterable[Exhibit], scale: Scale) -> list[Cell]:
    """Return the cells that exhibits need, each once, in their order."""
    return list({cell.key: cell for one in exhibits for cell in one.cells(scale)}.values())
