"""How far apart average ranks must lie, and which methods lie closer than that."""

from collections.abc import Mapping
from functools import lru_cache

import numpy as np
from scipy import stats

from marginmf.stats.tables import alpha_of_a_test


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

    Returns
    -------
    float

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
    q = stats.studentized_range.ppf(1 - alpha_of_a_test(alpha), n_methods, np.inf)
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

    Returns
    -------
    float

    Examples
    --------
    >>> round(bonferroni_dunn_critical_difference(4, 14), 2)
    1.17
    """
    se = standard_error(n_methods, n_datasets)
    return float(stats.norm.isf(alpha_of_a_test(alpha) / (2 * (n_methods - 1)))) * se


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
