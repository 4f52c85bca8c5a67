"""A cell: one measurement, with everything it depends on written out as plain values."""

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import Any

#: What a measurement found: numbers, strings, and lists and mappings of them.
Values = dict[str, Any]

#: The measures of the thesis, in a module that is imported when it is first needed.
MODULE = "studies.thesis.measures"
MEASURES = (
    *("rating_errors", "fit_time", "stage_error", "convergence", "user_view"),
    *("label_measures", "group_pattern", "system_errors", "candidate_error", "recovery"),
)


@dataclass(frozen=True, eq=False)
class Cell:
    """One measurement: what is measured, and with which settings."""

    #: A name in `MEASURES`, or a function of your own as ``"package.module:function"``.
    measure: str
    #: Its arguments, in values that JSON has: all that the result depends on, such as the data, the
    #: split, the method, its parameters and the seed.
    settings: Mapping[str, Any]
    #: Whether nothing else may run beside it, because it measures time.
    alone: bool = False

    @property
    def key(self) -> str:
        """Identifies the cell in every process and every run."""
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


def make_splits(measure: str, n_splits: int, **settings: Any) -> list[Cell]:
    """Return cells that differ in nothing but their split."""
    return [Cell(measure, {**settings, "split": split}) for split in range(n_splits)]


def find_measure(name: str) -> Callable[..., Values]:
    """Return the function of a measure."""
    module, _, function = (f"{MODULE}:{name}" if name in MEASURES else name).partition(":")
    if not function:
        raise ValueError(
            f"There is no measure {name!r}; there are {', '.join(sorted(MEASURES))}, and any "
            "function of yours as 'package.module:function'."
        )
    return getattr(import_module(module), function)


def measure_cell(cell: Cell) -> Values:
    """Measure one cell in this process, on one thread unless it says otherwise."""
    from threadpoolctl import threadpool_limits

    with threadpool_limits(1):
        return find_measure(cell.measure)(**cell.settings)


def to_plain(value: Any) -> Any:
    """Return NumPy's numbers and arrays as Python's, and what is not finite as None."""
    if isinstance(value, Mapping):
        return {str(key): to_plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [to_plain(one) for one in value]
    if hasattr(value, "tolist"):
        return to_plain(value.tolist())
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else None
    if value is None or isinstance(value, bool | int | str):
        return value
    raise TypeError(
        f"A measure found {value!r}, which cannot be stored: return numbers, strings, and lists "
        "and mappings of them."
    )
