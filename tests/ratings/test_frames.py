"""Ids in, frames out."""

import sys

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from marginmf.ratings import tables
from marginmf.ratings.ids import IdIndex, as_ids, known_codes
from marginmf.ratings.tables import make_frame

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
    [(["pandas"], pl.DataFrame), (["pandas", "polars"], pa.Table), (tables.LIBRARIES, dict)],
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
    with pytest.raises(ValueError, match=r"cannot hold these ids in one column \(.*Ask with"):
        make_frame(columns, like)
    assert make_frame(columns)["item"].tolist() == ["x", 1]


def test_asking_with_lists_does_not_import_a_library_of_frames_for_ids():
    assert tables._library_of([1, 2]) is None
    assert tables._library_of(pd.Series([1])) is sys.modules["pandas"]
