"""Progress bars on standard error: one for any work of many steps, and one for a fit.

They are for people who wait: logs and pipes get nothing, or the last state where a fit was asked
for it with ``verbose=1``.
"""

import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from marginmf._utils.printable import LONGEST_QUOTE, printable

if TYPE_CHECKING:  # the doctor shows a bar even where SciPy is broken
    from marginmf.solvers import Callback, Progress

#: The seconds over which a speed is measured: steps may be fits that take minutes each.
LONG = 3600.0
#: The least width of a terminal that has room for more than the bar, the times and the label.
WIDE = 110
#: From the name of a part of a fit to the callbacks that report its iterations.
Report = Callable[[str], "list[Callback]"]


@contextmanager
def show_bar(
    label: str = "",
    total: float | None = None,
    *,
    visible: bool = True,
    terminal_only: bool = True,
    transient: bool = True,
    unit: Literal["steps", "bytes"] = "steps",
    text: str = "",
    **fields: Any,
) -> Iterator[Callable[..., None]]:
    """Show a bar and, where it can be known, the time left on standard error while the block runs.

    Parameters
    ----------
    label : str
        What is going on.
    total : float, optional
        How much there is to do.  None, where that is not known, shows a spinner instead of a bar.
    visible : bool
        False shows nothing.
    terminal_only : bool
        Whether nothing is shown either where nobody looks (see `is_watched`).
    transient : bool
        Whether the bar disappears at the end.
    unit : {"steps", "bytes"}
        What is counted.
    text : str
        More to show where there is room, with fields as in
        ``"objective {task.fields[objective]:.1f}"``.
    **fields
        Their first values.  One called ``left`` is the time left, as the caller knows it better.

    Yields
    ------
    callable
        ``update(label, done=..., **fields)``; all of it is optional.

    Examples
    --------
    >>> with show_bar("Fitting", total=2, visible=False) as update:
    ...     update("HMF, split 1")
    ...     update("HMF, split 2", done=1)
    """
    if not visible or (terminal_only and not is_watched()):
        yield lambda *_, **__: None
        return
    from rich import progress as rich
    from rich.console import Console

    columns: list[Any] = [rich.SpinnerColumn(), rich.TimeElapsedColumn()]
    if total is not None:
        count = rich.DownloadColumn() if unit == "bytes" else rich.MofNCompleteColumn()
        columns = [rich.BarColumn(), count, rich.TimeElapsedColumn()]
        if "left" not in fields:
            columns += [rich.TimeRemainingColumn(), rich.TextColumn("left")]
    console = Console(file=sys.stderr)
    if text and (console.width >= WIDE or not is_watched()):
        columns.append(rich.TextColumn(text))
    # The label comes last: its length changes, and what stands before it should stay where it is.
    columns.append(rich.TextColumn("{task.description}", markup=False))
    settings: dict[str, Any] = {"transient": transient, "speed_estimate_period": LONG}
    with rich.Progress(*columns, console=console, **settings) as bar:
        task = bar.add_task(printable(label, LONGEST_QUOTE), total=total, **fields)

        def update(label: str | None = None, done: float | None = None, **fields: Any) -> None:
            description = None if label is None else printable(label, LONGEST_QUOTE)
            bar.update(task, description=description, completed=done, **fields)

        yield update


def is_watched() -> bool:
    """Whether standard error is a terminal or a notebook, where somebody may look at it."""
    # Programs without a window have no standard error at all.
    return (sys.stderr is not None and sys.stderr.isatty()) or "ipykernel" in sys.modules


@contextmanager
def progress_bar(name: str, n_parts: int, visible: bool) -> Iterator[Report]:
    """Show the iterations, the objective and the seconds of a fit while the block runs.

    Yields a function from the name of a part to the callbacks that report its iterations, to be
    called when the part begins.  Parts may run side by side; in one thread, the next one begins
    when the last one is finished, however few iterations that took.
    """
    with show_bar(
        name,
        n_parts,
        visible=visible,
        terminal_only=False,
        transient=False,
        text="iteration {task.fields[iteration]}  objective {task.fields[objective]:,.1f}",
        iteration=0,
        objective=float("nan"),
    ) as update:
        finished: dict[str, float] = {}
        running: dict[int, str] = {}

        def report(part: str) -> "list[Callback]":
            if not visible:
                return []
            thread = threading.get_ident()
            if thread in running:
                finished[running[thread]] = 1.0
            running[thread] = part
            finished.setdefault(part, 0.0)
            update(f"{name} {part}".strip(), done=sum(finished.values()))

            def callback(progress: "Progress") -> None:
                record = progress.record
                share = min(1.0, record.iteration / max(progress.max_iter, 1))
                finished[part] = max(finished[part], share)
                update(
                    done=sum(finished.values()),
                    iteration=record.iteration,
                    objective=record.objective,
                )

            return [callback]

        yield report
        update(name, done=n_parts)
