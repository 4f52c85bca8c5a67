"""Label files of every text format with degenerate content: one sentence, and bounded memory."""

import os
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from label_files import check
from made_files import write

from marginmf.datasets import read_labels
from marginmf.datasets.labels import arff, svmlight
from marginmf.labels import PLST

NUMERIC = "@relation r\n@attribute a numeric\n@attribute p {0,1}\n@data\n"
#: A file of each format with one number to be replaced.
WITH_NUMBER = {
    "made.arff": f"{NUMERIC}NUMBER,1\n0.5,0\n0,1\n",
    "sparse.arff": f"{NUMERIC}{{0 NUMBER,1 1}}\n{{0 0.5}}\n{{1 1}}\n",
    "made.csv": "a,p\nNUMBER,1\n0.5,0\n0,1\n",
    "made.tsv": "a\tp\nNUMBER\t1\n0.5\t0\n0\t1\n",
    "made.svm": "1 1:NUMBER\n2 1:0.5\n1,2 2:1\n",
}
OPTIONS: dict[str, dict[str, Any]] = {
    name: {} if name == "made.svm" else {"labels": 1} for name in WITH_NUMBER
}
NO_NUMBERS = (
    "nan",
    "inf",
    "-Infinity",
    "1e400",
    "0x10",
    "1_0",
    "--1",
    "?",
    "1" * 5000,
)
LONG = "x" * 5000


@pytest.mark.parametrize("number", NO_NUMBERS, ids=lambda number: repr(number)[:12])
@pytest.mark.parametrize("name", WITH_NUMBER)
def test_what_is_no_finite_number_is_a_sentence(tmp_path: Path, name: str, number: str) -> None:
    content = WITH_NUMBER[name].replace("NUMBER", number).encode()
    check(write(tmp_path, content, name), "line [0-9]: .*(number|missing)", **OPTIONS[name])


@pytest.mark.parametrize("number", ["1\0", "\0", "1\0002"], ids=repr)
@pytest.mark.parametrize("name", WITH_NUMBER)
def test_null_characters_are_a_sentence(tmp_path: Path, name: str, number: str) -> None:
    """At the beginning they tell that a file is none of text; they may also come late."""
    content = WITH_NUMBER[name].replace("NUMBER", number)
    check(write(tmp_path, content.encode(), name), "is not a text file", **OPTIONS[name])
    line = next(line for line in content.split("\n") if number in line)
    plain = content.replace(number, "1")
    late = plain + f"{plain.splitlines()[-1]}\n" * 2000 + line
    check(write(tmp_path, late.encode(), name), "line 2[0-9]*: .*number", **OPTIONS[name])


@pytest.mark.parametrize("name", WITH_NUMBER)
def test_numbers_whose_squares_are_infinite_are_refused_by_the_fit(
    tmp_path: Path, name: str
) -> None:
    content = WITH_NUMBER[name].replace("NUMBER", "1e101").encode()
    table = read_labels(write(tmp_path, content, name), **OPTIONS[name])
    with pytest.raises(ValueError, match=r"X has values as large as 1e\+101, whose squares cannot"):
        PLST().fit(table.X, table.Y)


@pytest.mark.parametrize(
    ("name", "content", "options"),
    [
        ("made.arff", f"@relation r\n@attribute {LONG} numeric\n@attribute {LONG} {{0,1}}", {}),
        ("type.arff", f"@relation r\n@attribute a {LONG}\n@data\n", {}),
        ("label.arff", f"@relation r\n@attribute {LONG} {{{LONG},{LONG}}}\n@data\n1\n", {}),
        ("kind.arff", f"@relation r\n@attribute {LONG} string\n@attribute b {{0,1}}\n@data\n", {}),
        ("value.arff", f"{NUMERIC}{LONG},1\n", {}),
        ("pair.arff", f"{NUMERIC}{{{LONG} 1}}\n", {}),
        ("rest.arff", f"@relation r\n{LONG}\n", {}),
        ("count.arff", f"@relation 'r: -C {'9' * 5000}'\n@attribute a numeric\n@data\n1\n", {}),
        ("cell.csv", f"a,p\n{LONG},1\n", {}),
        ("label.csv", f"a,p\n1,{LONG}\n", {}),
        ("names.csv", f"{LONG},{LONG}y,{LONG}\n1,1,1\n", {}),
        ("unknown.csv", f"{LONG}\n" * 3, {"labels": ["q"]}),
        ("pair.svm", f"1 {LONG}\n1 1:1\n", {"labels": None}),
        ("value.svm", f"1 1:{LONG}\n", {"labels": None}),
        ("label.svm", f"{LONG} 1:1\n", {"labels": None}),
    ],
    ids=lambda value: value if isinstance(value, str) and len(value) < 20 else "",
)
def test_messages_quote_a_line_at_most(
    tmp_path: Path, name: str, content: str, options: dict[str, Any]
) -> None:
    check(write(tmp_path, content.encode(), name), r"\.$", **{"labels": 1, **options})


@pytest.mark.parametrize("name", WITH_NUMBER)
def test_links_in_a_circle_are_a_sentence(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    try:
        os.symlink(path, path)
    except OSError:  # as Windows without the right to do so
        return
    with pytest.raises(OSError, match=name):
        read_labels(path)


def nominal(n_attributes: int, n_values: int) -> str:
    values = ",".join(f"v{k}" for k in range(n_values))
    names = "".join(f"@attribute a{k} {{{values}}}\n" for k in range(n_attributes))
    return f"@relation r\n{names}@attribute p {{0,1}}\n@data\n"


#: Small files.  What was made of them took gigabytes.
HOSTILE = {
    "short rows": (
        "@relation r\n"
        + "".join(f"@attribute a{k} numeric\n" for k in range(4000))
        + "@data\n"
        + "1\n" * 100_000,
        "1 values where the header declares 4,000 attributes",
    ),
    "left out": (nominal(2000, 3) + "{}\n" * 40_000, "leave out [0-9,]* values of nominal"),
}


@pytest.mark.parametrize("hostile", HOSTILE)
def test_small_files_take_little_memory(tmp_path: Path, hostile: str) -> None:
    text, message = HOSTILE[hostile]
    path = write(tmp_path, text.encode(), "made.arff")
    tracemalloc.start()
    try:
        check(path, message, labels=1)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 2**28


@pytest.mark.parametrize(
    "rows", ["{}\n{3 1}\n{0 v1,1 v2}\n", "v0,v0,v0,0\nv1,v2,v0,1\nv2,v2,v2,0\n"]
)
def test_rows_that_become_long_are_made_in_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rows: str
) -> None:
    path = write(tmp_path, (nominal(3, 3) + rows).encode(), "made.arff")
    whole = read_labels(path, labels=1)
    monkeypatch.setattr(arff, "BLOCK_VALUES", 10)
    blocks = read_labels(path, labels=1)
    for one, other in ((whole.X, blocks.X), (whole.Y, blocks.Y)):
        dense = [m.toarray() if hasattr(m, "toarray") else m for m in (one, other)]
        np.testing.assert_array_equal(*dense)
    assert whole.n_features == 9


def test_blank_lines_are_samples_up_to_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(svmlight, "MOST_BLANK", 3)
    assert len(read_labels(write(tmp_path, b"1 1:1\n\n\n\n1 1:1\n", "made.svm"))) == 5
    check(write(tmp_path, b"1 1:1\n\n\n\n\n1 1:1\n", "made.svm"), "line 5: more than 3 blank lines")
