"""What the values of a file with types mean: ids, ratings and times.

The types are the file's word: "7" is a name and 7 a number, and no blanks are dropped.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import date, datetime, time
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from marginmf._utils.types import Float64Array
from marginmf.datasets.files.blocks import CellFault, IdBlock, Int64Array, encode
from marginmf.datasets.files.cells import TIME_DIGITS, parse_number, parse_time, seconds

LONGEST_SHOWN = 60


def ids(values: list[Any], what: str) -> IdBlock:
    """Return whole numbers if all values are, else texts and numbers as they are."""
    types = set(map(type, values))
    if types != {int}:
        values = [_each(_id, value, row, f"{what} id") for row, value in enumerate(values)]
    if not any(isinstance(value, str) for value in values):
        try:
            return np.array(values, dtype=np.int64)
        except OverflowError:
            pass
    return encode(values)


def ratings(values: list[Any]) -> Float64Array:
    """Return finite numbers."""
    if set(map(type, values)) <= {int, float}:
        try:
            numbers: Float64Array = np.array(values, dtype=np.float64)
        except OverflowError:  # a whole number that no float holds
            pass
        else:
            if np.isfinite(numbers).all():
                return numbers
    return _converted(values, "rating", _rating, np.float64)


def times(values: list[Any]) -> Int64Array:
    """Return seconds since 1970."""
    return _converted(values, "timestamp", _time, np.int64)


def perhaps_times(values: list[Any]) -> Int64Array | None:
    """Return the values if all are whole numbers, as many digits as a time may have."""
    if set(map(type, values)) != {int} or not 0 <= min(values) <= max(values) < 10**TIME_DIGITS:
        return None
    return np.array(values, dtype=np.int64)


def _converted(
    values: list[Any], what: str, convert: Callable[[Any], Any], dtype: type[np.generic]
) -> npt.NDArray[Any]:
    def numbers() -> Iterator[Any]:
        for row, value in enumerate(values):
            yield _each(convert, value, row, what)

    return np.fromiter(numbers(), dtype, len(values))


def _each(convert: Callable[[Any], Any], value: Any, row: int, what: str) -> Any:
    if value is None:
        raise CellFault(row, f"the {what} is missing", "fill it in")
    if isinstance(value, list | dict | tuple):
        raise CellFault(row, f"the {what} {_shown(value)} is more than one value", "correct")
    try:
        return convert(value)
    except (ValueError, OverflowError) as error:
        raise CellFault(row, f"the {what} {_shown(value)} {error}", "correct") from None


def _id(value: Any) -> str | int:
    if isinstance(value, bytes):
        with suppress(UnicodeDecodeError):
            value = value.decode()  # some writers of Parquet do not mark text as text
    if isinstance(value, str):
        if not value.strip():
            raise ValueError("is empty")
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    # Whole floats are what pandas makes of whole numbers in a column with holes.
    if isinstance(value, float | Decimal) and -(2**53) < value < 2**53 and value % 1 == 0:
        return int(value)
    raise ValueError("is neither text nor a whole number")


def _rating(value: Any) -> float:
    if isinstance(value, str):
        return parse_number(value.strip())
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise ValueError("is not a number")
    return parse_number(str(value))


def _time(value: Any) -> int:
    if isinstance(value, str):
        return parse_time(value.strip())
    if isinstance(value, datetime):
        return seconds(value)
    if isinstance(value, date):
        return seconds(datetime.combine(value, time()))
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal):
        raise ValueError("is neither a number nor a date")
    return parse_time(str(value))


def _shown(value: Any) -> str:
    written = repr(value)
    return written if len(written) <= LONGEST_SHOWN else f"{written[:LONGEST_SHOWN]}..."
