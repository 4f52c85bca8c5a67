"""Columns of label files: which of them are labels, what they are called, and fast numbers."""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from numbers import Integral
from typing import Any

import numpy as np

from marginmf._utils.types import Float64Array

#: A count (the last n columns, or the first n where it is negative), names, or patterns of names.
LabelsChoice = int | str | Sequence[str]
NO_FEATURES = "has labels but no features; it needs both."
SHOWN = 8


@dataclass(frozen=True)
class IfThere:
    """Columns to leave out if a file has them, such as labels of rows to predict.

    `others` are columns that the file must have, and that are left out too.
    """

    names: tuple[str, ...]
    others: tuple[str, ...] = ()


#: Columns that are neither features nor labels.
IgnoredChoice = str | Sequence[str] | IfThere


def find_columns(names: Sequence[str], choice: LabelsChoice, where: str) -> list[int]:
    """Return the indices of the chosen columns, in the order of the file.

    >>> find_columns(["a", "b", "tag_x", "tag_y"], "tag_*", "f.csv")
    [2, 3]
    >>> find_columns(["a", "b", "c"], -1, "f.csv"), find_columns(["a", "b", "c"], 2, "f.csv")
    ([0], [1, 2])

    A count of more columns than there are may be the name of one:

    >>> find_columns(["a", "2011"], 2011, "f.csv")
    [1]
    """
    if isinstance(choice, Integral) and not isinstance(choice, bool):
        count, most = int(choice), len(names)
        if 1 <= abs(count) < most:
            return list(range(most - count, most) if count > 0 else range(-count))
        if abs(count) < most or str(count) not in names:
            raise ValueError(
                f"{where}: labels={count} does not leave a label and a feature of its {most:,} "
                f"column(s); give the number of the last columns that are labels, or a negative "
                f"one for the first."
            )
        choice = str(count)
    by_name: dict[str, list[int]] = {}
    for index, name in enumerate(names):
        by_name.setdefault(name, []).append(index)
    chosen: set[int] = set()
    for pattern in _patterns(choice):
        found = by_name.get(pattern, [])
        if len(found) > 1:
            raise ValueError(
                f"{where}: {len(found)} columns are called {pattern!r}; give each a name of its "
                f"own."
            )
        # A name that has a star or a bracket in it is first of all a name.
        if not found and any(sign in pattern for sign in "*?["):
            found = [index for index, name in enumerate(names) if fnmatchcase(name, pattern)]
        if not found:
            raise ValueError(
                f"{where}: there is no column {pattern!r}; the columns are {quote_names(names)}."
            )
        chosen.update(found)
    return sorted(chosen)


def find_ignored(names: Sequence[str], ignore: IgnoredChoice, where: str) -> list[int]:
    """Return the indices of the columns that are left out.

    >>> find_ignored(["a", "b", "c"], IfThere(("c", "d"), others=("a",)), "f.csv")
    [0, 2]
    """
    there = set(names).intersection(ignore.names) if isinstance(ignore, IfThere) else ()
    return find_columns(names, [*required_names(ignore), *there], where)


def required_names(ignore: IgnoredChoice) -> Sequence[str]:
    """Return the names and patterns of ignored columns that the file must have."""
    return _patterns(ignore.others if isinstance(ignore, IfThere) else ignore)


def given_names(choice: LabelsChoice | IgnoredChoice | None) -> set[str]:
    """Return the names and patterns that the caller gave; none where columns are counted."""
    if isinstance(choice, IfThere):
        return {*choice.names, *choice.others}
    return set(_patterns(choice)) if isinstance(choice, Sequence) else set()


def no_labels(labels: LabelsChoice | None) -> bool:
    """Tell whether all columns are features: the caller gave an empty list of labels."""
    return isinstance(labels, Sequence) and not labels


def _patterns(choice: Any) -> Sequence[str]:
    patterns = [choice] if isinstance(choice, str) else choice
    if not isinstance(patterns, Sequence) or not all(isinstance(one, str) for one in patterns):
        raise ValueError(
            f"Columns are given as a count, as names, or as a pattern such as 'tag_*'; "
            f"got {choice!r}."
        )
    return patterns


def quote_names(names: Sequence[Any]) -> str:
    """Return names as messages show them: the first few, and how many more there are."""
    shown = ", ".join(repr(name) for name in names[:SHOWN])
    return f"{shown} and {len(names) - SHOWN:,} more" if len(names) > SHOWN else shown or "none"


def refuse_duplicates(numbered: Iterable[tuple[int, str]], where: str, what: str) -> None:
    """Raise an error if two names are equal; their numbers say where each of them is.

    >>> refuse_duplicates([(1, "a"), (3, "a")], "f.csv", "columns")
    Traceback (most recent call last):
    ValueError: f.csv: the columns 1 and 3 are both called 'a'; give each a name of its own.
    """
    first: dict[str, int] = {}
    for number, name in numbered:
        if name in first:
            raise ValueError(
                f"{where}: the {what} {first[name]} and {number} are both called {name!r}; give "
                f"each a name of its own."
            )
        first[name] = number


def distinct(names: Iterable[str]) -> list[str]:
    """Return names no two of which are equal, with a number after those that come again.

    >>> distinct(["row", "a", "row", "row (2)", "row"])
    ['row', 'a', 'row (3)', 'row (2)', 'row (4)']
    """
    given = list(names)
    taken, seen, result = set(given), set[str](), []
    for name in given:
        new, number = name, 2
        while new in seen or (new != name and new in taken):
            new, number = f"{name} ({number})", number + 1
        seen.add(new)
        result.append(new)
    return result


def parse_numbers(text: str, separator: str, count: int) -> Float64Array | None:
    r"""Return the `count` numbers of a text, or None if it holds anything else.

    A blank as separator stands for any run of blanks, tabs and line ends; around any other one
    they are allowed.

    >>> parse_numbers("1,2.5, -3e2", ",", 3), parse_numbers("1,,3", ",", 3)
    (array([   1. ,    2.5, -300. ]), None)
    """
    if count == 0:
        return np.empty(0) if not text.strip() else None
    with warnings.catch_warnings():
        # NumPy is about to turn its warning of an unreadable text into an error.
        warnings.simplefilter("error", DeprecationWarning)
        try:
            numbers: Float64Array = np.fromstring(text, dtype=np.float64, sep=separator)
        except (DeprecationWarning, ValueError):
            return None
    return numbers if len(numbers) == count and np.isfinite(numbers).all() else None


def parse_matrix(lines: Sequence[str], separator: str | None, width: int) -> Float64Array | None:
    """Return rows of `width` numbers each, or None if any line is anything else.

    None as separator stands for any run of blanks.

    >>> parse_matrix(["1,2", "3,4"], ",", 2).tolist(), parse_matrix(["1,2,3", "4"], ",", 2)
    ([[1.0, 2.0], [3.0, 4.0]], None)
    """
    if separator is None:
        separator, lines = ",", [",".join(line.split()) for line in lines]
    if any(line.count(separator) != width - 1 for line in lines):
        return None
    text = separator.join(lines)
    if separator.isspace():  # which would match any run of blanks, and so hide an empty cell
        if "," in text:
            return None
        text, separator = text.replace(separator, ","), ","
    numbers = parse_numbers(text, separator, width * len(lines))
    return None if numbers is None else numbers.reshape(len(lines), width)
