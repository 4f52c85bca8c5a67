"""Tests by the average ranks of methods: Friedman's, and which methods differ (post hoc)."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Any

import numpy as np
from scipy import stats

from marginmf._utils.parameters import check_whole
from marginmf._utils.types import Float64Array

Pair = tuple[str, str]


def average_ranks(scores: Any, higher_is_better: bool) -> dict[str, float]:
    """Return the rank of each method, averaged over the data sets; 1 is the best.

    Equal scores share the mean of the ranks they take up.  "Equal" is exactly equal: round the
    scores first if differences below some size are noise.

    Parameters
    ----------
    scores : mapping, frame or array
        The scores of every method on every data set (see `marginmf.stats`).
    higher_is_better : bool
        True for accuracies, False for errors and losses.

    Returns
    -------
    dict of str to float
        In the order given; the methods of a nameless array are ``"method 1"``, ``"method 2"``, ...

    Examples
    --------
    >>> average_ranks({"A": [0.1, 0.2], "B": [0.3, 0.2], "C": [0.4, 0.5]}, higher_is_better=False)
    {'A': 1.25, 'B': 1.75, 'C': 3.0}
    """
    table = score_table(scores)
    return table.named_means(table.ranks(higher_is_better))


@dataclass(frozen=True)
class FriedmanTest:
    """The result of the Friedman test.

    Parameters
    ----------
    average_ranks : dict of str to float
        The mean rank of each method; 1 is the best.
    n_datasets : int
        On how many data sets.
    chi_square, chi_square_df, chi_square_p : float, int, float
        Friedman's statistic, its degrees of freedom and its p-value.
    f, f_df, f_p : float, tuple of int, float
        The same of Iman and Davenport's statistic (Demšar's F_F), which is the one to go by:
        chi-square is too cautious.
    f_critical : float
        Where ``f`` must lie, or above, for the methods to differ at ``alpha``.
    alpha : float
        The level of significance.
    tie_corrected : bool
        Whether chi-square, and with it F, is corrected for equal scores.
    """

    average_ranks: dict[str, float]
    n_datasets: int
    chi_square: float
    chi_square_df: int
    chi_square_p: float
    f: float
    f_df: tuple[int, int]
    f_p: float
    f_critical: float
    alpha: float
    tie_corrected: bool

    @property
    def n_methods(self) -> int:
        """How many methods were compared."""
        return len(self.average_ranks)

    @property
    def differ(self) -> bool:
        """Whether F says that the methods do not all do equally well."""
        return self.f >= self.f_critical


def friedman_test(
    scores: Any, *, higher_is_better: bool, alpha: float = 0.05, tie_correction: bool = False
) -> FriedmanTest:
    """Test whether several methods do equally well on several data sets.

    Parameters
    ----------
    scores : mapping, frame or array
        The scores of every method on every data set (see `marginmf.stats`).
    higher_is_better : bool
        True for accuracies, False for errors and losses.
    alpha : float
        The level of significance of ``f_critical``.
    tie_correction : bool
        False is the formula of Demšar (2006), which most published comparisons follow.  True
        divides chi-square by the share of the ranks' variance that ties leave, as
        ``scipy.stats.friedmanchisquare`` does; it is never smaller.

    Examples
    --------
    >>> scores = {"A": [3, 5, 4, 6], "B": [2, 4, 4, 5], "C": [1, 3, 2, 2]}
    >>> found = friedman_test(scores, higher_is_better=True)
    >>> round(found.chi_square, 3), round(found.f, 3), found.f_df, found.differ
    (7.125, 24.429, (2, 6), True)
    >>> round(friedman_test(scores, higher_is_better=True, tie_correction=True).chi_square, 3)
    7.6
    """
    table, alpha = score_table(scores, at_least=2), check_level("alpha", alpha, 0.05)
    ranks = table.ranks(higher_is_better)
    n, k = ranks.shape
    chi_square = _chi_square(ranks, tie_correction)
    # With all data sets in full agreement chi-square is at its largest, and F has no bound.
    largest = n * (k - 1)
    agreed = np.isclose(chi_square, largest, rtol=1e-12)
    f = np.inf if agreed else (n - 1) * chi_square / (largest - chi_square)
    freedom = (k - 1, (k - 1) * (n - 1))
    return FriedmanTest(
        average_ranks=table.named_means(ranks),
        n_datasets=n,
        chi_square=chi_square,
        chi_square_df=k - 1,
        chi_square_p=float(stats.chi2.sf(chi_square, k - 1)),
        f=float(f),
        f_df=freedom,
        f_p=float(stats.f.sf(f, *freedom)),
        f_critical=float(stats.f.isf(alpha, *freedom)),
        alpha=alpha,
        tie_corrected=tie_correction,
    )


def _chi_square(ranks: Float64Array, tie_correction: bool) -> float:
    """Return Friedman's statistic of ranks; 0 where every method ties with all others."""
    n, k = ranks.shape
    spread = np.square(ranks.mean(axis=0) - (k + 1) / 2).sum()
    # About their mean, the ranks of a data set without ties have this sum of squares.
    whole = k * (k * k - 1) / 12
    if tie_correction:
        whole = float(np.square(ranks - (k + 1) / 2).sum(axis=1).mean())
    return float(n * (k - 1) * spread / whole) if whole > 0 else 0.0


@dataclass(frozen=True)
class PostHocTest:
    """The result of `nemenyi_test` and `bonferroni_dunn_test`: which methods differ.

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
    pairs, n_methods = combinations(table.methods, 2), len(table.methods)

    def p_value(errors: float) -> float:
        return float(stats.studentized_range.sf(errors * np.sqrt(2), n_methods, np.inf))

    cd = nemenyi_critical_difference(n_methods, len(table.datasets), alpha)
    return _test_pairs(table, higher_is_better, pairs, p_value, cd, alpha)


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
    if control not in table.methods:
        raise ValueError(
            f"control={control!r} is not one of the methods ({', '.join(table.methods)})."
        )
    pairs = [(control, other) for other in table.methods if other != control]

    def p_value(errors: float) -> float:
        return min(1.0, len(pairs) * 2 * float(stats.norm.sf(errors)))

    cd = bonferroni_dunn_critical_difference(len(table.methods), len(table.datasets), alpha)
    return _test_pairs(table, higher_is_better, pairs, p_value, cd, alpha)


def _test_pairs(
    table: "ScoreTable",
    higher_is_better: bool,
    pairs: Iterable[Pair],
    p_value: Callable[[float], float],
    critical_difference: float,
    alpha: float,
) -> PostHocTest:
    """Test each pair, the better method first, by their difference in standard errors."""
    ranks = table.named_means(table.ranks(higher_is_better))
    error, p_values = standard_error(*table.values.shape[::-1]), {}
    for pair in pairs:
        better, worse = sorted(pair, key=ranks.__getitem__)
        p_values[better, worse] = p_value((ranks[worse] - ranks[better]) / error)
    return PostHocTest(ranks, critical_difference, p_values, alpha)


def nemenyi_critical_difference(n_methods: int, n_datasets: int, alpha: float = 0.05) -> float:
    """Return how far apart two mean ranks must be when all methods are compared with one another.

    Demšar's CD, for any number of methods and any ``alpha``: a quantile of the studentised range,
    divided by the root of 2, times the standard error of a difference of mean ranks.

    >>> round(nemenyi_critical_difference(4, 14), 2)
    1.25
    """
    return standard_error(n_methods, n_datasets) * nemenyi_quantile(n_methods, alpha)


@lru_cache  # a table asks for the same one again and again, and it takes milliseconds
def nemenyi_quantile(n_methods: int, alpha: float = 0.05) -> float:
    """Return Demšar's q for Nemenyi's test."""
    level = 1 - check_level("alpha", alpha, 0.05)
    return float(stats.studentized_range.ppf(level, n_methods, np.inf) / np.sqrt(2))


def bonferroni_dunn_critical_difference(
    n_methods: int, n_datasets: int, alpha: float = 0.05
) -> float:
    """Return how far a mean rank must be from the control's when all are compared with it alone.

    ``n_methods`` counts the control too.  Smaller than Nemenyi's, as there are fewer comparisons.

    >>> round(bonferroni_dunn_critical_difference(4, 14), 2)
    1.17
    """
    error, level = standard_error(n_methods, n_datasets), check_level("alpha", alpha, 0.05)
    return float(stats.norm.isf(level / (2 * (n_methods - 1)))) * error


def standard_error(n_methods: int, n_datasets: int) -> float:
    """Return the standard error of the difference of two mean ranks, if all methods are equal."""
    k, n = check_whole("n_methods", n_methods, 2), check_whole("n_datasets", n_datasets)
    return float(np.sqrt(k * (k + 1) / (6 * n)))


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
    ordered = sorted(ranks, key=ranks.__getitem__)
    groups: list[tuple[str, ...]] = []
    reached = 0  # how far the groups so far go: one that goes no further lies within the last
    for start, best in enumerate(ordered):
        near = [name for name in ordered[start:] if ranks[name] - ranks[best] < critical_difference]
        end = start + len(near)
        if len(near) > 1 and end > reached:
            groups.append(tuple(near))
            reached = end
    return groups


@dataclass(frozen=True)
class ScoreTable:
    """Finite scores: a row for each data set, a column for each method."""

    methods: tuple[str, ...]
    datasets: tuple[str, ...]
    values: Float64Array

    def ranks(self, higher_is_better: bool) -> Float64Array:
        """Return the ranks of all methods on each data set: 1 is the best, equal scores share."""
        return stats.rankdata(-self.values if higher_is_better else self.values, axis=1)

    def named_means(self, ranks: Float64Array) -> dict[str, float]:
        """Return the mean rank of each method by its name."""
        return dict(zip(self.methods, ranks.mean(axis=0).tolist(), strict=True))


def score_table(scores: Any, *, at_least: int = 1) -> ScoreTable:
    """Return the scores as a table of two methods or more and ``at_least`` data sets."""
    table = _from_mapping(scores) if isinstance(scores, Mapping) else _from_array(scores)
    if len(table.methods) < 2:
        raise ValueError(f"There are scores of {len(table.methods)} method(s): two are needed.")
    if len(table.datasets) < at_least:
        raise ValueError(
            f"There are scores on {len(table.datasets)} data set(s): {at_least} are needed here."
        )
    missing = np.argwhere(~np.isfinite(table.values))
    if len(missing):
        row, column = missing[0]
        more = f", and {len(missing) - 1} more like it" if len(missing) > 1 else ""
        raise ValueError(
            f"The score of {table.methods[column]} on {table.datasets[row]} is "
            f"{table.values[row, column]}{more}. Ranks need a score of every method on every data "
            "set: leave out either the method or the data set."
        )
    return table


def check_level(name: str, value: float, usual: float) -> float:
    """Return a level of significance or of confidence; ValueError unless it is within (0, 1)."""
    if not 0.0 < value < 1.0:
        raise ValueError(f"{name}={value!r} must lie between 0 and 1; {usual:g} is usual.")
    return float(value)


def _from_array(scores: Any) -> ScoreTable:
    values = np.asarray(scores, np.float64)
    if values.ndim != 2:
        raise ValueError(
            f"The scores have {values.ndim} dimension(s): give a row for each data set and a "
            "column for each method, or a mapping of method to scores."
        )
    # Frames of pandas and polars have names for their columns.
    columns = getattr(scores, "columns", None)
    methods = _numbered("method", values.shape[1]) if columns is None else map(str, columns)
    return ScoreTable(tuple(methods), _numbered("data set", len(values)), values)


def _from_mapping(scores: Mapping[Any, Any]) -> ScoreTable:
    methods, columns = tuple(map(str, scores)), list(scores.values())
    datasets: tuple[Any, ...] = ()
    if columns and isinstance(columns[0], Mapping):
        datasets = tuple(columns[0])
        for method, column in zip(methods, columns, strict=True):
            if not isinstance(column, Mapping) or set(column) != set(datasets):
                raise ValueError(
                    f"{method} and {methods[0]} have scores on different data sets: give the "
                    "same ones for every method, with NaN for none of them."
                )
        columns = [[column[name] for name in datasets] for column in columns]
    arrays = [np.asarray(column, np.float64) for column in columns]
    for method, array in zip(methods, arrays, strict=True):
        if array.ndim != 1:
            raise ValueError(f"The scores of {method} are not a plain sequence of numbers.")
        if array.shape != arrays[0].shape:
            raise ValueError(
                f"{methods[0]} has {len(arrays[0])} scores but {method} has {len(array)}: every "
                "method needs one on each data set."
            )
    values = np.column_stack(arrays) if arrays else np.empty((0, 0))
    names = tuple(map(str, datasets)) or _numbered("data set", len(values))
    return ScoreTable(methods, names, values)


def _numbered(what: str, count: int) -> tuple[str, ...]:
    return tuple(f"{what} {number}" for number in range(1, count + 1))
