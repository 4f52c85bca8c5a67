"""Two methods on the same splits, data sets or users, and how sure a mean is."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Any

import numpy as np
from scipy import stats

from marginmf._utils.parameters import check_whole
from marginmf._utils.random import as_generator
from marginmf._utils.types import Float64Array
from marginmf.stats.ranks import check_level, score_table

#: Up to this many data sets the p-value of the signed-rank test is exact.
MOST_EXACT_RANKS = 100
#: Up to this many pairs that differ, the randomisation test counts every assignment of signs.
MOST_EXACT_SIGNS = 12
#: How many random numbers are in memory at a time.
NUMBERS_AT_A_TIME = 2**21

#: Values of a method, one for each split, data set or user.
Values = Sequence[float] | Float64Array


@dataclass(frozen=True)
class PairedComparison:
    """The mean difference of two methods over splits, and how sure it is.

    Parameters
    ----------
    mean_difference : float
        The first less the second.
    standard_error : float
        Of the mean difference, with the correction for overlapping training sets, if any.
    interval : tuple of float
        Where the true difference lies with the given confidence.
    t, df, p_value : float, int, float
        Student's statistic, its degrees of freedom and its two-sided p-value.
    confidence : float
        That of the interval.
    """

    mean_difference: float
    standard_error: float
    interval: tuple[float, float]
    t: float
    df: int
    p_value: float
    confidence: float


def paired_comparison(
    a: Values, b: Values, *, test_size: float | None, confidence: float = 0.95
) -> PairedComparison:
    """Compare two methods that were judged on the same splits of one data set.

    The training sets of random splits overlap, and so do those of folds: the differences depend on
    one another, and the usual paired t-test finds far too much.  Nadeau and Bengio (2003) take
    ``1/n + n_test/n_train`` for ``1/n`` in the variance of the mean difference.

    Parameters
    ----------
    a, b : sequence of float
        The scores of either method, split by split.
    test_size : float or None
        The share of the data that each split tests on: 0.2 for `HoldOut(test_size=0.2)`, ``1/k``
        for k folds.  None is the plain paired t-test, for splits that share no data.
    confidence : float
        That of the interval.

    Examples
    --------
    >>> hmf, mmmf = [0.671, 0.668, 0.675], [0.679, 0.680, 0.681]
    >>> found = paired_comparison(hmf, mmmf, test_size=0.2)
    >>> round(found.mean_difference, 4), [round(end, 4) for end in found.interval]
    (-0.0087, [-0.0187, 0.0014])
    """
    if test_size is not None and not 0.0 < test_size < 1.0:
        raise ValueError(
            f"test_size={test_size!r} must lie between 0 and 1: it is the share of the data that a "
            "split tests on. None says that splits share no data."
        )
    check_level("confidence", confidence, 0.95)
    difference = np.subtract(*_columns(a, b, at_least=2))
    n = len(difference)
    overlap = 0.0 if test_size is None else test_size / (1.0 - test_size)
    mean = float(difference.mean())
    error = float(np.sqrt((1 / n + overlap) * difference.var(ddof=1)))
    # Splits that all differ by the same amount leave no doubt, or no difference.
    t = mean / error if error > 0 else float(np.sign(mean)) * np.inf if mean else 0.0
    reach = float(stats.t.ppf((1 + confidence) / 2, n - 1)) * error
    p_value = float(2 * stats.t.sf(abs(t), n - 1))
    interval = mean - reach, mean + reach
    return PairedComparison(mean, error, interval, float(t), n - 1, p_value, confidence)


@dataclass(frozen=True)
class SignedRankTest:
    """How two methods compare over data sets.

    Parameters
    ----------
    first, second : str
        Their names.
    wins, ties, losses : int
        On how many data sets the first is better, equal, worse.
    statistic : float
        The smaller of the two sums of ranks, Wilcoxon's T.
    p_value, adjusted_p : float
        Two-sided; and the same after Holm's correction for all the pairs compared.
    rank_biserial : float
        The effect size that goes with the test, from -1 to 1: the ranks that speak for the first
        less those that speak for the second, as a share of both.
    superiority : float
        From 0 to 1: the share of data sets on which the first is better, ties counting half.
    differ : bool
        Whether ``adjusted_p`` is at most alpha.
    """

    first: str
    second: str
    wins: int
    ties: int
    losses: int
    statistic: float
    p_value: float
    adjusted_p: float
    rank_biserial: float
    superiority: float
    differ: bool


def wilcoxon_holm(
    scores: Any, *, higher_is_better: bool, alpha: float = 0.05
) -> list[SignedRankTest]:
    """Compare all pairs of methods by Wilcoxon's signed-rank test, corrected by Holm's method.

    A pair's verdict does not depend on which other methods take part in the ranking, as it does
    in Nemenyi's test; Holm's correction alone counts them.

    Data sets without a difference are ranked with the others and then speak for neither (Pratt).
    Equal differences share their ranks; what differs by less than 1e-12 of the largest score is
    equal.  The p-value is exact up to 100 data sets, ties included; above, it is that of the normal
    distribution with the variance of the observed ranks.  With five data sets or fewer nothing is
    significant at 0.05.

    Effect sizes are those of pairs: ``superiority`` is the paired counterpart of Cliff's delta and
    of Vargha and Delaney's A, which would also compare scores of different data sets;
    ``rank_biserial`` weighs each data set by its rank.

    Parameters
    ----------
    scores, higher_is_better
        As in `marginmf.stats.friedman_test`.
    alpha : float
        The level of significance, over all pairs together.

    Returns
    -------
    list of SignedRankTest
        One for each pair, in the order of the methods.

    Examples
    --------
    >>> scores = {"A": [9, 8, 9, 7, 9, 8], "B": [6, 7, 4, 5, 5, 2], "C": [6, 6, 4, 6, 5, 1]}
    >>> for pair in wilcoxon_holm(scores, higher_is_better=True):
    ...     print(pair.first, pair.second, pair.adjusted_p, round(pair.rank_biserial, 2))
    A B 0.09375 1.0
    A C 0.09375 1.0
    B C 1.0 0.33
    """
    table, alpha = score_table(scores), check_level("alpha", alpha, 0.05)
    signed = table.values if higher_is_better else -table.values
    columns = dict(zip(table.methods, signed.T, strict=True))
    tests = [
        replace(signed_rank_test(columns[first], columns[second]), first=first, second=second)
        for first, second in combinations(table.methods, 2)
    ]
    adjusted = zip(tests, holm([test.p_value for test in tests]), strict=True)
    return [replace(test, adjusted_p=p, differ=p <= alpha) for test, p in adjusted]


def signed_rank_test(a: Values, b: Values, *, alpha: float = 0.05) -> SignedRankTest:
    """Compare two methods by Wilcoxon's signed-rank test; more is better.

    Parameters
    ----------
    a, b : sequence of float
        Their scores on the same data sets; negate errors.
    alpha : float
        The level of significance.

    Examples
    --------
    >>> test = signed_rank_test([5, 6, 7, 9], [4, 4, 4, 5])
    >>> test.statistic, test.p_value, test.superiority
    (0.0, 0.125, 1.0)
    """
    first, second = _columns(a, b)
    # The last digits are noise, and would break ties: 0.3 - 0.2 is not 0.2 - 0.1.
    largest = max(float(np.abs(first).max()), float(np.abs(second).max()))
    decimals = 12 - int(np.ceil(np.log10(largest))) if largest > 0 else 0
    difference = np.round(first - second, decimals)
    ranks = stats.rankdata(np.abs(difference))
    moving = ranks[difference != 0]  # what is without a sign has a rank, and moves neither sum
    plus, minus = float(ranks[difference > 0].sum()), float(ranks[difference < 0].sum())
    p_of = _exact_p if len(difference) <= MOST_EXACT_RANKS else _normal_p
    p_value = p_of(moving, min(plus, minus))
    wins, losses = int((difference > 0).sum()), int((difference < 0).sum())
    ties = len(difference) - wins - losses
    return SignedRankTest(
        first="a",
        second="b",
        wins=wins,
        ties=ties,
        losses=losses,
        statistic=min(plus, minus),
        p_value=p_value,
        adjusted_p=p_value,
        rank_biserial=(plus - minus) / (plus + minus) if len(moving) else 0.0,
        superiority=(wins + ties / 2) / len(difference),
        differ=p_value <= check_level("alpha", alpha, 0.05),
    )


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted for their number by Holm's method, in the order given.

    >>> holm([0.04, 0.01, 0.03])
    [0.06, 0.03, 0.06]
    """
    p = np.asarray(p_values, np.float64)
    if p.ndim != 1 or not ((p >= 0) & (p <= 1)).all():
        raise ValueError("p_values must be a plain sequence of numbers from 0 to 1.")
    order = np.argsort(p, kind="stable")
    steps = (len(p) - np.arange(len(p))) * p[order]
    adjusted = np.empty_like(p)
    # None may fall below one that was rejected before it.
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0)
    return adjusted.tolist()


def _columns(a: Values, b: Values, at_least: int = 1) -> Float64Array:
    """Return the scores of both methods, one row each."""
    return score_table({"the first method": a, "the second method": b}, at_least=at_least).values.T


def _exact_p(ranks: Float64Array, smaller: float) -> float:
    """Return the share of signs that give sums as far apart as these, or further."""
    doubled = np.rint(2 * ranks).astype(np.int64)  # shared ranks are whole halves
    ways = np.zeros(int(doubled.sum()) + 1)
    ways[0] = 1.0
    for rank in doubled:
        ways[rank:] = (ways[rank:] + ways[: len(ways) - rank]) / 2
        ways[:rank] /= 2
    return min(1.0, 2 * float(ways[: round(2 * smaller) + 1].sum()))


def _normal_p(ranks: Float64Array, smaller: float) -> float:
    deviation = float(np.sqrt(np.square(ranks).sum())) / 2
    if deviation == 0.0:
        return 1.0
    return min(1.0, 2 * float(stats.norm.cdf((smaller - ranks.sum() / 2) / deviation)))


def bootstrap_interval(
    values: Values, confidence: float = 0.95, n_resamples: int = 2000, random_state: Any = 0
) -> tuple[float, float]:
    """Return where a mean lies with the given confidence, by the bootstrap's percentiles.

    Samples of the same size are drawn from the values with replacement, and the interval holds the
    middle of their means.

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

    Examples
    --------
    >>> low, high = bootstrap_interval([0.0, 1.0] * 50)
    >>> round(low, 2), round(high, 2)
    (0.4, 0.6)
    """
    column = np.asarray(values, np.float64)
    if column.ndim != 1 or len(column) == 0 or not np.isfinite(column).all():
        raise ValueError("values must be a plain sequence of finite numbers, one at least.")
    check_level("confidence", confidence, 0.95)
    rng, n = as_generator(random_state), len(column)
    blocks = _blocks(check_whole("n_resamples", n_resamples), n)
    means = [column[rng.integers(n, size=(rows, n))].mean(axis=1) for rows in blocks]
    ends = [(1 - confidence) / 2, (1 + confidence) / 2]
    low, high = np.quantile(np.concatenate(means), ends)
    return float(low), float(high)


def paired_randomisation_test(
    a: Values, b: Values, n_resamples: int = 10_000, random_state: Any = 0
) -> float:
    """Return the p-value of the mean difference of two methods, by Fisher's randomisation test.

    If the methods are equally good, each difference could as well have the other sign.  The
    two-sided p-value is the share of random signs that give a mean difference at least as large as
    the observed one; the observed signs count as one of them, so that it is never 0.  With 12
    differences or fewer that are not 0, all signs are counted.

    Parameters
    ----------
    a, b : sequence of float
        The values of either method for the same users, in the same order.
    n_resamples : int
        How many random signs to try.
    random_state : int, Generator, RandomState or None
        The seed; the same int always gives the same p-value.

    Examples
    --------
    >>> paired_randomisation_test([5, 6, 7, 9], [4, 4, 4, 5])
    0.125
    """
    difference = np.subtract(*_columns(a, b))
    # Signs are given to sizes; what does not differ has none, and moves no sum.
    sizes = np.abs(difference[difference != 0])
    n, total = len(sizes), float(sizes.sum())
    # Sums in another order differ in their last digits: equal to these is as large.
    bound = abs(float(difference.sum())) - 1e-12 * total
    n_resamples = check_whole("n_resamples", n_resamples)
    if n <= MOST_EXACT_SIGNS:
        return float((np.abs(_all_signs(n) @ sizes) >= bound).mean())
    sums = _signed_sums(sizes)
    rng, groups, count = as_generator(random_state), np.arange(sums.shape[1]), 0
    for rows in _blocks(n_resamples, len(groups)):
        chosen = rng.integers(len(sums), size=(rows, len(groups)), dtype=np.uint8)
        count += int((np.abs(sums[chosen, groups].sum(axis=1)) >= bound).sum())
    return (1 + count) / (1 + n_resamples)


def _signed_sums(sizes: Float64Array) -> Float64Array:
    """Return the 16 sums of every four sizes: one random number gives signs to four at once."""
    return _all_signs(4) @ np.pad(sizes, (0, -len(sizes) % 4)).reshape(-1, 4).T


def _all_signs(n: int) -> Float64Array:
    return np.array(list(product((-1.0, 1.0), repeat=n)))


def _blocks(n_rows: int, n_columns: int) -> Iterator[int]:
    """Yield how many rows to draw at a time."""
    step = max(1, NUMBERS_AT_A_TIME // max(1, n_columns))
    for first in range(0, n_rows, step):
        yield min(step, n_rows - first)
