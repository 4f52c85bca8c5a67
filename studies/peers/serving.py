"""Seconds and memory for the ten best unseen items of every user, beside peers.

Every measurement is a process of its own: it fits with 100 factors and few iterations, makes all
lists once without being watched, and then once more.  The lists are checked: as long as asked,
and nothing in them that the user has rated.
"""

from argparse import ArgumentParser, Namespace
from operator import methodcaller

from studies.harness.markdown import publish
from studies.peers import comparison
from studies.peers.bench import Task, interleave
from studies.peers.comparison import Column, Row, times_column
from studies.peers.methods import SERVING


def add_arguments(parser: ArgumentParser) -> None:
    comparison.add_peer_arguments(parser, SERVING, threads=2)
    parser.add_argument("--data", default="ml-1m")
    parser.add_argument("--n", type=int, default=10, help="the length of the lists")
    parser.add_argument("--baseline", default="implicit ALS", help="what others are compared with")


def main(args: Namespace) -> None:
    if args.quick:
        args.data, args.repeats = "ml-100k", 1
    task = Task("serving", args.data, f"top {args.n}", rounds=2)
    methods = comparison.choose_methods(SERVING, args)
    cells = interleave(methods, [task], args.threads, args.repeats)
    rows, machine = comparison.compare(args, "serving", cells)
    tables = comparison.split_tables(rows, lambda own: make_columns(own, args.baseline))
    publish(args.out / "serving.md", [*tables, *machine])


def make_columns(rows: list[Row], baseline: str) -> list[Column]:
    columns: list[Column] = []
    for heading, clock in (("seconds", "wall"), ("CPU seconds", "cpu")):
        answer = methodcaller("seconds", clock, "answer")
        times = times_column(rows, baseline, lambda row, answer=answer: answer(row).median)
        columns += [(heading, answer), times]
    return [*columns, comparison.PEAK]
