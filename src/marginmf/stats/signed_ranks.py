"""Two methods over several data sets: Wilcoxon's signed-rank test, and Holm's correction."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from scipy import stats

from marginmf._utils.types import Float64Array
from marginmf.stats.tables import alpha_of_a_test, score_table

#: Up to so many data sets the p-value is exact.
MOST_EXACT = 100


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
    p_value : float
        Two-sided.
    adjusted_p : float
        The same after Holm's correction for all the pairs compared.
    rank_biserial : float
        From -1 to 1: the ranks that speak for the first less those that speak for the second, as a
        share of both.  The effect size that goes with the test.
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

    *Data sets without a difference* are ranked with the others and then speak for neither (Pratt).
    *Equal differences* share their ranks, and what differs by less than 1e-12 of the largest score
    is equal: 0.3 - 0.2 and 0.2 - 0.1 are not the same binary number.  *The p-value is exact*
    up to 100 data sets, ties and all: every way to give the observed ranks their signs is counted.
    With five data sets or fewer it cannot fall below 0.0625, so that nothing is significant at
    0.05.  Above 100 it is that of the normal distribution with the variance of the observed ranks.

    *Effect sizes* are those of pairs.  Cliff's delta and Vargha and Delaney's A compare every
    score of one method with every score of the other, those of different data sets too, and so
    would measure how much the data sets differ.  Their paired counterpart is ``superiority``, which
    compares scores of the same data set alone; ``rank_biserial`` weighs each by its rank.

    Parameters
    ----------
    scores : mapping, frame or array
        The scores of every method on every data set (see `marginmf.stats`).
    higher_is_better : bool
        True for accuracies, False for errors and losses.
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
    table, alpha = score_table(scores), alpha_of_a_test(alpha)
    signed = table.values if higher_is_better else -table.values
    columns = dict(zip(table.methods, signed.T, strict=True))
    tests = [
        replace(signed_rank_test(columns[first], columns[second]), first=first, second=second)
        for first, second in combinations(table.methods, 2)
    ]
    adjusted = holm([test.p_value for test in tests])
    return [
        replace(test, adjusted_p=p, differ=p <= alpha)
        for test, p in zip(tests, adjusted, strict=True)
    ]


def signed_rank_test(
    a: Sequence[float] | Float64Array, b: Sequence[float] | Float64Array, *, alpha: float = 0.05
) -> SignedRankTest:
    """Compare two methods by Wilcoxon's signed-rank test; more is better.

    Parameters
    ----------
    a, b : sequence of float
        Their scores on the same data sets.  Give errors with their signs turned.
    alpha : float
        The level of significance.

    Returns
    -------
    SignedRankTest

    Examples
    --------
    >>> test = signed_rank_test([5, 6, 7, 9], [4, 4, 4, 5])
    >>> test.statistic, test.p_value, test.superiority
    (0.0, 0.125, 1.0)
    """
    table = score_table({"a": a, "b": b})
    difference = _differences(table.values)
    ranks = stats.rankdata(np.abs(difference))
    moving = ranks[difference != 0]  # what is without a sign has a rank, and moves neither sum
    plus, minus = float(ranks[difference > 0].sum()), float(ranks[difference < 0].sum())
    exact = len(difference) <= MOST_EXACT
    p_value = (_exact_p if exact else _normal_p)(moving, min(plus, minus))
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
        differ=p_value <= alpha_of_a_test(alpha),
    )


def holm(p_values: Sequence[float]) -> list[float]:
    """Return p-values adjusted for their number by Holm's method, in the order given.

    Parameters
    ----------
    p_values : sequence of float
        From 0 to 1.

    Returns
    -------
    list of float

    Examples
    --------
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
    return [float(value) for value in adjusted]


def _differences(values: Float64Array) -> Float64Array:
    """Return first less second, without the last digits, which are noise and would break ties."""
    largest = float(np.abs(values).max())
    decimals = 12 - int(np.ceil(np.log10(largest))) if largest > 0 else 0
    differences: Float64Array = np.round(values[:, 0] - values[:, 1], decimals)
    return differences


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
