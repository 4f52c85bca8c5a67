from dataclasses import replace

from studies.harness import Finding
from studies.peers.bench import Budget, Task, interleave
from studies.peers.methods import RATINGS, Method, choose

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
    assert hmf.options_for("ml-1m") == {
        "estimator": "HMF",
        "n_factors": 16,
        "reg": [10, 15, 24, 24],
    }
