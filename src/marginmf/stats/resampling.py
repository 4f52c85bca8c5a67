"""How sure is a mean over users?  The bootstrap, and Fisher's randomisation test of pairs."""

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np

from marginmf._utils.random import as_generator
from marginmf._utils.types import Float64Array
from marginmf.stats.tables import score_table

#: Up to this many pairs that differ, every assignment of signs is counted.
MOST_EXACT = 12
#: How many random numbers are in memory at a time.
NUMBERS_AT_A_TIME = 2**21


def bootstrap_interval(
    values: Sequence[float] | Float64Array,
    confidence: float = 0.95,
    n_resamples: int = 2000,
    random_state: Any = 0,
) -> tuple[float, float]:
    """Return where a mean lies with the given confidence, by the bootstrap's percentiles.

    Samples of the same size are drawn from the values with replacement, in blocks of bounded
    size, and the interval holds the middle part of their means.

    Parameters
    ----------
    values : sequence of float
        Independent values, such as a measure of every user.
    confidence : float
        How much of the resampled means lies within.
    n_resamples : int
        How many samples to draw.
    random_state : int, Generator, RandomState or None
        The seed; the same int always gives the same interval.

    Returns
    -------
    tuple of float
        The low and the high end.

    Examples
    --------
    >>> low, high = bootstrap_interval([0.0, 1.0] * 50)
    >>> round(low, 2), round(high, 2)
    (0.4, 0.6)
    """
    column = np.asarray(values, np.float64)
    if column.ndim != 1 or len(column) == 0 or not np.isfinite(column).all():
        raise ValueError("values must be a plain sequence of finite numbers, one at least.")
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence={confidence!r} must lie between 0 and 1; 0.95 is usual.")
    rng, n = as_generator(random_state), len(column)
    means = np.concatenate(
        [
            column[rng.integers(n, size=(rows, n))].mean(axis=1)
            for rows in _blocks(_checked_resamples(n_resamples), n)
        ]
    )
    low, high = np.quantile(means, [(1 - confidence) / 2, (1 + confidence) / 2])
    return float(low), float(high)


def paired_randomisation_test(
    a: Sequence[float] | Float64Array,
    b: Sequence[float] | Float64Array,
    n_resamples: int = 10_000,
    random_state: Any = 0,
) -> float:
    """Return the p-value of the mean difference of two methods, by Fisher's randomisation test.

    If the methods are equally good, each difference could as well have the other sign.  The
    p-value is the share of random signs that give a mean difference at least as large as the
    observed one, whatever its direction; the observed signs count as one of them, so that it is
    never 0.  With 12 differences or fewer that are not 0, all signs are counted.

    Parameters
    ----------
    a, b : sequence of float
        The values of either method for the same users, in the same order.
    n_resamples : int
        How many random signs to try.
    random_state : int, Generator, RandomState or None
        The seed; the same int always gives the same p-value.

    Returns
    -------
    float
        Two-sided.

    Examples
    --------
    >>> paired_randomisation_test([5, 6, 7, 9], [4, 4, 4, 5])
    0.125
    """
    values = score_table({"the first method": a, "the second method": b}).values
    difference = values[:, 0] - values[:, 1]
    # Signs are given to sizes; what does not differ has none, and moves no sum.
    sizes = np.abs(difference[difference != 0])
    n, total = len(sizes), float(sizes.sum())
    # Sums in another order differ in their last digits: equal to these is as large.
    bound = abs(float(difference.sum())) - 1e-12 * total
    n_resamples = _checked_resamples(n_resamples)
    if n <= MOST_EXACT:
        return float((np.abs(_all_signs(n) @ sizes) >= bound).mean())
    sums = _signed_sums(sizes)
    rng, groups, count = as_generator(random_state), np.arange(sums.shape[1]), 0
    for rows in _blocks(n_resamples, len(groups)):
        chosen = rng.integers(len(sums), size=(rows, len(groups)), dtype=np.uint8)
        count += int((np.abs(sums[chosen, groups].sum(axis=1)) >= bound).sum())
    return (1 + count) / (1 + n_resamples)


def _signed_sums(sizes: Float64Array) -> Float64Array:
    """Return the 16 sums of every four sizes: one random number gives signs to four at once.

    >>> _signed_sums(np.array([4.0, 2.0, 1.0])).ravel()[::2]
    array([-7., -5., -3., -1.,  1.,  3.,  5.,  7.])
    """
    fours = np.pad(sizes, (0, -len(sizes) % 4)).reshape(-1, 4)
    sums: Float64Array = _all_signs(4) @ fours.T
    return sums


def _all_signs(n: int) -> Float64Array:
    return np.array(list(product((-1.0, 1.0), repeat=n)))


def _blocks(n_rows: int, n_columns: int) -> Iterator[int]:
    """Yield how many rows to draw at a time."""
    step = max(1, NUMBERS_AT_A_TIME // max(1, n_columns))
    for first in range(0, n_rows, step):
        yield min(step, n_rows - first)


def _checked_resamples(n: Any) -> int:
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 1:
        raise ValueError(f"n_resamples={n!r} is not a number of samples. Give a whole number >= 1.")
    return int(n)
