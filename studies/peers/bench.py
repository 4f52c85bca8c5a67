"""The bench: cells of methods and peers, each measured in a process of its own and then judged."""

import json
import math
import os
import signal
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import cache
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from studies.harness import Cell, Finding, Store, Values
from studies.harness.machine import ROOT, digest_code, digest_files
from studies.harness.running import Tell
from studies.peers.environments import ENVIRONMENTS, Environments, Unavailable, last_line
from studies.peers.methods import Method

PEERS = ROOT / "studies" / "peers"
THREAD_VARIABLES = (
    *(f"{name}_NUM_THREADS" for name in ("OMP", "OPENBLAS", "MKL", "BLIS", "NUMEXPR", "NUMBA")),
    *("RAYON_NUM_THREADS", "LK_NUM_THREADS", "LK_NUM_BACKEND_THREADS", "LK_NUM_PROCS"),
    "VECLIB_MAXIMUM_THREADS",
)

Arrays = dict[str, np.ndarray]
#: A cell's settings and values in one mapping, as tables read them.
Record = dict[str, Any]


@dataclass(frozen=True)
class Problem:
    """What a worker gets, a tiny part of it to warm up with, and the judge of the answers.

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
        whole = {"train": self.train, "test": self.test, "side": self.side}
        tiny = {"tiny/train": self.tiny_train, "tiny/test": self.tiny_test, "tiny/side": self.side}
        for name, arrays in {**whole, **tiny}.items():
            np.savez(folder / f"{name}.npz", **arrays)


#: From data, split, repetition and the order of the training rows.
MakeProblem = Callable[[str, str, int, str], Problem]


@dataclass(frozen=True)
class Task:
    """A problem by name, on one split of a data set."""

    problem: str
    data: str
    split: str
    order: str = "sorted"
    #: How often the answers are made; the last time counts.
    rounds: int = 1

    def cell(self, method: Method, threads: int, repetition: int) -> Cell:
        """Return the cell of a method; its key changes with the code that it measures."""
        software = digest_code() if method.is_ours else list(ENVIRONMENTS[method.peer].pins)
        settings = {
            **asdict(self),
            "method": method.name,
            "peer": method.peer,
            "adapter": method.module,
            "kind": method.kind,
            "options": {**method.options, **method.by_data.get(self.data, {})},
            "warm_up": method.warm_up,
            **{"threads": threads, "repetition": repetition},
            "code": [_digest_adapter(method.adapter), software],
        }
        return Cell("peer", settings, alone=True)


@cache
def _digest_adapter(name: str) -> str:
    adapters = PEERS / "adapters"
    files = [PEERS / "worker.py", adapters / "common.py", adapters / f"{name}.py"]
    return digest_files(filter(Path.is_file, files))


def interleave(
    methods: Sequence[Method], tasks: Sequence[Task], threads: Sequence[int], repeats: int
) -> Iterator[Cell]:
    """Yield all cells: in every repetition each method has its turn.

    What else the machine does then affects all methods alike.  Methods that cannot use threads are
    run with one, whatever is asked for.
    """
    turns = product(range(1, repeats + 1), tasks, threads, methods)
    for repetition, task, n_threads, method in turns:
        if method.threaded or n_threads == min(threads):
            yield task.cell(method, n_threads if method.threaded else 1, repetition)


def group_of(record: Mapping[str, Any]) -> tuple[str, str, str, int]:
    return record["method"], record["data"], record["split"], record["threads"]


class Budget:
    """Stops repetitions of a method that has used up its seconds, or has failed, on one split."""

    def __init__(self, seconds: float) -> None:
        self._left: dict[Any, float] = defaultdict(lambda: seconds)

    def permits(self, cell: Cell) -> bool:
        return self._left[group_of(cell.settings)] >= 0

    def charge(self, finding: Finding) -> None:
        failed = finding.values is None or "error" in finding.values
        self._left[group_of(finding.cell.settings)] -= math.inf if failed else finding.seconds


class Failed(Exception):  # noqa: N818, it is the peer's error and not ours
    """A worker brought no result; the message is the reason, in one line."""


@dataclass
class Bench:
    """Measures peer cells in worker processes, with arrays in a scratch folder.

    A method that fails finds an error, which tables show and the next run tries again.
    """

    environments: Environments
    problems: Mapping[str, MakeProblem]
    scratch: Path
    timeout: float = 900.0
    _pythons: dict[str, str] = field(default_factory=dict)
    _reasons: dict[str, str] = field(default_factory=dict)
    _written: tuple[Any, ...] = ()
    _problem: Problem | None = None

    def prepare(self, cells: Iterable[Cell]) -> None:
        """Make environments, and import every library once, so that its files are in memory."""
        peers = {cell.settings["adapter"]: cell.settings["peer"] for cell in cells}
        for module, peer in peers.items():
            if module in self._pythons or module in self._reasons:
                continue
            try:
                python = self.environments.python(peer)
                run_worker(python, {"adapter": module}, self.scratch, self.timeout, not peer)
                self._pythons[module] = python
            except Unavailable as reason:
                self._reasons[module] = str(reason)
            except Failed as reason:
                self._reasons[module] = f"cannot be imported: {reason}"

    def __call__(self, cell: Cell) -> Values:
        """Return what a worker measured and how good its answers are, or the error."""
        self.prepare([cell])
        settings, module = cell.settings, cell.settings["adapter"]
        if module in self._reasons:
            return {"error": self._reasons[module]}
        problem = self._write_problem(settings)
        names = ("adapter", "kind", "options", "threads", "warm_up", "rounds")
        task = {**{name: settings[name] for name in names}, "arrays": str(self.scratch / "arrays")}
        limits = self.scratch, self.timeout, not settings["peer"]
        try:
            measured, answers = run_worker(self._pythons[module], task, *limits)
            return {**measured, "errors": problem.judge(answers)}
        except Failed as reason:
            return {"error": str(reason)}
        except (ValueError, KeyError) as error:  # answers that are not what they should be
            return {"error": f"its answers are of no use: {error}"}

    def _write_problem(self, settings: Mapping[str, Any]) -> Problem:
        wanted = tuple(settings[key] for key in ("problem", "data", "split", "repetition", "order"))
        if self._problem is None or wanted != self._written:
            name, *arguments = wanted
            self._problem, self._written = self.problems[name](*arguments), wanted
            self._problem.write(self.scratch / "arrays")
        return self._problem


@contextmanager
def open_bench(
    environments: Environments, problems: Mapping[str, MakeProblem], timeout: float = 900.0
) -> Iterator[Bench]:
    """Return a bench whose scratch folder is removed in the end."""
    with TemporaryDirectory(prefix="marginmf-studies-") as scratch:
        yield Bench(environments, problems, Path(scratch), timeout)


@contextmanager
def show_findings(total: int) -> Iterator[Tell]:
    """Print a line for every cell that was measured."""

    def tell(finding: Finding, remaining: float | None) -> None:
        one, found = finding.cell.settings, finding.values or {"error": finding.failure}
        threads = "1 thread" if one["threads"] == 1 else f"{one['threads']} threads"
        what = f"{one['method']} on {one['data']}, {one['split']}, {threads}"
        words = f"FAILED, {found.get('error')}"
        if "error" not in found:
            cpu = {phase: clock["cpu"] for phase, clock in found["phases"].items()}
            errors = list(found["errors"].items())[:2]
            words = f"{cpu['prepare'] + cpu['fit']:.2f} CPU s to prepare and fit, "
            words += f"{cpu['answer']:.2f} to answer; "
            words += ", ".join(f"{name} {value:.4f}" for name, value in errors)
        print(f"{what}, no. {one['repetition']}: {words}", file=sys.stderr, flush=True)

    yield tell


def records_of(store: Store, cells: Iterable[Cell]) -> list[Record]:
    """Return the records of cells, as far as they have been measured, failures included."""
    return [
        {**cell.settings, **values} for cell in cells if (values := store.values(cell)) is not None
    ]


def newest_records(store: Store, problem: str) -> list[Record]:
    """Return the last record of everything measured for a problem, whatever the code was then."""
    found: dict[tuple[Any, ...], Record] = {}
    for one in store.records.values():
        if one["measure"] == "peer" and one["settings"]["problem"] == problem:
            record = {**one["settings"], **one["values"]}
            found[(*group_of(record), record["order"], record["repetition"])] = record
    return list(found.values())


def run_worker(
    python: str, task: Mapping[str, Any], folder: Path, timeout: float, ours: bool
) -> tuple[Values, Arrays]:
    """Run the worker under the interpreter of a library; return what it measured and answered."""
    out = folder / "out"
    out.mkdir(exist_ok=True)
    for old in out.iterdir():
        old.unlink()
    file, log = folder / "task.json", folder / "log.txt"
    file.write_text(json.dumps({**task, "out": str(out)}))
    with log.open("wb") as sink:
        process = subprocess.Popen(
            [python, "-m", "studies.peers.worker", str(file)],
            **{"stdin": subprocess.DEVNULL, "stdout": sink, "stderr": subprocess.STDOUT},
            **{"cwd": folder, "env": _make_environment(task.get("threads", 1), ours)},
            start_new_session=True,  # so that what it starts can be ended with it
        )
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired as error:
            raise Failed(f"no answer within {timeout:.0f} seconds") from error
        finally:
            if process.returncode is None:
                with suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    if code < 0:
        raise Failed(f"killed by {signal.Signals(-code).name}")
    if code > 0 or not (out / "record.json").is_file():
        raise Failed(last_line(log.read_text(errors="replace")))
    answers, file = {}, out / "answers.npz"
    if file.is_file():
        with np.load(file) as arrays:
            answers = dict(arrays)
    return json.loads((out / "record.json").read_text()), answers


def _make_environment(threads: int, ours: bool) -> dict[str, str]:
    """Return the variables: the number of threads, and the studies to import."""
    inherited = os.environ.get("PYTHONPATH", "") if ours else ""
    # The worker's folder is not ours: relative paths would lead elsewhere.
    more = [str(Path(part).absolute()) for part in inherited.split(os.pathsep) if part]
    path = {"PYTHONPATH": os.pathsep.join([str(ROOT), *more])}
    return {**os.environ, **dict.fromkeys(THREAD_VARIABLES, str(threads)), **path}
