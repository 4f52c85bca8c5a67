"""PMF and ALS: ordinary matrix factorisation by squared error, found in two ways.

Both minimise ``sum (y - offset - x)^2 + reg/2 (|U|^2 + |V|^2)``, where ``x`` is the product of
the user's and the item's factors, and round the estimate to the nearest level.
"""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np

from marginmf._utils.types import Float64Array, FloatArray, IntArray
from marginmf.backends import Backend
from marginmf.backends.rows import Rows, Side
from marginmf.backends.specs import Real, Spec
from marginmf.losses import squared
from marginmf.ratings.base import RatingsPredictor, method
from marginmf.ratings.baselines.bias import BiasOnly
from marginmf.ratings.data import Ratings
from marginmf.ratings.estimator import Numbers
from marginmf.ratings.factoriser import LOW_RANK, Factoriser, ratings_solver
from marginmf.ratings.objective import FactorObjective, Parameters
from marginmf.ratings.relevance import Columns
from marginmf.solvers import Counted, Solver, State, Vectors
from marginmf.solvers.vectors import norm

#: Steps of conjugate gradients in each half of an iteration of ALS.  With three, the
#: objective on MovieLens 1M (100 factors, reg 10) is within a thousandth of that of exact halves
#: from the seventh iteration on.  A far weaker reg with many factors would need more of them.
HALF_STEPS = 3


@dataclass(eq=False, repr=False)
class LeastSquares(Factoriser, Numbers):
    """A factorisation of what a mean, and biases if wanted, leave unexplained."""

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
        candidates: Float64Array = super()._candidate_regs(data, limit / variance) * variance
        return candidates

    def _place(self, side: Side, data: Ratings) -> None:
        self.offsets_ = self.offsets_._placed(side, data)
        super()._place(side, data)

    def _joined(self, placed: Self, side: Side, data: Ratings) -> Self:
        joined = super()._joined(placed, side, data)
        joined.offsets_ = self.offsets_._joined(placed.offsets_, side, data)
        return joined

    def _specs(self, data: Ratings) -> list[Spec]:
        return [self._residuals(data)]

    def _item_specs(self, data: Ratings) -> list[Spec]:
        return [self._residuals(data).take(data.item_order)]

    def _residuals(self, data: Ratings) -> Real:
        # Other users than those of the fit have biases of their own.
        own = data.users is self.offsets_.users_
        offsets = self.offsets_ if own else self.offsets_._placed("user", data)
        residuals = data.values - offsets._estimates(data.rows, data.indices)
        return Real(squared, residuals.astype(self.dtype))

    def _solve_rows(
        self,
        rows: Rows,
        spec: Spec,
        reg: float,
        given: FloatArray,
        means: FloatArray | None = None,
    ) -> tuple[FloatArray, FloatArray]:
        if reg == 0:  # The Gram matrices may be singular: there is no closed form.
            return super()._solve_rows(rows, spec, reg, given, means)
        assert isinstance(spec, Real)
        backend, spec = self._arithmetic(), Real(spec.loss, spec.targets.astype(given.dtype))
        if means is not None:
            spec = beyond(backend, rows, spec, means, given)
        solved = backend.solve_rows(rows, spec, given, ridge(reg))
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
    n_factors : int or "auto"
        The rank of the factorisation.  Auto: 100, or 48 where factors are built from
        raters or features, or as many as there are users or items if those are fewer.
    reg : float or "auto"
        The regularisation strength.  Auto: the one with the smallest error on held-out ratings,
        found along a path of candidates; see `marginmf.tuning`.
    implicit : {None, "items", "users", "both"}
        Whose factors are built from who rated what: an item's from the users who rated it, a
        user's from the items that they rated, or both; see `marginmf.ratings.priors`.
    reg_implicit, reg_features : float or "auto"
        The penalties of what is learned of raters, and of side information given to `fit`.
        Auto: ``reg``, and five times as much, so that all are chosen together.
    holdouts : int
        On how many random tenths of the ratings ``reg="auto"`` is chosen.  With more of them the
        choice varies less and takes longer.
    calibrate : bool
        Whether `fit` learns how margins become probabilities, which `predict` answers with: on a
        tenth of the ratings that a first part of the fit does not see.  False is the bare fit; the
        first call that needs probabilities then takes about as long as another one.
    max_iter, tol
        When to stop: after this many iterations, or when one of them (on the average of the last
        three) lowers the objective by less than this share of it.
    early_stopping : bool
        Whether to hold ratings out, stop when their error no longer falls, and keep the factors
        with the smallest one.  A few iterations with all ratings come last.
    validation_fraction, n_iter_no_change
        With ``early_stopping``: which share of the ratings is held out, and after how many
        iterations in a row without a new smallest error to stop.
    random_state : int, Generator or None
        Seeds the start.
    n_jobs : int or None
        Threads, as in scikit-learn: None is one, -1 is all.  The result does not depend on it, to
        the last bit on one machine.
    backend : str or Backend
        Where the arithmetic is done: ``"cpu"``, ``"reference"`` (NumPy: slow, the oracle of the
        tests), or an object; see `marginmf.backends`.
    dtype : {"float32", "float64"}
        Of the factors; sums are made in float64.
    verbose : int
        1 shows a progress bar on standard error.
    callbacks : sequence of callable
        Called with a `marginmf.solvers.Progress` after every iteration; returning True stops.
    bias : bool
        Whether users' and items' biases are taken out first, or the mean alone.  With biases it
        is a much stronger baseline than the one of the thesis, which has none.
    solver : str or solver
        ``"lbfgs"``, ``"cg"`` or ``"gd"``, or a solver object.

    Attributes
    ----------
    user_factors_, item_factors_ : array
        The factors, a row for each of ``users_.ids`` and ``items_.ids``.
    reg_ : float
        The regularisation strength that was used.
    reg_path_ : RegularisationPath
        The error on held-out ratings along the candidates (with ``reg="auto"``).
    offsets_ : BiasOnly
        The mean and the biases.
    users_, items_ : IdIndex
        The ids seen in training, and their codes.
    levels_ : array
        The scale seen in training, ascending.
    ratings_ : Ratings
        What the users were learned from.
    history_ : list of Record
        Objective, gradient norm, evaluations and seconds after every iteration.
    n_iter_, n_evaluations_ : int
        How many iterations were made, and how many gradients they took.
    stop_reason_ : str
        Why the solver stopped.
    validation_errors_ : list of float
        The error on held-out ratings at the start and after every iteration (with
        ``early_stopping``).
    """

    _: KW_ONLY
    solver: str | Solver = "lbfgs"

    def _solver(self) -> Solver:
        return ratings_solver(self.solver)


@method("als")
@dataclass(eq=False, repr=False)
class ALS(LeastSquares):
    """Alternating least squares: users' rows while the items stay, then items' rows, and again.

    Parameters
    ----------
    n_factors : int or "auto"
        The rank of the factorisation.  Auto: 100, or 48 where factors are built from
        raters or features, or as many as there are users or items if those are fewer.
    reg : float or "auto"
        The regularisation strength.  Auto: the one with the smallest error on held-out ratings,
        found along a path of candidates; see `marginmf.tuning`.
    implicit : {None, "items", "users", "both"}
        Whose factors are built from who rated what: an item's from the users who rated it, a
        user's from the items that they rated, or both; see `marginmf.ratings.priors`.
    reg_implicit, reg_features : float or "auto"
        The penalties of what is learned of raters, and of side information given to `fit`.
        Auto: ``reg``, and five times as much, so that all are chosen together.
    holdouts : int
        On how many random tenths of the ratings ``reg="auto"`` is chosen.  With more of them the
        choice varies less and takes longer.
    calibrate : bool
        Whether `fit` learns how margins become probabilities, which `predict` answers with: on a
        tenth of the ratings that a first part of the fit does not see.  False is the bare fit; the
        first call that needs probabilities then takes about as long as another one.
    max_iter, tol
        When to stop: after this many iterations, or when one of them (on the average of the last
        three) lowers the objective by less than this share of it.
    early_stopping : bool
        Whether to hold ratings out, stop when their error no longer falls, and keep the factors
        with the smallest one.  A few iterations with all ratings come last.
    validation_fraction, n_iter_no_change
        With ``early_stopping``: which share of the ratings is held out, and after how many
        iterations in a row without a new smallest error to stop.
    random_state : int, Generator or None
        Seeds the start.
    n_jobs : int or None
        Threads, as in scikit-learn: None is one, -1 is all.  The result does not depend on it, to
        the last bit on one machine.
    backend : str or Backend
        Where the arithmetic is done: ``"cpu"``, ``"reference"`` (NumPy: slow, the oracle of the
        tests), or an object; see `marginmf.backends`.
    dtype : {"float32", "float64"}
        Of the factors; sums are made in float64.
    verbose : int
        1 shows a progress bar on standard error.
    callbacks : sequence of callable
        Called with a `marginmf.solvers.Progress` after every iteration; returning True stops.
    bias : bool
        Whether users' and items' biases are taken out first, or the mean alone.  With biases it
        is a much stronger baseline than the one of the thesis, which has none.

    Attributes
    ----------
    user_factors_, item_factors_ : array
        The factors, a row for each of ``users_.ids`` and ``items_.ids``.
    reg_ : float
        The regularisation strength that was used.
    reg_path_ : RegularisationPath
        The error on held-out ratings along the candidates (with ``reg="auto"``).
    offsets_ : BiasOnly
        The mean and the biases.
    users_, items_ : IdIndex
        The ids seen in training, and their codes.
    levels_ : array
        The scale seen in training, ascending.
    ratings_ : Ratings
        What the users were learned from.
    history_ : list of Record
        Objective, gradient norm, evaluations and seconds after every iteration.
    n_iter_, n_evaluations_ : int
        How many iterations were made, and how many gradients they took.
    stop_reason_ : str
        Why the solver stopped.
    validation_errors_ : list of float
        The error on held-out ratings at the start and after every iteration (with
        ``early_stopping``).
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
    """The solver of `ALS`: one side's rows, then the other's, while the other side stays.

    Half-steps do not go all the way to the minimum, from where the other side will move it anyway:
    a few preconditioned steps of conjugate gradients from the current rows follow the exact method
    closely, and with 100 factors take a tenth of its time (Takacs, Pilaszy and Tikk, 2011).  Where
    factors are built from features, the weights of these follow their side's factors in as many
    steps.  Every step lowers the objective.
    """

    def steps(self, objective: Any, start: Any, vectors: Vectors) -> Iterator[State]:
        """Yield a state after both sides have moved; see `marginmf.solvers.Solver.steps`.

        The objective is a `FactorObjective` with squared loss.
        """
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
                factors[own] = backend.improve_rows(
                    rows, spec, given, ridge(reg), start, HALF_STEPS
                )
                continue
            prior = objective.priors[own]
            means = prior.means(weights[own])
            left = beyond(backend, rows, spec, means, given)
            factors[own] = means + backend.improve_rows(
                rows, left, given, ridge(reg), start - means, HALF_STEPS
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


def ridge(reg: float) -> float:
    """Return the weight of a ridge regression: half of reg.

    The squared loss has no 1/2 but the penalty has.
    """
    return reg / 2
