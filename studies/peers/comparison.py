"""A comparison of methods: its options, its measurements, and repetitions as rows of tables."""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import Any, NamedTuple

from studies.harness import Cell, Store, run
from studies.harness.commands import OUT
from studies.harness.machine import describe_run
from studies.harness.markdown import make_table
from studies.peers.bench import (
    Budget,
    Record,
    group_of,
    newest_records,
    open_bench,
    records_of,
    show_findings,
)
from studies.peers.environments import FOLDER, Environments
from studies.peers.methods import Method, choose
from studies.peers.problems import PROBLEMS

LEARNING = ("prepare", "fit")


def add_peer_arguments(
    parser: ArgumentParser, methods: Iterable[Method], repeats: int = 5, threads: int = 1
) -> None:
    """Add what every comparison with peers understands."""
    peers = sorted({method.peer for method in methods if method.peer})
    add, names = parser.add_argument, [*peers, "all", "none"]
    words = f"peers to measure beside ours: {', '.join(peers)}; all (the default) or none"
    add("--peers", nargs="+", default=["all"], choices=names, metavar="NAME", help=words)
    add("--methods", nargs="+", metavar="PART", help="only names that contain one")
    add("--repeats", type=int, default=repeats)
    add("--threads", type=int, nargs="+", default=[threads])
    add("--timeout", type=float, default=900.0, help="seconds for one process")
    words = "seconds after which a method is not repeated any more on a split of a data set"
    add("--budget", type=float, default=120.0, help=words)
    add("--out", type=Path, default=OUT, help="folder for cells, tables, pictures")
    add("--venvs", type=Path, default=FOLDER, help="folder of the environments")
    add("--again", action="store_true", help="measure also what was measured with this code")
    add("--quick", action="store_true", help="once, on the smallest data")
    add("--markdown", action="store_true", help="measure nothing: print the tables of earlier runs")


def choose_methods(methods: Iterable[Method], args: Namespace) -> list[Method]:
    """Return the methods that the command line asks for."""
    found = choose(methods, args.peers, args.methods)
    if not found:
        raise SystemExit(f"No method's name contains any of {', '.join(args.methods)}.")
    return found


def compare(args: Namespace, problem: str, cells: Iterable[Cell]) -> tuple[list["Row"], list[str]]:
    """Return the rows of cells, and a sentence on the machine; with --markdown, earlier rows."""
    store = Store(args.out)
    if args.markdown:
        return summarise(newest_records(store, problem)), []
    records = measure(args, store, cells)
    return summarise(records), [describe_machine(records)]


def measure(args: Namespace, store: Store, cells: Iterable[Cell]) -> list[Record]:
    """Measure the cells that are missing, and return the records of all, those of failures too."""
    wanted = list(cells)
    scale, limits = "quick" if args.quick else "full", {"allowance": Budget(args.budget)}
    with open_bench(Environments(args.venvs), PROBLEMS, args.timeout) as bench:
        bench.prepare(cell for cell in wanted if args.again or cell not in store)
        run(wanted, store, scale, again=args.again, watcher=show_findings, measure=bench, **limits)
    return records_of(store, wanted)


def describe_machine(records: Iterable[Record]) -> str:
    """Return a sentence on where, when and with which versions the figures were made."""
    found = describe_run()
    versions = {}
    for record in records:
        versions |= dict(list(record.get("versions", {}).items())[1:2])  # the library itself
    libraries = ", ".join(f"{name} {number}" for name, number in sorted(versions.items()))
    return (
        f"Measured on {found['date']} at {found['commit'] or 'no commit'}: "
        f"{found['processor']}, {found['cores']} cores, {found['system']}, "
        f"Python {found['python']}; {libraries}."
    )


class Spread(NamedTuple):
    """The median of some figures, the smallest and the largest."""

    median: float
    low: float
    high: float

    @classmethod
    def of(cls, values: Iterable[float]) -> "Spread":
        found = sorted(values)
        return cls(median(found), found[0], found[-1])

    def __format__(self, digits: str) -> str:
        """Write the median, and the range where there is one."""
        middle, low, high = (format(x, digits) for x in (self.median, self.low, self.high))
        return middle if low == high else f"{middle} ({low}-{high})"

    def __str__(self) -> str:
        """Write seconds with as many digits as they are worth.

        >>> str(Spread(0.0123, 0.012, 0.014)), str(Spread(12.34, 11.0, 15.0))
        ('0.012 (0.012-0.014)', '12.3 (11.0-15.0)')
        """
        return format(self, ".3f" if self.median < 1 else ".2f" if self.median < 10 else ".1f")


class Row(NamedTuple):
    """The repetitions of one method on one split of one data set."""

    method: str
    data: str
    split: str
    threads: int
    peer: str
    records: list[Record]
    #: Why a repetition failed, if one did.
    reason: str = ""

    @property
    def n(self) -> int:
        return len(self.records)

    def on(self, repetitions: Container[int]) -> "Row":
        """Return what is known from some repetitions alone, and so from some splits alone."""
        return self._replace(records=[r for r in self.records if r["repetition"] in repetitions])

    def seconds(self, clock: str, *phases: str) -> Spread:
        """Return the seconds of some phases together, by the ``cpu`` or ``wall`` clock."""
        return Spread.of(sum(r["phases"][phase][clock] for phase in phases) for r in self.records)

    @property
    def megabytes(self) -> Spread:
        return Spread.of(float(record["peak_bytes"]) / 2**20 for record in self.records)

    def error(self, name: str) -> float | None:
        """Return the mean of an error, None where the method has no such answer."""
        values = [one["errors"][name] for one in self.records if name in one["errors"]]
        return fmean(values) if values else None


def summarise(records: Iterable[Record]) -> list[Row]:
    """Return a row for each group, in the order of first appearance, failures included."""
    rows: dict[Any, Row] = {}
    for one in records:
        group = group_of(one)
        row = rows.get(group) or Row(*group, one["peer"], [])
        if "error" not in one:
            row.records.append(one)
        rows[group] = row._replace(reason=row.reason or one.get("error", ""))
    return list(rows.values())


#: A heading, and what to write below it.
Column = tuple[str, Callable[[Row], object]]

#: What most tables have of the costs.
FIT_CPU: Column = ("prepare + fit, CPU s", lambda row: row.seconds("cpu", *LEARNING))
FIT_WALL: Column = ("prepare + fit, s", lambda row: row.seconds("wall", *LEARNING))
PREDICT: Column = ("predict, s", lambda row: row.seconds("wall", "answer"))
PEAK: Column = ("peak MB", lambda row: f"{row.megabytes.median:.0f}")
IMPORT: Column = ("import, s", lambda row: f"{row.seconds('wall', 'import').median:.2f}")


def error_column(heading: str, name: str) -> Column:
    return heading, lambda row: format_number(row.error(name))


def times_column(rows: Sequence[Row], name: str, figure: Callable[[Row], float]) -> Column:
    """Return a column: how many times the figure of a baseline; empty where that is missing."""
    base = next((figure(row) for row in rows if row.method == name and row.n), None)
    return f"times {name}", lambda row: "" if base is None else f"{figure(row) / base:.2f}"


def format_number(value: float | None) -> str:
    """Write a number; nothing for None."""
    return "" if value is None else f"{value:.4f}"


def method_table(rows: Sequence[Row], columns: Sequence[Column]) -> str:
    """Return a row for each method; one that failed has its reason in place of figures."""
    lines = []
    for row in rows:
        reason = row.reason.replace("|", "/")  # a bar would end the cell
        cells = [f"failed: {reason}", *[""] * (len(columns) - 1)]
        if row.n:
            cells = [str(write(row)) for _, write in columns]
        name = f"{row.method} (stopped: {reason})" if row.n and reason else row.method
        lines.append([name, str(row.n), *cells])
    return make_table(["method", "n", *(head for head, _ in columns)], lines)


def split_tables(
    rows: Sequence[Row], columns: Callable[[list[Row]], Sequence[Column]]
) -> Iterator[str]:
    """Yield a heading and a table for each split of each data set and each number of threads."""
    for data, split, threads in dict.fromkeys((r.data, r.split, r.threads) for r in rows):
        own = [r for r in rows if (r.data, r.split, r.threads) == (data, split, threads)]
        heading = f"## {data}, {split}, {threads} thread{'s' if threads > 1 else ''}"
        yield f"{heading}\n\n{method_table(own, columns(own))}"
