"""What commands share: sections by name, and results of one run as a JSON file."""

import json
import os
import subprocess
import sys
import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from marginmf._utils.files import atomic_write
from studies.harness.machine import describe_run

#: The folder of the studies that are not in the repository.
OUT = Path("build/studies")


def run_sections(sections: Mapping[str, Callable[[Namespace], None]], args: Namespace) -> None:
    """Run the sections that are asked for, each under a heading with its docstring."""
    for name in args.sections:
        print(f"\n## {name}: {(sections[name].__doc__ or '').splitlines()[0]}\n", flush=True)
        sections[name](args)


def add_result_arguments(parser: ArgumentParser) -> None:
    """Add where the results go, and the way back from there to tables."""
    parser.add_argument("--out", type=Path, default=OUT, help="folder for the JSON and the plot")
    parser.add_argument(
        "--markdown",
        action="store_true",
        help="measure nothing: print the tables of the last run, for the documentation",
    )


def timed(
    call: Callable[[], Any], clock: Callable[[], float] = time.perf_counter
) -> tuple[Any, float]:
    """Return what a call returns, and the seconds that it took."""
    begin = clock()
    result = call()
    return result, clock() - begin


def run_module(module: str, *words: str, **variables: str) -> dict[str, Any]:
    """Run a module in a new process with one thread, and return the JSON that it prints last."""
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    command = [sys.executable, "-m", module, *words]
    environment = {**os.environ, **threads, **variables}
    done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[1:])} ended with exit code {done.returncode}.")
    return json.loads(done.stdout.splitlines()[-1])


def load_results(args: Namespace, name: str) -> Any:
    """Return what an earlier run found."""
    file = args.out / f"{name}.json"
    if not file.is_file():
        raise SystemExit(f"{file} does not exist: run the command without --markdown first.")
    return json.loads(file.read_text())


def save_results(args: Namespace, name: str, results: Mapping[str, Any]) -> None:
    """Write what was found, with the machine it was found on."""
    with atomic_write(args.out / f"{name}.json") as file:
        file.write(json.dumps({"machine": describe_run(), **results}, indent=1).encode())
