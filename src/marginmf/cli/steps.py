"""A progress bar for work of many fits: which one is running, of how many."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Step = Callable[[str], None]


@contextmanager
def steps(total: int, visible: bool) -> Iterator[Step]:
    """Show a bar on standard error; the function that is yielded says which step begins.

    The bar goes when the work is done, because the table that follows says the same.
    """
    if not (visible and sys.stderr.isatty()):
        yield lambda text: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("{task.description}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total)
        begun = -1

        def step(text: str) -> None:
            nonlocal begun
            begun += 1
            bar.update(task, completed=begun, description=text)

        yield step
