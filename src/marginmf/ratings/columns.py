"""Take users, items and ratings out of whatever holds them: arrays, lists, data frames."""

from collections.abc import Iterable
from typing import Any

import narwhals as nw
import numpy as np

from marginmf._ids import as_objects
from marginmf._typing import Array, FloatArray, IntArray


def is_frame(data: Any) -> bool:
    """Whether ``data`` is a data frame of any library that narwhals knows."""
    return isinstance(nw.from_native(data, eager_only=True, pass_through=True), nw.DataFrame)


def frame_columns(frame: Any, *names: str) -> list[Array]:
    """Return the named columns of a data frame as arrays."""
    table = nw.from_native(frame, eager_only=True)
    missing = [name for name in names if name not in table.columns]
    if missing:
        raise ValueError(
            f"The frame has no column {missing[0]!r}; its columns are {_listed(table.columns)}. "
            "Rename them, or say which is which with user=, item= and rating=."
        )
    return [table.get_column(name).to_numpy() for name in names]


def split_pairs(pairs: Any) -> tuple[Any, Any]:
    """Return the users and the items of (user, item) pairs.

    Pairs are an array with two columns, a list of pairs, or a data frame: its columns ``user``
    and ``item``, or its only two columns.
    """
    if is_frame(pairs):
        names = nw.from_native(pairs, eager_only=True).columns
        if {"user", "item"} <= set(names):
            names = ["user", "item"]
        elif len(names) != 2:
            raise ValueError(
                f"Pairs need two columns, but the frame has {_listed(names)}. Select the user's "
                "and the item's column, for example frame[['user', 'item']]."
            )
        elif names[0] == "item" or names[1] == "user":
            raise ValueError(
                f"The columns are {_listed(names)}, but users come first and items second: swap "
                "them, or name them 'user' and 'item'."
            )
        users, items = frame_columns(pairs, *names)
        return users, items
    if not isinstance(pairs, np.ndarray):
        if not isinstance(pairs, Iterable):
            raise ValueError(
                f"Pairs must be an array, a list or a frame of (user, item), not {pairs!r}."
            )
        return _split_rows(list(pairs))
    if pairs.ndim == 1 and len(pairs) == 0:
        return pairs, pairs
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise ValueError(
            f"Pairs must be an array with two columns, user and item, but its shape is "
            f"{pairs.shape}."
        )
    return pairs[:, 0], pairs[:, 1]


def take_rows(pairs: Any, rows: IntArray) -> Any:
    """Return some rows of pairs, in the form that the pairs have."""
    if isinstance(pairs, np.ndarray):
        return pairs[rows]
    if is_frame(pairs):
        return nw.from_native(pairs, eager_only=True)[rows.tolist()].to_native()
    return [pairs[k] for k in rows]


def _split_rows(rows: list[Any]) -> tuple[list[Any], list[Any]]:
    for k, row in enumerate(rows):
        if not isinstance(row, list | tuple | np.ndarray) or len(row) != 2:
            raise ValueError(f"Row {k} of the pairs is {row!r}, which is not a (user, item) pair.")
    return [row[0] for row in rows], [row[1] for row in rows]


def as_values(values: Any) -> FloatArray:
    """Return ratings as floating-point numbers, or say which one is not a finite number."""
    if is_frame(values):
        names = nw.from_native(values, eager_only=True).columns
        if len(names) != 1:
            raise ValueError(f"Ratings must be one column, but the frame has {_listed(names)}.")
        (values,) = frame_columns(values, *names)
    if np.ma.isMaskedArray(values):
        raise ValueError("Ratings are a masked array: leave masked pairs out instead.")
    if not isinstance(values, np.ndarray):
        if not isinstance(values, Iterable):
            raise ValueError(f"Ratings must be a column of numbers, not {values!r}.")
        series = nw.from_native(values, series_only=True, pass_through=True)
        values = series.to_numpy() if isinstance(series, nw.Series) else as_objects(values)
    if values.ndim != 1:
        raise ValueError(
            f"Ratings must be one column of numbers, but their shape is {values.shape}."
        )
    if values.dtype.kind in "cmM":
        raise ValueError(f"Ratings must be real numbers, but their type is {values.dtype}.")
    if values.dtype in (np.float32, np.float64):
        return _finite(values)  # no copy: there may be many of them
    try:
        numbers: FloatArray = values.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        row = next(k for k, value in enumerate(values) if not _is_number(value))
        raise ValueError(
            f"The rating in row {row} is {values[row]!r}, which is not a number."
        ) from None
    return _finite(numbers)


def _finite(numbers: FloatArray) -> FloatArray:
    """Return numbers as they are if all are finite, or say which one is not."""
    faulty = ~np.isfinite(numbers)
    if faulty.any():
        row = int(np.argmax(faulty))
        raise ValueError(
            f"The rating in row {row} is {numbers[row]}; {faulty.sum()} of {len(numbers)} ratings "
            "are not finite. Leave unobserved pairs out instead of marking them."
        )
    return numbers


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def _listed(names: list[str]) -> str:
    return ", ".join(map(repr, names)) or "none"
