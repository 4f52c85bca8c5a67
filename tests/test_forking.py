"""A child that is forked in the middle of another thread's work goes on as if that were done."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import marginmf

# Each case is what another thread is in the middle of when the process forks, and what the child
# then does itself.  The main thread forks when the other says so, and ends that one afterwards.
PROGRAM = """
import os, sys, threading, time, warnings
from functools import cached_property
import numpy as np
from numba.core.compiler_lock import global_compiler_lock
from threadpoolctl import threadpool_info, threadpool_limits
from marginmf.backends.cpu import compiling
from marginmf.backends.threads import one_blas_thread
from marginmf.labels.algebra import clusters
from marginmf.ratings import MMMF, Ratings
from marginmf.ratings.fitting.on_demand import LearnedOnDemand

begun, ended, parent = threading.Event(), threading.Event(), os.getpid()
pairs = [(user, item) for user in range(12) for item in range(9)]
stars = [(user * item) % 4 + 1 for user, item in pairs]


def wait(*anything):
    if os.getpid() == parent:
        begun.set()
        ended.wait(60)


def calibrating():
    model = MMMF(2, 1.0, random_state=0, max_iter=5, calibrate=False).fit(pairs, stars)
    expected = MMMF(2, 1.0, random_state=0, max_iter=5, calibrate=False).fit(pairs, stars)
    expected = expected.predict_proba(pairs)
    learn = LearnedOnDemand._learn_calibrator
    LearnedOnDemand._learn_calibrator = lambda model: (wait(), learn(model))[1]
    return lambda: model.predict_proba(pairs), lambda: (
        model.predict_proba(pairs) == expected
    ).all() and model._calibrator is not None


def deriving():
    # In Python 3.11, a lock that all ratings share.
    ratings, indices = Ratings.of(pairs, stars), Ratings.item_indices.fget
    Ratings.item_indices = property(lambda data: (wait(), indices(data))[1])
    return lambda: ratings.by_item, lambda: len(Ratings.of(pairs, stars).by_item.indptr) == 10


def count_threads():
    return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]


def in_blas():
    limit = threadpool_limits(3, user_api="blas")
    before = count_threads()

    def work():
        with one_blas_thread():
            wait()

    def child():
        free = count_threads() == before
        with one_blas_thread():
            limited = set(count_threads()) == {1}
        return free and limited and count_threads() == before and np.eye(99).dot(np.eye(99))[0, 0]

    return work, child


def in_kmeans():
    before = list(warnings.filters)

    def work():
        with clusters.quietly():
            wait()

    def child():
        return warnings.filters == before and len(clusters.find_clusters(np.eye(4), 2, 0)) == 4

    return work, child


def compiling_a_kernel():
    def work():
        with global_compiler_lock:
            begun.set()
            time.sleep(0.3)

    return work, lambda: compiling.kernel(lambda x: x + x, disk=False)(21) == 42


def getting_a_lock():
    from marginmf.ratings.fitting import on_demand

    def work():
        with on_demand._locks_lock:
            begun.set()
            time.sleep(0.3)

    def child():
        with on_demand._locks_lock:
            return True

    return work, child


failed = []
for case in (calibrating, deriving, in_blas, in_kmeans, compiling_a_kernel, getting_a_lock):
    begun.clear(), ended.clear()
    work, child = case()
    thread = threading.Thread(target=work)
    thread.start()
    assert begun.wait(60)
    pid = os.fork()
    if pid == 0:
        try:
            os._exit(0 if child() else 3)
        finally:
            os._exit(4)
    for _ in range(200):
        found, status = os.waitpid(pid, os.WNOHANG)
        if found:
            break
        time.sleep(0.05)
    else:
        os.kill(pid, 9)
        os.waitpid(pid, 0)
        status = "hangs"
    ended.set()
    thread.join()
    if status:
        failed.append((case.__name__, status))
sys.exit(f"{failed}" if failed else 0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_a_child_does_not_wait_for_threads_that_it_does_not_have() -> None:
    sources = str(Path(marginmf.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", PROGRAM],
        env={**os.environ, "PYTHONPATH": sources},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
