"""Rows that name every value: ``0.5,1,0``."""

from collections.abc import Sequence

import numpy as np

from marginmf._utils.types import Float64Array
from marginmf.datasets.labels.arff.blocks import RowFault
from marginmf.datasets.labels.arff.columns import Columns
from marginmf.datasets.labels.arff.values import ValuesFault, cut
from marginmf.datasets.labels.arff.words import read_value
from marginmf.datasets.labels.numbers import parse_matrix


def raw_rows(lines: list[str], columns: Columns) -> Float64Array:
    """Return the raw value of each attribute in each line."""
    width = len(columns.attributes)
    numbers = parse_matrix(lines, ",", width)
    if numbers is not None and _encode(numbers, columns):
        return numbers
    return _one_by_one([_values(row, line, width) for row, line in enumerate(lines)], columns)


def _encode(numbers: Float64Array, columns: Columns) -> bool:
    """Turn numbers of coded attributes into places, if all of them are declared."""
    for place, column in columns.coded.items():
        if column.numbers is None:
            return False
        equal = numbers[:, place, None] == column.numbers
        if not equal.any(axis=1).all():
            return False
        numbers[:, place] = equal.argmax(axis=1)
    return True


def _values(row: int, line: str, width: int) -> list[str]:
    simple = "'" not in line and '"' not in line and "{" not in line
    values = [value.strip() for value in line.split(",")] if simple else []
    if len(values) != width or not all(values):
        try:
            values = cut(line)
        except ValuesFault as fault:
            raise RowFault(row, str(fault)) from None
    if len(values) != width:
        raise RowFault(
            row,
            f"{len(values):,} values where the header declares {width:,} attributes; complete or "
            f"remove this line",
        )
    return values


def _one_by_one(rows: Sequence[Sequence[str]], columns: Columns) -> Float64Array:
    raw = np.zeros((len(rows), len(columns.attributes)))
    faults: list[RowFault] = []
    texts = list(zip(*rows, strict=True))
    for place, column in columns.by_place.items():
        known: dict[str, float] = {}
        values = texts[place]
        try:
            for row, value in enumerate(values):
                if value not in known:
                    known[value] = read_value(value, row, column)
        except RowFault as fault:
            faults.append(fault)
            continue
        raw[:, place] = [known[value] for value in values]
    if faults:
        raise min(faults, key=lambda fault: fault.row)
    return raw
