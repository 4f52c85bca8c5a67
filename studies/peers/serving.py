"""Seconds and memory for the ten best unseen items of every user, beside peers.

Every measurement is a process of its own: it fits with 100 factors and few iterations, makes all
lists once without being watched, and then once more.  The lists are checked: as long as asked,
and nothing in them that the user has rated.
"""

from argparse import ArgumentParser, Namespace

from studies.harness.markdown import publish
from studies.peers.bench import Task, interleave, newest_records
from studies.peers.comparison import (
    PEAK,
    Column,
    Row,
    add_peer_arguments,
    choose_methods,
    describe_machine,
    measure,
    open_store,
    split_tables,
    summarise,
    times_column,
)
from studies.peers.methods import SERVING


def add_arguments(parser: ArgumentParser) -> None:
    add_peer_arguments(parser, SERVING, threads=2)
    parser.add_argument("--data", default="ml-1m")
    parser.add_argument("--n", type=int, default=10, help="the length of the lists")
    parser.add_argument("--baseline", default="implicit ALS", help="what others are compared with")


def main(args: Namespace) -> None:
    if args.quick:
        args.data, args.repeats = "ml-100k", 1
    store = open_store(args, "serving", SERVING)
    if args.markdown:
        records, machine = newest_records(store, "serving"), []
    else:
        task = Task("serving", args.data, f"top {args.n}", rounds=2)
        methods = choose_methods(SERVING, args)
        records = measure(args, store, interleave(methods, [task], args.threads, args.repeats))
        machine = [describe_machine(records)]
    tables = split_tables(summarise(records), lambda own: make_columns(own, args.baseline))
    publish(args.out / "serving.md", [*tables, *machine])


def make_columns(rows: list[Row], baseline: str) -> list[Column]:
    """Return the columns of the tables."""
    return [
        ("seconds", lambda row: row.seconds("wall", "answer")),
        times_column(rows, baseline, lambda row: row.seconds("wall", "answer").median),
        ("CPU seconds", lambda row: row.seconds("cpu", "answer")),
        times_column(rows, baseline, lambda row: row.seconds("cpu", "answer").median),
        PEAK,
    ]
