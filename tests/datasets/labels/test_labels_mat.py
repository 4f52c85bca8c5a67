"""MATLAB files, in the forms in which label sets circulate."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from label_files import dense
from scipy import sparse
from scipy.io import savemat

from marginmf.datasets import read_labels

X = np.array([[0.5, 1, 2], [3, 4, 5], [6, 7, 8], [9, 1, 2], [1, 2, 3]])


Y = np.array([[1, 0], [0, 1], [1, 1], [0, 0], [1, 0]])


SIGNS = 2 * Y - 1


def written(folder: Path, name: str = "songs.mat", **variables: Any) -> Path:
    savemat(folder / name, variables)
    return folder / name


@pytest.mark.parametrize(
    "variables",
    [
        {"data": X, "target": Y},
        {"data": X, "target": SIGNS.T},
        {"X": X, "Y": Y.astype(np.uint8), "note": "hello"},
        {"X": X.T, "Y": SIGNS.T},
        {"X": X.T, "Y": Y},
        {"features": sparse.csc_matrix(X), "labels": sparse.csc_matrix(Y.T.astype(float))},
        {"Data": X.astype(np.float32), "Targets": Y.astype(bool)},
    ],
    ids=lambda variables: " ".join(variables),
)
def test_every_form_is_the_same_table(tmp_path: Path, variables: dict[str, Any]) -> None:
    table = read_labels(written(tmp_path, **variables))
    np.testing.assert_array_equal(dense(table.X), X)
    np.testing.assert_array_equal(dense(table.Y), Y)
    assert (table.name, table.label_names) == ("songs", ("label1", "label2"))
    assert table.train_idx is None
    assert table.source.endswith("songs.mat")


def test_parts_are_joined_and_known(tmp_path: Path) -> None:
    parts = {
        "train_data": X[:3],
        "train_target": SIGNS[:3].T,
        "test_data": X[3:],
        "test_target": SIGNS[3:].T,
    }
    table = read_labels(written(tmp_path, **parts))
    np.testing.assert_array_equal(dense(table.X), X)
    np.testing.assert_array_equal(dense(table.Y), Y)
    assert table.train_idx is not None
    assert table.test_idx is not None
    assert (table.train_idx.tolist(), table.test_idx.tolist()) == ([0, 1, 2], [3, 4])


def test_the_content_tells_whatever_the_name(tmp_path: Path) -> None:
    path = written(tmp_path, X=X, Y=Y).rename(tmp_path / "songs.data")
    assert read_labels(path).n_labels == 2


def test_features_alone_are_read_to_predict(tmp_path: Path) -> None:
    table = read_labels(written(tmp_path, X=X), labels=[])
    assert (table.n_samples, table.n_labels) == (5, 0)


@pytest.mark.parametrize(
    ("variables", "said"),
    [
        ({"X": X}, "no matrix of labels: none of its matrices, 'x', is called 'target'"),
        ({"Y": Y}, "no matrix of features: none of its matrices, 'y', is called 'data'"),
        ({"X": X, "Y": Y * 2}, r"the labels have the values 0.0, 2.0; labels are 0 and 1"),
        ({"X": X, "Y": Y[:4]}, "5 by 3 and the labels 4 by 2, which have no number of rows"),
        ({"X": np.where(X == 9, np.nan, X), "Y": Y}, "not all finite numbers"),
        ({"X": X, "Y": np.array([["a"], ["b"]], dtype=object)}, "the labels are no numbers"),
        ({"train_data": X, "test_data": X}, "is called 'train_target'"),
    ],
)
def test_what_cannot_be_read_is_told(tmp_path: Path, variables: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        read_labels(written(tmp_path, **variables))


@pytest.mark.parametrize("mark", [b"MATLAB 7.3 MAT-file, Platform: GLNXA64", b"\x89HDF\r\n\x1a\n"])
def test_version_7_3_says_how_to_save_it_again(tmp_path: Path, mark: bytes) -> None:
    path = tmp_path / "new.mat"
    path.write_bytes(mark.ljust(600, b"\0"))
    with pytest.raises(ValueError, match=r"version 7\.3, which is not read; .* '-v7'"):
        read_labels(path)


@pytest.mark.parametrize("content", [b"hello", b"MATLAB 5.0 MAT-file".ljust(200), b"\0" * 50])
def test_damaged_files_are_told(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.mat"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"bad\.mat (is not a MATLAB file|has no matrix)"):
        read_labels(path)


def test_arguments_of_other_kinds_are_refused(tmp_path: Path) -> None:
    path = written(tmp_path, X=X, Y=Y)
    for arguments in ({"labels": 2}, {"xml": path}, {"zero_based": True}, {"ignore": ["a"]}):
        with pytest.raises(ValueError, match=r"leave .*= out"):
            read_labels(path, **arguments)
