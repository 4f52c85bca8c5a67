"""Which methods differ, by their average ranks."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from scipy import stats

from marginmf.stats.critical import (
    bonferroni_dunn_critical_difference,
    nemenyi_critical_difference,
    standard_error,
)
from marginmf.stats.ranks import named_means, ranks_within
from marginmf.stats.tables import score_table

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
        """Return the p-value of a pair, in whichever order."""
        found = self.p_values.get((first, second), self.p_values.get((second, first)))
        if found is None:
            raise KeyError(f"{first!r} and {second!r} were not compared.")
        return found


def nemenyi_test(scores: Any, *, higher_is_better: bool, alpha: float = 0.05) -> PostHocTest:
    """Compare all methods with one another by their mean ranks.

    Parameters
    ----------
    scores : mapping, frame or array
        The scores of every method on every data set (see `marginmf.stats`).
    higher_is_better : bool
        True for accuracies, False for errors and losses.
    alpha : float
        The level of significance.

    Returns
    -------
    PostHocTest

    Examples
    --------
    >>> scores = {"A": [9, 8, 9, 9, 7], "B": [6, 7, 5, 6, 6], "C": [1, 2, 3, 4, 5]}
    >>> found = nemenyi_test(scores, higher_is_better=True)
    >>> found.differing, round(found.p_value("A", "B"), 3)
    ((('A', 'C'),), 0.254)
    """
    table = score_table(scores)
    n_methods, n_datasets = table.n_methods, table.n_datasets

    def p_value(errors: float) -> float:
        return float(stats.studentized_range.sf(errors * np.sqrt(2), n_methods, np.inf))

    return _compared(
        named_means(table, ranks_within(table, higher_is_better)),
        combinations(table.methods, 2),
        p_value,
        standard_error(n_methods, n_datasets),
        nemenyi_critical_difference(n_methods, n_datasets, alpha),
        alpha,
    )


def bonferroni_dunn_test(
    scores: Any, control: str, *, higher_is_better: bool, alpha: float = 0.05
) -> PostHocTest:
    """Compare every method with one control by their mean ranks.

    Choose the control before you see the scores; the best of all is no control.

    Parameters
    ----------
    scores : mapping, frame or array
        The scores of every method on every data set (see `marginmf.stats`).
    control : str
        The name of the method that the others are compared with.
    higher_is_better : bool
        True for accuracies, False for errors and losses.
    alpha : float
        The level of significance.

    Returns
    -------
    PostHocTest

    Examples
    --------
    >>> scores = {"A": [9, 8, 9, 9, 7], "B": [6, 7, 5, 6, 6], "C": [1, 2, 3, 4, 5]}
    >>> found = bonferroni_dunn_test(scores, "A", higher_is_better=True)
    >>> {pair: round(p, 4) for pair, p in found.p_values.items()}
    {('A', 'B'): 0.2277, ('A', 'C'): 0.0031}
    """
    table = score_table(scores)
    n_methods, n_datasets = table.n_methods, table.n_datasets
    if control not in table.methods:
        raise ValueError(
            f"control={control!r} is not one of the methods ({', '.join(table.methods)})."
        )

    def p_value(errors: float) -> float:
        return min(1.0, (n_methods - 1) * 2 * float(stats.norm.sf(errors)))

    return _compared(
        named_means(table, ranks_within(table, higher_is_better)),
        [(control, other) for other in table.methods if other != control],
        p_value,
        standard_error(n_methods, n_datasets),
        bonferroni_dunn_critical_difference(n_methods, n_datasets, alpha),
        alpha,
    )


def _compared(
    ranks: dict[str, float],
    pairs: Iterable[Pair],
    p_value: Callable[[float], float],
    error: float,
    critical_difference: float,
    alpha: float,
) -> PostHocTest:
    """Test each pair, the better method first; ``p_value`` takes a difference in errors."""
    found: dict[Pair, float] = {}
    for first, second in pairs:
        better, worse = (first, second) if ranks[first] <= ranks[second] else (second, first)
        found[better, worse] = p_value((ranks[worse] - ranks[better]) / error)
    return PostHocTest(ranks, critical_difference, found, alpha)
