"""What the factorisers have in common: their parameters, and how one factorisation is found."""

import inspect
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple

import numpy as np

from marginmf._random import as_generator
from marginmf._typing import FloatArray, IntArray
from marginmf.kernels import Kernels
from marginmf.losses import TwoLevelLoss, two_level_loss
from marginmf.progress import progress_bar
from marginmf.ratings.base import RatingsEstimator, check_number
from marginmf.ratings.blocks import Columns, as_stages, block_product
from marginmf.ratings.data import Ratings
from marginmf.ratings.objective import FactorObjective, Parameters, RowLoss, first_thresholds
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

    def _fit(self, data: Ratings) -> None:
        with progress_bar(type(self).__name__, 1, bool(self.verbose)) as report:
            solution = self._factorise(
                data,
                self._row_loss(data),
                self.reg,
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

    def _fold_in(self, data: Ratings) -> None:
        solution = self._factorise_users(data, self._row_loss(data), self.reg, self.item_factors_)
        self._set_users(data, solution.parameters)

    def _set_users(self, data: Ratings, parameters: Parameters) -> None:
        self.user_factors_ = parameters.users

    def _scores(self, users: IntArray, items: IntArray) -> FloatArray:
        return self._kernels().scores(users, items, self.user_factors_, self.item_factors_)

    def _margin_block(self, users: IntArray, items: Columns) -> tuple[FloatArray, FloatArray]:
        return self._score_block(users, items), self._user_offsets(users)

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

    def _factorise_users(
        self, data: Ratings, row_loss: RowLoss, reg: float, items: FloatArray
    ) -> Solution:
        """Find the users' part alone; the items' factors are given.

        Each user's problem is convex and small, so it is solved to the end: far fewer than these
        iterations are needed, and starting at zero makes the answer free of chance.
        """
        n_factors = items.shape[1]
        objective = FactorObjective(
            data, row_loss, reg, n_factors, self._kernels(), items.dtype.type, items
        )
        start = Parameters(
            np.zeros((data.n_users, n_factors)), items, first_thresholds(data, row_loss)
        )
        return self._minimise(objective, start, tol=1e-6, max_iter=500)

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
