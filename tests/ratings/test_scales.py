"""Scales: levels that occur, levels that are given, and bins of continuous ratings."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import marginmf
from marginmf.ratings import ALS, HMF, MMMF, PMF, BiasOnly, Ratings
from marginmf.ratings import data as ratings_data
from marginmf.ratings.tables import MANY_VALUES, coded


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    U, V = rng.normal(size=(60, 2)), rng.normal(size=(40, 2))
    pairs = np.argwhere(rng.random((60, 40)) < 0.5)
    return pairs, 50 + 5 * (U[pairs[:, 0]] * V[pairs[:, 1]]).sum(axis=1)


@given(values=st.lists(st.floats(-1e6, 1e6), min_size=2, max_size=60), n_levels=st.integers(2, 9))
def test_bins_are_in_order_and_their_levels_are_means(values, n_levels):
    values = np.array(values)
    if len(np.unique(values)) < 2:
        return
    levels, codes, exact = coded(values, n_levels=n_levels)
    assert 2 <= len(levels) <= n_levels
    assert (np.diff(levels) > 0).all()
    order = np.argsort(values, kind="stable")
    assert (np.diff(codes[order]) >= 0).all()
    if exact is None:
        np.testing.assert_array_equal(levels[codes], values)
    else:
        np.testing.assert_array_equal(exact, values)
        for k, level in enumerate(levels):
            assert level == pytest.approx(values[codes == k].mean(), rel=1e-9, abs=1e-6)


def test_few_values_are_not_binned():
    assert coded(np.array([1.0, 2.0, 3.0, 2.0]), n_levels=3).exact is None


def test_a_given_scale_takes_the_nearest_level():
    levels, codes, exact = coded(np.array([1.2, 4.9, 2.6]), [1, 3, 5], n_levels=3)
    np.testing.assert_array_equal(levels[codes], [1, 5, 3])
    np.testing.assert_array_equal(exact, [1.2, 4.9, 2.6])


@pytest.mark.parametrize("n_levels", [1, 0, True])
def test_a_scale_has_two_levels_at_least(table, n_levels):
    with pytest.raises(ValueError, match=r"n_levels=.* must be a whole number >= 2"):
        Ratings.of(*table, n_levels=n_levels)


@pytest.mark.parametrize(
    "model", [BiasOnly(), ALS(3, 1.0, random_state=0), PMF(3, 1.0, random_state=0)], ids=str
)
def test_methods_of_numbers_learn_from_continuous_ratings(model, table, tmp_path):
    pairs, ratings = table
    model.fit(pairs, ratings)
    assert len(model.levels_) == MANY_VALUES
    assert model.ratings_.exact is not None
    model.save(tmp_path / "m.marginmf")
    loaded = marginmf.load(tmp_path / "m.marginmf")
    np.testing.assert_array_equal(loaded.predict(pairs), model.predict(pairs))
    np.testing.assert_array_equal(loaded.ratings_.values, model.ratings_.values)
    folded = model.fold_in([("new", pairs[0, 1])], [61.234])
    assert np.isfinite(folded.predict([("new", 7)])).all()
    assert folded.ratings_.values.tolist() == [61.234]
    assert np.isfinite(model.update_users([(0, 1)], [44.4]).predict(pairs)).all()


def test_biases_are_those_of_the_ratings_and_not_of_their_bins(table):
    pairs, ratings = table
    model = BiasOnly(reg=2.0).fit(pairs, ratings)
    design = np.zeros((len(pairs), 100))
    design[np.arange(len(pairs)), pairs[:, 0]] = 1
    design[np.arange(len(pairs)), 60 + pairs[:, 1]] = 1
    exact = np.linalg.solve(
        design.T @ design + 2.0 * np.eye(100), design.T @ (ratings - ratings.mean())
    )
    found = np.concatenate([model.user_biases_, model.item_biases_])
    np.testing.assert_allclose(found, exact, atol=1e-6)


def test_binned_ratings_suit_every_method(table):
    pairs, ratings = table
    model = HMF(3, 0.3, random_state=0).fit(Ratings.of(pairs, ratings, n_levels=6))
    error = np.abs(model.predict(pairs) - ratings).mean()
    assert error < 0.6 * np.abs(ratings - np.median(ratings)).mean()


def test_repeated_pairs_have_their_mean(table):
    twice = [("a", "x"), ("a", "x"), ("b", "x"), ("b", "y")], [1.0, 2.5, 4.0, 8.0]
    data = Ratings.of(*twice, duplicates="mean", n_levels=2)
    np.testing.assert_array_equal(data.values, [1.75, 4.0, 8.0])
    data = Ratings.of(*twice, duplicates="last", n_levels=2)
    np.testing.assert_array_equal(data.values, [2.5, 4.0, 8.0])


def test_many_levels_are_said_to_cost_much():
    pairs = np.argwhere(np.ones((30, 20)))
    ratings = np.random.default_rng(0).integers(25, size=len(pairs))
    with pytest.warns(UserWarning, match=r"25 levels: MMMF learns 24 thresholds for every user"):
        MMMF(2, 1.0, max_iter=2, calibrate=False).fit(pairs, ratings)


def test_measurements_are_refused_by_methods_that_tell_levels_apart(table):
    with pytest.raises(ValueError, match=r"distinct values among .*n_levels=10.*ALS, PMF or Bias"):
        HMF().fit(*table)


def test_more_levels_than_memory_are_refused(table, monkeypatch):
    monkeypatch.setattr(ratings_data, "MOST_BYTES", 10_000)
    with pytest.raises(ValueError, match=r"n_levels=10"):
        Ratings.of(*table)


def test_more_values_than_codes_are_a_measurement():
    values = np.arange(40_000.0)
    with pytest.raises(ValueError, match=r"40000 distinct values.*n_levels=10.*ALS"):
        Ratings.of(np.column_stack([values, values]).astype(int), values)
