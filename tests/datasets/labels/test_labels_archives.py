"""Zip archives of ARFF files: as their owners publish them, and faulty ones."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from label_files import TABLE, as_arff, as_xml, as_zip, check, dense
from made_files import write

from marginmf.datasets import read_labels

NAMES = ["emotions", "scene", "yeast", "medical", "genbase", "enron", "bibtex", "cal500", "corel5k"]
UNDIVIDED = {"cal500"}


@pytest.mark.parametrize("name", NAMES)
def test_an_archive_is_read_as_the_arrays_of_the_same_name(name: str, data_root: Path) -> None:
    archive = read_labels(data_root / "original" / f"{name}.zip")
    arrays = read_labels(data_root / "labels" / f"{name}.npz")
    assert archive.name == arrays.name == name
    assert archive.label_names == arrays.label_names
    assert archive.feature_names == arrays.feature_names
    assert type(archive.X) is type(arrays.X)
    assert abs(archive.X.astype(np.float32) - arrays.X).max() == 0
    assert (archive.Y != arrays.Y).nnz == 0
    if name in UNDIVIDED:
        assert archive.train_idx is None
    else:
        np.testing.assert_array_equal(archive.train_idx, arrays.train_idx)
        np.testing.assert_array_equal(archive.test_idx, arrays.test_idx)


def test_the_column_that_names_the_rows_is_left_out_and_said(data_root: Path) -> None:
    table = read_labels(data_root / "original" / "genbase.zip")
    assert table.source.endswith("genbase.zip without 'protein'")
    assert table.n_features == 1185


def test_an_unpacked_file_finds_the_xml_beside_it(data_root: Path, tmp_path: Path) -> None:
    import zipfile

    with zipfile.ZipFile(data_root / "original" / "yeast.zip") as archive:
        archive.extractall(tmp_path)
    folder = tmp_path / "yeast"
    whole, part = read_labels(folder / "yeast.arff"), read_labels(folder / "yeast-test.arff")
    assert (whole.n_samples, part.n_samples) == (2417, 917)
    # The XML has another order; that of the ARFF file is kept.
    assert whole.label_names == tuple(f"Class{k}" for k in range(1, 15))
    assert whole.cardinality == pytest.approx(4.237, abs=5e-4)


def test_the_parts_of_an_archive_are_its_whole(data_root: Path, tmp_path: Path) -> None:
    import zipfile

    with zipfile.ZipFile(data_root / "original" / "emotions.zip") as archive:
        archive.extractall(tmp_path)
    whole = read_labels(tmp_path / "emotions" / "emotions.arff")
    parts = read_labels(data_root / "original" / "emotions.zip")
    rows = [sorted(np.hstack([t.X, dense(t.Y)]).tolist()) for t in (whole, parts)]
    assert rows[0] == rows[1]


def test_an_archive_without_parts_is_read_whole(tmp_path) -> None:
    files = {"b/made.arff": as_arff(TABLE), "b/made.xml": as_xml(("q", "p")), "b/readme.txt": b"x"}
    table = read_labels(write(tmp_path, as_zip(files), "archive.zip"))
    assert (table.name, table.train_idx) == ("archive", None)
    assert table.source == f"read from {tmp_path / 'archive.zip'}"


def damaged(content: bytes) -> bytes:
    place = content.index(b"made") + 40
    return content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :]


XML = as_xml(("p", "q"))
WHOLE = as_zip({"made.arff": as_arff(TABLE), "made.xml": XML})
ARCHIVE_FAULTS: dict[str, tuple[str, bytes, str]] = {
    "cut": ("a.zip", WHOLE[:-30], "is a damaged zip file"),
    "half": ("a.zip", WHOLE[: len(WHOLE) // 2], "is a damaged zip file"),
    "changed": ("a.zip", damaged(WHOLE), "is a damaged zip file"),
    "no ARFF": ("a.zip", as_zip({"x.txt": b"1"}), "has no ARFF file in it, only 'x.txt'; unpack"),
    "empty zip": ("a.zip", as_zip({}), "does not hold a label dataset|has no ARFF file|is not an"),
    "several": (
        "a.zip",
        as_zip({"x.arff": as_arff(TABLE), "y.arff": as_arff(TABLE), "y.xml": XML}),
        "has 2 ARFF files, 'x.arff', 'y.arff'; unpack it, and read the one you mean",
    ),
    "no XML": ("a.zip", as_zip({"x.arff": as_arff(TABLE)}), "x.arff does not say which attributes"),
    "parts differ": (
        "a.zip",
        as_zip(
            {
                "x-train.arff": as_arff(TABLE),
                "x-test.arff": as_arff(TABLE).replace(b"@attribute b", b"@attribute z"),
                "x.xml": XML,
            }
        ),
        "training file x-train.arff and its test file x-test.arff differ in their feature names",
    ),
    "bad member": (
        "a.zip",
        as_zip({"x.arff": as_arff(TABLE)[:-4], "x.xml": XML}),
        "a.zip/x.arff, line 13: ",
    ),
    "zip in gzip": ("a.zip.gz", gzip.compress(WHOLE), "is a zip file inside gzip; unpack it first"),
    "cut gzip": ("a.arff.gz", gzip.compress(as_arff(TABLE))[:-9], "is a damaged gzip file"),
    "JSON": ("a.jsonl", b'{"a": 1}\n', "is JSON, which is not read for labels; write it as CSV"),
    "picture": ("a.png", b"\x89PNG\0\0", "is not a text file; export the labels as CSV"),
    "no Parquet": ("a.parquet", b"\0" * 99, "is called a file of kind Parquet but is none"),
}


@pytest.mark.parametrize("fault", ARCHIVE_FAULTS)
def test_every_fault_of_the_file_itself_is_one_sentence(tmp_path: Path, fault: str) -> None:
    name, content, message = ARCHIVE_FAULTS[fault]
    check(write(tmp_path, content, name), message)
