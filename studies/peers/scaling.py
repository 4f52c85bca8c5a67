"""How time and memory grow with the ratings, factors, levels, users and items.

Every fit is a process of its own, with a fixed number of iterations on synthetic ratings.  A power
law is fitted to the CPU seconds and to the peak of the memory along each axis: once through all
points, and once through the upper half of the axis, where costs that do not grow no longer matter.
Memory is what a process has at its peak beyond what it had after imports and a tiny fit; the
ratings as given are part of it.

``python -m studies.peers.scaling FOLDER '{"method": ..., ...}'`` is one fit: it prints JSON.
"""

import json
import math
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import product
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from marginmf.plots.style import INK, label_axes, new_figure, with_colours
from studies.harness.commands import add_result_arguments, load_results, run_module, save_results
from studies.harness.drawing import save_svg
from studies.harness.machine import resident_bytes
from studies.harness.markdown import make_table
from studies.peers import synthetic
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
#: The exponents and the memory that HMF should stay below.
GOALS = {"ratings": 1.05, "factors": 1.1, "levels": 1.0, "levels, until done": 1.0}
MEMORY_GOAL = 2.5
LARGE_GOAL_BYTES = 12e9
#: What an axis is called, with the letter of its law.
TITLES = {
    "ratings": "ratings",
    "factors": "factors d",
    "levels": "levels R",
    "levels, until done": "levels R, until done",
    "users": "users N",
    "items": "items M",
}
#: A rating as it is given: user and item code and the rating, four bytes each.
BYTES_PER_RATING = 12


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
    print("\n\n".join(parts(results).values()))
    if not args.large:
        file = args.out / "scaling.svg"
        draw(results, file)
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


class Law(NamedTuple):
    """``y = scale * x ** exponent``, and how far the points lie from it at most, as a factor."""

    exponent: float
    scale: float
    error: float


def fit_law(x: Sequence[float], y: Sequence[float]) -> Law:
    """Fit a power law by least squares on the logarithms."""
    if len(x) != len(y):
        raise ValueError(f"There are {len(x)} positions but {len(y)} measurements.")
    if len(set(x)) < 2:
        raise ValueError("A law needs measurements at two different positions at least.")
    for value in (one for one in (*x, *y) if not one > 0):
        raise ValueError(f"A power law goes through positive numbers alone, not {value!r}.")
    across, up = np.log(x), np.log(y)
    exponent, offset = np.polyfit(across, up, 1)
    misses = np.abs(up - offset - exponent * across)
    return Law(float(exponent), math.exp(offset), math.exp(misses.max()))


def upper_half(x: Sequence[float], y: Sequence[float]) -> tuple[list[float], list[float]]:
    """Return the points in the upper half of the range of x, in logarithms."""
    middle = math.sqrt(min(x) * max(x)) * (1 - 1e-9)
    kept = [(a, b) for a, b in zip(x, y, strict=True) if a >= middle]
    return [a for a, _ in kept], [b for _, b in kept]


def memory_ratio(point: dict[str, Any]) -> float:
    """Return a fit's peak beside the bytes of the given ratings and the learned parameters."""
    needed = BYTES_PER_RATING * point["n_ratings"] + point["parameter_bytes"]
    return float(point["peak_bytes"] / needed)


class Curve(NamedTuple):
    """One method along one axis: where, and there the CPU seconds, bytes and memory ratios."""

    method: str
    axis: str
    x: list[float]
    seconds: list[float]
    peaks: list[float]
    ratios: list[float]


def find_curves(results: dict[str, Any]) -> Iterator[Curve]:
    """Yield a curve for each axis and method, of the medians over repetitions."""
    points = results["points"]
    for axis, method in dict.fromkeys((point["axis"], point["method"]) for point in points):
        own = [point for point in points if (point["axis"], point["method"]) == (axis, method)]
        x = sorted({point["value"] for point in own})
        groups = [[point for point in own if point["value"] == value] for value in x]
        seconds, peaks = (
            [median(point[name] for point in group) for group in groups]
            for name in ("cpu", "peak_bytes")
        )
        ratios = [median(map(memory_ratio, group)) for group in groups]
        yield Curve(method, axis, x, seconds, peaks, ratios)


def parts(results: dict[str, Any]) -> dict[str, str]:
    if "large" in results:
        return {"large": _large_table(results["large"])}
    found = {"exponents": _exponents_table(results), "points": _points_table(results)}
    return {**found, "threads": _threads_table(results)} if results["threads"] else found


def _exponents_table(results: dict[str, Any]) -> str:
    rows = []
    for curve in find_curves(results):
        exponents = [
            f"{fit_law(*points).exponent:.2f}"
            for y in (curve.seconds, curve.peaks)
            for points in ((curve.x, y), upper_half(curve.x, y))
        ]
        goal = GOALS.get(curve.axis) if curve.method == "HMF" else None
        exponents.insert(2, "" if goal is None else f"{goal:.2f}")
        where = [f"{curve.method}, {TITLES[curve.axis]}", f"{curve.x[0]:,} to {curve.x[-1]:,}"]
        rows.append([*where, *exponents, f"{curve.ratios[-1]:.1f}"])
    heads = ["time and memory against", "from, to", "time exponent, all", "upper half", "goal"]
    heads += ["memory exponent, all", "upper half", "memory ratio at the end"]
    return make_table(heads, rows)


def _points_table(results: dict[str, Any]) -> str:
    rows = []
    for curve in find_curves(results):
        points = zip(curve.x, curve.seconds, curve.peaks, curve.ratios, strict=True)
        for value, seconds, peak, ratio in points:
            where = f"{curve.method}, {TITLES[curve.axis]} = {value:,}"
            rows.append([where, f"{seconds:.3f}", f"{peak / 1e6:.1f}", f"{ratio:.2f}"])
    ratio_head = f"times ratings + parameters (goal {MEMORY_GOAL})"
    return make_table(["fit", "CPU seconds", "peak MB", ratio_head], rows)


def _threads_table(results: dict[str, Any]) -> str:
    """Show the wall seconds on one and on several threads, and what that saves."""
    found, rows = results["threads"], []
    for method in dict.fromkeys(fit["method"] for fit in found):
        own = [fit for fit in found if fit["method"] == method]
        seconds = {
            n_jobs: median(fit["wall"] for fit in own if fit["n_jobs"] == n_jobs)
            for n_jobs in sorted({fit["n_jobs"] for fit in own})
        }
        one = seconds[min(seconds)]
        for n_jobs, wall in seconds.items():
            rows.append([f"{method}, n_jobs={n_jobs}", f"{wall:.2f}", f"{wall / one:.2f}"])
    return make_table(["fit", "wall seconds", "times one thread"], rows)


def _large_table(found: dict[str, Any]) -> str:
    verdict = "within" if found["peak_bytes"] < LARGE_GOAL_BYTES else "beyond"
    row = [
        f"HMF, {found['n_users']:,} x {found['n_items']:,}, {found['n_ratings']:,} ratings, "
        f"d = {found['n_factors']}, {found['n_jobs']} threads",
        *(f"{found[clock] / 60:.1f}" for clock in ("wall", "cpu")),
        ", ".join(map(str, found["n_iter"])),
        f"{found['peak_bytes'] / 1e9:.2f} ({verdict} {LARGE_GOAL_BYTES / 1e9:.0f})",
        f"{memory_ratio(found):.2f}",
    ]
    heads = ["large fit", "wall minutes", "CPU minutes", "iterations", "peak GB", "ratio"]
    return make_table(heads, [row])


def draw(results: dict[str, Any], file: Path) -> None:
    """Draw a panel for each axis: time above, memory below, with the laws of the upper half."""
    found = list(find_curves(results))
    axes = list(dict.fromkeys(curve.axis for curve in found))
    colours = dict(with_colours(dict.fromkeys(curve.method for curve in found)))
    figure = new_figure(2.9 * len(axes), 6.0)
    panels = figure.subplots(2, len(axes), sharex="col", sharey="row", squeeze=False)
    for row, label in enumerate(("CPU seconds", "peak memory, MB")):
        for column, axis in enumerate(axes):
            ax = panels[row, column]
            ax.set(xscale="log", yscale="log")
            for curve in (curve for curve in found if curve.axis == axis):
                y = curve.seconds if row == 0 else [peak / 1e6 for peak in curve.peaks]
                x_upper, y_upper = upper_half(curve.x, y)
                law, colour = fit_law(x_upper, y_upper), colours[curve.method]
                line = [law.scale * x**law.exponent for x in x_upper]
                name = f"{curve.method}  {law.exponent:.2f}"
                ax.plot(x_upper, line, color=colour, linewidth=1.4, label=name)
                ax.plot(curve.x, y, "o", color=colour, markersize=4.5, alpha=0.85)
            title, y_label = TITLES[axis] if row == 0 else None, label if column == 0 else ""
            label_axes(ax, title, "", y_label, grid="both")
            ax.minorticks_off()
            values = next(curve.x for curve in found if curve.axis == axis)
            if max(values) < 1000:  # powers of ten would be few
                ax.set_xticks(values, [f"{value:g}" for value in values])
            ax.legend(loc="upper left", fontsize=8, frameon=False, labelcolor=INK)
    save_svg(figure, file)


if __name__ == "__main__":
    print(json.dumps(measure_here(Path(sys.argv[1]), **json.loads(sys.argv[2]))))
