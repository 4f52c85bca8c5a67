"""Arrays in .npz files: what is refused, and in which words."""

import io
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
