"""Pairs to predict, from files of every kind, whole and in chunks."""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from marginmf.datasets import iterate_pairs, read_pairs, read_ratings, write_columns
from marginmf.datasets.files import source, text
from marginmf.ratings import BiasOnly

KINDS = ["csv", "tsv", "csv.gz", "jsonl", "jsonl.gz", "parquet", "arrow", "arrows"]


def write(folder: Path, content: str, name: str = "pairs.csv") -> Path:
    path = folder / name
    data = content.encode()
    path.write_bytes(gzip.compress(data) if name.endswith("gz") else data)
    return path


@pytest.fixture
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source, "CHUNK_BYTES", 64)
    monkeypatch.setattr(text, "BATCH_ROWS", 3)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "columns",
    [
        {"user": [1, 2, 3], "item": [4, 5, 6]},
        {"item": [4, 5, 6], "rating": [1.5, 2.5, 3.5], "user": ["a", "b", "007"]},
    ],
)
def test_pairs_of_every_kind(tmp_path: Path, kind: str, columns: dict[str, list[Any]]) -> None:
    path = tmp_path / f"pairs.{kind}"
    write_columns(path, columns)
    pairs = read_pairs(path)
    both = all(isinstance(one, int) for one in columns["user"])
    assert pairs.dtype == (np.int64 if both else object)
    assert pairs.tolist() == [
        list(row) for row in zip(columns["user"], columns["item"], strict=True)
    ]
    swapped = read_pairs(path, user="item", item="user")
    assert swapped.tolist() == pairs[:, ::-1].tolist()


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ("1,2\n3,4\n", [[1, 2], [3, 4]]),
        ("user,item\nann,heat\n", [["ann", "heat"]]),
        ("film;user;rating\nheat;ann;3,5\n", [["ann", "heat"]]),
        ("1;2;3,5\n", [[1, 2]]),
        ("1\tGood, the Bad, the Ugly\n", [[1, "Good, the Bad, the Ugly"]]),
        ("user,title\n1,The Good One\n2,The Bad One\n", [[1, "The Good One"], [2, "The Bad One"]]),
        ("1::2::5::99\n", [[1, 2]]),
        ("1 2\n3 4\n", [[1, 2], [3, 4]]),
        ("1,2,x\n3,4,\n", [[1, 2], [3, 4]]),
        ("1,2,3\n4,5\n", [[1, 2], [4, 5]]),
    ],
)
def test_headers_and_separators_of_pairs(
    tmp_path: Path, content: str, expected: list[list[Any]]
) -> None:
    assert read_pairs(write(tmp_path, content)).tolist() == expected


def test_names_and_pairs_of_names_are_told_apart_by_the_caller(tmp_path: Path) -> None:
    path = write(tmp_path, "kunde,artikel\nann,heat\n")
    with pytest.raises(ValueError, match="may be the names of the columns or the first pair; say"):
        read_pairs(path)
    assert read_pairs(path, header=False).tolist() == [["kunde", "artikel"], ["ann", "heat"]]
    assert read_pairs(path, user="kunde", item="artikel").tolist() == [["ann", "heat"]]
    with pytest.raises(ValueError, match="none of the columns 'kunde', 'artikel' is known"):
        read_pairs(path, header=True)
    names = {"user": "artikel", "item": "kunde"}
    assert next(iterate_pairs(path, names=names)).tolist() == [["heat", "ann"]]


FAULTS = {
    "empty": ("", "is empty; it needs lines with a user and an item"),
    "header only": ("user,item\n", "has no pairs after its header line; add lines of pairs"),
    "narrow": ("1,2\n3\n", r"line 2: 1 column\(s\) found where 2 are needed \(user, item, separ"),
    "no item": ("1,2\n3,\n", "line 2: the item id is empty; fill it in or remove this line"),
    "binary": ("PK\0\0", "is not a text file; export the pairs as CSV"),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_every_fault_is_one_sentence(tmp_path: Path, fault: str) -> None:
    content, message = FAULTS[fault]
    path = write(tmp_path, content)
    with pytest.raises(ValueError, match=message):
        read_pairs(path)
    with pytest.raises(ValueError, match=message):
        next(iterate_pairs(path))


def test_a_folder_and_a_missing_file_are_named_at_once(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError, match="is a folder; name the file of pairs in it"):
        iterate_pairs(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"There is no file .*nowhere\.csv"):
        iterate_pairs(tmp_path / "nowhere.csv")


@pytest.mark.parametrize("chunk", [0, -1, 1.5, True, "many"])
def test_a_chunk_has_a_size(tmp_path: Path, chunk: Any) -> None:
    with pytest.raises(ValueError, match=r"chunk=.* must be a whole number >= 1"):
        iterate_pairs(write(tmp_path, "1,2\n"), chunk=chunk)


LATE_NAME = ["1,2"] * 50 + ["x,2"]
LATE_LATIN = ["1,2"] * 50 + ["1,\xe9"]


@pytest.mark.usefixtures("small_chunks")
@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.parametrize("chunk", [1, 7, 51, 1000])
@pytest.mark.parametrize("lines", [["1,2"] * 51, LATE_NAME, LATE_LATIN, ["a,b"] * 51])
def test_chunks_together_are_all_pairs(
    tmp_path: Path, lines: list[str], chunk: int, quick: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not quick:
        monkeypatch.setattr(text, "read_plain", lambda *arguments: None)
    path = tmp_path / "pairs.csv"
    path.write_bytes("\n".join(lines).encode("latin-1"))
    whole = read_pairs(path, header=False)
    chunks = list(iterate_pairs(path, chunk=chunk, header=False))
    assert [len(one) for one in chunks[:-1]] == [chunk] * (len(chunks) - 1)
    assert 1 <= len(chunks[-1]) <= chunk
    assert {one.dtype for one in chunks} == {whole.dtype}
    assert np.concatenate(chunks).tolist() == whole.tolist()


@pytest.mark.usefixtures("small_chunks")
def test_chunks_of_json_keep_types_apart(tmp_path: Path) -> None:
    users = [1, 2, 3, 4, "1", 5, 6]
    lines = [json.dumps({"user": user, "item": 7}) for user in users]
    path = write(tmp_path, "\n".join(lines), "pairs.jsonl")
    found = [pair for chunk in iterate_pairs(path, chunk=2) for pair in chunk.tolist()]
    assert found == [[user, 7] for user in users]
    assert found == read_pairs(path).tolist()


@pytest.mark.usefixtures("small_chunks")
def test_a_fault_at_the_end_is_found_before_the_first_chunk(tmp_path: Path) -> None:
    path = write(tmp_path, "1,2\n" * 100 + "1,\n")
    with pytest.raises(ValueError, match="line 101: the item id is empty"):
        next(iterate_pairs(path, chunk=1))


@pytest.mark.parametrize("kind", KINDS)
def test_predictions_flow_from_file_to_file(tmp_path: Path, kind: str) -> None:
    model = BiasOnly().fit([("a", 1), ("a", 2), ("b", 1), ("b", 3)], [5, 3, 1, 2])
    asked, answered = tmp_path / f"asked.{kind}", tmp_path / f"answered.{kind}"
    write_columns(asked, {"user": ["a", "a", "b", "b"], "item": [3, 1, 2, 3]})

    def answers() -> Iterator[dict[str, Any]]:
        for pairs in iterate_pairs(asked, chunk=3):
            yield {"user": pairs[:, 0], "item": pairs[:, 1], "rating": model.predict(pairs)}

    assert write_columns(answered, answers()) == 4
    table = read_ratings(answered)
    assert table.pairs.tolist() == read_pairs(asked).tolist()
    assert table.ratings.tolist() == model.predict(read_pairs(asked)).tolist()
