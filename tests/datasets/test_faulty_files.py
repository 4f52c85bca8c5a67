"""Faulty files of every kind say in one sentence what is wrong with them, and where."""

import gzip
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from made_files import COLUMNAR, ROWS, as_csv, as_feather, as_json, as_parquet, as_stream, write

from marginmf.datasets import read_ratings

NESTED = pa.table({"user": [[1], [2]], "item": [1, 2], "rating": [1, 2]})
GOOD = {"user": [1, 2], "item": [1, 2], "rating": [1, 2]}


def with_column(name: str, values: Any) -> dict[str, Any]:
    return GOOD | {name: values}


COLUMNAR_FAULTS: dict[str, tuple[Any, str]] = {
    "null user": (with_column("user", [1, None]), "row 2: the user id is missing; fill it in or"),
    "null item": (with_column("item", ["a", None]), "row 2: the item id is missing"),
    "null rating": (with_column("rating", [None, 1.0]), "row 1: the rating is missing; fill it in"),
    "all null": (with_column("user", pa.nulls(2)), "row 1: the user id is missing"),
    "nan rating": (
        with_column("rating", [1.0, float("nan")]),
        "row 2: the rating nan is not a finite number; correct or remove this row",
    ),
    "text rating": (with_column("rating", ["1", "x"]), "row 2: the rating 'x' is not a number"),
    "date rating": (with_column("rating", [date(2020, 1, 1)] * 2), "row 1: the rating datetime"),
    "empty user": (with_column("user", ["a", " "]), "row 2: the user id ' ' is empty"),
    "float user": (
        with_column("user", [1.0, 1.5]),
        "row 2: the user id 1.5 is neither text nor a whole number",
    ),
    "nested": (NESTED, r"the column 'user', which is the user, is nested \(list<.*take it apart"),
    "no rows": (pa.table(GOOD).slice(0, 0), "has no rows; add some"),
    "two columns": (
        {"a": [1], "b": [1]},
        "none of the columns 'a', 'b' is known as the user, item or rating; name the columns",
    ),
    "unknown": (
        {"rating": [5], "user": [1], "thing": [1]},
        "none of the columns 'rating', 'user', 'thing' is known as the item; name the columns "
        "'user', 'item' and 'rating', or say which is which with item=",
    ),
}


def said_by(path: Path, error: type[Exception] = ValueError, **chosen: Any) -> str:
    with pytest.raises(error) as caught:
        read_ratings(path, **chosen)
    text = str(caught.value)
    assert text.startswith(str(path))
    assert text.endswith(".")
    assert "\n" not in text
    return text


@pytest.mark.parametrize("kind", COLUMNAR)
@pytest.mark.parametrize("fault", COLUMNAR_FAULTS)
def test_every_fault_of_a_columnar_file_is_one_sentence(
    tmp_path: Path, kind: str, fault: str
) -> None:
    rows, message = COLUMNAR_FAULTS[fault]
    path = write(tmp_path, COLUMNAR[kind](rows), f"ratings.{kind}")
    with pytest.raises(ValueError, match=message):
        read_ratings(path)
    said_by(path)


JSON_FAULTS: dict[str, tuple[str, str]] = {
    "word": ('{"user": 1, "item": 2, "rating": "good"}', "line 1: the rating 'good' is not a"),
    "null": ('{"user": 1, "item": null, "rating": 3}', "line 1: the item id is missing; fill it"),
    "absent": (
        '{"user": 1, "item": 2, "rating": 3}\n\n{"user": 1, "rating": 3}',
        "line 3: the item id is missing; fill it in or remove this line",
    ),
    "nan": ('{"user": 1, "item": 2, "rating": NaN}', "line 1: the rating nan is not a finite"),
    "huge": ('{"user": 1, "item": 2, "rating": 1e999}', "line 1: the rating inf is not a finite"),
    "true": ('{"user": true, "item": 2, "rating": 1}', "the user id True is neither text nor"),
    "half": ('{"user": 1.5, "item": 2, "rating": 1}', "the user id 1.5 is neither text nor a"),
    "empty": ('{"user": "", "item": 2, "rating": 1}', "line 1: the user id '' is empty"),
    "list": (
        '{"user": [1, 2], "item": 2, "rating": 1}',
        r"line 1: the user id \[1, 2\] is more than one value; correct or remove this line",
    ),
    "object": (
        '{"user": 1, "item": 2, "rating": {"value": 1}}',
        "the rating {'value': 1} is more than one value",
    ),
    "array": (
        '[{"user": 1}]',
        r"line 1: '\[\{\"user\": 1\}\]' is not a JSON object; write one object a line, such as",
    ),
    "broken": ('{"user": 1, "item": 2, "rating": 3}\n{"user": 1,', "line 2: .* is not a JSON obje"),
    "spread": ('{\n "user": 1,\n "item": 2}', "line 1: '{' is not a JSON object"),
    "long": ('{"user": ' + "9" * 5000 + "x}", r"line 1: '.{30,60}\.\.\.' is not a JSON object"),
    "deep": ('{"user": ' + "[" * 100_000, r"line 1: '.{30,60}\.\.\.' is not a JSON object"),
    "no keys": (
        "{}",
        "line 1: none of the columns none is known as the user, item or rating; name the col",
    ),
    "unknown": ('{"stars": 3, "user": 1, "thing": 2}', "line 1: none of the columns 'stars', 'use"),
    "first first": (
        '{"user": 1, "item": 2, "rating": "a"}\n{"user": null, "item": 2, "rating": 3}',
        "line 1: the rating 'a' is not a number",
    ),
}


@pytest.mark.parametrize("fault", JSON_FAULTS)
def test_every_fault_of_json_lines_is_one_sentence(tmp_path: Path, fault: str) -> None:
    content, message = JSON_FAULTS[fault]
    path = write(tmp_path, content.encode(), "ratings.jsonl")
    with pytest.raises(ValueError, match=message):
        read_ratings(path)
    said_by(path)


DAMAGE = "file, or of a form that pyarrow cannot read .*; write it again"
GZIPPED = gzip.compress(as_csv(ROWS) * 99)
DAMAGED: dict[str, tuple[str, bytes, str]] = {
    "cut Parquet": ("r.parquet", as_parquet(ROWS)[:-20], f"is a damaged Parquet {DAMAGE}"),
    "only a mark": ("r.parquet", b"PAR1", f"is a damaged Parquet {DAMAGE}"),
    "cut Arrow": ("r.arrow", as_feather(ROWS)[:-300], f"is a damaged Arrow {DAMAGE}"),
    "cut stream": ("r.arrows", as_stream(ROWS)[:200], f"is a damaged Arrow stream {DAMAGE}"),
    "no stream": ("r.arrows", b"\xff" * 64, f"is a damaged Arrow stream {DAMAGE}"),
    "no mark": ("r.parquet", as_parquet(ROWS)[4:], "is called a file of kind Parquet but is none"),
    "no Arrow": ("r.feather", b"\0" * 99, "is called a file of kind Arrow but is none, or is dama"),
    "old Feather": ("r.feather", b"FEA1\0\0\0\0", "is a Feather file of the old version 1; write"),
    "Parquet in gzip": (
        "r.parquet.gz",
        gzip.compress(as_parquet(ROWS)),
        "is a file of kind Parquet inside gzip; unpack it first",
    ),
    "zip": ("r.zip", b"PK\x03\x04\0\0", "is a damaged zip file"),
    "cut gzip": ("r.csv.gz", GZIPPED[:-9], "is a damaged gzip file"),
    "broken gzip": ("r.csv.gz", GZIPPED[:20] + b"xxxx" + GZIPPED[24:], "is a damaged gzip file"),
    "short gzip": ("r.csv.gz", GZIPPED[:5], "is a damaged gzip file"),
    "cut JSON gzip": ("r.jsonl.gz", gzip.compress(as_json(ROWS))[:-9], "is a damaged gzip file"),
    "empty Parquet": ("r.parquet", b"", "is empty; it needs lines with a user, an item and a rat"),
    "empty JSON": ("r.jsonl", b" \n", "is empty; it needs lines with a user, an item and a rating"),
    "empty gzip": ("r.csv.gz", gzip.compress(b""), "is empty; it needs lines"),
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_every_damage_is_one_sentence(tmp_path: Path, damage: str) -> None:
    name, content, message = DAMAGED[damage]
    path = write(tmp_path, content, name)
    with pytest.raises(ValueError, match=message):
        read_ratings(path)
    said_by(path)


@pytest.mark.parametrize("kind", COLUMNAR)
def test_a_file_with_any_byte_changed_is_read_or_refused(tmp_path: Path, kind: str) -> None:
    rows = {"user": [f"u{k}" for k in range(40)], "item": list(range(40)), "rating": [1.0] * 40}
    whole = COLUMNAR[kind](rows)
    refused = []
    for place in np.random.default_rng(0).integers(0, len(whole), 150).tolist():
        changed = bytearray(whole)
        changed[place] ^= 0xFF
        try:
            read_ratings(write(tmp_path, bytes(changed), "ratings"))
        except ValueError as error:
            refused.append(str(error))
    assert refused
    assert all(message.startswith(str(tmp_path)) for message in refused)
