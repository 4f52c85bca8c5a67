"""What is shown on a terminal while something is downloaded."""

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext


@contextmanager
def bar(name: str, total: int | None, done: int, wanted: bool) -> Iterator[Callable[[int], None]]:
    """Show a bar, if that is wanted and there is a terminal; yields what moves it on."""
    if not (wanted and sys.stderr.isatty()):
        yield lambda amount: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TransferSpeedColumn

    columns = TextColumn("{task.description}"), BarColumn(), DownloadColumn(), TransferSpeedColumn()
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(name, total=total, completed=done)
        yield lambda amount: shown.advance(task, amount)


def spinner(message: str, wanted: bool) -> AbstractContextManager[object]:
    """Show that something goes on whose end is not known."""
    if not (wanted and sys.stderr.isatty()):
        return nullcontext()
    from rich.console import Console

    return Console(stderr=True).status(message)
