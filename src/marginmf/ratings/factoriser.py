"""What the factorisers have in common: their parameters, their fit, and rows learned afterwards."""

import sys
from abc import abstractmethod
from collections.abc import Sequence
from copy import copy, deepcopy
from dataclasses import KW_ONLY, dataclass, replace
from functools import partial
from typing import Any, ClassVar

import numpy as np

from marginmf._utils.parameters import check_callbacks, check_choice, check_number, n_threads
from marginmf._utils.saved import TRAINING, Optional, floats
from marginmf._utils.types import Float64Array, FloatArray, IntArray
from marginmf.backends import BackendLike, get_backend
from marginmf.backends.rows import Rows, Side
from marginmf.backends.specs import Spec
from marginmf.metrics import mean_absolute_error
from marginmf.progress import Report, progress_bar
from marginmf.ratings.data import Ratings
from marginmf.ratings.estimator import RatingsEstimator
from marginmf.ratings.fitting import validation
from marginmf.ratings.fitting.objective import Parameters, RowObjective, solve_rows
from marginmf.ratings.fitting.priors import IMPLICIT, Implicit, Penalties, Priors
from marginmf.ratings.fitting.stages import Solution, Stage, Training
from marginmf.ratings.fitting.validation import HoldoutTrial, ValidationSplit
from marginmf.ratings.lists.relevance import Columns, MarginBlock, as_stages, block_product
from marginmf.solvers import LBFGS, Callback, Solver, Stopping, get_solver
from marginmf.tuning import USUAL_LENGTH, candidates_below

#: Solutions of two-level and of least-squares problems have lower ranks than this at every useful
#: penalty, which keeps the sum of the singular values small.
LOW_RANK = 32
#: ``n_factors="auto"``: this many, unless there are fewer users or items.  The penalty keeps the
#: rank of solutions low; fewer factors for few ratings cost accuracy and save time.  The second
#: number is for factors that are built from features: more are no better then.
USUAL_FACTORS = (100, 48)


@dataclass(eq=False, repr=False)
class Factoriser(RatingsEstimator):
    """A ratings estimator whose stages minimise factorisation objectives.

    Subclasses are dataclasses too, whose fields are the constructor's parameters.  They say what
    they minimise (`_specs`) and what makes margins of a user's scores (`_user_offsets`).

    Parameters
    ----------
    n_factors : int or "auto"
        The rank of the factorisation (HMF: of every stage's).  Auto: 100, or 48 where factors are
        built from raters or features, or the number of users or items if that is lower.
    reg : float or "auto"
        The regularisation strength.  Auto: the one with the smallest error on held-out ratings,
        found along a path of candidates; see `marginmf.tuning`.
    implicit : {None, "items", "users", "both"}
        Whose factors are built from who rated what: an item's from the users who rated it, a
        user's from the items that they rated, or both; see `marginmf.ratings.fitting.priors`.
    reg_implicit, reg_features : float or "auto"
        The regularisation strengths of the weights of raters, and of side information given to
        `fit`.  Auto: ``reg``, and five times as much, so that all are chosen together.
    holdouts : int
        On how many random tenths of the ratings ``reg="auto"`` is chosen.
    max_iter, tol
        When to stop: after this many iterations, or when one of them (on the average of the last
        three) lowers the objective by less than this share of it.
    early_stopping : bool
        Whether to hold ratings out, stop when their error no longer falls, and keep the best
        factors.  A few iterations with all ratings come last.
    validation_fraction, n_iter_no_change
        With ``early_stopping``: which share of the ratings is held out, and after how many
        iterations in a row without a new smallest error to stop.
    random_state : int, Generator or None
        Seeds the start.
    backend : str or Backend
        Where the arithmetic is done: ``"cpu"``, ``"reference"`` (NumPy: slow, the oracle of the
        tests), or an object; see `marginmf.backends`.
    dtype : {"float32", "float64"}
        Of the factors; sums are made in float64.
    callbacks : sequence of callable
        Called with a `marginmf.solvers.Progress` after every iteration; returning True stops.

    Attributes
    ----------
    user_factors_, item_factors_ : array
        The factors, a row for each of ``users_.ids`` and ``items_.ids``.
    reg_ : float
        The regularisation strength that was used.  (HMF has one of this and of all attributes below
        but ``n_evaluations_`` for each stage.)
    reg_path_ : RegularisationPath
        The error on held-out ratings along the candidates (with ``reg="auto"``).
    history_ : list of Record
        Objective, gradient norm, evaluations and seconds after every iteration.
    n_iter_, n_evaluations_ : int
        How many iterations were made, and how many gradients they took.
    stop_reason_ : str
        Why the solver stopped.
    validation_errors_ : list of float
        The error on held-out ratings along the iterations (with ``early_stopping``).
    """

    n_factors: int | str = "auto"
    reg: Any = "auto"
    _: KW_ONLY
    implicit: Implicit = None
    reg_implicit: float | str = "auto"
    reg_features: float | str = "auto"
    holdouts: int = 1
    calibrate: bool = True
    max_iter: int = 100
    tol: float = 1e-4
    early_stopping: bool = False
    validation_fraction: float = validation.SHARE
    n_iter_no_change: int = 5
    random_state: Any = None
    n_jobs: int | None = None
    backend: BackendLike = "cpu"
    dtype: str = "float32"
    verbose: int = 0
    callbacks: Sequence[Callback] = ()

    _saved: ClassVar[dict[str, Any]] = {
        **TRAINING,
        "validation_errors_": Optional(list),
        "reg_": float,
        "reg_path_": Optional("RegularisationPath"),
        "user_factors_": floats("users", "factors"),
        "item_factors_": floats("items", "factors"),
    }
    _user_arrays: ClassVar[tuple[str, ...]] = ("user_factors_",)
    _item_arrays: ClassVar[tuple[str, ...]] = ("item_factors_",)

    _rank_axis = "factors"
    _takes_features = True
    #: What ``reg="auto"`` makes small.
    _selection_metric: ClassVar[str] = "mean absolute error"
    #: The largest rank along the path.  Where the penalty keeps the rank of a solution below this
    #: anyway, more factors cost time and change nothing.
    _path_rank: ClassVar[int] = sys.maxsize

    @abstractmethod
    def _solver(self) -> Solver:
        """Return what minimises the objectives."""

    @abstractmethod
    def _specs(self, data: Ratings) -> list[Spec]:
        """Return what this method asks of a user's scores, one for each of its stages."""

    def _item_specs(self, data: Ratings) -> list[Spec]:
        """Return what it asks of an item's scores (`Ratings.by_item`), users given."""
        return self._specs(data)

    def _stages(self, data: Ratings) -> list[Stage]:
        """Return the factorisations that the method consists of."""
        (spec,) = self._specs(data)
        return [Stage(spec, partial(self._margins_at, data), self._error)]

    def _prepare(self, data: Ratings) -> None:
        """Learn what the factorisations build on."""

    def _fit(self, data: Ratings) -> None:
        self._prepare(data)
        training, auto = self._training(data), is_auto(self.reg)
        n_stages = len(training.stages)
        rngs = self._checkpoint.generator("random start", self.random_state).spawn(n_stages + 1)
        n_parts = 1 + auto * self.holdouts * USUAL_LENGTH + self.early_stopping
        if self.calibrate and not self.early_stopping:
            n_parts += validation.n_calibrations(len(data))
        with progress_bar(type(self).__name__, n_stages * n_parts, bool(self.verbose)) as report:
            regs = self._chosen_regs(data, rngs, report) if auto else self.given_regs(n_stages)
            self.reg_: Any = _unwrap_single(training, regs)
            if self.calibrate or self.early_stopping:
                solutions, self._calibrator = self._validated(training, regs, rngs, report)
            else:
                solutions = training.train(regs, rngs, report, callbacks=self.callbacks)
        self._store_parameters(data, [solution.parameters for solution in solutions])
        self._record(training, solutions)

    def _chosen_regs(
        self, data: Ratings, rngs: Sequence[np.random.Generator], report: Report
    ) -> list[float]:
        """Return the regularisation strength of every stage, chosen on held-out ratings."""
        trials, rng = [], deepcopy(rngs[-1])
        for _ in range(self.holdouts):
            training, split = self.trial(ValidationSplit.at_random(data, rng), data)
            stopping = replace(training.stopping, tol=max(self.tol, validation.PATH_TOL))
            n_factors = min(training.n_factors, self._path_rank)
            training = replace(training, n_factors=n_factors, stopping=stopping)
            trials.append(HoldoutTrial(training, split))
        paths = validation.choose_regs(
            trials, rngs, partial(self._candidate_regs, data), self._selection_metric, report
        )
        self.reg_path_: Any = _unwrap_single(trials[0].training, paths)
        return [path.best for path in paths]

    def _validated(
        self,
        training: Training,
        regs: Sequence[float],
        rngs: Sequence[np.random.Generator],
        report: Report,
    ) -> validation.Validated:
        data, share = training.data, self.validation_fraction
        # A copy, so that the same ratings are held out whether reg is chosen or given.
        rng = deepcopy(rngs[-1])
        shared = (regs, rngs, report, self.callbacks)
        if self.early_stopping:
            trial = self.trial(ValidationSplit.at_random(data, rng, share), data)
            return validation.train_and_stop_early(training, trial, *shared, self.n_iter_no_change)
        trials = (self.trial(split, data) for split in ValidationSplit.to_calibrate(data, rng))
        return validation.train_calibrated(training, trials, *shared)

    def _training(self, data: Ratings) -> Training:
        """Return the stages on some ratings, with this model's settings."""
        threads, dtype = n_threads(self.n_jobs), np.dtype(self.dtype)
        learned = (Priors.of(data, self._penalties), self._rank(data), dtype)
        solver = (self._solver(), Stopping(max_iter=self.max_iter, tol=self.tol))
        backend = get_backend(self.backend, threads)
        return Training(
            data, self._stages(data), *learned, *solver, backend, threads, self._checkpoint
        )

    @property
    def _penalties(self) -> Penalties:
        given = (self.reg_implicit, self.reg_features)
        return Penalties(self.implicit, *(None if is_auto(reg) else float(reg) for reg in given))

    def trial(self, split: ValidationSplit, data: Ratings) -> HoldoutTrial:
        """Return the stages of a model like this one that learns from a part of the data."""
        model = copy(self)
        model._set_data(split.train, split.frequencies)
        model._prepare(split.train)
        training = model._training(split.train)
        return HoldoutTrial(replace(training, n_factors=self._rank(data)), split)

    def _rank(self, data: Ratings) -> int:
        if self.n_factors == "auto":
            built = self.implicit is not None or data.user_features or data.item_features
            return min(USUAL_FACTORS[bool(built)], data.n_users, data.n_items)
        return int(self.n_factors)

    def given_regs(self, n_stages: int) -> list[float]:
        """Return the regularisation strength of every stage, as given."""
        return np.broadcast_to(np.asarray(self.reg, np.float64), n_stages).tolist()

    def _candidate_regs(self, data: Ratings, limit: float) -> Float64Array:
        """Return what ``reg="auto"`` chooses from; at the limit nothing is left but zeros."""
        return candidates_below(limit)

    def _store_parameters(self, data: Ratings, stages: Sequence[Parameters]) -> None:
        self.item_factors_ = stages[0].items
        self._set_users(data, stages[0])

    def _set_users(self, data: Ratings, parameters: Parameters) -> None:
        self.user_factors_ = parameters.users

    def _record(self, training: Training, solutions: Sequence[Solution]) -> None:
        results = [solution.result for solution in solutions]
        shown = partial(_unwrap_single, training)
        self.history_: Any = shown([result.history for result in results])
        self.n_iter_: Any = shown([result.n_iter for result in results])
        self.n_evaluations_ = sum(result.n_evaluations for result in results)
        self.stop_reason_: Any = shown([str(result.reason) for result in results])
        if self.early_stopping:
            self.validation_errors_: Any = shown([result.errors for result in results])

    def _fold_in(self, side: Side, data: Ratings) -> None:
        known, given, specs = self.user_factors_, self.item_factors_, self._specs
        if side == "item":
            known, given, specs = given, known, self._item_specs
        stages = specs(data), np.atleast_1d(self.reg_), as_stages(known), as_stages(given)
        solved = []
        for spec, reg, own, factors in zip(*stages, strict=True):
            means = self._new_rows.means(self._penalties, float(reg), own)
            solved.append(self._solve_rows(data.view(side), spec, reg, factors, means))
        rows = np.stack([own for own, _ in solved]) if known.ndim == 3 else solved[0][0]
        if side == "item":
            self.item_factors_ = rows
        else:
            self._set_users(data, Parameters(rows, self.item_factors_, solved[0][1]))

    def _solve_rows(
        self, rows: Rows, spec: Spec, reg: float, given: FloatArray, means: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        usual = self._usual_thresholds(rows) if spec.n_thresholds(rows.n_levels) else None
        backend = get_backend(self.backend)
        objective = RowObjective(rows, spec, reg, given, backend, means, usual)
        return solve_rows(objective, n_threads(self.n_jobs))

    def _usual_thresholds(self, rows: Rows) -> tuple[FloatArray, Float64Array] | None:
        """Return what thresholds of new users are drawn to, if anything, and how strongly."""
        return None

    def _margins_at(
        self, data: Ratings, parameters: Parameters, users: IntArray, items: IntArray
    ) -> FloatArray:
        model = copy(self)
        model._store_parameters(data, [parameters])
        return model._margins(users, items)

    def _error(self, margins: FloatArray, codes: IntArray) -> float:
        predicted, true = self.levels_[self._decode(margins)], self.levels_[codes]
        return mean_absolute_error(true, predicted)

    def _margins(self, users: IntArray, items: IntArray) -> FloatArray:
        backend = self._arithmetic(self.item_factors_.shape[-1] * len(users))
        stages = zip(as_stages(self.user_factors_), as_stages(self.item_factors_), strict=True)
        scores = [backend.scores(users, items, U, V) for U, V in stages]
        return np.stack(scores, axis=1) + self._user_offsets(users)

    def _margin_block(self, users: IntArray, items: Columns) -> MarginBlock:
        return MarginBlock(self._score_block(users, items), self._user_offsets(users))

    def _score_block(self, users: IntArray, items: Columns) -> FloatArray:
        """Return the products of the factors, one for each stage, in float32."""
        U, V = as_stages(self.user_factors_), as_stages(self.item_factors_)
        scores = np.empty((len(V), len(users), len(V[0, items])), np.float32)
        for stage, Uq, Vq in zip(scores, U, V, strict=True):
            block_product(Uq[users], Vq[items], out=stage)
        return scores

    @abstractmethod
    def _user_offsets(self, users: IntArray) -> FloatArray:
        """Return what makes margins of a user's scores, one number for each level but the last."""

    def _check(self, data: Ratings) -> None:
        super()._check(data)
        if self.n_factors != "auto":
            check_number(self, "n_factors", int, 1)
        check_number(self, "max_iter", int, 1)
        check_number(self, "tol", float, 0)
        check_number(self, "holdouts", int, 1)
        get_backend(self.backend)
        self._check_reg(data)
        check_choice(self, "dtype", ("float32", "float64"))
        check_callbacks(self)
        if not isinstance(self.early_stopping, bool | np.bool_):
            raise ValueError(f"early_stopping={self.early_stopping!r} must be True or False.")
        check_number(self, "n_iter_no_change", int, 1)
        check_number(self, "validation_fraction", float, 0)
        if not 0 < self.validation_fraction < 1:
            raise ValueError(
                f"validation_fraction={self.validation_fraction!r} must be between 0 and 1: the "
                "share of the ratings that is held out."
            )
        check_choice(self, "implicit", IMPLICIT)
        for name in ("reg_implicit", "reg_features"):
            self._check_strength(name, ">")
            if getattr(self, name) == 0:
                raise ValueError(
                    f"{name}=0 leaves the weights of features undetermined: give a number > 0."
                )

    def _check_reg(self, data: Ratings) -> None:
        self._check_strength("reg", ">=")

    def _check_strength(self, name: str, relation: str) -> None:
        given = getattr(self, name)
        if isinstance(given, str) and not is_auto(given):
            raise ValueError(f"{name}={given!r} must be a number {relation} 0, or 'auto'.")
        if not is_auto(given):
            check_number(self, name, float, 0)


def is_auto(reg: Any) -> bool:
    """Whether the regularisation strength is chosen on held-out ratings."""
    return isinstance(reg, str) and reg == "auto"


def ratings_solver(solver: str | Solver) -> Solver:
    """Return a solver for ratings, where more memory of L-BFGS would save no gradients."""
    return LBFGS(memory=1) if solver == "lbfgs" else get_solver(solver)


def _unwrap_single(training: Training, values: list[Any]) -> Any:
    """Return the values of all stages, or the only one's."""
    return values if training.stages[0].name else values[0]
