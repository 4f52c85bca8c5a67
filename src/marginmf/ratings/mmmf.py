"""MMMF: one factorisation, and thresholds of each user's own between the levels."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from marginmf._utils.saved import floats
from marginmf._utils.types import FloatArray, IntArray
from marginmf.backends.rows import Rows
from marginmf.backends.specs import Anchored, Spec, Thresholds
from marginmf.losses import two_level_loss
from marginmf.ratings.base import method
from marginmf.ratings.data import Ratings
from marginmf.ratings.factoriser import MarginFactoriser, for_unrated
from marginmf.ratings.objective import Held, Parameters
from marginmf.thresholds import REACH, ThresholdLoss


@method("mmmf")
@dataclass(eq=False, repr=False)
class MMMF(MarginFactoriser):
    """Max-margin matrix factorisation with learned thresholds (Rennie and Srebro, 2005).

    Every user has a threshold between each two neighbouring levels.  A score should be above the
    thresholds below its rating's level and below the others, each by a margin.  Factors and
    thresholds are learned together; thresholds are not penalised.

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
    threshold : {"all", "immediate"}
        Which thresholds a rating speaks to: all of them, or the two around its level.

    Attributes
    ----------
    user_factors_, item_factors_ : array
        The factors, a row for each of ``users_.ids`` and ``items_.ids``.
    reg_ : float
        The regularisation strength that was used.
    reg_path_ : RegularisationPath
        The error on held-out ratings along the candidates (with ``reg="auto"``).
    thresholds_ : array of shape (n_users, n_levels - 1)
        Each user's thresholds.
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
        if self.threshold not in tuple(REACH):
            raise ValueError(
                f"threshold={self.threshold!r} is not known. Choose 'all' or 'immediate'."
            )

    def _set_users(self, data: Ratings, parameters: Parameters) -> None:
        super()._set_users(data, parameters)
        known = getattr(self, "thresholds_", None)
        self.thresholds_ = for_unrated(parameters.thresholds, data, known)

    def _held(self, rows: Rows) -> Held:
        counts, fresh = np.diff(rows.indptr), self._newcomers.fresh
        return Held.of(self.thresholds_.mean(axis=0), counts, fresh)

    def _user_offsets(self, users: IntArray) -> FloatArray:
        return -self.thresholds_[users]
