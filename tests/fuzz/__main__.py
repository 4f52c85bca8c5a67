"""Run attacks and print the table: which kinds, how many, how many failed, and what they cost."""

import argparse
import json
import math
import os
import shutil
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from queue import Empty, Queue
from typing import Any

from fuzz.kinds import KINDS, module_of

ROOT = Path(__file__).resolve().parents[2]
#: Where workers import from.
PATHS = [str(ROOT / "tests"), str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
#: Compiled kernels check the bounds of arrays; they are kept apart from those that do not.
CHECKED = {
    "NUMBA_CACHE_DIR": str(ROOT / "build" / "fuzz" / "kernels"),
    "NUMBA_BOUNDSCHECK": "1",
    "MARGINMF_PLAIN_KERNELS": "1",
    "NUMBA_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
}
#: A process that has not answered after so many seconds hangs.
PATIENCE = 60.0
#: Failures that are shown; all of them are in the report.
SHOWN = 20


class Worker:
    """A process that makes attacks; another takes its place when it dies or hangs."""

    def __init__(self, folder: Path, seconds: float, surroundings: dict[str, str]) -> None:
        self.folder, self.seconds, self.surroundings = folder, seconds, surroundings
        self._process: subprocess.Popen[str] | None = None
        self._answers: Queue[str] = Queue()

    def attack(self, kind: str, seed: int, number: int) -> dict[str, Any]:
        """Have an attack made; that the process dies or hangs is an outcome too."""
        process = self._process or self._start()
        try:
            process.stdin.write(json.dumps([kind, seed, number]) + "\n")
            process.stdin.flush()
            answer = self._answers.get(timeout=self.seconds)
        except Empty:
            self.stop()
            return {"failed": True, "outcome": "hangs", "seconds": self.seconds}
        except BrokenPipeError:
            answer = ""
        if not answer:
            code = self.stop()
            return {"failed": True, "outcome": f"the process died with {code}", "seconds": 0.0}
        return json.loads(answer)

    def stop(self) -> int | None:
        """End the process if there is one; return how it ended if it had done so before."""
        process, self._process = self._process, None
        if process is None:
            return None
        with suppress(subprocess.TimeoutExpired):
            process.wait(0.1)
        process.kill()
        process.wait()
        self._listener.join()
        with suppress(BrokenPipeError):
            process.stdin.close()
        process.stdout.close()
        return process.returncode

    def _start(self) -> subprocess.Popen[str]:
        with (self.folder / f"worker-{threading.get_ident()}.log").open("a") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "fuzz.worker", str(self.folder)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env=os.environ | {"PYTHONPATH": os.pathsep.join(PATHS)} | self.surroundings,
            )
        self._process, self._answers = process, Queue()
        self._listener = threading.Thread(
            target=self._listen, args=(process, self._answers), daemon=True
        )
        self._listener.start()
        return process

    @staticmethod
    def _listen(process: subprocess.Popen[str], answers: "Queue[str]") -> None:
        for line in process.stdout:
            answers.put(line)
        answers.put("")


def run(
    kind: str,
    seed: int,
    numbers: Iterable[int],
    folder: Path,
    jobs: int = 1,
    until: float = math.inf,
    surroundings: dict[str, str] = CHECKED,
) -> list[tuple[int, dict[str, Any]]]:
    """Make the attacks of one kind that time allows for; return (number, outcome) of each."""
    left: Queue[int] = Queue()
    for number in numbers:
        left.put(number)
    n, done = left.qsize(), []

    def work(_: int) -> None:
        worker = Worker(folder, getattr(module_of(kind), "SECONDS", PATIENCE), surroundings)
        while time.time() < until:
            try:
                number = left.get_nowait()
            except Empty:
                break
            done.append((number, worker.attack(kind, seed, number)))
            if len(done) % 500 == 0:
                failures = sum(each["failed"] for _, each in done)
                print(f"  {kind}: {len(done):,} of {n:,}, {failures} failed", flush=True)
        worker.stop()

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(work, range(jobs)))
    return sorted(done, key=lambda each: each[0])


def main() -> int:
    """Run what the command line says; 1 if an attack failed."""
    parser = argparse.ArgumentParser(prog="python -m fuzz", description=__doc__)
    parser.add_argument(
        "kinds", nargs="*", choices=[*KINDS, "planted", []], help="all kinds by default"
    )
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--share", type=float, default=1.0, help="a share of each kind's attacks")
    parser.add_argument("--minutes", type=float, default=60.0, help="begin no attack after this")
    parser.add_argument("--only", type=int, nargs="+", help="these attacks by their numbers")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "fuzz")
    options = parser.parse_args()
    start, chosen = time.time(), options.kinds or list(KINDS)
    until, rows, failed = start + 60 * options.minutes, [], 0
    report: dict[str, Any] = {"seed": options.seed, "kinds": {}}
    for position, name in enumerate(chosen):
        kind, folder = module_of(name), options.folder / name
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        kind.prepare(folder)
        numbers = options.only or range(round(kind.N * options.share))
        # What is left of the time is shared out among the kinds that are left.
        share = time.time() + (until - time.time()) / (len(chosen) - position)
        done = run(name, options.seed, numbers, folder, options.jobs, share)
        failures = [(number, each) for number, each in done if each["failed"]]
        failed += len(failures)
        outcomes = Counter(
            each["outcome"].partition(":")[0] for _, each in done if not each["failed"]
        )
        slowest = max((each["seconds"] for _, each in done), default=0.0)
        rows.append((kind.TITLE, len(done), len(failures), outcomes, slowest))
        report["kinds"][name] = {
            "attacks": len(done),
            "outcomes": outcomes,
            "slowest": slowest,
            "failures": [[number, each["outcome"]] for number, each in failures],
        }
        for number, each in failures[:SHOWN]:
            print(f"\n{name} --seed {options.seed} --only {number}: {each['outcome']}", flush=True)
    options.folder.mkdir(parents=True, exist_ok=True)
    (options.folder / "report.json").write_text(json.dumps(report, indent=1))
    print(f"\n| Attacks (seed {options.seed}) | tried | failed | what happened | slowest |")
    print("|---|---:|---:|---|---:|")
    for title, n, n_failed, outcomes, slowest in rows:
        words = ", ".join(f"{count:,} {word}" for word, count in outcomes.most_common())
        print(f"| {title} | {n:,} | {n_failed:,} | {words} | {slowest:.1f} s |")
    print(f"\n{time.time() - start:,.0f} s; {options.folder / 'report.json'} has all failures.")
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
