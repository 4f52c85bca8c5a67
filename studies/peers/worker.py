"""Measure one method once: run by the interpreter of its library, in a process of its own.

``python -m studies.peers.worker TASK.json`` reads arrays, and writes answers and measurements into
the folder that the task names.  It needs nothing but NumPy and what the adapter needs; not even
NumPy is imported before the clock of the imports runs.
"""

import json
import os
import resource
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

TICKS = os.sysconf("SC_CLK_TCK")


def descendants(root: int | None = None) -> list[int]:
    """Return the living descendants of a process: Spark works in a Java process of its own."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        fields = _stat(entry)
        if fields:
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found, waiting = [], [os.getpid() if root is None else root]
    while waiting:
        more = children.get(waiting.pop(), [])
        found += more
        waiting += more
    return found


def cpu_seconds() -> float:
    """Return the CPU seconds of this process and of all that it has started."""
    ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    # utime, stime, and those of its own children that have ended
    ticks = (_stat(Path(f"/proc/{process}"))[11:15] for process in descendants())
    running = sum(sum(map(int, one)) for one in ticks)
    return time.process_time() + ended.ru_utime + ended.ru_stime + running / TICKS


def peak_bytes() -> int:
    """Return the most memory that this process and its descendants have held.

    Not `getrusage` where Linux says it better: that starts with the memory of the parent.
    """
    own = _high_water_mark(Path("/proc/self")) or (
        # On macOS it is in bytes.
        resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1024 ** (sys.platform != "darwin"))
    )
    return own + sum(_high_water_mark(Path(f"/proc/{process}")) for process in descendants())


def _stat(process: Path) -> list[str]:
    """Return what Linux notes about a process, from its state on; nothing if it has ended."""
    try:
        return (process / "stat").read_text().rpartition(")")[2].split()
    except OSError:
        return []


def _high_water_mark(process: Path) -> int:
    try:
        lines = (process / "status").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM")), 0)


class Clock(dict[str, dict[str, float]]):
    """The seconds of every phase."""

    def __call__(self, phase: str, work: Callable[[], Any]) -> Any:
        cpu, wall = cpu_seconds(), time.perf_counter()
        result = work()
        wall = time.perf_counter() - wall
        self[phase] = {"wall": wall, "cpu": cpu_seconds() - cpu}
        return result


def versions(packages: tuple[str, ...]) -> dict[str, str]:
    found = dict.fromkeys(("python", *packages), "from source")
    for package in packages:
        with suppress(PackageNotFoundError):
            found[package] = version(package)
    return {**found, "python": sys.version.split()[0]}


def measure(task: dict[str, Any]) -> None:
    """Import, warm up, prepare, fit and answer; write the answers and what they cost."""
    clock, out = Clock(), Path(task["out"])
    module = clock("import", lambda: import_module(task["adapter"]))
    record: dict[str, Any] = {"versions": versions(module.PACKAGES)}
    if "arrays" in task:
        make = getattr(module, task["kind"])
        folder, rounds = Path(task["arrays"]), task.get("rounds", 1)
        if task.get("warm_up", True):  # nobody is charged for compilation and lazy imports
            _run(make, task, folder / "tiny", Clock(), rounds)
        answers = _run(make, task, folder, clock, rounds)
        import numpy as np

        np.savez(out / "answers.npz", **answers)
    record |= {"phases": clock, "peak_bytes": peak_bytes()}
    (out / "record.json").write_text(json.dumps(record))


def _run(
    make: Callable[..., Any], task: dict[str, Any], folder: Path, clock: Clock, rounds: int
) -> dict[str, Any]:
    train, test = _load(folder / "train.npz"), _load(folder / "test.npz")
    adapter = make(threads=task["threads"], **task["options"])
    if hasattr(adapter, "describe"):
        adapter.describe(**_load(folder / "side.npz"))
    clock("prepare", lambda: adapter.prepare(**train))
    clock("fit", adapter.fit)
    for _ in range(rounds):  # the last one counts
        answers = clock("answer", lambda: adapter.answer(**test))
    if getattr(adapter, "also", None):
        answers = answers | clock("also", lambda: adapter.also(**test))
    return dict(answers)


def _load(file: Path) -> dict[str, Any]:
    import numpy as np

    with np.load(file) as arrays:
        return dict(arrays)


if __name__ == "__main__":
    measure(json.loads(Path(sys.argv[1]).read_text()))
