"""The one Markdown writer: blocks of a report, tables, and pages with marked tables in them."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, Literal, NamedTuple

from studies.harness.drawing import save_svg

#: The folder of the figures, beside the file.
FIGURES = "figures"
#: What is markup anywhere; what is so in some dialects and has no escape in others; and what is
#: markup at the beginning of a paragraph.
_MARKUP = re.compile(r"([\\*_{}\[\]#|])")
_DIALECTS = re.compile(r"[~$]|^[=:]")
_LEADING = re.compile(r"^(?=[-+>])|(?<=^\d)(?=[.)])|(?<=^\d\d)(?=[.)])")


class Text(NamedTuple):
    """A paragraph; words between backticks are code."""

    words: str


class Entry(NamedTuple):
    """One entry of a table: its text, whether it is the best, and a mark such as ``"*"``."""

    text: str
    best: bool = False
    mark: str = ""


class Table(NamedTuple):
    """Rows under headings; the first `words` columns are words, the others are numbers."""

    headings: Sequence[str]
    rows: Sequence[Sequence[Entry | str]]
    caption: str = ""
    words: int = 1
    #: Among others, what the marks mean.
    notes: Sequence[str] = ()


class Figure(NamedTuple):
    """A drawing, which is made when the report is written, with its caption and alt text."""

    draw: Callable[[], Any]
    caption: str
    description: str = ""


#: From best to worst.
Outcome = Literal["reproduced", "within noise", "slip in the thesis", "not reproduced", "not run"]


class Verdict(NamedTuple):
    """Whether a table or figure was reproduced, why we say so, and the reason in a few words."""

    outcome: Outcome
    why: str
    #: Where it was not: a clause for the opening sentences of the report.
    cause: str = ""


class Details(NamedTuple):
    """Blocks that are hidden under a heading until someone opens them."""

    heading: str
    blocks: Sequence["Block"] = ()


Block = Text | Table | Figure | Verdict | Details


@dataclass
class Writer:
    """Writes blocks; figures become files in a folder, numbered after a name."""

    folder: Path
    name: str
    n_figures: int = 0

    def write(self, blocks: Iterable[Block]) -> str:
        """Return blocks one after the other, in Markdown in which all their text is escaped."""
        return "\n\n".join(map(self._write_block, blocks))

    def _write_block(self, block: Block) -> str:
        match block:
            case Text(words):
                return write_words(words)
            case Table():
                return _write_table(block)
            case Figure():
                return self._write_figure(block)
            case Verdict(outcome, why):
                return f"**{outcome.capitalize()}:** {write_words(why)}"
            case Details(heading, blocks):
                # The heading is HTML, in which Markdown means nothing; the attribute lets
                # Python-Markdown read what is inside.
                summary = escape(heading.replace("`", ""))
                opening = f'<details markdown="1"><summary>{summary}</summary>'
                return f"{opening}\n\n{self.write(blocks)}\n\n</details>"

    def _write_figure(self, figure: Figure) -> str:
        self.n_figures += 1
        name = f"{self.name}-{self.n_figures}"
        try:
            save_svg(figure.draw(), self.folder / FIGURES / f"{name}.svg")
        except Exception as error:  # whatever it is, the rest of the report is still worth having
            reason = f"{type(error).__name__}: {error}"
            return write_words(f"The figure “{figure.caption}” could not be drawn. {reason}")
        described = _write_caption(figure.description or figure.caption)
        return f"![{described}]({FIGURES}/{name}.svg)\n\n*{_write_caption(figure.caption)}*"


def write_words(text: str) -> str:
    r"""Return a text in which nothing but its code is markup.

    >>> print(write_words("a_b < *c* `d|e`"))
    a\_b &lt; \*c\* `d|e`
    """
    written = _write_inline(" ".join(text.split()), lambda code: code)
    return _LEADING.sub(r"\\", written, count=1)


def _write_caption(text: str) -> str:
    return write_words(text[:1].upper() + text[1:])


def _write_inline(text: str, code: Callable[[str], str]) -> str:
    """Return words and the code between backticks; a backtick without a second one is a word."""
    parts = text.split("`")
    if len(parts) % 2 == 0:
        parts[-2:] = [f"{parts[-2]}`{parts[-1]}"]
    return "".join(
        f"`{code(part)}`" if k % 2 else _escape(part) for k, part in enumerate(parts) if part
    )


def _escape(text: str) -> str:
    escaped = _MARKUP.sub(r"\\\1", escape(text, quote=False)).replace("`", "\\`")
    return _DIALECTS.sub(lambda found: f"&#{ord(found[0])};", escaped)


def _write_table(table: Table) -> str:
    rows = ([_write_entry(entry) for entry in row] for row in table.rows)
    drawn = make_table([_write_in_table(one) for one in table.headings], rows, table.words)
    caption = [f"*{_write_caption(table.caption)}*"] if table.caption else []
    return "\n\n".join([*caption, drawn, *map(write_words, table.notes)])


def _write_entry(entry: Entry | str) -> str:
    entry = Entry(entry) if isinstance(entry, str) else entry
    text = _write_in_table(entry.text)
    if entry.best and text:
        text = f"**{text}**"
    return f"{text}<sup>{_escape(entry.mark)}</sup>" if entry.mark else text


def _write_in_table(text: str) -> str:
    """Return words for a table, where a bar would end the entry even in code."""
    return _write_inline(" ".join(text.split()), lambda code: code.replace("|", "\\|"))


def make_table(headings: Sequence[str], rows: Iterable[Iterable[str]], words: int = 1) -> str:
    """Return a table of text that is Markdown already; the columns after `words` are numbers."""
    sides = "".join("---|" if k < words else "---:|" for k in range(len(headings)))
    first, *lines = (f"| {' | '.join(line)} |" for line in (headings, *rows))
    return "\n".join([first, f"|{sides}", *lines])


def print_row(*cells: object) -> None:
    """Print one row of a table that is not finished yet, numbers with four digits."""
    shown = (f"{cell:.4f}" if isinstance(cell, float) else str(cell) for cell in cells)
    print("|", " | ".join(shown), "|", flush=True)


def print_header(*names: str) -> None:
    print_row(*names)
    print_row(*["---"] * len(names))


def publish(file: Path, parts: Iterable[str]) -> None:
    """Print the parts of a report, and write them."""
    report = "\n\n".join(parts)
    print(report)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(report + "\n")


def fill_page(page: str, tables: Mapping[str, str]) -> str:
    """Return a page with new tables between their marks."""
    for name, table in tables.items():
        begin, end = f"<!-- begin {name} -->", f"<!-- end {name} -->"
        pattern = re.escape(begin) + ".*?" + re.escape(end)
        new = f"{begin}\n\n{table}\n\n{end}"
        page = re.sub(pattern, lambda _, new=new: new, page, flags=re.DOTALL)  # type: ignore[misc]
    return page
