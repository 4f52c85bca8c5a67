"""Arrays in .npz files: what is refused, and in which words."""

import io
import struct
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from label_files import TABLE, as_npz, check
from made_files import write

from marginmf.datasets import read_labels


def arrays(**changed: Any) -> bytes:
    made = {
        "X_data": np.ones(2),
        "X_indices": np.array([0, 1]),
        "X_indptr": np.array([0, 1, 2]),
        "X_shape": np.array([2, 2]),
        "Y": np.eye(2),
    }
    made |= changed
    buffer = io.BytesIO()
    np.savez(buffer, **{key: value for key, value in made.items() if value is not None})
    return buffer.getvalue()


NPZ_FAULTS: dict[str, tuple[bytes, str]] = {
    "no labels": (arrays(Y=None), "it has neither Y nor Y_data, but X_data, X_indices, X_indptr"),
    "no features": (arrays(X_data=None), "it has neither X nor X_data"),
    "outside": (arrays(X_indices=np.array([0, 7])), "does not hold a label dataset: "),
    "negative": (arrays(X_indices=np.array([0, -7])), "does not hold a label dataset: "),
    "bad pointers": (arrays(X_indptr=np.array([0, 9, 2])), "does not hold a label dataset: "),
    "bad shape": (arrays(X_shape=np.array([2])), "does not hold a label dataset: "),
    "nan": (arrays(X_data=np.array([1, np.nan])), "the features are not all finite numbers"),
    "words": (arrays(X=np.array([["a"], ["b"]])), "the features are not all finite numbers"),
    "label 2": (arrays(Y=2 * np.eye(2)), "labels of a LabelsTable are 0 or 1, but one of them is"),
    "rows differ": (arrays(Y=np.eye(3)), r"their shapes are \(2, 2\) and \(3, 3\)"),
    "names": (arrays(label_names=np.array(["a"])), "There are 1 label names for 2 labels"),
    "labels alike": (arrays(label_names=["p", "p"]), "the labels 1 and 2 are both called 'p'"),
    "features alike": (arrays(feature_names=["a", "a"]), "features 1 and 2 are both called 'a'"),
    "split": (arrays(train_idx=np.array([5])), "train_idx names row 5, but the rows are 0 to 1"),
    "pickled": (arrays(Y=np.array([{}], dtype=object)), "is not an npz file of arrays, or is dam"),
    "cut": (arrays()[:-30], "is a damaged zip file"),
}


@pytest.mark.parametrize("fault", NPZ_FAULTS)
def test_every_fault_of_arrays_is_one_sentence(tmp_path: Path, fault: str) -> None:
    content, message = NPZ_FAULTS[fault]
    check(write(tmp_path, content, "made.npz"), message)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"labels": 1}, "says itself which labels it has; leave labels= out"),
        ({"labels": ["p"]}, "says itself which labels it has; leave labels= out"),
        ({"xml": "a.xml"}, "is not an ARFF file, .* leave xml= out"),
        ({"ignore": "a"}, "its features have no names; leave ignore= out"),
        ({"zero_based": True}, "is not an svmlight file, .* leave zero_based= out"),
    ],
)
def test_what_does_not_go_with_arrays_is_refused(
    tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    check(write(tmp_path, arrays(), "made.npz"), message, **options)


def test_arrays_with_any_byte_changed_are_read_or_refused(tmp_path: Path) -> None:
    whole = as_npz(TABLE, tmp_path)
    refused = []
    for place in np.random.default_rng(0).integers(0, len(whole), 60).tolist():
        changed = bytearray(whole)
        changed[place] ^= 0xFF
        try:
            read_labels(write(tmp_path, bytes(changed), "again.npz"), labels=2)
        except ValueError as error:
            refused.append(str(error))
    assert refused
    assert all(one.startswith(str(tmp_path)) for one in refused)


def with_header(shape: tuple[int, ...], dtype: str = "<f8", body: bytes = b"") -> bytes:
    """Return a file of labels whose features have a header of their own."""
    header = f"{{'descr': {dtype!r}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    array = b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header + body
    buffer = io.BytesIO(arrays(X_data=None))
    with zipfile.ZipFile(buffer, "a") as archive:
        archive.writestr("X.npy", array)
    return buffer.getvalue()


def with_size(position: int, size: int) -> bytes:
    """Return a file whose directory says of the first array that it is of another size."""
    changed = bytearray(arrays())
    entry = changed.index(b"PK\1\2")
    changed[entry + position : entry + position + 4] = struct.pack("<I", size)
    return bytes(changed)


BYTES = "bytes, which are not those of its shape"
CLAIMS: dict[str, tuple[bytes, str]] = {
    "numbers": (with_header((10**6, 10**6)), rf"X.npy has 0 {BYTES} \(1000000, 1000000\)"),
    "too many": (with_header((10**30,), body=bytes(8)), rf"X.npy has 8 {BYTES}"),
    "too few": (with_header((1, 1), body=bytes(800)), rf"X.npy has 800 {BYTES}"),
    "negative": (with_header((-1, -8), body=bytes(64)), rf"X.npy has 64 {BYTES} \(-1, -8\)"),
    "texts": (with_header((2, 2), "<U99999999"), rf"X.npy has 0 {BYTES}"),
    "empty rows": (with_header((10**12, 0)), r"X.npy is empty, but has the shape \(1000000000000"),
    "empty texts": (with_header((10**9, 2), "<U0"), "X.npy is empty, but has the shape"),
    "objects": (arrays(Y=np.array([{}, 1], object)), "Y.npy holds Python objects"),
    "fields": (with_header((2, 2), "|O"), "X.npy holds Python objects"),
    "size": (with_size(24, 2**20), "X_data.npy is said to be longer than it can be"),
    "packed size": (with_size(20, 2**31), "its arrays are said to be longer than the file"),
    "columns": (
        arrays(X_shape=np.array([2, 10**9])),
        "there are 1,000,000,000 columns of X and 2 entries, which is out of proportion",
    ),
    "labels": (
        arrays(Y=None, **{f"Y_{key}": value for key, value in {
            "data": [1], "indices": [0], "indptr": [0, 1, 1], "shape": [2, 10**12]}.items()}),
        "there are 1,000,000,000,000 columns of Y and 1 entries",
    ),
    "names": (arrays(label_names=np.full(10**6, "")), "There are 1,000,000 label names for 2"),
}  # fmt: skip


@pytest.mark.parametrize("claim", CLAIMS)
def test_what_is_claimed_is_compared_with_what_is_there(tmp_path: Path, claim: str) -> None:
    content, message = CLAIMS[claim]
    check(write(tmp_path, content, "made.npz"), message)


def test_extreme_classification_is_in_proportion(tmp_path: Path) -> None:
    """A few rows of a data set with millions of labels and features, most of which have none."""
    table = read_labels(write(tmp_path, arrays(X_shape=np.array([2, 4_000_000])), "made.npz"))
    assert table.n_features == 4_000_000
    n = 100_000
    parts = {"data": np.ones(n), "indices": np.arange(n), "indptr": [0, n, n], "shape": [2, 64 * n]}
    more = arrays(**{f"X_{key}": np.array(value) for key, value in parts.items()})
    assert read_labels(write(tmp_path, more, "more.npz")).n_features == 64 * n
