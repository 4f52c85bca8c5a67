"""What can be asked of a user's scores: the losses of every ratings method, as plain data.

A method says *what* it minimises with one of these; a backend knows *how*.  A row is a user, and
its entries are the user's ratings, unless items are learned while the users stay: then it is an
item.
"""

from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from marginmf._utils.types import FloatArray, IntArray
from marginmf.losses import RealLoss, TwoLevelLoss
from marginmf.thresholds import ProximalLoss, ThresholdLoss


class Spec:
    """What a method asks of a row's scores."""

    def n_thresholds(self, n_levels: int) -> int:
        """Return how many thresholds each row learns beside its factors."""
        return 0

    def take(self, entries: IntArray) -> Self:
        """Return the same question about some of the entries, in the order given."""
        return self


@dataclass(frozen=True)
class TwoLevel(Spec):
    """Is the level above ``cut``?  The sign of the score answers (BMMMF, a stage of HMF)."""

    loss: TwoLevelLoss
    cut: int = 0


@dataclass(frozen=True)
class Thresholds(Spec):
    """Scores against learned thresholds of each row (MMMF).

    ``reach`` is how many thresholds away from its level a rating counts; see
    `marginmf.thresholds`.
    """

    loss: TwoLevelLoss
    reach: float = np.inf

    def n_thresholds(self, n_levels: int) -> int:
        """Return one less than there are levels."""
        return n_levels - 1


@dataclass(frozen=True)
class Proximal(Spec):
    """Scores against the means of each row's levels, which follow the scores (PMMMF)."""

    loss: TwoLevelLoss


@dataclass(frozen=True, eq=False)
class Real(Spec):
    """Scores against real targets, one for each entry (PMF, ALS)."""

    loss: RealLoss
    targets: FloatArray

    def take(self, entries: IntArray) -> Self:
        """Return the same question about some of the entries, in the order given."""
        return replace(self, targets=self.targets[entries])


@dataclass(frozen=True, eq=False)
class Anchored(Spec):
    """Scores against thresholds or prototypes that are given for each entry.

    The rows are items, and the anchors are those of the users who rated them: what MMMF and
    PMMMF ask of a new item while the users stay as they are.
    """

    loss: ThresholdLoss | ProximalLoss
    anchors: FloatArray

    def take(self, entries: IntArray) -> Self:
        """Return the same question about some of the entries, in the order given."""
        return replace(self, anchors=self.anchors[entries])
