"""The tables and figures of Kumar's thesis: list, run, report and check them.

``python -m studies thesis run --all --quick`` takes minutes, ``run --all`` hours.  A run that was
interrupted, or killed, resumes when the same command is given again.
"""

import math
import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from studies.harness import Cell, Store, Values, run
from studies.harness.cell import MEASURES
from studies.harness.markdown import make_table
from studies.harness.running import find, format_duration, show_nothing, show_progress
from studies.thesis.exhibit import Scale, cells_of, exhibits
from studies.thesis.report import format_value, write_report

INTERRUPTED = 130
#: Numbers that differ by less than this share of themselves agree: sums may be added up in another
#: order on another processor.
TOLERANCE = 1e-6


def add_arguments(parser: ArgumentParser) -> None:
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, command: Callable[[Namespace], int]) -> ArgumentParser:
        words = command.__doc__ or ""
        added = commands.add_parser(name, help=words.splitlines()[0], description=words)
        added.set_defaults(command=command)
        out = {"metavar": "FOLDER", "help": "where cells are stored (default: results)"}
        added.add_argument("--out", type=Path, default=Path("results"), **out)
        return added

    listing, running = add("list", list_exhibits), add("run", run_exhibits)
    for one in (listing, running):
        one.add_argument("names", nargs="*", metavar="NAME", help="tables and figures")
    listing.add_argument("--cells", action="store_true", help="list single cells, with their keys")
    running.add_argument("--all", action="store_true", help="all tables and figures")
    running.add_argument("--jobs", type=int, default=-1, help="cells side by side; -1: all cores")
    backends = "joblib's: loky, threading, multiprocessing or dask"
    running.add_argument("--backend", metavar="NAME", help=backends)
    running.add_argument("--again", action="store_true", help="run also what has been run before")
    running.add_argument("--quiet", action="store_true", help="show no progress")
    reporting = add("report", report_exhibits)
    file = "the Markdown file (default: report.md in --out)"
    reporting.add_argument("--to", type=Path, metavar="FILE", help=file)
    for one in (running, reporting):
        one.add_argument("--quick", action="store_true", help="a coarse version, in minutes")
    key = "a cell's key, or enough of it to be unique"
    add("check", check_cell).add_argument("key", metavar="KEY", help=key)


def main(args: Namespace) -> int:
    """Run a command; what goes wrong is a sentence and exit code 2."""
    try:
        return args.command(args)
    except (ValueError, OSError, ImportError) as error:
        print(f"studies: {error}", file=sys.stderr)
        return 2


def list_exhibits(args: Namespace) -> int:
    """List the tables and figures, how many cells each needs, and how many have been run."""
    store, cells, counts = Store(args.out), [], []
    for one in exhibits(args.names):
        both = one.cells("quick"), one.cells("full")
        for key, cell in {cell.key: cell for own in both for cell in own}.items():
            seconds, words = store.seconds(cell), f"{cell.measure}: {format_value(cell.settings)}"
            cells.append([key, one.name, "not run" if seconds is None else f"{seconds:.2f}", words])
        done = (f"{sum(cell in store for cell in own):,} of {len(own):,}" for own in both)
        counts.append([one.name, str(one.chapter), one.kind, one.title, *done])
    if args.cells:
        print(make_table(("key", "exhibit", "seconds", "cell"), cells, words=4))
    else:
        print(make_table(("name", "chapter", "kind", "title", "quick", "full"), counts, words=4))
        print("\nCells that have been run, of those that each scale needs.")
    return 0


def run_exhibits(args: Namespace) -> int:
    """Run the cells that tables and figures need, and keep each as soon as it is done.

    Ends with exit code 1 if some cells could not be run, and says why.
    """
    if bool(args.names) == args.all:
        raise ValueError(
            "Name tables and figures, or give --all; python -m studies thesis list has them."
        )
    if args.jobs == 0:
        raise ValueError("--jobs 0 would run nothing; give at least 1, or -1 for all cores.")
    scale: Scale = "quick" if args.quick else "full"
    cells, store = cells_of(exhibits(args.names), scale), Store(args.out)
    watcher, before = show_nothing if args.quiet else show_progress, len(store.records)
    options = {"n_jobs": args.jobs, "backend": args.backend, "again": args.again}
    try:
        summary = run(cells, store, scale, watcher=watcher, **options)
    except KeyboardInterrupt:
        new = _format_count(len(store.records) - before, "new cell")
        words = f"interrupted; {args.out} has {new}. The same command resumes from there."
        print(f"studies: {words}", file=sys.stderr)
        return INTERRUPTED
    took = f" in {format_duration(summary.seconds)}" if summary.done else ""
    print(f"{_format_count(summary.done, 'cell')} run{took}, {summary.kept:,} kept from before.")
    for reason, number in summary.failures.most_common():
        print(f"{_format_count(number, 'cell')} could not be run: {' '.join(reason.split())}")
    return 1 if summary.failures else 0


def report_exhibits(args: Namespace) -> int:
    """Write what was run as a Markdown page with figures beside it.

    Shows the full version, unless only the quick one has been run. Ends with exit code 1 if
    something could not be shown.
    """
    store = _open_filled(args.out)
    only_quick = {run["scale"] for run in store.runs.values()} == {"quick"}
    scale: Scale = "quick" if args.quick or only_quick else "full"
    file = args.to or args.out / "report.md"
    sections = write_report(exhibits(), store, scale, file)
    rows = ([one.name, one.outcome, one.count, one.why.replace("|", "/")] for one in sections)
    print(make_table(("name", "verdict", "cells", "why"), rows, words=4))
    print(f"\nThe {scale} version is in\n{file}")
    return 1 if any(one.failure for one in sections) else 0


def check_cell(args: Namespace) -> int:
    """Run one cell again, and show what was stored and what is found now side by side.

    Ends with exit code 1 if they differ; times may.
    """
    store = _open_filled(args.out)
    cell = find_stored_cell(store, args.key)
    finding = find(cell)
    if finding.values is None:
        raise ValueError(f"The cell {cell.key} could not be run: {finding.failure}")
    values = compare_values(store.values(cell) or {}, finding.values)
    lines = [[one.name, _shorten(one.stored), _shorten(one.found), one.verdict] for one in values]
    differ = any(one.verdict == "differs" for one in values)
    print(f"{cell.key}: {cell.measure}, {format_value(cell.settings)}\n")
    print(make_table(("value", "stored", "now", ""), lines))
    print("\nThey differ." if differ else "\nThey agree.")
    return int(differ)


class ComparedValue(NamedTuple):
    """One value, as it is stored and as it is found now, and whether they are the same."""

    name: str
    stored: Any
    found: Any

    @property
    def verdict(self) -> str:
        if self.name.endswith("seconds"):  # never the same twice
            return "a time"
        return "agrees" if _agree(self.stored, self.found) else "differs"


def find_stored_cell(store: Store, key: str) -> Cell:
    """Return the only cell whose key begins like this.

    Only measures of the studies are run: a file from elsewhere may name any function.
    """
    found = sorted(known for known in store.records if known.startswith(key.lower()))
    if not found:
        raise ValueError(
            f"There is no cell {key!r} in {store.file}; python -m studies thesis list --cells "
            "shows the keys."
        )
    if len(found) > 1:
        raise ValueError(
            f"{len(found)} cells in {store.file} begin with {key!r}: {', '.join(found[:3])}"
            f"{' and so on' if len(found) > 3 else ''}; give more of the key."
        )
    record = store.records[found[0]]
    if record["measure"] not in MEASURES:
        raise ValueError(
            f"The cell {found[0]} measures {record['measure']!r}, which is not a measure of the "
            "studies and is not run; use studies.harness.run."
        )
    return Cell(record["measure"], record["settings"])


def compare_values(stored: Values, found: Values) -> list[ComparedValue]:
    """Return all values side by side; those inside mappings get names with points in them."""
    before, now = dict(_flatten(stored)), dict(_flatten(found))
    return [ComparedValue(name, before.get(name), now.get(name)) for name in before | now]


def _flatten(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _flatten(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _agree(first: Any, second: Any) -> bool:
    match first, second:
        case list(), list():
            return len(first) == len(second) and all(map(_agree, first, second))
        case ((int() | float()), (int() | float())):
            return math.isclose(first, second, rel_tol=TOLERANCE, abs_tol=1e-12)
    return bool(first == second)


def _open_filled(folder: Path) -> Store:
    store = Store(folder)
    if not store.runs:
        raise ValueError(
            f"Nothing has been run in {folder}; begin with python -m studies thesis run --all "
            "--quick, or name another folder with --out."
        )
    return store


def _format_count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _shorten(value: Any) -> str:
    """Write a value in a few letters."""
    if isinstance(value, list) and value:
        return f"{len(value):,} values, the first {_shorten(value[0])}"
    if isinstance(value, float):
        return f"{value:.8g}"
    return "none" if value is None or value in ([], {}) else str(value)
