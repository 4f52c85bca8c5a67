"""Faulty label files of every kind say in one sentence what is wrong with them, and where."""

import gzip
import io
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from label_faults import TABLE, check
from label_files import as_arff, as_npz, as_xml, as_zip
from made_files import as_feather, as_parquet, write

from marginmf.datasets import read_labels

SVMLIGHT_FAULTS: dict[str, tuple[str, dict[str, Any], str]] = {
    "only comments": ("# nothing\n", {}, "has no rows; it needs lines such as 1,3 4:0.2 7:1"),
    "cut in a pair": ("1 1:1\n2 1:", {}, "line 2: '1:' is not a feature and its value, such as"),
    "word": ("1 1:x\n", {}, "line 1: the value of '1:x' is not a finite number; correct it"),
    "nan": ("1 1:1\n1 2:nan\n", {}, "line 2: the value of '2:nan' is not a finite number"),
    "label word": ("1 1:1\nrock 1:1\n", {}, "line 2: 'rock' are not labels, which are whole num"),
    "negative label": ("-1 1:1\n", {}, "line 1: '-1' are not labels"),
    "half label": ("1.5 1:1\n", {}, "line 1: '1.5' are not labels"),
    "comma at the end": ("1, 1:1\n", {}, "line 1: '1,' are not labels"),
    "query": ("1 qid:3 1:1\n", {}, "line 1: 'qid:3' is not a feature and its value"),
    "negative feature": ("1 -1:1\n", {}, "line 1: '-1:1' is not a feature and its value"),
    "stray number": ("1 1:1\n1 5 1:1\n", {}, "line 2: '5' is not a feature and its value"),
    "feature twice": ("1 1:1\n1 3:1 3:2\n", {}, "line 2: the feature 3 is named twice"),
    "label twice": ("1,2,1 1:1\n", {}, "line 1: the label 1 is named twice; remove one of them"),
    "beyond n_features": (
        "1 1:1\n1 5:1\n",
        {"n_features": 4},
        "line 2: the feature 5 is beyond the 4 features, which are counted from 1; correct it",
    ),
    "beyond labels": (
        "1 1:1\n3 5:1\n",
        {"labels": 2},
        "line 2: the label 3 is beyond the 2 labels, which are counted from 1; correct it",
    ),
    "labels by pattern": ("1 1:1\n", {"labels": "tag_*"}, "labels of an svmlight file are numbers"),
    "no labels": ("1 1:1\n", {"labels": 0}, "labels of an svmlight file are numbers"),
    "not given": (
        "1 1:1\n3 5:1\n",
        {"labels": ["1", "2"]},
        "line 2: the label 3 is none of the 2 that are given; correct it, or give the right lab",
    ),
    "names alike": ("1 1:1\n", {"labels": ["a", "a"]}, "the labels 1 and 2 are both called 'a'"),
    "feature 0": (
        "1 1:1\n3 0:1\n",
        {"zero_based": False},
        "line 2: the feature 0 does not go with zero_based=False, where features are counted",
    ),
    "beyond the names": (
        "1 1:1\n1 5:1\n",
        {"n_features": ["1", "2", "4"]},
        r"line 2: the feature 5 is none of the 3 features 1 to 4; .* with ignore=\['5'\]",
    ),
    "feature left out twice": (
        "1 2:1 2:3\n",
        {"n_features": ["1", "3"]},
        "line 1: the feature 2 is named twice",
    ),
    "ignored pattern": ("1 1:1\n", {"ignore": "x*"}, r"there is no column 'x\*'; the columns ar"),
    "all ignored": ("1 1:1\n", {"ignore": "*"}, "has labels but no features; it needs both"),
    "xml": ("1 1:1\n", {"xml": "a.xml"}, "is not an ARFF file, and only those have labels"),
    "digits": ("1 1:1\n\u0661 1:1\n", {}, "line 2: '\u0661' are not labels"),
    "feature digits": ("1 \u0661:1\n", {}, "line 1: '\u0661:1' is not a feature and its value"),
    "value digits": ("1 1:\u0661\n", {}, "line 1: the value of '1:\u0661' is not a finite number"),
    "blank": ("1 1:1\u00a02:2\n", {}, r"line 1: '1:1\\xa02:2' is not a feature and its value"),
    "blank in a value": ("1 1:1\u2003\n", {}, r"line 1: the value of '1:1\\u2003' is not a f"),
    "blank alone": ("1 1:1\n\u00a0\n", {}, r"line 2: '\\xa0' are not labels"),
    "separator": ("1 1:1\n1\x1c1:1\n", {}, "line 2: "),
    "sizes: cut": ("3 2 2\n1 1:1\n", {}, "that it has 3 samples, but it has 1; it is cut short"),
    "sizes: features": (
        "1 2 2\n1 2:1\n",
        {},
        "line 2: the feature 2 is beyond the 2 features, whi",
    ),
    "sizes: labels": ("1 2 2\n2 1:1\n", {}, "line 2: the label 2 is beyond the 2 labels"),
    "sizes alone": ("3 2 2\n", {}, "has no rows"),
}


@pytest.mark.parametrize("fault", SVMLIGHT_FAULTS)
def test_every_fault_of_svmlight_is_one_sentence(tmp_path: Path, fault: str) -> None:
    content, options, message = SVMLIGHT_FAULTS[fault]
    check(write(tmp_path, content.encode(), "made.svm"), message, **options)


@given(st.text("0123:,. \t\n#e+-x\u00a0\u2028\u0661\x1c\x00", max_size=40))
@settings(max_examples=300, deadline=None)
def test_any_text_called_svmlight_is_read_or_refused(text: str) -> None:
    with TemporaryDirectory() as folder:
        path = write(Path(folder), f"1 1:1 {text}\n2 3:1\n".encode(), "made.svm")
        with suppress(ValueError):
            assert read_labels(path).n_samples >= 1


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
    "text": ({"a": ["x"], "l": [1]}, "what stands in the column 'a' is string, not numbers; corr"),
    "nested": ({"a": [[1]], "l": [1]}, "what stands in the column 'a' is list<.*, not numbers"),
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


def archive(**files: bytes) -> bytes:
    return as_zip({name.replace("_", "."): content for name, content in files.items()})


def damaged(content: bytes) -> bytes:
    place = content.index(b"made") + 40
    return content[:place] + bytes([content[place] ^ 0xFF]) + content[place + 1 :]


XML = as_xml(("p", "q"))
WHOLE = as_zip({"made.arff": as_arff(TABLE), "made.xml": XML})
ARCHIVE_FAULTS: dict[str, tuple[str, bytes, str]] = {
    "cut": ("a.zip", WHOLE[:-30], "is a damaged zip file"),
    "half": ("a.zip", WHOLE[: len(WHOLE) // 2], "is a damaged zip file"),
    "changed": ("a.zip", damaged(WHOLE), "is a damaged zip file"),
    "cut npz": ("a.npz", arrays()[:-30], "is a damaged zip file"),
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


def test_files_that_are_not_there_are_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"There is no file .*made.arff; check the name"):
        read_labels(tmp_path / "made.arff")
    with pytest.raises(IsADirectoryError, match="is a folder; name the file of labels inside it"):
        read_labels(tmp_path)
    path = write(tmp_path, as_arff(TABLE), "made.arff")
    with pytest.raises(FileNotFoundError, match=r"There is no file .*x.xml; xml= is the file that"):
        read_labels(path, xml=tmp_path / "x.xml")


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
