"""NMF: factors without negative numbers, by multiplicative updates."""

from collections.abc import Iterator, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from marginmf._utils.parameters import check_callbacks, check_choice, check_number, n_threads
from marginmf._utils.random import as_generator
from marginmf._utils.saved import TRAINING
from marginmf._utils.types import Float64Array, FloatArray, IntArray
from marginmf.backends.rows import Rows, Side
from marginmf.backends.threads import row_bounds, run
from marginmf.progress import progress_bar
from marginmf.ratings.base import method
from marginmf.ratings.baselines.products import FactorEstimates, mean_of
from marginmf.ratings.data import Ratings
from marginmf.ratings.lists.relevance import Columns
from marginmf.solvers import Callback, Counted, State, Stopping, Vectors

#: How many updates new users and items get at most, and the change, as a share of a row's sum, that
#: is its last.  Their problem is convex.
FOLD_IN_UPDATES, FOLD_IN_CHANGE = 2000, 1e-6


@method("nmf")
@dataclass(eq=False, repr=False)
class NMF(FactorEstimates):
    """Non-negative matrix factorisation of the observed ratings.

    Users and items have factors that are never negative, so all that a factor can do is to add to
    an estimate, their product.  The factors minimise half the squared errors plus ``reg/2`` times
    their squares or, with ``loss="kl"``, the generalised Kullback-Leibler divergence of the
    estimates from the ratings plus ``reg`` times their sum.  Multiplicative updates (Lee and
    Seung, 2001; weighted by what is observed: Zhang, Wang, Ford and Makedon, 2006) never raise that
    objective.

    Where the scale has levels below zero, ratings are counted from the lowest one: a product of
    factors without negative numbers cannot reach below zero.  The penalty draws estimates to
    that zero.  Users and items without any rating, which calibration may have, get the mean.

    Parameters
    ----------
    n_factors : int
        The rank of the factorisation.  With more factors the errors on new ratings rise again,
        unless there are few updates; with two they differ much from one start to another.
    reg : float
        The regularisation strength.
    loss : {"squared", "kl"}
        What is minimised.
    max_iter, tol
        When to stop: after this many updates of both sides, or when one (on the average of the last
        three) lowers the objective by less than this share.
    random_state : int, Generator or None
        Seeds the start.
    callbacks : sequence of callable
        Called with a `marginmf.solvers.Progress` after every update; returning True stops.

    Attributes
    ----------
    zero_ : float
        What ratings are counted from: zero, or the lowest level where that is below zero.
    history_, n_iter_, n_evaluations_, stop_reason_
        As for the factorisers; the gradient's norm is not known.

    Examples
    --------
    >>> from marginmf.datasets import make_ratings
    >>> data = make_ratings(50, 40, n_factors=2, observed=0.5, random_state=0)
    >>> model = NMF(n_factors=4, random_state=0).fit(data.pairs, data.ratings)
    >>> bool((model.item_factors_ > 0).all())
    True
    >>> print(f"training error {-model.score(data.pairs, data.ratings):.1f} stars")
    training error 0.0 stars
    """

    _saved: ClassVar[dict[str, Any]] = {**TRAINING, "zero_": float}
    _rank_axis = "factors"
    n_factors: int = 5
    reg: float = 3.0
    _: KW_ONLY
    loss: str = "squared"
    max_iter: int = 400
    tol: float = 1e-6
    calibrate: bool = True
    random_state: Any = None
    n_jobs: int | None = None
    verbose: int = 0
    callbacks: Sequence[Callback] = ()

    def _fit(self, data: Ratings) -> None:
        rng = self._checkpoint.generator("random start", self.random_state)
        self.mean_ = mean_of(data)
        self.zero_ = min(float(data.levels[0]), float(data.values.min(initial=0.0)))
        counts = np.concatenate([np.diff(data.indptr), np.diff(data.item_indptr)])
        n_factors = int(self.n_factors)
        start = self._typical(n_factors) * rng.uniform(0.5, 1.5, (len(counts), n_factors))
        # What nothing is known of is zero, and nothing else is.
        start[counts == 0] = 0.0
        solver = Multiplicative(self._updates("user", data), self._updates("item", data))
        rules = Stopping(int(self.max_iter), float(self.tol))
        with progress_bar(type(self).__name__, 1, bool(self.verbose)) as report:
            watching = [*report(""), *self.callbacks]
            result = self._checkpoint.minimise("updates", solver, None, start, rules, watching)
        users, items = np.split(result.point, [data.n_users])
        self.user_factors_, self.item_factors_ = users.copy(), items.copy()
        self._record(result)

    def _typical(self, n_factors: int) -> float:
        """Return the number that, as each of n factors, would make all estimates the mean."""
        return float(np.sqrt(max(self.mean_ - self.zero_, 0.0) / n_factors))

    def _updates(self, side: Side, data: Ratings) -> "RowUpdates":
        # Values of binned scales may be outside the range that training had.
        targets = np.maximum(data.values - self.zero_, 0.0)
        rows = data.view(side)
        if side == "item":
            targets = targets[data.item_order]
        divergence, threads = self.loss == "kl", n_threads(self.n_jobs)
        return RowUpdates(rows, targets, float(self.reg), divergence, threads)

    def _fold_in(self, side: Side, data: Ratings) -> None:
        given = self.item_factors_ if side == "user" else self.user_factors_
        updates = self._updates(side, data)
        n_factors = given.shape[1]  # not the parameter, which may have been set to another
        rows = np.full((updates.rows.n_rows, n_factors), max(self._typical(n_factors), 1e-6))
        updates.apply(rows, given, FOLD_IN_UPDATES, FOLD_IN_CHANGE)
        setattr(self, f"{side}_factors_", rows)

    def _estimates(self, users: IntArray, items: IntArray) -> FloatArray:
        estimates = self.zero_ + super()._estimates(users, items)
        unrated = ~(self.user_factors_[users].any(axis=1) & self.item_factors_[items].any(axis=1))
        return np.where(unrated, self.mean_, estimates)

    def _score_block(self, users: IntArray, items: Columns) -> FloatArray:
        scores = super()._score_block(users, items) + np.float32(self.zero_)
        scores[~self.user_factors_[users].any(axis=1)] = self.mean_
        scores[:, ~self.item_factors_[items].any(axis=1)] = self.mean_
        return scores

    def _check(self, data: Ratings) -> None:
        super()._check(data)
        check_number(self, "n_factors", int, 1)
        check_number(self, "reg", float, 0)
        check_choice(self, "loss", ("squared", "kl"))
        check_number(self, "max_iter", int, 1)
        check_number(self, "tol", float, 0)
        as_generator(self.random_state)
        check_callbacks(self)


@dataclass(frozen=True, eq=False)
class RowUpdates:
    """The multiplicative updates of one side's rows while the other side's are given."""

    rows: Rows
    targets: Float64Array
    reg: float
    divergence: bool
    n_threads: int

    def apply(
        self, own: FloatArray, given: FloatArray, n_updates: int = 1, tol: float = 0.0
    ) -> float:
        """Update rows in place; return the objective before the last update, without the others.

        A row gets fewer updates when one changes it by less than the share ``tol``.  The penalty on
        the given rows is not in the objective.
        """
        from marginmf.backends.cpu.epochs import multiply_rows

        losses, about = np.empty(len(own)), (self.rows.indptr, self.rows.indices, self.targets)
        bounds = row_bounds(self.rows.indptr, self.n_threads, 4 * own.shape[1] * n_updates)
        settings = self.reg, self.divergence, n_updates, float(tol)
        run(multiply_rows, bounds, self.n_threads, *about, given, *settings, own, losses)
        return float(losses.sum())

    def penalty(self, factors: FloatArray) -> float:
        """Return the penalty on factors."""
        if self.divergence:
            return self.reg * float(factors.sum())
        return 0.5 * self.reg * float(np.einsum("nd,nd->", factors, factors))


@dataclass(frozen=True, eq=False)
class Multiplicative:
    """A solver that updates users' rows, then items' rows; points have users' rows first.

    The pass that updates the users finds the errors before it on its way.  So a state is yielded
    when the users of the next one are already known, and no pass is made for the objective alone.
    """

    users: RowUpdates
    items: RowUpdates

    def steps(self, objective: Any, start: Any, vectors: Vectors) -> Iterator[State]:
        """Yield a state after both sides were updated; the first state is that of the start."""
        counted, n_users = Counted.of(objective, start), self.users.rows.n_rows
        resumed = isinstance(start, State)
        point = start.point if isinstance(start, State) else start
        while True:
            following = point.copy()
            value = self.users.penalty(point)
            value += self.users.apply(following[:n_users], point[n_users:])
            if not resumed:
                counted.n_evaluations += 1
                yield State(point, value, np.nan, counted.n_evaluations)
            resumed = False
            self.items.apply(following[n_users:], following[:n_users])
            point = following
