"""Successive halving: the better candidates go on from where they stopped."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import loguniform
from sklearn.base import clone

from contracts import synthetic
from marginmf.metrics import zero_one_error
from marginmf.ratings import ALS, BMMMF, HMF, MMMF, PMF, PMMMF, BiasOnly, HalvingSearch, Ratings
from marginmf.ratings.fitting.stages import Training
from marginmf.ratings.fitting.validation import ValidationSplit
from marginmf.ratings.halving import HalvingCandidate
from marginmf.solvers import LBFGS, State

REGS = [0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0]
WHOLE = 10**6


@pytest.fixture(scope="module")
def data():
    return Ratings.of(*synthetic((1, 2, 3, 4, 5), n_users=80, n_items=60, n=2400))


def no_report(part):
    return []


@pytest.mark.parametrize("kind", [MMMF, PMMMF, PMF, ALS])
def test_turns_end_where_one_whole_turn_does(kind, data):
    held_out = ValidationSplit.at_random(data, np.random.default_rng(0))
    model = kind(4, 0.5, random_state=0)

    def error(*turns):
        candidate = HalvingCandidate(model, data, [held_out], 0)
        errors = [candidate.error_after(n, zero_one_error, no_report) for n in turns]
        return errors[-1], candidate

    whole, at_once = error(WHOLE)
    paused, in_turns = error(2, 3, 7, WHOLE)
    assert paused == whole
    assert in_turns.finished
    assert in_turns.n_evaluations == at_once.n_evaluations
    (one,), (other,) = (c.reached[0].values() for c in (at_once, in_turns))
    np.testing.assert_array_equal(one.point, other.point)


@pytest.mark.parametrize("schedule", ["warm", "independent"])
def test_stages_that_were_paused_end_where_a_straight_run_does(schedule, data):
    held_out = ValidationSplit.at_random(data, np.random.default_rng(0))
    model = HMF(4, 0.5, schedule=schedule, tol=0.0, random_state=0)
    straight, paused = (HalvingCandidate(model, data, [held_out], 0) for _ in range(2))
    for candidate, turns in ((straight, [30]), (paused, [10, 30])):
        for n in turns:
            candidate.error_after(n, zero_one_error, no_report)
    assert model.schedule == schedule
    assert straight.reached[0].keys() == paused.reached[0].keys()
    assert len(straight.reached[0]) == 4
    for name, run in straight.reached[0].items():
        again = paused.reached[0][name]
        assert run.history[-1].iteration == 30
        assert [record[:-1] for record in run.history] == [record[:-1] for record in again.history]
        np.testing.assert_array_equal(run.state.point, again.state.point)


def test_a_turn_is_no_longer_than_it_may_be(data):
    held_out = ValidationSplit.at_random(data, np.random.default_rng(0))
    candidate = HalvingCandidate(HMF(4, 0.5, tol=0.0), data, [held_out], 0)
    for n in (1, 4):
        candidate.error_after(n, zero_one_error, no_report)
        states = candidate.reached[0].values()
        assert [state.history[-1].iteration for state in states] == [n] * 4
        assert candidate.n_iter == n
        assert not candidate.finished


def test_the_error_is_that_of_the_model_fitted_to_the_rest(data, monkeypatch):
    """By the public interface: fit to all but the hold-out, predict it, count."""
    held_out = ValidationSplit.at_random(data, np.random.default_rng(0))
    candidate = HalvingCandidate(MMMF(4, 0.5), data, [held_out], 7)
    found = candidate.error_after(WHOLE, zero_one_error, no_report)

    random_start = Training.random_start

    def seeded(self, stage, rng):
        return random_start(self, stage, np.random.default_rng(7).spawn(1)[0])

    monkeypatch.setattr(Training, "random_start", seeded)
    model = MMMF(4, 0.5, calibrate=False).fit(held_out.train)
    users, items = data.users.ids, data.items.ids
    pairs = [(users[u], items[i]) for u, i in zip(held_out.users, held_out.items, strict=True)]
    predicted = model.predict(pairs, output="rule")
    assert found == zero_one_error(data.levels[held_out.codes], predicted)


@pytest.mark.parametrize("kind", [HMF, MMMF, PMMMF])
def test_halving_finds_what_the_whole_grid_finds_for_less(kind):
    pairs, ratings = synthetic((1, 2, 3, 4, 5), n_users=120, n_items=100, n=5000)
    noisy = np.clip(ratings + np.random.default_rng(0).integers(-1, 2, len(ratings)), 1, 5)

    def search(**params):
        model = kind(8, random_state=0)
        halving = HalvingSearch(model, {"reg": REGS}, random_state=0, refit=False, **params)
        return halving.fit(pairs, noisy)

    halving, grid = search(), search(min_iter=WHOLE)
    assert halving.n_evaluations_ < 0.8 * grid.n_evaluations_
    assert len(grid.rungs_) == 1
    errors = {outcome.params["reg"]: outcome.error for outcome in grid.results_}
    assert errors[halving.best_params_["reg"]] <= 1.05 * grid.best_error_


def test_rungs_and_results(data):
    search = HalvingSearch(MMMF(4, tol=0.0), {"reg": REGS}, factor=2, min_iter=3, random_state=0)
    search.fit(data)
    assert search.rungs_ == [(7, 3), (4, 6), (2, 12)]
    table = pd.DataFrame(search.results_)
    assert table["rung"].tolist() == [3, 3, 2, 2, 1, 1, 1]
    assert table["n_iter"].tolist() == [12, 12, 6, 6, 3, 3, 3]
    assert table["n_evaluations"].sum() == search.n_evaluations_
    for _, same_rung in table.groupby("rung"):
        assert same_rung["error"].is_monotonic_increasing
    assert search.best_params_ == search.results_[0].params
    assert search.best_error_ == search.results_[0].error


def test_the_best_is_fitted_to_all_ratings(data):
    model = MMMF(4, random_state=0)
    search = HalvingSearch(model, {"reg": REGS[2:5]}, random_state=0).fit(data)
    expected = clone(model).set_params(**search.best_params_).fit(data)
    pairs = [(0, 0), (1, 3)]
    np.testing.assert_array_equal(search.predict(pairs), expected.predict(pairs))
    np.testing.assert_array_equal(search.predict_proba(pairs), expected.predict_proba(pairs))
    assert search.score(pairs, [1, 2]) == expected.score(pairs, [1, 2])
    assert not hasattr(model, "user_factors_")


def test_candidates_can_be_drawn(data):
    grid = {"reg": loguniform(0.1, 10), "n_factors": [2, 4]}
    one, other = (
        HalvingSearch(ALS(), grid, n_candidates=5, random_state=0, refit=False).fit(data)
        for _ in range(2)
    )
    assert len(one.results_) == 5
    assert one.results_ == other.results_
    with pytest.raises(AttributeError, match="refit=False"):
        one.predict([(0, 0)])


def test_another_metric_and_more_hold_outs(data):
    search = HalvingSearch(
        PMF(3, bias=True), {"reg": REGS}, metric=zero_one_error, holdouts=2, random_state=0
    ).fit(data)
    assert 0 < search.best_error_ < 1
    two_levels = HalvingSearch(BMMMF(3), {"reg": REGS[:4]}, random_state=0)
    assert two_levels.fit(*synthetic((0, 1))).best_params_["reg"] in REGS


def test_candidates_that_are_out_let_go_of_their_vectors(data, monkeypatch):
    seen = []
    forget = HalvingCandidate.forget
    monkeypatch.setattr(HalvingCandidate, "forget", lambda self: (forget(self), seen.append(self)))
    HalvingSearch(MMMF(4), {"reg": REGS}, random_state=0, refit=False).fit(data)
    assert len(seen) >= 6
    for candidate in seen:
        for reached in candidate.reached:
            assert all(run.point is None for run in reached.values())


@pytest.mark.parametrize(
    ("estimator", "params", "message"),
    [
        (BiasOnly(), {}, "^BiasOnly cannot be tuned by halving. .* MMMF, .*GridSearchCV"),
        (MMMF(), {"param_grid": {"n_factors": [2]}}, "reg='auto' is a search of its own"),
        (MMMF(), {"factor": 1}, "factor=1 must be a whole number >= 2"),
        (MMMF(), {"min_iter": 0}, "min_iter=0 must be a whole number >= 1"),
        (MMMF(), {"n_candidates": 0}, "n_candidates=0 must be a whole number >= 1"),
        (MMMF(), {"verbose": "x"}, "verbose='x' must be a whole number >= 0"),
        (MMMF(), {"metric": "mae"}, "metric='mae' must be a function"),
        (MMMF(), {"param_grid": {"reg": [-1.0]}}, "reg=-1.0 must be a number >= 0"),
        (MMMF(), {"param_grid": {"rank": [1]}}, "Invalid parameter 'rank'"),
    ],
)
def test_what_cannot_be_searched(estimator, params, message, data):
    with pytest.raises(ValueError, match=message):
        HalvingSearch(estimator, **{"param_grid": {"reg": REGS}, **params}).fit(data)


def test_a_solver_of_ones_own_can_pause(data):
    class Own:
        """Begins anew at the point where it was paused."""

        def steps(self, objective, start, vectors):
            point = start.point if isinstance(start, State) else start
            return LBFGS().steps(objective, point, vectors)

    search = HalvingSearch(MMMF(3, solver=Own()), {"reg": REGS}, random_state=0, refit=False)
    assert search.fit(data).best_params_["reg"] in REGS


def test_ratings_that_are_no_levels_are_searched_like_fitted(data):
    rng = np.random.default_rng(0)
    pairs = np.argwhere(rng.random((200, 220)) < 0.8)
    exact = rng.normal(size=len(pairs))
    search = HalvingSearch(ALS(2, max_iter=5, random_state=0), {"reg": [1.0, 30.0]}, random_state=0)
    found = search.fit(pairs, exact)
    assert found.best_params_ == {"reg": 30.0}
    assert all(one.error > 0.7 for one in found.results_)  # of the numbers, not of their bins
