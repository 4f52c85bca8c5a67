"""Where results of measurements without peers go, and the way back from there to tables."""

import json
from argparse import ArgumentParser, Namespace
from pathlib import Path
from typing import Any

from benchmarks.options import OUT
from benchmarks.store import machine
from marginmf._utils.files import atomic_write


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
