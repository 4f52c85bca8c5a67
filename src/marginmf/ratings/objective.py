"""Value and gradient of every ratings factorisation, at a point, for given ratings.

    J(U, V, thresholds) = sum over users of row_loss(scores, ratings, thresholds)
                          + reg / 2 (|U|^2 + |V|^2)

What differs between the methods is the light row loss alone.
"""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from marginmf._typing import FloatArray
from marginmf.kernels import Kernels
from marginmf.losses import RealLoss, TwoLevelLoss
from marginmf.ratings.data import Ratings


class Parameters(NamedTuple):
    """Views of one parameter vector: user factors, item factors, users' thresholds."""

    users: FloatArray
    items: FloatArray
    thresholds: FloatArray


class RowLosses(NamedTuple):
    """The loss of every row, and its derivatives by every score and every threshold."""

    losses: FloatArray
    by_score: FloatArray
    by_threshold: FloatArray | None = None


class RowLoss(Protocol):
    """Turns each user's scores into a loss."""

    def n_thresholds(self, data: Ratings) -> int:
        """Return how many thresholds are learned for each user."""

    def __call__(
        self, kernels: Kernels, data: Ratings, scores: FloatArray, thresholds: FloatArray
    ) -> RowLosses:
        """Return the losses of all users."""


class _NoThresholds:
    def n_thresholds(self, data: Ratings) -> int:
        """Return 0: nothing is learned beside the factors."""
        return 0


@dataclass(frozen=True)
class TwoLevelRows(_NoThresholds):
    """Is the level above ``cut``?  The score's sign should say so (BMMMF, one stage of HMF)."""

    loss: TwoLevelLoss
    cut: int = 0

    def __call__(
        self, kernels: Kernels, data: Ratings, scores: FloatArray, thresholds: FloatArray
    ) -> RowLosses:
        """Return the losses of all users."""
        return RowLosses(
            *kernels.two_level_rows(data.indptr, scores, data.codes, self.cut, self.loss)
        )


@dataclass(frozen=True)
class ThresholdRows:
    """Scores against learned thresholds of each user (MMMF)."""

    loss: TwoLevelLoss
    reach: float = np.inf

    def n_thresholds(self, data: Ratings) -> int:
        """Return one less than there are levels."""
        return data.n_levels - 1

    def __call__(
        self, kernels: Kernels, data: Ratings, scores: FloatArray, thresholds: FloatArray
    ) -> RowLosses:
        """Return the losses of all users."""
        return RowLosses(
            *kernels.threshold_rows(
                data.indptr, scores, data.codes, thresholds, self.reach, self.loss
            )
        )


@dataclass(frozen=True)
class ProximalRows(_NoThresholds):
    """Scores against the means of each user's levels, which follow the scores (PMMMF)."""

    loss: TwoLevelLoss

    def __call__(
        self, kernels: Kernels, data: Ratings, scores: FloatArray, thresholds: FloatArray
    ) -> RowLosses:
        """Return the losses of all users."""
        losses, by_score, _ = kernels.proximal_rows(
            data.indptr, scores, data.codes, data.n_levels, self.loss
        )
        return RowLosses(losses, by_score)


@dataclass(frozen=True, eq=False)
class RealRows(_NoThresholds):
    """Scores against real targets, one for each rating (PMF)."""

    loss: RealLoss
    targets: FloatArray

    def __call__(
        self, kernels: Kernels, data: Ratings, scores: FloatArray, thresholds: FloatArray
    ) -> RowLosses:
        """Return the losses of all users."""
        return RowLosses(*kernels.real_rows(data.indptr, scores, self.targets, self.loss))


class FactorObjective:
    """The objective of one factorisation, as a function of one flat parameter vector.

    Parameters
    ----------
    data : Ratings
        What was observed.
    row_loss : RowLoss
        What the method asks of a user's scores.
    reg : float
        The weight of the penalty.
    n_factors : int
        The rank of the factorisation.
    kernels : Kernels
        Who does the arithmetic.
    dtype : dtype
        Of the parameters; sums over them are made in float64.
    items : array of shape (n_items, n_factors), optional
        Fixed item factors: then only the users' rows (and thresholds) are parameters.
    """

    def __init__(
        self,
        data: Ratings,
        row_loss: RowLoss,
        reg: float,
        n_factors: int,
        kernels: Kernels,
        dtype: type[np.floating] = np.float32,
        items: FloatArray | None = None,
    ) -> None:
        self.data = data
        self.row_loss = row_loss
        self.reg = float(reg)
        self.kernels = kernels
        self.dtype = np.dtype(dtype)
        self.items = items
        self._user_shape = (data.n_users, n_factors)
        self._item_shape = (data.n_items if items is None else 0, n_factors)
        self._threshold_shape = (data.n_users, row_loss.n_thresholds(data))

    @property
    def n_factor_parameters(self) -> int:
        """How many parameters are factors; the thresholds come after them."""
        return int(np.prod(self._user_shape) + np.prod(self._item_shape))

    def join(
        self, users: FloatArray, items: FloatArray | None, thresholds: FloatArray
    ) -> FloatArray:
        """Return one parameter vector; item factors count only if they are not fixed."""
        parts = [users, items, thresholds] if self.items is None else [users, thresholds]
        return np.concatenate([np.ravel(part) for part in parts if part is not None]).astype(
            self.dtype
        )

    def split(self, point: FloatArray) -> Parameters:
        """Return the parameter vector's parts, as views of it."""
        n_users, n_factors = int(np.prod(self._user_shape)), self.n_factor_parameters
        items = point[n_users:n_factors].reshape(self._item_shape)
        return Parameters(
            users=point[:n_users].reshape(self._user_shape),
            items=items if self.items is None else self.items,
            thresholds=point[n_factors:].reshape(self._threshold_shape),
        )

    def scores(self, point: FloatArray) -> FloatArray:
        """Return the score of every rating."""
        users, items, _ = self.split(point)
        return self.kernels.scores(self.data.rows, self.data.indices, users, items)

    def __call__(self, point: FloatArray) -> tuple[float, FloatArray]:
        """Return the value and the gradient at a point."""
        data, kernels, n_factors = self.data, self.kernels, self.n_factor_parameters
        users, items, thresholds = self.split(point)
        rows = self.row_loss(kernels, data, self.scores(point), thresholds)

        gradient = np.empty_like(point)
        by_users, by_items, by_thresholds = self.split(gradient)
        kernels.accumulate(data.indptr, data.indices, rows.by_score, items, by_users)
        if self.items is None:
            by_score = kernels.gather(rows.by_score, data.item_order)
            kernels.accumulate(data.item_indptr, data.item_indices, by_score, users, by_items)
        if rows.by_threshold is not None:
            by_thresholds[:] = rows.by_threshold
        factors = point[:n_factors]
        kernels.axpy(self.reg, factors, gradient[:n_factors])
        penalty = 0.5 * self.reg * kernels.dot(factors, factors)
        return float(rows.losses.sum()) + penalty, gradient


def first_thresholds(data: Ratings, row_loss: RowLoss) -> FloatArray:
    """Return thresholds to start from: one apart, around zero, the same for every user."""
    n = row_loss.n_thresholds(data)
    return np.tile(np.arange(n) - (n - 1) / 2.0, (data.n_users, 1))
