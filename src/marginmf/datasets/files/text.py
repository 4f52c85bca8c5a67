"""Tables in text, read and written: delimited lines and JSON lines.

Delimited lines are read quickly where they are plain, and carefully everywhere else; `read_plain`
either gives exactly what the careful reader would give, or nothing.
"""

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, islice
from typing import IO, Any

import numpy as np

from marginmf._utils.ids import as_objects, is_missing
from marginmf._utils.types import Array, Float64Array, IntArray
from marginmf.datasets.files import convert
from marginmf.datasets.files.columns import (
    ColumnLayout,
    Wanted,
    check_width,
    find_layout,
    find_named,
    is_number,
    listed,
    name_columns,
)
from marginmf.datasets.files.convert import Batch, Encoded, IdBatch, Int64Array, parse_number
from marginmf.datasets.files.source import (
    SAMPLE_LINES,
    Chunk,
    Row,
    Source,
    iterate_rows,
    lines_of,
    open_rows,
    skip_lines,
)
from marginmf.datasets.table import Columns

#: Rows to convert at once where they are Python objects.
BATCH_ROWS = 1 << 13
SHOWN_CHARACTERS = 40
#: Cells of a table for each that is in the file: in objects with keys of their own, most are not.
MOST_CELLS = 1_000
#: Cells of at most this many bytes are compared as numbers, eight bytes at a time.
LONGEST_KEY = 96
WORD_MASKS = np.array([(1 << 8 * n_bytes) - 1 for n_bytes in range(9)], np.uint64)
#: Of the hash table of cells: the logarithm of its size, and an odd number without a pattern.
TABLE_BITS, MULTIPLIER = 18, 0x9E3779B97F4A7C15
NEWLINE, ZERO = ord("\n"), np.uint8(ord("0"))
#: What "::" and runs of blanks become.
SPARE_SEPARATOR = "\x1f"
RUN_OF_BLANKS = re.compile(r"[^\S\n]+")
BLANK_AROUND_LINE = re.compile("^\x1f|\x1f$", re.MULTILINE)


def read_text_batches(source: Source, wanted: Wanted) -> Iterator[Batch]:
    """Yield the rows of delimited text; UnicodeDecodeError means that it has another encoding."""
    *most, last = (f"{'an' if role == 'item' else 'a'} {role}" for role in wanted.roles)
    needs = f"lines with {', '.join(most)} and {last}"
    separator, rows = open_rows(source, len(wanted.roles), needs)
    number, first = next(rows)
    below: list[Row] = []
    with suppress(ValueError):  # quotes that do not match are found again, in their turn
        below.extend(row for _, row in islice(rows, SAMPLE_LINES))
    layout = find_layout(first, f"{source.where}, line {number}", wanted, below)
    source.columns = layout.names
    chunks = skip_lines(source.read_chunks(), number if layout.header else 0)
    batch = None
    for batch in split_batches(chunks, separator, len(first), layout, source.where):
        yield batch
    if batch is None:
        what = source.content
        raise ValueError(
            f"{source.where} has no {what} after its header line; add lines of {what}."
        )


def first_row(source: Source) -> Row:
    """Return the cells of the first line of delimited text."""
    return source.read_decoded(lambda: next(open_rows(source, 2, "lines")[1])[1])


def split_batches(
    chunks: Iterator[Chunk], separator: str | None, width: int, layout: ColumnLayout, where: str
) -> Iterator[Batch]:
    """Yield the rows of chunks of text, whose first line has `width` cells."""
    for chunk in chunks:
        batch = read_plain(chunk.text, separator, width, layout)
        if batch is None:  # from here on carefully: a quoted value may go on in the next chunk
            lines = lines_of(chain([chunk], chunks))
            rows = iterate_rows(lines, separator, where, chunk.lines_before)
            yield from _careful_batches(rows, width, layout, where)
            return
        yield batch


def _careful_batches(
    rows: Iterator[tuple[int, Row]], width: int, layout: ColumnLayout, where: str
) -> Iterator[Batch]:
    fault: ValueError | None = None
    while fault is None:
        taken: list[tuple[int, Row]] = []
        try:
            taken.extend(islice(rows, BATCH_ROWS))
        except ValueError as error:  # quotes that do not match
            fault = error  # the list has kept the rows before it, whose faults come first
        narrowest = min((len(row) for _, row in taken), default=0)
        if taken and narrowest < layout.width:
            short = next(k for k, (_, row) in enumerate(taken) if len(row) < layout.width)
            needed = ", ".join(role for role in layout.positions if "maybe" not in role)
            fault = ValueError(
                f"{where}, line {taken[short][0]}: {len(taken[short][1])} column(s) found where "
                f"{layout.width} are needed ({needed}, separated by comma, tab, '::', semicolon or "
                f"blanks); complete or remove this line."
            )
            del taken[short:]
        # What stands after the last name would be lost, and all before it may have moved.
        long = (k for k, (_, row) in enumerate(taken) if any(map(str.strip, row[width:])))
        if layout.names and (first := next(long, None)) is not None:
            fault = ValueError(
                f"{where}, line {taken[first][0]}: {len(taken[first][1])} cells under {width} "
                "names; put cells that hold the separator into quotes."
            )
            del taken[first:]
        if not taken:
            break
        narrowest = min(len(row) for _, row in taken)
        positions = layout.positions_within(narrowest).items()
        raw = {role: [row[k] for _, row in taken] for role, k in positions}
        yield convert.make_batch(
            *(raw, convert.TextCells(layout.words), where, "line"),
            [number for number, _ in taken],
        )
    if fault is not None:
        raise fault


# The quick reader: NumPy finds where cells begin and end, and reads digits in whole columns.


def read_plain(text: str, separator: str | None, width: int, layout: ColumnLayout) -> Batch | None:
    """Return the rows of lines without quotes, `width` cells each; None for any other text."""
    mark = separator if separator in (",", ";", "\t") else SPARE_SEPARATOR
    plain = _with_one_separator(text, separator)
    if plain is None or "\0" in plain or width < layout.width:
        return None
    data = plain.encode() + b"\n" * (not plain.endswith("\n"))
    # Cells are read in words of eight bytes, a little beyond their ends.
    characters = np.frombuffer(data + bytes(LONGEST_KEY + 8), np.uint8)
    newlines = characters == NEWLINE
    ends = np.flatnonzero(newlines | (characters == ord(mark)))
    whole = len(ends) == width * np.count_nonzero(newlines)
    if not whole or not newlines[ends[width - 1 :: width]].all():
        return None
    starts = np.append(0, ends[:-1] + 1)
    raw = {
        role: _PlainColumn(characters, starts[k::width], ends[k::width])
        for role, k in layout.positions_within(width).items()
    }
    with suppress(ValueError):  # the careful reader finds it again, and knows its line
        return convert.make_batch(raw, _PlainCells(layout.words), "", "line", range(len(ends)))
    return None


def _with_one_separator(text: str, separator: str | None) -> str | None:
    """Return the text with one character between cells, or None where it is not plain."""
    if separator is None:
        text = RUN_OF_BLANKS.sub(SPARE_SEPARATOR, text)
        return None if BLANK_AROUND_LINE.search(text) else text
    if len(separator) == 1:
        return None if '"' in text else text
    return None if SPARE_SEPARATOR in text else text.replace(separator, SPARE_SEPARATOR)


@dataclass(frozen=True)
class _PlainColumn:
    """Where the cells of a column begin and end."""

    characters: Array
    starts: IntArray
    ends: IntArray

    def digits(self, leading_zeros: bool) -> Int64Array | None:
        """Return the numbers of a column that holds only digits, as ids and times mostly do."""
        lengths = self.ends - self.starts
        if lengths.min() < 1 or lengths.max() > convert.TIME_DIGITS:
            return None
        # What is below "0" wraps around, so that one comparison finds all that are no digits.
        first = self.characters[self.starts] - ZERO
        if first.max() > 9 or not (leading_zeros or (first[lengths > 1] > 0).all()):
            return None
        numbers, power = np.zeros(len(lengths), np.int64), 1
        for k in range(int(lengths.max())):
            digits = (self.characters[self.ends - (k + 1)] - ZERO) * (lengths > k)
            if digits.max() > 9:
                return None
            numbers += digits.astype(np.int64) * power
            power *= 10
        return numbers

    def convert(self, function: Callable[..., Any], *rest: Any, zeros: bool | None = None) -> Any:
        """Convert the distinct cells; if they are only digits, and `zeros` is given, read those."""
        if zeros is not None and (numbers := self.digits(zeros)) is not None:
            return numbers
        rows, codes = self._distinct()
        view = self.characters.data
        bounds = zip(self.starts[rows].tolist(), self.ends[rows].tolist(), strict=True)
        found = function([str(view[start:end], "utf-8") for start, end in bounds], *rest)
        if isinstance(found, Encoded):
            return Encoded(found.values, found.codes[codes])
        return None if found is None else found[codes]

    def _distinct(self) -> tuple[IntArray, IntArray]:
        """Return lines that hold the distinct cells, and for each line the index of its own."""
        lengths = self.ends - self.starts
        rest = index = np.arange(len(lengths))
        if lengths.max() > LONGEST_KEY:
            return index, index
        # The eight bytes from any position on, as one number; those after a cell count as zeros.
        words = np.ndarray((len(self.characters) - 7,), "<u8", self.characters, 0, (1,))
        keys = [
            words[self.starts + k] & WORD_MASKS[(lengths - k).clip(0, 8)]
            for k in range(0, max(int(lengths.max()), 1), 8)
        ]
        # A hash table, filled in rounds: the last line in a slot stays there, the others find
        # whether its cell is theirs, and those with another cell try another hash function.
        same_as, table, multiplier = index.copy(), np.empty(1 << TABLE_BITS, np.int64), 1
        while len(rest):
            multiplier = multiplier * MULTIPLIER % 2**64
            hashes = np.zeros(len(rest), np.uint64)
            for key in keys:
                hashes = (hashes ^ key[rest]) * np.uint64(multiplier)
            slots = hashes >> np.uint64(64 - TABLE_BITS)
            table[slots] = rest
            found = table[slots]
            same = np.logical_and.reduce([key[found] == key[rest] for key in keys])
            same_as[rest[same]] = found[same]
            rest = rest[~same]
        rows = np.flatnonzero(same_as == index)
        index[rows] = np.arange(len(rows))
        return rows, index[same_as]


class _PlainCells:
    """The meaning of plain columns: that of `TextCells`, for the distinct cells alone."""

    def __init__(self, words: Mapping[str, float]) -> None:
        self._cells = convert.TextCells(words)
        self.ratings_read = self._cells.ratings_read

    def ids(self, column: _PlainColumn, what: str) -> IdBatch:
        return column.convert(self._cells.ids, what, zeros=False)

    def ratings(self, column: _PlainColumn) -> Float64Array:
        return column.convert(self._cells.ratings)

    def times(self, column: _PlainColumn) -> Int64Array:
        return column.convert(self._cells.times, zeros=True)

    def maybe_times(self, column: _PlainColumn) -> Int64Array | None:
        return column.convert(self._cells.maybe_times, zeros=True)


def read_text_columns(source: Source) -> Columns:
    """Return all columns of delimited text by the names in its first line."""
    where = source.where
    _, rows = open_rows(source, 2, "a line of names, and lines below it", size=None)
    names = [name.strip() for name in next(rows)[1]]
    check_width(len(names), where)
    if not any(names) or any(is_number(name, parse_number) for name in names):
        raise ValueError(
            f"{where}: the first line, {listed(names)}, holds no names of columns; add a line of "
            "names, such as item,genres,year."
        )
    cells = []
    for number, row in rows:
        if len(row) != len(names):
            raise ValueError(
                f"{where}, line {number}: {len(row)} column(s) found where there are {len(names)} "
                f"names ({listed(names)}); complete the line, or put cells that hold the separator "
                "into quotes."
            )
        cells.append([cell.strip() for cell in row])
    if not cells:
        raise ValueError(f"{where} has no features after its line of names; add lines.")
    columns = zip(names, zip(*cells, strict=True), strict=True)
    return name_columns(((name, _typed(column)) for name, column in columns), where)


def _typed(cells: tuple[str, ...]) -> Array:
    """Return whole numbers, or numbers with NaN for empty cells, or texts with None for them."""
    if all(map(convert.is_whole_number, cells)):
        return np.array(list(map(int, cells)), np.int64)
    filled = [cell for cell in cells if cell]
    # A number with a zero before it, such as a post code, is a name.
    if filled and all(
        is_number(cell, parse_number)
        and not (len(cell) > 1 and cell[0] == "0" and cell.isdecimal())
        for cell in filled
    ):
        return np.array([parse_number(cell) if cell else np.nan for cell in cells])
    return as_objects(cell or None for cell in cells)


def read_json_batches(source: Source, wanted: Wanted) -> Iterator[Batch]:
    """Yield the rows of JSON lines: one object a line, its keys the names of the columns."""
    records = _records(source)
    first = next(records)  # the format was recognised by an opening bracket, so there is a line
    names, where = list(first[1]), f"{source.where}, line {first[0]}"
    layout = find_named(names, where, wanted)
    source.columns, positions = layout.names, layout.positions.items()
    records = chain([first], records)
    while taken := list(islice(records, BATCH_ROWS)):
        raw = {role: [record.get(names[k]) for _, record in taken] for role, k in positions}
        numbers = [number for number, _ in taken]
        values = convert.TypedValues(layout.words)
        yield convert.make_batch(raw, values, source.where, "line", numbers)


def read_json_columns(source: Source) -> Columns:
    """Return all columns of JSON lines, with None for what an object lacks."""
    records = [record for _, record in _records(source)]
    names = dict.fromkeys(name for record in records for name in record)
    check_width(len(names), source.where)
    if len(names) * len(records) > MOST_CELLS * max(len(records), sum(map(len, records))):
        raise ValueError(
            f"{source.where}: the objects have {len(names):,} keys in all, but few of them each; "
            "give all objects the same keys."
        )
    return {name: as_objects(record.get(name) for record in records) for name in names}


def _records(source: Source) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the number and the object of each line that is not blank."""
    for number, line in enumerate(lines_of(source.read_chunks()), start=1):
        if line.isspace():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            record = None
        if not isinstance(record, dict):
            shown = line.strip()
            if len(shown) > SHOWN_CHARACTERS:
                shown = f"{shown[:SHOWN_CHARACTERS]}..."
            raise ValueError(
                f"{source.where}, line {number}: {shown!r} is not a JSON object; write one "
                f'object a line, such as {{"user": 1, "item": 2, "rating": 3}}.'
            )
        yield number, record


def write_delimited(file: IO[Any], batches: Iterable[Columns], separator: str) -> None:
    """Write a header and rows of cells, with quotes where they are needed."""
    for number, batch in enumerate(batches):
        columns = [_plain_values(column) for column in batch.values()]
        buffer = io.StringIO()
        # By itself the writer would not quote a carriage return, which ends a line for readers.
        returns = any(isinstance(v, str) and "\r" in v for values in columns for v in values)
        quoting: Any = csv.QUOTE_NONNUMERIC if returns else csv.QUOTE_MINIMAL
        writer = csv.writer(buffer, delimiter=separator, quoting=quoting, lineterminator="\n")
        if number == 0:
            writer.writerow(batch)
        writer.writerows(zip(*columns, strict=True))
        _write_text(file, buffer.getvalue())


def write_json_lines(file: IO[Any], batches: Iterable[Columns]) -> None:
    """Write one object a line."""
    encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode
    for batch in batches:
        columns = [_plain_values(column) for column in batch.values()]
        rows = (dict(zip(batch, row, strict=True)) for row in zip(*columns, strict=True))
        try:
            text = "".join(f"{encode(row)}\n" for row in rows)
        except (TypeError, ValueError):
            for name, values in zip(batch, columns, strict=True):
                _refuse_values(name, values, encode)
            raise
        _write_text(file, text)


def _write_text(file: IO[Any], text: str) -> None:
    file.write(text if isinstance(file, io.TextIOBase) else text.encode())
    file.flush()


def _plain_values(column: Array) -> list[Any]:
    """Return values as Python's own, with None for NaN."""
    if column.dtype.kind == "f":
        if column.dtype.itemsize < 8:
            # 0.1 in single precision is written so, and not as the 0.10000000149 that it is.
            column = column.astype(np.str_).astype(np.float64)
        if np.isnan(column).any():
            column = column.astype(object)
    values = column.tolist()
    if column.dtype == object:
        values = [value.item() if isinstance(value, np.generic) else value for value in values]
        values = [None if is_missing(value) else value for value in values]
    return values


def _refuse_values(name: str, values: list[Any], encode: Callable[[Any], str]) -> None:
    for value in values:
        try:
            encode(value)
        except (TypeError, ValueError):
            raise ValueError(
                f"The column {name!r} holds {value!r}, which JSON lines cannot hold; "
                f"write CSV or another kind of file."
            ) from None
