"""Read tables of numbers some of whose columns are labels: CSV, TSV, Parquet, Arrow, Feather."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from itertools import chain, islice
from typing import Any

import numpy as np
from scipy import sparse

from marginmf._utils.ids import check_names, shown
from marginmf._utils.types import Float64Array
from marginmf.datasets.files.arrow import open_columnar
from marginmf.datasets.files.columns import is_number
from marginmf.datasets.files.convert import parse_number
from marginmf.datasets.files.source import (
    Chunk,
    Row,
    Source,
    iterate_rows,
    lines_of,
    open_rows,
    skip_lines,
)
from marginmf.datasets.labels.columns import (
    NO_FEATURES,
    Ignored,
    LabelsChoice,
    find_columns,
    given_names,
    parse_matrix,
    quote_names,
    refuse_duplicates,
)
from marginmf.datasets.labels.table import LabelsTable, compress_features, stack_features

#: Values to hold at once as one block of dense rows.
BLOCK_VALUES = 1 << 22
#: How pandas calls a first column that it wrote, or wrote and read again, from an index.
UNNAMED = ("", "Unnamed: 0")
WHOLE_NUMBER = re.compile(r"[0-9]{1,18}").fullmatch
SAMPLE_ROWS = 200
WORDS = {"true": 1.0, "false": 0.0}

#: The numbers of some lines or rows, counted from 1, and a value for each column of the file.
NumberedRows = tuple[Sequence[int], Float64Array]


class TableColumns:
    """Which columns are features and which are labels, by index.

    `named` tells whether the names are the file's own. `index` are columns that only count or name
    the rows, as those that pandas writes: no labels either, unless `labels` gives them by name.
    """

    def __init__(
        self,
        names: Sequence[str],
        labels: LabelsChoice | None,
        ignore: Ignored,
        where: str,
        named: bool = True,
        index: Sequence[int] = (),
    ) -> None:
        self.where, self.named = where, named
        self.names = [name.strip() for name in names]
        check_names(self.names, "column", where)
        if labels is None:
            raise ValueError(
                f"{where} does not say which of its columns are labels; say so with labels=n (the "
                f"last n columns), labels=['rock', 'jazz'] or a pattern such as labels='tag_*'; "
                f"its columns are {quote_names(self.names)}."
            )
        if not named and ((labels and not isinstance(labels, int)) or ignore.required):
            raise ValueError(
                f"{where} has no line of names; say with labels=n that the last n columns are "
                f"labels, or add a line of names."
            )
        given = given_names(labels) | {*ignore.required, *ignore.optional}
        self.index = [k for k in index if self.names[k] not in given]
        columns = [k for k in range(len(names)) if k not in self.index]
        known = [self.names[k] for k in columns]
        self.labels = [columns[k] for k in find_columns(known, labels, where)]
        left_out = {*self.labels, *(columns[k] for k in ignore.find(known, where))}
        self.features = [k for k in columns if k not in left_out]
        if not self.features:
            raise ValueError(f"{where} {NO_FEATURES}")
        self.read = sorted([*self.features, *self.labels])
        refuse_duplicates(((k + 1, self.names[k]) for k in self.read), where, "columns")

    def refuse(self, here: str, column: int, value: object, problem: str) -> ValueError:
        """Return the error for a value that cannot be read."""
        name = self.names[column]
        remedy = f"correct it, or leave the column out with ignore=[{name!r:.60}]"
        if column in self.labels:
            remedy = "labels are 0 or 1"
        return ValueError(f"{here}: {value!s:.60} in the column {name!r:.60} {problem}; {remedy}.")

    def make_table(self, source: Source, rows: Iterable[NumberedRows], unit: str) -> LabelsTable:
        """Return the table of all rows; `unit` is what their numbers count, in messages."""
        X, Y = [], []
        for numbers, values in rows:
            present = values[:, self.labels]
            wrong = (present != 0) & (present != 1)
            if wrong.any():
                row, k = (int(first) for first in np.argwhere(wrong)[0])
                here = f"{self.where}, {unit} {numbers[row]}"
                raise self.refuse(here, self.labels[k], f"{present[row, k]:g}", "is no label")
            X.append(compress_features(values[:, self.features]))
            Y.append(sparse.csr_array(present.astype(np.int8)))
        if not X:
            below = " after its line of names" if unit == "line" else ""
            raise ValueError(f"{self.where} has no rows{below}; add some.")
        index = quote_names([self.names[k] for k in self.index])
        without = f" without its index {index}" if self.index else ""
        return LabelsTable(
            source.path.name,
            stack_features(X),
            sparse.vstack(Y, format="csr"),
            tuple(self.names[k] for k in self.features) if self.named else None,
            tuple(self.names[k] for k in self.labels) if self.named else (),
            source=f"read from {self.where}{without}",
        )


def read_delimited(source: Source, labels: LabelsChoice | None, ignore: Ignored) -> LabelsTable:
    """Read a text whose columns are numbers, with or without a line of names."""
    return source.read_decoded(partial(_read_text, source, labels, ignore))


def _read_text(source: Source, labels: LabelsChoice | None, ignore: Ignored) -> LabelsTable:
    separator, found = open_rows(source, 2, "lines of features and labels")
    number, first = next(found)
    rows: list[Row] = []
    with suppress(ValueError):  # anything wrong below is reported when all is read
        rows.extend(row for _, row in islice(found, SAMPLE_ROWS))
    if separator is None and rows and all(len(row) == 1 for row in rows):
        separator, first = ",", [" ".join(first)]  # one column, whose name has a blank
    named = not all(is_number(cell.strip(), _parse_word) for cell in first)
    named = named or _counts_columns(first, labels)
    names = first if named else [f"column {k + 1}" for k in range(len(first))]
    cells = [row[0].strip() for row in rows]
    distinct = len(set(cells)) == len(cells) > 0  # and so it may only count or number the rows
    is_index = first[0].strip() in UNNAMED and distinct and all(map(WHOLE_NUMBER, cells))
    columns = TableColumns(names, labels, ignore, source.where, named, [0] if is_index else [])
    chunks = skip_lines(source.read_chunks(), number if named else 0)
    return columns.make_table(source, _parse_chunks(chunks, separator, columns), "line")


def _counts_columns(first: Row, labels: LabelsChoice | None) -> bool:
    """Tell whether a line of numbers is one of names: 0, 1, 2 or 1, 2, 3, as pandas writes them."""
    cells = [cell.strip() for cell in first]
    if cells not in [list(map(str, range(start, start + len(cells)))) for start in (0, 1)]:
        return False
    # Two columns may be a feature and a label that happen to be 0 and 1.
    return len(cells) > 2 or (cells == ["1", "2"] and labels == 1)


def _parse_chunks(
    chunks: Iterator[Chunk], separator: str | None, columns: TableColumns
) -> Iterator[NumberedRows]:
    """Parse chunks quickly while they hold nothing but numbers, then cell by cell."""
    for chunk in chunks:
        split = enumerate(chunk.text.split("\n"), chunk.lines_before + 1)
        numbered = [(number, line) for number, line in split if line and not line.isspace()]
        if not numbered:
            continue
        numbers, lines = zip(*numbered, strict=True)
        values = parse_matrix(lines, separator, len(columns.names))
        if values is None:  # a quoted cell may go on in the next chunk, so this is for the rest
            text = lines_of(chain([chunk], chunks))
            rows = iterate_rows(text, separator, columns.where, chunk.lines_before)
            yield from _parse_cells(rows, columns)
            return
        yield numbers, values


def _parse_cells(rows: Iterator[tuple[int, Row]], columns: TableColumns) -> Iterator[NumberedRows]:
    width = len(columns.names)
    most = max(1, BLOCK_VALUES // width)
    numbers: list[int] = []
    values = np.zeros((most, width))
    for number, cells in rows:
        here = f"{columns.where}, line {number}"
        if len(cells) != width:
            raise ValueError(
                f"{here}: {len(cells)} column(s) where the first line has {width}; complete or "
                f"remove this line."
            )
        for k in columns.read:
            cell = cells[k].strip()
            try:
                values[len(numbers), k] = _parse_word(cell)
            except ValueError as error:
                value, problem = (shown(cell), str(error)) if cell else ("a value", "is missing")
                raise columns.refuse(here, k, value, problem) from None
        numbers.append(number)
        if len(numbers) == most:
            yield numbers, values
            numbers, values = [], np.zeros((most, width))
    if numbers:
        yield numbers, values[: len(numbers)]


def _parse_word(cell: str) -> float:
    return WORDS[cell.lower()] if cell.lower() in WORDS else parse_number(cell)


def read_columnar(source: Source, labels: LabelsChoice | None, ignore: Ignored) -> LabelsTable:
    """Read a Parquet, Arrow or Feather file whose columns are numbers or truth values."""
    with open_columnar(source) as file:
        from pyarrow import types

        index: list[int] = []
        with suppress(KeyError, TypeError, ValueError):  # pandas notes what its index is
            noted = json.loads((file.schema.metadata or {})[b"pandas"])["index_columns"]
            index = [k for k, name in enumerate(file.schema.names) if name in noted]
        columns = TableColumns(file.schema.names, labels, ignore, source.where, index=index)
        numeric = (types.is_integer, types.is_floating, types.is_boolean, types.is_decimal)
        for k in columns.read:
            kind = file.schema.field(k).type
            kind = kind.value_type if types.is_dictionary(kind) else kind
            if not any(is_kind(kind) for is_kind in numeric):
                raise columns.refuse(columns.where, k, "the data", f"is {kind}, not numbers")
        blocks = file.blocks(columns.read, max(1, BLOCK_VALUES // len(columns.names)))
        return columns.make_table(source, _convert_blocks(blocks, columns), "row")


def _convert_blocks(
    blocks: Iterable[dict[int, Any]], columns: TableColumns
) -> Iterator[NumberedRows]:
    import pyarrow as pa

    n_rows = 0
    for block in blocks:
        length = len(next(iter(block.values())))
        numbers = range(n_rows + 1, n_rows + length + 1)
        values = np.zeros((length, len(columns.names)))
        for k, column in block.items():
            plain = column.dictionary_decode() if pa.types.is_dictionary(column.type) else column
            values[:, k] = plain.cast(pa.float64()).to_numpy(zero_copy_only=False)
            finite = np.isfinite(values[:, k])  # what is missing is not a number
            if not finite.all():
                row = int(np.argmin(finite))
                value, problem = f"{values[row, k]:g}", "is not a finite number"
                if not plain[row].is_valid:
                    value, problem = "a value", "is missing"
                raise columns.refuse(f"{columns.where}, row {numbers[row]}", k, value, problem)
        n_rows += length
        if length:
            yield numbers, values
