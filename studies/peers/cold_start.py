"""How long the first fit takes: after installation, and in every later process.

The first fit compiles what it needs and keeps it in a cache on disk; later processes load it from
there.  Every fit is in a process of its own, with default parameters on small data, so that little
else is measured.  Also listed: every compiled version of every kernel, and kernels that are
compiled more than once for types that could be one.
"""

import gc
import json
import os
import subprocess
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

from studies.harness.commands import add_result_arguments, load_results, save_results
from studies.harness.markdown import make_table

RATING_METHODS = ("HMF", "MMMF", "PMMMF", "ALS", "MarginEnsemble")
LABEL_METHODS = ("GroPLE", "MLCHMF")
METHODS = (*RATING_METHODS, *LABEL_METHODS)
PARTS = ("import", "compile or load", "fit")


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--repeats", type=int, default=3, help="of fits with a full cache")
    add_result_arguments(parser)


def main(args: Namespace) -> None:
    if args.markdown:
        print(tables(load_results(args, "cold-start")))
        return
    results: dict[str, Any] = {"fits": []}
    for method in args.methods:
        with TemporaryDirectory(prefix="marginmf-cold-start-") as cache:
            _run(method, cache, "--import-only")  # so that Python's own files are in memory
            results["fits"].append({"method": method, "cache": "empty", **_run(method, cache)})
            for _ in range(args.repeats):
                results["fits"].append({"method": method, "cache": "full", **_run(method, cache)})
        print(f"{method}: done", file=sys.stderr, flush=True)
    with TemporaryDirectory(prefix="marginmf-cold-start-") as cache:
        together = _run(",".join(args.methods), cache)
    results["together"] = together
    save_results(args, "cold-start", results)
    print(tables(results))


def _run(methods: str, cache: str, *options: str) -> dict[str, Any]:
    """Fit in a new process that keeps compiled kernels in a folder, and return what it reports."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": cache, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "studies.peers.cold_start", methods, *options]
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"The first fit of {methods} ended with exit code {done.returncode}.")
    answer: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return answer


def first_fits(methods: Iterable[str]) -> dict[str, Any]:
    """Import, fit, and fit again: the difference of the fits is what compiling or loading took."""
    cpu, wall = dict.fromkeys(PARTS, 0.0), 0.0
    for method in methods:
        of_labels = method in LABEL_METHODS
        begin, clock = time.process_time(), time.perf_counter()
        module = import_module("marginmf.labels" if of_labels else "marginmf.ratings")
        imported = time.process_time()
        estimator, data = getattr(module, method), _labels() if of_labels else _ratings()
        estimator(random_state=0).fit(*data)
        first = time.process_time() - imported
        wall += time.perf_counter() - clock
        again = time.process_time()
        estimator(random_state=0).fit(*data)
        second = time.process_time() - again
        for part, seconds in zip(PARTS, (imported - begin, first - second, second), strict=True):
            cpu[part] += seconds
    from marginmf.backends.cpu.compiling import n_compilations

    return {**cpu, "wall": wall, "compiled": n_compilations(), "versions": versions()}


def _ratings() -> tuple[Any, Any]:
    generator = np.random.default_rng(0)
    pairs = np.argwhere(generator.random((300, 200)) < 0.1)
    of_users, of_items = generator.standard_normal(300), generator.standard_normal(200)
    scores = of_users[pairs[:, 0]] + of_items[pairs[:, 1]]
    return pairs, np.searchsorted([-1.5, -0.5, 0.5, 1.5], scores) + 1.0


def _labels() -> tuple[Any, Any]:
    generator = np.random.default_rng(0)
    X = generator.standard_normal((300, 20))
    return X, (X @ generator.standard_normal((20, 12)) > 0.7).astype(np.int64)


def versions() -> dict[str, list[str]]:
    """Return the types that each cached kernel has been compiled for.

    Kernels are found wherever they are, those made for a loss included.  What is compiled into
    others alone (losses, signs) is not kept in the cache and not listed.
    """
    from numba.core.caching import NullCache
    from numba.core.dispatcher import Dispatcher

    found: dict[str, list[str]] = defaultdict(list)
    for kernel in gc.get_objects():
        if not isinstance(kernel, Dispatcher) or not kernel.__module__.startswith("marginmf."):
            continue
        if kernel.signatures and not isinstance(kernel._cache, NullCache):
            name = f"{kernel.__module__}.{kernel.__name__}"
            found[name] += [", ".join(map(str, types)) for types in kernel.signatures]
    return {name: sorted(types) for name, types in sorted(found.items())}


def tables(results: dict[str, Any]) -> str:
    """Return the results as Markdown."""
    return "\n\n".join(parts(results).values())


def parts(results: dict[str, Any]) -> dict[str, str]:
    """Return the tables by name."""
    rows = []
    fits = results["fits"]
    for method, cache in dict.fromkeys((fit["method"], fit["cache"]) for fit in fits):
        own = [fit for fit in fits if (fit["method"], fit["cache"]) == (method, cache)]
        seconds = [median(fit[part] for fit in own) for part in PARTS]
        state = "first after installation" if cache == "empty" else "later processes"
        n_versions = sum(map(len, own[0]["versions"].values()))
        wall = median(fit["wall"] for fit in own)
        cells = [f"{value:.2f}" for value in (*seconds, sum(seconds), wall)]
        rows.append([f"{method}, {state}", *cells, str(own[0]["compiled"]), str(n_versions)])
    heads = ["CPU seconds", *PARTS, "in all", "wall seconds", "compiled now", "versions in use"]
    together = results["together"]
    summary = (
        f"All methods in one process: {together['compiled']} versions of "
        f"{len(together['versions'])} kernels, {together['compile or load']:.1f} CPU seconds to "
        "compile them."
    )
    versions = f"{summary}\n\n{repeated(together['versions'])}"
    return {"fits": make_table(heads, rows), "versions": versions}


def repeated(kernels: dict[str, list[str]]) -> str:
    """Return a table of the kernels with several versions, and the arguments that differ.

    >>> print(repeated({"kernels.dot": ["float32, int64", "float64, int64"], "kernels.one": ["x"]}))
    | kernel | versions | arguments that differ |
    |---|---:|---:|
    | kernels.dot | 2 | 0: float32 / float64 |
    """
    rows = []
    for name, types in kernels.items():
        if len(types) > 1:
            rows.append([name, str(len(types)), "; ".join(_differences(types))])
    return make_table(["kernel", "versions", "arguments that differ"], rows)


def _differences(types: list[str]) -> list[str]:
    columns = zip(*(_split(one) for one in types), strict=False)
    distinct = (list(dict.fromkeys(column)) for column in columns)
    return [f"{k}: {' / '.join(names)}" for k, names in enumerate(distinct) if len(names) > 1]


def _split(types: str) -> list[str]:
    """Split at the commas outside brackets: ``array(float32, 1d, C), int64`` is two."""
    parts, depth = [""], 0
    for letter in types:
        depth += (letter == "(") - (letter == ")")
        if letter == "," and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]


if __name__ == "__main__":
    if "--import-only" in sys.argv:
        import marginmf.labels
        import marginmf.ratings  # noqa: F401

        print("{}")
    else:
        print(json.dumps(first_fits(sys.argv[1].split(","))))
