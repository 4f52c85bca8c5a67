"""Split a kernel over threads, so that the answer is the same for any number of them.

Kernels are compiled without the interpreter lock and work on a range of rows whose results nobody
else writes, so a plain thread pool runs them side by side: no parallel twins, no threading layer to
choose, no trouble when several Python threads fit models at once.
"""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np

from marginmf._utils.concurrency import after_fork, hold_at_fork
from marginmf._utils.types import IntArray

# Below this much work, in multiplications, a second thread costs more than it brings.
SMALLEST_TASK = 600_000
# More parts than threads, so that a thread whose rows were light takes another part.
PARTS_PER_THREAD = 4

_pools: dict[int, ThreadPoolExecutor] = {}
# A forked child has the pools but not their threads: forget them, or it would wait for ever.
after_fork(_pools.clear)


def run(task: Callable[..., Any], bounds: IntArray, n_threads: int, *args: Any) -> None:
    """Call ``task(start, stop, *args)`` for every pair of neighbouring bounds.

    The caller does its share, so that short work wakes as few threads as it can, and work inside
    work cannot wait for itself.
    """
    if len(bounds) == 2:
        # Solvers come here for every small vector operation: no lists, no pools.
        start, stop = int(bounds[0]), int(bounds[1])
        if start < stop:
            task(start, stop, *args)
        return
    parts = deque((int(a), int(b)) for a, b in pairwise(bounds) if a < b)

    def work() -> None:
        while parts:
            try:
                part = parts.popleft()
            except IndexError:  # somebody else took the last one
                return
            task(*part, *args)

    helpers = [_pool(n_threads).submit(work) for _ in range(min(n_threads, len(parts)) - 1)]
    try:
        work()
    finally:
        # After an error or an interruption nobody begins another part, and nobody is left at work.
        parts.clear()
        for helper in helpers:
            if not helper.cancel():
                helper.result()


def _pool(n_threads: int) -> ThreadPoolExecutor:
    """Return the threads that help the caller where n work."""
    if n_threads not in _pools:
        _pools[n_threads] = ThreadPoolExecutor(n_threads - 1, thread_name_prefix="marginmf")
    return _pools[n_threads]


def even_bounds(n: int, n_threads: int, work_each: int = 1) -> IntArray:
    """Cut ``range(n)`` into parts of equal length."""
    parts = _n_parts(n * work_each, n_threads)
    # linspace takes its time, and small vectors come here often.
    return np.array([0, n]) if parts == 1 else np.linspace(0, n, parts + 1).astype(np.int64)


def row_bounds(indptr: IntArray, n_threads: int, work_each: int = 1) -> IntArray:
    """Cut the rows into parts with about the same number of entries."""
    return row_parts(indptr, _n_parts(int(indptr[-1]) * work_each, n_threads))


def row_parts(indptr: IntArray, n_parts: int) -> IntArray:
    """Cut the rows into n parts with about the same number of entries."""
    if n_parts == 1:
        return np.array([0, len(indptr) - 1])
    cuts = np.searchsorted(indptr, np.linspace(0, int(indptr[-1]), n_parts + 1)[1:-1])
    return np.concatenate(([0], np.maximum.accumulate(cuts), [len(indptr) - 1]))


class _OneBlasThread:
    """Keeps BLAS to one thread while at least one caller is inside.

    The number of BLAS threads belongs to the whole process.  Callers are listed by their threads,
    because if each restored what it found, one that comes in while another is inside would leave
    BLAS at one thread for good.  In a forked child only the thread that forked is still inside.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._inside: list[int] = []
        self._controller: Any = None
        self._limits: Any = None
        hold_at_fork(self._lock)
        after_fork(self._forget_others)

    @contextmanager
    def __call__(self) -> Iterator[None]:
        from threadpoolctl import ThreadpoolController

        caller = threading.get_ident()
        with self._lock:
            if not self._inside:
                # Kept, because finding the libraries takes longer than one user's list.
                self._controller = self._controller or ThreadpoolController()
                self._limits = self._controller.limit(limits=1, user_api="blas")
            self._inside.append(caller)
        try:
            yield
        finally:
            with self._lock:
                self._inside.remove(caller)
                if not self._inside:
                    self._limits.restore_original_limits()

    def _forget_others(self) -> None:
        with self._lock:
            before, own = self._inside, threading.get_ident()
            self._inside = [caller for caller in before if caller == own]
            if before and not self._inside:
                self._limits.restore_original_limits()


#: ``with one_blas_thread():`` around work that our own threads share out: more threads in each of
#: them would only get in each other's way.
one_blas_thread = _OneBlasThread()


def one_openmp_thread() -> Any:
    """Return a context in which OpenMP has one thread: sums that several share are rounded anew.

    It limits the calling thread alone.  Libraries that are loaded later are not found.
    """
    return _libraries().limit(limits=1, user_api="openmp")


@cache
def _libraries() -> Any:
    # Kept, because finding the libraries takes as long as to divide rows by k-means.
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


def _n_parts(work: int, n_threads: int) -> int:
    if n_threads == 1:
        return 1
    return max(1, min(n_threads * PARTS_PER_THREAD, work // SMALLEST_TASK))
