"""Files made to cost time or memory: every reader stops at a limit, with a sentence."""

import gzip
import io
import json
import os
import struct
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from made_files import COLUMNAR, KINDS, as_csv, write
from pyarrow import feather, ipc, parquet

from marginmf._utils.ids import LONGEST_ID
from marginmf.datasets import (
    iterate_pairs,
    read_features,
    read_labels,
    read_pairs,
    read_ratings,
)
from marginmf.datasets.files import packed, source
from marginmf.datasets.files.source import Source
from marginmf.datasets.known_formats import open_named
from marginmf.datasets.labels import arff, svmlight
from marginmf.datasets.table import read_npz
from marginmf.ratings.ids import IdIndex

Reader = Callable[..., Any]


def read_in_chunks(path: Path, **chosen: Any) -> None:
    for _ in iterate_pairs(path, **chosen):
        pass


def read_label_columns(path: Path, **chosen: Any) -> None:
    read_labels(path, labels=1, **chosen)


READERS: dict[str, Reader] = {
    "ratings": read_ratings,
    "pairs": read_pairs,
    "chunks": read_in_chunks,
    "features": read_features,
    "labels": read_label_columns,
}


def said(call: Callable[[], Any], error: type[Exception] = ValueError) -> str:
    with pytest.raises(error) as caught:
        call()
    text = str(caught.value)
    assert text.endswith(".")
    assert "\n" not in text
    assert len(text) < 600
    return text


# Lines: the limit is lowered here, because to write a long line takes longer than to read one.

HEADER = "user,item,rating\n"
LONG = "1" * 5000
LONG_LINES = {
    "csv": HEADER + LONG,
    "tsv": HEADER.replace(",", "\t") + "1\t" * 2500,
    "dat": "user::item::rating\n" + LONG + "::2::3\n",
    "semicolons": HEADER.replace(",", ";") + LONG + "\n",
    "blanks": "user item rating\n" + "1 " * 2500,
    "quoted": HEADER + '"' + "a\n" * 2500,
    "quoted cells": HEADER + '"\n",' * 1300,
    "jsonl": '{"user": 1, "item": 2, "rating": 3}\n{"user": "' + LONG,
    "arff": "@relation a\n@attribute b numeric\n@attribute c {0,1}\n@data\n" + LONG + ",1",
    "svmlight": "1 1:0.5\n1 1:" + LONG,
}


@pytest.mark.parametrize("kind", LONG_LINES)
@pytest.mark.parametrize("packing", ["", ".gz"])
def test_a_line_beyond_the_limit_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, packing: str
) -> None:
    monkeypatch.setattr(source, "LONGEST_LINE", 3000)
    monkeypatch.setattr(source, "CHUNK_BYTES", 100)
    monkeypatch.setattr(arff, "CHUNK_BYTES", 100)
    monkeypatch.setattr(svmlight, "CHUNK_BYTES", 100)
    data = LONG_LINES[kind].encode()
    ending = {"jsonl": ".jsonl", "arff": ".arff", "svmlight": ".svm"}.get(kind, ".csv")
    path = write(tmp_path, gzip.compress(data) if packing else data, f"long{ending}{packing}")
    readers = {"labels"} if kind in ("arff", "svmlight") else READERS.keys() - {"labels"}
    for reader in readers | ({"labels"} if kind == "csv" else set()):
        text = said(lambda reader=reader: READERS[reader](path))
        assert text.startswith(f"{path}, line ")
        assert "the line has more than 3,000 characters" in text


def test_a_line_of_many_chunks_is_whole() -> None:
    data = b"0" * 100_005 + b"\n" + b"1" * 15 + b"\n2"
    chunks = list(source.decode_chunks(io.BytesIO(data), "utf-8", "here", 10))
    assert "".join(chunk.text for chunk in chunks).encode() == data
    assert [chunk.lines_before for chunk in chunks] == [0, 1, 2]


def test_lines_up_to_the_limit_are_read(tmp_path: Path) -> None:
    row = ",".join(["0.25"] * 100_000)
    table = read_labels(write(tmp_path, f"{row},1\n{row},0\n".encode(), "wide.csv"), labels=1)
    assert table.X.shape == (2, 100_000)


@pytest.mark.parametrize("reader", sorted(READERS.keys() - {"labels"}))
def test_a_million_columns_are_not_a_table(tmp_path: Path, reader: str) -> None:
    path = write(tmp_path, b"user,item,rating" + b",a" * 200_000 + b"\n1,1,1\n", "wide.csv")
    assert "at most 100,000 are read" in said(lambda: READERS[reader](path))


# Packed files.


def zipped(name: str, content: bytes, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", method) as archive:
        archive.writestr(name, content)
    return buffer.getvalue()


def as_table(n: int) -> pa.Table:
    return pa.table({"user": ["u" * 100] * n, "item": np.arange(n) % 3, "rating": np.ones(n)})


def in_parquet(compression: str) -> bytes:
    buffer = io.BytesIO()
    parquet.write_table(as_table(20_000), buffer, compression=compression)
    return buffer.getvalue()


def in_feather(compression: str) -> bytes:
    buffer = io.BytesIO()
    feather.write_feather(as_table(20_000), buffer, compression=compression)
    return buffer.getvalue()


def in_stream() -> bytes:
    buffer, table = io.BytesIO(), as_table(20_000)
    options = ipc.IpcWriteOptions(compression="zstd")
    with ipc.new_stream(buffer, table.schema, options=options) as writer:
        writer.write_table(table)
    return buffer.getvalue()


def in_dictionary() -> bytes:
    """Return an Arrow file in which one text of 100 kB occurs 1,000 times."""
    buffer = io.BytesIO()
    users = pa.DictionaryArray.from_arrays(pa.array(np.zeros(1000, np.int32)), ["u" * 100_000])
    batch = pa.record_batch([users, pa.array(np.ones(1000)), pa.array(np.ones(1000))], ROLES)
    with ipc.new_file(buffer, batch.schema) as writer:
        writer.write_batch(batch)
    return buffer.getvalue()


ROLES = ["user", "item", "rating"]
ROWS = as_csv({"user": [1] * 300_000, "item": [1] * 300_000, "rating": [5] * 300_000})
BOMBS: dict[str, tuple[str, bytes]] = {
    "gzip": ("r.csv.gz", gzip.compress(ROWS)),
    "gzip of a line": ("r.csv.gz", gzip.compress(b"0" * 2_000_000)),
    "gzip of nothing": ("r.csv.gz", gzip.compress(b"\n" * 2_000_000)),
    "gzip of JSON": ("r.jsonl.gz", gzip.compress(b'{"user":1,"item":1,"rating":1}\n' * 50_000)),
    "zip": ("r.zip", zipped("r.csv", ROWS)),
    "gzip in zip": ("r.zip", zipped("r.csv.gz", gzip.compress(ROWS))),
    "Parquet": ("r.parquet", in_parquet("zstd")),
    "Parquet, not packed": ("r.parquet", in_parquet("none")),
    "Feather": ("r.feather", in_feather("lz4")),
    "Arrow": ("r.arrow", in_feather("zstd")),
    "Arrow stream": ("r.arrows", in_stream()),
    "Arrow dictionary": ("r.arrow", in_dictionary()),
}


@pytest.mark.parametrize("bomb", BOMBS)
@pytest.mark.parametrize("reader", sorted(READERS.keys() - {"labels"}))
def test_what_unpacks_to_too_much_stops_at_the_limit(
    tmp_path: Path, bomb: str, reader: str
) -> None:
    path = write(tmp_path, BOMBS[bomb][1], BOMBS[bomb][0])
    text = said(lambda: READERS[reader](path, max_bytes=1_000_000))
    assert text.startswith(str(path))
    assert text.endswith(
        "unpacks to more than 1,000,000 bytes; if it should, allow more with max_bytes=."
    )


@pytest.mark.parametrize("bomb", [bomb for bomb in BOMBS if "of" not in bomb])
def test_the_limit_can_be_raised(tmp_path: Path, bomb: str) -> None:
    path = write(tmp_path, BOMBS[bomb][1], BOMBS[bomb][0])
    if bomb != "Arrow dictionary":  # whose id is too long
        assert len(read_ratings(path)) == len(read_ratings(path, max_bytes="1 GiB")) >= 20_000


@pytest.mark.parametrize(
    "name", ["r.csv.gz", "r.svm.gz", "r.arff.gz", "r.zip", "r.npz", "r.parquet"]
)
def test_label_files_stop_at_the_limit(tmp_path: Path, name: str) -> None:
    arff = b"@relation a\n@attribute b numeric\n@attribute c {0,1}\n@data\n" + b"0,1\n" * 500_000
    buffer = io.BytesIO()
    np.savez_compressed(buffer, X=np.zeros((1000, 1000)), Y=np.zeros((1000, 1)))
    content = {
        "r.csv.gz": gzip.compress(b"a,b\n" + b"0,1\n" * 500_000),
        "r.svm.gz": gzip.compress(b"1 1:1\n" * 500_000),
        "r.arff.gz": gzip.compress(arff),
        "r.zip": zipped("a.arff", arff),
        "r.npz": buffer.getvalue(),
        "r.parquet": in_parquet("zstd"),
    }[name]
    path = write(tmp_path, content, name)
    labels = {} if name == "r.npz" else {"labels": ["rating"] if name == "r.parquet" else 1}
    chosen = {"ignore": "user"} if name == "r.parquet" else {}
    text = said(lambda: read_labels(path, **labels, **chosen, max_bytes=100_000))
    assert "unpacks to more than 100,000 bytes" in text


def test_by_default_a_small_file_has_a_limit_and_a_large_one_a_ratio(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packed, "UNPACKED_BYTES", 1000)
    path = write(tmp_path, gzip.compress(ROWS), "r.csv.gz")
    assert "unpacks to more than" in said(lambda: read_ratings(path))
    honest = as_csv({"user": list(range(2000)), "item": [1] * 2000, "rating": [2, 5] * 1000})
    assert len(read_ratings(write(tmp_path, gzip.compress(honest), "h.csv.gz"))) == 2000


@pytest.mark.parametrize("size", [0, -1, "", "2 parsecs", "1e9", 1.5, True])
def test_a_limit_that_is_none_is_refused(tmp_path: Path, size: Any) -> None:
    path = write(tmp_path, gzip.compress(ROWS), "r.csv.gz")
    assert said(lambda: read_ratings(path, max_bytes=size)).startswith("max_bytes=")


@pytest.mark.parametrize("method", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_members_that_zipfile_unpacks_whole_are_refused(tmp_path: Path, method: int) -> None:
    path = write(tmp_path, zipped("r.csv", ROWS, method), "r.zip")
    assert "pack it again as usual (deflate)" in said(lambda: read_ratings(path))


def test_a_member_that_is_larger_than_it_says_is_not_unpacked(tmp_path: Path) -> None:
    content = bytearray(zipped("a.arff", b"@relation a\n" + b"%" * 5_000_000))
    for mark, offset in ((b"PK\x03\x04", 22), (b"PK\x01\x02", 24)):
        struct.pack_into("<I", content, content.index(mark) + offset, 20)
    text = said(lambda: read_labels(write(tmp_path, bytes(content), "a.zip"), labels=1))
    assert "damaged zip file" in text


@pytest.mark.parametrize("name", ["/abs.csv", "a//b.csv", "a\\b.csv", "x" * 5000])
def test_members_of_any_name_are_read(tmp_path: Path, name: str) -> None:
    path = write(tmp_path, zipped(name, b"user,item,rating\nann,x,5\nbob,y,?\n"), "r.zip")
    text = said(lambda: read_ratings(path))
    assert text.startswith(str(tmp_path))
    assert "line 3: the rating '?' is not a number" in text


def test_files_of_columns_in_archives_are_unpacked_first(tmp_path: Path) -> None:
    path = write(tmp_path, zipped("r.parquet", in_parquet("none")), "r.zip")
    assert "is a file of kind Parquet inside a zip archive" in said(lambda: read_ratings(path))


def test_arrays_of_ratings_stop_at_the_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packed, "UNPACKED_BYTES", 1000)
    np.savez_compressed(tmp_path / "r.npz", user=np.zeros(10**6), users=np.zeros(1))
    assert "unpacks to more than" in said(lambda: read_npz(tmp_path / "r.npz", "r"))


def test_arrays_of_empty_values_are_refused(tmp_path: Path) -> None:
    array = io.BytesIO()
    about = {"shape": (10**12,), "fortran_order": False, "descr": "|S0"}
    np.lib.format.write_array_header_1_0(array, about)
    write(tmp_path, zipped("titles.npy", array.getvalue()), "r.npz")
    assert "titles.npy is empty, but has the shape (1000000000000,)" in said(
        lambda: read_npz(tmp_path / "r.npz", "r")
    )


def test_columns_that_take_no_room_have_a_size(tmp_path: Path) -> None:
    batch = pa.record_batch([pa.nulls(10**6), pa.nulls(10**6)], ["item", "year"])
    with ipc.new_file(str(tmp_path / "r.arrow"), batch.schema) as writer:
        writer.write_batch(batch)
    text = said(lambda: read_features(tmp_path / "r.arrow", max_bytes="1MB"))
    assert "unpacks to more than" in text


# JSON.


@pytest.mark.parametrize("value", ["[" * 100_000, '{"a":' * 100_000, "9" * 5000])
def test_deep_and_huge_values_of_json_are_one_sentence(tmp_path: Path, value: str) -> None:
    path = write(tmp_path, b'{"user": ' + value.encode() + b"\n", "r.jsonl")
    for reader in READERS.keys() - {"labels"}:
        assert "is not a JSON object" in said(lambda reader=reader: READERS[reader](path))


def test_objects_with_keys_of_their_own_are_no_table(tmp_path: Path) -> None:
    path = write(tmp_path, b"".join(b'{"k%d": 1}\n' % k for k in range(3000)), "r.jsonl")
    assert "give all objects the same keys" in said(lambda: read_features(path))


def test_numbers_with_one_hash_are_refused(tmp_path: Path) -> None:
    users = [(2**61 - 1) * k for k in range(5, 3000)]
    objects = ({"user": user, "item": 1, "rating": 1} for user in users)
    path = write(tmp_path, "".join(f"{json.dumps(one)}\n" for one in objects).encode(), "r.jsonl")
    assert "made to be slow to look up" in said(lambda: read_ratings(path))
    assert "made to be slow to look up" in said(lambda: IdIndex(users))


# Ids, names and ratings, in files and in memory.

LONG_ID = "a" * (LONGEST_ID + 1)
BAD_IDS: dict[str, tuple[Any, str]] = {
    "long": (LONG_ID, r"has 1,001 characters, and at most 1,000 are allowed"),
    "null character": ("a\0b", "has a null character; remove that"),
    "digits": (10**LONGEST_ID, "has 1,001 digits, and at most 1,000 are allowed"),
}


@pytest.mark.parametrize("fault", BAD_IDS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("reader", ["ratings", "pairs", "chunks"])
def test_ids_in_files_have_the_same_limit(
    tmp_path: Path, fault: str, kind: str, reader: str
) -> None:
    value, problem = BAD_IDS[fault]
    value = str(value) if kind in COLUMNAR or "json" not in kind else value
    rows = {"user": ["x", value], "item": [1, 2], "rating": [1, 2]}
    if isinstance(value, int):
        rows["user"][0] = 1
    path = write(tmp_path, KINDS[kind](rows), f"r.{kind}")
    text = said(lambda: READERS[reader](path))
    if not (fault == "null character" and "not a text file" in text):
        assert problem.replace("digits", "digits" if isinstance(value, int) else "characters")[
            :10
        ] in text.replace(str(tmp_path), "")
        assert "id " in text


@pytest.mark.parametrize("rating", [1e101, -1e300, float("inf"), float("nan")])
@pytest.mark.parametrize("kind", KINDS)
def test_ratings_in_files_are_finite_and_not_huge(tmp_path: Path, kind: str, rating: float) -> None:
    rows = {"user": [1, 2], "item": [1, 2], "rating": [1.0, rating]}
    text = said(lambda: read_ratings(write(tmp_path, KINDS[kind](rows), f"r.{kind}")))
    assert "beyond 1e+30" in text or "is not a finite number" in text


def test_a_decimal_comma_in_features_is_read(tmp_path: Path) -> None:
    path = write(tmp_path, b"item;price\n1;2,5\n2;3\n", "f.csv")
    assert read_features(path)["price"].tolist() == [2.5, 3.0]


# Paths.


def strange_paths(folder: Path) -> dict[str, Path]:
    found = {"null": Path("a\0b"), "long": folder / ("x" * 5000), "below": folder / "f.csv" / "g"}
    write(folder, b"1,1,1\n", "f.csv")
    if os.name == "posix":
        (folder / "loop").symlink_to(folder / "loop")
        (folder / "gone").symlink_to(folder / "nowhere")
        found |= {"loop": folder / "loop", "gone": folder / "gone", "device": Path("/dev/zero")}
    return found | {"folder": folder}


@pytest.mark.parametrize("reader", READERS)
def test_paths_that_lead_nowhere_are_one_sentence(tmp_path: Path, reader: str) -> None:
    for path in strange_paths(tmp_path).values():
        with pytest.raises((OSError, ValueError)) as caught:
            READERS[reader](path)
        text = str(caught.value)
        assert text.endswith((".", ")."))
        assert "[Errno" not in text
        assert len(text) < 600


def test_a_pipe_without_end_stops_at_the_limit(tmp_path: Path) -> None:
    if not hasattr(os, "mkfifo"):
        pytest.skip("this system has no named pipes")
    os.mkfifo(tmp_path / "pipe")
    if os.fork() == 0:  # pragma: no cover
        try:
            with open(tmp_path / "pipe", "wb") as pipe:
                while True:
                    pipe.write(b"1,1,1\n" * 1000)
        finally:
            os._exit(0)
    text = said(lambda: Source(tmp_path / "pipe", max_bytes=100_000))
    os.wait()
    assert "sends more than 100,000 bytes" in text


def test_damaged_archives_of_known_datasets_are_one_sentence(tmp_path: Path) -> None:
    path = tmp_path / "movies.dat"

    def read_whole() -> None:
        with open_named(path, "r.dat") as file:
            file.read()

    for content in (gzip.compress(b"1::1::1\n" * 99)[:-9], zipped("r.dat", b"1" * 99)[:-30]):
        path.write_bytes(content)
        assert "is a damaged" in said(read_whole)
