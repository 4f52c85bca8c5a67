"""The smaller tables: Friedman statistics, and descriptions of the data sets."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from marginmf.experiments.published.reading import Slip, mended, read

FRIEDMAN = ("mlc-hmf", "grople")
DATASETS = ("ratings", "mlc-hmf", "grople")


@dataclass(frozen=True)
class PublishedFriedman:
    """The printed statistics of one comparison.

    Parameters
    ----------
    table : str
        The name of the table that they are of (see `published`).
    n_methods, n_datasets : int
        How many were compared.
    left_out : tuple of str
        Data sets of the table that took no part, as not all methods could be run on them.
    alpha : float
        The level of significance.
    f : mapping of str to float
        Iman and Davenport's F for each measure.
    critical_value : float
        Of F.
    q, critical_difference : float
        Of Nemenyi's test.
    slips : tuple of Slip
        What is printed wrong.
    """

    table: str
    n_methods: int
    n_datasets: int
    left_out: tuple[str, ...]
    alpha: float
    f: Mapping[str, float]
    critical_value: float
    q: float
    critical_difference: float
    slips: tuple[Slip, ...] = field(repr=False)


def published_friedman(table: str) -> PublishedFriedman:
    """Return the Friedman statistics that the thesis prints for a table.

    Parameters
    ----------
    table : {"mlc-hmf", "grople"}
        Chapter 5's or chapter 6's.

    Returns
    -------
    PublishedFriedman

    Examples
    --------
    >>> printed = published_friedman("grople")
    >>> printed.f["accuracy"], printed.critical_value, printed.left_out
    (11.692, 2.143, ('bookmarks',))
    """
    content, slips = read(table, FRIEDMAN, "-friedman")
    del content["chapter"]
    content["left_out"] = tuple(content["left_out"])
    return PublishedFriedman(**content, slips=slips)


def published_datasets(of: str, *, corrected: bool = False) -> dict[str, dict[str, Any]]:
    """Return the thesis's description of its data sets.

    Parameters
    ----------
    of : {"ratings", "mlc-hmf", "grople"}
        Those of chapters 3 and 4, of chapter 5, or of chapter 6.
    corrected : bool
        Put what is right in place of what is printed, where that is known.

    Returns
    -------
    dict of str to dict
        For each data set its sizes, by name.

    Examples
    --------
    >>> published_datasets("ratings")["MovieLens 1M"]["items"]
    3900
    >>> published_datasets("ratings", corrected=True)["MovieLens 1M"]["items"]
    3706
    """
    content, slips = read(of, DATASETS, "-datasets")
    if corrected:
        content = mended(content, slips)
    sizes: dict[str, dict[str, Any]] = content["datasets"]
    return sizes
