"""HMF: a hierarchy of two-level factorisations, one for each step of the scale."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import KW_ONLY, dataclass
from numbers import Real

import numpy as np
from joblib import effective_n_jobs

from marginmf._random import as_generator
from marginmf._typing import FloatArray, IntArray
from marginmf.kernels import get_kernels
from marginmf.losses import two_level_loss
from marginmf.progress import Report, progress_bar
from marginmf.ratings.base import MOST, check_number
from marginmf.ratings.data import Ratings
from marginmf.ratings.decoders import first_below
from marginmf.ratings.factoriser import MarginFactoriser, Solution
from marginmf.ratings.objective import RowLoss, TwoLevelRows
from marginmf.ratings.rows import Side


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
    reg : float or sequence of float
        The weight of the penalty on the factors, for all stages or one for each.
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
    tol: float = 1.5e-3
    schedule: str = "warm"
    threshold: float = 0.0

    _decode = staticmethod(first_below)

    def _fit(self, data: Ratings) -> None:
        train = self._train_warm if self.schedule == "warm" else self._train_independent
        with progress_bar("HMF", data.n_levels - 1, bool(self.verbose)) as report:
            stages = train(data, report)
        self.user_factors_ = np.stack([stage.parameters.users for stage in stages])
        self.item_factors_ = np.stack([stage.parameters.items for stage in stages])
        self.history_ = [stage.result.history for stage in stages]
        self.n_iter_ = np.array([stage.result.n_iter for stage in stages])
        self.n_evaluations_ = sum(stage.result.n_evaluations for stage in stages)
        self.stop_reason_ = [str(stage.result.reason) for stage in stages]

    def _train_warm(self, data: Ratings, report: Report) -> Sequence[Solution]:
        """Train the middle stage first, then outwards, each from its neighbour's solution."""
        rng, kernels, regs = as_generator(self.random_state), self._kernels(), self._regs(data)
        solved: dict[int, Solution] = {}
        for q in outwards(data.n_levels - 1, evenest_stage(data)):
            neighbour = next((solved[p] for p in (q - 1, q + 1) if p in solved), None)
            solved[q] = self._factorise(
                data,
                self._row_loss(data, q),
                regs[q],
                rng,
                kernels,
                report(f"stage {q + 1}"),
                start=neighbour.parameters if neighbour else None,
            )
        return [solved[q] for q in sorted(solved)]

    def _train_independent(self, data: Ratings, report: Report) -> Sequence[Solution]:
        """Train every stage from a random start of its own, side by side."""
        n_stages, n_jobs = data.n_levels - 1, effective_n_jobs(self.n_jobs)
        # Threads that are left over when every stage has one help inside the stages.
        kernels = get_kernels("cpu", max(1, n_jobs // n_stages))
        rngs = as_generator(self.random_state).spawn(n_stages)
        regs = self._regs(data)
        data.item_order  # noqa: B018  (built once here, not at the same time in every thread)

        def train(q: int) -> Solution:
            part = report(f"stage {q + 1}")
            return self._factorise(data, self._row_loss(data, q), regs[q], rngs[q], kernels, part)

        with ThreadPoolExecutor(min(n_jobs, n_stages)) as pool:
            return list(pool.map(train, range(n_stages)))

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

    def _regs(self, data: Ratings) -> list[float]:
        """Return the weight of the penalty for every stage."""
        reg = self._reg()
        regs = [reg] * (data.n_levels - 1) if np.ndim(reg) == 0 else list(reg)
        return [float(reg) for reg in regs]

    def _check(self, data: Ratings) -> None:
        super()._check(data)
        check_number(self, "threshold", float, -MOST)
        if self.schedule not in ("warm", "independent"):
            raise ValueError(
                f"schedule={self.schedule!r} is not known. Choose 'warm' or 'independent'."
            )

    def _check_reg(self, data: Ratings) -> None:
        if np.ndim(self.reg) == 0:
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
