"""Formats are told apart by their content, and what they have in common."""

import gzip
from pathlib import Path

import numpy as np
import pytest
from label_files import NAMED, as_arff, as_npz, as_svmlight, dense
from made_files import write
from scipy import sparse

from marginmf.datasets import LabelsTable, read_labels

TABLE = LabelsTable(
    "t",
    [[0.5, 1.0], [2.0, 0.0], [0.25, 3.0]],
    [[1, 0], [1, 1], [0, 0]],
    feature_names=("tempo", "loud"),
    label_names=("tag_calm", "tag_sad"),
)


@pytest.mark.parametrize("kind", NAMED)
def test_the_content_says_the_kind_whatever_the_name(tmp_path: Path, kind: str) -> None:
    table = read_labels(write(tmp_path, NAMED[kind](TABLE), "songs"), labels="tag_*")
    np.testing.assert_array_equal(dense(table.X), dense(TABLE.X))
    np.testing.assert_array_equal(dense(table.Y), dense(TABLE.Y))


def test_svmlight_is_known_by_its_lines(tmp_path: Path) -> None:
    for name, content in (("a", as_svmlight(TABLE)), ("b.gz", gzip.compress(as_svmlight(TABLE)))):
        table = read_labels(write(tmp_path, content, name))
        np.testing.assert_array_equal(dense(table.X), dense(TABLE.X))
        assert table.label_names == ("1", "2")


def test_files_that_are_not_there_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"There is no file .*made.arff; check the name"):
        read_labels(tmp_path / "made.arff")
    with pytest.raises(IsADirectoryError, match="is a folder; name the file of labels in it"):
        read_labels(tmp_path)
    path = write(tmp_path, as_arff(TABLE), "made.arff")
    with pytest.raises(FileNotFoundError, match=r"There is no file .*x.xml; xml= is the file that"):
        read_labels(path, xml=tmp_path / "x.xml")


def test_features_that_stand_apart_from_labels_can_be_left_out(tmp_path: Path) -> None:
    path = write(tmp_path, b"2 1:5 2:6 3:7\n", "made.svm")
    table = read_labels(path, ignore=["2", "9"])
    assert (table.feature_names, table.label_names) == (("1", "3"), ("2",))
    assert table.X.toarray().tolist() == [[5, 7]]
    for X in (np.array([[1.0, 2.0]]), sparse.csr_array([[1.0, 2.0]])):
        made = LabelsTable("t", X, [[1]], feature_names=("a", "b"), label_names=("a",))
        path = write(tmp_path, as_npz(made, tmp_path), "other.npz")
        again = read_labels(path, ignore="a")
        assert (again.feature_names, again.label_names) == (("b",), ("a",))
        assert dense(again.X).tolist() == [[2]]
