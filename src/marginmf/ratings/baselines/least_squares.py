"""Least squares: BiasOnly, PMF and ALS."""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np

from marginmf._utils.parameters import check_number
from marginmf._utils.random import as_generator
from marginmf._utils.saved import TRAINING, floats
from marginmf._utils.types import Float64Array, FloatArray, IntArray
from marginmf.backends import Backend
from marginmf.backends.rows import Rows, Side
from marginmf.backends.specs import Real, Spec
from marginmf.losses import squared
from marginmf.ratings.base import RatingsPredictor, method
from marginmf.ratings.data import Ratings
from marginmf.ratings.estimator import Numbers, RealValued, above_midpoints
from marginmf.ratings.factoriser import LOW_RANK, Factoriser, ratings_solver
from marginmf.ratings.fitting.fallback import (
    GRADIENT_TOL,
    BiasProblem,
    LevelFrequencies,
    biases_given,
    mean_rating,
)
from marginmf.ratings.fitting.objective import FactorObjective, Parameters
from marginmf.ratings.lists.relevance import Columns, MarginBlock
from marginmf.solvers import Counted, Monitor, Solver, State, Stopping, StopReason, Vectors
from marginmf.solvers.vectors import norm

#: Steps of conjugate gradients in each half of an iteration of ALS.  With three, the
#: objective on MovieLens 1M (100 factors, reg 10) is within a thousandth of that of exact halves
#: from the seventh iteration on.  A far weaker reg with many factors would need more of them.
HALF_STEPS = 3


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
    max_iter, tol
        When to stop: after this many steps of conjugate gradients, of which ten are usually enough,
        or when one (on the average of the last three) lowers the objective by less than this share.
    random_state : int, Generator or None
        Nothing in the biases is random: it only seeds which ratings a calibration sets aside.

    Attributes
    ----------
    mean_ : float
        The mean rating.
    user_biases_, item_biases_ : array
        A number for each of ``users_.ids`` and ``items_.ids``.
    history_, n_iter_, n_evaluations_, stop_reason_
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
    random_state: Any = 0
    n_jobs: int | None = None

    _user_arrays = ("user_biases_",)
    _item_arrays = ("item_biases_",)

    def _fit(self, data: Ratings) -> None:
        counts = data.level_counts("user"), data.level_counts("item")
        self.mean_ = mean_rating(data, counts[0])
        problem = BiasProblem(data, self.mean_, float(self.reg), *counts)
        monitor = Monitor(Stopping(self.max_iter, self.tol, GRADIENT_TOL))
        reason = None
        for items, objective, gradient_norm in problem.steps():
            self.item_biases_ = items
            monitor.n_evaluations += 1
            reason = monitor.record(objective, gradient_norm, point=None)
            if reason is not None:
                break
        self.user_biases_ = problem.users_given(self.item_biases_)
        self.history_ = monitor.history
        self.n_iter_ = monitor.history[-1].iteration
        self.n_evaluations_ = monitor.n_evaluations
        self.stop_reason_ = str(reason or StopReason.PRECISION)

    def _fold_in(self, side: Side, data: Ratings) -> None:
        given = self.item_biases_ if side == "user" else self.user_biases_
        biases = biases_given(side, data, self.mean_, float(self.reg), given)
        setattr(self, f"{side}_biases_", biases)

    def _estimates(self, users: IntArray, items: IntArray) -> FloatArray:
        return self.mean_ + self.user_biases_[users] + self.item_biases_[items]

    def _margin_block(self, users: IntArray, items: Columns) -> MarginBlock:
        by_item = self._score_block(items)
        return MarginBlock(np.tile(by_item, (1, len(users), 1)), self._user_offsets(users))

    def _score_block(self, items: Columns) -> FloatArray:
        return self.item_biases_[items].astype(np.float32)

    def _user_offsets(self, users: IntArray) -> FloatArray:
        return above_midpoints(self.mean_ + self.user_biases_[users], self.levels_)

    def _check(self, data: Ratings) -> None:
        super()._check(data)
        check_number(self, "reg", float, 0, np.inf)
        check_number(self, "max_iter", int, 1)
        check_number(self, "tol", float, 0)
        as_generator(self.random_state)


@dataclass(eq=False, repr=False)
class LeastSquares(Factoriser, Numbers):
    """A factorisation of what a mean, and biases if wanted, leave unexplained.

    Minimises ``sum (y - offset - x)^2 + reg/2 (|U|^2 + |V|^2)``, where ``x`` is the product of the
    user's and the item's factors, and rounds the estimate to the nearest level.

    Parameters
    ----------
    bias : bool
        Whether users' and items' biases are taken out first, or the mean alone.  With biases it
        is a much stronger baseline than the one of Kumar's thesis, which has none.

    Attributes
    ----------
    offsets_ : BiasOnly
        The mean and the biases.
    """

    _saved: ClassVar[dict[str, Any]] = {"offsets_": "BiasOnly"}
    _: KW_ONLY
    bias: bool = False

    _path_rank = LOW_RANK

    def _prepare(self, data: Ratings) -> None:
        # An infinite penalty leaves no bias at all: the mean alone.
        reg = BiasOnly.reg if self.bias else np.inf
        offsets = BiasOnly(reg=reg, calibrate=False)
        self.offsets_ = offsets._fit_copy(data, frequencies=self._frequencies)

    def _share(self, other: RatingsPredictor) -> None:
        super()._share(other)
        self.offsets_._share(other)

    def _candidate_regs(self, data: Ratings, limit: float) -> Float64Array:
        # The squared error grows with the square of the scale, and the penalty must keep up.
        variance = float(data.values.var()) or 1.0
        return super()._candidate_regs(data, limit / variance) * variance

    def _fold_in(self, side: Side, data: Ratings) -> None:
        self.offsets_ = self.offsets_._folded(side, data)
        super()._fold_in(side, data)

    def _joined(
        self, folded: Self, side: Side, data: Ratings, frequencies: LevelFrequencies | None = None
    ) -> Self:
        joined = super()._joined(folded, side, data, frequencies)
        joined.offsets_ = self.offsets_._joined(folded.offsets_, side, data, joined._frequencies)
        return joined

    def _specs(self, data: Ratings) -> list[Spec]:
        return [self._residuals(data)]

    def _item_specs(self, data: Ratings) -> list[Spec]:
        return [self._residuals(data).take(data.item_order)]

    def _residuals(self, data: Ratings) -> Real:
        # Other users than those of the fit have biases of their own.
        own = data.users is self.offsets_.users_
        offsets = self.offsets_ if own else self.offsets_._folded("user", data)
        residuals = data.values - offsets._estimates(data.rows, data.indices)
        return Real(squared, residuals.astype(self.dtype))

    def _solve_rows(
        self, rows: Rows, spec: Spec, reg: float, given: FloatArray, means: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        if reg == 0:  # The Gram matrices may be singular: there is no closed form.
            return super()._solve_rows(rows, spec, reg, given, means)
        assert isinstance(spec, Real)
        backend, spec = self._arithmetic(), Real(spec.loss, spec.targets.astype(given.dtype))
        if means is not None:
            spec = beyond(backend, rows, spec, means, given)
        # Half of reg: the squared loss has no 1/2, but the penalty has.
        solved = backend.solve_rows(rows, spec, given, reg / 2)
        return solved if means is None else solved + means, np.empty((rows.n_rows, 0))

    def _margins(self, users: IntArray, items: IntArray) -> FloatArray:
        return super()._margins(users, items) + self.offsets_.item_biases_[items][:, None]

    def _user_offsets(self, users: IntArray) -> FloatArray:
        return self.offsets_._user_offsets(users)

    def _score_block(self, users: IntArray, items: Columns) -> FloatArray:
        return super()._score_block(users, items) + self.offsets_._score_block(items)


@method("pmf")
@dataclass(eq=False, repr=False)
class PMF(LeastSquares):
    """Probabilistic matrix factorisation, at the maximum of the posterior.

    With Gaussian noise on the ratings and Gaussian priors on the factors, that maximum is the
    minimum of the penalised squared error (Mnih and Salakhutdinov, 2007).  It is found by a
    gradient method.

    Parameters
    ----------
    solver : str or solver
        ``"lbfgs"``, ``"cg"`` or ``"gd"``, or a solver object.
    """

    _: KW_ONLY
    solver: str | Solver = "lbfgs"

    def _solver(self) -> Solver:
        return ratings_solver(self.solver)


@method("als")
@dataclass(eq=False, repr=False)
class ALS(LeastSquares):
    """Alternating least squares: users' rows while the items stay, then items' rows, and again."""

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
    """The solver of `ALS`: one side's rows, then the other's, while the other side stays.

    A half-step is a few preconditioned steps of conjugate gradients from the current rows: with 100
    factors a tenth of the time of an exact one (Takacs, Pilaszy and Tikk, 2011).  The weights of
    features follow in as many steps.  Every step lowers the objective.
    """

    def steps(self, objective: Any, start: Any, vectors: Vectors) -> Iterator[State]:
        """Yield a state after both sides have moved; the loss must be squared."""
        counted = Counted.of(objective, start)
        point = start.point if isinstance(start, State) else start
        if not isinstance(start, State):
            yield self._state(counted, point, vectors)
        while True:
            point = self._improve_sides(counted.objective, point)
            yield self._state(counted, point, vectors)

    @staticmethod
    def _state(counted: Counted, point: Any, vectors: Vectors) -> State:
        value, gradient = counted(point)
        return State(point, value, norm(vectors, gradient), counted.n_evaluations)

    @staticmethod
    def _improve_sides(objective: FactorObjective, point: Any) -> Any:
        resident: Any = objective.resident
        data, reg = resident.rows, resident.reg
        sides = (data, resident.spec), (data.by_item, resident.spec.take(data.item_order))
        parameters = objective.split(point)
        factors, weights = [*parameters[:2]], [*parameters.weights]
        for own, (rows, spec) in enumerate(sides):
            given, backend, start = factors[1 - own], objective.backend, factors[own]
            if objective.priors is None:
                factors[own] = backend.improve_rows(rows, spec, given, reg / 2, start, HALF_STEPS)
                continue
            prior = objective.priors[own]
            means = prior.means(weights[own])
            left = beyond(backend, rows, spec, means, given)
            factors[own] = means + backend.improve_rows(
                rows, left, given, reg / 2, start - means, HALF_STEPS
            )
            weights[own] = prior.improved(weights[own], factors[own], reg, HALF_STEPS)
            unrated = prior.counts == 0
            if unrated.any():  # nothing but their means is known of these rows
                factors[own][unrated] = prior.means(weights[own])[unrated]
        users, items = factors
        return objective.join(Parameters(users, items, parameters.thresholds, tuple(weights)))


def beyond(backend: Backend, rows: Rows, spec: Real, means: FloatArray, given: FloatArray) -> Real:
    """Return what is left to fit when rows' factors are these means."""
    scores = backend.scores(rows.rows, rows.indices, means, given)
    return Real(spec.loss, (spec.targets - scores).astype(spec.targets.dtype))
