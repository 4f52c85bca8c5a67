"""Run cells: those that are missing, side by side, each kept as soon as it is done."""

import os
import time
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field

from joblib import Parallel, delayed, effective_n_jobs, parallel_config
from joblib.parallel import get_active_backend

from marginmf.experiments.cell import Cell, Values
from marginmf.experiments.cluster import dask_cluster
from marginmf.experiments.exhibit import Exhibit, Scale
from marginmf.experiments.measures import measure
from marginmf.experiments.plain import plain
from marginmf.experiments.remaining import RemainingTime
from marginmf.experiments.store import Store
from marginmf.experiments.watching import Watcher, silent

#: A traceback in full, for who looks into a failure.
DEBUG = "MARGINMF_DEBUG"


@dataclass
class Summary:
    """What became of the cells of a run."""

    done: int = 0
    kept: int = 0
    seconds: float = 0.0
    #: Why cells could not be run, and how many could not for that reason.
    failures: Counter[str] = field(default_factory=Counter)


@dataclass(frozen=True)
class Finding:
    """What a worker hands back: values, or the reason why there are none."""

    cell: Cell
    values: Values | None
    seconds: float
    failure: str = ""


def cells_of(exhibits: Iterable[Exhibit], scale: Scale) -> list[Cell]:
    """Return the cells that exhibits need, each once, in their order."""
    found = {cell.key: cell for one in exhibits for cell in one.cells(scale)}
    return list(found.values())


def run(
    exhibits: Sequence[Exhibit],
    store: Store,
    scale: Scale = "full",
    *,
    n_jobs: int = -1,
    backend: str | None = None,
    again: bool = False,
    watcher: Watcher = silent,
) -> Summary:
    """Run what the exhibits need and the store lacks.

    Parameters
    ----------
    exhibits : sequence of Exhibit
        Tables and figures.
    store : Store
        What has been measured; every cell is added to it as soon as it is done, so a run that is
        interrupted, or killed, goes on where it was.
    scale : {"quick", "full"}
        A coarse version in minutes, or all of it.
    n_jobs : int
        How many cells run side by side, as joblib counts; -1 is one for each core.  Cells that
        measure time run one after the other when all the others are done.
    backend : str, optional
        One of joblib's, such as ``"loky"``, ``"threading"`` or ``"dask"`` (see `dask_cluster`); by
        default the one that ``joblib.parallel_config`` has set, or processes on this machine.
    again : bool
        Run also the cells that the store has.
    watcher : callable
        Is told how many cells there are, and of every one that is done.

    Returns
    -------
    Summary
        How many cells were run, how many were there before, and what failed for which reason.

    Raises
    ------
    ChildProcessError
        If a process that measured cells was killed.  What was done by then is kept.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from marginmf.experiments.data import made
    >>> cells = [
    ...     Cell("rating_errors", {"data": made(40, 2, 0.5, seed=0), "protocol": {"name": "weak"},
    ...          "split": split, "method": "Biases", "params": {}})
    ...     for split in range(3)
    ... ]
    >>> own = Exhibit("own", 3, "table", "An example", lambda scale: cells, lambda *given: [])
    >>> with TemporaryDirectory() as folder:
    ...     first = run([own], Store(Path(folder)), n_jobs=1)
    ...     second = run([own], Store(Path(folder)), n_jobs=1)
    >>> first.done, second.done, second.kept
    (3, 0, 3)
    """
    wanted = cells_of(exhibits, scale)
    pending = [cell for cell in wanted if again or cell not in store]
    summary = Summary(kept=len(wanted) - len(pending))
    if not pending:
        return summary
    store.begin(scale)
    remaining = RemainingTime(store, pending, n_jobs)
    begin = time.perf_counter()
    with watcher(len(pending)) as tell:
        for finding in _findings(pending, n_jobs, backend):
            if finding.values is None:
                remaining.drop(finding.cell)
                summary.failures[finding.failure] += 1
            else:
                store.add(finding.cell, finding.values, finding.seconds)
                remaining.finish(finding.cell, finding.seconds)
                summary.done += 1
            tell(finding.cell, remaining.seconds())
    summary.seconds = time.perf_counter() - begin
    return summary


def find(cell: Cell) -> Finding:
    """Measure one cell; whatever goes wrong becomes its reason, so that others go on."""
    begin = time.perf_counter()
    try:
        values: Values = plain(measure(cell))
        return Finding(cell, values, time.perf_counter() - begin)
    except Exception as error:
        if os.environ.get(DEBUG):
            traceback.print_exc()
        reason = f"{type(error).__name__}: {error}"
        return Finding(cell, None, time.perf_counter() - begin, reason)


def _find_on_one_core(cell: Cell) -> Finding:
    """Measure one cell of several that run side by side, whose cores are all taken.

    Without this, a fit inside a worker of dask would ask for all the cores of the cluster.
    """
    with parallel_config(backend="sequential"):
        return find(cell)


def _findings(cells: Sequence[Cell], n_jobs: int, backend: str | None) -> Iterator[Finding]:
    """Yield what cells find, in the order in which they are done."""
    together = [cell for cell in cells if not cell.alone]
    with ExitStack() as stack:
        if backend == "dask":
            stack.enter_context(dask_cluster(n_jobs))
        if backend is not None:
            stack.enter_context(parallel_config(backend=backend))
        try:
            yield from _side_by_side(together, n_jobs)
        except BrokenExecutor as error:
            raise ChildProcessError(
                "A process that measured cells was killed, most likely for want of memory. What "
                "was done is kept: run the same again with fewer jobs."
            ) from error
    for cell in cells:
        if cell.alone:
            yield find(cell)


def _side_by_side(cells: Sequence[Cell], n_jobs: int) -> Iterator[Finding]:
    jobs = [delayed(_find_on_one_core)(cell) for cell in cells]
    if not jobs:
        return
    # One at a time to each worker: cells take from milliseconds to minutes.
    settings = {"n_jobs": n_jobs, "batch_size": 1}
    if get_active_backend()[0].supports_return_generator:
        yield from Parallel(**settings, return_as="generator_unordered")(jobs)
        return
    # This backend answers when all is done: it gets a round at a time, so that little can be lost.
    with Parallel(**settings) as parallel:
        at_once = effective_n_jobs(n_jobs)
        for begin in range(0, len(jobs), at_once):
            yield from parallel(jobs[begin : begin + at_once])
