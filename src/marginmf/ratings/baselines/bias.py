"""BiasOnly: an average, what the user adds to it, and what the item adds to it."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from marginmf._utils.parameters import check_number
from marginmf._utils.saved import TRAINING, floats
from marginmf._utils.types import FloatArray, IntArray
from marginmf.backends.rows import Side
from marginmf.ratings.base import method
from marginmf.ratings.biases import GRADIENT_TOL, BiasProblem, biases_given, mean_rating
from marginmf.ratings.data import Ratings
from marginmf.ratings.estimator import RealValued, above_midpoints
from marginmf.ratings.relevance import Columns, MarginBlock
from marginmf.solvers import Monitor, Stopping, StopReason


@method("bias")
@dataclass(eq=False, repr=False)
class BiasOnly(RealValued):
    """Predict ``mean + user's bias + item's bias``, rounded to the nearest level.

    The biases minimise the squared error with a ridge penalty, which draws the biases of users
    and items with few ratings towards zero.  With ``reg=inf`` the mean alone is left.

    Parameters
    ----------
    reg : float
        The regularisation strength: as if every user and item had this many more ratings at the
        mean.
    max_iter : int
        The most steps of conjugate gradients; ten are usually enough.
    tol : float
        Stop when a step lowers the objective by less than this share of it, on the average of the
        last three.
    calibrate : bool
        Whether `fit` learns how estimates become probabilities, which `predict` answers with.
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
    >>> model.predict([("bob", "y"), ("ann", "x")], output="rule")
    array([2., 5.])
    """

    _saved: ClassVar[dict[str, Any]] = {
        **TRAINING,
        "mean_": float,
        "user_biases_": floats("users"),
        "item_biases_": floats("items"),
    }
    reg: float = 5.0
    _: KW_ONLY
    max_iter: int = 50
    tol: float = 1e-9
    calibrate: bool = True
    n_jobs: int | None = None

    _user_arrays = ("user_biases_",)
    _item_arrays = ("item_biases_",)

    def _fit(self, data: Ratings) -> None:
        counts = data.level_counts("user"), data.level_counts("item")
        self.mean_ = mean_rating(data, counts[0])
        problem = BiasProblem(data, self.mean_, float(self.reg), *counts)
        monitor = Monitor(Stopping(self.max_iter, self.tol, GRADIENT_TOL))
        reason = None
        for step in problem.steps():
            monitor.n_evaluations += 1
            self.item_biases_ = step.items
            reason = monitor.record(step.objective, step.gradient_norm, point=None)
            if reason is not None:
                break
        self.user_biases_ = problem.users_given(self.item_biases_)
        self.history_ = monitor.history
        self.n_iter_ = monitor.history[-1].iteration
        self.n_evaluations_ = monitor.n_evaluations
        self.stop_reason_ = str(reason or StopReason.PRECISION)

    def _place(self, side: Side, data: Ratings) -> None:
        given = self.item_biases_ if side == "user" else self.user_biases_
        biases = biases_given(side, data, self.mean_, float(self.reg), given)
        setattr(self, f"{side}_biases_", biases)

    def _estimates(self, users: IntArray, items: IntArray) -> FloatArray:
        return self.mean_ + self.user_biases_[users] + self.item_biases_[items]

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
