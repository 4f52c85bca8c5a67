"""Faulty ARFF and XML files say in one sentence what is wrong with them, and where."""

from pathlib import Path
from typing import Any

import pytest
from label_faults import TABLE, check
from label_files import as_arff, as_sparse_arff, as_xml
from made_files import write

from marginmf.datasets import read_labels

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
        "line 4: 'p' is a label but takes the values low, high; labels take 0 and 1",
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
    for end in range(len(whole)):
        path = write(tmp_path, whole[:end], "made.arff")
        try:
            assert read_labels(path, labels=["p", "q"]).n_samples <= 4
        except ValueError as error:
            refused.append(str(error))
    assert len(refused) > len(whole) / 2
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
