"""A cell: one measurement, with everything that it depends on written out."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

#: What a measurement found: numbers, words, and lists and mappings of them.
Values = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Cell:
    """One measurement: what is measured, and with which settings.

    Parameters
    ----------
    measure : str
        The name of a function of `marginmf.experiments.measures`.
    settings : mapping
        Its arguments, in values that JSON has.  They say all that the result depends on: the data,
        the split, the method, its parameters, the seed.
    alone : bool
        Whether nothing else may run beside it, because it measures time.

    Examples
    --------
    >>> first = Cell("errors", {"data": "ml-100k", "split": 0})
    >>> second = Cell("errors", {"split": 0, "data": "ml-100k"})
    >>> first.key == second.key, len(first.key)
    (True, 12)
    """

    measure: str
    settings: Mapping[str, Any]
    alone: bool = field(default=False)

    @property
    def key(self) -> str:
        """What tells a cell from all others; the same in every process and every run."""
        text = json.dumps([self.measure, self.settings], sort_keys=True, ensure_ascii=True)
        return hashlib.sha256(text.encode()).hexdigest()[:12]

    @property
    def kind(self) -> tuple[str, str, str]:
        """What cells that take about the same time have in common."""
        data, method = (json.dumps(self.settings.get(name)) for name in ("data", "method"))
        return self.measure, data, method

    def __str__(self) -> str:
        words = [str(value) for value in self.settings.values() if isinstance(value, str | int)]
        return f"{self.measure} {' '.join(words)}"


def splits(measure: str, n_splits: int, **settings: Any) -> list[Cell]:
    """Return the cells that differ in nothing but their split: the first so many.

    >>> [cell.settings["split"] for cell in splits("errors", 2, data="ml-100k")]
    [0, 1]
    """
    return [Cell(measure, {**settings, "split": split}) for split in range(n_splits)]
