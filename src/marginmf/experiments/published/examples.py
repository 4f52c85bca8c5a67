"""The small matrices that the thesis works through."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from marginmf.experiments.published.reading import Slip, mended, read

EXAMPLES = ("likes", "stars", "hierarchy")


@dataclass(frozen=True)
class WorkedExample:
    """A worked example; ``example["Y"]`` is the matrix, with 0 for what is not observed.

    Parameters
    ----------
    name : str
        Which one.
    values : mapping of str to object
        Matrices as arrays, and numbers.
    slips : tuple of Slip
        What is printed wrong.
    """

    name: str
    values: Mapping[str, Any] = field(repr=False)
    slips: tuple[Slip, ...] = field(repr=False)

    def __getitem__(self, key: str) -> Any:
        if key not in self.values:
            raise KeyError(
                f"The example {self.name!r} has no {key!r}, but: {', '.join(self.values)}."
            )
        return self.values[key]


def worked_example(name: str, *, corrected: bool = False) -> WorkedExample:
    """Return a worked example of chapter 3.

    Parameters
    ----------
    name : {"likes", "stars", "hierarchy"}
        ``"likes"``: two levels, 7 x 7, with ``Y``, ``U``, ``V``, ``threshold``, ``scores``,
        ``hinge`` and ``smooth_hinge``.  ``"stars"``: five levels, 10 x 10, with ``Y``, ``U``,
        ``V``, ``thresholds``, ``scores`` and ``loss_of_y13``.  ``"hierarchy"``: HMF, 5 x 7, with
        ``Y``, ``completed`` and four ``stages``, each with ``Y``, ``U``, ``V``, ``predicted``,
        ``negative`` (the entries predicted -1; 47 is row 4, column 7) and ``completed`` so far.
    corrected : bool
        Put what is right in place of what is printed.

    Returns
    -------
    WorkedExample

    Examples
    --------
    >>> example = worked_example("likes")
    >>> example["Y"].shape, example["threshold"], float(example["hinge"][0, 6])
    ((7, 7), 0.1, 0.0)
    >>> float(worked_example("likes", corrected=True)["hinge"][0, 6])
    0.19
    """
    content, slips = read(name, EXAMPLES)
    if corrected:
        content = mended(content, slips)
    del content["chapter"]
    return WorkedExample(name, _with_arrays(content), slips)


def _with_arrays(value: Any) -> Any:
    """Return the value with lists of numbers, and lists of such lists, as arrays."""
    if isinstance(value, dict):
        return {key: _with_arrays(part) for key, part in value.items()}
    if isinstance(value, list):
        holds_parts = isinstance(value[0], dict)
        return [_with_arrays(part) for part in value] if holds_parts else np.array(value)
    return value
