from benchmarks.cells import Allowance, Cell, interleaved
from benchmarks.methods import RATINGS, Method, chosen

QUICK = Method("quick", "", "marginmf", "Estimator")
SINGLE = Method("single", "surprise", "surprise", "SVD", threaded=False)


def test_every_method_has_its_turn_before_any_is_repeated():
    cells = list(interleaved([QUICK, SINGLE], [("a", "weak"), ("b", "weak")], [1], 2))
    turns = [(c.repetition, c.data, c.method.name) for c in cells]
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
    cells = list(interleaved([QUICK, SINGLE], [("a", "weak")], [1, 2], 1))
    assert [(c.method.name, c.threads) for c in cells] == [
        ("quick", 1),
        ("single", 1),
        ("quick", 2),
    ]


def test_what_cannot_thread_is_not_left_out_where_only_threads_are_asked_for():
    cells = list(interleaved([QUICK, SINGLE], [("a", "weak")], [2], 1))
    assert [(c.method.name, c.threads) for c in cells] == [("quick", 2), ("single", 1)]


def test_a_method_is_not_repeated_beyond_its_budget_on_that_place():
    allowance = Allowance(10.0)
    here, there = Cell(QUICK, "a", "weak", 1, 1), Cell(QUICK, "b", "weak", 1, 1)
    allowance.charge(here, 6.0, failed=False)
    assert allowance.permits(here)
    allowance.charge(here, 6.0, failed=False)
    assert not allowance.permits(here)
    assert allowance.permits(there)


def test_what_failed_is_not_tried_again_in_the_same_place():
    allowance = Allowance(10.0)
    cell = Cell(QUICK, "a", "weak", 1, 1)
    allowance.charge(cell, 0.0, failed=True)
    assert not allowance.permits(Cell(QUICK, "a", "weak", 1, 2))
    assert allowance.permits(Cell(QUICK, "a", "weak", 2, 1))


def test_names_and_peers_choose_methods():
    ours = chosen(RATINGS, ["none"])
    assert ours
    assert all(method.ours for method in ours)
    assert {m.peer for m in chosen(RATINGS, ["cornac"])} == {"", "cornac"}
    assert {m.name for m in chosen(RATINGS, ["all"], ["HMF d=8", "libmf"])} == {
        "HMF d=8",
        "libmf",
        "libmf, tuned",
    }
    assert len(chosen(RATINGS, ["all"])) == len(RATINGS) == len({m.name for m in RATINGS})


def test_options_depend_on_the_data():
    hmf = next(method for method in RATINGS if method.name == "HMF d=16")
    assert hmf.options_for("ml-1m") == {
        "estimator": "HMF",
        "n_factors": 16,
        "reg": [10, 15, 24, 24],
    }
