"""Tables in and out: pairs, ratings and their scale in, answers as frames of the same kind out."""

import importlib.util
import sys
from collections.abc import Iterable, Mapping
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from marginmf._utils.ids import as_objects
from marginmf._utils.parameters import check_whole
from marginmf._utils.types import Array, Float64Array, FloatArray, IntArray
from marginmf.backends.rows import BLOCK

#: Libraries of frames, the first one installed is used for callers who gave none of them.
LIBRARIES = ("pandas", "polars", "pyarrow")
#: What to do with ratings of very many values.
FOR_MANY_LEVELS = (
    "Round them to fewer values, or bin them with Ratings.of(..., n_levels=10), or estimate a "
    "number with ALS, PMF or BiasOnly."
)
#: The type of levels' codes.
CODE = np.int16
#: As many levels as codes can tell apart; what they cost in memory is another matter.
MAX_LEVELS = int(np.iinfo(CODE).max)
#: Methods that estimate a number bin more distinct values than this into as many levels, for the
#: sake of probabilities; what they learn from are the values themselves.
MANY_VALUES = 50


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
            f"The frame has no column {missing[0]!r}; its columns are {listed(table.columns)}. "
            "Rename the column, or name the columns in Ratings.of(frame, user=, item=, rating=)."
        )
    return [table.get_column(name).to_numpy() for name in names]


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
        return frame_columns(values, names[0] if len(names) == 1 else name)[0]
    if isinstance(table, nw.Series):
        return table.to_numpy()
    # An Arrow array, or an index of pandas.
    return np.asarray(values) if _library_name(values) in LIBRARIES else None


def split_pairs(pairs: Any) -> Any:
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
                f"Pairs need two columns, but the frame has {listed(names)}. Select the user's "
                "and the item's column, for example frame[['user', 'item']]."
            )
        elif names[0] == "item" or names[1] == "user":
            raise ValueError(
                f"The columns are {listed(names)}, but users come first and items second: swap "
                "them, or name them 'user' and 'item'."
            )
        return tuple(frame_columns(pairs, *names))
    if not isinstance(pairs, np.ndarray):
        if not isinstance(pairs, Iterable):
            raise ValueError(
                f"Pairs must be an array, a list or a frame of (user, item), not {pairs!r}."
            )
        rows = list(pairs)
        for k, row in enumerate(rows):
            if not isinstance(row, list | tuple | np.ndarray) or len(row) != 2:
                raise ValueError(
                    f"Row {k} of the pairs is {row!r}, which is not a (user, item) pair."
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


def stored_entries(matrix: Any) -> tuple[Array, Array, Array]:
    """Return the rows, the columns and the values that a sparse matrix stores."""
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
    if is_frame(pairs):
        return nw.from_native(pairs, eager_only=True)[rows.tolist()].to_native()
    return [pairs[k] for k in rows]


def as_values(values: Any) -> FloatArray:
    """Return ratings as floating-point numbers, or say which one is not a finite number."""
    if is_frame(values):
        names = nw.from_native(values, eager_only=True).columns
        if len(names) != 1:
            raise ValueError(f"Ratings must be one column, but the frame has {listed(names)}.")
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
        return _check_finite(values)  # no copy: there may be many of them
    try:
        numbers: FloatArray = values.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        row = next(k for k, value in enumerate(values) if not _is_number(value))
        raise ValueError(
            f"The rating in row {row} is {values[row]!r}, which is not a number."
        ) from None
    return _check_finite(numbers)


def _check_finite(numbers: FloatArray) -> FloatArray:
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


def listed(names: Iterable[str]) -> str:
    """Return names as messages list them."""
    return ", ".join(map(repr, names)) or "none"


class Coded(NamedTuple):
    """The levels, ascending; every rating's index among them; and the ratings, if binned."""

    levels: Float64Array
    codes: IntArray
    exact: Float64Array | None = None


def coded(values: FloatArray, levels: Any = None, n_levels: int | None = None) -> Coded:
    """Return the scale, by default the values that occur, and every rating's index on it."""
    if n_levels is not None:
        n_levels = check_whole("n_levels", n_levels, 2)
    found, codes = _code_values(values)
    if n_levels is not None:
        if levels is not None:
            scale = _check_levels(levels)
            return Coded(scale, nearest_codes(values, scale), values.astype(np.float64))
        if found is None or len(found) > n_levels:
            return _binned(values.astype(np.float64), n_levels)
    if found is None:
        n_distinct = len(np.unique(values))
        raise ValueError(
            f"The ratings have {n_distinct} distinct values: that is a measurement, not a scale of "
            f"levels. {FOR_MANY_LEVELS}"
        )
    if levels is None:
        if len(found) == 1:
            raise ValueError(
                f"Every rating is {found[0]:g}: with one level there is nothing to tell apart."
            )
        return Coded(found, codes)
    scale = _check_levels(levels)
    strange = found[~np.isin(found, scale)]
    if len(strange):
        row = int(np.argmax(values == strange[0]))
        raise ValueError(
            f"The rating {strange[0]:g} in row {row} is not on the scale "
            f"{', '.join(f'{level:g}' for level in scale)}."
        )
    return Coded(scale, np.searchsorted(scale, found).astype(CODE)[codes])


def _code_values(values: FloatArray) -> tuple[Float64Array | None, IntArray]:
    """Return the values that occur, if codes can tell them apart, and the code of each rating."""
    found: Float64Array = np.unique(values[:BLOCK].astype(np.float64))
    codes = np.empty(len(values), CODE)
    first = 0
    while first < len(values):
        block = values[first : first + BLOCK].astype(np.float64)
        index = np.minimum(np.searchsorted(found, block), len(found) - 1)
        strange = block[found[index] != block]
        if not len(strange) and len(found) <= MAX_LEVELS:
            codes[first : first + BLOCK] = index
            first += BLOCK
            continue
        # Levels that came late: their indices, and those of others, are not what they were.
        found = np.union1d(found, strange)
        if len(found) > MAX_LEVELS:
            return None, codes
        first = 0
    return found, codes


def _check_levels(levels: Any) -> Float64Array:
    scale: Float64Array = np.unique(np.asarray(levels, np.float64))
    if len(scale) < 2 or not np.isfinite(scale).all():
        raise ValueError(f"levels={levels!r} must hold at least two finite numbers.")
    return scale


def nearest_codes(values: FloatArray, scale: Float64Array) -> IntArray:
    """Return the code of the level that is nearest to each value."""
    return np.searchsorted((scale[1:] + scale[:-1]) / 2, values).astype(CODE)


def _binned(values: Float64Array, n_levels: int) -> Coded:
    """Return levels that are the means of bins with about as many ratings each."""
    edges = np.unique(np.quantile(values, np.arange(1, n_levels) / n_levels))
    bins = np.searchsorted(edges, values, side="left")
    counts = np.bincount(bins, minlength=len(edges) + 1)
    used = np.flatnonzero(counts)
    if len(used) < 2:  # nearly all ratings are the same: tell those from the others
        above = values > np.median(values)
        above = above if above.any() else values >= np.median(values)
        means = np.array([values[~above].mean(), values[above].mean()])
        return Coded(means, above.astype(CODE), values)
    means = np.bincount(bins, values)[used] / counts[used]
    codes = np.searchsorted(used, bins).astype(CODE)
    return Coded(means, codes, values)


def levels_of(values: FloatArray) -> Float64Array:
    """Return the distinct values; a single value becomes the upper of two levels."""
    found: Float64Array = np.unique(values).astype(np.float64)
    return np.array([found[0] - 1, found[0]]) if len(found) == 1 else found


def lowest_liked(levels: Float64Array, mean: float) -> float:
    """Return the lowest level above the mean rating, or the highest level if none is above it."""
    above = levels[levels > mean]
    return float(above[0] if len(above) else levels[-1])


def make_frame(columns: Mapping[str, Array], like: Any = None) -> Any:
    """Return columns as a frame of the library that ``like`` comes from.

    Or else of the first of pandas, polars and pyarrow that is installed, or else as a dictionary.
    """
    installed = (name for name in LIBRARIES if importlib.util.find_spec(name) is not None)
    library = _library_of(like) or next(map(import_module, installed), None)
    if library is None:
        return dict(columns)
    make: Any = getattr(library, "DataFrame", None) or library.table
    # Other libraries guess the type of a list of objects better than that of an array of them.
    lists = {
        name: column.tolist() if column.dtype == object else column
        for name, column in columns.items()
    }
    try:
        return make(columns if library.__name__ == "pandas" else lists)
    except (TypeError, ValueError) as error:
        raise ValueError(
            f"{library.__name__} cannot hold these ids in one column "
            f"({str(error).partition(chr(10))[0]}). Give the ids as a pandas Series."
        ) from error


def _library_of(values: Any) -> ModuleType | None:
    table = nw.from_native(values, eager_only=True, allow_series=True, pass_through=True)
    if isinstance(table, nw.DataFrame | nw.Series):
        return nw.get_native_namespace(table)
    name = _library_name(values)
    return sys.modules[name] if name in LIBRARIES else None


def _library_name(values: Any) -> str:
    return type(values).__module__.partition(".")[0]
