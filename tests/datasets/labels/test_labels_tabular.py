"""CSV, TSV, Parquet and Feather files of numbers, some of whose columns are labels."""

import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from label_files import TABLE, check, columns, dense
from made_files import as_feather, as_parquet, write

from marginmf.datasets import LabelsTable, read_labels
from marginmf.datasets.labels import tabular


def read(folder: Path, text: str, name: str, **options) -> LabelsTable:
    return read_labels(write(folder, text.encode(), name), **options)


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


TEXT_FAULTS: dict[str, tuple[str, dict[str, Any], str]] = {
    "empty": (" \n", {"labels": 1}, "is empty; it needs lines of features and labels"),
    "labels not said": (
        "a,b\n1,0\n",
        {},
        r"does not say which of its columns are labels; say so with labels=n .* are 'a', 'b'",
    ),
    "no rows": ("a,b\n", {"labels": 1}, "has no rows after its line of names; add some"),
    "no names": ("1,0\n", {"labels": ["b"]}, "has no line of names; say with labels=n"),
    "word": (
        "a,b\n1,0\nx,0\n",
        {"labels": 1},
        r"line 3: 'x' in the column 'a' is not a number; .*",
    ),
    "hole": ("a,b\n1,0\n,0\n", {"labels": 1}, "line 3: a value in the column 'a' is missing"),
    "label hole": ("a,b\n1,\n", {"labels": 1}, "line 2: a value in the column 'b' is missing; lab"),
    "nan": ("a,b\nnan,0\n", {"labels": 1}, "line 2: 'nan' in the column 'a' is not a finite numb"),
    "label 2": (
        "a,b\n1,0\n1,2\n",
        {"labels": 1},
        "line 3: 2 in the column 'b' is no label; labels",
    ),
    "label word": ("a,b\n1,maybe\n", {"labels": 1}, "line 2: 'maybe' in the column 'b' is not a n"),
    "short line": (
        "a,b\n1,0\n1\n",
        {"labels": 1},
        r"line 3: 1 column\(s\) where the first line ha",
    ),
    "long line": ("a,b\n1,0,1\n", {"labels": 1}, r"line 2: 3 column\(s\) where the first line has"),
    "quotes": ('a,b\n"1,0\n', {"labels": 1}, "the quotes do not match"),
    "names alike": (
        "a,b,a\n1,2,0\n",
        {"labels": 1},
        "the columns 1 and 3 are both called 'a'; give each a name of its own",
    ),
    "blanks alike": ("a,b, a,l\n1,2,3,0\n", {"labels": 1}, "columns 1 and 3 are both called 'a'"),
    "labels alike": ("a,b,b\n1,1,0\n", {"labels": 2}, "columns 2 and 3 are both called 'b'"),
    "xml": ("a,b\n1,0\n", {"labels": 1, "xml": "a.xml"}, "is not an ARFF file, .* leave xml= out"),
    "zero based": (
        "a,b\n1,0\n",
        {"labels": 1, "zero_based": True},
        "is not an svmlight file, .* leave zero_based= out",
    ),
    "one column": ("a\n1\n", {"labels": 1}, "labels=1 does not leave a label and a feature of its"),
}


@pytest.mark.parametrize("fault", TEXT_FAULTS)
def test_every_fault_of_text_is_one_sentence(tmp_path: Path, fault: str) -> None:
    content, options, message = TEXT_FAULTS[fault]
    check(write(tmp_path, content.encode(), "made.csv"), message, **options)


@pytest.mark.parametrize("labels", [1.5, True, [1], {"a": 1}])
def test_an_odd_choice_of_labels_is_refused(tmp_path: Path, labels: Any) -> None:
    path = write(tmp_path, b"a,b\n1,0\n", "made.csv")
    with pytest.raises(ValueError, match="Columns are given as a count, as names, or as a pattern"):
        read_labels(path, labels=labels)


COLUMNAR_FAULTS: dict[str, tuple[Any, str]] = {
    "text": ({"a": ["x"], "l": [1]}, "the data in the column 'a' is string, not numbers; corr"),
    "nested": ({"a": [[1]], "l": [1]}, "the data in the column 'a' is list<.*, not numbers"),
    "null": ({"a": [1, None], "l": [1, 0]}, "row 2: a value in the column 'a' is missing"),
    "null label": ({"a": [1, 2], "l": [1, None]}, "row 2: .* 'l' is missing; labels are 0 or 1"),
    "nan": ({"a": [1.0, float("nan")], "l": [1, 0]}, "row 2: nan in the column 'a' is not a fin"),
    "label 3": ({"a": [1, 2], "l": [3, 0]}, "row 1: 3 in the column 'l' is no label; labels are"),
    "no rows": (pa.table({"a": [1], "l": [1]}).slice(0, 0), "has no rows; add some"),
}


def test_two_columns_of_one_name_are_refused(tmp_path: Path) -> None:
    made = pa.Table.from_arrays([pa.array([1.0])] * 3, names=["a", "a", "l"])
    path = write(tmp_path, as_parquet(made), "made.parquet")
    check(path, "the columns 1 and 2 are both called 'a'; give each a name", labels="l")


@pytest.mark.parametrize("make", [as_parquet, as_feather])
@pytest.mark.parametrize("fault", COLUMNAR_FAULTS)
def test_every_fault_of_a_columnar_file_is_one_sentence(
    tmp_path: Path, make: Any, fault: str
) -> None:
    rows, message = COLUMNAR_FAULTS[fault]
    check(write(tmp_path, make(rows), "made.parquet"), message, labels="l")
