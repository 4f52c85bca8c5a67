"""Splits, errors and lists as every method gets them."""

import numpy as np
import pytest

from marginmf.datasets import RatingsTable, make_ratings
from studies.peers.problems import (
    check_lists,
    order_rows,
    rating_errors,
    rating_problem,
    split_rows,
)

LEVELS = np.arange(1.0, 6.0)


@pytest.fixture
def table(monkeypatch):
    made = make_ratings(30, 20, n_factors=2, observed=0.5, random_state=0)
    shuffled = np.random.default_rng(0).permutation(len(made))
    columns = made.users[shuffled], made.items[shuffled], made.ratings[shuffled]
    made = RatingsTable("made up", *columns)
    monkeypatch.setattr("studies.peers.problems.load_table", lambda name: made)
    return made


def test_an_80_20_split_is_the_permutation_of_its_seed(table):
    train, test = split_rows(table, "80/20", 3)
    rows = np.random.default_rng(3).permutation(len(table))
    assert np.array_equal(np.concatenate([train, test]), rows)
    assert len(train) == len(table) * 4 // 5


def test_a_weak_split_holds_out_one_rating_of_every_user(table):
    _, test = split_rows(table, "weak", 1)
    assert sorted(table.users[test]) == sorted(set(table.users))


@pytest.mark.parametrize("order", ["sorted", "file", "shuffled"])
def test_every_order_has_the_same_rows(table, order):
    rows = np.arange(0, len(table), 2)
    ordered = order_rows(table, np.flip(rows), order, 1)
    assert np.array_equal(np.sort(ordered), rows)
    if order == "file":
        assert np.array_equal(ordered, rows)
    pairs = table.pairs[ordered].tolist()
    assert (pairs == sorted(pairs)) == (order == "sorted")


def test_the_worker_is_not_told_the_truth(table):
    problem = rating_problem("made up", "weak", 1)
    assert sorted(problem.train) == ["items", "ratings", "users"]
    assert sorted(problem.test) == ["items", "users"]
    n_test = len(problem.test["users"])
    assert problem.judge({"rule": np.full(n_test, 3.0)})["mae"] > 0


def test_estimates_are_taken_to_the_nearest_star_and_judged_as_they_are_too():
    true = np.array([1.0, 2.0, 5.0, 4.0])
    errors = rating_errors(true, {"estimate": np.array([0.4, 2.6, 9.0, 4.0])}, LEVELS)
    assert errors["mae"] == errors["rule_mae"] == 0.25
    assert errors["nmae"] == 0.25 / 1.6
    assert errors["zero_one"] == 0.25
    assert errors["rmse"] == 0.5
    assert errors["rmse_real"] == pytest.approx(np.sqrt((0.36 + 0.36 + 16) / 4))


def test_a_distribution_is_judged_by_its_median_and_its_mode():
    distribution = np.array([[0.4, 0.0, 0.3, 0.3, 0.0], [0.0, 0.0, 0.0, 0.2, 0.8]])
    answers = {"estimate": distribution @ LEVELS, "distribution": distribution}
    errors = rating_errors(np.array([1.0, 5.0]), answers, LEVELS)
    assert errors["mae"] == 1.0  # medians 3 and 5
    assert errors["zero_one"] == 0.0  # modes 1 and 5
    assert errors["rule_mae"] == 0.5  # the means 2.5 and 4.8 are nearest to 2 and 5
    assert errors["log_loss"] > 0


def test_missing_estimates_are_an_error_and_not_a_star():
    with pytest.raises(ValueError, match="row 1 is nan"):
        rating_errors(np.array([1.0, 2.0]), {"estimate": np.array([1.0, np.nan])}, LEVELS)


SEEN = {"users": np.array([1, 1, 2]), "items": np.array([10, 11, 12])}


def lists(users, items):
    return {"users": np.array(users), "items": np.array(items)}


def test_good_lists_pass():
    good = lists([1, 1, 2, 2], [12, 13, 10, 13])
    assert check_lists(SEEN, 2, good) == {"lists": 2.0}


@pytest.mark.parametrize(
    ("answers", "fault"),
    [
        (lists([1, 1], [12, 13]), "1 lists of 2 to 2 items, not 2 lists of 2"),
        (lists([1, 1, 2], [12, 13, 10]), "2 lists of 1 to 2"),
        (lists([1, 1, 2, 2], [12, 12, 10, 13]), "twice"),
        (lists([1, 1, 2, 2], [12, 11, 10, 13]), "has rated"),
    ],
)
def test_bad_lists_are_found_out(answers, fault):
    with pytest.raises(ValueError, match=fault):
        check_lists(SEEN, 2, answers)
