import json

import numpy as np
import pytest

from marginmf.datasets import make_ratings
from marginmf.metrics import ratings_report
from marginmf.protocols import WeakGeneralisation
from marginmf.ratings import BMMMF, HMF, Ratings
from studies.thesis.measures import (
    RATING_METHODS,
    SHARES,
    convergence,
    fit_into_band,
    fit_time,
    load_table,
    make_method,
    make_recipe,
    rating_errors,
    recovery,
    split_rows,
    stage_error,
    user_view,
)
from studies.thesis.penalties import guard_rare, rare_stages

RECIPE = make_recipe(60, 3, 0.5, 0)
WEAK, SHARE = {"name": "weak"}, {"name": "share", "train": 0.8}


def test_a_recipe_makes_what_make_ratings_makes() -> None:
    direct = make_ratings(60, 60, n_factors=3, observed=0.5, random_state=0)
    assert np.array_equal(load_table(RECIPE).ratings, direct.ratings)
    assert load_table(RECIPE) is load_table(dict(reversed(RECIPE.items())))


def test_scores_are_cut_where_levels_become_as_common_as_wanted() -> None:
    table = load_table(make_recipe(80, 3, 1.0, 0, noise=0.0))
    matrix = table.ratings.reshape(80, 80)
    levels, counts = np.unique(matrix, return_counts=True)
    assert levels.tolist() == [1, 2, 3, 4, 5]
    assert counts / 6400 == pytest.approx(np.array(SHARES), abs=0.001)
    # Three factors carry most of what the levels leave of the scores, unless there is noise.
    shares = [_share_of_factors(matrix, 3)]
    shares.append(
        _share_of_factors(
            load_table(make_recipe(80, 3, 1.0, 0, noise=2.0)).ratings.reshape(80, 80), 3
        )
    )
    assert shares[0] > 0.8
    assert shares[1] < 0.5
    assert len(load_table(make_recipe(80, 3, 0.25, 0, noise=0.0))) == 1600


def _share_of_factors(matrix: np.ndarray, n_factors: int) -> float:
    strengths = np.linalg.svd(matrix - matrix.mean(), compute_uv=False) ** 2
    return strengths[:n_factors].sum() / strengths.sum()


@pytest.mark.parametrize("protocol", [WEAK, SHARE, {"name": "strong", "n_train_users": 0.7}])
def test_the_rows_of_a_split_are_apart_and_differ_between_splits(protocol: dict) -> None:
    table = load_table(RECIPE)
    parts = split_rows(table, protocol, 0)
    together = np.concatenate(parts)
    assert len(np.unique(together)) == len(together)
    assert len(parts) == (3 if protocol["name"] == "strong" else 2)
    assert not np.array_equal(parts[-1], split_rows(table, protocol, 1)[-1])
    assert np.array_equal(parts[-1], split_rows(table, protocol, 0)[-1])


def test_errors_are_those_of_a_fit_by_hand() -> None:
    params = {"n_factors": 3, "reg": 2.0}
    found = rating_errors(RECIPE, WEAK, 1, "HMF", params)
    table = load_table(RECIPE)
    train, test = next(WeakGeneralisation(n_splits=1, random_state=2).split(table.pairs))
    data = Ratings.of(table.pairs[train], table.ratings[train], levels=table.levels)
    model = HMF(**params, random_state=0).fit(data)
    predicted = model.predict(table.pairs[test], output="rule")
    assert found["test"] == ratings_report(table.ratings[test], predicted, table.levels)
    assert found["n_test"] == len(test) == 60
    assert found["reg"] == [2.0] * 4
    json.dumps(found)


@pytest.mark.parametrize("method", sorted(set(RATING_METHODS) - {"BMMMF"}))
@pytest.mark.parametrize("protocol", [WEAK, {"name": "strong", "n_train_users": 0.7}])
def test_every_method_is_measured_under_both_protocols(method: str, protocol: dict) -> None:
    small = (
        {"members": ["mmmf"], "n_estimators": 2}
        if RATING_METHODS[method].__name__ == "MarginEnsemble"
        else {}
        if method == "Biases"
        else {"n_factors": 3, "reg": 1.0}
    )
    found = rating_errors(RECIPE, protocol, 0, method, small)
    assert 0 <= found["test"]["nmae"] < 0.8
    assert found["train"]["mae"] >= 0


def test_the_penalty_brings_the_training_error_into_the_band() -> None:
    band = {"measure": "mae", "low": 0.1, "high": 0.2}
    found = rating_errors(RECIPE, SHARE, 0, "MMMF", {"n_factors": 5, "tol": 1e-4}, band)
    assert 0.1 <= found["train"]["mae"] <= 0.2
    assert found["reg"] > 0


def test_a_band_out_of_reach_gives_the_nearest_fit() -> None:
    table = load_table(RECIPE)
    data = Ratings.of(table.pairs, table.ratings)
    tried = []

    def error(model: object) -> float:
        tried.append(model)
        return 1.0

    model = fit_into_band(make_method("HMF", {"n_factors": 2}), data, error, 0.0, 0.1)
    assert model is tried[0]
    assert [one.reg for one in tried] == sorted((one.reg for one in tried), reverse=True)


def test_strengths_of_stages_are_multiples_of_those_chosen() -> None:
    params = {"n_factors": 3, "tol": 1e-3}
    chosen, doubled = (
        rating_errors(RECIPE, SHARE, 0, "HMF", params, base="auto", scale=scale)["reg"]
        for scale in (1.0, 2.0)
    )
    table = load_table(RECIPE)
    train, _ = split_rows(table, SHARE, 0)
    data = Ratings.of(table.pairs[train], table.ratings[train], levels=table.levels)
    by_hand = make_method("HMF", params).fit(data).reg_
    rare = rare_stages(data.codes, data.n_levels)
    assert chosen == pytest.approx(guard_rare(np.array(by_hand), rare), abs=1e-5)
    assert doubled == pytest.approx(2 * np.array(chosen), abs=1e-5)


def test_the_band_keeps_the_proportions_of_the_stages() -> None:
    band = {"measure": "mae", "low": 0.05, "high": 0.3}
    params = {"n_factors": 5, "tol": 1e-4}
    found = rating_errors(RECIPE, SHARE, 0, "HMF", params, band, base="auto")
    chosen = rating_errors(RECIPE, SHARE, 0, "HMF", params, base="auto")
    assert 0.05 <= found["train"]["mae"] <= 0.3
    shares = np.array(found["reg"]) / np.array(chosen["reg"])
    assert shares == pytest.approx(shares[0], rel=1e-3)


def test_rare_stages_take_the_strength_of_the_nearest_that_is_not() -> None:
    codes = np.repeat([0, 1, 2, 3, 4], [1, 2, 500, 490, 7])
    assert rare_stages(codes, 5).tolist() == [True, True, False, True]
    guarded = guard_rare(np.array([90.0, 80.0, 2.0, 70.0]), rare_stages(codes, 5))
    assert guarded.tolist() == [2.0, 2.0, 2.0, 2.0]
    # A single strength is for all of them, and where every stage is rare nothing is known.
    assert guard_rare(np.array([5.0]), rare_stages(codes, 5)).tolist() == [5.0]
    assert guard_rare(np.array([5.0, 6.0]), np.array([True, True])).tolist() == [5.0, 6.0]


@pytest.mark.parametrize("method", ["HMF", "MMMF"])
def test_recovery_scores_what_was_held_out_and_everything(method: str) -> None:
    params = {"n_factors": 3, "tol": 1e-4}
    if method == "HMF":
        params["schedule"] = "independent"
    data = make_recipe(40, 3, 1.0, 0)
    found = recovery(data, 0.6, 0, method, params, [1.0, 4.0])
    table = load_table(data)
    train, test = split_rows(table, {"name": "share", "train": 0.6}, 0)
    known = Ratings.of(table.pairs[train], table.ratings[train], levels=table.levels)
    for name, rows in (("held_out", test), ("all", np.arange(len(table)))):
        regs = found["regs"][f"tuned, {name}"]
        model = make_method(method, params | {"reg": regs if method == "HMF" else regs[0]})
        predicted = model.fit(known).predict(table.pairs[rows], output="rule")
        errors = ratings_report(table.ratings[rows], predicted, table.levels)
        assert found[name]["tuned"] == pytest.approx(errors["fre"], rel=1e-9)
    assert found["all"]["tuned"] < found["held_out"]["validated"]
    json.dumps(found)


def test_a_stage_is_a_two_level_factorisation_of_what_is_above() -> None:
    found = stage_error(RECIPE, 0, 2, 3, 1.0)
    table = load_table(RECIPE)
    train, test = split_rows(table, WEAK, 0)
    above = (table.ratings > 2).astype(float)
    model = BMMMF(3, 1.0, tol=2e-3, random_state=0).fit(table.pairs[train], above[train])
    wrong = model.predict(table.pairs[test]) != above[test]
    assert found["zero_one"] == wrong.mean()


def test_times_are_of_the_fit_alone() -> None:
    found = fit_time(RECIPE, "PHMF", {"n_factors": 3, "reg": 1.0, "schedule": "independent"}, 0, 2)
    assert 0 < found["fit_seconds"] < 60
    assert found["gradients"] > 0
    assert "gradient_seconds" not in found


@pytest.mark.parametrize("method", ["HMF", "MMMF"])
def test_gradients_are_timed_without_changing_the_fit(method: str) -> None:
    params = {"n_factors": 3, "reg": 1.0}
    plain, timed = (fit_time(RECIPE, method, params, 0, gradients=one) for one in (False, True))
    assert timed["gradients"] == plain["gradients"]
    assert 0 < timed["gradient_seconds"] < timed["fit_seconds"]


def test_the_objective_of_the_worked_examples_falls_from_every_start() -> None:
    params = {"n_factors": 2, "reg": 0.5, "max_iter": 20, "tol": 0.0}
    for method, example in (("BMMMF", "likes"), ("MMMF", "stars")):
        curves = [convergence(example, method, "gd", start, params) for start in (0, 1)]
        for curve in curves:
            assert (np.diff(curve["objective"]) <= 1e-4).all()
        assert curves[0] != curves[1]


@pytest.mark.parametrize("method", ["MMMF", "PMMMF"])
def test_a_view_has_the_items_that_its_user_has_rated(method: str) -> None:
    found = user_view(method, 5, 200, (5, 5, 5, 5, 5), 0.3, 2)
    points = np.array(found["points"])
    assert points.shape == (sum(found["counts"]), 2)
    lines = {"MMMF": {"thresholds": 4}, "PMMMF": {"prototypes": 5, "boundaries": 4}}[method]
    assert {name: len(found[name]) for name in lines} == lines
    assert sorted(found["ratings"]) == np.repeat(np.arange(1, 6), found["counts"]).tolist()
    assert found["right"] > 0.8
