"""The bench: whole measurements, each in a process of its own, with libraries made up for it."""

import json
import os
import subprocess
from dataclasses import replace
from functools import partial

import numpy as np
import pytest

from studies.harness import Finding, Store
from studies.harness import run as run_cells
from studies.peers import bench, environments
from studies.peers.bench import (
    Budget,
    Problem,
    Task,
    interleave,
    newest_records,
    open_bench,
    records_of,
)
from studies.peers.comparison import summarise
from studies.peers.environments import Environment, Environments, Unavailable
from studies.peers.methods import RATINGS, Method, choose
from studies.peers.problems import rating_errors

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


def problem(data, split, repetition, order):
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


def run(tmp_path, methods, repeats=1, timeout=60.0):
    store, tasks = Store(tmp_path / "out"), [Task("made up", "a", "weak")]
    cells = list(interleave(methods, tasks, [1], repeats))
    with open_bench(Environments(tmp_path / "venvs"), {"made up": problem}, timeout) as bench:
        run_cells(cells, store, measure=bench, allowance=Budget(120.0))
    return records_of(store, cells)


def test_a_method_is_measured_and_judged(tmp_path, library):
    (record,) = run(tmp_path, [library("mean", kind="Mean", options={"shift": 0.25})])
    # The mean of the ratings and a quarter is 3.75, and of 3 and 4 the nearest is 4.
    assert record["errors"]["mae"] == 0.5
    assert record["errors"]["rmse_real"] == pytest.approx(np.sqrt((0.75**2 + 0.25**2) / 2))
    assert set(record["phases"]) == {"import", "prepare", "fit", "answer"}
    assert all(set(clock) == {"wall", "cpu"} for clock in record["phases"].values())
    assert record["peak_bytes"] > 2**20
    assert record["versions"]["numpy"] == np.__version__
    assert newest_records(Store(tmp_path / "out"), "made up") == [record]


def test_every_way_to_fail_is_a_row_with_its_reason_and_the_others_go_on(tmp_path, library):
    kinds = ("Crash", "Gone", "Silent", "Absent", "Mean")
    methods = [library(kind, kind=kind) for kind in kinds]
    records = run(tmp_path, methods, repeats=2)
    reasons = {row.method: row.reason for row in summarise(records)}
    assert reasons["Crash"] == "RuntimeError: it does | not work"
    assert reasons["Gone"] == "killed by SIGABRT"
    assert "nan" in reasons["Silent"]
    assert "Absent" in reasons["Absent"]
    assert reasons["Mean"] == ""
    # Once each for those that failed, and twice for the one that did not.
    assert len(records) == len(kinds) + 1


def test_what_hangs_is_ended(tmp_path, library):
    (record,) = run(tmp_path, [library("Hang", kind="Hang")], timeout=2.0)
    assert "no answer within 2 seconds" in record["error"]


def test_what_cannot_be_imported_is_a_row_too(tmp_path, library):
    absent = Method("absent", "", "madeup.nothing", "Mean")
    (record,) = run(tmp_path, [absent])
    assert record["error"].startswith("cannot be imported: ModuleNotFoundError")


def test_finished_cells_are_not_run_again_unless_something_changed(tmp_path, library, monkeypatch):
    mean, crash = library("mean", kind="Mean"), library("crash", kind="Crash")
    first, calls = run(tmp_path, [mean, crash]), []
    run_worker = bench.run_worker
    monkeypatch.setattr(
        bench, "run_worker", lambda *given: calls.append(given[1].get("kind")) or run_worker(*given)
    )
    again = run(tmp_path, [mean, crash])
    assert again[0] == first[0]
    assert calls == [None, "Crash"]  # what failed is tried once more
    changed = run(tmp_path, [library("mean", kind="Mean", options={"shift": 1.5})])
    assert changed[0]["errors"]["mae"] == 1.5 != first[0]["errors"]["mae"]


def test_the_warm_up_can_be_left_out(tmp_path, library, monkeypatch):
    seen = []
    monkeypatch.setattr(
        "test_bench.rating_errors",
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


QUICK = Method("quick", "", "marginmf", "Estimator")
TASK = Task("ratings", "a", "weak")
SINGLE = Method("single", "surprise", "surprise", "SVD", threaded=False)


def test_every_method_has_its_turn_before_any_is_repeated():
    cells = list(interleave([QUICK, SINGLE], [TASK, replace(TASK, data="b")], [1], 2))
    turns = [
        tuple(cell.settings[name] for name in ("repetition", "data", "method")) for cell in cells
    ]
    assert turns == [
        (1, "a", "quick"),
        (1, "a", "single"),
        (1, "b", "quick"),
        (1, "b", "single"),
        (2, "a", "quick"),
        (2, "a", "single"),
        (2, "b", "quick"),
        (2, "b", "single"),
    ]


def test_what_cannot_thread_is_run_with_one_thread_only():
    cells = list(interleave([QUICK, SINGLE], [TASK], [1, 2], 1))
    assert [(c.settings["method"], c.settings["threads"]) for c in cells] == [
        ("quick", 1),
        ("single", 1),
        ("quick", 2),
    ]


def test_what_cannot_thread_is_not_left_out_where_only_threads_are_asked_for():
    cells = list(interleave([QUICK, SINGLE], [TASK], [2], 1))
    assert [(c.settings["method"], c.settings["threads"]) for c in cells] == [
        ("quick", 2),
        ("single", 1),
    ]


def test_a_method_is_not_repeated_beyond_its_budget_on_that_split():
    budget = Budget(10.0)
    here, there = TASK.cell(QUICK, 1, 1), replace(TASK, data="b").cell(QUICK, 1, 1)
    budget.charge(Finding(here, {}, 6.0))
    assert budget.permits(here)
    budget.charge(Finding(here, {}, 6.0))
    assert not budget.permits(here)
    assert budget.permits(there)


def test_what_failed_is_not_tried_again_on_the_same_split():
    budget = Budget(10.0)
    budget.charge(Finding(TASK.cell(QUICK, 1, 1), {"error": "no"}, 0.0))
    assert not budget.permits(TASK.cell(QUICK, 1, 2))
    assert budget.permits(TASK.cell(QUICK, 2, 1))


def test_names_and_peers_choose_methods():
    ours = choose(RATINGS, ["none"])
    assert ours
    assert all(method.is_ours for method in ours)
    assert {m.peer for m in choose(RATINGS, ["cornac"])} == {"", "cornac"}
    assert {m.name for m in choose(RATINGS, ["all"], ["HMF d=8", "libmf"])} == {
        "HMF d=8",
        "libmf",
        "libmf, tuned",
    }
    assert len(choose(RATINGS, ["all"])) == len(RATINGS) == len({m.name for m in RATINGS})


def test_options_depend_on_the_data():
    hmf = next(method for method in RATINGS if method.name == "HMF d=16")
    assert replace(TASK, data="ml-1m").cell(hmf, 1, 1).settings["options"] == {
        "estimator": "HMF",
        "n_factors": 16,
        "reg": [10, 15, 24, 24],
    }


KNOWN = {
    "good": Environment(("good==1",)),
    "java": Environment(("spark==1",), programs=("no-such-program",)),
}


@pytest.fixture
def installed(monkeypatch):
    """What is installed, in place of doing it."""
    calls = []

    def install(place, environment):
        calls.append(environment.pins)
        (place / "bin").mkdir()
        (place / "bin" / "python").touch()

    monkeypatch.setattr(environments, "_install", install)
    return calls


def test_an_environment_is_made_once(tmp_path, installed):
    paths = {Environments(tmp_path, KNOWN).python("good") for _ in range(2)}
    assert paths == {str(tmp_path / "good" / "bin" / "python")}
    assert installed == [("good==1",)]


def test_a_changed_pin_makes_it_again(tmp_path, installed):
    Environments(tmp_path, KNOWN).python("good")
    Environments(tmp_path, {"good": Environment(("good==2",))}).python("good")
    assert installed == [("good==1",), ("good==2",)]
    assert json.loads((tmp_path / "good" / environments.NOTE).read_text())["pins"] == ["good==2"]


def test_an_interrupted_installation_leaves_nothing(tmp_path, monkeypatch):
    def interrupted(place, environment):
        (place / "half").touch()
        raise KeyboardInterrupt

    monkeypatch.setattr(environments, "_install", interrupted)
    with pytest.raises(KeyboardInterrupt):
        Environments(tmp_path, KNOWN).python("good")
    assert list(tmp_path.iterdir()) == []


def test_what_does_not_install_says_why_and_is_not_tried_again(tmp_path, monkeypatch):
    tried = []

    def failing(place, environment):
        tried.append(environment)
        raise Unavailable("does not install: ERROR: no such version")

    monkeypatch.setattr(environments, "_install", failing)
    made = Environments(tmp_path, KNOWN)
    for _ in range(2):
        with pytest.raises(Unavailable, match="no such version"):
            made.python("good")
    assert len(tried) == 1


def test_the_reason_is_the_last_line_of_the_installer(tmp_path, monkeypatch):
    monkeypatch.setattr(environments.sys, "executable", "/bin/false")
    with pytest.raises(Unavailable, match="does not install: it says nothing"):
        environments._install(tmp_path, Environment(("x==1",)))


def test_what_stands_alone_is_installed_without_what_it_declares(tmp_path, monkeypatch):
    commands = []

    def run(command, **options):
        commands.append(command)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(environments.subprocess, "run", run)
    environments._install(tmp_path, Environment(("numpy==1",), alone=("large==2",)))
    assert [command[3:] for command in commands[1:]] == [
        ["install", "--quiet", "numpy==1"],
        ["install", "--quiet", "--no-deps", "large==2"],
    ]


def test_a_missing_program_is_named(tmp_path, installed):
    with pytest.raises(Unavailable, match="java needs no-such-program"):
        Environments(tmp_path, KNOWN).python("java")
    assert installed == []
