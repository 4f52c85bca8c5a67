"""Files of every kind hold the same table, whatever their names, and keep its types."""

import os
import threading
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from made_files import COLUMNAR, KINDS, ROWS, as_json, write

from marginmf.datasets import read_ratings
from marginmf.datasets.files import arrow, text


def read(path: Path, **chosen: Any) -> tuple[list[Any], list[Any], list[float]]:
    found = read_ratings(path, **chosen)
    return found.users.tolist(), found.items.tolist(), found.ratings.tolist()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "chosen",
    [
        {},
        {"user": "user", "item": "film", "rating": "stars"},
        {"user": 2, "item": 3, "rating": 4},
        {"user": "2", "rating": "4"},
        {"item": " film".strip().upper(), "user": np.int64(2).item()},
    ],
)
def test_columns_by_known_names_by_given_names_and_by_position(
    tmp_path: Path, kind: str, chosen: dict[str, Any]
) -> None:
    path = write(tmp_path, KINDS[kind](ROWS), f"ratings.{kind}")
    found = read_ratings(path, **chosen)
    assert (found.users.dtype, found.users.tolist()) == (object, ROWS["user"])
    assert (found.items.dtype, found.items.tolist()) == (np.int64, ROWS["film"])
    assert (found.ratings.dtype, found.ratings.tolist()) == (np.float64, ROWS["stars"])
    assert found.timestamps is None
    assert (found.name, found.source) == (f"ratings.{kind}", f"read from {path}")


@pytest.mark.parametrize("kind", KINDS)
def test_names_that_do_not_say_which_is_which(tmp_path: Path, kind: str) -> None:
    rows = {"w": [9, 8], "x": ["a", "b"], "y": [4.0, 2.0], "z": [5, 6]}
    path = write(tmp_path, KINDS[kind](rows), f"ratings.{kind}")
    found = read_ratings(path, user=2, item=1, rating="y")
    assert found.users.tolist() == ["a", "b"]
    assert found.items.tolist() == [9, 8]
    assert found.timestamps is None  # a name was given, so that names say which is which
    assert found.columns == {"user": "x", "item": "w", "rating": "y"}
    with pytest.raises(ValueError, match="'w', 'x', 'y', 'z' is known as the item or rating; name"):
        read_ratings(path, user=1)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["ratings", "ratings.csv", "ratings.parquet", "ratings.jsonl"])
def test_the_content_says_the_kind_whatever_the_name(tmp_path: Path, kind: str, name: str) -> None:
    path = write(tmp_path, KINDS[kind](ROWS), name)
    assert read(path) == (ROWS["user"], ROWS["film"], ROWS["stars"])


@pytest.mark.parametrize("kind", KINDS)
def test_many_blocks_make_one_table(
    tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(arrow, "BATCH_ROWS", 7)
    monkeypatch.setattr(text, "BATCH_ROWS", 7)
    users = [f"u{k % 13}" for k in range(100)]
    rows = {"user": users, "item": list(range(100)), "rating": [k % 5 / 2 for k in range(100)]}
    path = write(tmp_path, KINDS[kind](rows), f"ratings.{kind}")
    assert read(path) == tuple(rows.values())


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
@pytest.mark.parametrize("kind", KINDS)
def test_a_pipe_is_read_like_a_file(tmp_path: Path, kind: str) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=[KINDS[kind](ROWS)])
    writer.start()
    assert read(pipe) == (ROWS["user"], ROWS["film"], ROWS["stars"])
    writer.join()


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (["1", "2"], ["1", "2"]),
        (["007", " a "], ["007", " a "]),
        ([1, 2], [1, 2]),
        ([1.0, 2.0], [1, 2]),
        ([2**64 - 1, 1], [2**64 - 1, 1]),
    ],
)
@pytest.mark.parametrize("kind", [*COLUMNAR, "jsonl"])
def test_files_with_types_keep_the_types_of_ids(
    tmp_path: Path, kind: str, ids: list[Any], expected: list[Any]
) -> None:
    if 2**64 - 1 in ids and kind != "jsonl":
        ids = pa.array(ids, pa.uint64())
    rows = {"user": ids, "item": [1, 2], "rating": [1, 2]}
    path = write(tmp_path, KINDS[kind](rows), f"ratings.{kind}")
    users = read(path)[0]
    assert [(type(one), one) for one in users] == [(type(one), one) for one in expected]


def test_json_ids_of_several_types_stay_apart_over_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(text, "BATCH_ROWS", 2)
    users = [1, 2, "1", 1, 2**70, 3, "b"]
    path = write(tmp_path, as_json({"user": users, "item": users, "rating": users[:1] * 7}), "r")
    assert read(path)[:2] == (users, users)


ARROW_TYPES: list[tuple[str, pa.Array, list[Any]]] = [
    ("user", pa.array([3, 4], pa.int8()), [3, 4]),
    ("user", pa.array([3, 4], pa.uint32()), [3, 4]),
    ("user", pa.array(["a", "b"], pa.large_string()), ["a", "b"]),
    ("user", pa.array([b"a", b"b"], pa.binary()), ["a", "b"]),
    ("user", pa.array(["a", "a"]).dictionary_encode(), ["a", "a"]),
    ("user", pa.array([Decimal(3), Decimal(4)]), [3, 4]),
    ("rating", pa.array([3, 4], pa.int16()), [3.0, 4.0]),
    ("rating", pa.array([3.5, 4], pa.float32()), [3.5, 4.0]),
    ("rating", pa.array(["3.5", " 4"]), [3.5, 4.0]),
    ("rating", pa.array([Decimal("3.5"), Decimal("4.0")]), [3.5, 4.0]),
    ("rating", pa.array(["3", "4"]).dictionary_encode(), [3.0, 4.0]),
    ("timestamp", pa.array([5, 6], pa.int32()), [5, 6]),
    ("timestamp", pa.array([5.7, 6.0]), [5, 6]),
    ("timestamp", pa.array(["5", "1970-01-02T00:00:00Z"]), [5, 86400]),
    ("timestamp", pa.array([-1, 1999], pa.timestamp("ms")), [-1, 1]),
    ("timestamp", pa.array([1, 2 * 10**9], pa.timestamp("ns", "Asia/Tokyo")), [0, 2]),
    ("timestamp", pa.array([date(1970, 1, 1), date(1970, 1, 3)]), [0, 172800]),
    ("timestamp", pa.array([date(1970, 1, 1), date(1970, 1, 3)], pa.date64()), [0, 172800]),
]


@pytest.mark.parametrize("kind", COLUMNAR)
@pytest.mark.parametrize(
    ("role", "column", "expected"), ARROW_TYPES, ids=[f"{r}-{c.type}" for r, c, _ in ARROW_TYPES]
)
def test_the_types_that_columns_come_in(
    tmp_path: Path, kind: str, role: str, column: pa.Array, expected: list[Any]
) -> None:
    columns = {"user": [1, 2], "item": [1, 2], "rating": [1, 2], "timestamp": [1, 2], role: column}
    path = write(tmp_path, KINDS[kind](pa.table(columns)), f"ratings.{kind}")
    found: Any = getattr(read_ratings(path), f"{role}s").tolist()
    assert found == expected
    assert list(map(type, found)) == list(map(type, expected))


def test_times_in_json_are_numbers_or_dates(tmp_path: Path) -> None:
    times = [5, 6.9, "7", "1970-01-01", "1970-01-01T01:00:00+01:00", "1970-01-01T00:01Z"]
    rows = {"user": [1] * 6, "item": [1] * 6, "rating": [1] * 6, "time": times}
    found = read_ratings(write(tmp_path, as_json(rows), "ratings.jsonl")).timestamps
    assert found is not None
    assert found.tolist() == [5, 6, 7, 0, 0, 60]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "latin-1", "utf-16"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_json_in_any_encoding_with_blank_lines(tmp_path: Path, encoding: str, end: str) -> None:
    lines = ["", '{"user": "Zoë", "item": "é", "rating": 5}', " ", '{"rating": 4, "item": 2,']
    lines[-1] += ' "user": 1}'
    path = write(tmp_path, end.join(lines).encode(encoding), "ratings.jsonl")
    assert read(path) == (["Zoë", 1], ["é", 2], [5.0, 4.0])


@pytest.mark.parametrize(
    "text", ["{3F25-04E0},7,5\n{3F25-04E1},7,4\n", "PAR1,7,5\nPAR2,7,4\n", "ARROW1,7,5\nb,7,4\n"]
)
def test_text_that_begins_like_another_kind_is_text(tmp_path: Path, text: str) -> None:
    assert read(write(tmp_path, text.encode(), "ratings.csv"))[1:] == ([7, 7], [5.0, 4.0])


def test_columns_of_the_same_name_are_told_by_position(tmp_path: Path) -> None:
    arrays = [pa.array([1, 2]), pa.array([3, 4]), pa.array([4.0, 5.0])]
    twice = pa.Table.from_arrays(arrays, names=["id", "id", "rating"])
    for kind, make in COLUMNAR.items():
        path = write(tmp_path, make(twice), f"ratings.{kind}")
        assert read(path, user=2, item=1) == ([3, 4], [1, 2], [4.0, 5.0])
        with pytest.raises(ValueError, match="2 columns are called 'id'; give the position of the"):
            read_ratings(path, user="id")
