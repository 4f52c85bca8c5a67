"""PMMMF: scores gather around a prototype of each level, and the prototypes keep apart."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from marginmf._utils.saved import floats
from marginmf._utils.types import FloatArray, IntArray
from marginmf.backends.specs import Anchored, Proximal, Spec
from marginmf.losses import two_level_loss
from marginmf.ratings.base import method
from marginmf.ratings.data import Ratings
from marginmf.ratings.factoriser import MarginFactoriser, for_unrated
from marginmf.ratings.objective import Parameters
from marginmf.thresholds import ProximalLoss


@method("pmmmf")
@dataclass(eq=False, repr=False)
class PMMMF(MarginFactoriser):
    """Proximal max-margin matrix factorisation (chapter 4 of the thesis).

    The prototype of a user's level is the mean score of the items that the user rated so.  Scores
    are drawn to their own level's prototype by a squared loss and kept a margin away from the
    others.  Prototypes follow the scores in closed form, also inside the gradient, so there is
    nothing to learn but the factors.

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

    Attributes
    ----------
    user_factors_, item_factors_ : array
        The factors, a row for each of ``users_.ids`` and ``items_.ids``.
    reg_ : float
        The regularisation strength that was used.
    reg_path_ : RegularisationPath
        The error on held-out ratings along the candidates (with ``reg="auto"``).
    prototypes_ : array of shape (n_users, n_levels)
        Each user's prototypes, NaN for levels that the user never used.
    boundaries_ : array of shape (n_users, n_levels - 1)
        Where each user's predictions change; infinite beyond the levels that the user used.
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
    >>> model = PMMMF(n_factors=5, reg=1.0, random_state=0).fit(data.pairs, data.ratings)
    >>> model.prototypes_.shape, model.boundaries_.shape
    ((50, 5), (50, 4))
    """

    _saved: ClassVar[dict[str, Any]] = {
        "prototypes_": floats("users", "levels"),
        "boundaries_": floats("users", "stages"),
    }
    _user_arrays = ("user_factors_", "prototypes_", "boundaries_")

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


def boundaries(prototypes: FloatArray, counts: IntArray) -> FloatArray:
    """Return each user's boundaries between levels.

    Between two levels a < b that the user used, with none used in between, the boundary divides
    the way from one prototype to the other in the ratio of their counts, and the levels in
    between are passed over: their boundaries are the same.  Levels below the lowest used one and
    above the highest are never predicted.

    >>> boundaries(np.array([[0.0, np.nan, 4.0]]), np.array([[3, 0, 1]]))
    array([[3., 3.]])
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
