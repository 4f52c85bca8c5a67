"""Threads change the speed and nothing else."""

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_info, threadpool_limits

from marginmf.backends import threads
from marginmf.backends.cpu import gradients as kernels
from marginmf.backends.cpu.backend import CpuBackend
from marginmf.backends.cpu.gradients import STRIDE, BlockSizes, RatingBlocks, over_blocks
from marginmf.backends.rows import Rows
from marginmf.backends.specs import Anchored, Proximal, Real, Spec, Thresholds, TwoLevel
from marginmf.backends.threads import (
    even_bounds,
    one_blas_thread,
    row_bounds,
    run,
)
from marginmf.losses import smooth_hinge, squared
from marginmf.ratings import HMF, MMMF, PMMMF
from marginmf.thresholds import ThresholdLoss

#: Smaller than the real one, so that small problems are split.
SMALLEST_TASK = 20_000
N_ROWS, N_COLUMNS, N_LEVELS, N_FACTORS = 3000, 400, 5, 8
N_BLOCKS = 12


@dataclass(frozen=True)
class Small(BlockSizes):
    """Many blocks and bands, also of small matrices."""

    band: int = 60

    def n_blocks(self, n_entries: int, n_rows: int, n_columns: int, n_factors: int) -> int:
        return min(N_BLOCKS, n_columns)


@pytest.fixture(autouse=True)
def small_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "SMALLEST_TASK", SMALLEST_TASK)
    monkeypatch.setattr(kernels, "SIZES", Small())


@dataclass(frozen=True, eq=False)
class Problem:
    """A ragged problem with a few huge rows and many empty ones."""

    rows: Rows
    scores: np.ndarray
    targets: np.ndarray
    thresholds: np.ndarray
    U: np.ndarray
    V: np.ndarray


def problem(dtype: type = np.float32) -> Problem:
    rng = np.random.default_rng(0)
    lengths = rng.geometric(1 / 40, size=N_ROWS) * (rng.random(N_ROWS) > 0.3)
    lengths[[0, 1500]] = 5000
    indptr = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    n = int(indptr[-1])
    assert n > 4 * SMALLEST_TASK
    return Problem(
        rows=Rows(
            levels=np.arange(1.0, N_LEVELS + 1),
            indptr=indptr,
            indices=rng.integers(N_COLUMNS, size=n).astype(np.int32),
            codes=rng.integers(N_LEVELS, size=n).astype(np.int16),
        ),
        scores=rng.normal(size=n).astype(dtype),
        targets=rng.normal(size=n).astype(dtype),
        thresholds=rng.normal(size=(N_ROWS, N_LEVELS - 1)).astype(dtype),
        U=rng.normal(size=(N_ROWS, N_FACTORS)).astype(dtype),
        V=rng.normal(size=(N_COLUMNS, N_FACTORS)).astype(dtype),
    )


def specs_of(p: Problem) -> list[Spec]:
    return [
        TwoLevel(smooth_hinge, 2),
        Thresholds(smooth_hinge),
        Proximal(smooth_hinge),
        Real(squared, p.targets),
    ]


def gradients(cpu: CpuBackend, p: Problem) -> list[np.ndarray]:
    """Return every objective and its gradient."""
    found: list[np.ndarray] = []
    for spec in specs_of(p):
        resident = cpu.place(p.rows, spec, 0.3, p.V.shape, p.V.dtype)
        thresholds = p.thresholds[:, : spec.n_thresholds(N_LEVELS)]
        value, gradient = cpu.gradient(resident, resident.layout.join([p.U, p.V, thresholds]))
        found += [np.array(value), gradient]
    return found


def everything(cpu: CpuBackend, p: Problem) -> list[np.ndarray]:
    """Return the outputs of every operation of the backend."""
    real, anchors = Real(squared, p.targets), p.thresholds[p.rows.rows]
    found: list[Any] = gradients(cpu, p)
    for spec in (*specs_of(p), Anchored(ThresholdLoss(smooth_hinge), anchors)):
        thresholds = np.ascontiguousarray(p.thresholds[:, : spec.n_thresholds(N_LEVELS)])
        found += cpu.row_gradients(p.rows, spec, p.U, p.V, thresholds)
        found += cpu.row_losses(p.rows, spec, p.scores, thresholds)
    return [
        *(array for array in found if array is not None),
        cpu.scores(p.rows.rows, p.rows.indices, p.U, p.V),
        cpu.solve_rows(p.rows, real, p.V, 1.0),
        cpu.improve_rows(p.rows, real, p.V, 1.0, p.U, 2),
        np.array(cpu.dots((p.scores, p.targets), p.scores)),
        cpu.combine((0.5, -2.0), (p.scores, p.targets)),
        cpu.combine((0.5, -2.0), (p.scores, p.targets), out=np.empty_like(p.scores)),
    ]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_threads", [2, 3, 8])
def test_results_do_not_depend_on_the_number_of_threads(n_threads: int, dtype: type) -> None:
    p = problem(dtype)
    one, many = everything(CpuBackend(1), p), everything(CpuBackend(n_threads), p)
    for a, b in zip(one, many, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("band", [1, 7, 10**9])
def test_results_do_not_depend_on_the_bands(band: int, monkeypatch: pytest.MonkeyPatch) -> None:
    p = problem()
    expected = gradients(CpuBackend(1), p)
    monkeypatch.setattr(kernels, "SIZES", Small(band=band))
    for n_threads in (1, 2, 8):
        for a, b in zip(gradients(CpuBackend(n_threads), p), expected, strict=True):
            np.testing.assert_array_equal(a, b)


def test_large_problem_is_split() -> None:
    p = problem()
    assert len(row_bounds(p.rows.indptr, 2)) > 2
    assert len(even_bounds(len(p.scores), 2)) > 2
    assert len(row_bounds(p.rows.indptr, 1)) == 2
    resident = CpuBackend(2).place(p.rows, TwoLevel(smooth_hinge), 0.3, p.V.shape, p.V.dtype)
    assert len(resident.blocks.indptr) == N_BLOCKS
    assert len(resident.blocks.bands) > 2 * N_BLOCKS


def assert_covers(bounds: np.ndarray, n: int) -> None:
    assert bounds[0] == 0
    assert bounds[-1] == n
    assert (np.diff(bounds) >= 0).all()
    covered: list[int] = []
    run(lambda start, stop: covered.extend(range(start, stop)), bounds, 1)
    assert covered == list(range(n))


relaxed = settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
sizes = {"n_threads": st.integers(1, 9), "work": st.integers(1, 100_000)}


@given(n=st.integers(0, 2000), **sizes)
@relaxed
def test_even_bounds_cover_the_range(n: int, n_threads: int, work: int) -> None:
    assert_covers(even_bounds(n, n_threads, work), n)


@given(lengths=st.lists(st.sampled_from([0, 0, 1, 3, 500]), max_size=60), **sizes)
@relaxed
def test_row_bounds_cover_the_rows(lengths: list[int], n_threads: int, work: int) -> None:
    indptr = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    assert_covers(row_bounds(indptr, n_threads, work), len(lengths))


@given(seed=st.integers(0, 1000), n_threads=st.integers(2, 4))
@relaxed
def test_parts_of_rows_have_about_the_same_work(seed: int, n_threads: int) -> None:
    lengths = np.random.default_rng(seed).integers(0, 50, size=2000)
    indptr = np.concatenate(([0], np.cumsum(lengths)))
    work = np.diff(indptr[row_bounds(indptr, n_threads, work_each=1000)])
    assert work.max() <= work.mean() + lengths.max()


@pytest.mark.parametrize("n_threads", [1, 3])
def test_exception_in_a_part_reaches_the_caller(n_threads: int) -> None:
    def task(start: int, stop: int) -> None:
        if start > 0:
            raise RuntimeError("in a part")

    with pytest.raises(RuntimeError, match="in a part"):
        run(task, np.array([0, 1, 2, 3]), n_threads)


@pytest.mark.parametrize("where", [0, 1])
def test_after_an_error_nobody_is_left_at_work(where: int) -> None:
    # The caller's part and a helper's wait for each other, so that both are at work.
    together, begun, ended = threading.Barrier(2), [], []

    def task(start: int, stop: int) -> None:
        begun.append(start)
        if start < 2:
            together.wait(10)
            if start == where:
                raise RuntimeError("in a part")
            time.sleep(0.05)
        ended.append(start)

    with pytest.raises(RuntimeError, match="in a part"):
        run(task, np.arange(3), 2)
    assert sorted(begun) == [0, 1]
    assert ended == [1 - where]


def test_work_inside_work_does_not_wait_for_itself() -> None:
    done: list[int] = []

    def outer(start: int, stop: int) -> None:
        run(lambda a, b: done.append(10 * start + a), np.arange(4), 2)

    run(outer, np.arange(4), 2)
    assert sorted(done) == [0, 1, 2, 10, 11, 12, 20, 21, 22]


def placed() -> tuple[RatingBlocks, np.ndarray]:
    """Return blocks and bands of a problem that is large enough for several threads."""
    p = problem()
    found = RatingBlocks.of(p.rows, N_COLUMNS, N_BLOCKS)
    return found, found.bands


def within(seconds: float, work: Callable[[], Any]) -> None:
    """Do some work in a thread, and fail if it hangs; what it raises is raised here."""
    raised: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=guarded, daemon=True)
    thread.start()
    thread.join(seconds)
    assert not thread.is_alive(), "the threads wait for each other"
    if raised:
        raise raised[0]


def following(
    n_bands: int, each: Callable[[int, int], None]
) -> Callable[[int, int, np.ndarray], int]:
    """Return a kernel as in `marginmf.backends.cpu.gradients`, in Python: one band a call."""

    def kernel(block: int, band: int, progress: np.ndarray) -> int:
        if block > 0 and progress[(block - 1) * STRIDE] <= band:
            return band
        each(block, band)
        if band + 1 < n_bands:
            progress[block * STRIDE] = band + 1
        return band + 1

    return kernel


@pytest.mark.parametrize("n_threads", [1, 2, 5])
def test_a_block_follows_the_one_before_it_band_by_band(n_threads: int) -> None:
    found, bands = placed()
    done: list[tuple[int, int]] = []
    kernel = following(len(bands) - 1, lambda block, band: done.append((block, band)))
    within(60, lambda: over_blocks(kernel, found, n_threads, N_FACTORS))
    assert sorted(done) == [(k, b) for k in range(N_BLOCKS) for b in range(len(bands) - 1)]
    when = {task: position for position, task in enumerate(done)}
    for block, band in done:
        assert block == 0 or when[block - 1, band] < when[block, band]
        assert band == 0 or when[block, band - 1] < when[block, band]


@pytest.mark.parametrize("n_threads", [1, 2, 5])
@pytest.mark.parametrize("where", [(0, 0), (0, 3), (1, 2), (N_BLOCKS - 1, 0)])
def test_an_exception_inside_a_block_does_not_hang_the_others(
    where: tuple[int, int], n_threads: int
) -> None:
    found, bands = placed()

    def fail(block: int, band: int) -> None:
        if (block, band) == where:
            raise RuntimeError("in a block")

    kernel = following(len(bands) - 1, fail)
    with pytest.raises(RuntimeError, match="in a block"):
        within(60, lambda: over_blocks(kernel, found, n_threads, N_FACTORS))
    # And the threads are free for the next one.
    done: list[tuple[int, int]] = []
    kernel = following(len(bands) - 1, lambda *task: done.append(task))
    within(60, lambda: over_blocks(kernel, found, n_threads, N_FACTORS))
    assert len(done) == N_BLOCKS * (len(bands) - 1)


def test_several_python_threads_at_once() -> None:
    p = problem()
    expected = everything(CpuBackend(1), p)
    results: dict[int, list[np.ndarray]] = {}

    def work(k: int) -> None:
        results[k] = everything(CpuBackend(1 + k % 3), p)

    workers = [threading.Thread(target=work, args=(k,), daemon=True) for k in range(6)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(timeout=120)
    assert sorted(results) == list(range(6))
    for result in results.values():
        for a, b in zip(result, expected, strict=True):
            np.testing.assert_array_equal(a, b)


def test_several_fits_at_once_end_as_one_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    # Every gradient goes over several threads, and so do the stages of HMF: fits within fits.
    monkeypatch.setattr(threads, "SMALLEST_TASK", 200)
    rng = np.random.default_rng(1)
    pairs = np.argwhere(rng.random((50, 40)) < 0.4)
    ratings = rng.integers(1, 6, size=len(pairs))

    def model(k: int, n_jobs: int) -> Any:
        fixed = {"n_factors": 4, "reg": 1.0, "max_iter": 5, "random_state": 0, "n_jobs": n_jobs}
        kinds = (
            lambda: HMF(**fixed, schedule="independent"),
            lambda: MMMF(**fixed),
            lambda: PMMMF(**fixed),
        )
        return kinds[k % 3]().fit(pairs, ratings)

    expected = [model(k, 1).user_factors_ for k in range(3)]
    found: dict[int, np.ndarray] = {}
    workers = [
        threading.Thread(
            target=lambda k=k: found.update({k: model(k, 2 + k % 4).user_factors_}), daemon=True
        )
        for k in range(9)
    ]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join(timeout=120)
    assert sorted(found) == list(range(9))
    for k, factors in found.items():
        np.testing.assert_array_equal(factors, expected[k % 3])


FORKING = """
import os, sys
import numpy as np
from marginmf.backends import threads
from marginmf.backends.cpu import backend, gradients
from marginmf.backends.rows import Rows
from marginmf.backends.specs import TwoLevel
from marginmf.losses import smooth_hinge

threads.SMALLEST_TASK = 1_000
gradients.SIZES = gradients.BlockSizes(cache_bytes=1 << 10, shortest=1)
cpu, rng = backend.CpuBackend(2), np.random.default_rng(0)
a = np.arange(200_000.0)
rows = Rows(np.arange(2.0), np.arange(0, 20_001, 20), np.arange(20_000, dtype=np.int32) % 99,
            np.arange(20_000, dtype=np.int16) % 2)
resident = cpu.place(rows, TwoLevel(smooth_hinge), 1.0, (99, 8), np.float32)
assert len(resident.blocks.indptr) > 2
U, V = rng.normal(size=(1_000, 8)), rng.normal(size=(99, 8))
at = resident.layout.join([U, V, U[:, :0]])

def results():
    return cpu.dots((a,), a), cpu.gradient(resident, at)[0]

before = results()                  # the pool of threads exists now
child = os.fork()
if child == 0:
    os._exit(0 if results() == before else 3)
_, status = os.waitpid(child, 0)
sys.exit(os.waitstatus_to_exitcode(status))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_usable_after_a_fork() -> None:
    sources = str(Path(sys.modules["marginmf"].__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": sources}
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKING],
        env=environment,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0


def blas_threads() -> list[int]:
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def test_blas_gets_its_threads_back_when_the_last_caller_leaves() -> None:
    with threadpool_limits(3, user_api="blas"):
        before = blas_threads()
        first, second = one_blas_thread(), one_blas_thread()
        first.__enter__()
        second.__enter__()
        assert set(blas_threads()) == {1}
        first.__exit__(None, None, None)
        assert set(blas_threads()) == {1}
        second.__exit__(None, None, None)
        assert blas_threads() == before
        with pytest.raises(RuntimeError, match="inside"), one_blas_thread():
            raise RuntimeError("inside")
        assert blas_threads() == before
