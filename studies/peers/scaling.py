"""How time and memory grow with the ratings, factors, levels, users and items.

Every fit is a process of its own, with a fixed number of iterations on synthetic ratings.  A power
law is fitted to the CPU seconds and to the peak of the memory along each axis: once through all
points, and once through the upper half of the axis, where costs that do not grow no longer matter.
Memory is what a process has at its peak beyond what it had after imports and a tiny fit; the
ratings as given are part of it.

``python -m studies.peers.scaling FOLDER '{"method": ..., ...}'`` is one fit: it prints JSON.
"""

import json
import resource
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from studies.harness.commands import add_result_arguments, load_results, run_module, save_results
from studies.peers import scaling_report, synthetic
from studies.peers.synthetic import Shape

METHODS = ("HMF", "MMMF", "PMMMF")
LEVELS = (2, 3, 5, 7, 10, 14, 20)
MANY = (1_000, 3_000, 10_000, 30_000, 100_000)
USUAL = Shape(5_000, 5_000, 500_000)
#: The axes: for each value on them the shape of the ratings and the number of factors.
AXES: dict[str, dict[int, tuple[Shape, int]]] = {
    "ratings": {
        n: (USUAL._replace(n_ratings=n), 32)
        for n in (10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)
    },
    "factors": {d: (USUAL, d) for d in (2, 4, 8, 16, 32, 64, 128, 256)},
    "levels": {n: (USUAL._replace(n_levels=n), 32) for n in LEVELS},
    # The same, but a fit stops when it has converged: what stages learn from each other counts.
    "levels, until done": {n: (USUAL._replace(n_levels=n), 32) for n in LEVELS},
    "users": {n: (Shape(n, 1_000, 300_000), 32) for n in MANY},
    "items": {n: (Shape(1_000, n, 300_000), 32) for n in MANY},
}
LARGE = Shape(200_000, 50_000, 50_000_000), 64
#: Where threads are compared: the shape of MovieLens 1M.
THREADED, N_JOBS = (Shape(6_040, 3_706, 1_000_209), 100), (1, 2)


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--axes", nargs="+", choices=list(AXES), default=list(AXES))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--max-iter", type=int, default=10)
    parser.add_argument("--quick", action="store_true", help="once, with at most a million ratings")
    parser.add_argument(
        "--large", action="store_true", help="only HMF on 50 million ratings, on two threads"
    )
    add_result_arguments(parser)


def main(args: Namespace) -> None:
    name = "scaling-large" if args.large else "scaling"
    if args.markdown:
        results = load_results(args, name)
    else:
        results = measure_large() if args.large else measure_axes(args)
        save_results(args, name, results)
    print("\n\n".join(scaling_report.parts(results).values()))
    if not args.large:
        file = args.out / "scaling.svg"
        scaling_report.draw(results, file)
        print(f"\nThe plot is in {file}.", file=sys.stderr)


def measure_axes(args: Namespace) -> dict[str, Any]:
    """Measure every method at every value of every axis, in turn, and then on several threads."""
    repeats = range(1 if args.quick else args.repeats)
    points, threads = [], []
    for axis in args.axes:
        for value, (shape, n_factors) in AXES[axis].items():
            if args.quick and shape.n_ratings > 1_000_000:
                continue
            ends = {"max_iter": args.max_iter, "tol": 0.0}
            if axis.endswith("until done"):
                ends = {"max_iter": 100}
            with write_ratings(shape) as folder:
                for repetition, method in product(repeats, args.methods):
                    found = measure(folder, method, shape, n_factors=n_factors, **ends)
                    points.append({**found, "axis": axis, "value": value, "repetition": repetition})
    shape, n_factors = THREADED
    with write_ratings(shape) as folder:
        for _, method, n_jobs in product(repeats, args.methods, N_JOBS):
            ends = {"max_iter": args.max_iter, "tol": 0.0, "n_jobs": n_jobs}
            threads.append(measure(folder, method, shape, n_factors=n_factors, **ends))
    return {"points": points, "threads": threads}


def measure_large() -> dict[str, Any]:
    """Fit the large set once, until the fit itself has converged, as a user would."""
    shape, n_factors = LARGE
    with write_ratings(shape) as folder:
        return {"large": measure(folder, "HMF", shape, n_factors=n_factors, max_iter=100, n_jobs=2)}


@contextmanager
def write_ratings(shape: Shape) -> Iterator[str]:
    """Return a temporary folder with synthetic ratings, for a process of its own to read."""
    with TemporaryDirectory(prefix="marginmf-scaling-") as folder:
        ratings = synthetic.make(shape)
        np.save(Path(folder) / "pairs.npy", ratings.pairs)
        np.save(Path(folder) / "ratings.npy", ratings.ratings)
        yield folder


def measure(folder: str, method: str, shape: Shape, **params: Any) -> dict[str, Any]:
    """Fit in a new process, so that its memory is its own; return all that is known of it."""
    point = {"method": method, "n_jobs": 1, **params}
    answer = run_module("studies.peers.scaling", folder, json.dumps(point))
    found = {**point, **shape._asdict(), **answer}
    print(found, file=sys.stderr, flush=True)
    return found


def measure_here(folder: Path, method: str, **params: Any) -> dict[str, Any]:
    """Return seconds and bytes of one fit in this process."""
    from marginmf import ratings

    kind = getattr(ratings, method)
    # Import and compile everything, on ratings too few to leave a mark in memory.
    generator = np.random.default_rng(0)
    pairs = np.argwhere(generator.random((20, 20)) < 0.5).astype(np.int32)
    levels = generator.integers(1, 3, len(pairs), endpoint=True).astype(np.float32)
    fixed = {**params, "reg": 10.0, "random_state": 0}
    kind(**{**fixed, "n_factors": 2, "max_iter": 3}).fit(pairs, levels)
    before = resident_bytes()
    pairs, levels = (np.load(folder / f"{name}.npy") for name in ("pairs", "ratings"))
    wall, cpu = time.perf_counter(), time.process_time()
    model = kind(**fixed).fit(pairs, levels)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    learned = ("user_factors_", "item_factors_", "thresholds_")
    return {
        "wall": wall,
        "cpu": cpu,
        "peak_bytes": resident_bytes(peak=True) - before,
        "parameter_bytes": sum(
            getattr(model, name).nbytes for name in learned if hasattr(model, name)
        ),
        "n_iter": np.atleast_1d(model.n_iter_).tolist(),
    }


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


if __name__ == "__main__":
    print(json.dumps(measure_here(Path(sys.argv[1]), **json.loads(sys.argv[2]))))
