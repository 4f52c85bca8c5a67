"""What an id may be: anything hashable.  Whole numbers are kept as int64, the rest as objects."""

from collections.abc import Iterable
from typing import Any

import numpy as np

from marginmf._utils.printable import LONGEST_QUOTE, printable
from marginmf._utils.types import Array


def as_id_column(values: Any, what: str) -> Array:
    """Return ids as an int64 array if they are whole numbers, else as an array of objects.

    Whole numbers beyond int64 stay what they are, and so do booleans in a list: True is not the
    id 1.  A missing id (None or NaN) is a ValueError that names its row.

    >>> as_id_column([3, 1], "user").dtype, as_id_column(["007", 7], "user").tolist()
    (dtype('int64'), ['007', 7])
    """
    column = values if isinstance(values, np.ndarray) else as_objects(values)
    if column.dtype.kind in "ib":
        return column.astype(np.int64, copy=False)
    if column.dtype.kind == "f":
        _refuse_missing(np.isnan(column), what)
        whole = np.abs(column).max(initial=0) < 2.0**53 and np.array_equal(column, column.round())
        return column.astype(np.int64) if whole else column.astype(object)
    if column.dtype.kind in "mM":
        # In microseconds, because Python's own times have no nanoseconds and would become numbers.
        column = column.astype(f"{column.dtype.kind}8[us]").astype(object)
    if column.dtype.kind != "O":
        column = column.astype(object)
    types = set(map(type, column))
    if not types <= {str, int}:
        _refuse_missing(np.array([is_missing(value) for value in column], bool), what)
    # NumPy counts its durations among the integers.
    if types and all(
        issubclass(t, int | np.integer) and t not in (bool, np.timedelta64) for t in types
    ):
        try:
            return column.astype(np.int64)
        except OverflowError:
            return column
    return column


def as_objects(values: Iterable[Any]) -> Array:
    """Return an array of the very objects given, without NumPy guessing a common type."""
    values = list(values)
    column = np.empty(len(values), dtype=object)
    column[:] = values
    return column


def shown(value: Any, most: int = LONGEST_QUOTE) -> str:
    """Return how an id is written in messages: as the user would write it, not as NumPy does.

    >>> shown(np.int64(7)), shown("ann"), len(shown("x" * 1000))
    ('7', "'ann'", 80)
    """
    return printable(repr(value.item() if isinstance(value, np.generic) else value), most)


def is_missing(value: Any) -> bool:
    """Whether one value stands for none: None, NaN, NaT or pandas' NA."""
    try:
        return value is None or bool(value != value)  # NaN and NaT differ from themselves
    except (TypeError, ValueError):
        return True  # pandas.NA refuses to say whether it does


def _refuse_missing(missing: Array, what: str) -> None:
    if missing.any():
        raise ValueError(
            f"The {what} id in row {int(np.argmax(missing))} is missing. "
            "Remove such rows or give them an id."
        )
