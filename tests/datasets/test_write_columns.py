"""Columns are written batch by batch, exactly, and whole or not at all."""

import gzip
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import feather, parquet

from marginmf.datasets import RatingsTable, read_ratings, write_columns

TEXT = ["csv", "tsv", "jsonl", "ndjson", "csv.gz", "tsv.gz", "jsonl.gz"]
COLUMNAR = ["parquet", "pq", "arrow", "feather", "ipc", "arrows"]
ROWS: dict[str, Any] = {
    "user": np.array(["ann", "bob"]),
    "item": np.array([7, 9]),
    "rating": np.array([4.5, 1 / 3]),
}


def table(path: Path) -> tuple[list[Any], list[Any], list[float]]:
    found = read_ratings(path)
    return found.users.tolist(), found.items.tolist(), found.ratings.tolist()


@pytest.mark.parametrize("kind", [*TEXT, *COLUMNAR])
def test_what_is_written_is_read_back(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"out.{kind}"
    assert write_columns(path, ROWS) == 2
    assert table(path) == (["ann", "bob"], [7, 9], [4.5, 1 / 3])
    assert write_columns(path, [ROWS, ROWS, ROWS]) == 6
    assert table(path) == (["ann", "bob"] * 3, [7, 9] * 3, [4.5, 1 / 3] * 3)
    assert os.listdir(tmp_path) == [path.name]


@pytest.mark.parametrize("kind", ["tsv.gz", "jsonl", "parquet"])
def test_real_ratings_are_read_back(
    movielens_100k: RatingsTable, tmp_path: Path, kind: str
) -> None:
    columns = ("users", "items", "ratings", "timestamps")
    arrays = {name[:-1]: getattr(movielens_100k, name) for name in columns}
    path = tmp_path / f"out.{kind}"
    assert write_columns(path, arrays) == 100_000
    again = read_ratings(path)
    for name in columns:
        np.testing.assert_array_equal(getattr(again, name), getattr(movielens_100k, name))


def test_each_kind_is_what_others_expect(tmp_path: Path) -> None:
    for kind in ("csv", "tsv", "jsonl", "parquet", "arrow", "arrows", "csv.gz"):
        write_columns(tmp_path / f"out.{kind}", ROWS)
    lines = "user,item,rating\nann,7,4.5\nbob,9,0.3333333333333333\n"
    assert (tmp_path / "out.csv").read_bytes() == lines.encode()
    assert (tmp_path / "out.tsv").read_bytes() == lines.replace(",", "\t").encode()
    assert gzip.decompress((tmp_path / "out.csv.gz").read_bytes()) == lines.encode()
    objects = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert objects[0] == {"user": "ann", "item": 7, "rating": 4.5}
    expected = pa.table(ROWS)
    assert parquet.read_table(tmp_path / "out.parquet").equals(expected)
    assert feather.read_table(tmp_path / "out.arrow").equals(expected)
    with pa.ipc.open_stream(tmp_path.joinpath("out.arrows").read_bytes()) as stream:
        assert stream.read_all().equals(expected)


def test_the_same_rows_make_the_same_compressed_file(tmp_path: Path) -> None:
    write_columns(tmp_path / "a.csv.gz", ROWS)
    write_columns(tmp_path / "b.csv.gz", ROWS)
    assert (tmp_path / "a.csv.gz").read_bytes() == (tmp_path / "b.csv.gz").read_bytes()


letters = st.characters(codec="utf-8", exclude_categories=("C", "Z"))
words = st.text(letters, min_size=1, max_size=4)
tidy = st.one_of(words, st.tuples(words, words).map(", ".join), words.map("{0}\n{0}".format))
anything = st.text(st.characters(codec="utf-8", exclude_characters="\0"), max_size=4)
names = st.tuples(anything, words, anything).map("".join)
numbers = st.floats(-1e30, 1e30)


@settings(max_examples=30, deadline=None)
@given(rows=st.lists(st.tuples(tidy, tidy, numbers), min_size=1, max_size=9))
@pytest.mark.parametrize("kind", ["csv", "tsv"])
def test_text_gives_tidy_names_and_numbers_back(
    tmp_path_factory: pytest.TempPathFactory, kind: str, rows: list[tuple[str, str, float]]
) -> None:
    path = tmp_path_factory.getbasetemp() / f"text.{kind}"
    users, items, ratings = map(list, zip(*rows, strict=True))
    write_columns(path, {"user": users, "item": items, "rating": ratings})
    found = table(path)
    assert [list(map(str, found[0])), list(map(str, found[1]))] == [users, items]
    assert found[2] == ratings


whole = st.integers(-(2**63), 2**63 - 1)


@settings(max_examples=30, deadline=None)
@given(
    rows=st.one_of(
        st.lists(st.tuples(names, whole, numbers), min_size=1, max_size=9),
        st.lists(st.tuples(whole, names, numbers), min_size=1, max_size=9),
    ),
    size=st.integers(1, 9),
)
@pytest.mark.parametrize("kind", ["jsonl", "parquet", "arrow"])
def test_files_with_types_give_every_id_back(
    tmp_path_factory: pytest.TempPathFactory, kind: str, rows: list[Any], size: int
) -> None:
    path = tmp_path_factory.getbasetemp() / f"typed.{kind}"

    def batches() -> Iterator[dict[str, Any]]:
        for start in range(0, len(rows), size):
            columns = zip(*rows[start : start + size], strict=True)
            yield dict(zip(("user", "item", "rating"), columns, strict=True))

    write_columns(path, batches())
    assert list(zip(*table(path), strict=True)) == rows


def test_ids_of_several_types_need_a_kind_that_holds_them(tmp_path: Path) -> None:
    mixed = {"user": [1, "1"], "item": [2**70, 3], "rating": [1.0, 2.0]}
    write_columns(tmp_path / "out.jsonl", mixed)
    assert table(tmp_path / "out.jsonl") == ([1, "1"], [2**70, 3], [1.0, 2.0])
    for kind in ("parquet", "arrow"):
        with pytest.raises(ValueError, match=r"'user' does not hold values of one type.*write CSV"):
            write_columns(tmp_path / f"out.{kind}", mixed)
    later = [{"user": [1]}, {"user": ["a"]}]
    with pytest.raises(ValueError, match="'user' does not hold values of one type"):
        write_columns(tmp_path / "out.parquet", later)
    assert os.listdir(tmp_path) == ["out.jsonl"]


def test_single_precision_is_written_with_its_own_digits(tmp_path: Path) -> None:
    column = {"score": np.array([0.1, 2.5], np.float32)}
    write_columns(tmp_path / "out.csv", column)
    assert (tmp_path / "out.csv").read_text() == "score\n0.1\n2.5\n"
    write_columns(tmp_path / "out.parquet", column)
    assert parquet.read_table(tmp_path / "out.parquet").schema.field("score").type == pa.float32()


def test_no_number_is_an_empty_cell_or_null(tmp_path: Path) -> None:
    column = {"item": [1, np.int64(2)], "rating": np.array([np.nan, 2.0])}
    write_columns(tmp_path / "out.csv", column)
    assert (tmp_path / "out.csv").read_text() == "item,rating\n1,\n2,2.0\n"
    write_columns(tmp_path / "out.jsonl", column)
    first = (tmp_path / "out.jsonl").read_text().splitlines()[0]
    assert json.loads(first) == {"item": 1, "rating": None}
    write_columns(tmp_path / "out.parquet", column)
    assert np.isnan(parquet.read_table(tmp_path / "out.parquet")["rating"][0].as_py())


def test_a_carriage_return_inside_a_name_does_not_end_the_line(tmp_path: Path) -> None:
    write_columns(tmp_path / "out.csv", ROWS | {"user": ["a\rb", "c"]})
    assert len(read_ratings(tmp_path / "out.csv")) == 2


@pytest.mark.parametrize("kind", ["csv", "jsonl", "jsonl.gz", "parquet", "arrow"])
def test_a_failure_half_way_leaves_what_was_there(tmp_path: Path, kind: str) -> None:
    path = tmp_path / f"out.{kind}"
    path.write_bytes(b"old")

    def broken() -> Iterator[dict[str, Any]]:
        yield ROWS
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        write_columns(path, broken())
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == [path.name]


def test_a_link_is_followed_and_a_device_is_not_replaced(tmp_path: Path) -> None:
    (tmp_path / "real.csv").write_text("old")
    link = tmp_path / "link.csv"
    link.symlink_to("real.csv")
    write_columns(link, ROWS)
    assert link.is_symlink()
    assert (tmp_path / "real.csv").read_text().startswith("user,item")
    if os.name == "posix":
        assert write_columns(os.devnull, ROWS, kind="csv") == 2
        assert Path(os.devnull).is_char_device()


FAULTS: list[tuple[str, Any, dict[str, Any], str]] = [
    ("out.xyz", ROWS, {}, "The name 'out.xyz' does not say what kind of file to write; let it"),
    ("out", ROWS, {}, "The name 'out' does not say what kind of file"),
    ("out.csv", ROWS, {"kind": "xls"}, "There is no kind of file 'xls' to write; kinds are "),
    ("out.parquet.gz", ROWS, {}, "A file of kind parquet is not compressed with gzip: leave .gz"),
    ("out.csv", {"a": [1], "b": [1, 2]}, {}, "columns of a batch differ in length: {'a': 1, 'b'"),
    ("out.csv", {"a": np.ones((2, 2))}, {}, r"The column 'a' must be one-dimensional, not \(2, 2"),
    ("out.csv", [{"a": [1]}, {"b": [1]}], {}, r"columns \['b'\] where \['a'\] are expected"),
    ("out.csv", {}, {}, r"A batch has the columns \[\] where some are expected"),
    ("out.csv", [], {}, "There is no batch to write; give one, if need be without rows"),
    ("out.parquet", [], {}, "There is no batch to write"),
    ("out.jsonl", {"a": [1j]}, {}, "The column 'a' holds 1j, which JSON lines cannot hold"),
    ("out.jsonl", {"a": [float("inf")]}, {}, "The column 'a' holds inf, which JSON lines cannot"),
]


@pytest.mark.parametrize(("name", "columns", "options", "message"), FAULTS)
def test_every_fault_is_one_sentence_and_leaves_nothing(
    tmp_path: Path, name: str, columns: Any, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        write_columns(tmp_path / name, columns, **options)
    assert str(caught.value).endswith(".")
    assert os.listdir(tmp_path) == []


def test_a_folder_is_not_a_file(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError, match="is a folder: give the name of a file in it"):
        write_columns(tmp_path, ROWS, kind="csv")


def test_streams_get_csv_or_the_kind_that_is_given() -> None:
    words = io.StringIO()
    write_columns(words, ROWS)
    assert words.getvalue().startswith("user,item,rating\nann,7,4.5\n")
    data = io.BytesIO()
    write_columns(data, ROWS, kind="jsonl")
    assert data.getvalue().startswith(b'{"user": "ann", "item": 7')
    data = io.BytesIO()
    write_columns(data, ROWS, kind="parquet")
    assert parquet.read_table(io.BytesIO(data.getvalue())).equals(pa.table(ROWS))
    with pytest.raises(ValueError, match="kind parquet is bytes, which a stream of text cannot"):
        write_columns(io.StringIO(), ROWS, kind="parquet")


def test_standard_output_gets_each_batch_as_it_comes(capfdbinary: Any) -> None:
    def batches() -> Iterator[dict[str, Any]]:
        yield {"user": ["Zoë"]}
        assert capfdbinary.readouterr().out == "user\nZoë\n".encode()
        yield {"user": ["b"]}

    assert write_columns("-", batches()) == 2
    assert capfdbinary.readouterr().out == b"b\n"


def test_standard_output_may_be_a_pipe_also_for_parquet() -> None:
    code = "from marginmf.datasets import write_columns as w; w('-', {'a': [1]}, kind='parquet')"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert parquet.read_table(io.BytesIO(run.stdout)).to_pydict() == {"a": [1]}


def test_missing_values_of_pandas_are_empty_cells(tmp_path: Path) -> None:
    column = pd.array([1, None], dtype="Int64").astype(object)
    write_columns(tmp_path / "a.csv", {"a": np.asarray(column), "b": np.arange(2)})
    assert (tmp_path / "a.csv").read_text() == "a,b\n1,0\n,1\n"
