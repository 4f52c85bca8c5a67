"""BMMMF: two levels, one factorisation, a margin between them."""

from dataclasses import KW_ONLY, dataclass

import numpy as np

from marginmf._utils.parameters import MOST, check_number
from marginmf._utils.types import FloatArray, IntArray
from marginmf.backends.specs import Spec, TwoLevel
from marginmf.losses import two_level_loss
from marginmf.ratings.base import method
from marginmf.ratings.calibration import first_below
from marginmf.ratings.data import Ratings
from marginmf.ratings.factoriser import LOW_RANK, MarginFactoriser


@method("bmmmf")
@dataclass(eq=False, repr=False)
class BMMMF(MarginFactoriser):
    """Bi-level max-margin matrix factorisation, for likes and dislikes.

    Minimises ``sum h(y x) + reg/2 (|U|^2 + |V|^2)`` over the observed pairs, where ``x`` is the
    product of the user's and the item's factors and ``y`` is +1 for the upper level and -1 for
    the lower one.

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
    threshold : float
        The upper level is predicted where the score is at least this.

    Attributes
    ----------
    user_factors_, item_factors_ : array
        The factors, a row for each of ``users_.ids`` and ``items_.ids``.
    reg_ : float
        The regularisation strength that was used.
    reg_path_ : RegularisationPath
        The error on held-out ratings along the candidates (with ``reg="auto"``).
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
    >>> pairs = [("ann", "x"), ("ann", "y"), ("bob", "x"), ("bob", "y"), ("cy", "x")]
    >>> model = BMMMF(n_factors=2, reg=0.1, random_state=0).fit(pairs, [1, 0, 1, 0, 1])
    >>> model.predict([("cy", "x"), ("cy", "y")])
    array([1., 0.])
    """

    _: KW_ONLY
    threshold: float = 0.0

    _decode = staticmethod(first_below)
    _path_rank = LOW_RANK

    def _specs(self, data: Ratings) -> list[Spec]:
        return [TwoLevel(two_level_loss(self.loss))]

    def _user_offsets(self, users: IntArray) -> FloatArray:
        return np.full((len(users), 1), -self.threshold, self.dtype)

    def _check(self, data: Ratings) -> None:
        super()._check(data)
        check_number(self, "threshold", float, -MOST)
        if data.n_levels != 2:
            raise ValueError(
                f"BMMMF tells two levels apart, but the ratings have {data.n_levels}. Use HMF, "
                "MMMF or PMMMF, or turn the ratings into likes and dislikes first."
            )
