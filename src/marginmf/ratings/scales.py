"""The scale of ratings: numbers or words in, levels and the index of each rating among them out."""

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import narwhals as nw
import numpy as np

from marginmf._utils.ids import as_objects, shown
from marginmf._utils.parameters import LARGEST_RATING, check_whole
from marginmf._utils.types import Array, Float64Array, FloatArray, IntArray
from marginmf.backends.rows import BLOCK
from marginmf.datasets.files.columns import FOR_PAIRS, listed
from marginmf.datasets.files.convert import (
    WORDS,
    RatingReader,
    are_ratings,
    number_words,
    words_of,
)
from marginmf.ratings.tables import Given, column_labels, is_table, table_columns

#: What to do with ratings of very many values.
FOR_MANY_LEVELS = (
    "Bin them with Ratings.of(..., n_levels=10), or estimate a number with BPMF, NMF, SVD, "
    "ImputedSVD, ALS, PMF or BiasOnly."
)
#: The type of levels' codes.
CODE = np.int16
#: As many levels as codes can tell apart; what they cost in memory is another matter.
MAX_LEVELS = int(np.iinfo(CODE).max)
#: More distinct values than this are counts or measurements, unless the caller says that they are
#: levels.  Methods that estimate a number bin them into as many levels, for the sake of
#: probabilities; what they learn from are the values themselves.
MANY_VALUES = 50


def read_values(given: Given, levels: Any = None) -> tuple[FloatArray, tuple[str, ...] | None]:
    """Return ratings as numbers, and what the levels are called where they are words.

    Words are in the order of `levels`, or else in that of the table that they came in.
    """
    names = given.level_names
    if levels is not None:
        names = words_of(levels)
        if names is None and given.level_names is not None:
            raise ValueError(
                f"levels={list(levels)!r} are numbers, but the ratings are words: "
                f"{listed(given.level_names)}. Give these in their order, or leave levels= out."
            )
    words: Mapping[str, float] = WORDS if names is None else number_words(names)
    if names is None and levels is not None and not {*map(float, levels)} <= {0.0, 1.0}:
        words = {}  # "like" is the upper of two levels, and nothing on a longer scale
    return as_values(given.ratings, words), names


def as_values(values: Any, words: Mapping[str, float] = WORDS) -> FloatArray:
    """Return ratings as floating-point numbers, or say which one is none.

    Texts are numbers too, or words that stand for them.
    """
    if is_table(values):
        labels = column_labels(values)
        if len(labels) != 1:
            raise ValueError(f"Ratings must be one column, but the frame has {listed(labels)}.")
        (values,) = table_columns(values, *labels)
    if np.ma.isMaskedArray(values):
        raise ValueError("Ratings are a masked array: leave masked pairs out instead.")
    if not isinstance(values, np.ndarray):
        if not isinstance(values, Iterable) or isinstance(values, str):
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
    if values.dtype.kind == "b" and not words:
        raise ValueError("Ratings are true and false, which are no levels of this scale.")
    if values.dtype.kind in "biu":
        return values.astype(np.float64)
    return _check_finite(_parse_each(values, words))


def _parse_each(values: Array, words: Mapping[str, float]) -> Float64Array:
    """Return numbers and texts as numbers; each distinct text is read once."""
    read, texts = RatingReader(words), dict[str, float]()
    numbers = np.empty(len(values))
    for row, value in enumerate(values.tolist()):
        try:
            if not isinstance(value, str):
                if isinstance(value, bool) and not words:
                    raise TypeError
                numbers[row] = value
            else:
                if value not in texts:
                    texts[value] = read(value.strip())
                numbers[row] = texts[value]
        except (TypeError, ValueError, OverflowError) as error:
            reason = str(error) if isinstance(value, str) else "is not a number"
            raise ValueError(f"The rating in row {row}, {shown(value)}, {reason}.") from None
    return numbers


def _check_finite(numbers: FloatArray) -> FloatArray:
    """Return numbers as they are if all can be ratings, or say which one cannot."""
    if are_ratings(numbers):
        return numbers
    faulty = ~np.isfinite(numbers)
    if faulty.any():
        row = int(np.argmax(faulty))
        raise ValueError(
            f"The rating in row {row} is {numbers[row]}; {faulty.sum()} of {len(numbers)} ratings "
            "are not finite. Leave unobserved pairs out instead of marking them."
        )
    row = int(np.abs(numbers).argmax())
    raise ValueError(
        f"The rating in row {row} is {numbers[row]:g}, and the largest allowed is "
        f"{LARGEST_RATING:g}: correct it."
    )


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
    if found is None or (levels is None and len(found) > MANY_VALUES and n_levels is None):
        distinct = np.unique(values) if found is None else found
        raise ValueError(
            f"The ratings have {len(distinct)} distinct values, {distinct[0]:g} to "
            f"{distinct[-1]:g}: {_kind_of(distinct)}, not a scale of levels. {FOR_MANY_LEVELS}"
        )
    if levels is None:
        if len(found) == 1:
            raise ValueError(
                f"Every rating is {found[0]:g}: with one level there is nothing to tell apart. "
                f"{FOR_PAIRS}"
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


def _kind_of(distinct: FloatArray) -> str:
    """Return what many values are, in words."""
    whole = bool((distinct == distinct.round()).all()) and distinct[0] >= 0
    return "those are counts or ids" if whole else "that is a measurement"


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
    if len(scale) < 2 or not are_ratings(scale):
        raise ValueError(
            f"levels={levels!r:.100} must hold at least two finite numbers, up to "
            f"{LARGEST_RATING:g}."
        )
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
