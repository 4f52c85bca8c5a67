"""Small tables in place of the thesis's, for the commands that measure those again."""

import pytest

from studies.harness import Cell, Store
from studies.harness.markdown import Block, Table, Verdict
from studies.thesis import exhibit
from studies.thesis.exhibit import Exhibit, Scale
from studies.thesis.measures import make_recipe


def small_cells(scale: Scale) -> list[Cell]:
    """Return errors of the biases of users and items, on ratings made up in a moment."""
    fixed = {"data": make_recipe(40, 2, 0.5, seed=0), "protocol": {"name": "weak"}}
    fixed |= {"method": "Biases", "params": {}}
    splits = range(2 if scale == "quick" else 4)
    return [Cell("rating_errors", {**fixed, "split": split}) for split in splits]


class Small(Exhibit):
    name, chapter, kind, title = "nmae", 3, "table", "Errors of a few splits"

    def cells(self, scale: Scale) -> list[Cell]:
        return small_cells(scale)

    def blocks(self, store: Store, scale: Scale) -> list[Block]:
        found = [store.values(cell) for cell in small_cells(scale)]
        rows = [(str(split), f"{one['test']['mae']:.4f}") for split, one in enumerate(found) if one]
        return [Verdict("within noise", "They are near."), Table(("split", "MAE"), rows)]


class Missing(Exhibit):
    """Cells of data that nobody has."""

    name, chapter, kind, title = "ranks", 4, "table", "Errors on lost data"

    def cells(self, scale: Scale) -> list[Cell]:
        fixed = {"data": "no such data", "protocol": {"name": "weak"}, "method": "Biases"}
        return [Cell("rating_errors", {**fixed, "params": {}, "split": k}) for k in range(3)]

    def blocks(self, store: Store, scale: Scale) -> list[Block]:
        return []


class Broken(Exhibit):
    name, chapter, title = "losses", 5, "A figure whose code is wrong"

    def blocks(self, store: Store, scale: Scale) -> list[Block]:
        raise KeyError("a column")


SMALL, MISSING, BROKEN = Small(), Missing(), Broken()


def install(monkeypatch: pytest.MonkeyPatch, *exhibits: Exhibit) -> None:
    """Let these be all the tables and figures."""
    monkeypatch.setattr(exhibit, "MODULES", ("made up",))
    monkeypatch.setattr(exhibit, "_load", lambda module: exhibits)
