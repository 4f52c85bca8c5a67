"""How close the gradient comes to what the processor can do.

Plain C loops say what can be done: inner products and sums of vectors from every cache and from
memory, and the gradient itself over a small matrix that stays in the second cache.  Then our
gradient is measured as the library calls it, on the shapes of MovieLens and of a synthetic set of
50 million ratings, on one thread.  Rates are 6 d operations a rating, whatever was done in truth:
a kernel that skips satisfied ratings is rewarded for it.
"""

import ctypes
import shutil
import subprocess
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np

from marginmf.backends import get_backend
from marginmf.backends.specs import Proximal, Spec, Thresholds, TwoLevel
from marginmf.datasets import DatasetUnavailable, load_ratings
from marginmf.losses import smooth_hinge
from marginmf.ratings import Ratings
from marginmf.ratings.fitting.objective import FactorObjective, Parameters, first_thresholds
from marginmf.solvers import LBFGS, Stopping, minimise
from studies.harness.commands import add_result_arguments, load_results, save_results
from studies.harness.markdown import make_table
from studies.peers import synthetic

FACTORS = (16, 32, 64, 100, 128)
SHAPES = {
    "ml-100k": synthetic.Shape(943, 1682, 100_000),
    "ml-1m": synthetic.Shape(6040, 3706, 1_000_209),
    "50 million": synthetic.Shape(200_000, 50_000, 50_000_000),
}
LARGE = "50 million"
#: On the large set every gradient takes seconds: fewer of them.
LARGE_FACTORS = (64, 128)
#: Where a system does not say how large its caches are.
USUAL_CACHES = {"L1": 32 << 10, "L2": 512 << 10, "L3": 16 << 20}
GOAL = 0.6
SOURCE = Path(__file__).with_name("roofline.c")
# Sums may be reordered.  Not -ffast-math, which makes whoever loads the library flush tiny numbers.
FLAGS = (
    *("-O3", "-march=native", "-funroll-loops", "-shared", "-fPIC"),
    *("-fassociative-math", "-fno-signed-zeros", "-fno-trapping-math", "-fno-math-errno"),
    *("-ffinite-math-only", "-ffp-contract=fast"),
)
#: What each method asks of a user's scores; HMF asks it of every stage, here of the middle one.
ROW_LOSSES: dict[str, Callable[[int], Spec]] = {
    "HMF": lambda n_levels: TwoLevel(smooth_hinge, cut=(n_levels - 1) // 2),
    "MMMF": lambda n_levels: Thresholds(smooth_hinge),
    "PMMMF": lambda n_levels: Proximal(smooth_hinge),
}
#: Repetitions of a measurement, and the least CPU seconds of each.
REPEATS, LEAST_SECONDS = 5, 0.1
REG, N_ITERATIONS = 10.0, 20


def add_arguments(parser: ArgumentParser) -> None:
    shapes = list(SHAPES)
    parser.add_argument("--factors", type=int, nargs="+", default=list(FACTORS), metavar="D")
    parser.add_argument("--shapes", nargs="+", choices=shapes, default=shapes, metavar="NAME")
    parser.add_argument("--quick", action="store_true", help="leave 50 million ratings out")
    add_result_arguments(parser)


def main(args: Namespace) -> None:
    results = load_results(args, "roofline") if args.markdown else measure(args)
    print("\n\n".join(parts(results).values()))


def measure(args: Namespace) -> dict[str, Any]:
    sizes, loops = find_caches(), None
    results: dict[str, Any] = {"loops": [], "rates": [], "gradients": []}
    try:
        loops = compile_loops()
    except NoCompiler as reason:
        print(f"{reason} Our kernels are measured alone.", file=sys.stderr)

    def measure_loops(data: Ratings, d: int, source: str) -> None:
        found = plain_rates(data, d) if loops else {}
        results["loops"] += [
            {"place": source, "d": d, "form": form, "gflops": rate} for form, rate in found.items()
        ]

    for level in ("L1", "L2"):
        for d in args.factors:
            measure_loops(make_small(sizes[level], d), d, level)
    sources = {level: size // 2 for level, size in sizes.items()}
    for source, n_bytes in {**sources, "memory": 8 * max(sizes.values())}.items():
        rates = vector_rates(n_bytes, loops and loops.library)
        results["rates"].append({"place": source, "bytes": n_bytes, **rates})
    for name in args.shapes:
        if name == LARGE and args.quick:
            continue
        data = load_or_make(name)
        for d in args.factors if name != LARGE else LARGE_FACTORS:
            measure_loops(data, d, name)
            for method in ROW_LOSSES if name != LARGE else ("HMF",):
                where = {"shape": name, "d": d, "ratings": len(data), "method": method}
                if loops:  # again beside each: the clock of a processor is not the same all day
                    in_cache = plain_rates(make_small(sizes["L2"], d), d)
                    where["in L2"] = max(in_cache.values())
                trained = name != LARGE or d == LARGE_FACTORS[0]
                for found in measure_gradients(data, d, method, trained):
                    results["gradients"].append({**where, **found})
                    print({**where, **found}, file=sys.stderr, flush=True)
    results |= {"caches": sizes, "compiler": loops.compiler if loops else ""}
    save_results(args, "roofline", results)
    return results


def find_caches() -> dict[str, int]:
    """Return the bytes of the data caches, as Linux says or as is usual."""
    found: dict[str, int] = {}
    for index in sorted(Path("/sys/devices/system/cpu/cpu0/cache").glob("index*")):
        try:
            kind, level, size = (
                (index / part).read_text().strip() for part in ("type", "level", "size")
            )
        except OSError:
            continue
        if kind != "Instruction":
            scale = {"K": 1 << 10, "M": 1 << 20}.get(size[-1], 1)
            found[f"L{level}"] = scale * int(size.rstrip("KM"))
    return {**USUAL_CACHES, **found}


def make_small(cache: int, n_factors: int) -> Ratings:
    """Return ratings whose factors and gradients fill half of a cache, the ratings a quarter."""
    generator = np.random.default_rng(0)
    side = cache // 2 // (4 * 4 * n_factors)  # four matrices of four bytes a number
    share = min(1.0, cache / 4 / 8 / side**2)  # eight bytes a rating
    pairs = np.argwhere(generator.random((side, side)) < share)
    return Ratings.of(pairs, np.arange(len(pairs)) % 5 + 1)


def load_or_make(name: str) -> Ratings:
    """Return the real ratings if they are here, else synthetic ones of the same shape."""
    try:
        table = load_ratings(name, offline=True) if name != LARGE else None
    except DatasetUnavailable:
        table = None
    if table is None:
        return Ratings.of(*synthetic.make(SHAPES[name]))
    return Ratings.of(table.pairs, table.ratings)


def seconds_each(call: Callable[[], Any]) -> float:
    """Return the median over some repetitions of the CPU seconds of one call.

    CPU seconds, because what else the machine does counts less in them.
    """

    def clock(calls: int) -> float:
        begin = time.process_time()
        for _ in range(calls):
            call()
        return time.process_time() - begin

    call()  # compiles, and brings the data near
    calls = max(1, round(LEAST_SECONDS / max(clock(1), 1e-6)))
    return median(clock(calls) / calls for _ in range(REPEATS))


class NoCompiler(Exception):  # noqa: N818, a state of the world more than an error
    """There is no C compiler here, or it fails; the message says which."""


class Loops(NamedTuple):
    """The plain C loops that kernels are measured against, and what compiled them."""

    library: Any
    compiler: str


@cache
def compile_loops(n_factors: int = 0) -> Loops:
    """Compile the loops in a temporary folder; by default for any number of factors."""
    compiler = next((name for name in ("cc", "gcc", "clang") if shutil.which(name)), None)
    if compiler is None:
        raise NoCompiler("There is no C compiler on the path (cc, gcc or clang).")
    with TemporaryDirectory(prefix="marginmf-roofline-") as folder:
        built = Path(folder) / "roofline.so"
        known = [f"-DFACTORS={n_factors}"] if n_factors else []
        command = [compiler, *FLAGS, *known, "-o", str(built), str(SOURCE)]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise NoCompiler(f"{' '.join(command)} failed: {done.stderr.strip()[-300:]}")
        library = ctypes.CDLL(str(built))
    version = subprocess.run([compiler, "--version"], capture_output=True, text=True)
    library.dot.restype = ctypes.c_float
    return Loops(library, version.stdout.splitlines()[0])


def vector_rates(n_bytes: int, library: Any) -> dict[str, float]:
    """Return the GFLOP/s of inner products and sums of two vectors of n bytes in all."""
    cpu, n = get_backend("cpu", 1), n_bytes // 8
    a, b = np.full((2, n), 1e-3, np.float32)
    found = {
        "our dot": 2e-9 * n / seconds_each(lambda: cpu.dots((a,), b)),
        "our axpy": 2e-9 * n / seconds_each(lambda: cpu.combine((1.0, 1e-6), (b, a), out=b)),
    }
    if library is None:
        return found
    rounds = max(1, 20_000_000 // n)
    sizes, vectors = (ctypes.c_int64(n), ctypes.c_int64(rounds)), (_pointer(a), _pointer(b))
    calls: dict[str, Callable[[], Any]] = {
        "dot": lambda: library.dot(*sizes, *vectors),
        "axpy": lambda: library.axpy(*sizes, ctypes.c_float(1e-6), *vectors),
    }
    plain = {name: 2e-9 * n * rounds / seconds_each(call) for name, call in calls.items()}
    return {**found, **plain}


def plain_rates(data: Ratings, n_factors: int) -> dict[str, float]:
    """Return the GFLOP/s of every form of the gradient of a two-level factorisation."""
    any_length = PlainGradient(compile_loops().library, data, n_factors)
    this_length = PlainGradient(compile_loops(n_factors).library, data, n_factors)
    forms: dict[str, Callable[[], Any]] = {
        "one pass": any_length.one_pass,
        "one pass, d known to the compiler": this_length.one_pass,
        "three passes": any_length.three_passes,
    }
    work = 6e-9 * n_factors * len(data)
    return {name: work / seconds_each(form) for name, form in forms.items()}


class PlainGradient:
    """The gradient of the smooth hinge over some ratings, at a random point, by plain loops."""

    def __init__(self, library: Any, data: Ratings, n_factors: int) -> None:
        self._library = library
        self.U, self.V = draw_factors(data, n_factors)
        self.by_users, self.by_items = np.empty_like(self.U), np.empty_like(self.V)
        signs = np.where(data.codes > (data.n_levels - 1) // 2, 1, -1).astype(np.int8)
        sizes = [ctypes.c_int64(n) for n in (data.n_users, data.n_items, n_factors)]
        starts, item_starts = (
            np.ascontiguousarray(one, np.int64) for one in (data.indptr, data.item_indptr)
        )
        items, users, order = (
            np.ascontiguousarray(one, np.int32)
            for one in (data.indices, data.item_indices, data.item_order)
        )
        rows, columns = [starts, items, signs], [item_starts, users, order]
        factors = [self.U, self.V, self.by_users, self.by_items]
        # ctypes keeps no reference to the arrays: they live as long as this object.
        self._arrays = [*rows, *columns, *factors, np.empty(len(data), np.float32)]
        self._one = [*sizes, *map(_pointer, [*rows, *factors])]
        self._three = [*sizes, *map(_pointer, self._arrays)]

    def one_pass(self) -> None:
        """Go once through the ratings, with both gradients written as it goes."""
        self._library.one_pass(*self._one)

    def three_passes(self) -> None:
        """Go through the ratings three times: scores, gradient by users, gradient by items."""
        self._library.three_passes(*self._three)


def draw_factors(data: Ratings, n_factors: int) -> tuple[np.ndarray, np.ndarray]:
    """Return random factors as a fit starts from; every weight is active there."""
    generator = np.random.default_rng(0)
    return tuple(
        np.float32(0.1) * generator.standard_normal((n, n_factors), np.float32)
        for n in (data.n_users, data.n_items)
    )


def _pointer(array: np.ndarray) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def measure_gradients(
    data: Ratings, n_factors: int, method: str, trained: bool = True
) -> Iterator[dict[str, Any]]:
    """Yield the rate of a method's gradient at a random start, and after some iterations."""
    spec, cpu = ROW_LOSSES[method](data.n_levels), get_backend("cpu", 1)
    objective = FactorObjective(
        cpu, cpu.place(data, spec, REG, (data.n_items, n_factors), np.float32)
    )
    start = Parameters(*draw_factors(data, n_factors), first_thresholds(data, spec))
    points = {"random start": objective.join(start)}
    if trained:
        stopping = Stopping(max_iter=N_ITERATIONS, tol=0.0, gradient_tol=0.0)
        found = minimise(LBFGS(), objective, points["random start"], stopping, vectors=cpu)
        points[f"after {N_ITERATIONS} iterations"] = found.point
    for state, point in points.items():
        seconds = seconds_each(lambda point=point: objective(point))
        yield {"state": state, "seconds": seconds, "gflops": 6e-9 * n_factors * len(data) / seconds}


def parts(results: dict[str, Any]) -> dict[str, str]:
    """Return the tables: rates, loops if there was a compiler, and gradients."""
    names = ("dot", "our dot", "axpy", "our axpy")
    rates = [
        [
            *(one["place"], f"{one['bytes'] >> 10:,}"),
            *(f"{one[name]:.1f}" if name in one else "" for name in names),
        ]
        for one in results["rates"]
    ]
    heads = ["vectors in", "KB", *(f"{name}, GFLOP/s" for name in names)]
    found = {"rates": make_table(heads, rates)}
    if results["compiler"]:
        plain = {
            (one["place"], one["form"], one["d"]): f"{one['gflops']:.1f}"
            for one in results["loops"]
        }
        table = _table_by_factors("plain C loop, GFLOP/s", plain)
        found["loops"] = f"{table}\n\nThe loops were compiled by {results['compiler']}."
    return {**found, "gradients": _gradients_table(results["gradients"])}


def _table_by_factors(head: str, found: dict[tuple[Any, ...], str]) -> str:
    """Return a column for each number of factors, which is last in the keys."""
    factors = sorted({d for *_, d in found})
    rows = [
        [", ".join(group), *(found.get((*group, d), "") for d in factors)]
        for group in dict.fromkeys(tuple(group) for *group, _ in found)
    ]
    return make_table([head, *(f"d = {d}" for d in factors)], rows)


def _gradients_table(gradients: list[dict[str, Any]]) -> str:
    """Show each gradient as its rate and as its share of the plain loop in the second cache."""
    found, verdicts = {}, []
    for one in gradients:
        group = one["shape"], one["method"], one["state"]
        share = one["gflops"] / one["in L2"] if "in L2" in one else None
        words = "" if share is None else f" ({share:.0%})"
        found[*group, one["d"]] = f"{one['gflops']:.1f}{words}"
        if group == ("ml-1m", "HMF", "random start") and one["d"] in (64, 128) and share:
            verdicts.append(f"d = {one['d']} {'yes' if share >= GOAL else 'no'}, {share:.0%}")
    table = _table_by_factors("our gradient, GFLOP/s (share of the C loop in L2)", found)
    goal = f"At least {GOAL:.0%} on the shape of MovieLens 1M: {'; '.join(verdicts)}."
    return f"{table}\n\n{goal}" if verdicts else table
