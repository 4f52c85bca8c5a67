"""Threads change the speed and nothing else."""

import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from threadpoolctl import threadpool_info, threadpool_limits

from marginmf.backends import threads
from marginmf.backends.cpu import CpuKernels
from marginmf.backends.interface import Entries, Sides
from marginmf.backends.threads import (
    even_bounds,
    one_blas_thread,
    row_bounds,
    run,
)
from marginmf.losses import smooth_hinge, squared

#: Smaller than the real one, so that small problems are split.
SMALLEST_TASK = 20_000
N_ROWS, N_COLUMNS, N_LEVELS, N_FACTORS = 3000, 400, 5, 8


@pytest.fixture(autouse=True)
def small_tasks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(threads, "SMALLEST_TASK", SMALLEST_TASK)


def arrays(dtype: type = np.float32) -> dict[str, np.ndarray]:
    """Return a ragged problem with a few huge rows and many empty ones."""
    rng = np.random.default_rng(0)
    lengths = rng.geometric(1 / 40, size=N_ROWS) * (rng.random(N_ROWS) > 0.3)
    lengths[[0, 1500]] = 5000
    indptr = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    n = int(indptr[-1])
    assert n > 4 * SMALLEST_TASK
    return {
        "indptr": indptr,
        "rows": np.repeat(np.arange(N_ROWS, dtype=np.int32), lengths),
        "columns": rng.integers(N_COLUMNS, size=n).astype(np.int32),
        "levels": rng.integers(N_LEVELS, size=n).astype(np.int32),
        "order": rng.permutation(n).astype(np.int32),
        "scores": rng.normal(size=n).astype(dtype),
        "targets": rng.normal(size=n).astype(dtype),
        "thresholds": rng.normal(size=(N_ROWS, N_LEVELS - 1)).astype(dtype),
        "U": rng.normal(size=(N_ROWS, N_FACTORS)).astype(dtype),
        "V": rng.normal(size=(N_COLUMNS, N_FACTORS)).astype(dtype),
    }


def everything(kernels: CpuKernels, p: dict[str, np.ndarray]) -> list[np.ndarray]:
    """Return the outputs of every kernel."""
    indptr, scores, levels = p["indptr"], p["scores"], p["levels"]
    entries, factors = Entries(indptr[None], p["columns"]), Sides(p["U"], p["V"])
    gradients = [Sides(np.zeros_like(p["U"]), np.zeros_like(p["V"])) for _ in range(4)]
    moved = p["targets"].copy()
    kernels.spread(entries, scores, factors, gradients[0])
    kernels.axpy(0.3, scores, moved)
    return [
        kernels.scores(p["rows"], p["columns"], p["U"], p["V"]),
        kernels.two_level_gradient(entries, levels, 2, smooth_hinge, factors, gradients[1]),
        *kernels.threshold_gradient(
            entries, levels, p["thresholds"], np.inf, smooth_hinge, factors, gradients[2]
        ),
        kernels.real_gradient(entries, p["targets"], squared, factors, gradients[3]),
        *(side for sides in gradients for side in sides),
        kernels.gather(scores, p["order"]),
        *kernels.two_level_rows(indptr, scores, levels, 2, smooth_hinge),
        *kernels.threshold_rows(indptr, scores, levels, p["thresholds"], np.inf, smooth_hinge),
        *kernels.proximal_rows(indptr, scores, levels, N_LEVELS, smooth_hinge),
        *kernels.real_rows(indptr, scores, p["targets"], squared),
        kernels.solve_rows(indptr, p["columns"], p["targets"], p["V"], 1.0),
        np.array(kernels.dot(scores, p["targets"])),
        np.array(kernels.dots((scores, p["targets"]), scores)),
        kernels.combine((0.5, -2.0), (scores, p["targets"])),
        moved,
    ]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("n_threads", [2, 3])
def test_results_do_not_depend_on_the_number_of_threads(n_threads: int, dtype: type) -> None:
    problem = arrays(dtype)
    one, many = everything(CpuKernels(1), problem), everything(CpuKernels(n_threads), problem)
    for a, b in zip(one, many, strict=True):
        np.testing.assert_array_equal(a, b)


def test_large_problem_is_split() -> None:
    p = arrays()
    assert len(row_bounds(p["indptr"], 2)) > 2
    assert len(even_bounds(len(p["scores"]), 2)) > 2
    assert len(row_bounds(p["indptr"], 1)) == 2


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


def test_several_python_threads_at_once() -> None:
    problem = arrays()
    expected = everything(CpuKernels(1), problem)
    results: dict[int, list[np.ndarray]] = {}

    def work(k: int) -> None:
        results[k] = everything(CpuKernels(1 + k % 3), problem)

    threads = [threading.Thread(target=work, args=(k,)) for k in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    assert sorted(results) == list(range(6))
    for result in results.values():
        for a, b in zip(result, expected, strict=True):
            np.testing.assert_array_equal(a, b)


FORKING = """
import os, sys
import numpy as np
from marginmf.backends.cpu import CpuKernels

kernels = CpuKernels(2)
a = np.arange(200_000.0)
before = kernels.dot(a, a)          # the pool of threads exists now
child = os.fork()
if child == 0:
    os._exit(0 if kernels.dot(a, a) == before else 3)
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
