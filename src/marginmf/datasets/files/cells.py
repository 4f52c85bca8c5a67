"""What the cells of a text mean: ids, ratings and times.

A column holds far fewer different cells than lines, so each different cell is parsed once.
"""

import math
import re
from collections.abc import Callable, Container, Iterable
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt

from marginmf._utils.types import Float64Array
from marginmf.datasets.files.blocks import CellFault, Encoded, IdBlock, Int64Array

# "007", "+7" and "-0" are names, not numbers: as int64 they could not be told from 7 and 0. Any
# number of 18 digits fits, and one of 19 that does not begin with a 9.
WHOLE_NUMBER = r"0|-?[1-9][0-9]{0,17}|[1-8][0-9]{18}"
TIME_DIGITS = 18
_is_whole = re.compile(WHOLE_NUMBER).fullmatch
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def ids(cells: list[str], what: str) -> IdBlock:
    """Return whole numbers if all cells are, else names, without the blanks around them."""
    different = set(cells)
    if all(map(_is_whole, different)):
        return _numbered(cells, dict(zip(different, map(int, different), strict=True)))
    names = {cell: cell.strip() for cell in different}
    empty = {cell for cell, name in names.items() if not name}
    if empty:
        raise CellFault(_first(cells, empty), f"the {what} id is empty", "fill it in")
    if all(map(_is_whole, names.values())):
        return _numbered(cells, {cell: int(name) for cell, name in names.items()})
    places = {name: place for place, name in enumerate(dict.fromkeys(names.values()))}
    codes = {cell: places[name] for cell, name in names.items()}
    return Encoded(list(places), np.fromiter(map(codes.__getitem__, cells), np.int32, len(cells)))


def ratings(cells: list[str]) -> Float64Array:
    """Return finite numbers."""
    return _parsed(cells, "rating", parse_number, np.float64)


def times(cells: list[str]) -> Int64Array:
    """Return seconds since 1970."""
    digits = perhaps_times(cells)  # nearly every line has a time of its own
    return _parsed(cells, "timestamp", parse_time, np.int64) if digits is None else digits


def perhaps_times(cells: Iterable[str]) -> Int64Array | None:
    """Return the cells as numbers if all are digits."""
    stripped = list(map(str.strip, cells))
    # As `_is_digits` for each, but without a call of Python for each.
    if not all(map(str.isdecimal, stripped)) or max(map(len, stripped)) > TIME_DIGITS:
        return None
    return np.fromiter(map(int, stripped), np.int64, len(stripped))


def parse_number(cell: str) -> float:
    """Read a finite number, or raise ValueError with what is wrong with it."""
    try:
        number = float(cell.replace("_", "?"))  # Python reads 1_0 as ten; a file does not
    except ValueError:
        raise ValueError("is not a number") from None
    if not math.isfinite(number):
        raise ValueError("is not a finite number")
    return number


def parse_time(cell: str) -> int:
    """Read seconds since 1970, or a date such as 1998-04-22 or 1998-04-22T10:00Z."""
    if _is_digits(cell):
        return int(cell)
    try:
        number = parse_number(cell)
    except ValueError:
        return _parse_date(cell)
    if abs(number) >= 2.0**63:
        raise ValueError("is too large a number for a time")
    return int(number)


def seconds(moment: datetime) -> int:
    """Return seconds since 1970; a moment without a time zone is taken as one of Greenwich."""
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    return (aware - EPOCH) // timedelta(seconds=1)


def _parse_date(cell: str) -> int:
    with suppress(ValueError):
        return seconds(datetime.fromisoformat(cell))
    # NumPy knows months (1998-04) too, and years far away; but also the word "now".
    if cell[:1].isdigit():
        with suppress(ValueError, OverflowError):
            return int(np.datetime64(cell, "s").astype(np.int64))
    raise ValueError("is neither a number nor a date such as 1998-04-22")


def _is_digits(cell: str) -> bool:
    return cell.isdecimal() and len(cell) <= TIME_DIGITS


def _parsed(
    cells: list[str], what: str, parse: Callable[[str], float], dtype: type[np.generic]
) -> npt.NDArray[Any]:
    numbers: dict[str, float] = {}
    faults: dict[str, str] = {}
    for cell in set(cells):
        try:
            numbers[cell] = parse(cell.strip())
        except ValueError as error:
            faults[cell] = str(error)
    if faults:
        row = _first(cells, faults)
        raise CellFault(row, f"the {what} {cells[row].strip()!r} {faults[cells[row]]}", "correct")
    return np.fromiter(map(numbers.__getitem__, cells), dtype, len(cells))


def _numbered(cells: list[str], numbers: dict[str, int]) -> Int64Array:
    return np.fromiter(map(numbers.__getitem__, cells), np.int64, len(cells))


def _first(cells: list[str], wanted: Container[str]) -> int:
    return next(row for row, cell in enumerate(cells) if cell in wanted)
