"""Run the worker in a process of its own, under the interpreter of a library."""

import json
import os
import signal
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.environments import last_line

ROOT = Path(__file__).resolve().parents[1]
THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
    "NUMBA_NUM_THREADS",
    "RAYON_NUM_THREADS",
    "LK_NUM_THREADS",
    "LK_NUM_BACKEND_THREADS",
    "LK_NUM_PROCS",
)


class Failed(Exception):  # noqa: N818, it is the peer's error and not ours
    """A worker brought no result; the message is the reason, in one line."""


def run_worker(
    python: str, task: dict[str, Any], folder: Path, timeout: float, ours: bool
) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
    """Return what a worker measured and what it answered."""
    out = folder / "out"
    out.mkdir(exist_ok=True)
    for old in out.iterdir():
        old.unlink()
    file, log = folder / "task.json", folder / "log.txt"
    file.write_text(json.dumps({**task, "out": str(out)}))
    with log.open("wb") as sink:
        process = subprocess.Popen(
            [python, "-m", "benchmarks.worker", str(file)],
            stdin=subprocess.DEVNULL,
            stdout=sink,
            stderr=subprocess.STDOUT,
            cwd=folder,
            env=_environment(task.get("threads", 1), ours),
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
    answers: dict[str, np.ndarray] = {}
    if (out / "answers.npz").is_file():
        with np.load(out / "answers.npz") as arrays:
            answers = dict(arrays)
    return json.loads((out / "record.json").read_text()), answers


def _environment(threads: int, ours: bool) -> dict[str, str]:
    """Return the variables: so many threads, and the benchmarks to import, besides ours or not."""
    inherited = os.environ.get("PYTHONPATH", "") if ours else ""
    # The worker's folder is not ours: relative paths would lead elsewhere.
    more = [str(Path(part).absolute()) for part in inherited.split(os.pathsep) if part]
    return {
        **os.environ,
        **dict.fromkeys(THREAD_VARIABLES, str(threads)),
        "PYTHONPATH": os.pathsep.join([str(ROOT), *more]),
    }
