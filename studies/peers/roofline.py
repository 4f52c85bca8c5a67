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
from studies.peers import roofline_kernels, synthetic
from studies.peers.roofline_kernels import Loops, NoCompiler, plain_gradients

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
    parser.add_argument("--factors", type=int, nargs="+", default=list(FACTORS), metavar="D")
    parser.add_argument(
        "--shapes", nargs="+", choices=list(SHAPES), default=list(SHAPES), metavar="NAME"
    )
    parser.add_argument("--quick", action="store_true", help="leave 50 million ratings out")
    add_result_arguments(parser)


def main(args: Namespace) -> None:
    if args.markdown:
        print(tables(load_results(args, "roofline")))
        return
    results: dict[str, Any] = {"caches": caches(), "compiler": ""}
    results |= {"loops": [], "gradients": [], "kernels": []}
    try:
        results["compiler"] = Loops.compiled().compiler
    except NoCompiler as reason:
        print(f"{reason} Our kernels are measured alone.", file=sys.stderr)
    else:
        for cache in ("L1", "L2"):
            for d in args.factors:
                data = small(results["caches"][cache], d)
                results["loops"] += list(loops(data, d, cache))
    results["rates"] = list(vector_rates(results["caches"], bool(results["compiler"])))
    for name in args.shapes:
        if name == LARGE and args.quick:
            continue
        data, origin = ratings_of(name)
        print(f"{name}: {data!r}, {origin}", file=sys.stderr, flush=True)
        for d in args.factors:
            if name != LARGE or d in LARGE_FACTORS:
                for kind, found in of_shape(name, data, d, bool(results["compiler"])):
                    results[kind].append(found)
                    print(found, file=sys.stderr, flush=True)
    save_results(args, "roofline", results)
    print(tables(results))


def caches() -> dict[str, int]:
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


def vector_rates(sizes: dict[str, int], with_loops: bool) -> Iterator[dict[str, Any]]:
    """Yield the rates of inner products and sums of vectors, from every cache and from memory."""
    places = {cache: size // 2 for cache, size in sizes.items()}
    places["memory"] = 8 * max(sizes.values())
    for place, n_bytes in places.items():
        rates = {f"our {name}": rate for name, rate in roofline_kernels.vectors(n_bytes).items()}
        if with_loops:
            rates |= {
                "dot": Loops.compiled().dot_gflops(n_bytes),
                "axpy": Loops.compiled().axpy_gflops(n_bytes),
            }
        yield {"place": place, "bytes": n_bytes, **rates}


def small(cache: int, n_factors: int) -> Ratings:
    """Return ratings whose factors and gradients fill half of a cache, the ratings a quarter."""
    generator = np.random.default_rng(0)
    side = cache // 2 // (4 * 4 * n_factors)  # four matrices of four bytes a number
    share = min(1.0, cache / 4 / 8 / side**2)  # eight bytes a rating
    pairs = np.argwhere(generator.random((side, side)) < share)
    return Ratings.of(pairs, np.arange(len(pairs)) % 5 + 1)


def ratings_of(name: str) -> tuple[Ratings, str]:
    """Return the real ratings if they are here, else synthetic ones of the same shape."""
    if name != LARGE:
        try:
            table = load_ratings(name, offline=True)
        except DatasetUnavailable:
            pass
        else:
            return Ratings.of(table.pairs, table.ratings), "real"
    return Ratings.of(*synthetic.make(SHAPES[name])), "synthetic"


def loops(data: Ratings, n_factors: int, place: str) -> Iterator[dict[str, Any]]:
    """Yield the rates of the plain loops over some ratings."""
    for form, rate in plain_gradients(data, n_factors).items():
        yield {"place": place, "d": n_factors, "form": form, "gflops": rate}


def of_shape(
    name: str, data: Ratings, n_factors: int, with_loops: bool
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield all that is measured on one shape, each with the list that it belongs to."""
    where = {"shape": name, "d": n_factors, "ratings": len(data)}
    if with_loops:
        for found in loops(data, n_factors, name):
            yield "loops", found
    in_cache = small(caches()["L2"], n_factors)
    for method in roofline_kernels.ROW_LOSSES:
        if name == LARGE and method != "HMF":
            continue
        # Measured again beside each: the clock of a processor is not the same all day.
        if with_loops:
            where["in L2"] = max(plain_gradients(in_cache, n_factors).values())
        trained = name != LARGE or n_factors == LARGE_FACTORS[0]
        for found in roofline_kernels.gradients(data, n_factors, method, trained):
            yield "gradients", {**where, "method": method, **found}
    for found in roofline_kernels.kernels(data, n_factors):
        yield "kernels", {**where, **found}


def tables(results: dict[str, Any]) -> str:
    """Return the results as Markdown."""
    return "\n\n".join(parts(results).values())


def parts(results: dict[str, Any]) -> dict[str, str]:
    """Return the tables by name."""
    found = {"rates": _rates(results)}
    if results["compiler"]:
        found["loops"] = _loops(results)
    return {**found, "gradients": _gradients(results), "kernels": _kernels(results)}


def _rates(results: dict[str, Any]) -> str:
    names = ("dot", "our dot", "axpy", "our axpy")
    rows = [
        [rate["place"], f"{rate['bytes'] >> 10:,}", *(_rate(rate.get(name)) for name in names)]
        for rate in results["rates"]
    ]
    return make_table(["vectors in", "KB", *(f"{name}, GFLOP/s" for name in names)], rows)


def _rate(rate: float | None) -> str:
    return "" if rate is None else f"{rate:.1f}"


def _loops(results: dict[str, Any]) -> str:
    factors = sorted({loop["d"] for loop in results["loops"]})
    found = {(loop["place"], loop["form"], loop["d"]): loop["gflops"] for loop in results["loops"]}
    rows = []
    for place, form in dict.fromkeys((place, form) for place, form, _ in found):
        rows.append([f"{place}, {form}", *(_rate(found.get((place, form, d))) for d in factors)])
    table = make_table(["plain C loop, GFLOP/s", *(f"d = {d}" for d in factors)], rows)
    return f"{table}\n\nThe loops were compiled by {results['compiler']}."


def _gradients(results: dict[str, Any]) -> str:
    """Show each gradient as its rate and as its share of the plain loop in the second cache."""
    factors = sorted({found["d"] for found in results["gradients"]})
    keys = ("shape", "method", "state")
    found = {
        (*(gradient[key] for key in keys), gradient["d"]): gradient
        for gradient in results["gradients"]
    }
    rows = []
    for group in dict.fromkeys(key[:3] for key in found):
        rows.append([", ".join(group), *(_shared(found.get((*group, d))) for d in factors)])
    heads = ["our gradient, GFLOP/s (share of the C loop in L2)", *(f"d = {d}" for d in factors)]
    table = make_table(heads, rows)
    verdicts = []
    for d in (64, 128):
        gradient = found.get(("ml-1m", "HMF", "random start", d), {})
        if "in L2" in gradient:
            share = gradient["gflops"] / gradient["in L2"]
            verdicts.append(f"d = {d} {'yes' if share >= GOAL else 'no'}, {share:.0%}")
    goal = f"At least {GOAL:.0%} on the shape of MovieLens 1M: {'; '.join(verdicts)}."
    return f"{table}\n\n{goal}" if verdicts else table


def _shared(gradient: dict[str, Any] | None) -> str:
    if gradient is None:
        return ""
    share = f" ({gradient['gflops'] / gradient['in L2']:.0%})" if "in L2" in gradient else ""
    return f"{gradient['gflops']:.1f}{share}"


def _kernels(results: dict[str, Any]) -> str:
    rows = [
        [
            f"{kernel['kernel']}, {kernel['shape']}, d = {kernel['d']}",
            f"{kernel['gflops']:.1f}" if kernel["gflops"] else "",
            f"{1e9 * kernel['seconds'] / kernel['ratings']:.1f}",
        ]
        for kernel in results["kernels"]
    ]
    return make_table(["kernel", "GFLOP/s", "ns a rating"], rows)
