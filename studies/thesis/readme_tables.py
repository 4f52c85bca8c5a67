"""Write the figures of results/ beside those of the thesis into README.md.

Tables stand between ``<!-- begin NAME -->`` and ``<!-- end NAME -->``.  Before, run
``python -m studies thesis run --all``.
"""

from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterator
from itertools import product
from pathlib import Path

from studies.harness import Store
from studies.harness.markdown import Verdict, fill_page, make_table
from studies.thesis import chapter5, chapter6
from studies.thesis.chapter3_errors import NMAE
from studies.thesis.chapter4 import MAE_RMSE
from studies.thesis.exhibit import cells_of, exhibits
from studies.thesis.published import PublishedFigure, published
from studies.thesis.samples import OUTCOMES, Sample, find_sample, pick

PAGE, RESULTS = Path("README.md"), Path("results")
#: The label sets that the README shows, by table.
LABELS = ((chapter5.TABLE, ("emotions", "medical")), (chapter6.TABLE, ("medical", "bibtex")))


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder with the cells")


def main(args: Namespace) -> None:
    PAGE.write_text(fill_page(PAGE.read_text(), tables(Store(args.results))))


def tables(store: Store) -> dict[str, str]:
    """Return the tables of the README by the names of their marks."""
    heads = ["data, protocol, metric", "method", "here", "thesis"]
    rows = [*_rating_rows(store), *_label_rows(store)]
    return {
        "thesis: verdicts": _describe_verdicts(store),
        "thesis: main": make_table(heads, rows, words=4),
    }


def _describe_verdicts(store: Store) -> str:
    every = exhibits()
    first = [block for one in every for block in one.show(store, "full")[:1]]
    counts = Counter(block.outcome for block in first if isinstance(block, Verdict))
    words = ", ".join(f"{counts[one]} {one}" for one in OUTCOMES if counts[one])
    cells = cells_of(every, "full")
    n_run = sum(store.values(cell) is not None for cell in cells)
    some = f"{n_run:,}" if n_run == len(cells) else f"{n_run:,} of {len(cells):,}"
    what = f"{len(every)} tables and figures of the thesis"
    return f"{what}, from {some} measurements: {words}."


def _rating_rows(store: Store) -> Iterator[list[str]]:
    for protocol, method in product(NMAE.protocols, ("HMF", "MMMF")):
        cells = NMAE.cells_at("full", "ml-1m", protocol, method)
        there = published("nmae").at(protocol, NMAE.sources["ml-1m"][1] or "", method)
        ours = find_sample(store, cells, NMAE.pick)
        yield [f"MovieLens 1M, {protocol}, NMAE", method, *_figures(ours, there)]
    for method in ("PMMMF", "MMMF"):
        cells = MAE_RMSE.cells_at("full", method)
        there = published("mae-rmse").at("mae", MAE_RMSE.data, method)
        ours = find_sample(store, cells, pick("test", "mae"))
        yield ["MovieLens 100K, 80/20, MAE", method, *_figures(ours, there)]


def _label_rows(store: Store) -> Iterator[list[str]]:
    for table, names in LABELS:
        for name in names:
            ours = table.sample(store, "full", "accuracy", name, table.own)
            there = table.published.at("accuracy", name, table.own)
            yield [f"{name}, {table.n_folds} folds, accuracy", table.own, *_figures(ours, there, 3)]


def _figures(ours: Sample | None, there: PublishedFigure | None, digits: int = 4) -> list[str]:
    here = "" if ours is None else f"{ours.mean:.{digits}f} ± {ours.spread:.{digits}f}"
    return [here, f"{there.mean:.{digits}f}" if there else ""]
