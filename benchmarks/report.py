"""What the commands have in common: where results go, and how a table looks."""

import json
import os
import platform
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from marginmf._atomic import atomic_write

OUT = Path("build/benchmarks")


def add_report_arguments(parser: ArgumentParser) -> None:
    """Add where the results go, and the way back from there to tables."""
    parser.add_argument("--out", type=Path, default=OUT, help="folder for the JSON and the plot")
    parser.add_argument(
        "--markdown",
        action="store_true",
        help="measure nothing: print the tables of the last run, for the documentation",
    )


def saved(args: Namespace, name: str) -> Any:
    """Return what an earlier run found."""
    file = args.out / f"{name}.json"
    if not file.is_file():
        raise SystemExit(f"{file} is not there: run the command without --markdown first.")
    return json.loads(file.read_text())


def save(args: Namespace, name: str, results: dict[str, Any]) -> None:
    """Write what was found, with the machine it was found on."""
    args.out.mkdir(parents=True, exist_ok=True)
    with atomic_write(args.out / f"{name}.json") as file:
        file.write(json.dumps({"machine": machine(), **results}, indent=1).encode())


def machine() -> dict[str, Any]:
    """Return what is needed to read the figures."""
    return {
        "date": datetime.now().astimezone().isoformat(timespec="seconds"),
        "system": f"{platform.system()} {platform.release()}",
        "processor": _processor(),
        "cores": os.cpu_count(),
        "load": os.getloadavg(),
        "python": platform.python_version(),
    }


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor())


def markdown(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; the first column is text and the others are numbers.

    >>> print(markdown(["method", "seconds"], [["HMF", "0.66"]]))
    | method | seconds |
    |---|---:|
    | HMF | 0.66 |
    """
    rule = "|---|" + "---:|" * (len(heads) - 1)
    lines = ["| " + " | ".join(cells) + " |" for cells in [heads, *rows]]
    return "\n".join([lines[0], rule, *lines[1:]])
