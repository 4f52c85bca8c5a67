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
class Ignored:
    """Columns to leave out: names and patterns that a file must have, and names it may have."""

    required: Sequence[str] = ()
    optional: Sequence[str] = ()

    @classmethod
    def of(cls, choice: "IgnoredChoice") -> "Ignored":
        """Return what a caller chose, who may give names or a pattern alone."""
        return choice if isinstance(choice, cls) else cls(_patterns(choice))

    def find(self, names: Sequence[str], where: str) -> list[int]:
        """Return the indices of the columns that are left out."""
        there = set(names).intersection(self.optional)
        return find_columns(names, [*self.required, *there], where)


#: Columns that are neither features nor labels.
IgnoredChoice = str | Sequence[str] | Ignored


def find_columns(names: Sequence[str], choice: LabelsChoice, where: str) -> list[int]:
    """Return the indices of the chosen columns, in the order of the file.

    A count of more columns than there are may be the name of one.
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
            problem = (
                f"{len(found)} columns are called {pattern!r:.60}; give each a name of its own"
            )
            raise ValueError(f"{where}: {problem}.")
        # A name that has a star or a bracket in it is first of all a name.
        if not found and any(sign in pattern for sign in "*?["):
            found = [index for index, name in enumerate(names) if fnmatchcase(name, pattern)]
        if not found:
            known = quote_names(names)
            problem = f"there is no column {pattern!r:.60}; the columns are {known}"
            raise ValueError(f"{where}: {problem}.")
        chosen.update(found)
    return sorted(chosen)


def given_names(labels: LabelsChoice | None) -> set[str]:
    """Return the names and patterns that the caller gave; none where columns are counted."""
    return set(_patterns(labels)) if isinstance(labels, Sequence) else set()


def no_labels(labels: LabelsChoice | None) -> bool:
    """Tell whether all columns are features: the caller gave an empty list of labels."""
    return isinstance(labels, Sequence) and not labels


def _patterns(choice: Any) -> Sequence[str]:
    patterns = [choice] if isinstance(choice, str) else choice
    if not isinstance(patterns, Sequence) or not all(isinstance(one, str) for one in patterns):
        raise ValueError(
            f"Columns are given as a count, as names, or as a pattern such as 'tag_*'; "
            f"got {choice!r:.60}."
        )
    return patterns


def quote_names(names: Sequence[Any]) -> str:
    """Return names as messages show them: the first few, and how many more there are."""
    shown = ", ".join(f"{name!r:.60}" for name in names[:SHOWN])
    return f"{shown} and {len(names) - SHOWN:,} more" if len(names) > SHOWN else shown or "none"


def refuse_duplicates(numbered: Iterable[tuple[int, str]], where: str, what: str) -> None:
    """Raise an error if two names are equal; their numbers say where each of them is."""
    first: dict[str, int] = {}
    for number, name in numbered:
        if name in first:
            raise ValueError(
                f"{where}: the {what} {first[name]} and {number} are both called {name!r:.60}; "
                f"give each a name of its own."
            )
        first[name] = number


def parse_numbers(text: str, separator: str, count: int) -> Float64Array | None:
    """Return the `count` numbers of a text, or None if it holds anything else.

    A blank as separator stands for any run of blanks, tabs and line ends; around any other one
    they are allowed.
    """
    if count == 0:
        return np.empty(0) if not text.strip() else None
    with warnings.catch_warnings():
        # NumPy is about to turn its warning of an unreadable text into an error.
        warnings.simplefilter("error", DeprecationWarning)
        try:
            numbers = np.fromstring(text, dtype=np.float64, sep=separator)
        except (DeprecationWarning, ValueError):
            return None
    return numbers if len(numbers) == count and np.isfinite(numbers).all() else None


def parse_matrix(lines: Sequence[str], separator: str | None, width: int) -> Float64Array | None:
    """Return rows of `width` numbers each, or None if any line is anything else.

    None as separator stands for any run of blanks.
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
