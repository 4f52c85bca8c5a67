"""Everything that was measured: one line of JSON for each cell, in a file that only grows.

A line is on the disk before the next cell begins, so that a run which is killed loses no more than
the cells it was at.  A line that a kill has torn is passed over when the file is read, and cut off
before the next one is written.
"""

import json
import os
import secrets
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO

from marginmf._utils.files import acquire_lock
from marginmf.experiments.cell import Cell, Values
from marginmf.experiments.machine import describe_run
from marginmf.experiments.plain import plain

FILE, LOCK = "cells.jsonl", ".cells.lock"
#: How much of the end of a file is looked at to find the last whole line.
PIECE = 1 << 16


class Store:
    """The cells of a folder.

    Several processes may add to one folder; each sees what was there when it opened the store, and
    what it added itself.

    Parameters
    ----------
    folder : path
        Where ``cells.jsonl`` is, or will be.

    Attributes
    ----------
    records : dict
        By key: a cell's measure, settings, values, seconds, and the run it comes from.
    runs : dict
        By name: when a run began, at which scale, on which machine, with which versions.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     store = Store(Path(folder))
    ...     store.begin("quick")
    ...     store.add(Cell("errors", {"split": 1}), {"mae": 0.5}, seconds=2.0)
    ...     again = Store(Path(folder))
    >>> again.values(Cell("errors", {"split": 1}))
    {'mae': 0.5}
    """

    def __init__(self, folder: Path) -> None:
        self.file = folder / FILE
        self.runs: dict[str, dict[str, Any]] = {}
        self.records: dict[str, dict[str, Any]] = {}
        self._run = ""
        for record in _read(self.file):
            if "key" in record:
                self.records[record["key"]] = record
            else:
                self.runs[record["run"]] = record

    def begin(self, scale: str) -> None:
        """Note that a run begins: on which machine, with which versions, at which scale."""
        # Not a number: two runs may begin in one folder at the same time.
        self._run = secrets.token_hex(4)
        record = {"run": self._run, "scale": scale, **describe_run()}
        self.runs[self._run] = record
        self._append(record)

    def add(self, cell: Cell, values: Values, seconds: float) -> None:
        """Keep what a cell found; of a cell that was run again, the last counts."""
        record = {
            "key": cell.key,
            "measure": cell.measure,
            # As a file gives them back, so that this process sees what the next one will.
            "settings": plain(cell.settings),
            "values": plain(values),
            "seconds": round(seconds, 3),
            "run": self._run,
        }
        self._append(record)
        self.records[cell.key] = record

    def values(self, cell: Cell) -> Values | None:
        """Return what a cell found, or None if it has not been run."""
        record = self.records.get(cell.key)
        return None if record is None else record["values"]

    def seconds(self, cell: Cell) -> float | None:
        """Return how long a cell took, or None if it has not been run."""
        record = self.records.get(cell.key)
        return None if record is None else float(record["seconds"])

    def __contains__(self, cell: Cell) -> bool:
        return cell.key in self.records

    def _append(self, record: Mapping[str, Any]) -> None:
        self.file.parent.mkdir(parents=True, exist_ok=True)
        line = json.dumps(record, ensure_ascii=True, allow_nan=False).encode() + b"\n"
        with acquire_lock(self.file.with_name(LOCK)), open(self.file, "a+b") as file:
            _drop_torn_line(file)
            file.write(line)
            file.flush()
            os.fsync(file.fileno())


def _drop_torn_line(file: BinaryIO) -> None:
    """Cut off what a killed process has left after the last end of a line.

    Only a writer does so, and under the lock: to a reader, the line that another process is just
    writing looks the same.
    """
    end = place = file.seek(0, os.SEEK_END)
    while place:
        begin = max(0, place - PIECE)
        file.seek(begin)
        newline = file.read(place - begin).rfind(b"\n")
        if newline >= 0:
            place = begin + newline + 1
            break
        place = begin
    if place < end:
        file.truncate(place)


def _read(file: Path) -> Iterator[dict[str, Any]]:
    if not file.is_file():
        return
    content = file.read_bytes()
    whole = content[: content.rfind(b"\n") + 1]
    for number, line in enumerate(whole.split(b"\n")[:-1], 1):
        try:
            record = json.loads(line)
        except ValueError as error:
            raise ValueError(
                f"{file}, line {number}, is not JSON ({error}); remove the line, and its cell will "
                "be run again."
            ) from error
        if not isinstance(record, dict) or not _is_complete(record):
            raise ValueError(
                f"{file}, line {number}, is neither a cell nor a run; remove the line, and its "
                "cell will be run again."
            )
        yield record


def _is_complete(record: Mapping[str, Any]) -> bool:
    needed = {"key", "measure", "settings", "values", "seconds"} if "key" in record else {"scale"}
    return "run" in record and needed <= record.keys()
