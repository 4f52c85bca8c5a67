"""What the factorisers have in common: their parameters, and how one factorisation is found."""

import inspect
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
from joblib import effective_n_jobs

from marginmf._random import as_generator
from marginmf._typing import FloatArray, IntArray
from marginmf.kernels import Kernels, get_kernels
from marginmf.losses import TwoLevelLoss, two_level_loss
from marginmf.progress import progress_bar
from marginmf.ratings.base import RatingsEstimator, check_number
from marginmf.ratings.data import Ratings
from marginmf.ratings.objective import FactorObjective, Parameters, RowLoss, RowObjective
from marginmf.ratings.placing import solve_rows
from marginmf.ratings.rows import Rows, Side
from marginmf.solvers import Callback, Result, Solver, Stopping, get_solver

#: The standard deviation of random factors.  Zero is a saddle point, and large factors start in
#: the flat parts of the losses; in between, the choice hardly matters.
START_SCALE = 0.1


class Solution(NamedTuple):
    """A factorisation and how it was found."""

    parameters: Parameters
    result: Result


#: The paragraphs that the docstrings of all factorisers share, by the mark that they replace.
SHARED_DOCS = {
    "{factor_parameters}": """\
n_factors : int
    The rank of the factorisation.
reg : float
    The weight of the penalty on the factors.""",
    "{factor_attributes}": """\
user_factors_, item_factors_ : array
    The factors, a row for each of ``users_.ids`` and ``items_.ids``.""",
    "{margin_parameters}": """\
loss : str or TwoLevelLoss
    ``"smooth_hinge"``, ``"hinge"``, ``"modified_square"``, ``"logistic"``, or a loss of your own.
solver : str or solver
    ``"lbfgs"``, ``"cg"`` or ``"gd"``, or a solver object.""",
    "{shared_parameters}": """\
max_iter, tol
    When to stop: after so many iterations, or when one of them (on the average of the last three)
    lowers the objective by less than this share of it.
random_state : int, Generator or None
    Seeds the start.
n_jobs : int or None
    Threads, as in scikit-learn: None is one, -1 is all.  The result does not depend on it.
dtype : {"float32", "float64"}
    Of the factors; sums are made in float64.
verbose : int
    1 shows a progress bar on standard error.
callbacks : sequence of callable
    Called with a `marginmf.solvers.Progress` after every iteration; returning True stops.""",
    "{shared_attributes}": """\
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
    Why the solver stopped.""",
}


@dataclass(eq=False, repr=False)
class Factoriser(RatingsEstimator):
    """A ratings estimator that minimises a `FactorObjective`.

    Subclasses are dataclasses too: their fields are the constructor's parameters, as scikit-learn
    wants them, without a constructor to write.
    """

    n_factors: int = 100
    reg: Any = 10.0
    _: KW_ONLY
    max_iter: int = 100
    tol: float = 1e-4
    random_state: Any = None
    n_jobs: int | None = None
    dtype: str = "float32"
    verbose: int = 0
    callbacks: Sequence[Callback] = ()

    _user_arrays: ClassVar[tuple[str, ...]] = ("user_factors_",)
    _item_arrays: ClassVar[tuple[str, ...]] = ("item_factors_",)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Write the parts that all docstrings share into the subclass's own."""
        super().__init_subclass__(**kwargs)
        text = inspect.cleandoc(cls.__doc__ or "")
        for mark, paragraphs in SHARED_DOCS.items():
            text = text.replace(mark, paragraphs)
        cls.__doc__ = text

    @abstractmethod
    def _solver(self) -> Solver:
        """Return who minimises the objective."""

    @abstractmethod
    def _row_loss(self, data: Ratings, stage: int = 0) -> RowLoss:
        """Return what this method asks of a user's scores, in one of its stages if it has any."""

    def _item_loss(self, data: Ratings, stage: int = 0) -> RowLoss:
        """Return what this method asks of an item's scores (`Ratings.by_item`), users given."""
        return self._row_loss(data, stage)

    def _reg(self) -> Any:
        """Return the weight of the penalty."""
        return self.reg

    def _fit(self, data: Ratings) -> None:
        with progress_bar(type(self).__name__, 1, bool(self.verbose)) as report:
            solution = self._factorise(
                data,
                self._row_loss(data),
                self._reg(),
                as_generator(self.random_state),
                self._kernels(),
                report(""),
            )
        self.item_factors_ = solution.parameters.items
        self._set_users(data, solution.parameters)
        self.history_: Any = solution.result.history
        self.n_iter_: Any = solution.result.n_iter
        self.n_evaluations_ = solution.result.n_evaluations
        self.stop_reason_: Any = str(solution.result.reason)

    def _place(self, side: Side, data: Ratings) -> None:
        if side == "user":
            factors, thresholds = self._solve_side(side, data, self._reg(), self.item_factors_)
            self._set_users(data, Parameters(factors, self.item_factors_, thresholds))
        else:
            self.item_factors_, _ = self._solve_side(side, data, self._reg(), self.user_factors_)

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
        return objective.split(solve_rows(objective, start, effective_n_jobs(self.n_jobs)))

    def _set_users(self, data: Ratings, parameters: Parameters) -> None:
        self.user_factors_ = parameters.users

    def _scores(self, users: IntArray, items: IntArray) -> FloatArray:
        return self._kernels().scores(users, items, self.user_factors_, self.item_factors_)

    def _factorise(
        self,
        data: Ratings,
        row_loss: RowLoss,
        reg: float,
        rng: np.random.Generator,
        kernels: Kernels,
        callbacks: Sequence[Callback] = (),
        start: Parameters | None = None,
    ) -> Solution:
        """Find users', items' and thresholds' part together, from ``start`` or at random."""
        objective = FactorObjective(
            data, row_loss, reg, self.n_factors, kernels, np.dtype(self.dtype).type
        )
        if start is None:
            start = Parameters(
                START_SCALE * rng.standard_normal((data.n_users, self.n_factors)),
                START_SCALE * rng.standard_normal((data.n_items, self.n_factors)),
                first_thresholds(data, row_loss),
            )
        callbacks = [*self.callbacks, *callbacks]
        return self._minimise(objective, start, self.tol, self.max_iter, callbacks)

    def _minimise(
        self,
        objective: FactorObjective,
        start: Parameters,
        tol: float,
        max_iter: int,
        callbacks: Sequence[Callback] = (),
    ) -> Solution:
        result = self._solver().minimise(
            objective,
            objective.join(*start),
            Stopping(max_iter=max_iter, tol=tol),
            callbacks,
            objective.kernels,
        )
        # Copies: the parts would otherwise keep the whole parameter vector alive.
        parts = (part.copy() for part in objective.split(result.point))
        return Solution(Parameters(*parts), result)

    def _check(self, data: Ratings) -> None:
        super()._check(data)
        check_number(self, "n_factors", int, 1)
        check_number(self, "max_iter", int, 1)
        check_number(self, "tol", float, 0)
        self._check_reg(data)
        if str(self.dtype) not in ("float32", "float64"):
            raise ValueError(f"dtype={self.dtype!r} is not known. Choose 'float32' or 'float64'.")
        if not (isinstance(self.callbacks, Sequence) and all(map(callable, self.callbacks))):
            raise ValueError(f"callbacks={self.callbacks!r} must be a list of functions.")

    def _check_reg(self, data: Ratings) -> None:
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


def first_thresholds(rows: Rows, row_loss: RowLoss) -> FloatArray:
    """Return thresholds to start from: one apart, around zero, the same for every row."""
    n = row_loss.n_thresholds(rows)
    return np.tile(np.arange(n) - (n - 1) / 2.0, (rows.n_rows, 1))
