"""The rows of an ARFF file: dense (``0.5,1,0``) or sparse (``{3 1, 17 0.5}``).

Both are read as numbers, all at once, where they hold nothing else; value by value where they do.
"""

import re
from contextlib import suppress
from typing import Any

import numpy as np
from scipy import sparse

from marginmf._utils.types import Float64Array, IntArray
from marginmf.datasets.files.cells import parse_number
from marginmf.datasets.labels.arff_header import (
    QUOTED,
    ArffColumn,
    ArffColumns,
    split_values,
    unquote,
)
from marginmf.datasets.labels.columns import parse_matrix, parse_numbers
from marginmf.datasets.labels.table import compress_features

PLAIN_PAIR = r"\s*\d+\s+[^\s,{}'\"]+\s*"
# Possessive, because there is only one way to match a row, and rows are long.
PLAIN_ROW = re.compile(rf"\s*\{{(?:{PLAIN_PAIR}(?:,{PLAIN_PAIR})*+|\s*)\}}\s*")
PAIR = re.compile(rf"\s*(\d{{1,18}})\s+({QUOTED}|[^\s,{{}}'\"]+)\s*(,|$)")
PUNCTUATION = str.maketrans("{},", "   ")
SHOWN = 40

#: Features and labels of some rows.
Matrices = tuple[Any, Any]
#: The values that sparse rows name: row, index of the attribute, raw value.
Triplets = tuple[IntArray, IntArray, Float64Array]


class RowError(ValueError):
    """A row that cannot be read: its index among the lines at hand, and what is wrong."""

    def __init__(self, row: int, problem: str) -> None:
        super().__init__(problem)
        self.row = row


def read_rows(lines: list[str], columns: ArffColumns, is_sparse: bool) -> Matrices:
    """Return the features and labels of lines that must all be sparse, or all dense."""
    other = next((k for k, line in enumerate(lines) if line.startswith("{") != is_sparse), None)
    if other is not None:
        this, those = ("dense", "sparse") if is_sparse else ("sparse", "dense")
        raise RowError(other, f"a {this} row among {those} ones; write all alike")
    return _read_sparse(lines, columns) if is_sparse else _read_dense(lines, columns)


def _read_dense(lines: list[str], columns: ArffColumns) -> Matrices:
    raw = parse_matrix(lines, ",", len(columns.attributes))
    if raw is None or not _encode_dense(raw, columns):
        raw = _parse_dense(lines, columns)
    binary = np.flatnonzero(columns.binary)
    values = raw[:, binary]
    wrong = (values != 0) & (values != 1)
    if wrong.any():
        row, k = (int(first) for first in np.argwhere(wrong)[0])
        raise _not_binary(row, columns.by_index[int(binary[k])], values[row, k])
    X = np.empty((len(lines), columns.n_features))
    Y = np.empty((len(lines), columns.n_labels))
    for target, plain in ((X, columns.plain_features), (Y, columns.plain_labels)):
        target[:, columns.starts[plain]] = raw[:, plain]
    for index, column in columns.coded.items():
        assert column.codes is not None
        target = Y if column.is_label else X
        codes = column.codes[raw[:, index].astype(np.int64)]
        target[:, column.start : column.start + column.width] = codes
    return compress_features(X), sparse.csr_array(Y.astype(np.int8))


def _encode_dense(raw: Float64Array, columns: ArffColumns) -> bool:
    """Turn numbers of coded attributes into indices, if all of them are declared."""
    for index, column in columns.coded.items():
        found = column.find_numbers(raw[:, index])
        if found is None:
            return False
        raw[:, index] = found
    return True


def _parse_dense(lines: list[str], columns: ArffColumns) -> Float64Array:
    width = len(columns.attributes)
    raw = np.zeros((len(lines), width))
    texts = list(zip(*(_split_dense(k, line, width) for k, line in enumerate(lines)), strict=True))
    errors: list[RowError] = []
    for index, column in columns.by_index.items():
        known: dict[str, float] = {}
        try:
            for row, value in enumerate(texts[index]):
                if value not in known:
                    known[value] = _parse_value(value, row, column)
        except RowError as error:
            errors.append(error)
            continue
        raw[:, index] = [known[value] for value in texts[index]]
    if errors:
        raise min(errors, key=lambda error: error.row)
    return raw


def _split_dense(row: int, line: str, width: int) -> list[str]:
    simple = "'" not in line and '"' not in line and "{" not in line
    values = [value.strip() for value in line.split(",")] if simple else []
    if len(values) != width or not all(values):
        try:
            values = split_values(line)
        except ValueError as error:
            raise RowError(row, str(error)) from None
    if len(values) != width:
        raise RowError(
            row,
            f"{len(values):,} values where the header declares {width:,} attributes; complete or "
            f"remove this line",
        )
    return values


def _read_sparse(lines: list[str], columns: ArffColumns) -> Matrices:
    """Read rows that name some values; those they leave out are 0, or the first declared."""
    rows, indices, raw = _sparse_numbers(lines, columns) or _parse_sparse(lines, columns)
    _check_indices(rows, indices, len(columns.attributes))
    wrong = columns.binary[indices] & (raw != 0) & (raw != 1)
    if wrong.any():
        first = int(np.argmax(wrong))
        raise _not_binary(int(rows[first]), columns.by_index[int(indices[first])], raw[first])
    entries: list[list[Any]] = [[], []]
    for is_label, plain in enumerate((columns.plain_features, columns.plain_labels)):
        named = plain[indices] & (raw != 0)
        entries[is_label].append((raw[named], rows[named], columns.starts[indices[named]]))
    for index, column in columns.coded.items():
        assert column.codes is not None
        codes = np.zeros(len(lines), dtype=np.int64)
        codes[rows[indices == index]] = raw[indices == index].astype(np.int64)
        values = column.codes[codes]
        own, offsets = values.nonzero()
        entries[column.is_label].append((values[own, offsets], own, offsets + column.start))
    X, Y = (
        _make_matrix(found, (len(lines), width))
        for found, width in zip(entries, (columns.n_features, columns.n_labels), strict=True)
    )
    return X, Y.astype(np.int8)


def _make_matrix(entries: list[Any], shape: tuple[int, int]) -> Any:
    data, rows, columns = (np.concatenate(parts) for parts in zip(*entries, strict=True))
    matrix = sparse.csr_array((data, (rows.astype(np.int32), columns.astype(np.int32))), shape)
    matrix.sort_indices()
    return matrix


def _sparse_numbers(lines: list[str], columns: ArffColumns) -> Triplets | None:
    """Return the values that rows name if all of them are numbers, else None."""
    if not all(map(PLAIN_ROW.fullmatch, lines)):
        return None
    counts = np.array([line.count(",") + bool(line.strip(" \t{}")) for line in lines])
    numbers = parse_numbers("\n".join(lines).translate(PUNCTUATION), " ", 2 * int(counts.sum()))
    if numbers is None or numbers[::2].max(initial=0) >= 2**53:
        return None
    rows, indices = np.repeat(np.arange(len(lines)), counts), numbers[::2].astype(np.int64)
    raw = numbers[1::2]
    for index, column in columns.coded.items():
        named = indices == index
        if named.any():
            found = column.find_numbers(raw[named])
            if found is None:
                return None
            raw[named] = found
    return rows, indices, raw


def _parse_sparse(lines: list[str], columns: ArffColumns) -> Triplets:
    triplets: list[tuple[int, int, float]] = []
    for row, line in enumerate(lines):
        for index, value in _split_sparse(row, line.strip()):
            column = columns.by_index.get(index)
            raw = 0.0 if column is None else _parse_value(value, row, column)
            triplets.append((row, index, raw))
    rows, indices, values = zip(*triplets, strict=True) if triplets else ((), (), ())
    return np.array(rows, np.int64), np.array(indices, np.int64), np.array(values, np.float64)


def _check_indices(rows: IntArray, indices: IntArray, width: int) -> None:
    beyond = indices >= width
    if beyond.any():
        first = int(np.argmax(beyond))
        raise RowError(
            int(rows[first]),
            f"the index {int(indices[first])} is beyond the header's {width:,} attributes, which "
            f"are counted from 0; correct it",
        )
    keys = np.sort(rows * width + indices)
    again = np.flatnonzero(keys[1:] == keys[:-1])
    if len(again):
        row, index = map(int, divmod(keys[again[0]], width))
        raise RowError(row, f"the index {index} is named twice; remove one of them")


def _split_sparse(row: int, line: str) -> list[tuple[int, str]]:
    if not line.endswith("}"):
        raise RowError(
            row, "the sparse row does not end with its brace; complete or remove this line"
        )
    inner = line[1:-1].strip()
    pairs: list[tuple[int, str]] = []
    position, more = 0, False
    while position < len(inner):
        match = PAIR.match(inner, position)
        if match is None:
            raise RowError(
                row,
                f"{inner[position : position + SHOWN].strip()!r} does not begin with an index and "
                f"a value, such as 3 1; correct it",
            )
        pairs.append((int(match[1]), unquote(match[2])))
        more = match[3] == ","
        position = match.end()
    if more:
        raise RowError(row, "the sparse row ends with a comma; complete or remove this line")
    return pairs


def _parse_value(value: str, row: int, column: ArffColumn) -> float:
    """Return a number, or the index of a nominal value in its declaration."""
    name = column.attribute.name
    if value == "?":
        raise RowError(row, f"the value of {name!r} is missing (?); fill it in")
    if column.codes is None:
        try:
            return parse_number(value)
        except ValueError as error:
            what = "label" if column.is_label else "value"
            problem = f"the {what} {value[:SHOWN]!r} of {name!r} {error}; correct it"
            raise RowError(row, problem) from None
    if value in column.declared:
        return column.declared[value]
    with suppress(ValueError):
        found = column.find_numbers(np.array([parse_number(value)]))  # 1.0 for 1
        if found is not None:
            return int(found[0])
    raise _undeclared(row, column, repr(value[:SHOWN]))


def _not_binary(row: int, column: ArffColumn, value: float) -> RowError:
    if column.is_label:
        name = column.attribute.name
        return RowError(row, f"the label {name!r} is {value:g}; labels are 0 or 1")
    return _undeclared(row, column, f"{value:g}")


def _undeclared(row: int, column: ArffColumn, value: str) -> RowError:
    name, declared = column.attribute.name, ",".join(column.attribute.values[:6])
    return RowError(row, f"{value} is none of the values {{{declared}}} of {name!r}; correct it")
