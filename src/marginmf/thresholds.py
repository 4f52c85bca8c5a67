"""Ordinal losses built on two-level ones: all-threshold, immediate-threshold and proximal.

Levels are numbered from 0 here, and threshold ``r`` lies between level ``r`` and ``r + 1``.
A rating of level ``y`` wants its score above the thresholds ``r < y`` and below the others, so
each threshold asks a two-level question whose answer is `threshold_sign`.  How many of the
questions count is the construction's ``reach``: every one of them (all-threshold), or the two
that border the level (immediate-threshold).

The proximal construction has one *prototype* for each level instead: a score is drawn to its
own level's prototype by a squared loss and kept a margin away from the others.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from marginmf._utils.types import FloatArray, IntArray
from marginmf.losses import TwoLevelLoss, smooth_hinge

#: How far from the level, in thresholds, a construction looks.
REACH = {"all": np.inf, "immediate": 1.0}


def threshold_sign(level: Any, r: Any, reach: Any) -> Any:
    """Return +1 if the score should be below threshold ``r``, -1 if above, 0 if it does not count.

    The distance from the level to threshold ``r``, in thresholds, is ``|r - level + 1/2|``.

    >>> threshold_sign(2, np.arange(4), np.inf)
    array([-1., -1.,  1.,  1.])
    >>> threshold_sign(2, np.arange(4), 1.0).astype(int)
    array([ 0, -1,  1,  0])
    """
    return (2.0 * (r >= level) - 1.0) * (np.abs(r - level + 0.5) < reach)


def prototype_sign(level: Any, r: Any) -> Any:
    """Return +1 if the score should be above prototype ``r``, -1 if below, 0 if it is its own.

    >>> prototype_sign(2, np.arange(5))
    array([ 1.,  1.,  0., -1., -1.])
    """
    return 1.0 * (r < level) - 1.0 * (r > level)


@dataclass(frozen=True)
class ThresholdLoss:
    """A sum of two-level losses over the thresholds within reach of the level.

    >>> loss = ThresholdLoss(smooth_hinge, REACH["all"])
    >>> thetas = np.array([[-0.61, -0.18, 0.51, 1.21]])    # Kumar's thesis, chapter 3
    >>> round(float(loss.value(np.array([0.37]), np.array([3]), thetas)[0]), 2)
    0.75
    """

    base: TwoLevelLoss = smooth_hinge
    reach: float = np.inf

    def value(self, scores: FloatArray, levels: IntArray, thresholds: FloatArray) -> FloatArray:
        """Return the loss of each score; ``thresholds`` has a row for each score."""
        sign, margin = self._margins(scores, levels, thresholds)
        return np.sum(np.abs(sign) * self.base.value(margin), axis=1)

    def derivatives(
        self, scores: FloatArray, levels: IntArray, thresholds: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the derivatives by each score and by each threshold."""
        sign, margin = self._margins(scores, levels, thresholds)
        by_threshold = sign * self.base.derivative(margin)
        return -by_threshold.sum(axis=1), by_threshold

    def _margins(
        self, scores: FloatArray, levels: IntArray, thresholds: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        sign = threshold_sign(levels[:, None], np.arange(thresholds.shape[1]), self.reach)
        return sign, sign * (thresholds - scores[:, None])


@dataclass(frozen=True)
class ProximalLoss:
    """A squared pull to the own prototype and two-level pushes from the others.

    Prototypes that are NaN (levels never used) take no part.
    """

    base: TwoLevelLoss = smooth_hinge

    def value(self, scores: FloatArray, levels: IntArray, prototypes: FloatArray) -> FloatArray:
        """Return the loss of each score; ``prototypes`` has a row for each score."""
        own, sign, distance = self._distances(scores, levels, prototypes)
        push = np.where(sign != 0, self.base.value(sign * distance), 0.0)
        return own**2 + push.sum(axis=1)

    def derivatives(
        self, scores: FloatArray, levels: IntArray, prototypes: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return the derivatives by each score and, negated, by each other level's prototype.

        A prototype is the mean of its level's scores, so the squared pulls cancel in its
        derivative, and only the pushes are left.
        """
        own, sign, distance = self._distances(scores, levels, prototypes)
        push = sign * self.base.derivative(sign * distance)
        return 2.0 * own + push.sum(axis=1), push

    @staticmethod
    def _distances(
        scores: FloatArray, levels: IntArray, prototypes: FloatArray
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        distance = np.nan_to_num(scores[:, None] - prototypes)
        sign = prototype_sign(levels[:, None], np.arange(prototypes.shape[1]))
        sign = np.where(np.isnan(prototypes), 0.0, sign)
        own = np.take_along_axis(distance, levels[:, None], axis=1)[:, 0]
        return own, sign, distance
