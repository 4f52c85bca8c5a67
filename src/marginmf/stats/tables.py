"""Scores in the forms that users have them, as one table."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from marginmf._utils.types import Float64Array


@dataclass(frozen=True)
class ScoreTable:
    """Finite scores: a row for each data set, a column for each method."""

    methods: tuple[str, ...]
    datasets: tuple[str, ...]
    values: Float64Array

    @property
    def n_methods(self) -> int:
        """How many methods there are."""
        return len(self.methods)

    @property
    def n_datasets(self) -> int:
        """How many data sets there are."""
        return len(self.datasets)


def score_table(scores: Any, *, at_least: int = 1) -> ScoreTable:
    """Return the scores as a table of two methods or more and ``at_least`` data sets.

    >>> score_table({"A": {"x": 1, "y": 2}, "B": {"y": 3, "x": 4}}).values
    array([[1., 4.],
           [2., 3.]])
    """
    table = _table(scores)
    if table.n_methods < 2:
        raise ValueError(f"There are scores of {table.n_methods} method(s): two are needed.")
    if table.n_datasets < at_least:
        raise ValueError(
            f"There are scores on {table.n_datasets} data set(s): {at_least} are needed here."
        )
    missing = np.argwhere(~np.isfinite(table.values))
    if len(missing):
        row, column = missing[0]
        more = f", and {len(missing) - 1} more like it" if len(missing) > 1 else ""
        raise ValueError(
            f"The score of {table.methods[column]} on {table.datasets[row]} is "
            f"{table.values[row, column]}{more}. Ranks need a score of every method on every data "
            "set: leave out either the method or the data set."
        )
    return table


def alpha_of_a_test(alpha: float) -> float:
    """Return the level of significance, or explain why it cannot be one."""
    if not 0.0 < alpha < 1.0:
        raise ValueError(f"alpha={alpha!r} must lie between 0 and 1; 0.05 is usual.")
    return float(alpha)


def _table(scores: Any) -> ScoreTable:
    if isinstance(scores, Mapping):
        return _of_mapping(scores)
    values = np.asarray(scores, np.float64)
    if values.ndim != 2:
        raise ValueError(
            f"The scores have {values.ndim} dimension(s): give a row for each data set and a "
            "column for each method, or a mapping of method to scores."
        )
    # Frames of pandas and polars have names for their columns.
    columns = getattr(scores, "columns", None)
    methods = _numbered("method", values.shape[1]) if columns is None else map(str, columns)
    return ScoreTable(tuple(methods), _numbered("data set", len(values)), values)


def _of_mapping(scores: Mapping[Any, Any]) -> ScoreTable:
    methods = tuple(map(str, scores))
    columns = list(scores.values())
    if columns and isinstance(columns[0], Mapping):
        datasets = tuple(columns[0])
        for method, column in zip(methods, columns, strict=True):
            if not isinstance(column, Mapping) or set(column) != set(datasets):
                raise ValueError(
                    f"{method} and {methods[0]} have scores on different data sets: give the "
                    "same ones for every method, with NaN for none of them."
                )
        columns = [[column[name] for name in datasets] for column in columns]
        names = tuple(map(str, datasets))
    else:
        names = ()
    arrays = [np.asarray(column, np.float64) for column in columns]
    for method, array in zip(methods, arrays, strict=True):
        if array.ndim != 1:
            raise ValueError(f"The scores of {method} are not a plain sequence of numbers.")
        if array.shape != arrays[0].shape:
            raise ValueError(
                f"{methods[0]} has {len(arrays[0])} scores but {method} has {len(array)}: every "
                "method needs one on each data set."
            )
    values = np.column_stack(arrays) if arrays else np.empty((0, 0))
    return ScoreTable(methods, names or _numbered("data set", len(values)), values)


def _numbered(what: str, count: int) -> tuple[str, ...]:
    return tuple(f"{what} {number}" for number in range(1, count + 1))
