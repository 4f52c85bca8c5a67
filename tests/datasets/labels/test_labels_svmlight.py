"""svmlight files: what their lines may hold, and what is said of those that cannot be read."""

from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from label_files import check
from made_files import write

from marginmf.datasets import LabelsTable, read_labels


def read(folder: Path, text: str, name: str, **options) -> LabelsTable:
    return read_labels(write(folder, text.encode(), name), **options)


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
    table = read(tmp_path, "1 999999999:1\n", "made.svm", n_features=999_999_999)
    assert (table.n_features, table.feature_names) == (999_999_999, None)
    few = read(tmp_path, "1 1:1 999999999:1\n", "made.svm", n_features=["1"], ignore=["999999999"])
    assert few.X.toarray().tolist() == [[1]]


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
@settings(max_examples=150, deadline=None)
def test_any_text_called_svmlight_is_read_or_refused(text: str) -> None:
    with TemporaryDirectory() as folder:
        path = write(Path(folder), f"1 1:1 {text}\n2 3:1\n".encode(), "made.svm")
        with suppress(ValueError):
            assert read_labels(path).n_samples >= 1


@pytest.mark.parametrize(
    ("text", "options", "message"),
    [
        (
            "1 1:1 999999999:1\n",
            {},
            "999,999,999 features and 2 entries, .*n_features=999999999 if",
        ),
        ("1 999999999 2\n0 1:1\n", {}, "there are 999,999,999 features and 1 entries"),
        ("1 2 999999999\n0 1:1\n", {}, "999,999,999 labels and 1 entries, .*labels=999999999 if"),
        ("1 2 999999999\n0 1:1\n", {"labels": []}, "999,999,999 labels and 1 entries"),
        ("1 999999999:1\n", {"n_features": 5}, "the feature 999999999 is beyond the 5 features"),
        ("1 999999999 2\n0 1:1\n", {"n_features": 5}, "999,999,999 features and 1 entries"),
    ],
)
def test_a_few_bytes_claim_no_billion_of_columns(
    tmp_path: Path, text: str, options: dict[str, Any], message: str
) -> None:
    check(write(tmp_path, text.encode(), "made.svm"), message, **options)


def test_whoever_knows_of_more_columns_says_so(tmp_path: Path) -> None:
    many = read(tmp_path, "1 50000000 2\n0 1:1\n", "made.svm", n_features=50_000_000)
    assert many.n_features == 50_000_000
    few = read(tmp_path, "2 135909 2812281\n0,2812280 1:1\n7 2:1\n", "made.svm")
    assert (few.n_features, few.n_labels) == (135_909, 2_812_281)
