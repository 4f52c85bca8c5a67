"""Read delimited text of numbers: quickly where it holds nothing else, carefully elsewhere."""

import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from itertools import chain, islice
from typing import Any

import numpy as np

from marginmf._utils.types import Float64Array
from marginmf.datasets.files.convert import parse_number
from marginmf.datasets.files.source import (
    OTHER_ENCODING,
    SAMPLE_CHARACTERS,
    Chunk,
    Row,
    Source,
    iterate_rows,
    likely_encoding,
    lines_of,
    read_chunks,
    skip_lines,
    sniff_separator,
)
from marginmf.datasets.labels.choice import IgnoredChoice, LabelsChoice
from marginmf.datasets.labels.numbers import parse_matrix
from marginmf.datasets.labels.table import LabelsTable
from marginmf.datasets.labels.tabular import TableBlocks, TableColumns

#: How a first column is called that pandas wrote, or wrote and read again, from an index.
UNNAMED = ("", "Unnamed: 0")
WHOLE_NUMBER = re.compile(r"[0-9]{1,18}").fullmatch
SAMPLE_ROWS = 200
WORDS = {"true": 1.0, "false": 0.0}
#: Cells to hold as texts at once, where they have to be.
LOT_CELLS = 1 << 19


def read_delimited(
    source: Source, labels: LabelsChoice | None, ignore: IgnoredChoice
) -> LabelsTable:
    """Read a text whose columns are numbers, with or without a line of names."""
    try:
        return _read(source, labels, ignore, likely_encoding(source))
    except UnicodeDecodeError:
        return _read(source, labels, ignore, OTHER_ENCODING)


def _read(
    source: Source, labels: LabelsChoice | None, ignore: IgnoredChoice, encoding: str
) -> LabelsTable:
    samples = read_chunks(source, encoding, 4 * SAMPLE_CHARACTERS)
    sample = next((one for one in samples if one.text.strip()), None)
    if sample is None:
        raise ValueError(f"{source.where} is empty; it needs lines of features and labels.")
    separator = sniff_separator(sample.text, 2)
    (number, first), *rows = _first_rows(chain([sample], samples), separator, source.where)
    if separator is None and rows and all(len(row) == 1 for _, row in rows):
        separator, first = ",", [" ".join(first)]  # one column, whose name has a blank
    named = not all(_is_number(cell) for cell in first) or _counts_columns(first, labels)
    names = first if named else [f"column {place + 1}" for place in range(len(first))]
    index = [0] if _is_index(first[0], [row[0] for _, row in rows]) else []
    columns = TableColumns(names, labels, ignore, source.where, named, index)
    blocks = TableBlocks(columns)
    pieces = skip_lines(read_chunks(source, encoding), number if named else 0)
    for lines, values in _values(pieces, separator, columns):
        blocks.add(values, lambda row, lines=lines: f"{source.where}, line {lines[row]}")  # type: ignore[misc]
    if not len(blocks):
        raise ValueError(f"{source.where} has no rows after its line of names; add some.")
    return blocks.finish(source.path.name)


def _first_rows(
    pieces: Iterator[Chunk], separator: str | None, where: str
) -> list[tuple[int, Row]]:
    """Return some rows, and the numbers of their lines."""
    first = next(pieces)
    lines = lines_of(chain([first], pieces))
    rows = iterate_rows(lines, separator, where, first.lines_before)
    found = [next(rows)]
    with suppress(ValueError):  # whatever is wrong below is said when all is read
        found.extend(islice(rows, SAMPLE_ROWS))
    return found


def _counts_columns(first: Row, labels: LabelsChoice | None) -> bool:
    """Tell whether a line of numbers is one of names: 0, 1, 2 or 1, 2, 3, as pandas writes them.

    Two columns may be a feature and a label that happen to be 0 and 1, and are taken as such.
    """
    cells = [cell.strip() for cell in first]
    counted = [list(map(str, range(start, start + len(cells)))) for start in (0, 1)]
    if cells not in counted:
        return False
    return len(cells) > 2 or (cells == ["1", "2"] and labels == 1)


def _is_index(name: str, cells: Sequence[str]) -> bool:
    """Tell whether the first column, which has no name, only counts or numbers the rows."""
    if name.strip() not in UNNAMED or not cells:
        return False
    values = [cell.strip() for cell in cells]
    return len(set(values)) == len(values) and all(map(WHOLE_NUMBER, values))


def _values(
    pieces: Iterator[Chunk], separator: str | None, columns: TableColumns
) -> Iterator[tuple[Sequence[int], Float64Array]]:
    """Yield the numbers of lines, and the values of their columns."""
    width = len(columns.names)
    for piece in pieces:
        split = enumerate(piece.text.split("\n"), piece.lines_before + 1)
        numbered = [(number, line) for number, line in split if line and not line.isspace()]
        if not numbered:
            continue
        numbers, lines = zip(*numbered, strict=True)
        values = parse_matrix(list(lines), separator, width)
        if values is None:  # from here on carefully: a quoted cell may go on in the next piece
            rows = iterate_rows(
                lines_of(chain([piece], pieces)), separator, columns.where, piece.lines_before
            )
            yield from _careful(rows, columns)
            return
        yield numbers, values


def _careful(
    rows: Iterator[tuple[int, Row]], columns: TableColumns
) -> Iterator[tuple[Sequence[int], Float64Array]]:
    width = len(columns.names)
    most = max(1, LOT_CELLS // width)
    lines: list[int] = []
    values = np.zeros((most, width))
    for number, cells in rows:
        here = f"{columns.where}, line {number}"
        if len(cells) != width:
            raise ValueError(
                f"{here}: {len(cells)} column(s) where the first line has {width}; complete or "
                f"remove this line."
            )
        for place in columns.read:
            values[len(lines), place] = _number(cells[place].strip(), here, place, columns)
        lines.append(number)
        if len(lines) == most:
            yield lines, values
            lines, values = [], np.zeros((most, width))
    if lines:
        yield lines, values[: len(lines)]


def _number(cell: str, here: str, place: int, columns: TableColumns) -> float:
    try:
        return parse_number(cell)
    except ValueError as error:
        if cell.lower() in WORDS:
            return WORDS[cell.lower()]
        problem = str(error) if cell else "is missing"
        raise columns.refused(here, place, repr(cell) if cell else "a value", problem) from None


def _is_number(cell: Any) -> bool:
    try:
        parse_number(cell.strip())
    except ValueError:
        return cell.strip().lower() in WORDS
    return True
