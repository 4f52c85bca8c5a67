"""The candidates of the thesis for the weight of the penalty."""

from collections.abc import Iterable


def sixteenths(places: Iterable[int]) -> list[float]:
    """Return ``10^(i/16)`` for these i, the candidates for ratings.

    >>> sixteenths([0, 16])
    [1.0, 10.0]
    """
    return [round(10 ** (i / 16), 4) for i in places]


def tenths(places: Iterable[int]) -> list[float]:
    """Return ``10^(i/10)`` for these i, the candidates for labels.

    >>> tenths([5, 10])
    [3.1623, 10.0]
    """
    return [round(10 ** (i / 10), 4) for i in places]
