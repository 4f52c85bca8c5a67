"""Exhibits made up for tests: every kind of block, many cells, and one that fails."""

import math
from collections.abc import Sequence

from studies.harness import Cell, Store
from studies.harness.markdown import Block, Details, Entry, Figure, Table, Text, Verdict
from studies.thesis.exhibit import Exhibit, Scale

METHODS = ("HMF", "PMMMF", "MMMF", "BMMMF", "E-MMMF", "PMF", "ALS", "Biases")
DATA = ("ml-100k", "ml-1m", "made up")


def fill(store: Store, cells: Sequence[Cell], scale: str = "full") -> None:
    """Put made-up findings of the cells into a store."""
    store.begin(scale)
    for number, cell in enumerate(cells):
        store.add(cell, {"mae": 0.4 + number / 1000, "fit_seconds": 0.1}, seconds=1.5)


def draw():
    from matplotlib.figure import Figure as Drawing

    figure = Drawing(figsize=(8, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    steps = range(40)
    for place, method in enumerate(METHODS[:4]):
        left.plot(steps, [math.exp(-step / (5 + 3 * place)) for step in steps], label=method)
    left.set_xlabel("iterations")
    left.set_ylabel(r"objective, $\lambda = 10^{-2}$")
    left.legend(frameon=False)
    right.imshow([[(row * column) % 7 for column in range(12)] for row in range(8)], aspect="auto")
    right.set_title("groups < labels & “more”")
    return figure


def fail(*given: object):
    raise RuntimeError("the data <b>are</b> not `there` | today")


def wide_table() -> Table:
    """Return a table of which a telephone shows a quarter."""
    headings = ("data", *(f"{method} {what}" for method in METHODS for what in ("MAE", "± s.d.")))
    rows = [
        (
            data,
            *(
                Entry(f"{0.4 + place / 100:.4f}", best=place == 2, mark="*" if place == 4 else "")
                if place % 2 == 0
                else Entry(f"{place / 1000:.4f}")
                for place in range(2 * len(METHODS))
            ),
        )
        for data in DATA
    ]
    notes = ("* differs from `HMF` at the level 0.05 (Wilcoxon, Holm).", "Best in bold.")
    return Table(headings, rows, "Mean absolute error of `20` splits", notes=notes)


class Everything(Exhibit):
    """Every kind of block."""

    name, chapter, kind = "nmae", 3, "table"
    title = "Errors of all methods on three sets of ratings"

    def cells(self, scale: Scale) -> list[Cell]:
        return [
            Cell("sample_measures:errors", {"data": data, "method": method, "split": split})
            for data in DATA
            for method in METHODS
            for split in range(3 if scale == "full" else 1)
        ]

    def blocks(self, store: Store, scale: Scale) -> list[Block]:
        return [
            Verdict("reproduced", "All 24 differences have the sign that the thesis prints."),
            Text("One rating of every user is held out (`weak`), three times; seeds 1 to 3."),
            wide_table(),
            Figure(draw, "How the objective falls, and which labels match.", "Four curves fall."),
            Details(
                "Figures of `every` split",
                [Text("As above."), wide_table(), Figure(draw, "Again.")],
            ),
            Text("Names are <i>escaped</i>: a|b & c_d *e* [f](g) <script>alert(1)</script>"),
        ]


class Near(Exhibit):
    name, chapter, title = "ranks", 3, "Average ranks"

    def blocks(self, store: Store, scale: Scale) -> list[Block]:
        rows = [
            (name, Entry(f"{rank:.2f}", best=rank == 1.5))
            for name, rank in zip(METHODS, (1.5, 2.25, 3), strict=False)
        ]
        return [
            Verdict("within noise", "Two of three ranks agree; the third differs by little."),
            Table(("method", "average rank"), rows, "Average ranks"),
            Figure(draw, "The same drawing."),
        ]


class Other(Exhibit):
    name, chapter, title = "trade-off", 4, "Margins against errors"

    def blocks(self, store: Store, scale: Scale) -> list[Block]:
        why = "The thesis prints 0.3500, and we find 0.4130 with the protocol it gives."
        return [
            Verdict("not reproduced", why, "the protocol gives another figure"),
            Figure(fail, "A figure that cannot be drawn"),
        ]


class Missing(Exhibit):
    name, chapter, kind, title = "errors", 4, "table", "Errors that were never measured"

    def cells(self, scale: Scale) -> list[Cell]:
        data = {"data": "eachmovie"}
        return [Cell("sample_measures:errors", {**data, "split": split}) for split in range(40)]

    def blocks(self, store: Store, scale: Scale) -> list[Block]:
        return []


class Broken(Exhibit):
    name, chapter, title = "groups", 6, "A figure whose code is wrong"

    def blocks(self, store: Store, scale: Scale) -> list[Block]:
        return fail()


EVERYTHING, NEAR, MISSING = Everything(), Near(), Missing()
EXHIBITS = [EVERYTHING, NEAR, Other(), MISSING, Broken()]
