"""The Friedman test, and the form of it by Iman and Davenport."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from marginmf._utils.types import Float64Array
from marginmf.stats.ranks import named_means, ranks_within
from marginmf.stats.tables import alpha_of_a_test, score_table


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
        comparisons follow, those of the thesis among them: equal scores share ranks, and nothing
        else is done about them.  True divides chi-square by the share of the ranks' variance that
        ties leave, as ``scipy.stats.friedmanchisquare`` does; it is never smaller.

    Returns
    -------
    FriedmanTest

    Examples
    --------
    >>> scores = {"A": [3, 5, 4, 6], "B": [2, 4, 4, 5], "C": [1, 3, 2, 2]}
    >>> found = friedman_test(scores, higher_is_better=True)
    >>> round(found.chi_square, 3), round(found.f, 3), found.f_df, found.differ
    (7.125, 24.429, (2, 6), True)
    >>> round(friedman_test(scores, higher_is_better=True, tie_correction=True).chi_square, 3)
    7.6
    """
    table, alpha = score_table(scores, at_least=2), alpha_of_a_test(alpha)
    ranks = ranks_within(table, higher_is_better)
    n, k = ranks.shape
    chi_square = friedman_chi_square(ranks, tie_correction)
    # With all data sets in full agreement chi-square is at its largest, and F has no bound.
    largest = n * (k - 1)
    agreed = np.isclose(chi_square, largest, rtol=1e-12)
    f = np.inf if agreed else (n - 1) * chi_square / (largest - chi_square)
    freedom = (k - 1, (k - 1) * (n - 1))
    return FriedmanTest(
        average_ranks=named_means(table, ranks),
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


def friedman_chi_square(ranks: Float64Array, tie_correction: bool) -> float:
    """Return Friedman's statistic of ranks; 0 where every method ties with all others."""
    n, k = ranks.shape
    spread = np.square(ranks.mean(axis=0) - (k + 1) / 2).sum()
    # About their mean, the ranks of a data set without ties have this sum of squares.
    whole = k * (k * k - 1) / 12
    if tie_correction:
        whole = float(np.square(ranks - (k + 1) / 2).sum(axis=1).mean())
    return float(n * (k - 1) * spread / whole) if whole > 0 else 0.0
