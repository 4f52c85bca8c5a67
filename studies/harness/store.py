"""Everything that was measured: one line of JSON for each cell, in a file that only grows.

A line is on the disk before the next cell begins, so a run that is killed loses only the cells it
was measuring.  A line that a kill has torn is skipped by readers, and removed by the next writer.
"""

import json
import os
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from marginmf._utils.files import acquire_lock
from studies.harness.cell import Cell, Values, to_plain
from studies.harness.machine import describe_run

FILE, LOCK = "cells.jsonl", ".cells.lock"
#: What the lines of runs and of cells have at least.
RUN, CELL = {"run", "scale"}, {"run", "key", "measure", "settings", "values", "seconds"}


class Store:
    """The cells in ``cells.jsonl`` of a folder.

    Several processes may add to one folder; each sees what was there when it opened the store, and
    what it added itself.
    """

    def __init__(self, folder: Path) -> None:
        self.file = folder / FILE
        #: By name: when a run began, at which scale, on which machine, with which versions.
        self.runs: dict[str, dict[str, Any]] = {}
        #: By key: a cell's measure, settings, values, seconds, and the run it comes from.
        self.records: dict[str, dict[str, Any]] = {}
        self._run = ""
        for record in _read(self.file):
            if "key" in record:
                self._keep(record)
            else:
                self.runs[record["run"]] = record

    def begin(self, scale: str) -> None:
        """Record that a run begins: on which machine, with which versions, at which scale."""
        # Not a number: two runs may begin in one folder at the same time.
        self._run = secrets.token_hex(4)
        record = {"run": self._run, "scale": scale, **describe_run()}
        self.runs[self._run] = record
        self._append(record)

    def add(self, cell: Cell, values: Values, seconds: float) -> None:
        """Keep what a cell found; of a cell that was measured again, the last counts."""
        record = {
            "key": cell.key,
            "measure": cell.measure,
            # As a file gives them back, so that this process sees what the next one will.
            "settings": to_plain(cell.settings),
            "values": to_plain(values),
            "seconds": round(seconds, 3),
            "run": self._run,
        }
        self._append(record)
        self._keep(record)

    def values(self, cell: Cell) -> Values | None:
        """Return what a cell found, or None if it has not been measured."""
        return self.records.get(cell.key, {}).get("values")

    def seconds(self, cell: Cell) -> float | None:
        """Return how long a cell took, or None if it has not been measured."""
        return self.records.get(cell.key, {}).get("seconds")

    def __contains__(self, cell: Cell) -> bool:
        """Return whether a cell has been measured; one that found an error is tried again."""
        return "error" not in (self.values(cell) or {"error": "not measured"})

    def _keep(self, record: dict[str, Any]) -> None:
        self.records.pop(record["key"], None)  # the newest come last
        self.records[record["key"]] = record

    def _append(self, record: Mapping[str, Any]) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        line = json.dumps(record, ensure_ascii=True, allow_nan=False).encode() + b"\n"
        with acquire_lock(self.file.with_name(LOCK)), open(self.file, "a+b") as file:
            _drop_torn_line(file)
            file.write(line)
            file.flush()
            os.fsync(file.fileno())


def _drop_torn_line(file: BinaryIO) -> None:
    """Remove what a killed process has left after the last end of a line.

    Only a writer does so, and under the lock: to a reader, the line that another process is just
    writing looks the same.
    """
    end = file.seek(0, os.SEEK_END)
    file.seek(max(0, end - 1))
    if file.read(1) not in (b"", b"\n"):
        file.seek(0)
        file.truncate(file.read().rfind(b"\n") + 1)


def _read(file: Path) -> Iterator[dict[str, Any]]:
    if not file.is_file():
        return
    content = file.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    for number, line in enumerate(whole.split(b"\n")[:-1], 1):
        where = f"{file}, line {number},"
        remedy = "remove the line, and its cell will be measured again."
        try:
            record = json.loads(line)
        except ValueError as error:
            raise ValueError(f"{where} is not JSON ({error}); {remedy}") from error
        names = record.keys() if isinstance(record, dict) else set()
        if not names >= (CELL if "key" in names else RUN):
            raise ValueError(f"{where} is neither a cell nor a run; {remedy}")
        yield record
