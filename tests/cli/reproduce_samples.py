"""Small tables in place of the thesis's, for the commands that measure those again."""

import pytest

from marginmf.experiments import Cell, Exhibit, Store
from marginmf.experiments.blocks import Block, Table, Verdict
from marginmf.experiments.data import made
from marginmf.experiments.exhibit import Scale


def small_cells(scale: Scale) -> list[Cell]:
    """Return errors of the biases of users and items, on ratings made up in a moment."""
    data = made(40, 2, 0.5, seed=0)
    fixed = {"data": data, "protocol": {"name": "weak"}, "method": "Biases", "params": {}}
    splits = range(2 if scale == "quick" else 4)
    return [Cell("rating_errors", {**fixed, "split": split}) for split in splits]


def missing_cells(scale: Scale) -> list[Cell]:
    """Return cells of data that nobody has."""
    fixed = {"data": "no such data", "protocol": {"name": "weak"}, "method": "Biases", "params": {}}
    return [Cell("rating_errors", {**fixed, "split": split}) for split in range(3)]


def show_small(store: Store, scale: Scale) -> list[Block]:
    found = [store.values(cell) for cell in small_cells(scale)]
    rows = [(str(split), f"{one['test']['mae']:.4f}") for split, one in enumerate(found) if one]
    return [Verdict("within noise", "They are near."), Table(("split", "MAE"), rows)]


def show_nothing(store: Store, scale: Scale) -> list[Block]:
    return []


def show_broken(store: Store, scale: Scale) -> list[Block]:
    raise KeyError("a column")


def nothing(scale: Scale) -> list[Cell]:
    return []


SMALL = Exhibit("nmae", 3, "table", "Errors of a few splits", small_cells, show_small)
MISSING = Exhibit("ranks", 4, "table", "Errors on lost data", missing_cells, show_nothing)
BROKEN = Exhibit("losses", 5, "figure", "A figure whose code is wrong", nothing, show_broken)


def install(monkeypatch: pytest.MonkeyPatch, *exhibits: Exhibit) -> None:
    """Let these be all the tables and figures that there are."""
    monkeypatch.setattr("marginmf.experiments.exhibit.MODULES", exhibits)
    monkeypatch.setattr("marginmf.experiments.exhibit._load", lambda exhibit: exhibit)
