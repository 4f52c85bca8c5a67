from pathlib import Path

import numpy as np
import pytest

from marginmf._utils.ids import as_objects
from marginmf.cli.inputs import convert_ids, find_ids, read_ids
from marginmf.ratings.ids import IdIndex

NUMBERS = IdIndex([7, 42, -3], "user")
NAMES = IdIndex(["ann", "7", "007"], "item")
MIXED = IdIndex(as_objects([7, "7", 8, ("a", 1)]), "item")


@pytest.mark.parametrize(
    ("index", "text", "found"),
    [
        (NUMBERS, "42", 42),
        (NUMBERS, "-3", -3),
        (NAMES, "7", "7"),
        (NAMES, "007", "007"),
        (MIXED, "7", "7"),
        (MIXED, "8", 8),
        (MIXED, "('a', 1)", ("a", 1)),
    ],
)
def test_a_word_means_the_id_that_is_written_so(index: IdIndex, text: str, found: object) -> None:
    assert find_ids(index, [text]).tolist() == [found]


@pytest.mark.parametrize("text", ["043", "+42", "4 2", "42.0", "", "9" * 30, "\uff14\uff12"])
def test_a_number_written_otherwise_is_no_id(text: str) -> None:
    with pytest.raises(ValueError, match="The model does not know the user"):
        find_ids(NUMBERS, [text])


def test_ids_keep_their_order() -> None:
    assert find_ids(NUMBERS, ["42", "7"]).tolist() == [42, 7]
    assert find_ids(NUMBERS, ["42", "7"]).dtype == np.int64


@pytest.mark.parametrize(
    ("index", "text", "message"),
    [
        (NUMBERS, "421", r"user '421'\. The model's users are numbers from -3 to 42\."),
        (NAMES, "anne", r"item 'anne'\. Did you mean 'ann'\?"),
        (IdIndex([], "user"), "x", "The model knows no users at all"),
    ],
)
def test_an_unknown_id_comes_with_advice(index: IdIndex, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        find_ids(index, [text])


def test_a_column_takes_the_type_of_the_vocabulary() -> None:
    assert convert_ids(NAMES, np.array([7, 9])).tolist() == ["7", 9]
    assert convert_ids(NUMBERS, as_objects(["42", "x", "042"])).tolist() == [42, "x", "042"]
    assert convert_ids(NUMBERS, np.array([42, 1])).tolist() == [42, 1]
    assert convert_ids(NAMES, as_objects(["ann", "x"])).tolist() == ["ann", "x"]


@pytest.mark.parametrize(
    ("content", "ids"),
    [
        ("1\n2\n\n 3 \n", ["1", "2", "3"]),
        ("movieId\n7\n7\n9\n", ["7", "9"]),
        ('item\n"Godfather, The"\nAlien, 3\n', ["Godfather, The", "Alien, 3"]),
        ("7\r\n9\r\n", ["7", "9"]),
        ("\ufeffuser name\n7\n", ["user name", "7"]),
    ],
)
def test_a_file_of_ids_has_one_a_line(tmp_path, content: str, ids: list[str]) -> None:
    (tmp_path / "ids.txt").write_bytes(content.encode())
    assert read_ids(tmp_path / "ids.txt", "item") == ids


@pytest.mark.parametrize("content", ["", "\n\n", "item\n"])
def test_a_file_without_ids_is_a_sentence(tmp_path, content: str) -> None:
    (tmp_path / "ids.txt").write_text(content)
    with pytest.raises(ValueError, match="names no item; write one id a line"):
        read_ids(tmp_path / "ids.txt", "item")


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "utf-16"])
def test_a_file_of_ids_in_any_encoding(tmp_path, encoding: str) -> None:
    (tmp_path / "ids.txt").write_bytes("Amélie\nLéon\n".encode(encoding))
    assert read_ids(tmp_path / "ids.txt", "item") == ["Amélie", "Léon"]


def test_a_file_of_ids_that_is_no_text_is_a_sentence(tmp_path) -> None:
    (tmp_path / "ids.bin").write_bytes(bytes(range(256)))
    with pytest.raises(ValueError, match="is not a text file"):
        read_ids(tmp_path / "ids.bin", "item")


def test_ids_of_nineteen_digits_are_found() -> None:
    ids = [1234567890123456789, -(2**63), 5]
    assert find_ids(IdIndex(ids, "user"), [str(one) for one in ids]).tolist() == ids
    with pytest.raises(ValueError, match="does not know the user '9223372036854775808'"):
        find_ids(IdIndex(ids, "user"), [str(2**63)])


def test_a_line_of_ids_ends_where_other_files_end_it(tmp_path: Path) -> None:
    path = tmp_path / "users.txt"
    path.write_bytes(b"A\x85b\ncaf\xe9\n")
    assert read_ids(path, "user") == ["A\x85b", "caf\xe9"]
