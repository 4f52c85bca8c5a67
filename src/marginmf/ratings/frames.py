"""Ids in and frames out: answers come in the kind of frame that the question came in."""

import importlib.util
import sys
from collections.abc import Hashable, Iterable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any

import narwhals as nw
import numpy as np

from marginmf._ids import as_id_column, as_objects, shown
from marginmf._typing import Array, IntArray
from marginmf.ratings.columns import frame_columns
from marginmf.ratings.ids import IdIndex

#: Libraries of frames, the first one installed is used where the question names none.
LIBRARIES = ("pandas", "polars", "pyarrow")


def as_ids(values: Any, index: IdIndex) -> Array:
    """Return the ids that a caller asks about, each once, in the order asked.

    Anything that is not iterable, a string, or something that the vocabulary knows as an id (a
    tuple, say) is one id; a column of a frame, an array, a list or any other iterable holds many.
    A frame is asked for its column of that name, or for its only column.

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


def known_codes(ids: Array, index: IdIndex, role: str) -> IntArray:
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


def _knows(index: IdIndex, value: Any) -> bool:
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
