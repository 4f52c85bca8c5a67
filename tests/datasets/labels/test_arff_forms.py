"""What ARFF files may look like, and what becomes of it."""

from pathlib import Path

import numpy as np
import pytest
from label_files import as_arff, as_xml, as_zip, dense
from made_files import write
from scipy import sparse

from marginmf.datasets import LabelsTable, read_labels
from marginmf.datasets.labels import arff


def read(folder: Path, text: str, **options) -> LabelsTable:
    return read_labels(write(folder, text.encode(), "made.arff"), **options)


def test_keywords_comments_blanks_and_quotes_are_taken_as_the_format_has_them(tmp_path) -> None:
    table = read(
        tmp_path,
        "% made by hand\n\n@RELATION 'some data'\n"
        "@Attribute\t'with blank' REAL\n@ATTRIBUTE \"it's\" Integer\n"
        "  @attribute 'quote\\'d' numeric % no comment here, but a type\n"
        "@attribute label{0, 1}\n@DATA\n% a comment\n1, 2,3 ,1\n\n-1e2,.5,+3,0\n",
        labels=1,
    )
    assert table.feature_names == ("with blank", "it's", "quote'd")
    assert table.X.tolist() == [[1, 2, 3], [-100, 0.5, 3]]
    assert table.Y.toarray().tolist() == [[1], [0]]


def test_values_may_be_separated_by_blanks_and_tabs(tmp_path) -> None:
    header = "@relation r\n@attribute a real\n@attribute b real\n@attribute l {0,1}\n@data\n"
    assert read(tmp_path, header + "1 2\t1\n3  4 , 0\n", labels=1).X.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize("ends", ["\r\n", "\r"])
def test_line_ends_of_other_systems_are_read(tmp_path, ends: str) -> None:
    text = "@relation r\n@attribute a real\n@attribute l {0,1}\n@data\n1,0\n2,1\n"
    assert read(tmp_path, text.replace("\n", ends), labels=1).X.tolist() == [[1], [2]]


def test_a_file_that_is_not_utf_8_is_read_as_latin_1(tmp_path) -> None:
    text = "@relation r\n@attribute caf\xe9 real\n@attribute l {0,1}\n@data\n1,0\n"
    table = read_labels(write(tmp_path, text.encode("latin-1"), "made.arff"), labels=1)
    assert table.feature_names == ("caf\xe9",)


NOMINAL = (
    "@relation r\n@attribute size {small,'very large',huge}\n@attribute fast {YES,NO}\n"
    "@attribute back {1,0}\n@attribute grade {1,2,3}\n@attribute l {false,true}\n@data\n"
)


def test_nominal_attributes_become_numbers(tmp_path) -> None:
    table = read(
        tmp_path,
        NOMINAL + "'very large',YES,1,2,true\nsmall,NO,0,3.0,false\nhuge,NO,1,1,true\n",
        labels=["l"],
    )
    assert table.feature_names == (
        *("size=small", "size=very large", "size=huge"),
        *("fast", "back"),
        *("grade=1", "grade=2", "grade=3"),
    )
    assert dense(table.X).tolist() == [
        [0, 1, 0, 1, 1, 0, 1, 0],
        [1, 0, 0, 0, 0, 0, 0, 1],
        [0, 0, 1, 0, 1, 1, 0, 0],
    ]
    assert table.Y.toarray().ravel().tolist() == [1, 0, 1]


def test_a_sparse_row_has_the_first_value_of_what_it_leaves_out(tmp_path) -> None:
    table = read(
        tmp_path, NOMINAL + "{}\n{0 'very large', 1 NO,2 0,3 3,4 true}\n{ 3 1 }\n", labels=["l"]
    )
    assert sparse.issparse(table.X)
    assert dense(table.X).tolist() == [
        [1, 0, 0, 1, 1, 1, 0, 0],
        [0, 1, 0, 0, 0, 0, 0, 1],
        [1, 0, 0, 1, 1, 1, 0, 0],
    ]
    assert table.Y.toarray().ravel().tolist() == [0, 1, 0]


def test_dense_and_sparse_rows_say_the_same(tmp_path, monkeypatch) -> None:
    generator = np.random.default_rng(0)
    values = generator.integers(0, 3, (50, 4))
    header = "@relation r\n" + "".join(
        f"@attribute a{k} {kind}\n" for k, kind in enumerate(("{0,1,2}", "real", "{2,1,0}"))
    )
    header += "@attribute l {0,1}\n@data\n"
    values[:, 3] %= 2
    first = [0, 0, 2, 0]
    rows = values.tolist()
    dense_rows = "".join(",".join(map(str, row)) + "\n" for row in rows)
    sparse_rows = "".join(
        "{" + ",".join(f"{k} {v}" for k, v in enumerate(row) if v != first[k]) + "}\n"
        for row in rows
    )
    one = read(tmp_path, header + dense_rows, labels=1)
    monkeypatch.setattr(arff, "CHUNK_CHARACTERS", 60)  # several blocks
    for body in (dense_rows, sparse_rows):
        two = read(tmp_path, header + body, labels=1)
        np.testing.assert_array_equal(dense(one.X), dense(two.X))
        np.testing.assert_array_equal(dense(one.Y), dense(two.Y))


def test_numbers_alone_and_numbers_beside_words_are_read_alike(tmp_path) -> None:
    table = LabelsTable("t", np.random.default_rng(0).normal(size=(30, 3)), np.ones((30, 1)))
    quick = read_labels(write(tmp_path, as_arff(table), "made.arff"), labels=1)
    words = as_arff(table).replace(b"@attribute f0", b"@attribute w {x,y}\n@attribute f0")
    head, _, body = words.partition(b"@data\n")
    body = b"".join(b"x," + line + b"\n" for line in body.splitlines())
    slow = read_labels(write(tmp_path, head + b"@data\n" + body, "made.arff"), labels=1)
    np.testing.assert_array_equal(slow.X[:, 2:], quick.X)
    np.testing.assert_array_equal(quick.X, table.X)


def test_nine_zeros_in_ten_make_a_sparse_matrix(tmp_path) -> None:
    X = np.zeros((5, 20))
    X[0, 0] = 3
    table = LabelsTable("t", X, np.ones((5, 1)))
    read_back = read_labels(write(tmp_path, as_arff(table), "made.arff"), labels=1)
    assert sparse.issparse(read_back.X)
    np.testing.assert_array_equal(dense(read_back.X), X)


TABLE = LabelsTable("t", [[1.0, 2.0]], [[1, 0, 1]], label_names=("p", "q", "r"))
REVERSED = as_xml(("r", "q", "p"))


@pytest.mark.parametrize("relation", ["music: -C -3", "music: -C -3 -V -I 0", "m -c -3"])
def test_meka_counts_the_last_attributes_with_a_minus(tmp_path, relation: str) -> None:
    table = read_labels(write(tmp_path, as_arff(TABLE, relation), "made.arff"))
    assert table.label_names == ("p", "q", "r")
    assert table.X.tolist() == [[1, 2]]


def test_meka_counts_the_first_attributes_without_a_minus(tmp_path) -> None:
    text = "@relation 'm: -C 1'\n@attribute l {0,1}\n@attribute a real\n@data\n1,5\n"
    table = read(tmp_path, text)
    assert (table.label_names, table.feature_names) == (("l",), ("a",))
    assert table.X.tolist() == [[5]]


@pytest.mark.parametrize("name", ["made.arff", "made-train.arff", "MADE-test-sparse.arff"])
def test_the_xml_file_of_the_same_name_names_labels_in_the_order_of_the_arff(
    tmp_path, name: str
) -> None:
    write(tmp_path, REVERSED, "made.xml")
    write(tmp_path, as_xml(("nothing",)), "other.xml")
    assert read_labels(write(tmp_path, as_arff(TABLE), name)).label_names == ("p", "q", "r")


def test_the_only_xml_file_of_the_folder_will_do(tmp_path) -> None:
    write(tmp_path, REVERSED, "labels.xml")
    path = write(tmp_path, as_arff(TABLE), "made.arff")
    assert read_labels(path).label_names == ("p", "q", "r")
    write(tmp_path, REVERSED, "more.xml")
    with pytest.raises(ValueError, match="does not say which attributes are labels"):
        read_labels(path)
    assert read_labels(path, xml=tmp_path / "more.xml").label_names == ("p", "q", "r")


def test_what_the_caller_says_comes_before_all_else(tmp_path) -> None:
    write(tmp_path, REVERSED, "made.xml")
    path = write(tmp_path, as_arff(TABLE, "m: -C -2"), "made.arff")
    assert read_labels(path, labels=["q"]).label_names == ("q",)
    assert read_labels(path, labels=["q"], ignore="[pr]").feature_names == ("f0", "f1")
    assert read_labels(path, labels=[]).n_features == 5
    assert read_labels(path, labels=-1).label_names == ("f0",)


def test_labels_below_labels_count_too(tmp_path) -> None:
    nested = b'<labels><label name="p"><label name="q"/></label><label name="r"/></labels>'
    write(tmp_path, nested, "made.xml")
    assert read_labels(write(tmp_path, as_arff(TABLE), "made.arff")).n_labels == 3


def test_text_is_left_out_when_asked(tmp_path) -> None:
    text = (
        "@relation r\n@attribute t string\n@attribute d date 'yyyy-MM-dd'\n@attribute a real\n"
        "@attribute l {0,1}\n@data\n'some, text',2000-01-01,1,0\n"
    )
    table = read(tmp_path, text, labels=1, ignore=["t", "d"])
    assert table.X.tolist() == [[1]]
    assert table.source.endswith("without 't', 'd'")


def test_an_archive_without_parts_is_read_whole(tmp_path) -> None:
    files = {"b/made.arff": as_arff(TABLE), "b/made.xml": REVERSED, "b/readme.txt": b"x"}
    table = read_labels(write(tmp_path, as_zip(files), "archive.zip"))
    assert (table.name, table.train_idx) == ("archive", None)
    assert table.source == f"read from {tmp_path / 'archive.zip'}"
