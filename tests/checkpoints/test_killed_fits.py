"""A fit whose process was killed goes on in the next process, to the same answer."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from contracts import assert_same_fit
from marginmf.datasets import make_ratings
from marginmf.ratings import HMF

SYNTHETIC = """
import os, signal, sys
from marginmf.checkpoints import Checkpoint
from marginmf.datasets import make_ratings
from marginmf.ratings import HMF

def kill_myself():
    os.kill(os.getpid(), signal.SIGKILL)

def on_iteration(progress):
    if moment == "after an iteration":
        countdown()

def on_replace(*names):
    # A write that never gets its name.
    if moment == "while writing":
        countdown()
    replace(*names)

def countdown():
    global left
    left -= 1
    if left == 0:
        kill_myself()

path, schedule, moment = sys.argv[1:]
left, replace, os.replace = 12, os.replace, on_replace
data = make_ratings(60, 50, n_factors=2, observed=0.5, random_state=0)
few = {"n_factors": 4, "reg": 1.0, "random_state": 0, "calibrate": False}
model = HMF(**few, callbacks=[on_iteration], schedule=schedule)
model.fit(data.pairs, data.ratings, checkpoint=Checkpoint(path, seconds=0))
"""


@pytest.mark.parametrize(
    ("schedule", "moment"), [("warm", "while writing"), ("independent", "after an iteration")]
)
def test_killed_on_synthetic_ratings(schedule, moment, path):
    command = [sys.executable, "-c", SYNTHETIC, str(path), schedule, moment]
    assert subprocess.run(command, check=False).returncode == -signal.SIGKILL
    assert bool(list(path.glob(".*.part"))) == (moment == "while writing")
    data = make_ratings(60, 50, n_factors=2, observed=0.5, random_state=0)
    whole, resumed = (
        HMF(n_factors=4, reg=1.0, random_state=0, calibrate=False, schedule=schedule)
        for _ in range(2)
    )
    seen = []
    resumed.set_params(callbacks=[seen.append]).fit(data.pairs, data.ratings, checkpoint=path)
    assert seen[0].record.iteration == (10 if moment == "while writing" else 11)
    assert not path.exists()
    assert_same_fit(resumed, whole.fit(data.pairs, data.ratings))


MOVIELENS = """
import sys
import numpy as np
from marginmf.checkpoints import Checkpoint
from marginmf.ratings import HMF

with np.load(sys.argv[1], allow_pickle=False) as file:
    pairs, ratings = np.column_stack([file["user"], file["item"]]), file["rating"].astype(float)
model = HMF(n_factors=16, reg=15, random_state=0, calibrate=False)
model.fit(pairs, ratings, checkpoint=Checkpoint(sys.argv[2], seconds=0))
"""


def is_stage(name):
    return name.startswith("stage")


def test_killed_on_real_ratings(data_root, path):
    file = data_root / "ratings" / "ml-100k.npz"
    process = subprocess.Popen([sys.executable, "-c", MOVIELENS, str(file), str(path)])
    try:
        # Killed in the second stage, when the first is done.
        patience = time.monotonic() + 120
        while not path.exists() or sum(map(is_stage, os.listdir(path))) < 2:
            assert process.poll() is None, "the fit ended too early"
            assert time.monotonic() < patience
            time.sleep(0.01)
    finally:
        process.kill()
    assert process.wait() == -signal.SIGKILL

    with np.load(file, allow_pickle=False) as arrays:
        pairs = np.column_stack([arrays["user"], arrays["item"]])
        ratings = arrays["rating"].astype(float)
    seen = []
    model, whole = (HMF(n_factors=16, reg=15, random_state=0, calibrate=False) for _ in range(2))
    model.set_params(callbacks=[seen.append]).fit(pairs, ratings, checkpoint=path)
    assert not path.exists()
    assert_same_fit(model, whole.fit(pairs, ratings))
    assert len(seen) < whole.n_iter_.sum()
