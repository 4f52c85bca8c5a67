"""HMF: a hierarchy of two-level factorisations, one for each step of the scale."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any

import numpy as np

from marginmf._parameters import MOST, check_number
from marginmf._threads import n_threads
from marginmf._typing import FloatArray, IntArray
from marginmf.backends import Kernels, get_kernels
from marginmf.losses import two_level_loss
from marginmf.ratings.data import Ratings
from marginmf.ratings.decoders import first_below
from marginmf.ratings.factoriser import (
    LOW_RANK,
    MarginFactoriser,
    Work,
    is_auto,
)
from marginmf.ratings.holdout import HeldOut
from marginmf.ratings.objective import Parameters, RowLoss, TwoLevelRows
from marginmf.ratings.rows import Side
from marginmf.solvers import Result


@dataclass(eq=False, repr=False)
class HMF(MarginFactoriser):
    """Hierarchical matrix factorisation (chapter 3 of the thesis).

    Stage ``q`` asks of every rating "is it above level q?" and answers with a two-level
    factorisation of its own, so that each step of the scale has its own hyperplanes, with a full
    margin.  The prediction is the first level whose stage says no.

    Parameters
    ----------
    n_factors : int
        The rank of every stage's factorisation.
    reg : float, sequence of float or "auto"
        The weight of the penalty on the factors, for all stages or one for each.  Auto: for each
        stage the one with the smallest zero-one error on held-out ratings, found along a path of
        candidates; see `marginmf.tuning`.
    {selection_parameters}
    {margin_parameters}
    {shared_parameters}
    schedule : {"warm", "independent"}
        How the stages are trained.  Warm: from the middle stage, which splits the ratings most
        evenly, outwards, each from its neighbour's solution; that needs the fewest iterations.
        Independent: each from a random start of its own, side by side on ``n_jobs`` threads (the
        parallel form of the thesis).
    threshold : float
        A stage says "above" where its score is at least this.

    Attributes
    ----------
    user_factors_, item_factors_ : array of shape (n_levels - 1, n_ids, n_factors)
        The factors of every stage.
    reg_ : list of float
        The weight of the penalty that was used, for every stage.
    reg_path_ : list of RegularisationPath
        For every stage, the error on held-out ratings along the candidates (with
        ``reg="auto"``).
    users_, items_ : IdIndex
        The ids seen in training, and their codes.
    levels_ : array
        The scale seen in training, ascending.
    ratings_ : Ratings
        What the users were learned from.
    history_ : list of list of Record
        For every stage: objective, gradient norm, evaluations and seconds after every iteration.
    n_iter_ : array of shape (n_levels - 1,)
        How many iterations every stage took.
    n_evaluations_ : int
        How many gradients all stages took together.
    stop_reason_ : list of str
        Why the solver stopped, for every stage.
    validation_errors_ : list of list of float
        For every stage: the zero-one error on held-out ratings at the start and after every
        iteration (with ``early_stopping``).

    Examples
    --------
    >>> from marginmf.datasets import make_ratings
    >>> data = make_ratings(50, 40, n_factors=2, observed=0.5, random_state=0)
    >>> model = HMF(n_factors=5, reg=[1, 2, 2, 1], random_state=0).fit(data.pairs, data.ratings)
    >>> model.decision_function(data.pairs[:3]).shape
    (3, 4)
    """

    _: KW_ONLY
    # Stages are judged by their sign alone, and that settles long before the objective does.
    tol: float = 2e-3
    schedule: str = "warm"
    threshold: float = 0.0

    _decode = staticmethod(first_below)
    _selection_metric = "zero-one error"
    _path_rank = LOW_RANK

    def _n_stages(self, data: Ratings) -> int:
        return data.n_levels - 1

    def _stage_name(self, stage: int) -> str:
        return f"stage {stage + 1}"

    def _each_stage(self, data: Ratings, work: Callable[[int, Kernels], Work]) -> list[Work]:
        n_stages, n_jobs = self._n_stages(data), n_threads(self.n_jobs)
        if self.schedule == "warm":
            kernels = self._kernels()
            done = {q: work(q, kernels) for q in outwards(n_stages, evenest_stage(data))}
            return [done[q] for q in range(n_stages)]
        # Threads that are left over when every stage has one help inside the stages.
        kernels = get_kernels("cpu", max(1, n_jobs // n_stages))
        return self._journal.side_by_side(lambda q: work(q, kernels), range(n_stages), n_jobs)

    def _neighbour(self, stage: int, done: Mapping[int, Work]) -> Work | None:
        if self.schedule == "independent":
            return None
        return next((done[q] for q in (stage - 1, stage + 1) if q in done), None)

    def _of_stages(self, values: list[Any]) -> Any:
        return values

    def _adopt(self, data: Ratings, stages: Sequence[Parameters]) -> None:
        self.user_factors_ = np.stack([stage.users for stage in stages])
        self.item_factors_ = np.stack([stage.items for stage in stages])

    def _record(self, results: Sequence[Result]) -> None:
        super()._record(results)
        self.n_iter_ = np.array(self.n_iter_)

    def _held_out_margins(
        self, held_out: HeldOut, stage: int, parameters: Parameters
    ) -> FloatArray:
        # One thread: stages may be tried side by side.
        scores = get_kernels("cpu", 1).scores(
            held_out.users, held_out.items, parameters.users, parameters.items
        )
        return scores[:, None] - self.threshold

    def _held_out_error(self, held_out: HeldOut, stage: int, margins: FloatArray) -> float:
        return float(((margins[:, 0] >= 0) != (held_out.codes > stage)).mean())

    def _place(self, side: Side, data: Ratings) -> None:
        given = self.item_factors_ if side == "user" else self.user_factors_
        stages = [
            self._solve_side(side, data, reg, given[q], q)[0]
            for q, reg in enumerate(self._regs(data))
        ]
        setattr(self, f"{side}_factors_", np.stack(stages))

    def _row_loss(self, data: Ratings, stage: int = 0) -> RowLoss:
        return TwoLevelRows(two_level_loss(self.loss), cut=stage)

    def _margins(self, users: IntArray, items: IntArray) -> FloatArray:
        kernels = self._kernels()
        stages = zip(self.user_factors_, self.item_factors_, strict=True)
        scores = [kernels.scores(users, items, U, V) for U, V in stages]
        return np.stack(scores, axis=1) - self.threshold

    def _user_offsets(self, users: IntArray) -> FloatArray:
        return np.full((len(users), len(self.levels_) - 1), -float(self.threshold))

    def _check(self, data: Ratings) -> None:
        super()._check(data)
        check_number(self, "threshold", float, -MOST)
        if self.schedule not in ("warm", "independent"):
            raise ValueError(
                f"schedule={self.schedule!r} is not known. Choose 'warm' or 'independent'."
            )

    def _check_reg(self, data: Ratings) -> None:
        if is_auto(self.reg) or np.ndim(self.reg) == 0:
            super()._check_reg(data)
            return
        if len(self.reg) != data.n_levels - 1:
            raise ValueError(
                f"reg has {len(self.reg)} values, but the {data.n_levels} levels of these ratings "
                f"make {data.n_levels - 1} stages: give one value for each stage, or one for all."
            )
        if not all(isinstance(reg, Real) and 0 <= float(reg) <= MOST for reg in self.reg):
            raise ValueError(f"reg={self.reg!r} must hold numbers >= 0.")


def evenest_stage(data: Ratings) -> int:
    """Return the stage that splits the ratings most evenly: the middle of the hierarchy."""
    up_to = np.bincount(data.codes, minlength=data.n_levels).cumsum()[:-1] / len(data)
    return int(np.abs(up_to - 0.5).argmin())


def outwards(n: int, middle: int) -> list[int]:
    """Return 0..n-1 from the middle outwards, so that each has a neighbour before it.

    >>> outwards(4, 2)
    [2, 1, 3, 0]
    """
    return sorted(range(n), key=lambda q: abs(q - middle))
