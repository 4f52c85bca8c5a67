"""Progress of a run: a bar on a terminal, a line now and then elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from studies.harness.cell import Cell, Values


@dataclass(frozen=True)
class Finding:
    """The outcome of a cell: values, or the reason why there are none."""

    cell: Cell
    values: Values | None
    seconds: float
    failure: str = ""


#: Called with every finding, and with the seconds that the rest is expected to take, if known.
Tell = Callable[[Finding, float | None], None]
#: From the number of cells to the function that is called.
Watcher = Callable[[int], AbstractContextManager[Tell]]

#: Seconds between two lines where there is no terminal.
PAUSE = 30.0


@contextmanager
def show_nothing(total: int) -> Iterator[Tell]:
    yield lambda finding, remaining: None


@contextmanager
def show_progress(total: int) -> Iterator[Tell]:
    """Show how many cells are done, which was the last, and how long the rest will take."""
    show = _show_bar if sys.stderr.isatty() else _show_lines
    with show(total) as tell:
        yield tell


@contextmanager
def _show_bar(total: int) -> Iterator[Tell]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.fields[remaining]}"),
        TextColumn("{task.description}", markup=False),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total, remaining="")

        def tell(finding: Finding, remaining: float | None) -> None:
            left = _format_left(remaining)
            bar.update(task, advance=1, description=str(finding.cell), remaining=left)

        yield tell


@contextmanager
def _show_lines(total: int) -> Iterator[Tell]:
    done, last = 0, time.monotonic()

    def tell(finding: Finding, remaining: float | None) -> None:
        nonlocal done, last
        done += 1
        if time.monotonic() - last >= PAUSE:
            last = time.monotonic()
            left = _format_left(remaining)
            print(f"{done} of {total} cells{left and f', {left}'}", file=sys.stderr, flush=True)

    yield tell


def _format_left(seconds: float | None) -> str:
    return "" if seconds is None else f"about {format_duration(seconds)} left"


def format_duration(seconds: float) -> str:
    """Write a time as people say it.

    >>> format_duration(0.04), format_duration(7), format_duration(95), format_duration(4000)
    ('0 s', '7 s', '2 min', '1 h 7 min')
    """
    minutes = round(seconds / 60)
    if round(seconds) < 60:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
