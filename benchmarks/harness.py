"""Run cells one after another: in its own process each, with what it cost and how good it was."""

import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from benchmarks.cells import Allowance, Cell
from benchmarks.environments import Environments, Unavailable
from benchmarks.processes import Failed, run_worker
from benchmarks.store import Record, Store, key_of

Arrays = dict[str, np.ndarray]


@dataclass(frozen=True)
class Problem:
    """What a worker gets, a tiny part of it to warm up with, and who judges the answers.

    The truth about the test part stays with the judge.  What is known of users and items besides
    their ratings is for the adapters that ask for it.
    """

    train: Arrays
    test: Arrays
    tiny_train: Arrays
    tiny_test: Arrays
    judge: Callable[[Arrays], dict[str, float]]
    side: Arrays = field(default_factory=dict)

    def write(self, folder: Path) -> None:
        (folder / "tiny").mkdir(parents=True, exist_ok=True)
        np.savez(folder / "train.npz", **self.train)
        np.savez(folder / "test.npz", **self.test)
        np.savez(folder / "side.npz", **self.side)
        np.savez(folder / "tiny" / "side.npz", **self.side)
        np.savez(folder / "tiny" / "train.npz", **self.tiny_train)
        np.savez(folder / "tiny" / "test.npz", **self.tiny_test)


@dataclass
class Harness:
    """Measures cells, writes every record at once, and says how it goes on standard error."""

    environments: Environments
    store: Store
    timeout: float = 900.0
    budget: float = 120.0
    order: str = "sorted"
    rounds: int = 1
    _importable: dict[str, str] = field(default_factory=dict)

    def run(
        self, cells: Iterable[Cell], problem_of: Callable[[str, str, int], Problem]
    ) -> list[Record]:
        """Measure what is permitted; return the records, those of failures among them."""
        allowance = Allowance(self.budget)
        written: tuple[str, str, int] | None = None
        with TemporaryDirectory(prefix="marginmf-benchmarks-") as temporary:
            scratch = Path(temporary)
            for cell in cells:
                if not allowance.permits(cell):
                    continue
                key = key_of(cell, self.order, self.environments.known)
                record = self.store.earlier(key)
                if record is None:
                    place = cell.data, cell.split, cell.repetition
                    if written != place:
                        problem = problem_of(*place)
                        problem.write(scratch / "arrays")
                        written = place
                    record = {
                        **self._described(cell, key),
                        **self._measured(cell, problem, scratch),
                    }
                self.store.add(record)
                allowance.charge(cell, record["seconds"], failed="error" in record)
                print(f"{cell}: {_brief(record)}", file=sys.stderr, flush=True)
        return self.store.records

    def _described(self, cell: Cell, key: str) -> Record:
        return {
            "key": key,
            "method": cell.method.name,
            "peer": cell.method.peer,
            "options": cell.method.options_for(cell.data),
            "data": cell.data,
            "split": cell.split,
            "order": self.order,
            "threads": cell.threads,
            "repetition": cell.repetition,
        }

    def _measured(self, cell: Cell, problem: Problem, scratch: Path) -> Record:
        method = cell.method
        task: dict[str, Any] = {
            "adapter": method.module,
            "kind": method.kind,
            "options": method.options_for(cell.data),
            "threads": cell.threads,
            "warm_up": method.warm_up,
            "rounds": self.rounds,
            "arrays": str(scratch / "arrays"),
        }
        begin = time.perf_counter()
        try:
            python = self.environments.python(method.peer)
            self._import_once(python, method.module, scratch, method.ours)
            begin = time.perf_counter()
            measured, answers = run_worker(python, task, scratch, self.timeout, method.ours)
            found = {**measured, "errors": problem.judge(answers)}
        except (Unavailable, Failed) as reason:
            found = {"error": str(reason)}
        except (ValueError, KeyError) as error:  # answers that are not what they should be
            found = {"error": f"its answers are of no use: {error}"}
        return {**found, "seconds": time.perf_counter() - begin}

    def _import_once(self, python: str, module: str, scratch: Path, ours: bool) -> None:
        """Import a library once before it counts, so that its files are in memory."""
        if module not in self._importable:
            try:
                run_worker(python, {"adapter": module}, scratch, self.timeout, ours)
                self._importable[module] = ""
            except Failed as reason:
                self._importable[module] = f"cannot be imported: {reason}"
        if self._importable[module]:
            raise Failed(self._importable[module])


def _brief(record: Record) -> str:
    if "error" in record:
        return f"FAILED, {record['error']}"
    phases, errors = record["phases"], record["errors"]
    cpu = phases["prepare"]["cpu"] + phases["fit"]["cpu"]
    shown = ", ".join(f"{name} {value:.4f}" for name, value in list(errors.items())[:2])
    return f"{cpu:.2f} CPU s to prepare and fit, {phases['answer']['cpu']:.2f} to answer; {shown}"
