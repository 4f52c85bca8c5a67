"""What files call by numbers keeps its number; what only counts rows is no feature."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from label_files import as_npz, dense
from made_files import write
from scipy import sparse

from marginmf.datasets import LabelsTable, read_labels


def read(folder: Path, text: str, name: str, **options) -> LabelsTable:
    return read_labels(write(folder, text.encode(), name), **options)


@pytest.mark.parametrize(
    ("text", "options", "names", "row"),
    [
        ("1 1:5 3:7\n", {}, ("1", "2", "3"), [5, 0, 7]),
        ("1 0:5 3:7\n", {}, ("0", "1", "2", "3"), [5, 0, 0, 7]),
        ("1 1:5 3:7\n", {"zero_based": True}, ("0", "1", "2", "3"), [0, 5, 0, 7]),
        ("1 1:5 3:7\n", {"zero_based": False, "n_features": 4}, ("1", "2", "3", "4"), [5, 0, 7, 0]),
        ("1 4 2\n1 1:5 3:7\n", {}, ("0", "1", "2", "3"), [0, 5, 0, 7]),
        ("1 4 2\n1 1:5 3:7\n", {"zero_based": False}, ("1", "2", "3", "4"), [5, 0, 7, 0]),
    ],
)
def test_svmlight_features_are_called_by_their_numbers(tmp_path, text, options, names, row) -> None:
    table = read(tmp_path, text, "made.svm", **options)
    assert table.feature_names == names
    assert table.X.toarray().tolist() == [row]


def test_a_test_file_has_the_columns_of_the_training_file(tmp_path: Path) -> None:
    train = read(tmp_path, "0,4 0:1 3:2\n1 2:1\n", "train.svm")
    test = read(
        tmp_path,
        "4 3:5 1:2\n0 2:7\n",
        "test.svm",
        n_features=train.feature_names,
        labels=train.label_names,
    )
    assert test.feature_names == train.feature_names == ("0", "1", "2", "3")
    assert test.label_names == train.label_names == ("0", "1", "4")
    assert test.X.toarray().tolist() == [[0, 2, 0, 5], [0, 0, 7, 0]]
    assert test.Y.toarray().tolist() == [[0, 0, 1], [1, 0, 0]]


def test_names_of_svmlight_features_may_be_given_in_any_order_of_numbers(tmp_path: Path) -> None:
    text = "1 1:5 3:7 2:4\n2 3:1\n"
    table = read(tmp_path, text, "made.svm", n_features=["3", "1"])
    assert table.X.toarray().tolist() == [[7, 5], [1, 0]]
    assert table.X.has_sorted_indices
    words = read(tmp_path, text, "made.svm", n_features=["a", "b", "c", "d"])
    assert (words.feature_names, words.X.toarray()[0].tolist()) == (
        ("a", "b", "c", "d"),
        [5, 4, 7, 0],
    )


def test_a_far_number_takes_no_memory_for_names(tmp_path: Path) -> None:
    table = read(tmp_path, "1 999999999:1\n", "made.svm")
    assert (table.n_features, table.feature_names) == (999_999_999, None)
    few = read(tmp_path, "1 1:1 999999999:1\n", "made.svm", n_features=["1"], ignore=["999999999"])
    assert few.X.toarray().tolist() == [[1]]


def test_features_that_stand_apart_from_labels_can_be_left_out(tmp_path: Path) -> None:
    table = read(tmp_path, "2 1:5 2:6 3:7\n", "made.svm", ignore=["2", "9"])
    assert (table.feature_names, table.label_names) == (("1", "3"), ("2",))
    assert table.X.toarray().tolist() == [[5, 7]]
    for X in (np.array([[1.0, 2.0]]), sparse.csr_array([[1.0, 2.0]])):
        made = LabelsTable("t", X, [[1]], feature_names=("a", "b"), label_names=("a",))
        path = write(tmp_path, as_npz(made, tmp_path), "other.npz")
        again = read_labels(path, ignore="a")
        assert (again.feature_names, again.label_names) == (("b",), ("a",))
        assert dense(again.X).tolist() == [[2]]


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("1 1:1\n\n2 1:2\n", [1, 0, 2]),
        ("1 1:1\n \t\n2 1:2\n\n\n", [1, 0, 2]),  # the end of the file is not a sample
        ("\n1 1:1\n# nothing\n2 1:2", [0, 1, 2]),
        ("\n3 2 4\n1 1:1\n\n2 1:2\n", [1, 0, 2]),
        ("2 2 4\n1 1:1\n\n2 1:2\n", [1, 2]),  # the sizes say that it is none
        ("4 2 4\n1 1:1\n2 1:2\n\n\n\n", [1, 2, 0, 0]),  # and that these are
    ],
)
def test_blank_lines_of_svmlight_are_samples(tmp_path: Path, text: str, rows: list[int]) -> None:
    table = read(tmp_path, text, "made.svm")
    assert table.X.sum(axis=1).tolist() == rows
    assert (table.Y.sum(axis=1) > 0).tolist() == [row > 0 for row in rows]


@pytest.mark.parametrize("start", [0, 1])
def test_a_line_that_counts_columns_holds_names(tmp_path: Path, start: int) -> None:
    frame = pd.DataFrame([[0.5, 2.0, 1], [1.5, 0.0, 0]], columns=range(start, start + 3))
    table = read(tmp_path, frame.to_csv(index=False), "made.csv", labels=1)
    assert table.feature_names == (str(start), str(start + 1))
    assert table.X.tolist() == [[0.5, 2], [1.5, 0]]
    assert read(tmp_path, frame.to_csv(index=False), "made.csv", labels=[]).n_samples == 2


def test_two_columns_that_count_are_data_where_they_can_be(tmp_path: Path) -> None:
    assert read(tmp_path, "0,1\n5,0\n", "made.csv", labels=1).n_samples == 2
    assert read(tmp_path, "1,2\n5,0\n", "made.csv", labels=1).feature_names == ("1",)


FRAME = pd.DataFrame({"a": [0.5, 2.0, 7.0], "l": [1, 0, 0], "m": [0, 0, 1]})


@pytest.mark.parametrize("index", [[0, 1, 2], [7, 3, 5]])
@pytest.mark.parametrize("again", [False, True])
def test_the_index_of_pandas_in_text_is_no_feature(tmp_path: Path, index, again: bool) -> None:
    text = FRAME.set_index(pd.Index(index)).to_csv()
    text = f"Unnamed: 0{text}" if again else text
    name = "Unnamed: 0" if again else ""
    for labels in (["l", "m"], 2):
        table = read(tmp_path, text, "made.csv", labels=labels)
        assert table.feature_names == ("a",)
        assert table.X.tolist() == [[0.5], [2], [7]]
        assert table.source.endswith(f" without its index {name!r}")
    assert read(tmp_path, text, "made.csv", labels=2, ignore=[name]).feature_names == ("a",)
    zeros = text.replace("0.5", "1").replace("2.0", "0").replace("7.0", "0")
    first = read(tmp_path, zeros, "made.csv", labels=-1)
    assert first.label_names == ("a",)


def test_an_unnamed_column_that_does_not_count_is_a_feature(tmp_path: Path) -> None:
    for column in ("0.5,1", "3,3"):
        one, two = column.split(",")
        table = read(tmp_path, f",a,l\n{one},1,0\n{two},2,1\n", "made.csv", labels=1)
        assert table.feature_names == ("", "a")


@pytest.mark.parametrize("name", [None, "id"])
@pytest.mark.parametrize("kind", ["parquet", "feather"])
def test_the_index_of_pandas_in_columnar_files_is_no_feature(tmp_path, kind, name) -> None:
    frame = FRAME.set_index(pd.Index([7, 3, 5], name=name))
    path = tmp_path / f"made.{kind}"
    if kind == "parquet":
        frame.to_parquet(path)
    else:
        import pyarrow as pa
        from pyarrow import feather

        feather.write_feather(pa.Table.from_pandas(frame), path)
    written = name or "__index_level_0__"
    for labels in (["l", "m"], 2):
        table = read_labels(path, labels=labels)
        assert (table.feature_names, table.label_names) == (("a",), ("l", "m"))
        assert table.source.endswith(f" without its index {written!r}")
    assert read_labels(path, labels=["l", "m"], ignore=written).feature_names == ("a",)


def test_one_column_may_have_a_name_with_a_blank(tmp_path: Path) -> None:
    table = read(tmp_path, "beats a minute\n1.5\n2\n", "made.csv", labels=[])
    assert table.feature_names == ("beats a minute",)
    assert table.X.tolist() == [[1.5], [2]]


def test_a_number_may_be_the_name_of_a_column(tmp_path: Path) -> None:
    text = "a,2010,2011\n1,0,1\n"
    assert read(tmp_path, text, "made.csv", labels=2011).label_names == ("2011",)
    assert read(tmp_path, text, "made.csv", labels=2).label_names == ("2010", "2011")
    with pytest.raises(ValueError, match="labels=2012 does not leave a label and a feature"):
        read(tmp_path, text, "made.csv", labels=2012)


def test_svmlight_zeros_that_are_written_move_no_other_value(tmp_path: Path) -> None:
    text = "1 1:0 2:5\n2 1:3 2:0 3:4\n1 3:7\n"
    names = ["1", "2", "3"]
    table = read(tmp_path, text, "made.svm", n_features=names)
    assert table.X.toarray().tolist() == [[0, 5, 0], [3, 0, 4], [0, 0, 7]]
    assert table.X.nnz == 4


def test_svmlight_features_may_be_written_in_any_order(tmp_path: Path) -> None:
    table = read(tmp_path, "2 3:1 1:2\n\n 2:4 1:.5 # no label\n", "made.svm")
    assert table.X.toarray().tolist() == [[2, 0, 1], [0, 0, 0], [0.5, 4, 0]]
    assert table.Y.toarray().tolist() == [[1], [0], [0]]
