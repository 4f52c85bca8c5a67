"""Which settings the cells of an exhibit have, in a few lines: data, protocol, seeds, methods."""

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from marginmf.experiments.blocks import Table
from marginmf.experiments.cell import Cell

#: More values of one setting than that are counted and not listed.
MOST_VALUES = 10


def coverage(cells: Iterable[Cell]) -> Table:
    """Return a table of what was measured, and for every setting the values that it takes.

    >>> cells = [Cell("errors", {"split": split, "method": "HMF"}) for split in range(20)]
    >>> coverage(cells).rows
    [('errors', 'split', '0 to 19'), ('errors', 'method', 'HMF')]
    """
    found: dict[tuple[str, str], dict[str, Any]] = {}
    for cell in cells:
        for name, value in cell.settings.items():
            values = found.setdefault((cell.measure, name), {})
            values[json.dumps(value, sort_keys=True)] = value
    rows = [(*place, listed(list(values.values()))) for place, values in found.items()]
    return Table(("measured", "setting", "values"), rows, words=3)


def listed(values: Sequence[Any]) -> str:
    """Write different values in a line: all of them, or the first and how many more there are.

    >>> listed([3, 1, 2]), listed([{"name": "weak"}]), listed(list("abcdefghijkl"))
    ('1 to 3', 'name weak', 'a, b, c, d, e, f, g, h, i, and 3 more')
    """
    if len(values) > 2 and all(type(value) is int for value in values):
        low, high = min(values), max(values)
        if high - low == len(values) - 1:
            return f"{low} to {high}"
    words = [said(value) for value in values]
    separator = "; " if any(", " in one for one in words) else ", "
    if len(words) > MOST_VALUES:
        rest = len(words) - MOST_VALUES + 1
        words = [*words[: MOST_VALUES - 1], f"and {rest} more"]
    return separator.join(words)


def said(value: Any) -> str:
    """Write one value of a setting.

    >>> said({"n_factors": 100, "reg": [1, 2]}), said({}), said(None)
    ('n_factors 100, reg 1 2', 'none', 'none')
    """
    if isinstance(value, Mapping):
        return ", ".join(f"{name} {said(one)}" for name, one in value.items()) or "none"
    if isinstance(value, list | tuple):
        return " ".join(said(one) for one in value) or "none"
    return "none" if value is None else str(value)
