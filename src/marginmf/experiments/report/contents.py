"""What the report says besides its sections, whatever its form."""

from collections.abc import Sequence
from dataclasses import dataclass

from marginmf.experiments.blocks import Table, Text
from marginmf.experiments.exhibit import Exhibit, Scale
from marginmf.experiments.report.origins import origins
from marginmf.experiments.report.sections import CHAPTERS, Section, sections_of
from marginmf.experiments.store import Store

TITLE = "The tables and figures of the thesis, measured again"


@dataclass(frozen=True)
class Contents:
    """The report before it has a form."""

    title: str
    introduction: Sequence[str]
    sections: Sequence[Section]
    colophon: Sequence[Text | Table]
    scale: Scale


def contents_of(exhibits: Sequence[Exhibit], store: Store, scale: Scale) -> Contents:
    """Return all that the report says."""
    sections = sections_of(exhibits, store, scale)
    cells = [cell for one in sections for cell in one.cells]
    checking = Text(
        "To check a single figure, list the cells of its table with `marginmf reproduce list NAME "
        "--cells`, and run one of them again with `marginmf reproduce check KEY`: what is stored "
        "and what is found now are shown side by side."
    )
    return Contents(
        TITLE, _introduction(scale), sections, [*origins(cells, store), checking], scale
    )


def _introduction(scale: Scale) -> list[str]:
    words = [
        "Every table and figure of the thesis that `marginmf` implements, measured anew with this "
        "library and set beside what the thesis prints. Each section ends with the command that "
        "makes its figures again."
    ]
    if scale == "quick":
        words.append(
            "This is the quick version, with fewer repetitions and coarser grids: it shows that "
            "everything runs, and only roughly what comes out. `marginmf reproduce run --all` "
            "makes the full one."
        )
    return words


def by_chapter(sections: Sequence[Section]) -> dict[str, list[Section]]:
    """Return the sections under the headings of their chapters, in order."""
    chapters: dict[str, list[Section]] = {}
    for section in sorted(sections, key=lambda one: one.exhibit.chapter):
        number = section.exhibit.chapter
        title = f": {CHAPTERS[number]}" if number in CHAPTERS else ""
        chapters.setdefault(f"Chapter {number}{title}", []).append(section)
    return chapters


def rerun(section: Section, scale: Scale) -> str:
    """Return the command that makes an exhibit again."""
    if not section.cells:
        return "marginmf reproduce report"
    return f"marginmf reproduce run {section.name}{' --quick' if scale == 'quick' else ''}"
