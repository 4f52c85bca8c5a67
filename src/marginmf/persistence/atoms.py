"""Single values as JSON, and back as the very same values: ids, and whatever is not a container.

Text, booleans, None, and finite numbers are what JSON has; every other type is an object with one
name, ``{"date": "2024-02-29"}``.  Types are exact: a subclass is another type, which could not be
restored.
"""

import struct
from collections.abc import Callable
from datetime import date, datetime, timedelta, timezone
from decimal import Decimal
from math import isfinite
from typing import Any
from uuid import UUID

import numpy as np

from marginmf.persistence.arrays import is_storable, read_dtype
from marginmf.persistence.errors import ModelFileError

#: Whole numbers from here on are written in hexadecimal, which has no limit of digits.
BIG = 2**63
#: Tuples in tuples, and so on, are kept up to here.
MAX_DEPTH = 50


class NotAnAtomError(ValueError):
    """A value whose type has no exact form here."""


def encode_atom(value: Any, depth: int = 0) -> Any:
    """Return a value as JSON, or raise `NotAnAtomError`.

    >>> encode_atom(("a", 1, date(2024, 2, 29)))
    {'tuple': ['a', 1, {'date': '2024-02-29'}]}
    """
    kind = type(value)
    if value is None or kind is bool or kind is str:
        return value
    if kind is int:
        return value if -BIG <= value < BIG else {"int": hex(value)}
    if kind is float:
        # Infinities and NaN by their bits, because JSON has no word for them.
        return value if isfinite(value) else {"float": struct.pack(">d", value).hex()}
    if kind is tuple and depth < MAX_DEPTH:
        return {"tuple": [encode_atom(part, depth + 1) for part in value]}
    if isinstance(value, np.generic):
        return {"numpy": _encode_scalar(value)}
    if kind in _WRITERS:
        tag, write = _WRITERS[kind]
        return {tag: write(value)}
    raise NotAnAtomError


def decode_atom(node: Any, depth: int = 0) -> Any:
    """Return the value that JSON stands for, or raise `ModelFileError`.

    >>> decode_atom({"tuple": ["a", 1, {"date": "2024-02-29"}]})
    ('a', 1, datetime.date(2024, 2, 29))
    """
    if node is None or isinstance(node, str | int | float):
        return node
    if isinstance(node, dict) and len(node) == 1:
        ((tag, content),) = node.items()
        if tag == "tuple" and isinstance(content, list) and depth < MAX_DEPTH:
            return tuple(decode_atom(part, depth + 1) for part in content)
        if tag in READERS:
            return read_atom(tag, content)
    raise ModelFileError(f"{node!r:.60} is not a value that is known here")


def read_atom(tag: str, content: Any) -> Any:
    """Return the value of a type that JSON does not have."""
    try:
        return READERS[tag](content)
    except (TypeError, ValueError, ArithmeticError, struct.error):
        raise ModelFileError(f"{content!r:.60} is not of the type {tag!r}") from None


def _encode_scalar(value: np.generic) -> list[str]:
    if type(value) is np.str_:
        return ["str", str.__str__(value)]  # NumPy's own drops zeros at the end
    if type(value) is np.bytes_:
        return ["bytes", bytes(value).hex()]
    if not is_storable(value.dtype) or value.dtype.kind in "US":
        raise NotAnAtomError
    return [value.dtype.str, value.tobytes().hex()]


def _read_scalar(content: Any) -> np.generic:
    name, text = content
    if name == "str":
        return np.str_(_text(text))
    if name == "bytes":
        return np.bytes_(bytes.fromhex(text))
    dtype, data = read_dtype(name), bytes.fromhex(text)
    if len(data) != dtype.itemsize or dtype.kind in "US" or (dtype.kind == "b" and data[0] > 1):
        raise ValueError
    scalar: np.generic = np.frombuffer(data, dtype)[0]
    return scalar


def _write_datetime(value: datetime) -> list[Any]:
    zone: list[Any] | None = None
    if value.tzinfo is not None:
        if type(value.tzinfo) is not timezone:
            raise NotAnAtomError  # named zones change their rules
        offset, *name = value.tzinfo.__getinitargs__()  # type: ignore[attr-defined]
        zone = [_write_timedelta(offset), *name]
    moment = [value.year, value.month, value.day, value.hour, value.minute, value.second]
    return [*moment, value.microsecond, value.fold, zone]


def _read_datetime(content: Any) -> datetime:
    year, month, day, hour, minute, second, microsecond, fold, zone = content
    if zone is not None:
        offset, *name = zone
        zone = timezone(_read_timedelta(offset), *name)
    return datetime(year, month, day, hour, minute, second, microsecond, zone, fold=fold)


def _write_timedelta(value: timedelta) -> list[int]:
    return [value.days, value.seconds, value.microseconds]


def _read_timedelta(content: Any) -> timedelta:
    days, seconds, microseconds = map(_whole, content)
    return timedelta(days, seconds, microseconds)


def _read_float(content: Any) -> float:
    (number,) = struct.unpack(">d", bytes.fromhex(content))
    return float(number)


def _text(content: Any) -> str:
    if not isinstance(content, str):
        raise TypeError
    return content


def _whole(content: Any) -> int:
    if type(content) is not int:
        raise TypeError
    return content


_WRITERS: dict[type, tuple[str, Callable[[Any], Any]]] = {
    bytes: ("bytes", bytes.hex),
    date: ("date", date.isoformat),
    datetime: ("datetime", _write_datetime),
    timedelta: ("timedelta", _write_timedelta),
    Decimal: ("decimal", str),
    UUID: ("uuid", str),
}

#: How each type that JSON does not have is read, by its name in the file.
READERS: dict[str, Callable[[Any], Any]] = {
    "int": lambda content: int(_text(content), 16),
    "float": _read_float,
    "numpy": _read_scalar,
    "bytes": lambda content: bytes.fromhex(content),
    "date": lambda content: date.fromisoformat(content),
    "datetime": _read_datetime,
    "timedelta": _read_timedelta,
    "decimal": lambda content: Decimal(_text(content)),
    "uuid": lambda content: UUID(_text(content)),
}
