"""BiasOnly: an average, what the user adds to it, and what the item adds to it."""

from dataclasses import KW_ONLY, dataclass

import numpy as np

from marginmf._parameters import check_number
from marginmf._typing import Float64Array, FloatArray, IntArray
from marginmf.ratings.base import RatingsEstimator
from marginmf.ratings.blocks import Columns
from marginmf.ratings.data import Ratings
from marginmf.ratings.expected import MarginBlock
from marginmf.ratings.rows import Side
from marginmf.solvers import Monitor, Stopping, StopReason


@dataclass(eq=False, repr=False)
class BiasOnly(RatingsEstimator):
    """Predict ``mean + user's bias + item's bias``, rounded to the nearest level.

    The biases minimise the squared error with a ridge penalty, which draws the biases of users
    and items with few ratings towards zero.

    Parameters
    ----------
    reg : float
        The weight of the penalty: as if every user and item had so many more ratings at the mean.
    max_iter, tol
        Users and items take turns, so many times at most, or until a turn (on the average of the
        last three) lowers the objective by less than this share of it.
    n_jobs : int or None
        Not used: there is too little to do.

    Attributes
    ----------
    mean_ : float
        The mean rating.
    user_biases_, item_biases_ : array
        A number for each of ``users_.ids`` and ``items_.ids``.
    users_, items_, levels_, ratings_, history_, n_iter_, n_evaluations_, stop_reason_
        As for the factorisers.

    Examples
    --------
    >>> pairs = [("ann", "x"), ("ann", "y"), ("bob", "x"), ("bob", "y")]
    >>> model = BiasOnly(reg=0.1).fit(pairs, [5, 3, 4, 2])
    >>> model.predict([("bob", "y"), ("ann", "x")])
    array([2., 5.])
    """

    reg: float = 5.0
    _: KW_ONLY
    max_iter: int = 50
    tol: float = 1e-6
    n_jobs: int | None = None

    _user_arrays = ("user_biases_",)
    _item_arrays = ("item_biases_",)

    def _fit(self, data: Ratings) -> None:
        self.mean_ = float(data.values.mean())
        self.user_biases_ = np.zeros(data.n_users)
        self.item_biases_ = np.zeros(data.n_items)
        monitor = Monitor(Stopping(max_iter=self.max_iter, tol=self.tol))
        evaluate = monitor.counted(self._objective)
        reason: StopReason | None = None
        while reason is None:
            if monitor.history:
                self._place("user", data)
                self._place("item", data)
            objective, gradient_norm = evaluate(data)
            reason = monitor.record(objective, gradient_norm, point=None)
        self.history_ = monitor.history
        self.n_iter_ = monitor.history[-1].iteration
        self.n_evaluations_ = monitor.n_evaluations
        self.stop_reason_ = str(reason)

    def _objective(self, data: Ratings) -> tuple[float, float]:
        """Return the penalised squared error, and the norm of its gradient by the biases."""
        left = data.values - self._estimates(data.rows, data.indices)
        biases = np.concatenate([self.user_biases_, self.item_biases_])
        # An infinite penalty leaves no biases, and infinity times zero is not zero.
        pull = float(self.reg) * biases if biases.any() else biases
        error = np.concatenate(
            [
                np.bincount(data.rows, left, data.n_users),
                np.bincount(data.indices, left, data.n_items),
            ]
        )
        return float(left @ left + pull @ biases), 2.0 * float(np.linalg.norm(pull - error))

    def _place(self, side: Side, data: Ratings) -> None:
        left = data.values - self.mean_
        if side == "user":
            left -= self.item_biases_[data.indices]
            self.user_biases_ = self._damped_means(data.rows, left, data.n_users)
        else:
            left -= self.user_biases_[data.rows]
            self.item_biases_ = self._damped_means(data.indices, left, data.n_items)

    def _damped_means(self, owners: IntArray, values: FloatArray, n: int) -> Float64Array:
        counts = np.bincount(owners, minlength=n)
        # An owner without ratings (and reg=0) has no bias, not 0/0.
        means: Float64Array = np.bincount(owners, values, n) / np.maximum(
            counts + float(self.reg), 1e-12
        )
        return means

    def _estimates(self, users: IntArray, items: IntArray) -> FloatArray:
        return self.mean_ + self.user_biases_[users] + self.item_biases_[items]

    def _margins(self, users: IntArray, items: IntArray) -> FloatArray:
        return above_midpoints(self._estimates(users, items), self.levels_)

    def _margin_block(self, users: IntArray, items: Columns) -> MarginBlock:
        by_item = self._score_block(items)
        return MarginBlock(np.tile(by_item, (1, len(users), 1)), self._user_offsets(users))

    def _score_block(self, items: Columns) -> FloatArray:
        """Return what items add, in float32."""
        return self.item_biases_[items].astype(np.float32)

    def _user_offsets(self, users: IntArray) -> FloatArray:
        """Return what users add to the margins."""
        return above_midpoints(self.mean_ + self.user_biases_[users], self.levels_)

    def _check(self, data: Ratings) -> None:
        super()._check(data)
        check_number(self, "reg", float, 0, np.inf)
        check_number(self, "max_iter", int, 1)
        check_number(self, "tol", float, 0)


def above_midpoints(estimates: FloatArray, levels: Float64Array) -> FloatArray:
    """Return how far real-valued estimates are above the midpoints of neighbouring levels.

    Counting the positive ones rounds an estimate to the nearest level.

    >>> above_midpoints(np.array([2.25]), np.array([1.0, 2.0, 4.0]))
    array([[ 0.75, -0.75]])
    """
    return estimates[:, None] - (levels[:-1] + levels[1:]) / 2.0
