"""How time and memory grow with the ratings, factors, levels, users and items.

Every fit is a process of its own, with a fixed number of iterations on synthetic ratings.  A power
law is fitted to the CPU seconds and to the peak of the memory along each axis: once through all
points, and once through the upper half of the axis, where costs that do not grow no longer matter.
Memory is what a process has at its peak beyond what it had after imports and a tiny fit; the
ratings as given are part of it.

``python -m studies.peers.scaling '{"method": ..., ...}'`` is one fit: it prints a line of JSON.
"""

import json
import os
import resource
import subprocess
import sys
import threading
import time
import tracemalloc
from argparse import ArgumentParser, Namespace
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from studies.harness.commands import add_result_arguments, load_results, save_results
from studies.peers import scaling_report, synthetic
from studies.peers.synthetic import Shape

METHODS = ("HMF", "MMMF", "PMMMF")
REG = 10.0


class Position(NamedTuple):
    """One position on an axis: the shape of the ratings, and the number of factors."""

    shape: Shape
    n_factors: int


LEVELS = (2, 3, 5, 7, 10, 14, 20)
USUAL = Position(Shape(5_000, 5_000, 500_000), 32)

#: The axes, and the positions on each; what is not on the axis stays as it is at its start.
AXES: dict[str, dict[int, Position]] = {
    "ratings": {
        n: Position(Shape(5_000, 5_000, n), 32)
        for n in (10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)
    },
    "factors": {d: Position(USUAL.shape, d) for d in (2, 4, 8, 16, 32, 64, 128, 256)},
    "levels": {n: Position(USUAL.shape._replace(n_levels=n), 32) for n in LEVELS},
    # The same, but a fit stops when it is done: what stages learn from each other counts.
    "levels, until done": {n: Position(USUAL.shape._replace(n_levels=n), 32) for n in LEVELS},
    "users": {
        n: Position(Shape(n, 1_000, 300_000), 32) for n in (1_000, 3_000, 10_000, 30_000, 100_000)
    },
    "items": {
        n: Position(Shape(1_000, n, 300_000), 32) for n in (1_000, 3_000, 10_000, 30_000, 100_000)
    },
}
LARGE = Position(Shape(200_000, 50_000, 50_000_000), 64)
#: Where threads are compared: the shape of MovieLens 1M.
THREADED, N_JOBS = Position(Shape(6_040, 3_706, 1_000_209), 100), (1, 2)
#: The positions whose memory is traced to the lines that ask for it: few and many parameters.
TRACED = {"many ratings": AXES["ratings"][3_000_000], "many parameters": AXES["factors"][256]}


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--axes", nargs="+", choices=list(AXES), default=list(AXES))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--max-iter", type=int, default=10)
    parser.add_argument(
        "--quick",
        action="store_true",
        help="once, with at most a million ratings",
    )
    parser.add_argument(
        "--large", action="store_true", help="only HMF on 50 million ratings, on two threads"
    )
    add_result_arguments(parser)


def main(args: Namespace) -> None:
    name = "scaling-large" if args.large else "scaling"
    if args.markdown:
        results = load_results(args, name)
    else:
        results = large(args) if args.large else laws(args)
        save_results(args, name, results)
    print(scaling_report.tables(results))
    if not args.large:
        file = args.out / "scaling.svg"
        scaling_report.picture(results, file)
        print(f"\nThe plot is in {file}.", file=sys.stderr)


def laws(args: Namespace) -> dict[str, Any]:
    """Measure every method at every position of every axis, in turn; trace the memory of two."""
    results: dict[str, Any] = {"points": [], "threads": [], "traces": []}
    repeats = 1 if args.quick else args.repeats
    for axis in args.axes:
        for value, position in AXES[axis].items():
            if args.quick and position.shape.n_ratings > 1_000_000:
                continue
            with write_ratings(position.shape) as folder:
                for repetition in range(repeats):
                    for method in args.methods:
                        point = Point(method, folder, position.n_factors, args.max_iter)
                        if axis.endswith("until done"):
                            point = replace(point, max_iter=100, stops=True)
                        found = measure_point(point, position, axis=axis, value=value)
                        results["points"].append({**found, "repetition": repetition})
    with write_ratings(THREADED.shape) as folder:
        for _ in range(repeats):
            for method in args.methods:
                for n_jobs in N_JOBS:
                    point = Point(method, folder, THREADED.n_factors, args.max_iter, n_jobs)
                    results["threads"].append(measure_point(point, THREADED))
    for name, position in TRACED.items():
        if args.quick and position.shape.n_ratings > 1_000_000:
            continue
        with write_ratings(position.shape) as folder:
            for method in args.methods:
                point = Point(method, folder, position.n_factors, args.max_iter, trace=True)
                results["traces"].append(measure_point(point, position, name=name))
    return results


def large(args: Namespace) -> dict[str, Any]:
    """Fit the large set once, until the fit itself is done, as a user would."""
    with write_ratings(LARGE.shape) as folder:
        point = Point("HMF", folder, LARGE.n_factors, max_iter=100, n_jobs=2, stops=True)
        return {"large": measure_point(point, LARGE)}


@contextmanager
def write_ratings(shape: Shape) -> Iterator[str]:
    """Return a temporary folder with synthetic ratings, for a process of its own to read."""
    with TemporaryDirectory(prefix="marginmf-scaling-") as folder:
        ratings = synthetic.make(shape)
        np.save(Path(folder) / "pairs.npy", ratings.pairs)
        np.save(Path(folder) / "ratings.npy", ratings.ratings)
        yield folder


def measure_point(point: "Point", position: Position, **more: Any) -> dict[str, Any]:
    """Run a point and return all that is known of it."""
    where = {
        "method": point.method,
        **position.shape._asdict(),
        "n_factors": position.n_factors,
        **more,
    }
    found = {**where, "max_iter": point.max_iter, "n_jobs": point.n_jobs, **run_point(point)}
    shown = {key: value for key, value in found.items() if key != "sites"}
    print(shown, file=sys.stderr, flush=True)
    return found


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


def run_point(point: Point) -> dict[str, Any]:
    """Fit in a new process and return what it reports."""
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "studies.peers.scaling", json.dumps(asdict(point))]
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


def measure_fit(point: Point) -> dict[str, Any]:
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


def trace_fit(point: Point) -> dict[str, Any]:
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
    print(json.dumps(trace_fit(wanted) if wanted.trace else measure_fit(wanted)))
