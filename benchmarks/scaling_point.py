"""One fit in a process of its own, so that its memory is its own.

``python -m benchmarks.scaling_point '{"method": ..., ...}'`` prints one line of JSON.  With
``trace`` it says where the memory was allocated, instead of how much time and memory it took.
"""

import json
import os
import resource
import subprocess
import sys
import threading
import time
import tracemalloc
from collections import defaultdict
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

METHODS = ("HMF", "MMMF", "PMMMF")
REG = 10.0


@dataclass(frozen=True)
class Point:
    """What to fit: the method, the folder with pairs.npy and ratings.npy, and its parameters.

    Unless ``stops`` is set, the number of iterations alone ends a fit, so that the same work is
    done at all points.
    """

    method: str
    data: str
    n_factors: int
    max_iter: int = 10
    n_jobs: int = 1
    trace: bool = False
    stops: bool = False


def run(point: Point) -> dict[str, Any]:
    """Fit in a new process and return what it reports."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "benchmarks.scaling_point", json.dumps(asdict(point))]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"The fit of {point} ended with exit code {done.returncode}.")
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def resident_bytes(peak: bool = False) -> int:
    """Return the memory of this process now, or the most that it has had."""
    try:
        lines = Path("/proc/self/status").read_text().splitlines()
    except OSError:
        # Not Linux: the peak is all there is, on macOS in bytes.  (On Linux this number would
        # count what the parent process had when it started this one.)
        most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return most if sys.platform == "darwin" else 1024 * most
    fields = dict(line.split(":", 1) for line in lines)
    return 1024 * int(fields["VmHWM" if peak else "VmRSS"].split()[0])


def estimator(point: Point, **changes: Any) -> Any:
    """Return the unfitted model of a point."""
    from marginmf import ratings

    parameters = {
        "n_factors": point.n_factors,
        "reg": REG,
        "max_iter": point.max_iter,
        "n_jobs": point.n_jobs,
        "random_state": 0,
        **({} if point.stops else {"tol": 0.0}),
        **changes,
    }
    return getattr(ratings, point.method)(**parameters)


def parameter_bytes(model: Any) -> int:
    """Return what the fitted model has learned, in bytes."""
    names = ("user_factors_", "item_factors_", "thresholds_")
    return sum(getattr(model, name).nbytes for name in names if hasattr(model, name))


def measured(point: Point) -> dict[str, Any]:
    """Return seconds and bytes of one fit."""
    _warm_up(point)
    before = resident_bytes()
    pairs, ratings = (np.load(Path(point.data) / f"{name}.npy") for name in ("pairs", "ratings"))
    wall, cpu = time.perf_counter(), time.process_time()
    model = estimator(point).fit(pairs, ratings)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return {
        "wall": wall,
        "cpu": cpu,
        "peak_bytes": resident_bytes(peak=True) - before,
        "input_bytes": pairs.nbytes + ratings.nbytes,
        "parameter_bytes": parameter_bytes(model),
        "n_evaluations": int(model.n_evaluations_),
        "n_iter": np.atleast_1d(model.n_iter_).tolist(),
    }


def _warm_up(point: Point) -> None:
    """Import and compile everything, on ratings too few to leave a mark in memory."""
    generator = np.random.default_rng(0)
    pairs = np.argwhere(generator.random((20, 20)) < 0.5).astype(np.int32)
    ratings = generator.integers(1, 3, len(pairs), endpoint=True).astype(np.float32)
    estimator(point, n_factors=2, max_iter=3).fit(pairs, ratings)


class PeakWatch:
    """Keeps a snapshot of all allocations at the moment when they are largest (or nearly so)."""

    def __init__(self) -> None:
        self.largest = 0
        self.snapshot: tracemalloc.Snapshot | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)

    def __enter__(self) -> "PeakWatch":
        tracemalloc.start(25)
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._stop.set()
        self._thread.join()
        self.peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()

    def _watch(self) -> None:
        while not self._stop.wait(0.001):
            now = tracemalloc.get_traced_memory()[0]
            if now > 1.01 * self.largest:
                self.largest, self.snapshot = now, tracemalloc.take_snapshot()


def traced(point: Point) -> dict[str, Any]:
    """Return the bytes that are alive at the peak, by the line of the library that asked."""
    _warm_up(point)
    with PeakWatch() as watch:
        arrays = [np.load(Path(point.data) / f"{name}.npy") for name in ("pairs", "ratings")]
        model = estimator(point).fit(*arrays)
    sites: dict[str, int] = defaultdict(int)
    if watch.snapshot is not None:
        for statistic in watch.snapshot.statistics("traceback"):
            sites[site(statistic.traceback)] += statistic.size
    return {
        "peak_bytes": watch.peak,
        "seen_bytes": watch.largest,
        "sites": dict(sorted(sites.items(), key=lambda pair: -pair[1])),
        "input_bytes": sum(array.nbytes for array in arrays),
        "parameter_bytes": parameter_bytes(model),
    }


def site(frames: Any) -> str:
    """Return which line of the library an allocation comes from, and who called it there.

    The innermost line alone often says little: every vector of a solver is made by ``copy``.
    """
    own = [
        f"{frame.filename.split('/marginmf/')[-1]}:{frame.lineno}"
        for frame in frames
        if "/marginmf/" in frame.filename
    ]
    return " < ".join(own[:-4:-1]) or "the ratings as given"


if __name__ == "__main__":
    wanted = Point(**json.loads(sys.argv[1]))
    print(json.dumps(traced(wanted) if wanted.trace else measured(wanted)))
