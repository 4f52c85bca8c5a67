"""Write the report into a folder: a page, Markdown, and pictures for the latter."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from marginmf._utils.files import atomic_write
from marginmf.experiments.exhibit import Exhibit, Scale
from marginmf.experiments.report.contents import contents_of
from marginmf.experiments.report.markdown import markdown_page_of
from marginmf.experiments.report.markdown_blocks import FIGURES
from marginmf.experiments.report.page import page_of
from marginmf.experiments.report.pictures import pictures_of
from marginmf.experiments.report.sections import Section
from marginmf.experiments.store import Store

PAGE, MARKDOWN = "report.html", "report.md"


@dataclass(frozen=True)
class Report:
    """Where a report is, and what it says."""

    page: Path
    markdown: Path
    sections: Sequence[Section]


def write_report(exhibits: Sequence[Exhibit], store: Store, scale: Scale, folder: Path) -> Report:
    """Write what the store has of the exhibits as ``report.html`` and ``report.md``.

    The same store gives the same files, byte for byte.  Exhibits of which no cell has been run say
    so; one that cannot be shown says why, and the others are there all the same.

    Parameters
    ----------
    exhibits : sequence of Exhibit
        Tables and figures, in their order.
    store : Store
        What has been measured.
    scale : {"quick", "full"}
        Which cells the exhibits are shown from.
    folder : Path
        Where the files go; pictures go into ``figures`` in it.

    Returns
    -------
    Report
        The files, and the sections with their verdicts.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> from marginmf.experiments.blocks import Text, Verdict
    >>> own = Exhibit(
    ...     "own", 3, "table", "An example", lambda scale: [],
    ...     lambda store, scale: [Verdict("reproduced", "Both are 2."), Text("One and one.")],
    ... )
    >>> with TemporaryDirectory() as folder:
    ...     report = write_report([own], Store(Path(folder)), "full", Path(folder))
    ...     print(report.page.name, report.page.stat().st_size > 1000, report.sections[0].outcome)
    report.html True reproduced
    """
    contents = contents_of(exhibits, store, scale)
    page, markdown = folder / PAGE, folder / MARKDOWN
    for section in contents.sections:
        for picture in pictures_of(section.blocks):
            _write(folder / FIGURES / f"{picture.name}.svg", picture.svg.text)
    _write(markdown, markdown_page_of(contents))
    _write(page, page_of(contents))
    return Report(page, markdown, contents.sections)


def _write(path: Path, text: str) -> None:
    with atomic_write(path) as file:
        file.write(text.encode())
