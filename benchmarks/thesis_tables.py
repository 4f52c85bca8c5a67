"""Write the figures of results/ beside those of the thesis into README.md.

Tables stand between ``<!-- begin NAME -->`` and ``<!-- end NAME -->``.  Before, run
``marginmf reproduce run --all --out results``.
"""

from argparse import ArgumentParser, Namespace
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from benchmarks.performance_page import filled
from marginmf.experiments import Store, exhibits
from marginmf.experiments.blocks import Verdict
from marginmf.experiments.chapter3 import nmae
from marginmf.experiments.chapter4 import errors
from marginmf.experiments.chapter5.contenders import TABLE as MLC_HMF
from marginmf.experiments.chapter6.contenders import TABLE as GROPLE
from marginmf.experiments.label_tables import LabelTable
from marginmf.experiments.published import PublishedFigure, published
from marginmf.experiments.running import cells_of
from marginmf.experiments.samples import Sample, at, sampled

PAGE, RESULTS = Path("README.md"), Path("results")


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument("--results", type=Path, default=RESULTS, help="folder with the cells")


def main(args: Namespace) -> None:
    """Replace the tables."""
    PAGE.write_text(filled(PAGE.read_text(), tables(Store(args.results))))


def tables(store: Store) -> dict[str, str]:
    """Return the tables of the README by the names of their marks."""
    return {
        "thesis: verdicts": _verdicts(store),
        "thesis: ratings": "\n".join(_ratings(store)),
        "thesis: labels": "\n".join(_labels(store)),
    }


def _verdicts(store: Store) -> str:
    every = exhibits()
    first = [block for one in every for block in one.show(store, "full")[:1]]
    counts = Counter(block.outcome for block in first if isinstance(block, Verdict))
    words = ", ".join(f"{count} {outcome}" for outcome, count in counts.most_common())
    n_cells = len(cells_of(every, "full"))
    return f"All {len(every)} of them, from {n_cells:,} measurements: {words}."


def _ratings(store: Store) -> Iterator[str]:
    yield "| data, protocol, measure | method | here | thesis |"
    yield "|---|---|---|---|"
    for data, title in (("ml-1m", "MovieLens 1M"), ("eachmovie-sample", "EachMovie, a sample")):
        for protocol in nmae.PROTOCOLS:
            place = f"{title}, {protocol}, NMAE"
            for method in ("HMF", "MMMF", "E-MMMF"):
                cells = nmae.cells_for(data, protocol, method, "full")
                there = published("nmae").at(protocol, nmae.DATA[data][1] or "", method)
                yield _row(place, method, sampled(store, cells, nmae.NMAE), there)
                place = ""
    for name in errors.MEASURES:
        place = f"MovieLens 100K, 80/20, training MAE 0.07 to 0.09, test {name.upper()}"
        for method in ("PMMMF", "MMMF", "ALS"):
            cells = errors.cells_for(method, "full")
            there = published("mae-rmse").at(name, "MovieLens 100K", method)
            yield _row(place, method, sampled(store, cells, at("test", name)), there)
            place = ""


def _labels(store: Store) -> Iterator[str]:
    tree, groups = "MLCHMF, sign", "GroPLE, one threshold"
    yield f"| data set | {tree} | thesis | {groups} | thesis |"
    yield "|---|---|---|---|---|"
    for name in dict.fromkeys([*MLC_HMF.data, *GROPLE.data]):
        cells = [_pair(MLC_HMF, store, name), _pair(GROPLE, store, name)]
        if any(here for here, _ in cells):  # what has not been run is not there
            yield f"| {name} | " + " | ".join(f"{here} | {there}" for here, there in cells) + " |"


def _pair(table: LabelTable, store: Store, name: str) -> tuple[str, str]:
    if table.data.get(name) is None:
        return "", ""
    ours = table.sample(store, "accuracy", name, table.own, "full")
    if ours is not None and len(ours.values) < table.n_folds:  # a mean of some folds is no figure
        ours = None
    there = table.published.at("accuracy", name, table.own)
    return _figure(ours, 3), f"{there.mean:.3f}" if there else ""


def _row(place: str, method: str, ours: Sample | None, there: PublishedFigure | None) -> str:
    printed = f"{there.mean:.4f} ± {there.std:.4f}" if there else ""
    return f"| {place} | {method} | {_figure(ours, 4)} | {printed} |"


def _figure(sample: Sample | None, places: int) -> str:
    return "" if sample is None else f"{sample.mean:.{places}f} ± {sample.spread:.{places}f}"
