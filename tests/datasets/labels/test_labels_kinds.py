"""Kinds of file are told apart by what is in them, and read as they say."""

import gzip
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from label_files import NAMED, as_svmlight, columns, dense
from made_files import as_parquet, write

from marginmf.datasets import LabelsTable, read_labels
from marginmf.datasets.labels import tabular

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


def test_svmlight_has_comments_blanks_and_samples_without_labels(tmp_path: Path) -> None:
    text = "# made\n3,1 2:0.5 # first\n # between\n 1:1\t3:-2e0\n7\n2:4\n"
    table = read_labels(write(tmp_path, text.encode(), "made.svm"))
    assert table.label_names == ("1", "3", "7")
    assert table.X.toarray().tolist() == [[0, 0.5, 0], [1, 0, -2], [0, 0, 0], [0, 4, 0]]
    assert table.Y.toarray().tolist() == [[1, 1, 0], [0, 0, 0], [0, 0, 1], [0, 0, 0]]


def test_svmlight_features_count_from_0_where_one_of_them_is_0(tmp_path: Path) -> None:
    table = read_labels(write(tmp_path, b"0 0:1 2:3\n1 1:5\n", "made.svm"), n_features=4)
    assert table.X.toarray().tolist() == [[1, 0, 3, 0], [0, 5, 0, 0]]


def test_svmlight_labels_may_be_given_names(tmp_path: Path) -> None:
    path = write(tmp_path, b"0,2 1:1\n", "made.svm")
    table = read_labels(path, labels=["rock", "jazz", "folk"])
    assert table.label_names == ("rock", "jazz", "folk")
    assert table.Y.toarray().tolist() == [[1, 0, 1]]
    assert read_labels(path, labels=5).label_names == ("0", "1", "2", "3", "4")


def test_the_first_line_of_extreme_classification_says_the_sizes(tmp_path: Path) -> None:
    table = read_labels(write(tmp_path, b"2 4 3\n0,2 1:1\n 3:2\n", "train.txt"))
    assert table.X.toarray().tolist() == [[0, 1, 0, 0], [0, 0, 0, 2]]
    assert table.Y.toarray().tolist() == [[1, 0, 1], [0, 0, 0]]


def test_text_without_names_takes_a_count(tmp_path: Path) -> None:
    for text in ("1,2,0\n3,4,1\n", "1;2;0\n3;4;1\n", "1 2 0\n3  4 1\n", "1\t2\t0\n3\t4\t1\n"):
        table = read_labels(write(tmp_path, text.encode(), "made.txt"), labels=1)
        assert table.X.tolist() == [[1, 2], [3, 4]]
        assert table.Y.toarray().ravel().tolist() == [0, 1]
        assert (table.feature_names, table.label_names) == (None, ("label1",))


def test_truth_values_and_quotes_of_text_are_read(tmp_path: Path) -> None:
    text = 'id,"a, b",flag,l\nx,"1.5",True,true\ny,2,False,0\n'
    table = read_labels(write(tmp_path, text.encode(), "made.csv"), labels=["l"], ignore="id")
    assert table.X.tolist() == [[1.5, 1], [2, 0]]
    assert table.feature_names == ("a, b", "flag")
    assert table.Y.toarray().ravel().tolist() == [1, 0]


def test_quick_and_careful_text_are_read_alike(tmp_path: Path, monkeypatch) -> None:
    generator = np.random.default_rng(0)
    rows = np.hstack([generator.normal(size=(40, 3)), generator.integers(0, 2, (40, 2))]).tolist()
    text = "a,b,c,l,m\n" + "".join(",".join(map(repr, row)) + "\n" for row in rows)
    quick = read_labels(write(tmp_path, text.encode(), "made.csv"), labels=2)
    quotes = text.replace("a,b", '"a",b') + f'"{rows[0][0]!r}",0,0,1,1\n'
    monkeypatch.setattr(tabular, "BLOCK_VALUES", 35)  # several blocks
    careful = read_labels(write(tmp_path, quotes.encode(), "made.csv"), labels=2)
    np.testing.assert_array_equal(quick.X, careful.X[:-1])
    np.testing.assert_array_equal(dense(quick.Y), dense(careful.Y)[:-1])
    assert careful.X[-1].tolist() == [rows[0][0], 0, 0]


def test_columnar_files_may_hold_other_numbers(tmp_path: Path) -> None:
    from decimal import Decimal

    made = pa.table(
        {
            "x": pa.array([1, 2], pa.uint8()),
            "d": pa.array([Decimal("0.5"), Decimal("1.5")]),
            "c": pa.array([7, 8]).dictionary_encode(),
            "name": ["a", "b"],
            "l": [True, False],
        }
    )
    path = write(tmp_path, as_parquet(made), "made.parquet")
    table = read_labels(path, labels="l", ignore=["name"])
    assert table.X.tolist() == [[1, 0.5, 7], [2, 1.5, 8]]
    assert table.Y.toarray().ravel().tolist() == [1, 0]


def test_wide_files_are_read_some_rows_at_a_time(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(tabular, "BLOCK_VALUES", 8)
    path = write(tmp_path, as_parquet(columns(TABLE)), "made.parquet")
    np.testing.assert_array_equal(read_labels(path, labels=2).X, TABLE.X)


def test_without_pyarrow_a_columnar_file_says_what_to_install(tmp_path: Path, monkeypatch) -> None:
    path = write(tmp_path, as_parquet(columns(TABLE)), "made.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match=r"made\.parquet, .* needs pyarrow, which is not inst"):
        read_labels(path, labels=2)
