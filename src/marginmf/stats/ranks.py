"""Scores as one table, average ranks, and the Friedman test with the form by Iman and Davenport."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from marginmf._utils.types import Float64Array


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
    """What the Friedman test found.

    Parameters
    ----------
    average_ranks : dict of str to float
        The mean rank of each method; 1 is the best.
    n_datasets : int
        On how many data sets.
    chi_square : float
        Friedman's statistic.
    chi_square_df : int
        Its degrees of freedom.
    chi_square_p : float
        Its p-value.
    f : float
        Iman and Davenport's statistic (Demšar's F_F).  Of the two it is the one to go by:
        chi-square is too cautious.
    f_df : tuple of int
        Its degrees of freedom.
    f_p : float
        Its p-value.
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
        False, by default, is the formula of Demšar (2006), which the published figures of most
        comparisons follow: equal scores share ranks, and nothing else is done about them.  True
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
    table, alpha = score_table(scores, at_least=2), check_alpha(alpha)
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
class ScoreTable:
    """Finite scores: a row for each data set, a column for each method."""

    methods: tuple[str, ...]
    datasets: tuple[str, ...]
    values: Float64Array

    def ranks(self, higher_is_better: bool) -> Float64Array:
        """Return the ranks of all methods on each data set: 1 is the best, equal scores share."""
        signed = -self.values if higher_is_better else self.values
        ranks: Float64Array = stats.rankdata(signed, axis=1)
        return ranks

    def named_means(self, ranks: Float64Array) -> dict[str, float]:
        """Return the mean rank of each method by its name."""
        return dict(zip(self.methods, ranks.mean(axis=0).tolist(), strict=True))


def score_table(scores: Any, *, at_least: int = 1) -> ScoreTable:
    """Return the scores as a table of two methods or more and ``at_least`` data sets.

    >>> score_table({"A": {"x": 1, "y": 2}, "B": {"y": 3, "x": 4}}).values
    array([[1., 4.],
           [2., 3.]])
    """
    table = _table(scores)
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


def check_alpha(alpha: float) -> float:
    """Return the level of significance, or raise an error that says why it cannot be one."""
    if not 0.0 < alpha < 1.0:
        raise ValueError(f"alpha={alpha!r} must lie between 0 and 1; 0.05 is usual.")
    return float(alpha)


def _table(scores: Any) -> ScoreTable:
    if isinstance(scores, Mapping):
        return _of_mapping(scores)
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


def _of_mapping(scores: Mapping[Any, Any]) -> ScoreTable:
    methods = tuple(map(str, scores))
    columns = list(scores.values())
    if columns and isinstance(columns[0], Mapping):
        datasets = tuple(columns[0])
        for method, column in zip(methods, columns, strict=True):
            if not isinstance(column, Mapping) or set(column) != set(datasets):
                raise ValueError(
                    f"{method} and {methods[0]} have scores on different data sets: give the "
                    "same ones for every method, with NaN for none of them."
                )
        columns = [[column[name] for name in datasets] for column in columns]
        names = tuple(map(str, datasets))
    else:
        names = ()
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
    return ScoreTable(methods, names or _numbered("data set", len(values)), values)


def _numbered(what: str, count: int) -> tuple[str, ...]:
    return tuple(f"{what} {number}" for number in range(1, count + 1))
