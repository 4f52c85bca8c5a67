"""What an id may be: anything hashable.  Whole numbers are kept as int64, the rest as objects.

An id, and a name of a column or a label, has at most `LONGEST_ID` characters, or digits, and no
null character, which ends a text in many a program.
"""

from collections.abc import Collection, Iterable
from typing import Any

import numpy as np

from marginmf._utils.printable import LONGEST_QUOTE, printable
from marginmf._utils.types import Array

#: How many characters, or digits, an id or a name may have.
LONGEST_ID = 1_000
#: How many texts to check at once.
_AT_ONCE = 64
#: Digits of a bit.
_DIGITS = 0.30103
#: Smaller whole numbers have hashes of their own; and how many of those of 64 bits share one.
_LARGE, _SHARED = 2**61 - 1, 16


def as_id_column(values: Any, what: str) -> Array:
    """Return ids as an int64 array if they are whole numbers, else as an array of objects.

    Whole numbers beyond int64 stay what they are, and so do booleans in a list: True is not the
    id 1.  An id that is missing (None or NaN), too long or not hashable is a ValueError that names
    its row.

    >>> as_id_column([3, 1], "user").dtype, as_id_column(["007", 7], "user").tolist()
    (dtype('int64'), ['007', 7])
    """
    column = values if isinstance(values, np.ndarray) else as_objects(values)
    if column.dtype.kind in "ib":
        return column.astype(np.int64, copy=False)
    if column.dtype.kind == "f":
        missing = np.isnan(column)
        check_ids(column[missing][:1], what, int(missing.argmax()) if len(column) else 0)
        whole = np.abs(column).max(initial=0) < 2.0**53 and np.array_equal(column, column.round())
        return column.astype(np.int64) if whole else column.astype(object)
    if column.dtype.kind in "mM":
        # In microseconds, because Python's own times have no nanoseconds and would become numbers.
        column = column.astype(f"{column.dtype.kind}8[us]").astype(object)
    if column.dtype.kind != "O":
        column = column.astype(object)
    types = set(map(type, column))
    # NumPy counts its durations among the integers.
    if types and all(
        issubclass(t, int | np.integer) and t not in (bool, np.timedelta64) for t in types
    ):
        try:
            return column.astype(np.int64)
        except OverflowError:
            pass
    check_ids(column, what)
    return column


def check_ids(column: Array, what: str, first: int = 0) -> None:
    """Raise ValueError if one of these objects is no id; `first` is the row of the first of them.

    >>> check_ids(as_objects(["ann", None]), "user")
    Traceback (most recent call last):
    ValueError: The user id in row 1 is missing. Remove such rows or give them an id.
    """
    values = column.tolist()
    if set(map(type, values)) == {str} and are_plain(values):
        return
    if collide(values):
        raise ValueError(f"The {what} ids are numbers made to be slow to look up; give texts.")
    fine: set[Any] = set()
    for row, value in enumerate(values, first):
        try:
            if value in fine:
                continue
            fine.add(value)
        except TypeError:
            pass  # it is not hashable
        if flaw := find_flaw(value):
            raise ValueError(f"The {what} id in row {row} {flaw}.")


def are_plain(texts: Iterable[str]) -> bool:
    """Whether texts can be ids and names: none is too long, or has a null character."""
    texts = list(texts)
    # Some at once, because a call for each of many texts takes three times as long.
    for first in range(0, len(texts), _AT_ONCE):
        some = texts[first : first + _AT_ONCE]
        joined = "".join(some)
        if "\0" in joined or (len(joined) > LONGEST_ID and max(map(len, some)) > LONGEST_ID):
            return False
    return True


def find_flaw(value: Any) -> str | None:
    """Return what is wrong with an id or a name, and what to do; None if nothing is.

    >>> find_flaw("ann"), find_flaw([1])
    (None, 'is of the type list, not one id; give a text or a number')
    >>> find_flaw("a" * 1001)
    'has 1,001 characters, and at most 1,000 are allowed; shorten it'
    """
    try:
        hash(value)
    except TypeError:
        return f"is of the type {type(value).__name__}, not one id; give a text or a number"
    if is_missing(value):
        return "is missing. Remove such rows or give them an id"
    parts = value if isinstance(value, tuple) else (value,)
    if any("\0" in part for part in parts if isinstance(part, str)) or (
        any(0 in part for part in parts if isinstance(part, bytes))
    ):
        return "has a null character; remove that"
    length = sum(map(_length, parts))
    if length > LONGEST_ID:
        unit = "digits" if isinstance(value, int) else "characters"
        return f"has {length:,} {unit}, and at most {LONGEST_ID:,} are allowed; shorten it"
    return None


def collide(values: Iterable[Any]) -> bool:
    """Whether whole numbers share their hashes, as only large ones that somebody chose do.

    >>> collide([2**61 * k + 1 - k for k in range(1000)]), collide(range(2**62, 2**62 + 1000))
    (True, False)
    """
    large = [one for one in values if isinstance(one, int) and abs(one) >= _LARGE]
    n_hashes = len(set(map(hash, large)))
    return _SHARED * n_hashes < len(large) and _SHARED * n_hashes < len(set(map(shown, large)))


def check_names(names: Collection[Any], what: str, where: str = "") -> None:
    """Raise ValueError if one of the names of columns or labels, in a file, cannot be one."""
    texts = [name for name in names if isinstance(name, str)]
    if not are_plain(texts):
        flawed = next(name for name in texts if find_flaw(name))
        beginning = f"{where}: the" if where else "The"
        raise ValueError(f"{beginning} {what} name {shown(flawed)} {find_flaw(flawed)}.")


def _length(value: Any) -> int:
    if isinstance(value, int):
        return int(value.bit_length() * _DIGITS) + 1
    return len(value) if isinstance(value, str | bytes | tuple | frozenset) else 0


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
    try:
        text = repr(value.item() if isinstance(value, np.generic) else value)
    except ValueError:  # a number of so many digits that Python does not write it
        return f"a number of {_length(value):,} digits"
    return printable(text, most)


def is_missing(value: Any) -> bool:
    """Whether one value stands for none: None, NaN, NaT or pandas' NA."""
    try:
        return value is None or bool(value != value)  # NaN and NaT differ from themselves
    except (TypeError, ValueError):
        return True  # pandas.NA refuses to say whether it does
