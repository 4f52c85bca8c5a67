"""Accuracy against time of ratings methods and peers: tables, a verdict and the Pareto picture.

Time is what it takes to build the library's own form of the data from arrays, and to fit.  Every
measurement is a process of its own, under the library's own interpreter.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from benchmarks.cells import interleaved
from benchmarks.methods import RATINGS
from benchmarks.options import add_harness_arguments, chosen_methods, harness_of
from benchmarks.pareto import Point, unanswered
from benchmarks.rating_problems import ORDERS, SPLITS, rating_problem
from benchmarks.store import load
from benchmarks.summaries import LEARNING, Row, megabytes, seconds, summarised
from benchmarks.tables import brief, by_place, method_table, number, publish, times

NAMES = {"ml-100k": "MovieLens 100K", "ml-1m": "MovieLens 1M"}
NOTE = """\
Integer predictions are those of a method's own rule, or the nearest star; of a distribution, the
median for the MAE and the mode for the zero-one error.  Real-valued predictions of methods that
answer with stars are means of probabilities, which cost another fit that is not in the times.
Times are medians, with the range; errors are means over n splits."""
ERRORS = {"mae": "MAE", "zero_one": "zero-one error"}
LEARNING_CPU = seconds("cpu", *LEARNING)


def add_arguments(parser: ArgumentParser) -> None:
    add_harness_arguments(parser, RATINGS)
    parser.add_argument("--data", nargs="+", default=["ml-100k", "ml-1m"])
    parser.add_argument("--split", nargs="+", default=list(SPLITS), choices=SPLITS)
    parser.add_argument("--order", default=ORDERS[0], choices=ORDERS, help="of the training rows")
    parser.add_argument("--baseline", default="Surprise SVD", help="what times are compared with")
    parser.add_argument(
        "--of",
        nargs="+",
        type=Path,
        metavar="JSON",
        help="measure nothing: show what finished runs have found, together",
    )


def main(args: Namespace) -> None:
    if args.of:
        records = [record for file in args.of for record in load(file)]
        _show(summarised(records), args, [])
        return
    if args.quick:
        args.data, args.split, args.threads, args.repeats = ["ml-100k"], ["80/20"], [1], 1
    methods = chosen_methods(RATINGS, args)
    places = [(data, split) for data in args.data for split in args.split]
    harness = harness_of(args, "ratings", order=args.order)
    records = harness.run(
        interleaved(methods, places, args.threads, args.repeats),
        partial(rating_problem, order=args.order),
    )
    _show(summarised(records), args, [harness.store.colophon()])


def _show(rows: list[Row], args: Namespace, colophon: list[str]) -> None:
    parts = [*_tables(rows, args.baseline), NOTE, _verdict(rows), *colophon]
    publish(args.out / "ratings.md", parts)
    _draw(rows, args)


def _tables(rows: list[Row], baseline: str) -> Iterable[str]:
    for title, own in by_place(rows):
        columns = [
            ("MAE", lambda r: number(r.error("mae"))),
            ("NMAE", lambda r: number(r.error("nmae"))),
            ("zero-one error", lambda r: number(r.error("zero_one"))),
            ("RMSE, integer", lambda r: number(r.error("rmse"))),
            ("RMSE, real", lambda r: number(r.error("rmse_real"))),
            ("prepare + fit, CPU s", lambda r: brief(r.cost(LEARNING_CPU))),
            (f"times {baseline}", times(own, baseline, lambda r: r.cost(LEARNING_CPU).median)),
            ("prepare + fit, s", lambda r: brief(r.cost(seconds("wall", *LEARNING)))),
            ("predict, s", lambda r: brief(r.cost(seconds("wall", "answer")))),
            ("peak MB", lambda r: f"{r.cost(megabytes).median:.0f}"),
            ("import, s", lambda r: f"{r.cost(seconds('wall', 'import')).median:.2f}"),
        ]
        yield f"{title}\n\n{method_table(own, columns)}"


def points(rows: Iterable[Row], data: str, split: str, error: str) -> list[Point]:
    """Return what the picture shows of one split: CPU seconds on one thread, and an error."""
    found = []
    for row in rows:
        wrong = row.error(error)
        if (row.data, row.split, row.threads) == (data, split, 1) and wrong is not None:
            cost = row.cost(LEARNING_CPU).median
            found.append(Point(row.method, cost, wrong, not row.peer))
    return found


def below_our_curve(rows: list[Row], data: str, split: str, error: str) -> list[Point]:
    """Return the peers that no setting of ours answers.

    A slow peer may have been measured on fewer splits than ours: then those alone are compared.
    """
    found = []
    for peer in rows:
        if peer.peer and (own := points([peer], data, split, error)):
            repetitions = {one["repetition"] for one in peer.records}
            ours = [row.on(repetitions) for row in rows if not row.peer]
            found += unanswered(points((row for row in ours if row.n), data, split, error) + own)
    return sorted(found, key=lambda point: point.cost)


def _verdict(rows: list[Row]) -> str:
    """Return, for each split and error, who lies below our curve."""
    lines = ["## Who lies below our curve\n"]
    for data, split in dict.fromkeys((row.data, row.split) for row in rows):
        for error, name in ERRORS.items():
            shown = points(rows, data, split, error)
            if not any(p.ours for p in shown) or all(p.ours for p in shown):
                continue
            below = [
                f"{p.name} ({p.cost:.3g} s, {p.error:.4f})"
                for p in below_our_curve(rows, data, split, error)
            ]
            lines.append(f"- {data}, {split}, {name}: {'; '.join(below) or 'nobody'}")
    if len(lines) == 1:
        lines.append("Nobody to compare: it takes ours and a peer on one thread.")
    return "\n".join(lines)


def _draw(rows: list[Row], args: Namespace) -> None:
    from benchmarks.picture import pareto_picture

    for error, name in ERRORS.items():
        panels = {
            f"{NAMES.get(data, data)}, {split}": shown
            for data, split in dict.fromkeys((row.data, row.split) for row in rows)
            if (shown := points(rows, data, split, error))
        }
        if panels:
            figure = pareto_picture(panels, name)
            for suffix in ("svg", "png"):
                file = args.out / f"pareto-{error.replace('_', '-')}.{suffix}"
                figure.savefig(file)
                print(f"\n{file}")
