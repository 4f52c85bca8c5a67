"""IdIndex: ids of any kind to codes and back."""

import pickle
from datetime import datetime
from typing import Any

import numpy as np
import pandas as pd
import pytest

from marginmf._utils.ids import as_id_column
from marginmf.ratings import BiasOnly
from marginmf.ratings.ids import IdIndex

VOCABULARIES: dict[str, Any] = {
    "dense ints": np.arange(5, 25),
    "negative ints": np.array([-7, 3, -2, 0]),
    "huge gaps": np.array([-(2**62), 0, 5, 2**62]),
    "extreme ints": np.array([-(2**63), 2**63 - 1]),
    "small unsigned": np.array([3, 250], np.uint8),
    "whole floats": np.array([4.0, 2.0]),
    "beyond int64": np.array([2**63 + 5, 7], np.uint64),
    "very large ints": [2**70, 3],
    "strings": ["b", "a", "ж"],
    "numpy strings": np.array(["b", "a"]),
    "mixed types": ["a", 1, (2, "b"), 2.5],
    "tuples": [(1, 2), (3, 4), (5, 6)],
}


@pytest.mark.parametrize("kind", VOCABULARIES)
def test_ids_go_in_and_come_out(kind: str) -> None:
    values = VOCABULARIES[kind]
    index = IdIndex(values)
    plain = values.tolist() if isinstance(values, np.ndarray) else values
    codes = index.encode(values)
    assert codes.dtype == np.int32
    assert sorted(codes.tolist()) == list(range(len(plain)))
    assert [index.ids.tolist()[code] for code in codes] == plain
    assert index.encode([plain[1], plain[0]]).tolist() == [codes[1], codes[0]]
    restored = pickle.loads(pickle.dumps(index))
    assert restored.encode(values).tolist() == codes.tolist()
    assert (len(restored), repr(restored)) == (len(plain), f"IdIndex({len(plain)} ids)")


@pytest.mark.parametrize("kind", ["dense ints", "negative ints", "huge gaps", "extreme ints"])
def test_unknown_ints_are_minus_one(kind: str) -> None:
    unknown = np.array([-(2**63) + 1, -1, 1, 4, 25, 2**63 - 2])
    assert IdIndex(VOCABULARIES[kind]).encode(unknown).tolist() == [-1] * 6


def test_unknown_among_known() -> None:
    assert IdIndex(["a", "b"]).encode(["b", "zebra", "a"]).tolist() == [1, -1, 0]
    assert IdIndex(["a", 1]).encode(["zebra", 1]).tolist() == [-1, 0]
    assert IdIndex([]).encode(["a"]).tolist() == [-1]
    assert IdIndex(np.array([], np.int64)).encode(np.array([1])).tolist() == [-1]


def test_read_only_ids_are_left_alone() -> None:
    ids = np.array([3, 1, 2])
    ids.setflags(write=False)
    assert IdIndex(ids).encode(ids).tolist() == [2, 0, 1]


@pytest.mark.parametrize(("known", "asked"), [([1, 2], ["1", "2"]), (["1", "2"], [1, 2])])
def test_ids_of_another_type_are_warned_of(known: list[Any], asked: list[Any]) -> None:
    with pytest.warns(UserWarning, match=f"None of the users .* {asked[0]!r} now, .*{known[0]!r}"):
        codes = IdIndex(known, "user").encode(asked)
    assert codes.tolist() == [-1, -1]


MISSING: dict[str, Any] = {
    "None among ints": [1, None],
    "None among strings": ["a", None],
    "NaN in a list": [1.0, np.nan],
    "NaN in an array": np.array([1.0, np.nan]),
    "NA": ["a", pd.NA],
    "NaT": np.array(["2020-01-01", "NaT"], "datetime64[D]"),
}


@pytest.mark.parametrize("kind", MISSING)
def test_missing_ids_are_refused(kind: str) -> None:
    with pytest.raises(ValueError, match="The film id in row 1 is missing"):
        as_id_column(MISSING[kind], "film")


def test_mixed_ids_have_one_order() -> None:
    ids = ["b", 2, (1, 2), "a", 1, None.__class__]
    expected = IdIndex(ids).ids.tolist()
    assert IdIndex(ids[::-1]).ids.tolist() == expected


def test_times_stay_times() -> None:
    days = np.array(["2020-01-02", "2020-01-01"], "M8[ns]")
    index = IdIndex(days)
    assert index.encode([datetime(2020, 1, 1)]).tolist() == [0]
    assert index.encode(days).tolist() == [1, 0]


def test_union_of_vocabularies():
    index = IdIndex([5, 3], "user")
    assert index.union(IdIndex([3])) is index
    assert index.union(IdIndex([4])).ids.tolist() == [3, 4, 5]
    assert index.union(IdIndex([])) is index
    with pytest.warns(UserWarning, match="ids are of another type"):
        mixed = index.union(IdIndex(["x"]))
    assert mixed.ids.tolist() == [3, 5, "x"]
    assert mixed.encode([5, "x", "5"]).tolist() == [1, 2, -1]
    assert mixed.what == "user"


def test_a_warning_points_at_the_line_that_called_us() -> None:
    pairs = [(f"u{k % 5}", k // 5) for k in range(30)]
    model = BiasOnly().fit(pairs, [1 + k % 5 for k in range(30)])
    with pytest.warns(UserWarning, match="None of the users given is known") as caught:
        model.predict([(3, 1)])
    assert caught[0].filename == __file__
