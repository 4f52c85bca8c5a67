"""Two methods on the splits of one data set."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from marginmf._utils.types import Float64Array
from marginmf.stats.tables import score_table


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
    t : float
        Student's statistic.
    df : int
        Its degrees of freedom.
    p_value : float
        Two-sided.
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
    a: Sequence[float] | Float64Array,
    b: Sequence[float] | Float64Array,
    *,
    test_size: float | None,
    confidence: float = 0.95,
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
        for k folds.  None is the plain paired t-test, which is right where splits share nothing,
        as with data generated anew.
    confidence : float
        That of the interval.

    Returns
    -------
    PairedComparison

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
    if not 0.0 < confidence < 1.0:
        raise ValueError(f"confidence={confidence!r} must lie between 0 and 1; 0.95 is usual.")
    table = score_table({"the first method": a, "the second method": b}, at_least=2)
    difference = table.values[:, 0] - table.values[:, 1]
    n = len(difference)
    overlap = 0.0 if test_size is None else test_size / (1.0 - test_size)
    mean = float(difference.mean())
    error = float(np.sqrt((1 / n + overlap) * difference.var(ddof=1)))
    # Splits that all differ by the same amount leave no doubt, or no difference.
    t = mean / error if error > 0 else float(np.sign(mean)) * np.inf if mean else 0.0
    reach = float(stats.t.ppf((1 + confidence) / 2, n - 1)) * error
    return PairedComparison(
        mean_difference=mean,
        standard_error=error,
        interval=(mean - reach, mean + reach),
        t=float(t),
        df=n - 1,
        p_value=float(2 * stats.t.sf(abs(t), n - 1)),
        confidence=confidence,
    )
