"""Which columns of a file are labels, said by number, by name or by a pattern of names."""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from numbers import Integral
from typing import Any

#: A count (the last n columns, or the first n where it is negative), names, or patterns of names.
LabelsChoice = int | str | Sequence[str]


@dataclass(frozen=True)
class IfThere:
    """Columns to leave out if a file has them, such as labels of rows that are to be predicted.

    `others` are columns that have to be there, and are left out too.
    """

    names: tuple[str, ...]
    others: tuple[str, ...] = ()


#: Columns that are neither features nor labels.
IgnoredChoice = str | Sequence[str] | IfThere
SHOWN = 8


def label_places(names: Sequence[str], labels: LabelsChoice, where: str) -> list[int]:
    """Return the places of the label columns, in the order of the file.

    >>> label_places(["a", "b", "tag_x", "tag_y"], "tag_*", "f.csv")
    [2, 3]
    >>> label_places(["a", "b", "c"], -1, "f.csv"), label_places(["a", "b", "c"], 2, "f.csv")
    ([0], [1, 2])

    A count of more columns than there are may be the name of one:

    >>> label_places(["a", "2011"], 2011, "f.csv")
    [1]
    """
    if isinstance(labels, Integral) and not isinstance(labels, bool):
        count = int(labels)
        if abs(count) < len(names) or str(count) not in names:
            return _counted(len(names), count, where)
        labels = str(count)
    chosen: set[int] = set()
    known = _places(names)
    for pattern in _patterns(labels):
        chosen.update(_matching(names, known, pattern, where))
    return sorted(chosen)


def ignored_places(names: Sequence[str], ignore: IgnoredChoice, where: str) -> list[int]:
    """Return the places of the columns that are left out.

    >>> ignored_places(["a", "b", "c"], IfThere(("c", "d"), others=("a",)), "f.csv")
    [0, 2]
    """
    if not isinstance(ignore, IfThere):
        return label_places(names, ignore, where)
    known = set(names)
    there = [name for name in dict.fromkeys(ignore.names) if name in known]
    return label_places(names, [*ignore.others, *there], where)


def said_by_name(choice: LabelsChoice | IgnoredChoice | None) -> set[str]:
    """Return the names and patterns that a caller gave; none where columns are counted."""
    if isinstance(choice, IfThere):
        return {*choice.names, *choice.others}
    if isinstance(choice, str):
        return {choice}
    return set(choice) if isinstance(choice, Sequence) else set()


def names_ignored(ignore: IgnoredChoice) -> Sequence[str]:
    """Return what is left out of features that stand apart from the labels."""
    named = ignore.others if isinstance(ignore, IfThere) else ignore
    return _patterns(named)


def is_none(labels: LabelsChoice | None) -> bool:
    """Tell whether all columns are features: an empty list of labels was given."""
    return isinstance(labels, Sequence) and not labels


def listed(names: Sequence[Any]) -> str:
    """Return names as messages list them, not too many of them."""
    shown = ", ".join(repr(name) for name in names[:SHOWN])
    return f"{shown} and {len(names) - SHOWN:,} more" if len(names) > SHOWN else shown or "none"


def _counted(n_columns: int, count: int, where: str) -> list[int]:
    if not 1 <= abs(count) < n_columns:
        raise ValueError(
            f"{where}: labels={count} does not leave a label and a feature of its {n_columns:,} "
            f"column(s); give the number of the last columns that are labels, or a negative one "
            f"for the first."
        )
    return list(range(n_columns - count, n_columns) if count > 0 else range(-count))


def _patterns(labels: Any) -> Sequence[str]:
    patterns = [labels] if isinstance(labels, str) else labels
    if not isinstance(patterns, Sequence) or not all(isinstance(one, str) for one in patterns):
        raise ValueError(
            f"Columns are given as a count, as names, or as a pattern such as 'tag_*'; "
            f"got {labels!r}."
        )
    return patterns


def _places(names: Sequence[str]) -> dict[str, list[int]]:
    places: dict[str, list[int]] = {}
    for place, name in enumerate(names):
        places.setdefault(name, []).append(place)
    return places


def _matching(
    names: Sequence[str], known: dict[str, list[int]], pattern: str, where: str
) -> list[int]:
    places = known.get(pattern, [])
    if len(places) > 1:
        raise ValueError(
            f"{where}: {len(places)} columns are called {pattern!r}; give each a name of its own."
        )
    # A name that has a star or a bracket in it is first of all a name.
    if not places and any(sign in pattern for sign in "*?["):
        places = [place for place, name in enumerate(names) if fnmatchcase(name, pattern)]
    if not places:
        raise ValueError(
            f"{where}: there is no column {pattern!r}; the columns are {listed(names)}."
        )
    return places
