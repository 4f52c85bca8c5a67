"""Regularisation paths: which regularisation strength predicts held-out entries best.

Candidates are tried one after the other, because the solution for one is a good start for the next:
every fourth, from strong to weak until the error is clearly past its minimum, and the other way if
it began there; then those between the best and its neighbours.  Finer differences are noise.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from marginmf._utils.saved import floats, saved
from marginmf._utils.types import Float64Array

#: The candidates of Kumar's thesis are ``10^(i/16)`` for these i: sixteen to a decade, 1.8 to 316.
WEAKEST, STRONGEST = 4, 40

#: Above this share of the strength that leaves nothing but zeros, there is too little left to try.
USEFUL_SHARE = 0.5
#: A search goes at least this factor below the strength that leaves nothing: small data need less.
REACH = 30.0
#: How many candidates apart the search looks first, and then.
STRIDES = (4, 2)
#: About how many candidates are tried: for progress bars.
USUAL_LENGTH = 6
#: A walk ends after PATIENCE candidates in a row whose error exceeds the best by the share CLEARLY,
#: or after a single one that exceeds it by HOPELESSLY.
PATIENCE, CLEARLY, HOPELESSLY = 2, 0.02, 0.04
#: Avoids a division by zero where the best error is zero.
TINY = 1e-300


@saved
@dataclass(frozen=True, eq=False)
class RegularisationPath:
    """The error on held-out entries along the candidates that were tried.

    Parameters
    ----------
    regs : array
        The candidates, ascending.
    errors : array of shape (n_regs, n_holdouts)
        The error of each on every hold-out.
    metric : str
        What the error is, such as ``"zero-one error"``.
    """

    _saved: ClassVar[dict[str, Any]] = {
        "regs": floats("candidates"),
        "errors": floats("candidates", "holdouts", most=None),
        "metric": str,
    }
    regs: Float64Array
    errors: Float64Array
    metric: str

    @property
    def mean(self) -> Float64Array:
        """The error of every candidate, averaged over the hold-outs."""
        return self.errors.mean(axis=1)

    @property
    def smallest(self) -> float:
        """The candidate with the smallest error of those tried; of several, the strongest."""
        errors = self.mean
        return float(self.regs[np.flatnonzero(errors == errors.min())[-1]])

    @property
    def best(self) -> float:
        """The candidate where the error is smallest once the noise is smoothed away.

        That is the one nearest to the lowest point of a parabola through the errors around the
        smallest one; where there is no such point, the candidate with the smallest error.
        """
        steps, lowest = 16 * np.log10(self.regs), 16 * math.log10(self.smallest)
        near = np.abs(steps - lowest) <= STRIDES[0] + 0.5
        if np.count_nonzero(near) < 3:
            return self.smallest
        bend, slope, _ = np.polyfit(steps[near] - lowest, self.mean[near], 2)
        if bend <= 0:
            return self.smallest
        vertex = lowest - slope / (2 * bend)
        inside = np.clip(vertex, steps[near].min(), steps[near].max())
        # Whole steps from the candidates, which may have a scale of their own.
        return float(10 ** ((lowest + round(inside - lowest)) / 16))


def candidates_below(limit: float) -> Float64Array:
    """Return the candidates that are worth trying, ascending.

    Parameters
    ----------
    limit : float
        The smallest strength that leaves nothing but zeros: the largest singular value of the
        gradient by the scores, where all scores are zero.

    Examples
    --------
    >>> candidates_below(100.0)[[0, -1]].round(2)
    array([ 1.78, 48.7 ])
    >>> candidates_below(3.0)[[0, -1]].round(2)  # few ratings
    array([0.1 , 1.33])
    """
    most, least = STRONGEST, WEAKEST
    if limit > 1e-6:  # else it says nothing: all slopes are zero where all scores are
        most = min(most, math.floor(16 * math.log10(USEFUL_SHARE * limit)))
        least = min(least, math.floor(16 * math.log10(limit / REACH)))
    return 10.0 ** (np.arange(least, most + 1) / 16)


def follow_path(
    errors_at: Callable[[float], Float64Array],
    metric: str,
    candidates: Float64Array,
    begin: float | None = None,
) -> RegularisationPath:
    """Walk along the candidates to where the error is smallest, then look around there.

    The walk goes from strong to weak, and from weak to strong if nothing weaker than the first
    one was better.

    Parameters
    ----------
    errors_at : callable
        From a regularisation strength to the errors on every hold-out.  Each strength is near
        the last one or the best one so far, which suits warm starts.
    metric : str
        What the errors are.
    candidates : array
        The strengths to choose from, ascending.
    begin : float, optional
        A guess where the best one is: the walk begins at the candidate nearest to this.  By
        default it is the strongest.

    Examples
    --------
    >>> tried = []
    >>> def errors_at(reg):
    ...     tried.append(reg)
    ...     return np.array([abs(np.log(reg / 20.0))])
    >>> path = follow_path(errors_at, "distance to twenty", candidates_below(200.0))
    >>> round(path.best, 2), len(tried)
    (20.54, 7)
    """
    last = len(candidates) - 1
    first = last if begin is None else int(np.abs(np.log(candidates / begin)).argmin())
    tried: dict[int, Float64Array] = {}

    def error_at(index: int) -> float:
        if index not in tried:
            tried[index] = np.asarray(errors_at(float(candidates[index])), np.float64)
        return float(tried[index].mean())

    best = first

    def walk(indexes: range) -> None:
        nonlocal best
        worse = 0
        for index in indexes:
            excess = error_at(index) / max(error_at(best), TINY) - 1
            worse = worse + 1 if excess > CLEARLY else 0
            if error_at(index) < error_at(best):
                best = index
            if excess > HOPELESSLY or worse == PATIENCE:
                break

    walk(range(first, -1, -STRIDES[0]))
    if best == first:
        walk(range(first + STRIDES[0], last + 1, STRIDES[0]))
    for stride in STRIDES[1:]:
        near = [index for index in (best + stride, best - stride) if 0 <= index <= last]
        best = min([best, *near], key=lambda index: (error_at(index), -index))
    indexes = sorted(tried)
    return RegularisationPath(
        candidates[indexes], np.array([tried[index] for index in indexes]), metric
    )
