"""Seconds, memory and accuracy of label methods, beside scikit-learn's and scikit-multilearn's.

Sections: ``bibtex`` has all methods on one data set; ``large`` has our tree and our groups on the
data sets that they take longest for; ``memory`` has wide and long data that must fit.
"""

from argparse import ArgumentParser, Namespace

from marginmf.metrics import metric
from studies.harness.markdown import publish
from studies.peers import comparison
from studies.peers.bench import Task, interleave
from studies.peers.comparison import FIT_CPU, FIT_WALL, IMPORT, PEAK, PREDICT, error_column
from studies.peers.methods import GROPLE, GROPLE_SIGN, LABELS, MLCHMF, MLCHMF_SIGN
from studies.peers.problems import ALL_ROWS, OWN_SPLIT

#: Methods, data and split.
SECTIONS = {
    "bibtex": [(LABELS, "bibtex", OWN_SPLIT)],
    "large": [
        ((MLCHMF_SIGN, MLCHMF), "yahoo-education", OWN_SPLIT),
        ((GROPLE_SIGN, GROPLE), "delicious", OWN_SPLIT),
    ],
    "memory": [
        ((GROPLE,), "rcv1subset1", ALL_ROWS),
        ((GROPLE_SIGN, GROPLE), "1,000,000 x 5,000 x 500", ALL_ROWS),
    ],
}
ERRORS = ("accuracy", "hamming", "micro_f1", "macro_f1")
COLUMNS = [
    *(FIT_WALL, FIT_CPU, PREDICT),
    *(error_column(metric(name).heading, name) for name in ERRORS),
    *(PEAK, IMPORT),
]


def add_arguments(parser: ArgumentParser) -> None:
    comparison.add_peer_arguments(parser, LABELS)


def main(args: Namespace) -> None:
    if args.quick:
        args.sections, args.repeats = ["bibtex"], 1
    wanted, cells = comparison.choose_methods([*LABELS, MLCHMF], args), []
    for methods, data, split in (one for name in args.sections for one in SECTIONS[name]):
        chosen = [method for method in methods if method in wanted]
        task = Task("labels", data, split, order="file")
        cells += interleave(chosen, [task], args.threads, args.repeats)
    rows, machine = comparison.compare(args, "labels", cells)
    tables = comparison.split_tables(rows, lambda own: COLUMNS)
    publish(args.out / "labels.md", [*tables, *machine])
