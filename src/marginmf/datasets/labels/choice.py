"""Which columns of a file are labels, said by number, by name or by a pattern of names."""

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from numbers import Integral
from typing import Any


@dataclass(frozen=True)
class IfThere:
    """Labels that a file may have or not: what is called so is no feature."""

    names: tuple[str, ...]


#: A count (the last n columns, or the first n where it is negative), names, or patterns of names.
LabelsChoice = int | str | Sequence[str] | IfThere
SHOWN = 8


def label_places(names: Sequence[str], labels: LabelsChoice, where: str) -> list[int]:
    """Return the places of the label columns, in the order of the file.

    >>> label_places(["a", "b", "tag_x", "tag_y"], "tag_*", "f.csv")
    [2, 3]
    >>> label_places(["a", "b", "c"], -1, "f.csv"), label_places(["a", "b", "c"], 2, "f.csv")
    ([0], [1, 2])
    """
    if isinstance(labels, IfThere):
        return [place for place, name in enumerate(names) if name in set(labels.names)]
    if isinstance(labels, Integral) and not isinstance(labels, bool):
        return _counted(len(names), int(labels), where)
    chosen: set[int] = set()
    known = _places(names)
    for pattern in _patterns(labels):
        chosen.update(_matching(names, known, pattern, where))
    return sorted(chosen)


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
