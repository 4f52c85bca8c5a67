"""What the factorisers have in common: their parameters, and how one factorisation is found."""

import sys
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from copy import copy, deepcopy
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple, Self, TypeVar

import numpy as np

from marginmf._parameters import check_number
from marginmf._threads import n_threads
from marginmf._typing import Float64Array, FloatArray, IntArray
from marginmf.backends import Kernels, get_kernels
from marginmf.losses import TwoLevelLoss, two_level_loss
from marginmf.metrics import mean_absolute_error
from marginmf.progress import Report, progress_bar
from marginmf.ratings.base import RatingsEstimator
from marginmf.ratings.blocks import Columns, as_stages, block_product
from marginmf.ratings.data import Ratings
from marginmf.ratings.docstrings import filled
from marginmf.ratings.early_stopping import check_early_stopping, train_and_stop_early
from marginmf.ratings.expected import MarginBlock
from marginmf.ratings.holdout import HeldOut
from marginmf.ratings.objective import (
    FactorObjective,
    Parameters,
    RowLoss,
    RowObjective,
    first_thresholds,
)
from marginmf.ratings.placing import solve_rows
from marginmf.ratings.rows import Rows, Side
from marginmf.ratings.selection import PATH_TOL, Choice, Trial, calibrated_on, choose_reg
from marginmf.solvers import Callback, EarlyStopped, Result, Solver, Stopping, get_solver
from marginmf.tuning import USUAL_LENGTH, candidates_below

Work = TypeVar("Work")

#: Solutions of two-level and of least-squares problems have lower ranks than this at every useful
#: penalty, which keeps the sum of the singular values small.
LOW_RANK = 32

#: The standard deviation of random factors.  Zero is a saddle point, and large factors start in
#: the flat parts of the losses; in between, the choice hardly matters.
START_SCALE = 0.1


class Solution(NamedTuple):
    """A factorisation and how it was found."""

    parameters: Parameters
    result: Result


@dataclass(eq=False, repr=False)
class Factoriser(RatingsEstimator):
    """A ratings estimator that minimises a `FactorObjective`.

    Subclasses are dataclasses too: their fields are the constructor's parameters, as scikit-learn
    wants them, without a constructor to write.
    """

    n_factors: int = 100
    reg: Any = "auto"
    _: KW_ONLY
    holdouts: int = 1
    max_iter: int = 100
    tol: float = 1e-4
    early_stopping: bool = False
    validation_fraction: float = 0.1
    n_iter_no_change: int = 5
    random_state: Any = None
    n_jobs: int | None = None
    dtype: str = "float32"
    verbose: int = 0
    callbacks: Sequence[Callback] = ()

    _user_arrays: ClassVar[tuple[str, ...]] = ("user_factors_",)
    _item_arrays: ClassVar[tuple[str, ...]] = ("item_factors_",)

    #: What ``reg="auto"`` makes small.
    _selection_metric: ClassVar[str] = "mean absolute error"
    #: The largest rank along the path.  Where the penalty keeps the rank of a solution below this
    #: anyway, more factors cost time and change nothing.
    _path_rank: ClassVar[int] = sys.maxsize

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Write the parts that all docstrings share into the subclass's own."""
        super().__init_subclass__(**kwargs)
        cls.__doc__ = filled(cls.__doc__)

    @abstractmethod
    def _solver(self) -> Solver:
        """Return who minimises the objective."""

    @abstractmethod
    def _row_loss(self, data: Ratings, stage: int = 0) -> RowLoss:
        """Return what this method asks of a user's scores, in one of its stages if it has any."""

    def _item_loss(self, data: Ratings, stage: int = 0) -> RowLoss:
        """Return what this method asks of an item's scores (`Ratings.by_item`), users given."""
        return self._row_loss(data, stage)

    def _n_stages(self, data: Ratings) -> int:
        """Return how many factorisations the method consists of."""
        return 1

    def _prepare(self, data: Ratings) -> None:
        """Learn what the factorisations build on."""

    def _fit(self, data: Ratings) -> None:
        n_stages, auto = self._n_stages(data), is_auto(self.reg)
        rngs = self._journal.generator("random start", self.random_state).spawn(n_stages + 1)
        # From a copy, so that the same ratings are held out whether reg is chosen or given.
        share, rng = self.validation_fraction, deepcopy(rngs[-1])
        held_out = HeldOut.at_random(data, rng, share) if self.early_stopping else None
        n_parts = n_stages * (1 + auto * self.holdouts * USUAL_LENGTH + self.early_stopping)
        self._prepare(data)
        with progress_bar(type(self).__name__, n_parts, bool(self.verbose)) as report:
            regs = self._selected(data, rngs, report) if auto else self._given_regs(n_stages)
            self.reg_: Any = self._of_stages(regs)
            if held_out is None:
                solutions = self._train(data, rngs, report)
            else:
                solutions, calibrator = train_and_stop_early(self, held_out, rngs, report)
                self._calibrator = self._calibrator or calibrator
        self._adopt(data, [solution.parameters for solution in solutions])
        self._record([solution.result for solution in solutions])

    def _selected(
        self, data: Ratings, rngs: Sequence[np.random.Generator], report: Report
    ) -> list[float]:
        """Return the weight of the penalty for every stage, chosen on held-out ratings."""
        trials = [self._trial(HeldOut.at_random(data, rngs[-1])) for _ in range(self.holdouts)]
        # Copies, so that the final fit starts where it would with the chosen reg given.
        rngs = deepcopy(rngs)
        chosen: dict[int, Choice] = {}

        def choose(stage: int, kernels: Kernels) -> Choice:
            near = self._neighbour(stage, chosen)
            chosen[stage] = choose_reg(trials, stage, rngs[stage], kernels, report, near)
            return chosen[stage]

        choices = self._each_stage(data, choose)
        self.reg_path_: Any = self._of_stages([choice.path for choice in choices])
        margins = [
            np.hstack([choice.best.margins[k] for choice in choices]) for k in range(len(trials))
        ]
        self._calibrator = calibrated_on(trials, margins)
        return [choice.path.best for choice in choices]

    def _train(
        self,
        data: Ratings,
        rngs: Sequence[np.random.Generator],
        report: Report,
        held_out: HeldOut | None = None,
    ) -> list[Solution]:
        """Find every stage's factorisation; with a hold-out, its error says when to stop."""
        regs = self._regs(data)
        solved: dict[int, Solution] = {}

        def train(stage: int, kernels: Kernels) -> Solution:
            row_loss, name = self._row_loss(data, stage), self._stage_name(stage)
            near = self._neighbour(stage, solved)
            if near is None:
                start = self._random_start(data, row_loss, rngs[stage])
            else:
                start = near.result.point
            callbacks = [*self.callbacks, *report(name)]
            error_at = partial(self._error_at, held_out, stage) if held_out else None
            solved[stage] = self._factorise(
                data, row_loss, regs[stage], kernels, start, callbacks, name, error_at
            )
            return solved[stage]

        return self._each_stage(data, train)

    def _each_stage(self, data: Ratings, work: Callable[[int, Kernels], Work]) -> list[Work]:
        """Do some work for every stage, in the order or on the threads that suit the method."""
        return [work(0, self._kernels())]

    def _stage_name(self, stage: int) -> str:
        return ""

    def _neighbour(self, stage: int, done: Mapping[int, Work]) -> Work | None:
        """Return what was done for another stage, to start from, if there is any."""
        return None

    def _of_stages(self, values: list[Any]) -> Any:
        """Return what an attribute shows of values that every stage has one of."""
        return values[0]

    def _given_regs(self, n_stages: int) -> list[float]:
        """Return the weight of the penalty for every stage, as given."""
        regs = np.broadcast_to(np.asarray(self.reg, np.float64), n_stages)
        return [float(reg) for reg in regs]

    def _regs(self, data: Ratings) -> list[float]:
        """Return the weight of the penalty for every stage."""
        return list(np.atleast_1d(self.reg_))

    def _candidate_regs(self, data: Ratings, limit: float) -> Float64Array:
        """Return what ``reg="auto"`` chooses from; at the limit nothing is left but zeros."""
        return candidates_below(limit)

    def _adopt(self, data: Ratings, stages: Sequence[Parameters]) -> None:
        """Take what was found for every stage as this model's own."""
        self.item_factors_ = stages[0].items
        self._set_users(data, stages[0])

    def _record(self, results: Sequence[Result]) -> None:
        self.history_: Any = self._of_stages([result.history for result in results])
        self.n_iter_: Any = self._of_stages([result.n_iter for result in results])
        self.n_evaluations_ = sum(result.n_evaluations for result in results)
        self.stop_reason_: Any = self._of_stages([str(result.reason) for result in results])
        if self.early_stopping:
            self.validation_errors_: Any = self._of_stages([result.errors for result in results])

    def _place(self, side: Side, data: Ratings) -> None:
        (reg,) = self._regs(data)
        if side == "user":
            factors, thresholds = self._solve_side(side, data, reg, self.item_factors_)
            self._set_users(data, Parameters(factors, self.item_factors_, thresholds))
        else:
            self.item_factors_, _ = self._solve_side(side, data, reg, self.user_factors_)

    def _solve_side(
        self, side: Side, data: Ratings, reg: float, given: FloatArray, stage: int = 0
    ) -> tuple[FloatArray, FloatArray]:
        """Return one side's factors and thresholds, given the other side's factors."""
        if side == "user":
            return self._solve_rows(data, self._row_loss(data, stage), reg, given)
        return self._solve_rows(data.by_item, self._item_loss(data, stage), reg, given)

    def _solve_rows(
        self, rows: Rows, row_loss: RowLoss, reg: float, given: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Solve every row's problem to the end.

        Starting at zero, and not at what was learned before, makes the answer free of chance.
        """
        objective = RowObjective(rows, row_loss, reg, given, get_kernels("cpu", 1))
        zeros = np.zeros((rows.n_rows, given.shape[1]))
        start = np.hstack([zeros, first_thresholds(rows, row_loss)]).astype(given.dtype)
        return objective.split(solve_rows(objective, start, n_threads(self.n_jobs)))

    def _set_users(self, data: Ratings, parameters: Parameters) -> None:
        self.user_factors_ = parameters.users

    def _scores(self, users: IntArray, items: IntArray) -> FloatArray:
        return self._kernels().scores(users, items, self.user_factors_, self.item_factors_)

    def _trial(self, held_out: HeldOut) -> Trial:
        """Return a model like this one that learns from all but the ratings held out."""
        model = self._learning_from(held_out.train)
        model.callbacks, model.verbose = (), 0
        model.tol = max(self.tol, PATH_TOL)
        model.n_factors = min(self.n_factors, self._path_rank)
        return Trial(model, held_out)

    def _learning_from(self, data: Ratings) -> Self:
        """Return a model like this one whose factorisations build on other ratings."""
        model = copy(self)
        model._set_data(data)
        model._prepare(data)
        return model

    def _error_at(self, held_out: HeldOut, stage: int, parameters: Parameters) -> float:
        """Return the error of a stage's solution on the held-out ratings."""
        margins = self._held_out_margins(held_out, stage, parameters)
        return self._held_out_error(held_out, stage, margins)

    def _held_out_margins(
        self, held_out: HeldOut, stage: int, parameters: Parameters
    ) -> FloatArray:
        """Return the margins that a stage's solution gives the held-out ratings."""
        self._adopt(held_out.train, [parameters])
        return self._margins(held_out.users, held_out.items)

    def _held_out_error(self, held_out: HeldOut, stage: int, margins: FloatArray) -> float:
        predicted, true = self.levels_[self._decode(margins)], self.levels_[held_out.codes]
        return mean_absolute_error(true, predicted)

    def _random_start(
        self, data: Ratings, row_loss: RowLoss, rng: np.random.Generator
    ) -> Parameters:
        users, items = (
            (START_SCALE * rng.standard_normal((n, self.n_factors))).astype(self.dtype)
            for n in (data.n_users, data.n_items)
        )
        return Parameters(users, items, first_thresholds(data, row_loss))

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

    def _factorise(
        self,
        data: Ratings,
        row_loss: RowLoss,
        reg: float,
        kernels: Kernels,
        start: Parameters | FloatArray,
        callbacks: Sequence[Callback],
        name: str,
        error_at: Callable[[Parameters], float] | None = None,
    ) -> Solution:
        """Find users', items' and thresholds' part together, from a start in parts or whole.

        The name is what a checkpoint keeps it under: another one for each in a fit.  An error
        that is given says when to stop, and where it was smallest is the solution.
        """
        objective = FactorObjective(
            data, row_loss, reg, self.n_factors, kernels, np.dtype(self.dtype).type
        )
        solver = self._solver()
        if error_at is not None:
            solver = EarlyStopped(
                solver, lambda point: error_at(objective.split(point)), self.n_iter_no_change
            )
        result = self._journal.minimise(
            name,
            solver,
            objective,
            start if isinstance(start, np.ndarray) else objective.join(*start),
            Stopping(max_iter=self.max_iter, tol=self.tol),
            callbacks,
            kernels,
        )
        return Solution(objective.split(result.point), result)

    def _check(self, data: Ratings) -> None:
        super()._check(data)
        check_number(self, "n_factors", int, 1)
        check_number(self, "max_iter", int, 1)
        check_number(self, "tol", float, 0)
        check_number(self, "holdouts", int, 1)
        check_early_stopping(self)
        self._check_reg(data)
        if str(self.dtype) not in ("float32", "float64"):
            raise ValueError(f"dtype={self.dtype!r} is not known. Choose 'float32' or 'float64'.")
        if not (isinstance(self.callbacks, Sequence) and all(map(callable, self.callbacks))):
            raise ValueError(f"callbacks={self.callbacks!r} must be a list of functions.")

    def _check_reg(self, data: Ratings) -> None:
        if isinstance(self.reg, str) and not is_auto(self.reg):
            raise ValueError(f"reg={self.reg!r} must be a number >= 0, or 'auto'.")
        if not is_auto(self.reg):
            check_number(self, "reg", float, 0)


@dataclass(eq=False, repr=False)
class MarginFactoriser(Factoriser):
    """A factoriser whose row loss is built on a two-level loss, minimised by a descent solver."""

    _: KW_ONLY
    loss: str | TwoLevelLoss = "smooth_hinge"
    solver: str | Solver = "lbfgs"

    def _solver(self) -> Solver:
        return get_solver(self.solver)

    def _check(self, data: Ratings) -> None:
        super()._check(data)
        two_level_loss(self.loss)
        get_solver(self.solver)


def is_auto(reg: Any) -> bool:
    """Whether the weight of the penalty is to be chosen on held-out ratings."""
    return isinstance(reg, str) and reg == "auto"
