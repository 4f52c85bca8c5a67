"""How close the gradient comes to what the processor can do.

Plain C loops say what can be done: inner products and sums of vectors from every cache and from
memory, and the gradient itself over a small matrix that stays in the second cache.  Then our
gradient is measured as the library calls it, on the shapes of MovieLens and of a synthetic set of
50 million ratings, on one thread.  Rates are 6 d operations a rating, whatever was done in truth:
a kernel that skips satisfied ratings is rewarded for it.
"""

import sys
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from marginmf.datasets import DatasetUnavailable, load_ratings
from marginmf.ratings import Ratings
from studies.harness.commands import add_result_arguments, load_results, save_results
from studies.harness.markdown import make_table
from studies.peers import roofline_kernels as kernels
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
    sizes, compiler = find_caches(), ""
    results: dict[str, Any] = {"loops": [], "gradients": []}
    try:
        compiler = kernels.Loops.compiled().compiler
    except kernels.NoCompiler as reason:
        print(f"{reason} Our kernels are measured alone.", file=sys.stderr)
    else:
        for cache in ("L1", "L2"):
            for d in args.factors:
                results["loops"] += measure_loops(make_small(sizes[cache], d), d, cache)
    results["rates"] = list(measure_vectors(sizes, bool(compiler)))
    for name in args.shapes:
        if name == LARGE and args.quick:
            continue
        data = load_or_make(name)
        for d in args.factors if name != LARGE else LARGE_FACTORS:
            if compiler:
                results["loops"] += measure_loops(data, d, name)
            for found in measure_gradients(name, data, d, bool(compiler)):
                results["gradients"].append(found)
                print(found, file=sys.stderr, flush=True)
    results |= {"caches": sizes, "compiler": compiler}
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


def measure_vectors(sizes: dict[str, int], with_loops: bool) -> Iterator[dict[str, Any]]:
    """Yield the rates of inner products and sums of vectors, from every cache and from memory."""
    sources = {cache: size // 2 for cache, size in sizes.items()}
    for source, n_bytes in {**sources, "memory": 8 * max(sizes.values())}.items():
        rates = {f"our {name}": rate for name, rate in kernels.measure_vectors(n_bytes).items()}
        if with_loops:
            rates |= kernels.Loops.compiled().measure_vectors(n_bytes)
        yield {"place": source, "bytes": n_bytes, **rates}


def measure_loops(data: Ratings, n_factors: int, source: str) -> list[dict[str, Any]]:
    """Return the rates of the plain loops over some ratings."""
    found = kernels.measure_plain_gradients(data, n_factors)
    return [
        {"place": source, "d": n_factors, "form": form, "gflops": rate}
        for form, rate in found.items()
    ]


def measure_gradients(
    name: str, data: Ratings, n_factors: int, with_loops: bool
) -> Iterator[dict[str, Any]]:
    """Yield the rates of our gradients on one shape."""
    where = {"shape": name, "d": n_factors, "ratings": len(data)}
    in_cache = make_small(find_caches()["L2"], n_factors)
    for method in kernels.ROW_LOSSES if name != LARGE else ("HMF",):
        # Measured again beside each: the clock of a processor is not the same all day.
        if with_loops:
            where["in L2"] = max(kernels.measure_plain_gradients(in_cache, n_factors).values())
        trained = name != LARGE or n_factors == LARGE_FACTORS[0]
        for found in kernels.measure_gradients(data, n_factors, method, trained):
            yield {**where, "method": method, **found}


def parts(results: dict[str, Any]) -> dict[str, str]:
    found = {"rates": _rates_table(results)}
    if results["compiler"]:
        found["loops"] = _loops_table(results)
    return {**found, "gradients": _gradients_table(results)}


def _rates_table(results: dict[str, Any]) -> str:
    names = ("dot", "our dot", "axpy", "our axpy")
    rows = [
        [rate["place"], f"{rate['bytes'] >> 10:,}", *(_format(rate.get(name)) for name in names)]
        for rate in results["rates"]
    ]
    return make_table(["vectors in", "KB", *(f"{name}, GFLOP/s" for name in names)], rows)


def _format(rate: float | None) -> str:
    return "" if rate is None else f"{rate:.1f}"


def _loops_table(results: dict[str, Any]) -> str:
    factors = sorted({loop["d"] for loop in results["loops"]})
    found = {(loop["place"], loop["form"], loop["d"]): loop["gflops"] for loop in results["loops"]}
    rows = [
        [f"{source}, {form}", *(_format(found.get((source, form, d))) for d in factors)]
        for source, form in dict.fromkeys((source, form) for source, form, _ in found)
    ]
    table = make_table(["plain C loop, GFLOP/s", *(f"d = {d}" for d in factors)], rows)
    return f"{table}\n\nThe loops were compiled by {results['compiler']}."


def _gradients_table(results: dict[str, Any]) -> str:
    """Show each gradient as its rate and as its share of the plain loop in the second cache."""
    factors = sorted({found["d"] for found in results["gradients"]})
    found = {
        (one["shape"], one["method"], one["state"], one["d"]): one for one in results["gradients"]
    }
    rows = [
        [", ".join(group), *(_format_share(found.get((*group, d))) for d in factors)]
        for group in dict.fromkeys(key[:3] for key in found)
    ]
    heads = ["our gradient, GFLOP/s (share of the C loop in L2)", *(f"d = {d}" for d in factors)]
    table, verdicts = make_table(heads, rows), []
    for d in (64, 128):
        gradient = found.get(("ml-1m", "HMF", "random start", d), {})
        if "in L2" in gradient:
            share = gradient["gflops"] / gradient["in L2"]
            verdicts.append(f"d = {d} {'yes' if share >= GOAL else 'no'}, {share:.0%}")
    goal = f"At least {GOAL:.0%} on the shape of MovieLens 1M: {'; '.join(verdicts)}."
    return f"{table}\n\n{goal}" if verdicts else table


def _format_share(gradient: dict[str, Any] | None) -> str:
    if gradient is None:
        return ""
    share = f" ({gradient['gflops'] / gradient['in L2']:.0%})" if "in L2" in gradient else ""
    return f"{gradient['gflops']:.1f}{share}"
