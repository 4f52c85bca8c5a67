"""Which levels a scale has, and at which of them every rating is."""

from typing import Any, NamedTuple

import numpy as np

from marginmf._utils.types import Float64Array, FloatArray, IntArray
from marginmf.backends.rows import BLOCK

#: The type of levels' codes.
CODE = np.int16

#: As many levels as codes can tell apart; what they cost in memory is another matter.
MAX_LEVELS = int(np.iinfo(CODE).max)

#: Methods that estimate a number bin more distinct values than this into as many levels, for the
#: sake of probabilities; what they learn from are the values themselves.
MANY_VALUES = 50


class Coded(NamedTuple):
    """The levels, ascending; every rating's index among them; and the ratings, if binned."""

    levels: Float64Array
    codes: IntArray
    exact: Float64Array | None = None


def coded(values: FloatArray, levels: Any = None, n_levels: int | None = None) -> Coded:
    """Return the scale, found or given, and every rating's index on it.

    Parameters
    ----------
    values : array
        The ratings.
    levels : sequence of float, optional
        The scale; by default the values that occur.
    n_levels : int, optional
        Bin the values where there are more of them; with ``levels``, put each at the nearest.

    Examples
    --------
    >>> coded(np.array([1.0, 2.5, 2.0, 9.0]), n_levels=2).levels
    array([1.5 , 5.75])
    """
    if n_levels is not None and (isinstance(n_levels, bool) or n_levels < 2):
        raise ValueError(f"n_levels={n_levels!r} must be a whole number >= 2.")
    found, codes = _found(values)
    if n_levels is not None:
        if levels is not None:
            scale = _checked(levels)
            return Coded(scale, _nearest(values, scale), values.astype(np.float64))
        if found is None or len(found) > n_levels:
            return _binned(values.astype(np.float64), n_levels)
    if found is None:
        n_distinct = len(np.unique(values))
        raise ValueError(
            f"The ratings have {n_distinct} distinct values: that is a measurement, not a scale of "
            "levels. Bin them with Ratings.of(..., n_levels=10), or use a method that estimates a "
            "number, such as ALS, PMF or BiasOnly."
        )
    if levels is None:
        if len(found) == 1:
            raise ValueError(
                f"Every rating is {found[0]:g}: with one level there is nothing to tell apart."
            )
        return Coded(found, codes)
    scale = _checked(levels)
    strange = found[~np.isin(found, scale)]
    if len(strange):
        row = int(np.argmax(values == strange[0]))
        raise ValueError(
            f"The rating {strange[0]:g} in row {row} is not on the scale "
            f"{', '.join(f'{level:g}' for level in scale)}."
        )
    return Coded(scale, np.searchsorted(scale, found).astype(CODE)[codes])


def _found(values: FloatArray) -> tuple[Float64Array | None, IntArray]:
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


def _checked(levels: Any) -> Float64Array:
    scale: Float64Array = np.unique(np.asarray(levels, np.float64))
    if len(scale) < 2 or not np.isfinite(scale).all():
        raise ValueError(f"levels={levels!r} must hold at least two finite numbers.")
    return scale


def _nearest(values: FloatArray, scale: Float64Array) -> IntArray:
    codes: IntArray = np.searchsorted((scale[1:] + scale[:-1]) / 2, values).astype(CODE)
    return codes


def _binned(values: Float64Array, n_levels: int) -> Coded:
    """Return levels that are the means of bins with about as many ratings each."""
    edges = np.unique(np.quantile(values, np.arange(1, n_levels) / n_levels))
    bins = np.searchsorted(edges, values, side="left")
    counts = np.bincount(bins, minlength=len(edges) + 1)
    used = np.flatnonzero(counts)
    if len(used) < 2:  # nearly all ratings are the same: tell those from the others
        return _binned_at(values, float(np.median(values)))
    means = np.bincount(bins, values)[used] / counts[used]
    codes = np.searchsorted(used, bins).astype(CODE)
    return Coded(means, codes, values)


def _binned_at(values: Float64Array, edge: float) -> Coded:
    above = values > edge
    if not above.any():
        above = values >= edge
    means = np.array([values[~above].mean(), values[above].mean()])
    return Coded(means, above.astype(CODE), values)


def levels_of(values: FloatArray) -> Float64Array:
    """Return the values that occur, or, if that is one alone, the upper one of two levels.

    So are pairs without ratings: all of them are 1, and absent is 0.

    >>> levels_of(np.array([3.0, 1.0, 3.0])), levels_of(np.ones(2))
    (array([1., 3.]), array([0., 1.]))
    """
    found: Float64Array = np.unique(values).astype(np.float64)
    return np.array([found[0] - 1, found[0]]) if len(found) == 1 else found


def lowest_liked(levels: Float64Array, mean: float) -> float:
    """Return the lowest level above the mean rating: who rates so high likes the item.

    Where all ratings are the highest one, it is that.

    >>> lowest_liked(np.array([1.0, 2.0, 3.0, 4.0, 5.0]), 3.5)
    4.0
    """
    above = levels[levels > mean]
    return float(above[0] if len(above) else levels[-1])
