"""HMF: a hierarchy of two-level factorisations, one for each step of the scale."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from marginmf._utils.parameters import MOST, check_number
from marginmf._utils.saved import ListOf, Optional, floats
from marginmf._utils.types import FloatArray, IntArray
from marginmf.backends import get_backend
from marginmf.backends.rows import Side
from marginmf.backends.specs import Spec, TwoLevel
from marginmf.losses import two_level_loss
from marginmf.ratings.base import method
from marginmf.ratings.calibration import first_below
from marginmf.ratings.data import Ratings
from marginmf.ratings.factoriser import LOW_RANK, MarginFactoriser, is_auto
from marginmf.ratings.objective import Parameters
from marginmf.ratings.stages import Solution, Stage, Training


@method("hmf")
@dataclass(eq=False, repr=False)
class HMF(MarginFactoriser):
    """Hierarchical matrix factorisation (chapter 3 of the thesis).

    Stage ``q`` asks of every rating "is it above level q?" and answers with a two-level
    factorisation of its own, so that each step of the scale has its own hyperplanes, with a full
    margin.  The prediction is the first level whose stage says no.

    Parameters
    ----------
    n_factors : int or "auto"
        The rank of every stage's factorisation.  Auto: 100, or 48 where factors are built from
        raters or features, or as many as there are users or items if those are fewer.
    reg : float, sequence of float or "auto"
        The regularisation strength, for all stages or one for each.  Auto: for each stage the one
        with the smallest zero-one error on held-out ratings, found along a path of
        candidates; see `marginmf.tuning`.
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
    loss : str or TwoLevelLoss
        ``"smooth_hinge"``, ``"hinge"``, ``"modified_square"``, ``"logistic"``, or a loss of your
        own.
    solver : str or solver
        ``"lbfgs"``, ``"cg"`` or ``"gd"``, or a solver object.
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
        The regularisation strength that was used, for every stage.
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

    _saved: ClassVar[dict[str, Any]] = {
        "reg_": ListOf(float),
        "reg_path_": Optional(ListOf("RegularisationPath")),
        "user_factors_": floats("stages", "users", "factors"),
        "item_factors_": floats("stages", "items", "factors"),
    }
    _: KW_ONLY
    # Stages are judged by their sign alone, and that settles long before the objective does.
    tol: float = 2e-3
    schedule: str = "warm"
    threshold: float = 0.0

    _learned_for_levels = "factorisations"
    _decode = staticmethod(first_below)
    _selection_metric = "zero-one error"
    _path_rank = LOW_RANK

    def _specs(self, data: Ratings) -> list[Spec]:
        return [TwoLevel(two_level_loss(self.loss), cut) for cut in range(data.n_levels - 1)]

    def _stages(self, data: Ratings) -> list[Stage]:
        middle = evenest_stage(data)
        return [
            Stage(
                spec,
                self._stage_margins,
                partial(_zero_one_error, q),
                f"stage {q + 1}",
                after=_towards(q, middle) if self.schedule == "warm" else None,
            )
            for q, spec in enumerate(self._specs(data))
        ]

    def _stage_margins(
        self, parameters: Parameters, users: IntArray, items: IntArray
    ) -> FloatArray:
        # One thread: stages may be tried side by side.
        backend = get_backend(self.backend)
        scores = backend.scores(users, items, parameters.users, parameters.items)
        return scores[:, None] - self.threshold

    def _store_parameters(self, data: Ratings, stages: Sequence[Parameters]) -> None:
        self.user_factors_ = np.stack([stage.users for stage in stages])
        self.item_factors_ = np.stack([stage.items for stage in stages])

    def _record(self, training: Training, solutions: Sequence[Solution]) -> None:
        super()._record(training, solutions)
        self.n_iter_ = np.array(self.n_iter_)

    def _place(self, side: Side, data: Ratings) -> None:
        known, given = self.user_factors_, self.item_factors_
        if side == "item":
            known, given = given, known
        stages = zip(self._specs(data), self.reg_, known, given, strict=True)
        solved = [
            self._solve_rows(data.view(side), spec, reg, factors, self._means(own, reg))[0]
            for spec, reg, own, factors in stages
        ]
        setattr(self, f"{side}_factors_", np.stack(solved))

    def _user_offsets(self, users: IntArray) -> FloatArray:
        return np.full((len(users), len(self.levels_) - 1), -self.threshold, self.dtype)

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


def _towards(stage: int, middle: int) -> int | None:
    """Return the neighbour of a stage on the way to the middle one."""
    return None if stage == middle else stage + (1 if stage < middle else -1)


def _zero_one_error(stage: int, margins: FloatArray, codes: IntArray) -> float:
    """Return how often a stage is wrong about being above its level."""
    return float(((margins[:, 0] >= 0) != (codes > stage)).mean())
