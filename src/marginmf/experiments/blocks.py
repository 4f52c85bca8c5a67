"""What a section of the report is made of, before it becomes HTML or Markdown."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Drawing


@dataclass(frozen=True)
class Text:
    """A paragraph; words between backticks are code."""

    words: str


@dataclass(frozen=True)
class Entry:
    """One place of a table: its text, whether it is the best, and a mark with its meaning."""

    text: str
    best: bool = False
    #: Such as ``"*"`` for a significant difference; the table's notes say what it means.
    mark: str = ""
    #: Faint: what is missing, or is there for completeness alone.
    faint: bool = False


@dataclass(frozen=True)
class Table:
    """Rows of entries under headings; the first columns, so many, are words, the rest numbers."""

    headings: Sequence[str]
    rows: Sequence[Sequence[Entry | str]]
    caption: str = ""
    words: int = 1
    notes: Sequence[str] = ()


@dataclass(frozen=True)
class Figure:
    """A drawing, which is made when the report is, and what to say of it to who cannot see it."""

    draw: "Callable[[], Drawing]"
    caption: str
    description: str = ""


Outcome = Literal["reproduced", "within noise", "not reproduced", "not run"]


@dataclass(frozen=True)
class Verdict:
    """Whether a table or figure was reproduced, and why we say so."""

    outcome: Outcome
    why: str


@dataclass(frozen=True)
class Details:
    """Blocks that are folded away under a heading until someone opens them."""

    heading: str
    blocks: Sequence["Block"] = field(default_factory=tuple)


Block = Text | Table | Figure | Verdict | Details
