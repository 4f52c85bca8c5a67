"""Processes that are killed while they fit, save or write: nothing is lost, nothing half there."""

import os
import random
import signal
import subprocess
import sys
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

import marginmf
from fuzz import corpus
from fuzz.judging import FailedAttackError
from marginmf.ratings import HMF, MMMF, GibbsMMMF

TITLE = "Processes killed"
N = 100

#: What a process does until it is killed: it says when it begins.
SAVES = """
from fuzz.kills import *
one, other = (marginmf.load(folder / f"{{each}}.marginmf") for each in ("one", "other"))
print("begun", flush=True)
while True:
    one.save(path)
    other.save(path)
"""
FITS = """
from fuzz.kills import *
model = unfitted()[{name!r}]
print("begun", flush=True)
model.fit(corpus.PAIRS, corpus.STARS, checkpoint=marginmf.checkpoints.Checkpoint(path, seconds=0))
model.save(done)
while True:
    time.sleep(1)
"""
WRITES = """
from fuzz.kills import *
from marginmf.datasets import write_columns
print("begun", flush=True)
for n in (10, 200_000) * 1_000:
    write_columns(path, [{{"user": np.arange(n), "rating": np.ones(n)}}])
"""


def unfitted() -> dict[str, Any]:
    """Return estimators whose fits take long enough to be killed."""
    options = {"random_state": 0, "n_jobs": 1, "calibrate": False}
    chain = {"random_state": 0, "n_jobs": 1, "n_burn": 300, "n_samples": 100}
    return {
        "hmf": HMF(3, 0.01, tol=0.0, max_iter=150, solver="gd", **options),
        "mmmf": MMMF(3, 0.01, tol=0.0, max_iter=500, solver="gd", **options),
        "gibbs": GibbsMMMF(3, **chain),
    }


@cache
def whole(name: str) -> Any:
    """Return what a fit comes to that nobody kills."""
    return unfitted()[name].fit(corpus.PAIRS, corpus.STARS).predict(corpus.PAIRS)


def prepare(folder: Path) -> None:
    """Save the two models that take each other's place."""
    corpus.fitted("mmmf bare").save(folder / "one.marginmf")
    corpus.fitted("hmf").save(folder / "other.marginmf")


def attack(seed: int, number: int, folder: Path) -> str:
    """Start a process, kill it at any moment, and look at what it left."""
    rng = random.Random(f"{seed} {number}")
    ground = folder / f"ground-{number}"
    ground.mkdir()
    what = ("saves", "fits", "writes")[number % 3]
    name = rng.choice(list(unfitted()))
    path = ground / {"saves": "model.marginmf", "fits": "checkpoint", "writes": "out.csv"}[what]
    done = ground / "done.marginmf"
    script = {"saves": SAVES, "fits": FITS, "writes": WRITES}[what].format(name=name)
    given = f"folder, path, done = map(Path, {list(map(str, (folder, path, done)))})\n"
    process = subprocess.Popen(
        [sys.executable, "-c", script.replace("import *\n", "import *\n" + given, 1)],
        stdout=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(rng.uniform(0, 0.4 if what != "fits" else 1.5))
    process.send_signal(signal.SIGKILL)
    process.wait()
    return {"saves": _after_a_save, "fits": _after_a_fit, "writes": _after_a_write}[what](
        ground, path, done, name
    )


def _after_a_save(ground: Path, path: Path, done: Path, name: str) -> str:
    if path.exists():
        marginmf.load(path).decision_function(corpus.PAIRS)
    corpus.fitted("mmmf bare").save(path)
    if sorted(one.name for one in ground.iterdir()) != [path.name]:
        raise FailedAttackError(f"after the next save there are {os.listdir(ground)}")
    return "saved again"


def _after_a_fit(ground: Path, path: Path, done: Path, name: str) -> str:
    resumed = path.exists()
    model = unfitted()[name].fit(corpus.PAIRS, corpus.STARS, checkpoint=path)
    if not np.array_equal(model.predict(corpus.PAIRS), whole(name)):
        raise FailedAttackError(f"{name} came to other predictions")
    left = set(os.listdir(ground)) - {done.name}
    if any(not each.startswith(f".{done.name}") for each in left):
        raise FailedAttackError(f"after the fit there are {left}")
    return "resumed" if resumed else "fitted"


def _after_a_write(ground: Path, path: Path, done: Path, name: str) -> str:
    from marginmf.datasets import write_columns

    if path.exists():
        n = path.read_bytes().count(b"\n") - 1
        if n not in (10, 200_000):
            raise FailedAttackError(f"{path.name} has {n:,} rows")
    write_columns(path, [{"user": np.arange(3)}])
    if sorted(one.name for one in ground.iterdir()) != [path.name]:
        raise FailedAttackError(f"after the next write there are {os.listdir(ground)}")
    return "written again"
