"""The Markdown, read back by a parser of it."""

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from studies.harness.markdown import Details, Entry, Table, Text, Verdict, Writer

PARSER = MarkdownIt("commonmark").enable("table").enable("strikethrough")
WORDS = st.text(st.characters(codec="ascii", categories=("L", "N", "P", "S", "Zs")), min_size=1)


def written(*blocks) -> str:
    return Writer(Path("nowhere"), "name").write(blocks)


def words_in(text: str) -> list[str]:
    """Return the words of every paragraph or entry, code among them."""
    inline = [token for token in PARSER.parse(text) if token.type == "inline"]
    return ["".join(child.content for child in token.children or []) for token in inline]


@given(WORDS.filter(lambda text: "`" not in text and text.strip()))
def test_words_stay_words(words: str) -> None:
    wanted = " ".join(words.split())
    assert words_in(written(Text(words))) == [wanted]
    table = written(Table((words, "b"), [("x", words)]))
    assert words_in(table) == [wanted, "b", "x", wanted]


def test_code_is_code_even_with_bars_in_a_table() -> None:
    assert words_in(written(Text("run `a|b_c` now"))) == ["run a|b_c now"]
    assert words_in(written(Table(("a",), [("`x|y`",)]))) == ["a", "x|y"]


@pytest.mark.parametrize(
    ("block", "found"),
    [
        (Text("a `b`"), "a `b`"),
        (Verdict("within noise", "They are near."), "**Within noise:** They are near."),
        (
            Details("a < `b`", [Text("x")]),
            '<details markdown="1"><summary>a &lt; b</summary>\n\nx\n\n</details>',
        ),
        (Table(("a", "b"), [("x", "1")]), "| a | b |\n|---|---:|\n| x | 1 |"),
        (Table(("a",), [(Entry("1", best=True),)]), "| **1** |"),
        (Table(("a",), [(Entry("1", best=True, mark="*"),)]), r"| **1**<sup>\*</sup> |"),
        (Table(("a",), [], "What", notes=("* so",)), "*What*\n\n| a |\n|---|\n\n\\* so"),
    ],
)
def test_every_kind_of_block(block, found: str) -> None:
    assert found in written(block)


def test_pictures_are_files_beside_it(report) -> None:
    pictures = re.findall(r"!\[([^\]]*)\]\(([^)]*)\)", report.text)
    assert ("Four curves fall.", "figures/nmae-1.svg") in pictures
    for _, path in pictures:
        drawing = (report.file.parent / path).read_text()
        assert drawing.startswith("<?xml")
        assert "<svg" in drawing
        assert ">iterations<" in drawing, "text stays text"


def test_the_overview_leads_to_every_section(report) -> None:
    text = report.text
    for section in report.sections:
        assert f"](#{section.name})" in text
        assert f'<a id="{section.name}"></a>' in text
    assert "| not reproduced |" in text
    html = PARSER.render(text)
    assert "<script>" not in html
    assert html.count("<table>") == text.count("\n|---|")
