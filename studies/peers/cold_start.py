"""How long the first fit takes: after installation, and in every later process.

The first fit compiles what it needs and keeps it in a cache on disk; later processes load it from
there.  Every fit is in a process of its own, with default parameters on small data, so that little
else is measured.  Also listed: kernels that are compiled more than once for types that could be
one.  ``python -m studies.peers.cold_start METHODS`` fits here and prints JSON.
"""

import gc
import json
import re
import sys
import time
from argparse import ArgumentParser, Namespace
from collections import defaultdict
from collections.abc import Iterable
from importlib import import_module
from statistics import median
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from studies.harness.commands import add_result_arguments, load_results, run_module, save_results
from studies.harness.markdown import make_table

LABEL_METHODS = ("GroPLE", "MLCHMF")
METHODS = ("HMF", "MMMF", "PMMMF", "ALS", "MarginEnsemble", *LABEL_METHODS)
PHASES = ("import", "compile or load", "fit")


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--repeats", type=int, default=3, help="of fits with a full cache")
    add_result_arguments(parser)


def main(args: Namespace) -> None:
    results = load_results(args, "cold-start") if args.markdown else measure(args)
    print("\n\n".join(parts(results).values()))


def measure(args: Namespace) -> dict[str, Any]:
    """Fit every method with an empty and with a full cache, then all together; write it."""
    fits = []
    for method in args.methods:
        with TemporaryDirectory(prefix="marginmf-cold-start-") as cache:
            run(method, cache, "--import-only")  # so that Python's own files are in memory
            fits.append({"method": method, "cache": "empty", **run(method, cache)})
            for _ in range(args.repeats):
                fits.append({"method": method, "cache": "full", **run(method, cache)})
        print(f"{method}: done", file=sys.stderr, flush=True)
    with TemporaryDirectory(prefix="marginmf-cold-start-") as cache:
        results = {"fits": fits, "together": run(",".join(args.methods), cache)}
    save_results(args, "cold-start", results)
    return results


def run(methods: str, cache: str, *options: str) -> dict[str, Any]:
    """Fit in a new process that keeps compiled kernels in a folder, and return what it reports."""
    return run_module("studies.peers.cold_start", methods, *options, NUMBA_CACHE_DIR=cache)


def first_fits(methods: Iterable[str]) -> dict[str, Any]:
    """Import, fit, and fit again: the difference of the fits is what compiling or loading took."""
    cpu, wall = dict.fromkeys(PHASES, 0.0), 0.0
    for method in methods:
        of_labels = method in LABEL_METHODS
        begin, clock = time.process_time(), time.perf_counter()
        module = import_module("marginmf.labels" if of_labels else "marginmf.ratings")
        imported = time.process_time()
        estimator, data = getattr(module, method), make_data(of_labels)
        estimator(random_state=0).fit(*data)
        first = time.process_time() - imported
        wall += time.perf_counter() - clock
        again = time.process_time()
        estimator(random_state=0).fit(*data)
        second = time.process_time() - again
        for phase, seconds in zip(PHASES, (imported - begin, first - second, second), strict=True):
            cpu[phase] += seconds
    from marginmf.backends.cpu.compiling import n_compilations

    return {**cpu, "wall": wall, "compiled": n_compilations(), "versions": find_versions()}


def make_data(of_labels: bool) -> tuple[Any, Any]:
    """Return small data: features and labels, or pairs and ratings."""
    generator = np.random.default_rng(0)
    if of_labels:
        X = generator.standard_normal((300, 20))
        return X, (X @ generator.standard_normal((20, 12)) > 0.7).astype(np.int64)
    pairs = np.argwhere(generator.random((300, 200)) < 0.1)
    of_users, of_items = generator.standard_normal(300), generator.standard_normal(200)
    scores = of_users[pairs[:, 0]] + of_items[pairs[:, 1]]
    return pairs, np.searchsorted([-1.5, -0.5, 0.5, 1.5], scores) + 1.0


def find_versions() -> dict[str, list[str]]:
    """Return the types that each cached kernel has been compiled for.

    What is compiled into others alone (losses, signs) is not in the cache and not listed.
    """
    from numba.core.caching import NullCache
    from numba.core.dispatcher import Dispatcher

    found: dict[str, list[str]] = defaultdict(list)
    for kernel in (one for one in gc.get_objects() if isinstance(one, Dispatcher)):
        name, cached = f"{kernel.__module__}.{kernel.__name__}", kernel._cache
        if name.startswith("marginmf.") and not isinstance(cached, NullCache):
            found[name] += [", ".join(map(str, types)) for types in kernel.signatures]
    return {name: sorted(types) for name, types in sorted(found.items()) if types}


def parts(results: dict[str, Any]) -> dict[str, str]:
    fits, together, rows = results["fits"], results["together"], []
    for method, cache in dict.fromkeys((fit["method"], fit["cache"]) for fit in fits):
        own = [fit for fit in fits if (fit["method"], fit["cache"]) == (method, cache)]
        seconds = [median(fit[phase] for fit in own) for phase in PHASES]
        state = "first after installation" if cache == "empty" else "later processes"
        n_versions = sum(map(len, own[0]["versions"].values()))
        figures = (*seconds, sum(seconds), median(fit["wall"] for fit in own))
        counts = (str(own[0]["compiled"]), str(n_versions))
        rows.append([f"{method}, {state}", *(f"{one:.2f}" for one in figures), *counts])
    heads = ["CPU seconds", *PHASES, "in all", "wall seconds", "compiled now", "versions in use"]
    summary = (
        f"All methods in one process: {together['compiled']} versions of "
        f"{len(together['versions'])} kernels, {together['compile or load']:.1f} CPU seconds to "
        "compile them."
    )
    versions = f"{summary}\n\n{repeated_table(together['versions'])}"
    return {"fits": make_table(heads, rows), "versions": versions}


def repeated_table(kernels: dict[str, list[str]]) -> str:
    """Return a table of the kernels with several versions, and the arguments that differ."""
    rows = []
    for name, types in kernels.items():
        # At the commas outside brackets: ``array(float32, 1d, C), int64`` is two.
        columns = zip(*(re.split(r", (?![^()]*\))", one) for one in types), strict=False)
        distinct = (list(dict.fromkeys(column)) for column in columns)
        differ = [f"{k}: {' / '.join(found)}" for k, found in enumerate(distinct) if len(found) > 1]
        if len(types) > 1:
            rows.append([name, str(len(types)), "; ".join(differ)])
    return make_table(["kernel", "versions", "arguments that differ"], rows)


if __name__ == "__main__":
    if "--import-only" in sys.argv:
        import marginmf.labels
        import marginmf.ratings  # noqa: F401

        print("{}")
    else:
        print(json.dumps(first_fits(sys.argv[1].split(","))))
