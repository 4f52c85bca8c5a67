"""The rows of an ARFF file: dense (``0.5,1,0``) or sparse (``{3 1, 17 0.5}``).

Both are read as numbers, all at once, where they hold nothing else; value by value where they do.
"""

import re
from contextlib import suppress
from typing import Any

import numpy as np
from scipy import sparse

from marginmf._utils.types import Float64Array, IntArray
from marginmf.datasets.files.convert import parse_number
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

    def __init__(self, row: Any, problem: object) -> None:
        super().__init__(str(problem))
        self.row = int(row)


def read_rows(lines: list[str], columns: ArffColumns, is_sparse: bool) -> Matrices:
    """Return the features and labels of lines that must all be sparse, or all dense."""
    other = next((k for k, line in enumerate(lines) if line.startswith("{") != is_sparse), None)
    if other is not None:
        this, those = ("dense", "sparse") if is_sparse else ("sparse", "dense")
        raise RowError(other, f"a {this} row among {those} ones; write all alike")
    raw = (_read_sparse if is_sparse else _read_dense)(lines, columns)
    X, Y = (_expand(raw, chosen) for chosen in (columns.features, columns.labels))
    return X if is_sparse else compress_features(X), sparse.csr_array(Y).astype(np.int8)


def _expand(raw: Any, columns: list[ArffColumn]) -> Any:
    """Return the columns that some attributes become."""
    plain = [column for column in columns if not column.is_coded]
    coded = [column for column in columns if column.is_coded]
    result = raw[:, [column.index for column in plain]]
    if not coded:
        return result
    blocks, order = [result], [column.start for column in plain]
    for column in coded:
        values = raw[:, [column.index]]
        values = values.toarray() if sparse.issparse(raw) else values
        blocks.append(column.codes[values[:, 0].astype(np.int64)])
        order += range(column.start, column.start + column.width)
    if sparse.issparse(raw):
        result = sparse.hstack(list(map(sparse.csr_array, blocks)), format="csr")
    else:
        result = np.hstack(blocks)
    return result[:, np.argsort(order)]


def _read_dense(lines: list[str], columns: ArffColumns) -> Float64Array:
    raw = _dense_numbers(lines, columns)
    raw = _parse_dense(lines, columns) if raw is None else raw
    wrong = np.argwhere(columns.binary & (raw != 0) & (raw != 1))
    if len(wrong):
        row, index = wrong[0]
        raise RowError(row, _not_binary(columns.by_index[index], raw[row, index]))
    return raw


def _dense_numbers(lines: list[str], columns: ArffColumns) -> Float64Array | None:
    """Return the values of rows if all of them are numbers, and those of words declared."""
    raw = parse_matrix(lines, ",", len(columns.attributes))
    for column in columns.coded:
        found = None if raw is None else column.find_numbers(raw[:, column.index])
        if raw is None or found is None:
            return None
        raw[:, column.index] = found
    return raw


def _parse_dense(lines: list[str], columns: ArffColumns) -> Float64Array:
    width = len(columns.attributes)
    raw = np.zeros((len(lines), width))
    known = [_ParsedValues(columns.by_index.get(index)) for index in range(width)]
    for row, line in enumerate(lines):
        simple = "'" not in line and '"' not in line and "{" not in line
        values = [value.strip() for value in line.split(",")] if simple else []
        try:
            if len(values) != width or not all(values):
                values = split_values(line)
            if len(values) != width:
                raise ValueError(
                    f"{len(values):,} values where the header declares {width:,} attributes; "
                    f"complete or remove this line"
                )
            raw[row] = [parsed[value] for parsed, value in zip(known, values, strict=True)]
        except ValueError as error:
            raise RowError(row, error) from None
    return raw


def _read_sparse(lines: list[str], columns: ArffColumns) -> Any:
    """Read rows that name some values; those they leave out are 0, or the first declared."""
    rows, indices, raw = _sparse_numbers(lines, columns) or _parse_sparse(lines, columns)
    width = len(columns.attributes)
    beyond = indices >= width
    if beyond.any():
        first = np.argmax(beyond)
        problem = f"the index {indices[first]} is beyond the header's {width:,} attributes, which"
        raise RowError(rows[first], f"{problem} are counted from 0; correct it")
    keys = rows * width + indices
    if (keys[1:] <= keys[:-1]).any():  # not in order, and so perhaps not distinct
        keys.sort()
        again = keys[1:][keys[1:] == keys[:-1]]
        if len(again):
            row, index = divmod(again[0], width)
            raise RowError(row, f"the index {index} is named twice; remove one of them")
    wrong = columns.binary[indices] & (raw != 0) & (raw != 1)
    if wrong.any():
        first = np.argmax(wrong)
        raise RowError(rows[first], _not_binary(columns.by_index[indices[first]], raw[first]))
    starts = np.searchsorted(rows, np.arange(len(lines) + 1))
    matrix = sparse.csr_array((raw, indices, starts), shape=(len(lines), width))
    matrix.eliminate_zeros()
    return matrix


def _sparse_numbers(lines: list[str], columns: ArffColumns) -> Triplets | None:
    """Return the values that rows name if all of them are numbers, and those of words declared."""
    if not all(map(PLAIN_ROW.fullmatch, lines)):
        return None
    counts = np.array([line.count(",") + bool(line.strip(" \t{}")) for line in lines])
    numbers = parse_numbers("\n".join(lines).translate(PUNCTUATION), " ", 2 * int(counts.sum()))
    if numbers is None or numbers[::2].max(initial=0) >= 2**53:
        return None
    indices, raw = numbers[::2].astype(np.int64), numbers[1::2]
    for column in columns.coded:
        named = indices == column.index
        if named.any():
            found = column.find_numbers(raw[named])
            if found is None:
                return None
            raw[named] = found
    return np.repeat(np.arange(len(lines)), counts), indices, raw


def _parse_sparse(lines: list[str], columns: ArffColumns) -> Triplets:
    known = {index: _ParsedValues(column) for index, column in columns.by_index.items()}
    other = _ParsedValues(None)
    triplets: list[tuple[int, int, float]] = []
    for row, line in enumerate(lines):
        try:
            pairs = _split_sparse(line.strip())
            triplets += [(row, index, known.get(index, other)[value]) for index, value in pairs]
        except ValueError as error:
            raise RowError(row, error) from None
    rows, indices, raw = zip(*triplets, strict=True) if triplets else ((), (), ())
    return np.array(rows, np.int64), np.array(indices, np.int64), np.array(raw, np.float64)


def _split_sparse(line: str) -> list[tuple[int, str]]:
    if not line.endswith("}"):
        raise ValueError("the sparse row does not end with its brace; complete or remove this line")
    inner = line[1:-1].strip()
    pairs: list[tuple[int, str]] = []
    position, more = 0, False
    while position < len(inner):
        match = PAIR.match(inner, position)
        if match is None:
            raise ValueError(
                f"{inner[position : position + SHOWN].strip()!r} does not begin with an index and "
                f"a value, such as 3 1; correct it"
            )
        pairs.append((int(match[1]), unquote(match[2])))
        more = match[3] == ","
        position = match.end()
    if more:
        raise ValueError("the sparse row ends with a comma; complete or remove this line")
    return pairs


class _ParsedValues(dict[str, float]):
    """The number, or the index in the declaration, of each text of a column, parsed once."""

    def __init__(self, column: ArffColumn | None) -> None:
        self.column = column

    def __missing__(self, value: str) -> float:
        if self.column is None:  # which is not read
            return 0.0
        self[value] = number = _parse_value(value, self.column)
        return number


def _parse_value(value: str, column: ArffColumn) -> float:
    name = column.attribute.name
    if value == "?":
        raise ValueError(f"the value of {name!r} is missing (?); fill it in")
    if not column.is_coded:
        try:
            return parse_number(value)
        except ValueError as error:
            what = "label" if column.is_label else "value"
            raise ValueError(
                f"the {what} {value[:SHOWN]!r} of {name!r} {error}; correct it"
            ) from None
    if value in column.attribute.values:
        return column.attribute.values.index(value)
    with suppress(ValueError):
        found = column.find_numbers(np.array([parse_number(value)]))  # 1.0 for 1
        if found is not None:
            return int(found[0])
    raise ValueError(_undeclared(column, repr(value[:SHOWN])))


def _not_binary(column: ArffColumn, value: float) -> str:
    if column.is_label:
        return f"the label {column.attribute.name!r} is {value:g}; labels are 0 or 1"
    return _undeclared(column, f"{value:g}")


def _undeclared(column: ArffColumn, value: str) -> str:
    name, declared = column.attribute.name, ",".join(column.attribute.values[:6])
    return f"{value} is none of the values {{{declared}}} of {name!r}; correct it"
