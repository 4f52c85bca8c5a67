"""ARFF files: what they may look like, what becomes of it, and what is said of faulty ones."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from label_files import TABLE, as_arff, as_sparse_arff, as_xml, check, dense
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
    monkeypatch.setattr(arff, "CHUNK_BYTES", 60)  # several blocks
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


THREE = LabelsTable("t", [[1.0, 2.0]], [[1, 0, 1]], label_names=("p", "q", "r"))
REVERSED = as_xml(("r", "q", "p"))


@pytest.mark.parametrize("relation", ["music: -C -3", "music: -C -3 -V -I 0", "m -c -3"])
def test_meka_counts_the_last_attributes_with_a_minus(tmp_path, relation: str) -> None:
    table = read_labels(write(tmp_path, as_arff(THREE, relation), "made.arff"))
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
    assert read_labels(write(tmp_path, as_arff(THREE), name)).label_names == ("p", "q", "r")


def test_the_only_xml_file_of_the_folder_will_do(tmp_path) -> None:
    write(tmp_path, REVERSED, "labels.xml")
    path = write(tmp_path, as_arff(THREE), "made.arff")
    assert read_labels(path).label_names == ("p", "q", "r")
    write(tmp_path, REVERSED, "more.xml")
    with pytest.raises(ValueError, match="does not say which attributes are labels"):
        read_labels(path)
    assert read_labels(path, xml=tmp_path / "more.xml").label_names == ("p", "q", "r")


def test_what_the_caller_says_comes_before_all_else(tmp_path) -> None:
    write(tmp_path, REVERSED, "made.xml")
    path = write(tmp_path, as_arff(THREE, "m: -C -2"), "made.arff")
    assert read_labels(path, labels=["q"]).label_names == ("q",)
    assert read_labels(path, labels=["q"], ignore="[pr]").feature_names == ("f0", "f1")
    assert read_labels(path, labels=[]).n_features == 5
    assert read_labels(path, labels=-1).label_names == ("f0",)


def test_labels_below_labels_count_too(tmp_path) -> None:
    nested = b'<labels><label name="p"><label name="q"/></label><label name="r"/></labels>'
    write(tmp_path, nested, "made.xml")
    assert read_labels(write(tmp_path, as_arff(THREE), "made.arff")).n_labels == 3


def test_text_is_left_out_when_asked(tmp_path) -> None:
    text = (
        "@relation r\n@attribute t string\n@attribute d date 'yyyy-MM-dd'\n@attribute a real\n"
        "@attribute l {0,1}\n@data\n'some, text',2000-01-01,1,0\n"
    )
    table = read(tmp_path, text, labels=1, ignore=["t", "d"])
    assert table.X.tolist() == [[1]]
    assert table.source.endswith("without 't', 'd'")


HEADER = (
    "@relation r\n@attribute a numeric\n@attribute b {0,1}\n@attribute p {0,1}\n"
    "@attribute q {0,1}\n@data\n"
)


ARFF_FAULTS: dict[str, tuple[str, str]] = {
    "empty": ("", "is empty; an ARFF file has a header and rows"),
    "only comments": ("% nothing\n", "line 1: the file ends in its header, before @data"),
    "cut in the header": (HEADER[:50], "line 3: the values of 'b' have no closing brace"),
    "cut before @data": (HEADER[:-6], "line 5: the file ends in its header, before @data; it is c"),
    "cut inside braces": ("@relation r\n@attribute a {0,", "line 2: .* have no closing brace"),
    "no rows": (HEADER, "has no rows after @data; add some"),
    "no attributes": ("@relation r\n@data\n1\n", "line 2: @data comes before any @attribute"),
    "stray line": ("@relation r\nhello\n", "line 2: 'hello' is not a line of an ARFF header"),
    "no type": ("@relation r\n@attribute a\n@data\n", "line 2: 'a' is not a name and a type"),
    "odd type": (
        "@relation r\n@attribute a relational\n@data\n1\n",
        "line 2: the attribute 'a' has the type 'relational', which is none that can be read",
    ),
    "no values": ("@relation r\n@attribute a {}\n@data\n", "line 2: .* 'a' has no values"),
    "open quote": ("@relation r\n@attribute 'a numeric\n@data\n", "line 2: .* is not a name and"),
    "open quote in values": ("@relation r\n@attribute a {'x,y}\n@data\n", "a quote is not closed"),
    "string": (
        "@relation r\n@attribute t string\n" + HEADER[12:] + "x,1,0,0,1\n",
        r"line 2: the attribute 't' is of type string, .* leave it out with ignore=\['t'\]",
    ),
    "label of words": (
        HEADER.replace("p {0,1}", "p {low,high}") + "1,0,low,1\n",
        "line 4: 'p' is a label but takes the values 'low', 'high'; labels take 0 and 1",
    ),
    "label of text": (
        HEADER.replace("p {0,1}", "p string") + "1,0,low,1\n",
        "line 4: 'p' is a label but takes the values string",
    ),
    "cut in a row": (HEADER + "1,0,1,0\n2,1,", "line 8: the line ends with a comma; complete"),
    "few values": (HEADER + "1,0,1,0\n2,1,0\n", "line 8: 3 values where the header declares 4"),
    "many values": (HEADER + "1,0,1,0,0\n", "line 7: 5 values where the header declares 4 attri"),
    "hole": (HEADER + "1,,1,0\n", "line 7: a value between two commas is missing; fill it in"),
    "missing": (HEADER + "1,0,1,0\n?,0,1,0\n", r"line 8: the value of 'a' is missing \(\?\)"),
    "missing label": (HEADER + "1,0,?,0\n", r"line 7: the value of 'p' is missing \(\?\)"),
    "word": (HEADER + "% hm\n\nabc,0,1,0\n", "line 9: the value 'abc' of 'a' is not a number"),
    "nan": (HEADER + "nan,0,1,0\n", "line 7: the value 'nan' of 'a' is not a finite number"),
    "infinite": (HEADER + "1e999,0,1,0\n", "line 7: the value '1e999' of 'a' is not a finite"),
    "label 2": (HEADER + "1,0,1,0\n1,0,1,2\n", "line 8: the label 'q' is 2; labels are 0 or 1"),
    "label -1": (HEADER + "1,0,-1,0\n", "line 7: the label 'p' is -1; labels are 0 or 1"),
    "label word": (HEADER + "1,0,1,yes\n", "line 7: the label 'yes' of 'q' is not a number"),
    "other value": (HEADER + "1,5,1,0\n", r"line 7: 5 is none of the values \{0,1\} of 'b'"),
    "row quote": (HEADER + "1,0,1,'0\n", "line 7: a quote is not closed"),
    "brace in a row": (HEADER + "1,0,1,0,{5}\n", r"line 7: '\{5\}' does not begin a value"),
    "sparse cut": (HEADER + "{0 1,2 1}\n{0 2,3", "line 8: the sparse row does not end with its br"),
    "sparse comma": (HEADER + "{0 1,}\n", "line 7: the sparse row ends with a comma"),
    "sparse no value": (HEADER + "{0 1,2}\n", "line 7: '2' does not begin with an index and a val"),
    "sparse no place": (HEADER + "{a 1}\n", "line 7: 'a 1' does not begin with an index and a val"),
    "sparse three": (HEADER + "{0 1 2,2 1}\n", "line 7: '0 1 2,2 1' does not begin with an index"),
    "sparse negative": (HEADER + "{-1 1}\n", "line 7: '-1 1' does not begin with an index and"),
    "sparse beyond": (
        HEADER + "{0 1}\n{4 1}\n",
        "line 8: the index 4 is beyond the header's 4 attributes, which are counted from 0",
    ),
    "sparse far beyond": (HEADER + "{99999999999999999999 1}\n", "line 7: "),
    "sparse twice": (HEADER + "{0 1,0 2}\n", "line 7: the index 0 is named twice; remove one"),
    "sparse word": (HEADER + "{0 abc}\n", "line 7: the value 'abc' of 'a' is not a number"),
    "sparse missing": (HEADER + "{0 1,2 ?}\n", r"line 7: the value of 'p' is missing \(\?\)"),
    "sparse label": (HEADER + "{0 1,2 3}\n", "line 7: the label 'p' is 3; labels are 0 or 1"),
    "sparse nan": (HEADER + "{0 NaN}\n", "line 7: the value 'NaN' of 'a' is not a finite number"),
    "dense among sparse": (HEADER + "{0 1}\n1,0,1,0\n", "line 8: a dense row among sparse ones"),
    "sparse among dense": (HEADER + "1,0,1,0\n{0 1}\n", "line 8: a sparse row among dense ones"),
}


@pytest.mark.parametrize("fault", ARFF_FAULTS)
def test_every_fault_of_arff_is_one_sentence(tmp_path: Path, fault: str) -> None:
    content, message = ARFF_FAULTS[fault]
    check(write(tmp_path, content.encode(), "made.arff"), message, labels=["p", "q"])


@pytest.mark.parametrize("make", [as_arff, as_sparse_arff])
def test_a_file_cut_anywhere_is_read_or_refused(tmp_path: Path, make: Any) -> None:
    whole = make(TABLE)
    refused = []
    for end in range(0, len(whole), 3):
        path = write(tmp_path, whole[:end], "made.arff")
        try:
            assert read_labels(path, labels=["p", "q"]).n_samples <= 4
        except ValueError as error:
            refused.append(str(error))
    assert len(refused) > len(whole) / 6
    assert all(one.startswith(str(tmp_path)) and "\n" not in one for one in refused)


LABELS_UNKNOWN: dict[str, tuple[bytes | None, str, dict[str, Any], str]] = {
    "nothing said": (None, "r", {}, "does not say which attributes are labels; give the XML file"),
    "moved since": (
        None,
        "r: -C 2-weka.filters.unsupervised.attribute.Remove-R1",
        {},
        r"counts labels \(-C 2\) that filters have moved since; give the XML file",
    ),
    "all are labels": (None, "r: -C 5", {}, "labels=-5 does not leave a label and a feature"),
    "count too large": (None, "r", {"labels": 5}, "labels=5 does not leave a label and a feature"),
    "count of none": (None, "r", {"labels": 0}, "labels=0 does not leave"),
    "no such name": (None, "r", {"labels": ["z"]}, "there is no column 'z'; the columns are 'a', "),
    "no such pattern": (None, "r", {"labels": "z*"}, r"there is no column 'z\*'; the columns are"),
    "ignored is unknown": (None, "r", {"labels": 2, "ignore": "z"}, "there is no column 'z'"),
    "no features": (None, "r", {"labels": "*"}, "has labels but no features; it needs both"),
    "not XML": (b"labels: p, q", "r", {}, r"made.xml is not XML, or is cut short \(.*\); fetch"),
    "cut XML": (as_xml(("p", "q"))[:60], "r", {}, "made.xml is not XML, or is cut short"),
    "empty XML": (b" \n", "r", {}, "made.xml is empty; it needs <labels> with a <label name=...>"),
    "XML of nothing": (b"<labels></labels>", "r", {}, "made.xml names no labels"),
    "nameless": (b"<labels><label/></labels>", "r", {}, "made.xml: label 1 has no name; give it"),
    "entity": (
        b'<!DOCTYPE x [<!ENTITY e "p">]><labels><label name="&e;"/></labels>',
        "r",
        {},
        "made.xml has a document type, which label files do not need; remove it",
    ),
    "XML of another file": (
        as_xml(("p", "other")),
        "r",
        {},
        "made.xml names the label 'other', which is no attribute of .*made.arff",
    ),
    "XML and count differ": (
        as_xml(("q",)),
        "r: -C -2",
        {},
        r"its relation counts 2 labels \(-C -2\), but .*made.xml names 1; give the right one",
    ),
    "named twice": (as_xml(("p", "p")), "r", {}, "made.xml names the label 'p' 2 times; leave one"),
}


@pytest.mark.parametrize("fault", LABELS_UNKNOWN)
def test_labels_that_cannot_be_told_are_one_sentence(tmp_path: Path, fault: str) -> None:
    xml, relation, options, message = LABELS_UNKNOWN[fault]
    if xml is not None:
        write(tmp_path, xml, "made.xml")
    check(write(tmp_path, as_arff(TABLE, relation), "made.arff"), message, **options)


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        (("a real", "b real", "a real"), "columns of the lines 2 and 4 are both called 'a'"),
        (("c=r real", "c {r,g,b}", "d real"), "columns of the lines 2 and 3 are both called 'c=r'"),
        (("c {r,g,r}", "a real", "b real"), "columns of the lines 2 and 2 are both called 'c=r'"),
        (("p real", "a real", "b real"), "columns of the lines 2 and 5 are both called 'p'"),
    ],
)
def test_two_attributes_of_one_name_are_refused(
    tmp_path: Path, attributes: tuple[str, ...], message: str
) -> None:
    declared = "".join(f"@attribute {one}\n" for one in (*attributes, "p {0,1}"))
    path = write(tmp_path, f"@relation r\n{declared}@data\n1,r,2,0\n".encode(), "made.arff")
    check(path, message, labels=1)


def test_two_labels_of_one_name_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, (HEADER.replace(" q ", " p ") + "1,0,1,0\n").encode(), "made.arff")
    check(path, "2 columns are called 'p'; give each a name of its own", labels=["p"])
