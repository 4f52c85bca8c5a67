"""Run a cell again, and set what it finds beside what is stored."""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from marginmf.experiments.cell import Cell, Values
from marginmf.experiments.measures import HOMES
from marginmf.experiments.store import Store

#: Numbers that differ by less than this share of themselves agree: sums may be added up in another
#: order on another processor.
TOLERANCE = 1e-6
#: How the name of a time ends; a time is never the same twice.
TIME = "seconds"


@dataclass(frozen=True)
class Compared:
    """One value, as it is stored and as it is found now."""

    name: str
    stored: Any
    found: Any

    @property
    def is_time(self) -> bool:
        """Whether it is a time, which may differ."""
        return self.name.endswith(TIME)

    @property
    def agrees(self) -> bool:
        """Whether they are the same, but for rounding."""
        return self.is_time or _agree(self.stored, self.found)


def stored_cell(store: Store, key: str) -> Cell:
    """Return the only cell whose key begins so.

    Raises
    ------
    ValueError
        If there is none, if there are several, or if its measure is not one of the library's: what
        a file from elsewhere names is not run.
    """
    found = sorted(known for known in store.records if known.startswith(key.lower()))
    if not found:
        raise ValueError(
            f"There is no cell {key!r} in {store.file}; marginmf reproduce list --cells shows the "
            "keys."
        )
    if len(found) > 1:
        raise ValueError(
            f"{len(found)} cells in {store.file} begin with {key!r}: {', '.join(found[:3])}"
            f"{' and so on' if len(found) > 3 else ''}; give more of the key."
        )
    record = store.records[found[0]]
    if record["measure"] not in HOMES:
        raise ValueError(
            f"The cell {found[0]} measures {record['measure']!r}, which is not a measure of this "
            "library and is not run; use marginmf.experiments.run on its exhibit."
        )
    return Cell(record["measure"], record["settings"])


def compared(stored: Values, found: Values) -> list[Compared]:
    """Return all values side by side; those inside mappings get names with points in them.

    >>> [one.name for one in compared({"test": {"mae": 0.5}}, {"test": {"mae": 0.5}, "n": 3})]
    ['test.mae', 'n']
    """
    before, now = dict(_flat(stored)), dict(_flat(found))
    return [Compared(name, before.get(name), now.get(name)) for name in before | now]


def _flat(values: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in values.items():
        if isinstance(value, Mapping) and value:
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def _agree(first: Any, second: Any) -> bool:
    if isinstance(first, list) and isinstance(second, list):
        return len(first) == len(second) and all(map(_agree, first, second))
    if isinstance(first, int | float) and isinstance(second, int | float):
        return math.isclose(first, second, rel_tol=TOLERANCE, abs_tol=1e-12)
    return bool(first == second)
