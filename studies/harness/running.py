"""Measure cells: those that are missing, side by side, each kept as soon as it is done."""

import logging
import os
import sys
import time
import traceback
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import BrokenExecutor
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import partial
from importlib import import_module
from typing import Any, NamedTuple

from joblib import Parallel, delayed, effective_n_jobs, parallel_config
from joblib.parallel import get_active_backend

from marginmf.progress import show_bar
from studies.harness.cell import Cell, Values, measure_cell, to_plain
from studies.harness.store import Store

#: Set to anything to print a failing cell's traceback.
DEBUG = "MARGINMF_DEBUG"

#: Seconds between two lines of progress where there is no terminal.
PAUSE = 30.0


class Finding(NamedTuple):
    """The outcome of a cell: values, or the reason why there are none."""

    cell: Cell
    values: Values | None
    seconds: float
    failure: str = ""


Measure = Callable[[Cell], Values]
#: Called with every finding, and with the seconds that the rest is expected to take, if known.
Tell = Callable[[Finding, float | None], None]
#: From the number of cells to the function that is called.
Watcher = Callable[[int], AbstractContextManager[Tell]]


@contextmanager
def show_nothing(total: int) -> Iterator[Tell]:
    yield lambda finding, remaining: None


@contextmanager
def show_progress(total: int) -> Iterator[Tell]:
    """Show a bar with the time left on a terminal, and a line now and then elsewhere."""
    done, last = 0, time.monotonic()
    with show_bar(total=total, text="{task.fields[left]}", left="") as update:

        def tell(finding: Finding, remaining: float | None) -> None:
            nonlocal done, last
            done += 1
            left = "" if remaining is None else f"about {format_duration(remaining)} left"
            update(str(finding.cell), done=done, left=left)
            if not sys.stderr.isatty() and time.monotonic() - last >= PAUSE:
                last = time.monotonic()
                print(f"{done} of {total} cells{left and f', {left}'}", file=sys.stderr, flush=True)

        yield tell


def format_duration(seconds: float) -> str:
    """Write a time as people say it."""
    minutes = round(seconds / 60)
    if round(seconds) < 60:
        return f"{seconds:.0f} s"
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


@dataclass
class Summary:
    """What became of the cells of a run."""

    done: int = 0
    kept: int = 0
    seconds: float = 0.0
    #: Why cells could not be measured, and how many for each reason.
    failures: Counter[str] = field(default_factory=Counter)


def run(
    cells: Iterable[Cell],
    store: Store,
    scale: str = "full",
    *,
    n_jobs: int = -1,
    backend: str | None = None,
    again: bool = False,
    watcher: Watcher = show_nothing,
    measure: Measure = measure_cell,
    allowance: Any = None,
) -> Summary:
    """Measure the cells that the store lacks, each of them once.

    Every cell is added to the store as soon as it is done, so a run that is interrupted, or killed,
    resumes where it was.  ``scale`` labels the run there, and ``again`` measures also what the
    store has.  `n_jobs` cells run side by side, as joblib counts (-1: one for each core), by one of
    its backends (``"loky"``, ``"threading"``, ``"dask"``: see `connect_dask`; by default the one
    that ``joblib.parallel_config`` has set).  Cells that measure time run one after the other when
    all the others are done, as far as the ``allowance`` permits: it has ``permits(cell)`` and is
    told what they found by ``charge(finding)``.  Whatever goes wrong in the function that measures
    is the cell's failure; ChildProcessError is raised if a worker is killed.
    """
    wanted = {cell.key: cell for cell in cells}.values()
    pending = [cell for cell in wanted if again or cell not in store]
    summary = Summary(kept=len(wanted) - len(pending))
    for cell in wanted if allowance else ():
        if cell not in pending and (seconds := store.seconds(cell)) is not None:
            allowance.charge(Finding(cell, store.values(cell), seconds))
    if not pending:
        return summary
    store.begin(scale)
    remaining = RemainingTime(store, pending, n_jobs)
    begin = time.perf_counter()
    with watcher(len(pending)) as tell:
        for finding in _find_all(pending, n_jobs, backend, measure, allowance):
            if finding.values is None:
                remaining.drop(finding.cell)
                summary.failures[finding.failure] += 1
            else:
                store.add(finding.cell, finding.values, finding.seconds)
                remaining.finish(finding.cell, finding.seconds)
                summary.done += 1
            tell(finding, remaining.seconds())
    summary.seconds = time.perf_counter() - begin
    return summary


def find(cell: Cell, measure: Measure = measure_cell) -> Finding:
    """Measure one cell; whatever goes wrong becomes its failure, so that others go on."""
    begin = time.perf_counter()
    try:
        values: Values = to_plain(measure(cell))
        return Finding(cell, values, time.perf_counter() - begin)
    except Exception as error:
        if os.environ.get(DEBUG):
            traceback.print_exc()
        reason = f"{type(error).__name__}: {error}"
        return Finding(cell, None, time.perf_counter() - begin, reason)


def _find_on_one_core(cell: Cell, measure: Measure) -> Finding:
    """Measure one cell of several that run side by side, whose cores are all taken."""
    # Without this, a fit inside a worker of dask would ask for all the cores of the cluster.
    with parallel_config(backend="sequential"):
        return find(cell, measure)


def _find_all(
    cells: Sequence[Cell], n_jobs: int, backend: str | None, measure: Measure, allowance: Any
) -> Iterator[Finding]:
    """Yield what cells find, in the order in which they are done."""
    together = [cell for cell in cells if not cell.alone]
    with ExitStack() as stack:
        if backend == "dask":
            stack.enter_context(connect_dask(n_jobs))
        if backend is not None:
            stack.enter_context(parallel_config(backend=backend))
        try:
            yield from _find_side_by_side(together, n_jobs, measure)
        except BrokenExecutor as error:
            raise ChildProcessError(
                "A process that measured cells was killed, most likely for lack of memory. What "
                "was done is kept: run the same again with fewer jobs."
            ) from error
    for cell in cells:
        if cell.alone and (allowance is None or allowance.permits(cell)):
            finding = find(cell, measure)
            if allowance is not None:
                allowance.charge(finding)
            yield finding


def _find_side_by_side(cells: Sequence[Cell], n_jobs: int, measure: Measure) -> Iterator[Finding]:
    jobs = [delayed(_find_on_one_core)(cell, measure) for cell in cells]
    if not jobs:
        return
    # One at a time to each worker: cells take from milliseconds to minutes.
    parallel = partial(Parallel, n_jobs=n_jobs, batch_size=1)
    if get_active_backend()[0].supports_return_generator:
        yield from parallel(return_as="generator_unordered")(jobs)
        return
    # This backend answers when all is done: it gets a round at a time, so that little can be lost.
    with parallel() as workers:
        at_once = effective_n_jobs(n_jobs)
        for begin in range(0, len(jobs), at_once):
            yield from workers(jobs[begin : begin + at_once])


class RemainingTime:
    """How long a run will still take, from the cells that have been measured.

    A cell is expected to take the average of those of the same measure, data and method; where
    there are none yet, of the same measure and data, then of the same measure, then of all.
    """

    def __init__(self, store: Store, pending: Sequence[Cell], n_jobs: int) -> None:
        # Counted by kind: thousands of cells are of a few dozen kinds.
        self._pending = Counter((cell.kind, cell.alone) for cell in pending)
        self._n_jobs: int = effective_n_jobs(n_jobs)
        self._seconds: dict[tuple[str, ...], float] = defaultdict(float)
        self._seen: Counter[tuple[str, ...]] = Counter()
        for record in store.records.values():
            self._learn(Cell(record["measure"], record["settings"]).kind, record["seconds"])

    def finish(self, cell: Cell, seconds: float) -> None:
        self.drop(cell)
        self._learn(cell.kind, seconds)

    def drop(self, cell: Cell) -> None:
        """Forget a cell that failed: how soon it did says nothing of others."""
        self._pending[cell.kind, cell.alone] -= 1

    def seconds(self) -> float | None:
        """Return how long the rest is expected to take, or None while no cell is known."""
        if not self._seen:
            return None
        return sum(
            count * self._expect(kind) / (1 if alone else self._n_jobs)
            for (kind, alone), count in self._pending.items()
        )

    def _learn(self, kind: tuple[str, ...], seconds: float) -> None:
        for length in range(len(kind) + 1):
            self._seconds[kind[:length]] += seconds
            self._seen[kind[:length]] += 1

    def _expect(self, kind: tuple[str, ...]) -> float:
        while not self._seen[kind]:
            kind = kind[:-1]
        return self._seconds[kind] / self._seen[kind]


def connect_dask(n_jobs: int) -> AbstractContextManager[Any]:
    """Return a connection to a dask cluster, for as long as it is entered.

    A connection that this process has already stays as it is.  Otherwise it is the scheduler that
    dask's settings name, for instance in ``DASK_SCHEDULER_ADDRESS``, or `n_jobs` workers here.
    """
    try:
        dask, distributed = import_module("dask"), import_module("distributed")
    except ImportError as error:
        raise ImportError(
            "The backend dask is not installed: pip install 'marginmf[cluster]'."
        ) from error
    try:
        distributed.default_client()
    except ValueError:
        pass
    else:
        return nullcontext()
    address = dask.config.get("scheduler-address", None)
    if address is None:
        local = {"threads_per_worker": 1, "dashboard_address": None, "silence_logs": logging.ERROR}
        return distributed.Client(n_workers=effective_n_jobs(n_jobs), **local)
    try:
        return distributed.Client(address)
    except OSError as error:
        raise ConnectionError(
            f"No scheduler of dask answers at {address}, the address in dask's settings "
            "(DASK_SCHEDULER_ADDRESS)."
        ) from error
