"""Seconds and memory for the ten best unseen items of every user, beside peers.

Every measurement is a process of its own: it fits with 100 factors and few iterations, makes all
lists once without being watched, and then once more.  The lists are checked: as long as asked,
and nothing in them that the user has rated.
"""

from argparse import ArgumentParser, Namespace
from functools import partial

import numpy as np

from benchmarks.cells import interleaved
from benchmarks.harness import Arrays, Problem
from benchmarks.methods import SERVING
from benchmarks.options import add_harness_arguments, chosen_methods, harness_of
from benchmarks.rating_problems import in_order, table_of
from benchmarks.summaries import Row, megabytes, seconds, summarised
from benchmarks.tables import Column, brief, by_place, method_table, publish, times

WALL, CPU = seconds("wall", "answer"), seconds("cpu", "answer")


def add_arguments(parser: ArgumentParser) -> None:
    add_harness_arguments(parser, SERVING, threads=2)
    parser.add_argument("--data", default="ml-1m")
    parser.add_argument("--n", type=int, default=10, help="the length of the lists")
    parser.add_argument("--baseline", default="implicit ALS", help="what others are compared with")


def main(args: Namespace) -> None:
    if args.quick:
        args.data, args.repeats = "ml-100k", 1
    places = [(args.data, f"top {args.n}")]
    cells = interleaved(chosen_methods(SERVING, args), places, args.threads, args.repeats)
    harness = harness_of(args, "serving", rounds=2)
    rows = summarised(harness.run(cells, partial(_problem, n=args.n)))
    tables = [
        f"{title}\n\n{method_table(own, _columns(own, args.baseline))}"
        for title, own in by_place(rows)
    ]
    publish(args.out / "serving.md", [*tables, harness.store.colophon()])


def _columns(rows: list[Row], baseline: str) -> list[Column]:
    return [
        ("seconds", lambda r: brief(r.cost(WALL))),
        (f"times {baseline}", times(rows, baseline, lambda r: r.cost(WALL).median)),
        ("CPU seconds", lambda r: brief(r.cost(CPU))),
        (f"times {baseline}", times(rows, baseline, lambda r: r.cost(CPU).median)),
        ("peak MB", lambda r: f"{r.cost(megabytes).median:.0f}"),
    ]


def _problem(data: str, split: str, repetition: int, n: int) -> Problem:
    table = table_of(data)
    rows = in_order(table, np.arange(len(table)), "sorted", 0)
    # Whole users: someone with few ratings must still have unseen items to be shown.
    few = rows[np.isin(table.users[rows], np.unique(table.users)[:20])]
    train, tiny = (
        {"users": table.users[k], "items": table.items[k], "ratings": table.ratings[k]}
        for k in (rows, few)
    )
    test, tiny_test = (
        {"users": np.unique(part["users"]), "n": np.array(n)} for part in (train, tiny)
    )
    return Problem(train, test, tiny, tiny_test, partial(check_lists, train, n))


def check_lists(seen: Arrays, n: int, answers: Arrays) -> dict[str, float]:
    """Raise ValueError unless every user has ``n`` different items, none of them seen."""
    users, items = answers["users"], answers["items"]
    everybody = np.unique(seen["users"])
    who, lengths = np.unique(users, return_counts=True)
    if not np.array_equal(who, everybody) or not (lengths == n).all():
        raise ValueError(
            f"there are {len(who)} lists of {lengths.min()} to {lengths.max()} items, not "
            f"{len(everybody)} lists of {n}"
        )
    # One number for each pair.
    base = int(max(seen["items"].max(), items.max())) + 1
    shown = users.astype(np.int64) * base + items
    if len(np.unique(shown)) < len(shown):
        raise ValueError("an item is twice in the list of a user")
    known = seen["users"].astype(np.int64) * base + seen["items"]
    if np.isin(shown, known).any():
        raise ValueError("a list has an item that its user has rated")
    return {"lists": float(len(who))}
