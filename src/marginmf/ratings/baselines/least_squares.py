"""PMF and ALS: ordinary matrix factorisation by squared error, found in two ways.

Both minimise ``sum (y - offset - x)^2 + reg/2 (|U|^2 + |V|^2)``, where ``x`` is the product of
the user's and the item's factors, and round the estimate to the nearest level.
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np

from marginmf._typing import Float64Array, FloatArray, IntArray
from marginmf.losses import squared
from marginmf.ratings.baselines.bias import BiasOnly, above_midpoints
from marginmf.ratings.blocks import Columns
from marginmf.ratings.data import Ratings
from marginmf.ratings.factoriser import LOW_RANK, Factoriser
from marginmf.ratings.objective import FactorObjective, RealRows, RowLoss
from marginmf.ratings.rows import Rows, Side
from marginmf.solvers import (
    Callback,
    Monitor,
    Result,
    Save,
    Solver,
    State,
    Stopping,
    StopReason,
    VectorSpace,
    get_solver,
)


@dataclass(eq=False, repr=False)
class LeastSquares(Factoriser):
    """A factorisation of what a mean, and biases if wanted, leave unexplained."""

    _: KW_ONLY
    bias: bool = False

    _path_rank = LOW_RANK

    def _prepare(self, data: Ratings) -> None:
        # An infinite penalty leaves no bias at all: the mean alone.
        self.offsets_ = BiasOnly(reg=BiasOnly.reg if self.bias else np.inf)._learned(data)

    def _candidate_regs(self, data: Ratings, limit: float) -> Float64Array:
        # The squared error grows with the square of the scale, and the penalty must keep up.
        variance = float(data.values.var())
        candidates: Float64Array = super()._candidate_regs(data, limit / variance) * variance
        return candidates

    def _place(self, side: Side, data: Ratings) -> None:
        self.offsets_ = self.offsets_._placed(side, data)
        super()._place(side, data)

    def _joined(self, placed: Self, side: Side, data: Ratings) -> Self:
        joined = super()._joined(placed, side, data)
        joined.offsets_ = self.offsets_._joined(placed.offsets_, side, data)
        return joined

    def _row_loss(self, data: Ratings, stage: int = 0) -> RealRows:
        # Other users than those of the fit have biases of their own.
        own = data.users is self.offsets_.users_
        offsets = self.offsets_ if own else self.offsets_._placed("user", data)
        residuals = data.values - offsets._estimates(data.rows, data.indices)
        return RealRows(squared, residuals.astype(self.dtype))

    def _item_loss(self, data: Ratings, stage: int = 0) -> RealRows:
        return self._row_loss(data, stage).take(data.item_order)

    def _solve_rows(
        self, rows: Rows, row_loss: RowLoss, reg: float, given: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        if reg == 0:  # The Gram matrices may be singular: there is no closed form.
            return super()._solve_rows(rows, row_loss, reg, given)
        targets: Any = row_loss.targets  # type: ignore[attr-defined]
        solved = self._kernels().solve_rows(
            rows.indptr, rows.indices, targets.astype(given.dtype), given, ridge(reg)
        )
        return solved, np.empty((rows.n_rows, 0))

    def _margins(self, users: IntArray, items: IntArray) -> FloatArray:
        estimates = self.offsets_._estimates(users, items) + self._scores(users, items)
        return above_midpoints(estimates, self.levels_)

    def _user_offsets(self, users: IntArray) -> FloatArray:
        return self.offsets_._user_offsets(users)

    def _score_block(self, users: IntArray, items: Columns) -> FloatArray:
        return super()._score_block(users, items) + self.offsets_._score_block(items)


@dataclass(eq=False, repr=False)
class PMF(LeastSquares):
    """Probabilistic matrix factorisation, at the maximum of the posterior.

    With Gaussian noise on the ratings and Gaussian priors on the factors, that maximum is the
    minimum of the penalised squared error (Mnih and Salakhutdinov, 2007).  It is found by a
    gradient method.

    Parameters
    ----------
    {factor_parameters}
    {selection_parameters}
    {shared_parameters}
    bias : bool
        Whether users' and items' biases are taken out first, or the mean alone.  With biases it
        is a much stronger baseline than the one of the thesis, which has none.
    solver : str or solver
        ``"lbfgs"``, ``"cg"`` or ``"gd"``, or a solver object.

    Attributes
    ----------
    {factor_attributes}
    {selection_attributes}
    offsets_ : BiasOnly
        The mean and the biases.
    {shared_attributes}
    """

    _: KW_ONLY
    solver: str | Solver = "lbfgs"

    def _solver(self) -> Solver:
        return get_solver(self.solver)


@dataclass(eq=False, repr=False)
class ALS(LeastSquares):
    """Alternating least squares: users' rows in closed form, then items' rows, and again.

    Parameters
    ----------
    {factor_parameters}
    {selection_parameters}
    {shared_parameters}
    bias : bool
        Whether users' and items' biases are taken out first, or the mean alone.  With biases it
        is a much stronger baseline than the one of the thesis, which has none.

    Attributes
    ----------
    {factor_attributes}
    {selection_attributes}
    offsets_ : BiasOnly
        The mean and the biases.
    {shared_attributes}
    """

    _: KW_ONLY
    max_iter: int = 30
    tol: float = 1e-3

    def _solver(self) -> Solver:
        return AlternatingRows()

    def _check_reg(self, data: Ratings) -> None:
        super()._check_reg(data)
        if self.reg == 0:
            raise ValueError(
                "reg=0 leaves the rows of users and items with few ratings undetermined: give a "
                "positive reg."
            )


class AlternatingRows:
    """The solver of `ALS`: each half-step is the exact minimum over one side's rows."""

    def minimise(
        self,
        objective: FactorObjective,
        start: FloatArray,
        stopping: Stopping | None = None,
        callbacks: Sequence[Callback] = (),
        space: VectorSpace | None = None,
        resume: State | None = None,
        save: Save | None = None,
    ) -> Result:
        """Minimise a `FactorObjective` with squared loss; see `Descent.minimise`."""
        monitor = Monitor.begin(stopping, callbacks, resume)
        evaluate = monitor.counted(objective)
        point = start if resume is None else resume.vectors["point"][0]
        reason: StopReason | None = None
        while reason is None:
            point = point.copy()  # because a state may hold the last one
            if monitor.history:
                self._solve_sides(objective, point)
            value, gradient = evaluate(point)
            norm = objective.kernels.dot(gradient, gradient) ** 0.5
            reason = monitor.record(value, norm, point)
            if save is not None and reason is None:
                save(State(tuple(monitor.history), {"point": [point]}))
        return monitor.result(point, reason)

    @staticmethod
    def _solve_sides(objective: FactorObjective, point: FloatArray) -> None:
        data, kernels = objective.data, objective.kernels
        targets: Any = objective.row_loss.targets  # type: ignore[attr-defined]
        users, items, _ = objective.split(point)
        weight = ridge(objective.reg)
        users[:] = kernels.solve_rows(data.indptr, data.indices, targets, items, weight)
        by_item = kernels.gather(targets, data.item_order)
        items[:] = kernels.solve_rows(data.item_indptr, data.item_indices, by_item, users, weight)


def ridge(reg: float) -> float:
    """Return the weight of a ridge regression: half of reg.

    The squared loss has no 1/2 but the penalty has.
    """
    return reg / 2
