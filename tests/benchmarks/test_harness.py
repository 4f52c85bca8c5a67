"""Whole measurements, each in a process of its own, with libraries made up for the purpose."""

import os
from functools import partial

import numpy as np
import pytest

from benchmarks.cells import interleaved
from benchmarks.environments import Environments
from benchmarks.harness import Harness, Problem
from benchmarks.methods import Method
from benchmarks.rating_problems import rating_errors
from benchmarks.store import Store, load
from benchmarks.summaries import summarised

LIBRARY = """
import os, sys, time
import numpy as np

PACKAGES = ("numpy", "not-installed")

class Mean:
    runs = 0
    def __init__(self, threads, shift=0.0):
        assert os.environ["OMP_NUM_THREADS"] == str(threads)
        self.shift = shift
    def prepare(self, users, items, ratings):
        self.ratings = ratings
    def fit(self):
        Mean.runs += 1
        self.mean = self.ratings.mean() + self.shift
    def answer(self, users, items):
        print("noise on the output")
        return {"estimate": np.full(len(users), self.mean), "runs": np.array(Mean.runs)}

class Crash(Mean):
    def fit(self):
        raise RuntimeError("it does | not work")

class Gone(Mean):
    def fit(self):
        os.abort()

class Hang(Mean):
    def fit(self):
        time.sleep(60)

class Silent(Mean):
    def answer(self, users, items):
        return {"estimate": np.full(len(users), np.nan)}
"""


@pytest.fixture
def library(tmp_path, monkeypatch):
    """A library that the workers can import."""
    (tmp_path / "madeup").mkdir()
    (tmp_path / "madeup" / "library.py").write_text(LIBRARY)
    paths = [str(tmp_path), os.environ.get("PYTHONPATH", "")]
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, paths)))
    return partial(Method, peer="", adapter="madeup.library")


def problem(data, split, repetition):
    pairs = np.random.default_rng(repetition).permutation(100)[:50]
    train = {"users": pairs // 10, "items": pairs % 10}
    test = {name: values[:10] for name, values in train.items()}
    ratings = np.tile([3.0, 4.0], 25)
    return Problem(
        {**train, "ratings": ratings},
        test,
        {**test, "ratings": ratings[:10]},
        test,
        lambda answers: rating_errors(ratings[:10], answers, np.arange(1.0, 6.0)),
    )


def run(tmp_path, methods, repeats=1, resume=False, **settings):
    store = Store(tmp_path / "out" / "cells.json", resume)
    harness = Harness(Environments(tmp_path / "venvs"), store, **settings)
    return harness.run(interleaved(methods, [("a", "weak")], [1], repeats), problem)


def test_a_method_is_measured_and_judged(tmp_path, library):
    (record,) = run(tmp_path, [library("mean", kind="Mean", options={"shift": 0.25})])
    # The mean of the ratings and a quarter is 3.75, and of 3 and 4 the nearest is 4.
    assert record["errors"]["mae"] == 0.5
    assert record["errors"]["rmse_real"] == pytest.approx(np.sqrt((0.75**2 + 0.25**2) / 2))
    assert set(record["phases"]) == {"import", "prepare", "fit", "answer"}
    assert all(set(clock) == {"wall", "cpu"} for clock in record["phases"].values())
    assert record["peak_bytes"] > 2**20
    assert record["versions"]["numpy"] == np.__version__
    assert load(tmp_path / "out" / "cells.json") == [record]


def test_every_way_to_fail_is_a_row_with_its_reason_and_the_others_go_on(tmp_path, library):
    kinds = ("Crash", "Gone", "Silent", "Absent", "Mean")
    methods = [library(kind, kind=kind) for kind in kinds]
    records = run(tmp_path, methods, repeats=2)
    reasons = {row.method: row.reason for row in summarised(records)}
    assert reasons["Crash"] == "RuntimeError: it does | not work"
    assert reasons["Gone"] == "killed by SIGABRT"
    assert "nan" in reasons["Silent"]
    assert "Absent" in reasons["Absent"]
    assert reasons["Mean"] == ""
    # Once each for those that failed, and twice for the one that did not.
    assert len(records) == len(kinds) + 1


def test_what_hangs_is_ended(tmp_path, library):
    (record,) = run(tmp_path, [library("Hang", kind="Hang")], timeout=3.0)
    assert "no answer within 3 seconds" in record["error"]


def test_what_cannot_be_imported_is_a_row_too(tmp_path, library):
    absent = Method("absent", "", "madeup.nothing", "Mean")
    (record,) = run(tmp_path, [absent])
    assert record["error"].startswith("cannot be imported: ModuleNotFoundError")


def test_finished_cells_are_not_run_again_unless_something_changed(tmp_path, library):
    mean, crash = library("mean", kind="Mean"), library("crash", kind="Crash")
    first = run(tmp_path, [mean, crash])
    again = run(tmp_path, [mean, crash], resume=True)
    assert again[0] == first[0]
    assert again[1]["seconds"] != first[1]["seconds"]  # what failed is tried once more
    changed = run(tmp_path, [library("mean", kind="Mean", options={"shift": 1.5})], resume=True)
    assert changed[0]["errors"]["mae"] == 1.5 != first[0]["errors"]["mae"]


def test_the_warm_up_can_be_left_out(tmp_path, library, monkeypatch):
    seen = []
    monkeypatch.setattr(
        "test_harness.rating_errors",
        lambda true, answers, levels: seen.append(int(answers["runs"])) or {"mae": 0.0},
    )
    run(tmp_path, [library("warm", kind="Mean"), library("cold", kind="Mean", warm_up=False)])
    assert seen == [2, 1]


def test_our_own_adapter_works_from_end_to_end(tmp_path):
    ours = Method("BiasOnly", "", "marginmf", "Estimator", {"estimator": "BiasOnly"})
    (record,) = run(tmp_path, [ours])
    assert 0.0 <= record["errors"]["mae"] <= 1.0
    assert record["errors"]["rmse_real"] < 1.0
    assert "also" in record["phases"]
