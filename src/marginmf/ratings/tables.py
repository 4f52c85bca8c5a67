"""Tables in and out: users, items and ratings from whatever holds them, answers as frames.

Answers come in the kind of frame that the question came in.
"""

import importlib.util
import sys
from collections.abc import Hashable, Iterable, Mapping
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

import narwhals as nw
import numpy as np

from marginmf._utils.ids import as_id_column, as_objects, shown
from marginmf._utils.types import Array, FloatArray, IntArray

if TYPE_CHECKING:
    from marginmf.ratings.ids import IdIndex

#: Libraries of frames, the first one installed is used where the question names none.
LIBRARIES = ("pandas", "polars", "pyarrow")


def is_frame(data: Any) -> bool:
    """Whether ``data`` is a data frame of any library that narwhals knows."""
    return isinstance(nw.from_native(data, eager_only=True, pass_through=True), nw.DataFrame)


def has_column(data: Any, name: str) -> bool:
    """Whether ``data`` is a data frame with a column of that name."""
    return is_frame(data) and name in nw.from_native(data, eager_only=True).columns


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


def as_ids(values: Any, index: "IdIndex") -> Array:
    """Return the ids that a caller asks about, each once, in the order asked.

    Anything that is not iterable, a string, or something that the vocabulary knows as an id (a
    tuple, say) is one id; a column of a frame, an array, a list or any other iterable holds many.
    A frame is asked for its column of that name, or for its only column.

    >>> from marginmf.ratings.ids import IdIndex
    >>> index = IdIndex([("ann", 1), ("bob", 2)], "user")
    >>> as_ids(("bob", 2), index).tolist(), as_ids(("b", "a", "b"), index).tolist()
    ([('bob', 2)], ['b', 'a'])
    """
    table = nw.from_native(values, eager_only=True, allow_series=True, pass_through=True)
    if isinstance(table, nw.DataFrame):
        names = table.columns
        (values,) = frame_columns(values, names[0] if len(names) == 1 else index.what)
    elif isinstance(table, nw.Series):
        values = table.to_numpy()
    elif _library_name(values) in LIBRARIES:  # an Arrow array, an index of pandas
        values = np.asarray(values)
    elif not isinstance(values, np.ndarray):
        one = not isinstance(values, Iterable) or isinstance(values, str | bytes)
        values = as_objects([values] if one or _knows(index, values) else values)
    if values.ndim > 1:
        raise ValueError(
            f"The {index.what}s must be one id or one column of ids, but their shape is "
            f"{values.shape}."
        )
    ids = as_id_column(values.reshape(-1), index.what)
    return ids[_first_places(ids)]


def known_codes(ids: Array, index: "IdIndex", role: str) -> IntArray:
    """Return the codes of ids, or raise a ValueError that names the first unknown one."""
    codes = index.encode(ids)
    unknown = np.flatnonzero(codes < 0)
    if len(unknown):
        raise ValueError(
            f"{len(unknown)} of {len(ids)} {role} were not seen in training; the first is "
            f"{shown(ids[unknown[0]])}."
        )
    return codes


def make_frame(columns: Mapping[str, Array], like: Any = None) -> Any:
    """Return columns as a frame of the library that ``like`` comes from.

    Where that is none, the first of pandas, polars and pyarrow that is installed; where none is, a
    dictionary of arrays.
    """
    library = _library_of(like) or _default_library()
    if library is None:
        return dict(columns)
    make: Any = getattr(library, "DataFrame", None) or library.table
    # Other libraries guess the type of a list of objects better than that of an array of them.
    lists = {name: _as_list(column) for name, column in columns.items()}
    try:
        return make(columns if library.__name__ == "pandas" else lists)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{library.__name__} cannot hold these ids in one column "
            f"({str(error).partition(chr(10))[0]}). Ask with a series of pandas."
        ) from error


def _as_list(column: Array) -> Any:
    return column.tolist() if column.dtype == object else column


def _library_of(values: Any) -> ModuleType | None:
    table = nw.from_native(values, eager_only=True, allow_series=True, pass_through=True)
    if isinstance(table, nw.DataFrame | nw.Series):
        namespace: ModuleType = nw.get_native_namespace(table)
        return namespace
    name = _library_name(values)
    return sys.modules[name] if name in LIBRARIES else None


def _library_name(values: Any) -> str:
    return type(values).__module__.partition(".")[0]


def _default_library() -> ModuleType | None:
    names = (name for name in LIBRARIES if importlib.util.find_spec(name) is not None)
    name = next(names, None)
    return None if name is None else import_module(name)


def _knows(index: "IdIndex", value: Any) -> bool:
    if not isinstance(value, Hashable):
        return False
    try:
        return bool((index.ids == as_objects([value])).any())
    except (TypeError, ValueError):
        return False


def _first_places(ids: Array) -> IntArray:
    if ids.dtype == np.int64:
        return np.sort(np.unique(ids, return_index=True)[1])
    places = {value: place for place, value in reversed(list(enumerate(ids.tolist())))}
    return np.sort(np.fromiter(places.values(), np.int64, len(places)))
