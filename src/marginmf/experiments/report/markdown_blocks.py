"""The blocks of a section in Markdown, as GitHub and others read it.  All text is escaped here."""

import re
from collections.abc import Iterable
from html import escape

from marginmf.experiments.blocks import Entry, Table, Text, Verdict
from marginmf.experiments.report.inline import with_code
from marginmf.experiments.report.pictures import Folded, Picture, Shown

#: The folder of the pictures, beside the file.
FIGURES = "figures"

#: What would be markup anywhere, and what would be at the beginning of a paragraph.
_MARKUP = re.compile(r"([\\*_{}\[\]#|~$])")
_LEADING = re.compile(r"^(?=[-+>=:])|(?<=^\d)(?=[.)])|(?<=^\d\d)(?=[.)])")


def markdown_of(blocks: Iterable[Shown]) -> str:
    """Return blocks one after the other."""
    return "\n\n".join(map(_block, blocks))


def words_of(text: str) -> str:
    r"""Return a text in which nothing but its code is markup.

    >>> print(words_of("a_b < *c* `d|e`"))
    a\_b &lt; \*c\* `d|e`
    """
    written = with_code(" ".join(text.split()), _plain, _code)
    return _LEADING.sub(r"\\", written, count=1)


def _plain(text: str) -> str:
    return _MARKUP.sub(r"\\\1", escape(text, quote=False)).replace("`", "\\`")


def _code(text: str) -> str:
    return f"`{text}`"


def _block(block: Shown) -> str:
    match block:
        case Text(words):
            return words_of(words)
        case Table():
            return _table(block)
        case Picture():
            image = f"![{words_of(block.description)}]({FIGURES}/{block.name}.svg)"
            return f"{image}\n\n*{words_of(block.caption)}*"
        case Verdict(outcome, why):
            return verdict(outcome, why)
        case Folded(heading, blocks):
            # The heading is HTML, in which Markdown means nothing.
            summary = escape(heading.replace("`", ""))
            inner = markdown_of(blocks)
            return f"<details><summary>{summary}</summary>\n\n{inner}\n\n</details>"


def verdict(outcome: str, why: str) -> str:
    """Return a verdict: its outcome in bold, and why."""
    return f"**{outcome.capitalize()}:** {words_of(why)}" if why else f"**{outcome.capitalize()}**"


def pipes(headings: Iterable[str], rows: Iterable[Iterable[str]], words: int) -> str:
    """Return a table of text that is written in Markdown already; the first columns are words."""
    headings = list(headings)
    sides = (":--" if place < words else "--:" for place in range(len(headings)))
    lines = [headings, sides, *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _table(table: Table) -> str:
    rows = ([_entry(entry) for entry in row] for row in table.rows)
    drawn = pipes((_in_pipes(one) for one in table.headings), rows, table.words)
    caption = [f"*{words_of(table.caption)}*"] if table.caption else []
    return "\n\n".join([*caption, drawn, *map(words_of, table.notes)])


def _entry(entry: Entry | str) -> str:
    entry = Entry(entry) if isinstance(entry, str) else entry
    text = _in_pipes(entry.text)
    if entry.best and text:
        text = f"**{text}**"
    return f"{text}<sup>{_plain(entry.mark)}</sup>" if entry.mark else text


def _in_pipes(text: str) -> str:
    """Return words for a table, where a bar would end the entry even in code."""
    return with_code(" ".join(text.split()), _plain, lambda code: _code(code.replace("|", "\\|")))
