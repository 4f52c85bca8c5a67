"""Which methods differ, by their average ranks: post hoc tests and critical differences."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np
from scipy import stats

from marginmf.stats.ranks import check_alpha, score_table

Pair = tuple[str, str]


@dataclass(frozen=True)
class PostHocTest:
    """Which of the methods compared differ.

    Parameters
    ----------
    average_ranks : dict of str to float
        The mean rank of each method; 1 is the best.
    critical_difference : float
        Methods whose mean ranks are at least this far apart differ at ``alpha``.
    p_values : dict of (str, str) to float
        For each pair that was compared, the better method first; already adjusted for the number
        of comparisons.
    alpha : float
        The level of significance.
    """

    average_ranks: dict[str, float]
    critical_difference: float
    p_values: dict[Pair, float]
    alpha: float

    @property
    def differing(self) -> tuple[Pair, ...]:
        """The pairs that differ, the better method of each first."""
        return tuple(pair for pair, p in self.p_values.items() if p <= self.alpha)

    def p_value(self, first: str, second: str) -> float:
        """Return the p-value of a pair, in either order."""
        found = self.p_values.get((first, second), self.p_values.get((second, first)))
        if found is None:
            raise KeyError(f"{first!r} and {second!r} were not compared.")
        return found


def nemenyi_test(scores: Any, *, higher_is_better: bool, alpha: float = 0.05) -> PostHocTest:
    """Compare all methods with one another by their mean ranks.

    Parameters
    ----------
    scores, higher_is_better, alpha
        As in `marginmf.stats.friedman_test`.

    Examples
    --------
    >>> scores = {"A": [9, 8, 9, 9, 7], "B": [6, 7, 5, 6, 6], "C": [1, 2, 3, 4, 5]}
    >>> found = nemenyi_test(scores, higher_is_better=True)
    >>> found.differing, round(found.p_value("A", "B"), 3)
    ((('A', 'C'),), 0.254)
    """
    table = score_table(scores)
    n_methods, n_datasets = len(table.methods), len(table.datasets)

    def p_value(errors: float) -> float:
        return float(stats.studentized_range.sf(errors * np.sqrt(2), n_methods, np.inf))

    cd = nemenyi_critical_difference(n_methods, n_datasets, alpha)
    ranks = table.named_means(table.ranks(higher_is_better))
    p_values = _pair_p_values(ranks, combinations(table.methods, 2), p_value, n_datasets)
    return PostHocTest(ranks, cd, p_values, alpha)


def bonferroni_dunn_test(
    scores: Any, control: str, *, higher_is_better: bool, alpha: float = 0.05
) -> PostHocTest:
    """Compare every method with one control by their mean ranks.

    Choose the control before you see the scores; the best of all is no control.

    Parameters
    ----------
    control : str
        The name of the method that the others are compared with.
    scores, higher_is_better, alpha
        As in `marginmf.stats.friedman_test`.

    Examples
    --------
    >>> scores = {"A": [9, 8, 9, 9, 7], "B": [6, 7, 5, 6, 6], "C": [1, 2, 3, 4, 5]}
    >>> found = bonferroni_dunn_test(scores, "A", higher_is_better=True)
    >>> {pair: round(p, 4) for pair, p in found.p_values.items()}
    {('A', 'B'): 0.2277, ('A', 'C'): 0.0031}
    """
    table = score_table(scores)
    n_methods, n_datasets = len(table.methods), len(table.datasets)
    if control not in table.methods:
        raise ValueError(
            f"control={control!r} is not one of the methods ({', '.join(table.methods)})."
        )

    def p_value(errors: float) -> float:
        return min(1.0, (n_methods - 1) * 2 * float(stats.norm.sf(errors)))

    cd = bonferroni_dunn_critical_difference(n_methods, n_datasets, alpha)
    ranks = table.named_means(table.ranks(higher_is_better))
    pairs = [(control, other) for other in table.methods if other != control]
    return PostHocTest(ranks, cd, _pair_p_values(ranks, pairs, p_value, n_datasets), alpha)


def _pair_p_values(
    ranks: dict[str, float],
    pairs: Iterable[Pair],
    p_value: Callable[[float], float],
    n_datasets: int,
) -> dict[Pair, float]:
    """Test each pair, the better method first; differences are in standard errors."""
    error = standard_error(len(ranks), n_datasets)
    found: dict[Pair, float] = {}
    for first, second in pairs:
        better, worse = (first, second) if ranks[first] <= ranks[second] else (second, first)
        found[better, worse] = p_value((ranks[worse] - ranks[better]) / error)
    return found


def nemenyi_critical_difference(n_methods: int, n_datasets: int, alpha: float = 0.05) -> float:
    """Return how far apart two mean ranks must be when all methods are compared with one another.

    Demšar's CD: a quantile of the studentised range, divided by the root of 2, times the standard
    error of a difference of mean ranks.  It is computed, not looked up, and so there for any
    number of methods and any ``alpha``.

    Parameters
    ----------
    n_methods, n_datasets : int
        How many.
    alpha : float
        The level of significance.

    Examples
    --------
    >>> round(nemenyi_critical_difference(4, 14), 2)
    1.25
    """
    return nemenyi_quantile(n_methods, alpha) * standard_error(n_methods, n_datasets)


@lru_cache  # a table asks for the same one again and again, and it takes milliseconds
def nemenyi_quantile(n_methods: int, alpha: float = 0.05) -> float:
    """Return Demšar's q for Nemenyi's test.

    >>> round(nemenyi_quantile(8), 3)
    3.031
    """
    _check_methods(n_methods)
    q = stats.studentized_range.ppf(1 - check_alpha(alpha), n_methods, np.inf)
    return float(q / np.sqrt(2))


def bonferroni_dunn_critical_difference(
    n_methods: int, n_datasets: int, alpha: float = 0.05
) -> float:
    """Return how far a mean rank must be from the control's when all are compared with it alone.

    Smaller than Nemenyi's, as there are fewer comparisons to go wrong.

    Parameters
    ----------
    n_methods, n_datasets : int
        How many methods, the control among them, and how many data sets.
    alpha : float
        The level of significance.

    Examples
    --------
    >>> round(bonferroni_dunn_critical_difference(4, 14), 2)
    1.17
    """
    se = standard_error(n_methods, n_datasets)
    return float(stats.norm.isf(check_alpha(alpha) / (2 * (n_methods - 1)))) * se


def standard_error(n_methods: int, n_datasets: int) -> float:
    """Return the standard error of the difference of two mean ranks, if all methods are equal.

    >>> standard_error(5, 20)
    0.5
    """
    _check_methods(n_methods)
    if n_datasets < 1:
        raise ValueError(f"n_datasets={n_datasets!r} must be 1 or more.")
    return float(np.sqrt(n_methods * (n_methods + 1) / (6 * n_datasets)))


def _check_methods(n_methods: int) -> None:
    if n_methods < 2:
        raise ValueError(
            f"n_methods={n_methods!r} must be 2 or more: one has nothing to differ from."
        )


def cliques(ranks: Mapping[str, float], critical_difference: float) -> list[tuple[str, ...]]:
    """Return the largest groups of methods that do not differ: the bars of the diagram.

    Parameters
    ----------
    ranks : mapping of str to float
        Mean ranks, such as `average_ranks` returns.
    critical_difference : float
        Methods whose mean ranks are less than this apart do not differ.

    Returns
    -------
    list of tuple of str
        The best group first, and in each the best method first.  Groups may overlap, none lies
        within another, and a method that differs from all others is in none.

    Examples
    --------
    >>> cliques({"A": 1.2, "B": 2.0, "C": 2.9, "D": 4.8}, critical_difference=1.0)
    [('A', 'B'), ('B', 'C')]
    """
    ordered = sorted(ranks, key=lambda name: ranks[name])
    groups: list[tuple[str, ...]] = []
    reached = 0  # how far the groups so far go: one that goes no further lies within the last
    for start, best in enumerate(ordered):
        near = [name for name in ordered[start:] if ranks[name] - ranks[best] < critical_difference]
        end = start + len(near)
        if len(near) > 1 and end > reached:
            groups.append(tuple(near))
            reached = end
    return groups
