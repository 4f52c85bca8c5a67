"""Everything that was measured, in one JSON file that is whole at any time."""

import hashlib
import json
import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.cells import Cell
from benchmarks.environments import ENVIRONMENTS, Environment
from benchmarks.processes import ROOT
from marginmf._utils.files import atomic_write
from marginmf.experiments.machine import describe_machine

Record = dict[str, Any]


class Store:
    """The records of one command.  With ``resume``, those of an earlier run are kept for use."""

    def __init__(self, file: Path, resume: bool = False) -> None:
        self.file = file
        self._earlier: dict[str, Record] = {}
        self.records: list[Record] = []
        if resume and file.is_file():
            known = json.loads(file.read_text())["cells"]
            self._earlier = {one["key"]: one for one in known if "error" not in one}
        self.machine = machine()

    def earlier(self, key: str) -> Record | None:
        """Return the record of the same cell from an earlier run, unless it failed."""
        return self._earlier.get(key)

    def add(self, record: Record) -> None:
        self.records.append(record)
        now = {one["key"] for one in self.records}
        # Not to lose, when this run is interrupted in turn, what it has not come to yet.
        rest = [one for key, one in self._earlier.items() if key not in now]
        whole = {"machine": self.machine, "cells": self.records + rest}
        with atomic_write(self.file) as file:
            file.write(json.dumps(whole, indent=1).encode())

    def colophon(self) -> str:
        """Return a sentence on where, when and with which versions the figures were made."""
        found = self.machine
        versions = {}
        for record in self.records:
            versions |= dict(list(record.get("versions", {}).items())[1:2])  # the library itself
        libraries = ", ".join(f"{name} {number}" for name, number in sorted(versions.items()))
        return (
            f"Measured on {found['date']} at {found['commit'] or 'no commit'}: "
            f"{found['processor']}, {found['cores']} cores, {found['system']}, "
            f"Python {found['python']}; {libraries}."
        )


def load(file: Path) -> list[Record]:
    """Return the records of a file."""
    cells: list[Record] = json.loads(file.read_text())["cells"]
    return cells


def key_of(cell: Cell, order: str, known: dict[str, Environment] = ENVIRONMENTS) -> str:
    """Return what tells a cell from all others: data, settings, and the code that it runs."""
    method = cell.method
    facts = {
        "cell": [*cell.group, cell.repetition, order],
        "settings": [method.module, method.kind, method.options_for(cell.data), method.warm_up],
        "code": _own_code() if method.ours else list(known[method.peer].pins),
        "harness": _digest(
            [ROOT / "benchmarks" / "worker.py", *(ROOT / "benchmarks" / "adapters").glob("*.py")]
        ),
    }
    return hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:20]


def _own_code() -> str:
    spec = find_spec("marginmf")
    assert spec is not None
    assert spec.origin is not None
    return _digest(list(Path(spec.origin).parent.rglob("*.py")))


def _digest(files: list[Path]) -> str:
    digest = hashlib.sha256()
    for file in sorted(files):
        digest.update(file.name.encode() + file.read_bytes())
    return digest.hexdigest()


def machine() -> dict[str, Any]:
    """Return what is needed to read the figures: the machine, and what else it was doing."""
    return {**describe_machine(), "load": os.getloadavg()}
