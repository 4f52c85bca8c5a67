"""Exhibits made up for tests: every kind of block, many cells, and one that fails."""

import math
from collections.abc import Sequence

from marginmf.experiments import Cell, Exhibit, Store
from marginmf.experiments.blocks import Block, Details, Entry, Figure, Table, Text, Verdict
from marginmf.experiments.exhibit import Scale

METHODS = ("HMF", "PMMMF", "MMMF", "BMMMF", "E-MMMF", "PMF", "ALS", "Biases")
DATA = ("ml-100k", "ml-1m", "made up")


def cells_of(scale: Scale) -> list[Cell]:
    """Return the cells of the wide table."""
    return [
        Cell("sample_measures:errors", {"data": data, "method": method, "split": split})
        for data in DATA
        for method in METHODS
        for split in range(3 if scale == "full" else 1)
    ]


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
                else Entry(f"{place / 1000:.4f}", faint=True)
                for place in range(2 * len(METHODS))
            ),
        )
        for data in DATA
    ]
    notes = ("* differs from `HMF` at the level 0.05 (Wilcoxon, Holm).", "Best in bold.")
    return Table(headings, rows, "Mean absolute error of `20` splits", notes=notes)


def table_of_two_names() -> Table:
    """Return a table whose rows have two names, the first of which repeats."""
    measures = ("accuracy", "Hamming", "F1", "macro F1", "micro F1", "coverage")
    rows = [
        (data, method, *("0.123 ± 0.004" for _ in measures)) for data in DATA for method in METHODS
    ]
    return Table(("data", "method", *measures), rows, "Six measures", words=2)


def show_all(store: Store, scale: Scale) -> list[Block]:
    """Return every kind of block."""
    return [
        Verdict("reproduced", "All 24 differences have the sign that the thesis prints."),
        Text("One rating of every user is held out (`weak`), three times; seeds 1 to 3."),
        wide_table(),
        Figure(draw, "How the objective falls, and which labels go together.", "Four curves fall."),
        Details(
            "Figures of `every` split", [Text("As above."), wide_table(), Figure(draw, "Again.")]
        ),
        Text("Names are <i>escaped</i>: a|b & c_d *e* [f](g) <script>alert(1)</script>"),
    ]


def show_near(store: Store, scale: Scale) -> list[Block]:
    rows = [
        (name, Entry(f"{rank:.2f}", best=rank == 1.5))
        for name, rank in zip(METHODS, (1.5, 2.25, 3), strict=False)
    ]
    return [
        Verdict(
            "within noise", "Two of three ranks agree; the third differs by less than one s.d."
        ),
        Table(("method", "average rank"), rows, "Average ranks"),
        table_of_two_names(),
        Figure(draw, "The same drawing, whose ids must not clash."),
    ]


def show_other(store: Store, scale: Scale) -> list[Block]:
    return [
        Verdict(
            "not reproduced",
            "The thesis prints 0.3500, and we find 0.4130 with the protocol it gives.",
        ),
        Text("A long word: " + "abcdefghij" * 30),
        Figure(fail, "A figure that cannot be drawn"),
    ]


def none(scale: Scale) -> list[Cell]:
    return []


def nothing(store: Store, scale: Scale) -> list[Block]:
    return []


def other_cells(scale: Scale) -> list[Cell]:
    return [
        Cell("sample_measures:errors", {"data": "eachmovie", "split": split}) for split in range(40)
    ]


EVERYTHING = Exhibit(
    "nmae", 3, "table", "Errors of all methods on three sets of ratings", cells_of, show_all
)
NEAR = Exhibit("ranks", 3, "figure", "Average ranks", none, show_near)
OTHER = Exhibit("trade-off", 4, "figure", "Margins against errors", none, show_other)
MISSING = Exhibit("errors", 4, "table", "Errors that were never measured", other_cells, nothing)
BROKEN = Exhibit("groups", 6, "figure", "A figure whose code is wrong", none, fail)
EXHIBITS = [EVERYTHING, NEAR, OTHER, MISSING, BROKEN]
