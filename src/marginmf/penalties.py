"""Penalties say how big parameters are, which way is smaller, and what their prox is.

A smooth penalty has a ``gradient``; one with a corner has a ``prox``: the point that minimises
``penalty(p) + |p - a|^2 / (2 step)``.

>>> import numpy as np
>>> L1().prox(np.array([3.0, -0.5]), step=1.0)
array([ 2., -0.])
"""

from dataclasses import dataclass

import numpy as np

from marginmf._typing import FloatArray


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
    """``weight * sum |a|``: makes entries exactly zero."""

    weight: float = 1.0

    def value(self, a: FloatArray) -> float:
        """Return the penalty, summed in float64."""
        return self.weight * float(np.sum(np.abs(a), dtype=np.float64))

    def prox(self, a: FloatArray, step: float) -> FloatArray:
        """Move every entry towards zero by ``step weight``, and stop there."""
        return np.sign(a) * np.maximum(np.abs(a) - float(step * self.weight), 0.0)


@dataclass(frozen=True)
class L21:
    """``weight * sum of the rows' Euclidean norms``: makes whole rows exactly zero."""

    weight: float = 1.0

    def value(self, a: FloatArray) -> float:
        """Return the penalty, summed in float64."""
        return self.weight * float(np.sum(self._norms(a)))

    def prox(self, a: FloatArray, step: float) -> FloatArray:
        """Shorten every row by ``step weight``, and stop at zero."""
        norms = self._norms(a)
        # A zero row stays zero: dividing by at least the shrinkage avoids 0 / 0.
        shrinkage = step * self.weight
        kept = np.maximum(norms - shrinkage, 0.0) / np.maximum(norms, max(shrinkage, 1e-300))
        shortened: FloatArray = (a * kept[:, None]).astype(a.dtype, copy=False)
        return shortened

    @staticmethod
    def _norms(a: FloatArray) -> FloatArray:
        norms: FloatArray = np.sqrt(np.sum(np.square(a, dtype=np.float64), axis=1))
        return norms
