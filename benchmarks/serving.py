"""Seconds and memory for the ten best unseen items of every user, beside `implicit`.

Run by hand, where ``implicit`` is installed, for example::

    python -m benchmarks.serving --repeats 9

Every method is fitted once and saved; then each is served from a process of its own, so that
memory is its own, and the processes take turns, so that what else the machine does hits all of
them.  Prints a Markdown table of medians.
"""

import argparse
import json
import os
import pickle
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

from benchmarks.accuracy import print_header, print_row
from marginmf.datasets import load_ratings
from marginmf.ratings import ALS, HMF, MMMF, PMMMF, BiasOnly, Ratings

METHODS: dict[str, Callable[[], Any]] = {
    "MMMF(reg=15)": lambda: MMMF(reg=15, max_iter=30, random_state=0),
    "HMF(reg=[10, 15, 24, 24])": lambda: HMF(reg=[10, 15, 24, 24], max_iter=15, random_state=0),
    "PMMMF(reg=40)": lambda: PMMMF(reg=40, max_iter=20, random_state=0),
    "ALS(reg=25, bias=True)": lambda: ALS(reg=25, bias=True, max_iter=3, random_state=0),
    "BiasOnly()": BiasOnly,
}
PEER = "implicit ALS(factors=100)"


def fit(name: str, file: Path, data: str) -> None:
    """Fit one method and save it."""
    table = load_ratings(data)
    if name == PEER:
        from implicit.als import AlternatingLeastSquares
        from scipy.sparse import csr_matrix

        ratings = Ratings.of(table.pairs, table.ratings)
        shape = (ratings.n_users, ratings.n_items)
        values = ratings.values.astype(np.float32)
        matrix = csr_matrix((values, ratings.indices, ratings.indptr), shape=shape)
        peer = AlternatingLeastSquares(factors=100, iterations=3, random_state=0, use_gpu=False)
        peer.fit(matrix, show_progress=False)
        model = peer.user_factors, peer.item_factors, matrix
    else:
        model = METHODS[name]().fit(table.pairs, table.ratings).calibrate()
    file.write_bytes(pickle.dumps(model))


def make_server(name: str, file: Path, threads: int, n: int) -> Callable[[], int]:
    """Return a function that makes all lists and says how many items they hold."""
    model = pickle.loads(file.read_bytes())
    if name == PEER:
        from implicit.als import AlternatingLeastSquares

        peer = AlternatingLeastSquares(factors=100, num_threads=threads, use_gpu=False)
        peer.user_factors, peer.item_factors, matrix = model
        users = np.arange(matrix.shape[0])
        return lambda: peer.recommend(users, matrix, N=n, filter_already_liked_items=True)[0].size
    model.set_params(n_jobs=threads)
    return lambda: len(model.recommend(n=n))


def serve(name: str, file: Path, threads: int, n: int) -> None:
    """Make the lists whenever a line comes in; answer with seconds, CPU seconds and memory."""
    serve_all = make_server(name, file, threads, n)
    for _ in sys.stdin:
        begin, begin_cpu = time.perf_counter(), time.process_time()
        n_found = serve_all()
        answer = {
            "seconds": time.perf_counter() - begin,
            "cpu": time.process_time() - begin_cpu,
            "megabytes": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            "found": n_found,
        }
        print(json.dumps(answer), flush=True)


def start(mode: str, name: str, file: Path, args: argparse.Namespace) -> "subprocess.Popen[str]":
    """Start a process that fits or serves one method."""
    command = [sys.executable, "-m", "benchmarks.serving", "--mode", mode, "--name", name]
    command += ["--file", str(file), "--data", args.data]
    command += ["--threads", str(args.threads), "--n", str(args.n)]
    # One BLAS thread for `implicit`, which asks for that; our own code sees to it by itself.
    environment = {**os.environ, **({"OPENBLAS_NUM_THREADS": "1"} if name == PEER else {})}
    pipe = subprocess.PIPE if mode == "serve" else None
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, env=environment)


def ask(process: "subprocess.Popen[str]") -> dict[str, float]:
    """Have a process make all lists once."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("go\n")
    process.stdin.flush()
    answer: dict[str, float] = json.loads(process.stdout.readline())
    return answer


def compare(args: argparse.Namespace) -> None:
    """Fit, serve in turns, and print the table."""
    names = [name for name in METHODS if not args.only or name.startswith(tuple(args.only))]
    if find_spec("implicit") is not None:
        names = [PEER, *names]
    else:
        print("(implicit is not installed: no comparison)\n")
    with tempfile.TemporaryDirectory() as folder:
        files = {name: Path(folder) / f"{k}.pickle" for k, name in enumerate(names)}
        for name, file in files.items():
            if start("fit", name, file, args).wait() != 0:
                sys.exit(f"{name} could not be fitted.")
        servers = {name: start("serve", name, file, args) for name, file in files.items()}
        answers: dict[str, list[dict[str, float]]] = {name: [] for name in names}
        for k in range(args.repeats + 1):
            for name, server in servers.items():
                answer = ask(server)
                if k > 0:  # nobody is charged for compilation and first pages
                    answers[name].append(answer)
        for server in servers.values():
            server.communicate()
    medians = {
        name: {key: median(answer[key] for answer in given) for key in given[0]}
        for name, given in answers.items()
    }
    base = medians[names[0]]
    times = f"times {names[0]}"
    print_header(f"top {args.n} of {args.data}", "seconds", times, "CPU seconds", times, "peak MB")
    for name, m in medians.items():
        shares = {key: f"{m[key] / base[key]:.2f}" for key in ("seconds", "cpu")}
        memory = f"{m['megabytes']:.0f}"
        print_row(name, m["seconds"], shares["seconds"], m["cpu"], shares["cpu"], memory)


def main() -> None:
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--n", type=int, default=10)
    parser.add_argument("--data", default="ml-1m")
    parser.add_argument("--only", nargs="*", help="beginnings of the names of our methods")
    parser.add_argument("--mode", choices=["compare", "fit", "serve"], default="compare")
    parser.add_argument("--name", help=argparse.SUPPRESS)
    parser.add_argument("--file", type=Path, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.mode == "fit":
        fit(args.name, args.file, args.data)
    elif args.mode == "serve":
        serve(args.name, args.file, args.threads, args.n)
    else:
        compare(args)


if __name__ == "__main__":
    main()
