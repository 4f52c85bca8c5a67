"""Whether a table is the dataset that it is said to be."""

from dataclasses import replace
from typing import Any

from marginmf.datasets.entry import DatasetInfo
from marginmf.datasets.forms import FORMS

DIFFERS = "has the counts but not all the values of the copy known to marginmf"


def verify(table: Any, info: DatasetInfo, exact: bool | None = None) -> Any:
    """Return the table if it is the dataset; else say what differs.

    Parameters
    ----------
    table : RatingsTable or LabelsTable
        What was read.
    info : DatasetInfo
        What it must be.
    exact : bool, optional
        Whether it must be so to the last value; by default as the entry says. Where it need not,
        and is not, the table's `source` tells.

    Raises
    ------
    ValueError
        If it is something else.
    """
    form = FORMS[info.kind]
    difference = info.facts.difference(form.facts(table), info.title)
    if difference is not None:
        raise ValueError(difference)
    if info.fingerprint is None or form.fingerprint(table) == info.fingerprint:
        return table
    if info.exact if exact is None else exact:
        raise ValueError(f"It has the size of {info.title}, but some of its values differ.")
    if DIFFERS in table.source:
        return table
    return replace(table, source=f"{table.source}; {DIFFERS}" if table.source else DIFFERS)


def reason(error: Exception) -> str:
    """Say why something could not be used, also where the error does not."""
    return str(error) or type(error).__name__
