"""Tables in and out: users, items and ratings in, answers as frames of the same kind out."""

import importlib.util
import sys
from collections.abc import Hashable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from itertools import islice
from os import PathLike
from types import ModuleType
from typing import Any, ClassVar, NamedTuple

import narwhals as nw
import numpy as np
from scipy import sparse

from marginmf._utils.ids import as_objects, shown
from marginmf._utils.saved import Optional, saved
from marginmf._utils.sparse import check_sparse
from marginmf._utils.types import Array, IntArray
from marginmf.datasets.files.columns import FOR_PAIRS, Wanted, find_layout, listed, recognise_names
from marginmf.datasets.files.convert import words_of
from marginmf.datasets.table import RatingsTable

#: Libraries of frames, the first one installed is used for callers who gave none of them.
LIBRARIES = ("pandas", "polars", "pyarrow")
#: Others that ratings may come from; a library that a model file names is imported, so no more.
KNOWN_LIBRARIES = (*LIBRARIES, "modin", "cudf")
#: Rows that are looked at to tell a table of ratings from one with a column for each item.
SAMPLE_ROWS = 5


@saved
@dataclass(frozen=True)
class SourceTable:
    """The table that ratings came in: what its columns and levels are called, and its library."""

    columns: dict[str, str] = field(default_factory=dict)
    level_names: tuple[str, ...] | None = None
    library: str | None = None

    _saved: ClassVar[dict[str, Any]] = {
        "columns": dict,
        "level_names": Optional(tuple),
        "library": Optional(str),
    }

    def _flaws(self, lengths: Mapping[str, int]) -> Iterator[str]:
        """Yield what is wrong with a loaded one."""
        names = [*self.columns, *self.columns.values(), *(self.level_names or ())]
        if not all(isinstance(name, str) for name in names):
            yield " has names that are no text"
        if self.level_names is not None and len(self.level_names) != lengths["levels"]:
            yield ".level_names are those of other levels"


class Given(NamedTuple):
    """What a caller gave: users, items, ratings, what columns and levels are called there."""

    users: Any
    items: Any
    ratings: Any
    columns: dict[str, str]
    level_names: tuple[str, ...] | None = None


def is_frame(data: Any) -> bool:
    """Whether ``data`` is a data frame of any library that narwhals knows."""
    if library_name(data) == "pandas" and hasattr(data, "columns") and not data.columns.is_unique:
        again = data.columns[data.columns.duplicated()][0]
        raise ValueError(f"Two columns of the frame are called {again!r}; rename one of them.")
    table = nw.from_native(data, pass_through=True)
    if isinstance(table, nw.LazyFrame):
        raise ValueError(
            f"A lazy frame ({type(data).__module__.partition('.')[0]}) has no rows yet: give "
            "frame.collect()."
        )
    return isinstance(table, nw.DataFrame)


def is_table(data: Any) -> bool:
    """Whether ``data`` has columns with names: a data frame, or a dictionary of columns."""
    if sparse.issparse(data):  # of which one kind is a dictionary too, by index
        return False
    return isinstance(data, Mapping) or is_frame(data)


def column_labels(table: Any) -> list[Any]:
    """Return what the columns of a table are called, each once."""
    if isinstance(table, Mapping):
        return list(table)
    return list(nw.from_native(table, eager_only=True).columns)


def table_columns(table: Any, *names: Any) -> list[Array]:
    """Return the named columns of a table as arrays."""
    labels = column_labels(table)
    missing = [name for name in names if name not in labels]
    if missing:
        raise ValueError(f"The frame has no column {missing[0]!r}; there are {listed(labels)}.")
    if isinstance(table, Mapping):
        columns = {name: table[name] for name in names}
        return [
            one if isinstance(one, np.ndarray) else _as_array(one, name)
            for name, one in columns.items()
        ]
    frame = nw.from_native(table, eager_only=True)
    return [frame.get_column(name).to_numpy() for name in names]


def column_of(values: Any, name: str) -> Array | None:
    """Return a column of a data frame (of that name, or its only one), or a series, as an array."""
    table = nw.from_native(values, eager_only=True, allow_series=True, pass_through=True)
    if isinstance(table, nw.DataFrame):
        names = table.columns
        if len(names) != 1 and name not in names:
            raise ValueError(
                f"The frame has no column {name!r}; its columns are {listed(names)}. Give that "
                "column alone."
            )
        return table_columns(values, names[0] if len(names) == 1 else name)[0]
    if isinstance(table, nw.Series):
        return table.to_numpy()
    # An Arrow array, or an index of pandas.
    return np.asarray(values) if library_name(values) in LIBRARIES else None


def check_pairs(pairs: Any) -> None:
    """Refuse what holds no pairs at all: a name, a number, or a matrix, which may be sparse."""
    no_pairs = isinstance(pairs, str | PathLike) or sparse.issparse(pairs)
    if no_pairs or not (isinstance(pairs, Iterable) or is_table(pairs)):
        given = " ".join(repr(pairs).split())  # that of a matrix has two lines
        raise ValueError(
            f"Pairs must be an array, a list or a frame of (user, item), not {given:.90}."
        )


def split_pairs(pairs: Any, names: Mapping[str, str] | None = None) -> Any:
    """Return the users and the items of (user, item) pairs.

    Pairs are an array with two columns, a list of pairs, or a table: the columns with names that
    users and items have, or had before (`names`), or its only two columns.
    """
    if isinstance(pairs, RatingsTable):
        return pairs.users, pairs.items
    if is_table(pairs):
        return tuple(table_columns(pairs, *_pair_labels(column_labels(pairs), names or {})))
    if not isinstance(pairs, np.ndarray):
        check_pairs(pairs)
        rows = list(pairs)
        for k, row in enumerate(rows):
            if not isinstance(row, list | tuple | np.ndarray) or len(row) != 2:
                raise ValueError(
                    f"Row {k} of the pairs is {shown(row)}, which is not a (user, item) pair."
                )
        return [row[0] for row in rows], [row[1] for row in rows]
    if pairs.ndim == 1 and len(pairs) == 0:
        return pairs, pairs
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise ValueError(
            f"Pairs must be an array with two columns, user and item, but its shape is "
            f"{pairs.shape}."
        )
    return pairs[:, 0], pairs[:, 1]


def _pair_labels(labels: list[Any], names: Mapping[str, str]) -> list[Any]:
    """Return which columns are the users and the items."""
    texts = list(map(str, labels))
    wanted = Wanted(rated=False, names=names)
    found = recognise_names(texts, wanted)
    if {"user", "item"} <= set(found):
        return [labels[found["user"]], labels[found["item"]]]
    if len(labels) != 2 or found.get("user") == 1 or found.get("item") == 0:
        raise ValueError(
            f"Pairs need a user's and an item's column, but the frame has {listed(labels)}. Select "
            "the two, users first, for example frame[['user', 'item']]."
        )
    return labels


def given_ratings(
    data: Any,
    values: Any = None,
    *,
    names: Mapping[str, str] | None = None,
    **chosen: Any,
) -> Given:
    """Return users, items and ratings of whatever a caller gave.

    `chosen` are columns that the caller named, `names` those that columns had before.
    """
    if values is not None:
        named = [role for role, column in chosen.items() if column is not None]
        if named and not is_table(data):
            raise ValueError(f"{named[0]}= names a column of a frame, but pairs were given.")
        labels = _find_labels(data, names, chosen, rated=False) if named else None
        own = split_pairs(data, names) if labels is None else table_columns(data, *labels)
        return Given(own[0], own[1], values, {}, ordered_words(values))
    if isinstance(data, RatingsTable):
        known = dict(data.columns or {})
        return Given(data.users, data.items, data.ratings, known, data.level_names)
    if sparse.issparse(data):
        return Given(*stored_entries(data), {})
    if is_table(data):
        labels = _find_labels(data, names, chosen, rated=True)
        users, items, ratings = table_columns(data, *labels)
        columns = dict(zip(("user", "item", "rating"), map(str, labels), strict=True))
        return Given(users, items, ratings, columns, ordered_words(data[labels[2]]))
    raise ValueError(_without_ratings(data))


def _find_labels(
    table: Any, names: Mapping[str, str] | None, chosen: Mapping[str, Any], rated: bool
) -> list[Any]:
    """Return what the columns of users, items and, if they are wanted, ratings are called."""
    labels = column_labels(table)
    own: dict[str, Any] = {}
    for role, column in chosen.items():
        if column is None or (role == "rating" and not rated):
            continue
        if not isinstance(column, Hashable):
            raise ValueError(f"{role}= takes the name of a column, not the column itself.")
        if column in labels:
            own[role] = labels.index(column) + 1
        elif isinstance(column, str) and not column.isdecimal():
            own[role] = column
        else:
            raise ValueError(
                f"The frame has no column {column!r} for the {role}; its columns are "
                f"{listed(labels)}."
            )
    wanted = Wanted(**own, rated=rated, header=True, names=names or {})
    below = _sample(table) if len(labels) > SAMPLE_ROWS else []
    layout = find_layout(list(map(str, labels)), "The frame", wanted, below)
    return [labels[layout.positions[role]] for role in wanted.roles]


def _sample(table: Any) -> list[list[str]]:
    """Return some rows as text; what is missing is empty."""
    if isinstance(table, Mapping):
        return []
    rows = islice(nw.from_native(table, eager_only=True).iter_rows(), SAMPLE_ROWS)
    return [["" if cell is None else str(cell) for cell in row] for row in rows]


def has_ratings(data: Any, column: Any = None) -> bool:
    """Whether data hold ratings: a table with a column for them, named or known by its name."""
    if not is_table(data):
        return isinstance(data, RatingsTable)
    return column is not None or "rating" in recognise_names(
        list(map(str, column_labels(data))), Wanted()
    )


def count_rows(pairs: Any) -> int:
    """Return how many pairs there are."""
    if is_table(pairs):
        return len(table_columns(pairs, *column_labels(pairs)[:1])[0])
    return len(split_pairs(pairs)[0])


def _without_ratings(data: Any) -> str:
    """Return what to say of data that hold no ratings, with the remedy."""
    if isinstance(data, str | PathLike):
        return f"{data!r} is a name: read the file with marginmf.datasets.read_ratings first."
    shape = getattr(data, "shape", None)
    if isinstance(data, list | tuple) and data and all(_width(row) == 3 for row in data[:100]):
        shape = (len(data), 3)
    if shape is not None and len(shape) == 2 and shape[1] == 3:
        return (
            "Three columns without names: give the pairs and, second, the ratings, as in "
            "fit([(user, item) for user, item, _ in rows], [rating for *_, rating in rows])."
        )
    if shape is not None and len(shape) == 2 and shape[1] != 2:
        return (
            f"An array of shape {tuple(shape)} is no list of pairs. If it has a row for each user "
            "and a column for each item, with 0 for what is not rated, give "
            "scipy.sparse.csr_array(matrix)."
        )
    if isinstance(data, Iterable):
        return f"The ratings are missing: give the pairs and, second, their ratings. {FOR_PAIRS}"
    return f"Ratings must be pairs with ratings, a frame or a sparse matrix, not {data!r}."


def _width(row: Any) -> int:
    return len(row) if isinstance(row, list | tuple | np.ndarray) else 0


def _as_array(values: Any, name: Any) -> Array:
    if not isinstance(values, Iterable) or isinstance(values, str):
        raise ValueError(f"The column {name!r} must be a list or an array, not {values!r}.")
    series = nw.from_native(values, series_only=True, pass_through=True)
    return series.to_numpy() if isinstance(series, nw.Series) else as_objects(values)


def ordered_words(values: Any) -> tuple[str, ...] | None:
    """Return the categories of an ordered categorical column that are words, from the lowest."""
    series = nw.from_native(values, series_only=True, pass_through=True)
    if not isinstance(series, nw.Series) or not isinstance(series.dtype, nw.Enum):
        return None
    return words_of(getattr(series.dtype, "categories", ()))


def stored_entries(matrix: Any) -> tuple[Array, Array, Array]:
    """Return the rows, the columns and the values that a sparse matrix stores."""
    check_sparse(matrix, "The matrix of ratings")
    if matrix.format == "bsr":
        raise ValueError(
            "A block sparse matrix stores zeros that are not ratings: convert it to another format "
            "and remove them first."
        )
    if matrix.ndim != 2:
        raise ValueError(f"A sparse array must have rows and columns: its shape is {matrix.shape}.")
    entries = matrix.tocoo()
    return entries.row, entries.col, entries.data


def take_rows(pairs: Any, rows: IntArray) -> Any:
    """Return some rows of pairs, in the form that the pairs have."""
    if isinstance(pairs, np.ndarray):
        return pairs[rows]
    if isinstance(pairs, Mapping):
        return {name: table_columns(pairs, name)[0][rows] for name in pairs}
    if is_frame(pairs):
        return nw.from_native(pairs, eager_only=True)[rows.tolist()].to_native()
    return [pairs[k] for k in rows]


class Table(dict[str, Array]):
    """Columns by their names, for want of a library of frames: pandas, polars or pyarrow.

    >>> best = Table(item=np.array(["x", "y"], object), score=np.array([0.5, 0.25]))
    >>> best
    item  score
    x       0.5
    y      0.25
    >>> best.to_dict()
    {'item': ['x', 'y'], 'score': [0.5, 0.25]}
    """

    #: Longer tables show their first and last rows.
    shown = 10

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the columns as lists."""
        return {name: column.tolist() for name, column in self.items()}

    def __repr__(self) -> str:
        n_rows = len(next(iter(self.values()), ()))
        rows = np.arange(n_rows)
        if n_rows > self.shown:
            rows = np.r_[rows[: self.shown // 2], rows[-self.shown // 2 :]]
        columns = []
        for name, values in self.items():
            shown = values[rows].tolist()
            cells = [name, *(f"{v:.4g}" if isinstance(v, float) else str(v) for v in shown)]
            width, left = max(map(len, cells)), values.dtype == object
            columns.append([cell.ljust(width) if left else cell.rjust(width) for cell in cells])
        lines = ["  ".join(line).rstrip() for line in zip(*columns, strict=True)]
        if n_rows > self.shown:
            lines.insert(1 + self.shown // 2, "...")
            lines.append(f"({n_rows} rows)")
        return "\n".join(lines)


def make_frame(columns: Mapping[str, Array], like: Any = None, library: str | None = None) -> Any:
    """Return columns as a frame of the library that ``like`` comes from.

    Or else of the one that is named, of the first of pandas, polars and pyarrow that is installed,
    or else as a `Table`.
    """
    wanted = [library, *LIBRARIES] if library in KNOWN_LIBRARIES else LIBRARIES
    installed = (name for name in wanted if importlib.util.find_spec(name) is not None)
    module = _library_of(like) or next(map(import_module, installed), None)
    if module is None:
        return Table(columns)
    make: Any = getattr(module, "DataFrame", None) or module.table
    # Other libraries guess the type of a list of objects better than that of an array of them.
    lists = {
        name: column.tolist() if column.dtype == object else column
        for name, column in columns.items()
    }
    try:
        return make(dict(columns) if module.__name__ == "pandas" else lists)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{module.__name__} cannot hold these ids in one column "
            f"({str(error).partition(chr(10))[0]}). Give the ids as a pandas Series."
        ) from error


def _library_of(values: Any) -> ModuleType | None:
    table = nw.from_native(values, eager_only=True, allow_series=True, pass_through=True)
    if isinstance(table, nw.DataFrame | nw.Series):
        return nw.get_native_namespace(table)
    name = library_name(values)
    return sys.modules[name] if name in LIBRARIES else None


def library_name(values: Any) -> str:
    """Return the library that an object's type comes from."""
    return type(values).__module__.partition(".")[0]
