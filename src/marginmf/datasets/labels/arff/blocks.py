"""Rows of an ARFF file as features and labels, a block of rows at a time."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import sparse

from marginmf._utils.types import Array, Float64Array, IntArray
from marginmf.datasets.labels.arff.columns import Column, Columns
from marginmf.datasets.labels.table import joined_features, lean


class RowFault(ValueError):  # noqa: N818, the file is at fault
    """A row that cannot be read: its place among the lines at hand, and what is wrong."""

    def __init__(self, row: int, problem: str) -> None:
        super().__init__(problem)
        self.row = row


@dataclass(frozen=True)
class Block:
    """Features and labels of some rows."""

    X: Any
    Y: Any


def dense_block(raw: Float64Array, columns: Columns) -> Block:
    """Translate rows of raw values, one for each attribute."""
    _check_two_valued(raw, columns)
    n_rows = len(raw)
    X, Y = np.empty((n_rows, columns.n_features)), np.empty((n_rows, columns.n_labels))
    starts, features, labels = columns.outputs
    X[:, starts[features]] = raw[:, features]
    Y[:, starts[labels]] = raw[:, labels]
    for place, column in columns.coded.items():
        assert column.meaning is not None
        target = Y if column.label else X
        target[:, column.start : column.start + column.width] = column.meaning[
            raw[:, place].astype(np.int64)
        ]
    return Block(lean(X), sparse.csr_array(Y.astype(np.int8)))


def sparse_block(
    n_rows: int, rows: IntArray, places: IntArray, raw: Float64Array, columns: Columns
) -> Block:
    """Translate the values that rows name; those they leave out are 0, or the first declared."""
    wrong = columns.two_valued[places] & (raw != 0) & (raw != 1)
    if wrong.any():
        first = int(np.argmax(wrong))
        raise _not_two_valued(int(rows[first]), columns.by_place[int(places[first])], raw[first])
    starts, features, labels = columns.outputs
    entries = {}
    for is_label, plain in ((False, features), (True, labels)):
        mine = plain[places] & (raw != 0)
        entries[is_label] = [(raw[mine], rows[mine], starts[places[mine]])]
    for place, column in columns.coded.items():
        assert column.meaning is not None
        codes = np.zeros(n_rows, dtype=np.int64)
        codes[rows[places == place]] = raw[places == place].astype(np.int64)
        values = column.meaning[codes]
        own_rows, own_columns = values.nonzero()
        entries[column.label].append(
            (values[own_rows, own_columns], own_rows, own_columns + column.start)
        )
    X = _matrix(entries[False], (n_rows, columns.n_features))
    Y = _matrix(entries[True], (n_rows, columns.n_labels))
    return Block(X, Y.astype(np.int8))


def _matrix(entries: list[tuple[Array, Array, Array]], shape: tuple[int, int]) -> Any:
    data, rows, places = (np.concatenate(parts) for parts in zip(*entries, strict=True))
    matrix = sparse.csr_array((data, (rows.astype(np.int32), places.astype(np.int32))), shape)
    matrix.sort_indices()
    return matrix


def _check_two_valued(raw: Float64Array, columns: Columns) -> None:
    places = np.flatnonzero(columns.two_valued)
    values = raw[:, places]
    wrong = (values != 0) & (values != 1)
    if wrong.any():
        row, place = (int(first) for first in np.argwhere(wrong)[0])
        column = columns.by_place[int(places[place])]
        raise _not_two_valued(row, column, values[row, place])


def _not_two_valued(row: int, column: Column, value: float) -> RowFault:
    name = column.attribute.name
    if column.label:
        return RowFault(row, f"the label {name!r} is {value:g}; labels are 0 or 1")
    declared = ",".join(column.attribute.values)
    return RowFault(row, f"{value:g} is none of the values {{{declared}}} of {name!r}; correct it")


def joined(blocks: list[Block]) -> Block:
    """Return all rows in one block."""
    return Block(
        joined_features([block.X for block in blocks]),
        sparse.vstack([block.Y for block in blocks], format="csr"),
    )
