"""Seconds, memory and accuracy of label methods, beside scikit-learn's and scikit-multilearn's.

Sections: ``bibtex`` has all methods on one data set; ``large`` has our tree and our groups on the
data sets that they take longest for; ``memory`` has wide and long data that must fit.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.cells import interleaved
from benchmarks.harness import Arrays, Problem
from benchmarks.methods import GROPLE, GROPLE_SIGN, LABELS, MLCHMF, MLCHMF_SIGN, Method
from benchmarks.options import add_harness_arguments, chosen_methods, harness_of
from benchmarks.summaries import LEARNING, Row, megabytes, seconds, summarised
from benchmarks.tables import brief, by_place, method_table, number, publish
from marginmf.datasets import load_labels, make_labels
from marginmf.metrics import labels_report

#: Rows to warm up with.
TINY = 200
SPLIT, WHOLE = "the owner's split", "all rows"


@dataclass(frozen=True)
class Section:
    methods: Sequence[Method]
    places: Sequence[tuple[str, str]]


SECTIONS = {
    "bibtex": [Section(LABELS, [("bibtex", SPLIT)])],
    "large": [
        Section([MLCHMF_SIGN, MLCHMF], [("yahoo-education", SPLIT)]),
        Section([GROPLE_SIGN, GROPLE], [("delicious", SPLIT)]),
    ],
    "memory": [
        Section([GROPLE], [("rcv1subset1", WHOLE)]),
        Section([GROPLE_SIGN, GROPLE], [("1,000,000 x 5,000 x 500", WHOLE)]),
    ],
}


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=", ".join(SECTIONS))
    add_harness_arguments(parser, LABELS)


def main(args: Namespace) -> None:
    asked = args.sections or list(SECTIONS)
    unknown = [name for name in asked if name not in SECTIONS]
    if unknown:
        raise SystemExit(f"There is no section {unknown[0]!r}: {', '.join(SECTIONS)}.")
    if args.quick:
        asked, args.repeats = ["bibtex"], 1
    harness = harness_of(args, "labels", order="file")
    for name in asked:
        for section in SECTIONS[name]:
            methods = section.methods
            if section.methods is LABELS:
                methods = chosen_methods(methods, args)
            harness.run(
                interleaved(methods, section.places, args.threads, args.repeats), label_problem
            )
    tables = _tables(summarised(harness.store.records))
    publish(args.out / "labels.md", [*tables, harness.store.colophon()])


def _tables(rows: list[Row]) -> list[str]:
    columns = [
        ("prepare + fit, s", lambda r: brief(r.cost(seconds("wall", *LEARNING)))),
        ("prepare + fit, CPU s", lambda r: brief(r.cost(seconds("cpu", *LEARNING)))),
        ("predict, s", lambda r: brief(r.cost(seconds("wall", "answer")))),
        ("accuracy", lambda r: number(r.error("accuracy"))),
        ("Hamming loss", lambda r: number(r.error("hamming"))),
        ("micro F1", lambda r: number(r.error("micro_f1"))),
        ("macro F1", lambda r: number(r.error("macro_f1"))),
        ("peak MB", lambda r: f"{r.cost(megabytes).median:.0f}"),
        ("import, s", lambda r: f"{r.cost(seconds('wall', 'import')).median:.2f}"),
    ]
    return [f"{title}\n\n{method_table(own, columns)}" for title, own in by_place(rows)]


def label_problem(data: str, split: str, repetition: int) -> Problem:
    """Return the owner's split, or all rows to learn from and some of them to answer for."""
    if data[0].isdigit():
        n, features, labels = (int(part.replace(",", "")) for part in data.split(" x "))
        table = make_labels(n, features, labels, features_per_sample=50, random_state=0)
    else:
        table = load_labels(data)
    if split == SPLIT:
        train, test = table.train_idx, table.test_idx
    else:
        train, test = np.arange(table.n_samples), np.arange(500)
    true = table.Y[test]
    return Problem(
        {**_parts("X", table.X[train]), **_parts("Y", table.Y[train])},
        _parts("X", table.X[test]),
        {**_parts("X", table.X[train[:TINY]]), **_parts("Y", table.Y[train[:TINY]])},
        _parts("X", table.X[test[:TINY]]),
        lambda answers: labels_report(true, answers["labels"]),
    )


def _parts(name: str, matrix: Any) -> Arrays:
    """Return the arrays of a CSR matrix, under the names that adapters look for."""
    parts = {"data": matrix.data, "indices": matrix.indices, "indptr": matrix.indptr}
    parts["shape"] = np.array(matrix.shape)
    return {f"{name}_{part}": array for part, array in parts.items()}
