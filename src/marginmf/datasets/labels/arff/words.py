"""One value of one attribute, read with care."""

from contextlib import suppress

import numpy as np

from marginmf.datasets.files.convert import parse_number
from marginmf.datasets.labels.arff.blocks import RowFault
from marginmf.datasets.labels.arff.columns import Column

SHOWN = 40


def read_value(value: str, row: int, column: Column) -> float:
    """Return a number, or the place of a nominal value in its declaration."""
    name = column.attribute.name
    if value == "?":
        raise RowFault(row, f"the value of {name!r} is missing (?); fill it in")
    if column.meaning is not None:
        return _place(value, row, column)
    try:
        return parse_number(value)
    except ValueError as error:
        what = "label" if column.label else "value"
        raise RowFault(
            row, f"the {what} {value[:SHOWN]!r} of {name!r} {error}; correct it"
        ) from None


def _place(value: str, row: int, column: Column) -> int:
    if value in column.codes:
        return column.codes[value]
    if column.numbers is not None:
        with suppress(ValueError):
            equal = np.flatnonzero(column.numbers == parse_number(value))  # 1.0 for 1
            if len(equal):
                return int(equal[0])
    declared = ",".join(column.attribute.values[:6])
    raise RowFault(
        row,
        f"{value[:SHOWN]!r} is none of the values {{{declared}}} of {column.attribute.name!r}; "
        f"correct it",
    )
