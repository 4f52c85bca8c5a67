"""Ranks of methods: 1 is the best on a data set, and equal scores share their ranks."""

from typing import Any

from scipy.stats import rankdata

from marginmf._utils.types import Float64Array
from marginmf.stats.tables import ScoreTable, score_table


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
    return named_means(table := score_table(scores), ranks_within(table, higher_is_better))


def ranks_within(table: ScoreTable, higher_is_better: bool) -> Float64Array:
    """Return the ranks of all methods on each data set, as a table of the same shape."""
    signed = -table.values if higher_is_better else table.values
    ranks: Float64Array = rankdata(signed, axis=1)
    return ranks


def named_means(table: ScoreTable, ranks: Float64Array) -> dict[str, float]:
    """Return the mean rank of each method by its name."""
    return dict(zip(table.methods, ranks.mean(axis=0).tolist(), strict=True))
