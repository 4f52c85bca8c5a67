"""The max-margin factorisers: BMMMF, MMMF, PMMMF and HMF.

They differ in what they ask of a user's scores, and in what makes margins of those.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial
from numbers import Real
from typing import Any, ClassVar

import numpy as np

from marginmf._utils.parameters import MOST, check_choice, check_number, warn
from marginmf._utils.saved import ListOf, Optional, floats
from marginmf._utils.types import Float64Array, FloatArray, IntArray
from marginmf.backends import get_backend
from marginmf.backends.rows import Rows
from marginmf.backends.specs import Anchored, Proximal, Spec, Thresholds, TwoLevel
from marginmf.losses import TwoLevelLoss, two_level_loss
from marginmf.ratings.base import method
from marginmf.ratings.data import Ratings
from marginmf.ratings.factoriser import LOW_RANK, Factoriser, is_auto, ratings_solver
from marginmf.ratings.fitting.calibration import first_below
from marginmf.ratings.fitting.objective import Parameters
from marginmf.ratings.fitting.priors import ENOUGH_RATINGS
from marginmf.ratings.fitting.stages import Solution, Stage, Training
from marginmf.ratings.scales import FOR_MANY_LEVELS
from marginmf.solvers import Solver, get_solver
from marginmf.thresholds import REACH, ProximalLoss, ThresholdLoss

#: More levels than this are slow to learn, and few users use them all.
MANY_LEVELS = 20
#: How strongly the thresholds of new users are drawn to those that users have on average: a
#: handful of ratings says little of four thresholds.  With `ENOUGH_RATINGS` they no longer are.
THRESHOLD_STRENGTH = 2.0


@dataclass(eq=False, repr=False)
class MarginFactoriser(Factoriser):
    """A factoriser whose row loss is built on a two-level loss, minimised by a descent solver.

    Parameters
    ----------
    loss : str or TwoLevelLoss
        ``"smooth_hinge"``, ``"hinge"``, ``"modified_square"``, ``"logistic"``, or a loss of your
        own.
    solver : str or solver
        ``"lbfgs"``, ``"cg"`` or ``"gd"``, or a solver object.
    """

    _: KW_ONLY
    loss: str | TwoLevelLoss = "smooth_hinge"
    solver: str | Solver = "lbfgs"

    #: What there is one of for every level but one.
    _learned_for_levels: ClassVar[str] = "thresholds for every user"

    def _solver(self) -> Solver:
        return ratings_solver(self.solver)

    def _check(self, data: Ratings) -> None:
        super()._check(data)
        two_level_loss(self.loss)
        get_solver(self.solver)
        n_values = np.count_nonzero(np.bincount(data.codes)) if data.n_levels > MANY_LEVELS else 0
        # A few ratings of new users say nothing about the scale.
        if len(data) >= 1000 and 2 * n_values > len(data):
            raise ValueError(
                f"The ratings have {n_values} distinct values among {len(data)}: that is a "
                f"measurement, not a scale of levels. {FOR_MANY_LEVELS}"
            )

    def _fit(self, data: Ratings) -> None:
        if data.n_levels > MANY_LEVELS:
            warn(
                f"The ratings have {data.n_levels} levels: {type(self).__name__} learns "
                f"{data.n_levels - 1} {self._learned_for_levels}. {FOR_MANY_LEVELS}",
            )
        super()._fit(data)


@dataclass(eq=False, repr=False)
class TwoLevelFactoriser(MarginFactoriser):
    """A factoriser whose stages each tell "above a level" from "not above it".

    Parameters
    ----------
    threshold : float
        A stage says "above" where its score is at least this.
    """

    _: KW_ONLY
    threshold: float = 0.0

    _decode = staticmethod(first_below)
    _path_rank = LOW_RANK

    def _user_offsets(self, users: IntArray) -> FloatArray:
        return np.full((len(users), len(self.levels_) - 1), -self.threshold, self.dtype)

    def _check(self, data: Ratings) -> None:
        super()._check(data)
        check_number(self, "threshold", float, -MOST)


@method("bmmmf")
@dataclass(eq=False, repr=False)
class BMMMF(TwoLevelFactoriser):
    """Bi-level max-margin matrix factorisation, for likes and dislikes.

    Minimises ``sum h(y x) + reg/2 (|U|^2 + |V|^2)`` over the observed pairs, where ``x`` is the
    product of the user's and the item's factors and ``y`` is +1 for the upper level and -1 for
    the lower one.

    Examples
    --------
    >>> pairs = [("ann", "x"), ("ann", "y"), ("bob", "x"), ("bob", "y"), ("cy", "x")]
    >>> model = BMMMF(n_factors=2, reg=0.1, random_state=0).fit(pairs, [1, 0, 1, 0, 1])
    >>> model.predict([("cy", "x"), ("cy", "y")])
    array([1., 0.])
    """

    def _specs(self, data: Ratings) -> list[Spec]:
        return [TwoLevel(two_level_loss(self.loss))]

    def _check(self, data: Ratings) -> None:
        super()._check(data)
        if data.n_levels != 2:
            raise ValueError(
                f"BMMMF tells two levels apart, but the ratings have {data.n_levels}. Use HMF, "
                "MMMF or PMMMF, or turn the ratings into likes and dislikes first."
            )


@method("mmmf")
@dataclass(eq=False, repr=False)
class MMMF(MarginFactoriser):
    """Max-margin matrix factorisation with learned thresholds (Rennie and Srebro, 2005).

    Every user has a threshold between each two neighbouring levels.  A score should be above the
    thresholds below its rating's level and below the others, each by a margin.  Factors and
    thresholds are learned together; thresholds are not penalised.

    Parameters
    ----------
    threshold : {"all", "immediate"}
        Which thresholds a rating speaks to: all of them, or the two around its level.

    Attributes
    ----------
    thresholds_ : array of shape (n_users, n_levels - 1)
        Each user's thresholds.

    Examples
    --------
    >>> from marginmf.datasets import make_ratings
    >>> data = make_ratings(50, 40, n_factors=2, observed=0.5, random_state=0)
    >>> model = MMMF(n_factors=5, reg=1.0, random_state=0).fit(data.pairs, data.ratings)
    >>> model.thresholds_.shape
    (50, 4)
    """

    _saved: ClassVar[dict[str, Any]] = {"thresholds_": floats("users", "stages")}
    _: KW_ONLY
    threshold: str = "all"

    _user_arrays = ("user_factors_", "thresholds_")

    def _specs(self, data: Ratings) -> list[Spec]:
        return [Thresholds(two_level_loss(self.loss), REACH[self.threshold])]

    def _item_specs(self, data: Ratings) -> list[Spec]:
        loss = ThresholdLoss(two_level_loss(self.loss), REACH[self.threshold])
        return [Anchored(loss, self.thresholds_[data.by_item.indices])]

    def _check(self, data: Ratings) -> None:
        super()._check(data)
        check_choice(self, "threshold", tuple(REACH))

    def _set_users(self, data: Ratings, parameters: Parameters) -> None:
        super()._set_users(data, parameters)
        known = getattr(self, "thresholds_", None)
        self.thresholds_ = for_unrated(parameters.thresholds, data, known)

    def _usual_thresholds(self, rows: Rows) -> tuple[FloatArray, Float64Array]:
        shares = np.maximum(1.0 - np.diff(rows.indptr) / ENOUGH_RATINGS, 0.0)
        strengths = np.where(self._new_rows.fresh, THRESHOLD_STRENGTH * shares, 0.0)
        return self.thresholds_.mean(axis=0), strengths

    def _user_offsets(self, users: IntArray) -> FloatArray:
        return -self.thresholds_[users]


@method("pmmmf")
@dataclass(eq=False, repr=False)
class PMMMF(MarginFactoriser):
    """Proximal max-margin matrix factorisation (Kumar's thesis, chapter 4).

    The prototype of a user's level is the mean score of the items that the user rated so.  Scores
    are drawn to their own level's prototype by a squared loss and kept a margin away from the
    others.  Prototypes follow the scores in closed form, also inside the gradient, so there is
    nothing to learn but the factors.

    Attributes
    ----------
    prototypes_ : array of shape (n_users, n_levels)
        Each user's prototypes, NaN for levels that the user never used.
    boundaries_ : array of shape (n_users, n_levels - 1)
        Where each user's predictions change; infinite beyond the levels that the user used.

    Examples
    --------
    >>> from marginmf.datasets import make_ratings
    >>> data = make_ratings(50, 40, n_factors=2, observed=0.5, random_state=0)
    >>> model = PMMMF(n_factors=5, reg=1.0, random_state=0).fit(data.pairs, data.ratings)
    >>> model.prototypes_.shape, model.boundaries_.shape
    ((50, 5), (50, 4))
    """

    _saved: ClassVar[dict[str, Any]] = {
        # Of levels that a user never used there is no prototype, and no finite boundary.
        "prototypes_": floats("users", "levels", most=None),
        "boundaries_": floats("users", "stages", most=None),
    }
    _user_arrays = ("user_factors_", "prototypes_", "boundaries_")

    def _flaws(self, lengths: Mapping[str, int]) -> Iterator[str]:
        yield from super()._flaws(lengths)
        if np.isnan(self.boundaries_).any():
            yield ".boundaries_ has a number that is no boundary"

    def _specs(self, data: Ratings) -> list[Spec]:
        return [Proximal(two_level_loss(self.loss))]

    def _item_specs(self, data: Ratings) -> list[Spec]:
        loss = ProximalLoss(two_level_loss(self.loss))
        return [Anchored(loss, self.prototypes_[data.by_item.indices])]

    def _set_users(self, data: Ratings, parameters: Parameters) -> None:
        super()._set_users(data, parameters)
        backend, (spec,) = self._arithmetic(), self._specs(data)
        scores = backend.scores(data.rows, data.indices, parameters.users, self.item_factors_)
        means = backend.row_losses(data, spec, scores, parameters.thresholds).means
        assert means is not None
        self.prototypes_ = means
        own = boundaries(means, data.level_counts("user"))
        self.boundaries_ = for_unrated(own, data, getattr(self, "boundaries_", None))

    def _user_offsets(self, users: IntArray) -> FloatArray:
        return -self.boundaries_[users]


def for_unrated(own: FloatArray, data: Ratings, known: FloatArray | None) -> FloatArray:
    """Return rows of users, with the mean of known or of rated ones for users without ratings."""
    rated = np.diff(data.indptr) > 0
    if rated.all():
        return own
    others = own[rated] if known is None else known
    finite = np.isfinite(others)
    total = np.where(finite, others, 0).sum(axis=0, dtype=np.float64)
    mean = (total / np.maximum(finite.sum(axis=0), 1)).astype(own.dtype)
    return np.where(rated[:, None], own, mean)


def boundaries(prototypes: FloatArray, counts: IntArray) -> FloatArray:
    """Return each user's boundaries between levels.

    Between two levels that the user used, with none used in between, the boundary divides the way
    from one prototype to the other in the ratio of their counts.  Levels below the lowest used one
    and above the highest are never predicted.
    """
    n_users, n_levels = prototypes.shape
    used = counts > 0
    level = np.arange(n_levels)
    # The nearest used level at or below each boundary, and the nearest above it; -1 is none.
    below = np.maximum.accumulate(np.where(used, level, -1), axis=1)[:, :-1]
    above = np.minimum.accumulate(np.where(used, level, n_levels)[:, ::-1], axis=1)[:, -2::-1]
    user = np.arange(n_users)[:, None]
    a, b = np.maximum(below, 0), np.minimum(above, n_levels - 1)
    # Only levels beyond the used ones have no count on one side, and those are overwritten.
    share = counts[user, a] / np.maximum(counts[user, a] + counts[user, b], 1)
    between = prototypes[user, a] + share * (prototypes[user, b] - prototypes[user, a])
    between = np.where(below < 0, -np.inf, between)
    return np.where(above == n_levels, np.inf, between).astype(prototypes.dtype)


@method("hmf")
@dataclass(eq=False, repr=False)
class HMF(TwoLevelFactoriser):
    """Hierarchical matrix factorisation (Kumar's thesis, chapter 3).

    Stage ``q`` asks of every rating "is it above level q?" and answers with a two-level
    factorisation of its own, so that each step of the scale has its own hyperplanes, with a full
    margin.  The prediction is the first level whose stage says no.

    Parameters
    ----------
    reg : float, sequence of float or "auto"
        The regularisation strength, for all stages or one for each.  Auto: for each stage the one
        with the smallest zero-one error on held-out ratings; see `marginmf.tuning`.
    schedule : {"warm", "independent"}
        How the stages are trained.  Warm: outwards from the stage that splits the ratings most
        evenly, each from its neighbour's solution, in the fewest iterations.  Independent: each
        from a random start, side by side on ``n_jobs`` threads (the parallel form of Kumar's
        thesis).

    Attributes
    ----------
    user_factors_, item_factors_ : array of shape (n_levels - 1, n_ids, n_factors)
        The factors of every stage.

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

    _learned_for_levels = "factorisations"
    _selection_metric = "zero-one error"

    def _flaws(self, lengths: Mapping[str, int]) -> Iterator[str]:
        yield from super()._flaws(lengths)
        if len(self.reg_) != lengths["stages"]:
            yield f".reg_ has {len(self.reg_)} strengths for {lengths['stages']} stages"

    def _specs(self, data: Ratings) -> list[Spec]:
        return [TwoLevel(two_level_loss(self.loss), cut) for cut in range(data.n_levels - 1)]

    def _stages(self, data: Ratings) -> list[Stage]:
        up_to = np.bincount(data.codes, minlength=data.n_levels).cumsum()[:-1] / len(data)
        middle, stages = int(np.abs(up_to - 0.5).argmin()), []
        for q, spec in enumerate(self._specs(data)):
            # Warm: from the stage that splits the ratings most evenly outwards.
            cold = q == middle or self.schedule != "warm"
            after = None if cold else q + (1 if q < middle else -1)
            error = partial(_zero_one_error, q)
            stages.append(Stage(spec, self._stage_margins, error, f"stage {q + 1}", after))
        return stages

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

    def _check(self, data: Ratings) -> None:
        super()._check(data)
        check_choice(self, "schedule", ("warm", "independent"))

    def _check_reg(self, data: Ratings) -> None:
        if is_auto(self.reg) or np.ndim(self.reg) == 0:
            super()._check_reg(data)
            return
        if len(self.reg) != data.n_levels - 1:
            raise ValueError(
                f"reg={list(self.reg)!r} has {len(self.reg)} values, but the {data.n_levels} "
                f"levels of these ratings make {data.n_levels - 1} stages: give one value for each "
                "stage, or one for all."
            )
        if not all(isinstance(reg, Real) and 0 <= float(reg) <= MOST for reg in self.reg):
            raise ValueError(f"reg={self.reg!r} must hold numbers >= 0.")


def _zero_one_error(stage: int, margins: FloatArray, codes: IntArray) -> float:
    """Return how often a stage is wrong about being above its level."""
    return float(((margins[:, 0] >= 0) != (codes > stage)).mean())
