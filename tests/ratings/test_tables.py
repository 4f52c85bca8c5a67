"""Tables in and out: frames, ids and the scale of ratings."""

import re
import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import marginmf
from marginmf.ratings import ALS, HMF, METHODS, MMMF, PMF, BiasOnly, Ratings, tables
from marginmf.ratings import data as ratings_data
from marginmf.ratings.estimator import Numbers
from marginmf.ratings.ids import IdIndex, as_ids, known_codes
from marginmf.ratings.scales import FOR_MANY_LEVELS, MANY_VALUES, coded
from marginmf.ratings.tables import Table, make_frame

NUMBERS, WORDS = IdIndex([1, 2, 3], "user"), IdIndex(["ann", "bob"], "user")


@pytest.mark.parametrize(
    "values",
    [
        [3, 1],
        (3, 1),
        np.array([3, 1]),
        pd.Series([3, 1]),
        pd.Index([3, 1]),
        pl.Series([3, 1]),
        pa.array([3, 1]),
        pa.chunked_array([[3], [1]]),
        pd.DataFrame({"who": [3, 1]}),
        pl.DataFrame({"user": [3, 1], "other": [0, 0]}),
        pa.table({"other": [0, 0], "user": [3, 1]}),
        (number for number in [3, 1]),
        range(3, 0, -2),
    ],
    ids=lambda values: f"{type(values).__module__}.{type(values).__name__}",
)
def test_many_ids_come_in_many_forms(values):
    assert as_ids(values, NUMBERS).tolist() == [3, 1]


@pytest.mark.parametrize("value", [2, np.int64(2), 2.0, np.array(2)])
def test_one_number_is_one_id(value):
    assert as_ids(value, NUMBERS).tolist() == [2]


def test_a_string_is_one_id():
    assert as_ids("bob", WORDS).tolist() == ["bob"]
    assert as_ids(pd.Series(["bob", "eve"]), WORDS).tolist() == ["bob", "eve"]
    assert as_ids(pa.array(["bob", "eve"]), WORDS).tolist() == ["bob", "eve"]


def test_a_tuple_is_one_id_where_it_is_known_as_one():
    index = IdIndex([("ann", 1), ("bob", 2)], "user")
    assert as_ids(("bob", 2), index).tolist() == [("bob", 2)]
    assert as_ids([("bob", 2), ("eve", 3)], index).tolist() == [("bob", 2), ("eve", 3)]
    assert as_ids(("bob", "ann"), WORDS).tolist() == ["bob", "ann"]


def test_repeats_count_once_where_they_first_stand():
    assert as_ids([3, 1, 3, 2, 1], NUMBERS).tolist() == [3, 1, 2]
    assert as_ids(["b", "a", "b"], WORDS).tolist() == ["b", "a"]


def test_no_ids_at_all():
    assert len(as_ids([], NUMBERS)) == 0
    assert len(as_ids(pd.Series([], dtype=int), NUMBERS)) == 0


def test_bad_ids_get_a_sentence():
    with pytest.raises(ValueError, match=r"one column of ids, but their shape is \(1, 2\)"):
        as_ids(np.array([[1, 2]]), NUMBERS)
    with pytest.raises(ValueError, match="user id in row 1 is missing"):
        as_ids([1, None], NUMBERS)
    with pytest.raises(ValueError, match="no column 'user'; its columns are 'a', 'b'"):
        as_ids(pd.DataFrame({"a": [1], "b": [2]}), NUMBERS)


def test_unknown_ids_are_named():
    assert known_codes(np.array([3, 1]), NUMBERS, "users").tolist() == [2, 0]
    with pytest.raises(ValueError, match=r"2 of 3 candidates were not seen .* the first is 8"):
        known_codes(np.array([1, 8, 9]), NUMBERS, "candidates")


COLUMNS = {"item": np.array(["x", "y"], object), "score": np.array([0.5, 1.5])}


@pytest.mark.parametrize(
    ("like", "kind"),
    [
        (pd.Series([1]), pd.DataFrame),
        (pd.Index([1]), pd.DataFrame),
        (pl.Series([1]), pl.DataFrame),
        (pl.DataFrame({"user": [1]}), pl.DataFrame),
        (pa.array([1]), pa.Table),
        (pa.table({"user": [1]}), pa.Table),
        ([1], pd.DataFrame),
        (None, pd.DataFrame),
    ],
)
def test_the_answer_is_in_the_kind_of_the_question(like, kind):
    frame = make_frame(COLUMNS, like)
    assert isinstance(frame, kind)
    whole = frame.to_pydict() if kind is pa.Table else {c: list(frame[c]) for c in COLUMNS}
    assert whole == {"item": ["x", "y"], "score": [0.5, 1.5]}


@pytest.mark.parametrize(
    ("hidden", "kind"),
    [(["pandas"], pl.DataFrame), (["pandas", "polars"], pa.Table), (tables.LIBRARIES, Table)],
)
def test_without_pandas_the_next_library_is_used(monkeypatch, hidden, kind):
    find = tables.importlib.util.find_spec
    monkeypatch.setattr(
        tables.importlib.util, "find_spec", lambda name: None if name in hidden else find(name)
    )
    frame = make_frame(COLUMNS, [1])
    assert type(frame) is kind
    assert list(frame["score"].to_pylist() if kind is pa.Table else frame["score"]) == [0.5, 1.5]


@pytest.mark.parametrize("like", [pl.Series([1]), pa.array([1])])
def test_ids_of_several_types_that_a_library_cannot_hold_get_a_sentence(like):
    columns = {"item": np.array(["x", 1], object)}
    with pytest.raises(ValueError, match=r"cannot hold these ids in one column \(.*Give the ids"):
        make_frame(columns, like)
    assert make_frame(columns)["item"].tolist() == ["x", 1]


def test_asking_with_lists_does_not_import_a_library_of_frames_for_ids():
    assert tables._library_of([1, 2]) is None
    assert tables._library_of(pd.Series([1])) is sys.modules["pandas"]


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
    with pytest.raises(ValueError, match=r"1238 distinct values.*n_levels=10.*ALS, PMF or Bias"):
        HMF().fit(*table)


def test_the_methods_that_learn_from_measurements_are_those_that_are_named():
    numbers = {kind.__name__ for kind in METHODS.values() if issubclass(kind, Numbers)}
    known = {kind.__name__ for kind in METHODS.values()}
    assert set(re.findall(r"\w+", FOR_MANY_LEVELS)) & known == numbers


def test_more_levels_than_memory_are_refused(table, monkeypatch):
    monkeypatch.setattr(ratings_data, "MOST_BYTES", 10_000)
    with pytest.raises(ValueError, match=r"n_levels=10"):
        Ratings.of(*table)


def test_more_values_than_codes_are_a_measurement():
    values = np.arange(40_000.0)
    with pytest.raises(ValueError, match=r"40000 distinct values.*n_levels=10.*ALS"):
        Ratings.of(np.column_stack([values, values]).astype(int), values)
