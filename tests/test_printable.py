"""Text from files is escaped where a terminal or a spreadsheet would obey it, and only there."""

import re
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marginmf._utils.ids import shown
from marginmf._utils.printable import printable, spreadsheet_cell

#: Signs before numbers, and signs of old scripts, which are seen.
SEEN = "\u0600\u0601\u0602\u0603\u0604\u0605\u06dd\u070f\u0890\u0891\u08e2"
JOINERS = "\u200c\u200d"
texts = st.text(st.characters(codec=None), max_size=20)
tricky = st.text(
    st.sampled_from("\\x1bu2=+-;'5a \x1b\n\u202e\u200d\U0001f600\ud800\x9b"), max_size=12
)


def is_hidden(one: str) -> bool:
    """Whether a character is of a kind that is obeyed or not seen."""
    return unicodedata.category(one) in ("Cc", "Cs", "Zl", "Zp") or (
        unicodedata.category(one) == "Cf" and one < "\U00010000" and one not in SEEN + JOINERS
    )


def test_every_character_that_is_obeyed_or_unseen_is_escaped() -> None:
    hidden = [one for one in map(chr, range(sys.maxunicode + 1)) if is_hidden(one)]
    assert len(hidden) > 2000
    for one in hidden:
        code = f"{ord(one):x}"
        assert re.fullmatch(rf"a\\[xuU]0*{code}b", printable(f"a{one}b")), code


@pytest.mark.parametrize(
    "text",
    [
        *("Zoë", "東京", "שלום", "العربية", "می‌خواهم", "क्‍ष", "Ωmega", "½ + ½", "non\xa0breaking"),
        *("👨‍👩‍👧", "❤️‍🔥", "🏳️‍🌈", "1️⃣", "C:\\new", "\\x1", "a & b", "[bold]", "%d", "n\u0303"),
        "🏴\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f",
    ],
)
def test_honest_text_stays_as_it_is(text: str) -> None:
    assert printable(text) == text
    assert spreadsheet_cell(text) == text


@pytest.mark.parametrize(
    "text", ["pay\u200dpal", "\u200d", "é\u200d\u200dé", "é\u200c", "\\\u200dé"]
)
def test_joiners_that_join_nothing_are_escaped(text: str) -> None:
    assert not set(printable(text)) & set(JOINERS)


@given(texts | tricky)
def test_what_is_printable_stays_so(text: str) -> None:
    once = printable(text)
    assert not any(map(is_hidden, once))
    assert printable(once) == once


@given(texts | tricky, st.integers(10, 30))
def test_no_text_is_longer_than_it_may_be(text: str, most: int) -> None:
    assert len(printable(text, most)) <= most
    assert len(printable(text)) <= most or printable(text, most).count("...") == 1


def test_an_id_in_a_message_is_at_most_a_line() -> None:
    assert len(shown("\x1b" * 10**6)) <= 120
    assert len(shown(("a" * 10**6, 1))) <= 120
    assert shown("Zoë") == "'Zoë'"


def plain(cell: str) -> str:
    """Undo what was done to a cell."""
    parts = cell.split(";")
    text = ";".join(part[1:] if is_marked(part) else part for part in parts)
    escape = r"(?<!\\)(\\+)(x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})"

    def decoded(match: re.Match[str]) -> str:
        slashes, code = match.groups()
        half = "\\" * (len(slashes) // 2)
        return half + (chr(int(code[1:], 16)) if len(slashes) % 2 else code)

    return re.sub(escape, decoded, text)


def is_marked(part: str) -> bool:
    return bool(
        re.match(r"'[\s']*[=+\-@\uff1d\uff0b\uff0d\uff20\ufe66\ufe62\ufe63\ufe6b]\s*\S", part)
    )


@given(texts | tricky)
def test_different_texts_are_different_cells(text: str) -> None:
    cell = spreadsheet_cell(text)
    assert not any(map(is_hidden, cell))
    assert plain(cell) == text
    for part in cell.split(";"):
        assert part.lstrip()[:1] not in tuple("=@\uff1d\uff0b\uff20") or len(part.strip()) == 1


@pytest.mark.parametrize(
    ("text", "cell"),
    [
        *(("=1+2", "'=1+2"), ("+cmd|x", "'+cmd|x"), ("-2+3", "'-2+3"), ("@SUM(1)", "'@SUM(1)")),
        *(
            (" =1", "' =1"),
            ("'=1", "''=1"),
            ("\uff1d1", "'\uff1d1"),
            ("\t=1", "\\x09=1"),
            ("\r=1", "\\x0d=1"),
        ),
        *(("rock;=1", "rock;'=1"), ("a;-5;+1e3", "a;-5;+1e3"), ("-", "-"), ("--5", "'--5")),
        *(("-5", "-5"), ("+1.5e3", "+1.5e3"), ("-.5", "-.5"), ("a=b", "a=b"), ("", ""), (";", ";")),
        *(
            ("\x1b[0m", "\\x1b[0m"),
            ("\\x1b", "\\\\x1b"),
            ("\\\x1b", "\\\\\\x1b"),
            ("a\nb", "a\\x0ab"),
        ),
    ],
)
def test_cells_of_a_spreadsheet(text: str, cell: str) -> None:
    assert spreadsheet_cell(text) == cell


@pytest.mark.parametrize(
    "text", ["\\", "\\x", "\u200d", "\x1b", "'", "' ", ";", ";=", "\U0001f3f4\U000e0067"]
)
def test_long_texts_take_time_in_proportion(text: str) -> None:
    # A rule that takes quadratic time would not come to an end here.
    assert len(spreadsheet_cell(text * 200_000)) >= 200_000
