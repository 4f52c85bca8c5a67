"""Write the figures of results/ beside those of the thesis into README.md.

Tables stand between ``<!-- begin NAME -->`` and ``<!-- end NAME -->``.  Before, run
``python -m studies thesis run --all``.
"""

from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from marginmf.metrics import metric
from studies.harness import Store
from studies.harness.markdown import Verdict, fill_page, make_table
from studies.thesis import chapter5, chapter6
from studies.thesis.chapter3_errors import NMAE
from studies.thesis.chapter4 import MAE_RMSE
from studies.thesis.exhibit import cells_of, exhibits
from studies.thesis.label_tables import LabelTable
from studies.thesis.published import PublishedFigure, published
from studies.thesis.samples import Sample, find_sample, pick

PAGE, RESULTS = Path("README.md"), Path("results")


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder with the cells")


def main(args: Namespace) -> None:
    PAGE.write_text(fill_page(PAGE.read_text(), tables(Store(args.results))))


def tables(store: Store) -> dict[str, str]:
    """Return the tables of the README by the names of their marks."""
    ratings = ["data, protocol, measure", "method", "here", "thesis"]
    labels = ["data set", "MLCHMF, sign", "thesis", "GroPLE, one threshold", "thesis"]
    return {
        "thesis: verdicts": _describe_verdicts(store),
        "thesis: ratings": make_table(ratings, _rating_rows(store), words=4),
        "thesis: labels": make_table(labels, _label_rows(store), words=5),
    }


def _describe_verdicts(store: Store) -> str:
    every = exhibits()
    first = [block for one in every for block in one.show(store, "full")[:1]]
    counts = Counter(block.outcome for block in first if isinstance(block, Verdict))
    words = ", ".join(f"{count} {outcome}" for outcome, count in counts.most_common())
    n_cells = len(cells_of(every, "full"))
    return f"All {len(every)} of them, from {n_cells:,} measurements: {words}."


def _rating_rows(store: Store) -> Iterator[list[str]]:
    for data, title in (("ml-1m", "MovieLens 1M"), ("eachmovie-sample", "EachMovie, a sample")):
        for protocol in NMAE.protocols:
            what = f"{title}, {protocol}, NMAE"
            for method in ("HMF", "MMMF", "E-MMMF"):
                cells = NMAE.cells_at("full", data, protocol, method)
                there = published("nmae").at(protocol, NMAE.sources[data][1] or "", method)
                yield [what, method, *_figures(find_sample(store, cells, NMAE.pick), there)]
                what = ""
    for name in MAE_RMSE.measures:
        what = f"MovieLens 100K, 80/20, training MAE 0.07 to 0.09, test {metric(name).heading}"
        for method in ("PMMMF", "MMMF", "ALS"):
            cells = MAE_RMSE.cells_at("full", method)
            there = published("mae-rmse").at(name, MAE_RMSE.data, method)
            yield [what, method, *_figures(find_sample(store, cells, pick("test", name)), there)]
            what = ""


def _label_rows(store: Store) -> Iterator[list[str]]:
    both = (chapter5.TABLE, chapter6.TABLE)
    for name in dict.fromkeys(name for table in both for name in table.data):
        figures = [_accuracy(table, store, name) for table in both]
        if any(here for here, _ in figures):  # without the sets that have not been run
            yield [name, *(text for pair in figures for text in pair)]


def _accuracy(table: LabelTable, store: Store, name: str) -> tuple[str, str]:
    if table.data.get(name) is None:
        return "", ""
    ours = table.sample(store, "full", "accuracy", name, table.own)
    whole = ours is not None and len(ours.values) == table.n_folds  # of some folds is no figure
    there = table.published.at("accuracy", name, table.own)
    return _format(ours if whole else None, 3), f"{there.mean:.3f}" if there else ""


def _figures(ours: Sample | None, there: PublishedFigure | None) -> tuple[str, str]:
    return _format(ours, 4), f"{there.mean:.4f} ± {there.std:.4f}" if there else ""


def _format(sample: Sample | None, digits: int) -> str:
    return "" if sample is None else f"{sample.mean:.{digits}f} ± {sample.spread:.{digits}f}"
