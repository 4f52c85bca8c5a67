"""How time and memory grow with the ratings, factors, levels, users and items.

Every fit is a process of its own, with a fixed number of iterations on synthetic ratings.  A power
law is fitted to the CPU seconds and to the peak of the memory along each axis: once through all
points, and once through the upper half of the axis, where costs that do not grow no longer matter.
Memory is what a process has at its peak beyond what it had after imports and a tiny fit; the
ratings as given are part of it.
"""

import sys
from argparse import ArgumentParser, Namespace
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from benchmarks import scaling_report, synthetic
from benchmarks.report import add_report_arguments, save, saved
from benchmarks.scaling_point import METHODS, Point, run
from benchmarks.synthetic import Shape


class Place(NamedTuple):
    """One place on an axis: the shape of the ratings, and the number of factors."""

    shape: Shape
    n_factors: int


LEVELS = (2, 3, 5, 7, 10, 14, 20)
USUAL = Place(Shape(5_000, 5_000, 500_000), 32)

#: The axes, and the places on each; what is not on the axis stays as it is at its start.
AXES: dict[str, dict[int, Place]] = {
    "ratings": {
        n: Place(Shape(5_000, 5_000, n), 32)
        for n in (10_000, 30_000, 100_000, 300_000, 1_000_000, 3_000_000, 10_000_000)
    },
    "factors": {d: Place(USUAL.shape, d) for d in (2, 4, 8, 16, 32, 64, 128, 256)},
    "levels": {n: Place(USUAL.shape._replace(n_levels=n), 32) for n in LEVELS},
    # The same, but a fit stops when it is done: what stages learn from each other counts.
    "levels, until done": {n: Place(USUAL.shape._replace(n_levels=n), 32) for n in LEVELS},
    "users": {
        n: Place(Shape(n, 1_000, 300_000), 32) for n in (1_000, 3_000, 10_000, 30_000, 100_000)
    },
    "items": {
        n: Place(Shape(1_000, n, 300_000), 32) for n in (1_000, 3_000, 10_000, 30_000, 100_000)
    },
}
LARGE = Place(Shape(200_000, 50_000, 50_000_000), 64)
#: Where threads are compared: the shape of MovieLens 1M.
THREADED, N_JOBS = Place(Shape(6_040, 3_706, 1_000_209), 100), (1, 2)
#: The place whose memory is traced to the lines that ask for it: few and many parameters.
TRACED = {"many ratings": AXES["ratings"][3_000_000], "many parameters": AXES["factors"][256]}


def add_arguments(parser: ArgumentParser) -> None:
    """Add the options of this command."""
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--axes", nargs="+", choices=list(AXES), default=list(AXES))
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--max-iter", type=int, default=10)
    parser.add_argument(
        "--quick", action="store_true", help="once, and no place with more than a million ratings"
    )
    parser.add_argument(
        "--large", action="store_true", help="only HMF on 50 million ratings, on two threads"
    )
    add_report_arguments(parser)


def main(args: Namespace) -> None:
    """Measure, print tables, write JSON and the plot."""
    name = "scaling-large" if args.large else "scaling"
    if args.markdown:
        results = saved(args, name)
    else:
        results = large(args) if args.large else laws(args)
        save(args, name, results)
    print(scaling_report.tables(results))
    if not args.large:
        file = args.out / "scaling.svg"
        scaling_report.picture(results, file)
        print(f"\nThe plot is in {file}.", file=sys.stderr)


def laws(args: Namespace) -> dict[str, Any]:
    """Measure every method at every place of every axis, in turn; trace the memory of two."""
    results: dict[str, Any] = {"points": [], "threads": [], "traces": []}
    repeats = 1 if args.quick else args.repeats
    for axis in args.axes:
        for value, place in AXES[axis].items():
            if args.quick and place.shape.n_ratings > 1_000_000:
                continue
            with made(place.shape) as folder:
                for repetition in range(repeats):
                    for method in args.methods:
                        point = Point(method, folder, place.n_factors, args.max_iter)
                        if axis.endswith("until done"):
                            point = replace(point, max_iter=100, stops=True)
                        found = measured(point, place, axis=axis, value=value)
                        results["points"].append({**found, "repetition": repetition})
    with made(THREADED.shape) as folder:
        for _ in range(repeats):
            for method in args.methods:
                for n_jobs in N_JOBS:
                    point = Point(method, folder, THREADED.n_factors, args.max_iter, n_jobs)
                    results["threads"].append(measured(point, THREADED))
    for name, place in TRACED.items():
        if args.quick and place.shape.n_ratings > 1_000_000:
            continue
        with made(place.shape) as folder:
            for method in args.methods:
                point = Point(method, folder, place.n_factors, args.max_iter, trace=True)
                results["traces"].append(measured(point, place, name=name))
    return results


def large(args: Namespace) -> dict[str, Any]:
    """Fit the large set once, until the fit itself is done, as a user would."""
    with made(LARGE.shape) as folder:
        point = Point("HMF", folder, LARGE.n_factors, max_iter=100, n_jobs=2, stops=True)
        return {"large": measured(point, LARGE)}


class made:  # noqa: N801, used like a function
    """Synthetic ratings in a temporary folder, as files that a process of its own reads."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._folder = TemporaryDirectory(prefix="marginmf-scaling-")

    def __enter__(self) -> str:
        ratings = synthetic.make(self._shape)
        np.save(Path(self._folder.name) / "pairs.npy", ratings.pairs)
        np.save(Path(self._folder.name) / "ratings.npy", ratings.ratings)
        return self._folder.name

    def __exit__(self, *error: object) -> None:
        self._folder.cleanup()


def measured(point: Point, place: Place, **more: Any) -> dict[str, Any]:
    """Run a point and return all that is known of it."""
    where = {"method": point.method, **place.shape._asdict(), "n_factors": place.n_factors, **more}
    found = {**where, "max_iter": point.max_iter, "n_jobs": point.n_jobs, **run(point)}
    shown = {key: value for key, value in found.items() if key != "sites"}
    print(shown, file=sys.stderr, flush=True)
    return found
