"""One progress bar for one fit: iterations, objective, seconds."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from marginmf.solvers import Callback, Progress

#: From the name of a part of a fit to the callbacks that report its iterations.
Report = Callable[[str], list[Callback]]


@contextmanager
def progress_bar(name: str, n_parts: int, visible: bool) -> Iterator[Report]:
    """Show a bar on standard error while the block runs.

    Yields a function from the name of a part to the callbacks that report its iterations.
    Parts may run side by side.
    """
    if not visible:
        yield lambda part: []
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns: list[Any] = [
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("iteration {task.fields[iteration]}  objective {task.fields[objective]:,.1f}"),
        TimeElapsedColumn(),
    ]
    with Bar(*columns, console=Console(file=sys.stderr)) as bar:
        task = bar.add_task(name, total=float(n_parts), iteration=0, objective=float("nan"))
        finished: dict[str, float] = {}

        def report(part: str) -> list[Callback]:
            def callback(progress: Progress) -> None:
                record = progress.record
                finished[part] = min(1.0, record.iteration / max(progress.max_iter, 1))
                bar.update(
                    task,
                    description=f"{name} {part}".strip(),
                    completed=sum(finished.values()),
                    iteration=record.iteration,
                    objective=record.objective,
                )

            return [callback]

        yield report
        bar.update(task, description=name, completed=float(n_parts))
