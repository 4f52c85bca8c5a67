"""Penalties say how big parameters are, which way is smaller, and what their prox is.

A smooth penalty has a ``gradient``; one with a corner has a ``prox``: the point that minimises
``penalty(p) + |p - a|^2 / (2 step)``.

>>> import numpy as np
>>> L1().prox(np.array([3.0, -0.5]), step=1.0)
array([2., 0.])
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from marginmf._utils.types import FloatArray


class Penalty(Protocol):
    """The part of an objective that has corners, as `marginmf.solvers.APG` needs it."""

    def value(self, a: Any) -> float:
        """Return the penalty at a point."""

    def prox(self, a: Any, step: float) -> Any:
        """Return a new point, which minimises ``penalty(p) + |p - a|^2 / (2 step)``."""


@dataclass(frozen=True)
class SquaredL2:
    """``weight / 2 * |A|_F^2``: keeps every factor small (the factorisers' penalty)."""

    weight: float = 1.0

    def value(self, a: FloatArray) -> float:
        """Return the penalty, summed in float64."""
        return 0.5 * self.weight * float(np.sum(np.square(a, dtype=np.float64)))

    def gradient(self, a: FloatArray) -> FloatArray:
        """Return ``weight * A``."""
        return float(self.weight) * a

    def prox(self, a: FloatArray, step: float) -> FloatArray:
        """Shrink towards zero by the factor ``1 / (1 + step weight)``."""
        return a / float(1.0 + step * self.weight)


@dataclass(frozen=True)
class L1:
    """``weight * sum |a|``: makes entries exactly zero.

    An array of weights, which broadcasts against the parameters, weighs each entry by itself.
    """

    weight: float | FloatArray = 1.0

    def value(self, a: FloatArray) -> float:
        """Return the penalty, summed in float64."""
        if np.ndim(self.weight) == 0:
            return float(self.weight) * float(np.sum(np.abs(a), dtype=np.float64))
        return float(np.sum(self.weight * np.abs(a), dtype=np.float64))

    def prox(self, a: FloatArray, step: float) -> FloatArray:
        """Move every entry towards zero by ``step weight``, and stop there."""
        shrinkage = np.asarray(step * self.weight, a.dtype)
        return a - np.clip(a, -shrinkage, shrinkage)


@dataclass(frozen=True)
class L21:
    """``weight * sum of the rows' Euclidean norms``: makes whole rows exactly zero.

    Parameters
    ----------
    weight : float or array of shape (n_rows, 1)
        For all rows, or one for each.
    starts : sequence of int, optional
        Where groups of neighbouring columns begin, the first one at 0: each group then has
        norms of its own.  By default all columns are one group.

    Examples
    --------
    >>> L21(1.0, starts=(0, 2)).prox(np.array([[3.0, 4.0, 0.5]]), step=1.0)
    array([[2.4, 3.2, 0. ]])
    """

    weight: float | FloatArray = 1.0
    starts: Sequence[int] = (0,)

    def value(self, a: FloatArray) -> float:
        """Return the penalty, summed in float64."""
        return float(np.sum(self.weight * self._norms(a)))

    def prox(self, a: FloatArray, step: float) -> FloatArray:
        """Shorten every row of every group by ``step weight``, and stop at zero."""
        norms = self._norms(a)
        # A zero row stays zero: dividing by at least the shrinkage avoids 0 / 0.
        shrinkage = step * np.asarray(self.weight)
        kept = np.maximum(norms - shrinkage, 0.0) / np.maximum(norms, np.maximum(shrinkage, 1e-300))
        if len(self.starts) > 1:
            kept = np.repeat(kept, np.diff([*self.starts, a.shape[1]]), axis=1)
        return (a * kept).astype(a.dtype, copy=False)

    def _norms(self, a: FloatArray) -> FloatArray:
        """Return the norms as rows x groups."""
        return np.sqrt(np.add.reduceat(np.square(a, dtype=np.float64), self.starts, axis=1))
