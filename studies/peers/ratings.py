"""Accuracy against time of ratings methods and peers: tables, a verdict and the Pareto picture.

Time is what it takes to build the library's own form of the data from arrays, and to fit.  Every
measurement is a process of its own, under the library's own interpreter.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Sequence
from itertools import product

from marginmf.metrics import metric
from studies.harness.markdown import publish
from studies.peers import comparison
from studies.peers.bench import Task, interleave
from studies.peers.comparison import LEARNING, Column, Row, error_column, times_column
from studies.peers.methods import RATINGS
from studies.peers.pareto import Point, find_unanswered, pareto_picture
from studies.peers.problems import ORDERS, SPLITS

NAMES = {"ml-100k": "MovieLens 100K", "ml-1m": "MovieLens 1M"}
NOTE = """\
Integer predictions are those of a method's own rule, or the nearest star; of a distribution, the
median for the MAE and the mode for the zero-one error.  Real-valued predictions of methods that
answer with stars are means of probabilities, which cost another fit that is not in the times.
Times are medians, with the range; errors are means over n splits."""
ERRORS = ("mae", "zero_one")


def add_arguments(parser: ArgumentParser) -> None:
    comparison.add_peer_arguments(parser, RATINGS)
    parser.add_argument("--data", nargs="+", default=["ml-100k", "ml-1m"])
    parser.add_argument("--split", nargs="+", default=list(SPLITS), choices=SPLITS)
    parser.add_argument("--order", default=ORDERS[0], choices=ORDERS, help="of the training rows")
    parser.add_argument("--baseline", default="Surprise SVD", help="what times are compared with")


def main(args: Namespace) -> None:
    if args.quick:
        args.data, args.split, args.threads, args.repeats = ["ml-100k"], ["80/20"], [1], 1
    methods = comparison.choose_methods(RATINGS, args)
    splits = product(args.data, args.split)
    tasks = [Task("ratings", data, split, args.order) for data, split in splits]
    cells = interleave(methods, tasks, args.threads, args.repeats)
    rows, machine = comparison.compare(args, "ratings", RATINGS, cells)
    names = {method.name for method in methods}
    rows = [row for row in rows if row.method in names]  # the store has those of ``accuracy`` too
    tables = comparison.split_tables(rows, lambda own: make_columns(own, args.baseline))
    publish(args.out / "ratings.md", [*tables, NOTE, describe_verdict(rows), *machine])
    draw_pictures(rows, args)


def make_columns(rows: Sequence[Row], baseline: str) -> list[Column]:
    return [
        *(error_column(metric(name).heading, name) for name in ("mae", "nmae", "zero_one")),
        *(error_column("RMSE, integer", "rmse"), error_column("RMSE, real", "rmse_real")),
        comparison.FIT_CPU,
        times_column(rows, baseline, lambda row: row.seconds("cpu", *LEARNING).median),
        *(comparison.FIT_WALL, comparison.PREDICT, comparison.PEAK, comparison.IMPORT),
    ]


def find_points(rows: Iterable[Row], data: str, split: str, error: str) -> list[Point]:
    """Return what the picture shows of one split: CPU seconds on one thread, and an error."""
    found = []
    for row in rows:
        wrong = row.error(error)
        if (row.data, row.split, row.threads) == (data, split, 1) and wrong is not None:
            cost = row.seconds("cpu", *LEARNING).median
            found.append(Point(row.method, cost, wrong, not row.peer))
    return found


def find_below(rows: list[Row], data: str, split: str, error: str) -> list[Point]:
    """Return the peers that no setting of ours answers.

    A slow peer may have been measured on fewer splits than ours: then those alone are compared.
    """
    found = []
    for peer in rows:
        if peer.peer and (own := find_points([peer], data, split, error)):
            repetitions = {one["repetition"] for one in peer.records}
            ours = [row.on(repetitions) for row in rows if not row.peer]
            points = find_points((row for row in ours if row.n), data, split, error)
            found += find_unanswered(points + own)
    return sorted(found, key=lambda point: point.cost)


def describe_verdict(rows: list[Row]) -> str:
    """Return, for each split and error, which peers lie below our curve."""
    lines = ["## Who lies below our curve\n"]
    for data, split in dict.fromkeys((row.data, row.split) for row in rows):
        for error in ERRORS:
            shown = find_points(rows, data, split, error)
            if not any(p.ours for p in shown) or all(p.ours for p in shown):
                continue
            below = [
                f"{p.name} ({p.cost:.3g} s, {p.error:.4f})"
                for p in find_below(rows, data, split, error)
            ]
            lines.append(
                f"- {data}, {split}, {metric(error).heading}: {'; '.join(below) or 'nobody'}"
            )
    if len(lines) == 1:
        lines.append("Nobody to compare: it takes ours and a peer on one thread.")
    return "\n".join(lines)


def draw_pictures(rows: list[Row], args: Namespace) -> None:
    for error in ERRORS:
        panels = {
            f"{NAMES.get(data, data)}, {split}": shown
            for data, split in dict.fromkeys((row.data, row.split) for row in rows)
            if (shown := find_points(rows, data, split, error))
        }
        if panels:
            figure = pareto_picture(panels, metric(error).heading)
            for suffix in ("svg", "png"):
                file = args.out / f"pareto-{error.replace('_', '-')}.{suffix}"
                figure.savefig(file)
                print(f"\n{file}")
