"""The quick reader of text gives what the careful one gives: the same table, or the same error."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from marginmf.datasets import read_pairs, read_ratings
from marginmf.datasets.files import source, text

IDS = ["7", "8", "-5", "0", "007", "+7", "-0", " 7 ", "9" * 18, "9" * 19, "ann", "bob", "é", "a:b"]
IDS += ["eight by", "eight bytes", "eight bites", "n" * 16, "n" * 17, "n" * 97]
ODD_IDS = ["", "  ", '"', 'a"b', '"a"b', ' "a"', "\u00a0x", "\x1fz", "\ufeff7", "a\tb", "x|y", "日"]
RATINGS = ["3", "4.5", " 2 ", "1e0", "5", "-1", "00", "\uff15"]
ODD_RATINGS = ["nan", "x", "", "1_0", "inf", "'3'"]
TIMES = ["99", "0099", "881250949", " 7", "99.5", "1998-04-22", "\u0663"]
ODD_TIMES = ["", "noon", "now", "9" * 19, "1e300"]
HEADERS = ["", "user,item,rating,timestamp", "u,i,r,x", "item,user,rating", "a,b"]


def outcome(path: Path, *, fast: bool, chunk: int, reader: Any = read_ratings) -> Any:
    """What reading gives, by one way of reading: values and their types, or the message."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(source, "CHUNK_BYTES", chunk)
        if not fast:
            patch.setattr(text, "read_plain", lambda *arguments: None)
        try:
            table = reader(path)
        except ValueError as error:
            return str(error)
    if reader is read_pairs:
        return table.dtype, table.tolist()
    times = None if table.timestamps is None else table.timestamps.tolist()
    ids = [(column.dtype, column.tolist()) for column in (table.users, table.items)]
    return ids, table.ratings.tolist(), times


def cell(usual: list[str], odd: list[str]) -> st.SearchStrategy[str]:
    plain = st.sampled_from(usual * 5 + odd)
    quoted = plain.map(lambda value: '"' + value.replace('"', '""') + '"')
    return st.one_of(plain, plain, plain, quoted)


@st.composite
def files(draw: st.DrawFn) -> bytes:
    separator = draw(st.sampled_from([",", "\t", ";", "::", ", ", " "]))
    row = st.tuples(
        cell(IDS, ODD_IDS), cell(IDS, ODD_IDS), cell(RATINGS, ODD_RATINGS), cell(TIMES, ODD_TIMES)
    )
    width = draw(st.sampled_from([3, 4, 4]))
    lines = [separator.join(one[:width]) for one in draw(st.lists(row, max_size=12))]
    for _ in range(draw(st.sampled_from([0, 0, 0, 1]))):
        odd = draw(st.sampled_from(["", "  ", "1,2", ",,", "1,2,3,4,5", '1,"2,3', '1,"2\n2",3']))
        lines.insert(draw(st.integers(0, len(lines))), odd.replace(",", separator))
    header = draw(st.sampled_from(HEADERS)).replace(",", separator)
    end = draw(st.sampled_from(["\n", "\r\n", "\r"]))
    whole = "\n".join([header, *lines] if header else lines) + draw(st.sampled_from(["", "\n"]))
    encoding = draw(st.sampled_from(["utf-8", "utf-8", "utf-8-sig", "utf-16", "latin-1"]))
    return whole.replace("\n", end).encode(encoding, errors="replace")


@settings(max_examples=100, deadline=None)
@given(content=files(), chunk=st.integers(5, 90))
@example(content=b"1,2,3\n" * 9 + b"a,2,3\n", chunk=20)
@example(content=b"1,2,3\n\xef\xbb\xbf7,2,3\n", chunk=6)
@example(content=b'1,"2",3\n1, "2",3\n', chunk=9)
@example(content=b"1,2,3,4\n1,2,3\n1,2,3\n", chunk=8)
@example(content=b"1,2,3\n1,2,3\n1,\xe9,3\n", chunk=6)
def test_both_readers_agree_whatever_the_chunks(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, chunk: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "ratings.txt"
    path.write_bytes(content)
    for reader in (read_ratings, read_pairs):
        expected = outcome(path, fast=False, chunk=1 << 20, reader=reader)
        assert outcome(path, fast=False, chunk=chunk, reader=reader) == expected
        assert outcome(path, fast=True, chunk=chunk, reader=reader) == expected
        assert outcome(path, fast=True, chunk=1 << 20, reader=reader) == expected


@pytest.mark.parametrize(
    ("lines", "quick"),
    [
        (["{},{},4", "user,item,rating"], True),
        (["{}\t{}\t4.5\t99"], True),
        (["{}::{}::4::99"], True),
        (["{}a\x1f::{}::4::99"], False),
        (["u{};{};4"], True),
        (["ann-{}@example.org,a film of number {:030},4"], True),
        (["{:097},{:096},4"], True),
        (['"{}","a, {}","4"'], False),
        ([' {} , "b{}",4'], False),
        (['{},a"{},4'], False),
        (["{} {} 4"], True),
        ([" {}  {} 4"], False),
    ],
)
def test_the_quick_reader_takes_what_it_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lines: list[str], quick: bool
) -> None:
    taken: list[bool] = []

    def spy(*arguments: Any) -> Any:
        batch = read_plain(*arguments)
        taken.append(batch is not None)
        return batch

    read_plain = text.read_plain
    monkeypatch.setattr(text, "read_plain", spy)
    monkeypatch.setattr(text, "TABLE_BITS", 4)  # so that cells compete for the slots
    body = [lines[0].format(k % 97, k) for k in range(500)]
    path = tmp_path / "ratings.csv"
    path.write_text("\n".join([*lines[1:], *body]))
    fast = outcome(path, fast=True, chunk=2000)
    assert all(taken) == quick
    assert len(taken) > 1 or not quick
    assert fast == outcome(path, fast=False, chunk=2000)


def test_a_fault_far_down_is_named_with_its_line(tmp_path: Path) -> None:
    lines = [f"{k % 97},{k},4" for k in range(5000)]
    lines[4321] = "5,,x"
    path = tmp_path / "ratings.csv"
    path.write_text("\n".join(lines))
    message = f"{path}, line 4322: the item id is empty; fill it in or remove this line."
    for fast in (True, False):
        for chunk in (1000, 1 << 20):
            assert outcome(path, fast=fast, chunk=chunk) == message


def test_the_first_line_at_fault_is_named_whatever_the_fault(tmp_path: Path) -> None:
    path = tmp_path / "ratings.csv"
    faults = ["5,6,x", ",6,3", "5,6", '5,"6" 7,3']
    for first in range(4):
        lines = ["1,2,3"] * 20 + faults[first:] + faults[:first]
        path.write_text("\n".join(lines))
        for fast in (True, False):
            assert ", line 21: " in outcome(path, fast=fast, chunk=50)
