"""How a run shows what it is at: a bar on a terminal, a line now and then elsewhere."""

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from marginmf.experiments.cell import Cell

#: Is told of a cell that is done, and how many seconds the rest is expected to take, if known.
Tell = Callable[[Cell, float | None], None]
#: From the number of cells to what is told of them.
Watcher = Callable[[int], AbstractContextManager[Tell]]

#: Seconds between two lines where there is no terminal.
PAUSE = 30.0


@contextmanager
def silent(total: int) -> Iterator[Tell]:
    """Show nothing."""
    yield lambda cell, remaining: None


@contextmanager
def watched(total: int) -> Iterator[Tell]:
    """Show how many cells are done, which was the last, and how long the rest will take."""
    show = _bar if sys.stderr.isatty() else _lines
    with show(total) as tell:
        yield tell


@contextmanager
def _bar(total: int) -> Iterator[Tell]:
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

        def tell(cell: Cell, remaining: float | None) -> None:
            bar.update(task, advance=1, description=str(cell), remaining=_left(remaining))

        yield tell


@contextmanager
def _lines(total: int) -> Iterator[Tell]:
    done, last = 0, time.monotonic()

    def tell(cell: Cell, remaining: float | None) -> None:
        nonlocal done, last
        done += 1
        if time.monotonic() - last >= PAUSE:
            last = time.monotonic()
            left = _left(remaining)
            print(f"{done} of {total} cells{left and f', {left}'}", file=sys.stderr, flush=True)

    yield tell


def _left(seconds: float | None) -> str:
    return "" if seconds is None else f"about {duration(seconds)} left"


def duration(seconds: float) -> str:
    """Write a time as people say it.

    >>> duration(0.04), duration(7), duration(95), duration(4000)
    ('0 s', '7 s', '2 min', '1 h 7 min')
    """
    minutes = round(seconds / 60)
    if round(seconds) < 60:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"
