"""URP, and what methods that give users attitudes have in common."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import gammaln, polygamma, psi

from marginmf._utils.parameters import check_callbacks, check_flag, check_number
from marginmf._utils.random import as_generator
from marginmf._utils.saved import TRAINING, floats
from marginmf._utils.types import Float64Array, IntArray
from marginmf.backends.rows import Rows, Side
from marginmf.backends.threads import even_bounds, row_bounds, run
from marginmf.progress import progress_bar
from marginmf.ratings.base import method
from marginmf.ratings.data import Ratings
from marginmf.ratings.estimator import Distributional
from marginmf.ratings.fitting.fallback import PRIOR_STRENGTH
from marginmf.solvers import (
    Callback,
    Counted,
    Record,
    Solver,
    State,
    Stopping,
    StopReason,
    Vectors,
)

#: Updates of a user's posterior in a sweep, and of a new item's probabilities.
PASSES, NEW_ITEM_PASSES = 3, 100
#: Updates of a new user's posterior at most, and the change, as a share of its sum, that is their
#: last.  From a flat start many are needed where the Dirichlet parameters are small.
NEW_USER_PASSES, NEW_USER_CHANGE = 500, 1e-6
#: Standard deviation of the logarithms of the attitudes' first probabilities.  With much less, all
#: attitudes stay what they have in common.
START_NOISE = 0.5
#: Newton's steps for the Dirichlet parameters in a sweep, and how often one is halved.
NEWTON_STEPS, HALVINGS = 5, 30


def swap_items_and_levels(array: Float64Array) -> Float64Array:
    """Return what is by item and level as models keep it, by level and item, or the reverse."""
    return np.ascontiguousarray(array.transpose(1, 0, 2))


@dataclass(eq=False, repr=False)
class AttitudeModel(Distributional):
    """A method in which users share a few attitudes, and attitudes say how items are rated.

    Parameters
    ----------
    n_factors : int
        How many attitudes there are.
    max_iter, tol
        When to stop: after this many sweeps, or when one (on the average of the last three)
        improves the bound by less than this share of it.
    random_state : int, Generator or None
        Seeds the start.
    callbacks : sequence of callable
        Called with a `marginmf.solvers.Progress` after every sweep; returning True stops.

    Attributes
    ----------
    history_ : list of Record
        Minus the bound, and the seconds, after every sweep.
    n_iter_, n_evaluations_ : int
        How many sweeps were made, and how often the bound was found.
    stop_reason_ : str
        Why the fit stopped.
    level_shares_ : array of shape (n_levels,)
        The shares of the levels among all ratings, to which those of every item are drawn.
    """

    n_factors: int = 5
    _: KW_ONLY
    max_iter: int = 200
    tol: float = 1e-6
    random_state: Any = None
    n_jobs: int | None = None
    verbose: int = 0
    callbacks: Sequence[Callback] = ()

    _saved: ClassVar[dict[str, Any]] = {
        **TRAINING,
        "user_attitudes_": floats("users", "attitudes"),
        "level_shares_": floats("levels"),
    }
    _rank_axis = "attitudes"
    _user_arrays = ("user_attitudes_",)

    def _minimise(
        self, solvers: Mapping[str, Solver], objective: Any, start: Float64Array
    ) -> Float64Array:
        """Return the point where the last solver stops, and note how it came there.

        Each begins where the one before it stopped, unless a callback did that.
        """
        point, stop = start, Stopping(int(self.max_iter), float(self.tol))
        self.history_: list[Record] = []
        self.n_evaluations_ = 0
        with progress_bar(type(self).__name__, len(solvers), bool(self.verbose)) as report:
            for name, solver in solvers.items():
                callbacks = [*report(name if len(solvers) > 1 else ""), *self.callbacks]
                found = self._checkpoint.minimise(name, solver, objective, point, stop, callbacks)
                point = found.point
                self.history_ += _following(self.history_, found.history)
                self.n_evaluations_ += found.n_evaluations
                if found.reason is StopReason.CALLBACK:
                    break
        self.n_iter_, self.stop_reason_ = self.history_[-1].iteration, str(found.reason)
        return point

    def _distribution(self, users: IntArray, items: IntArray) -> Float64Array:
        distribution = np.empty((len(users), len(self.levels_)))
        work = self.user_attitudes_.shape[1] * len(self.levels_)
        threads = self._n_threads(work * len(users))
        bounds = even_bounds(len(users), threads, work)
        run(self._fill_pairs, bounds, threads, users, items, distribution)
        return distribution

    @abstractmethod
    def _fill_pairs(
        self, start: int, stop: int, users: IntArray, items: IntArray, out: Float64Array
    ) -> None:
        """Fill rows of ``out`` with the probabilities of the levels for a range of pairs."""

    def _item_priors(self, data: Ratings) -> Float64Array:
        """Return every item's shares of the levels, with a few ratings drawn from all."""
        counts = data.level_counts("item") + PRIOR_STRENGTH * self.level_shares_
        return counts / counts.sum(axis=1, keepdims=True)

    def _count_levels(self, data: Ratings) -> None:
        # One more of each level, so that no level is impossible.
        counts = data.level_counts("item").sum(axis=0) + 1.0
        self.level_shares_ = counts / counts.sum()

    def _check(self, data: Ratings) -> None:
        super()._check(data)
        check_number(self, "n_factors", int, 1)
        check_number(self, "max_iter", int, 1)
        check_number(self, "tol", float, 0)
        check_callbacks(self)
        as_generator(self.random_state)


@method("urp")
@dataclass(eq=False, repr=False)
class URP(AttitudeModel):
    """The user rating profile model: every rating comes from one of its user's attitudes.

    A user's mixture of attitudes is drawn from a Dirichlet distribution; for each rating an
    attitude is drawn from the mixture, and a level from the probabilities that the attitude has
    for the item (Marlin, "Modeling user rating profiles for collaborative filtering", 2003).
    Learned by variational EM, of which no sweep lowers the bound of the likelihood.

    Parameters
    ----------
    concentration : float
        The parameter of the Dirichlet distribution, for each attitude: how many ratings from every
        attitude a user is taken to have given beforehand.
    learn_concentration : bool
        Whether the Dirichlet parameters are learned too, one for each attitude.  That begins when
        all else has been learned with ``concentration``: attitudes that are still alike would make
        them grow without end, and stay alike.
    smoothing : float
        How many ratings drawn from all of an item's are added to those of each attitude: most
        attitudes have seen no rating of most levels.

    Attributes
    ----------
    user_attitudes_ : array of shape (n_users, n_factors)
        The parameters of the users' Dirichlet posteriors, in the order of ``users_.ids``.
    item_profiles_ : array of shape (n_levels, n_items, n_factors)
        The probability of each level for each item under each attitude.
    concentrations_ : array of shape (n_factors,)
        The Dirichlet parameters before a user's ratings are known.

    Examples
    --------
    >>> from marginmf.datasets import make_ratings
    >>> data = make_ratings(50, 40, n_factors=2, observed=0.5, random_state=0)
    >>> model = URP(n_factors=3, random_state=0).fit(data.pairs, data.ratings)
    >>> model.user_attitudes_.shape, model.item_profiles_.shape
    ((50, 3), (5, 40, 3))
    """

    concentration: float = 2.0
    _: KW_ONLY
    learn_concentration: bool = False
    smoothing: float = 2.0

    _saved: ClassVar[dict[str, Any]] = {
        "item_profiles_": floats("levels", "items", "attitudes"),
        "concentrations_": floats("attitudes"),
    }
    _item_arrays = ("item_profiles_",)

    def _flaws(self, lengths: Mapping[str, int]) -> Iterator[str]:
        yield from super()._flaws(lengths)
        # The digamma function of a number far below zero would take for ever.
        if min(self.user_attitudes_.min(), self.concentrations_.min()) <= 0:
            yield " has parameters of Dirichlet distributions that are not above zero"
        if self.item_profiles_.min() < 0:
            yield ".item_profiles_ are no probabilities"

    def _fit(self, data: Ratings) -> None:
        self._count_levels(data)
        rng = self._checkpoint.generator("random start", self.random_state)
        problem = self._problem(data, int(self.n_factors))
        start = problem.start(rng, float(self.concentration))
        solvers = {"attitudes": VariationalEM(False)}
        if self.learn_concentration:
            solvers["concentrations"] = VariationalEM(True)
        gamma, beta, prior = problem.split(self._minimise(solvers, problem, start))
        self.user_attitudes_, self.concentrations_ = gamma.copy(), prior.copy()
        self.item_profiles_ = swap_items_and_levels(beta)

    def _problem(self, data: Ratings, n_attitudes: int) -> "ProfileProblem":
        threads = self._n_threads(len(data) * n_attitudes)
        pseudo_counts = float(self.smoothing) * self._item_priors(data)
        return ProfileProblem(data, n_attitudes, pseudo_counts, threads)

    def _fold_in(self, side: Side, data: Ratings) -> None:
        prior, beta = self.concentrations_, swap_items_and_levels(self.item_profiles_)
        problem = self._problem(data, len(prior))
        if side == "user":
            rules = NEW_USER_PASSES, NEW_USER_CHANGE
            gamma = first_gamma(data, prior)
            self.user_attitudes_ = problem.improve_users(gamma, beta, prior, *rules)[0]
            return
        # The bound is concave in an item's probabilities, so that any start leads to its maximum.
        beta = np.repeat(self._item_priors(data)[:, :, None], len(prior), axis=2)
        weights = problem.improve_users(self.user_attitudes_, beta, prior, 0)[1]
        problem.improve_items(beta, weights, NEW_ITEM_PASSES)
        self.item_profiles_ = swap_items_and_levels(beta)

    def _fill_pairs(
        self, start: int, stop: int, users: IntArray, items: IntArray, out: Float64Array
    ) -> None:
        from marginmf.backends.cpu.attitudes import profile_pairs

        profile_pairs(start, stop, users, items, self.user_attitudes_, self.item_profiles_, out)

    def _check(self, data: Ratings) -> None:
        super()._check(data)
        least = np.nextafter(0.0, 1.0)
        check_number(self, "concentration", float, least)
        check_number(self, "smoothing", float, least)
        check_flag(self, "learn_concentration")


@dataclass(frozen=True, eq=False)
class ProfileProblem:
    """Minus the bound of `URP`, and the updates that lower it.

    With ``q(theta_i) = Dir(gamma_i)``, ``q(z_ij = k) = phi_ijk``, the pseudo-counts s as a prior on
    beta, and phi at its best for gamma and beta, the bound is

        sum_i [sum_j log sum_k beta_jyk w_ik - KL(Dir(gamma_i) | Dir(prior))]
        + sum_jvk s_jv log beta_jvk,    w_ik = exp(psi(gamma_ik) - psi(sum_k gamma_ik)).

    A point has all gammas, then all betas (items, levels, attitudes), then the prior.
    """

    data: Ratings
    n_attitudes: int
    pseudo_counts: Float64Array
    n_threads: int

    def start(self, rng: np.random.Generator, concentration: float) -> Float64Array:
        """Return users of whom nothing is known, and items whose attitudes differ by chance."""
        prior = np.full(self.n_attitudes, concentration)
        shape = (*self.pseudo_counts.shape, self.n_attitudes)
        noise = np.exp(START_NOISE * rng.standard_normal(shape))
        beta = self.pseudo_counts[:, :, None] * noise
        beta /= beta.sum(axis=1, keepdims=True)
        return self.join(first_gamma(self.data, prior), beta, prior)

    def join(self, gamma: Float64Array, beta: Float64Array, prior: Float64Array) -> Float64Array:
        """Return a point."""
        return np.concatenate([gamma.ravel(), beta.ravel(), prior])

    def split(self, point: Float64Array) -> tuple[Float64Array, Float64Array, Float64Array]:
        """Return gamma, beta and the prior of a point."""
        n, k = self.data.n_users * self.n_attitudes, self.n_attitudes
        gamma, beta, prior = point[:n], point[n:-k], point[-k:]
        shape = (*self.pseudo_counts.shape, k)
        return gamma.reshape(-1, k), beta.reshape(shape), prior

    def __call__(self, point: Float64Array) -> tuple[float, Float64Array]:
        """Return minus the bound, and the gammas after one update, which the same pass finds."""
        gamma, beta, prior = self.split(point)
        changed, _, bounds = self.improve_users(gamma, beta, prior, 1)
        penalty = self.pseudo_counts[:, :, None] * np.log(beta)
        return -float(bounds.sum() + penalty.sum()), changed

    def improve_users(
        self,
        gamma: Float64Array,
        beta: Float64Array,
        prior: Float64Array,
        n_passes: int,
        tol: float = 0.0,
    ) -> tuple[Float64Array, Float64Array, Float64Array]:
        """Return gamma after n updates, w with it, and the users' parts of the bound before.

        A user has fewer updates when one changes gamma by less than this share of its sum.
        """
        from marginmf.backends.cpu.attitudes import profile_users

        changed, weights, bounds = np.empty_like(gamma), np.empty_like(gamma), np.empty(len(gamma))
        given = (beta, prior, n_passes, float(tol), gamma)
        self._over_rows(self.data, profile_users, *given, changed, weights, bounds)
        return changed, weights, bounds

    def improve_items(self, beta: Float64Array, weights: Float64Array, n_passes: int) -> None:
        """Update beta n times, in its place."""
        from marginmf.backends.cpu.attitudes import profile_items

        given = (weights, self.pseudo_counts, n_passes)
        self._over_rows(self.data.by_item, profile_items, *given, beta)

    def _over_rows(self, rows: Rows, task: Any, *args: Any) -> None:
        bounds = row_bounds(rows.indptr, self.n_threads, self.n_attitudes)
        run(task, bounds, self.n_threads, rows.indptr, rows.indices, rows.codes, *args)


@dataclass(frozen=True)
class VariationalEM:
    """The solver of `URP`: users' posteriors, then items' probabilities, then the prior."""

    learns_prior: bool

    def steps(self, objective: Any, start: Any, vectors: Vectors) -> Iterator[State]:
        """Yield a state after every sweep; none raises the objective."""
        counted = Counted.of(objective, start)
        problem: ProfileProblem = counted.objective
        is_new = not isinstance(start, State)
        point = start if is_new else start.point
        while True:
            if is_new:
                value, gamma = counted(point)
                yield State(point, value, np.nan, counted.n_evaluations)
            else:  # the first update is not in the state: it follows from the point
                gamma = problem(point)[1]
            _, beta, prior = problem.split(point)
            beta = beta.copy()
            gamma, weights, _ = problem.improve_users(gamma, beta, prior, PASSES - 1)
            problem.improve_items(beta, weights, 1)
            is_new = True
            if self.learns_prior:
                # Not the logarithms of the weights, which may be too small for a number.
                prior = learn_prior(prior, psi(gamma) - psi(gamma.sum(axis=1, keepdims=True)))
            point = problem.join(gamma, beta, prior)


def _following(history: list[Record], more: list[Record]) -> list[Record]:
    """Return what to add to a history: the records of the solver that began where it ended."""
    if not history:
        return more
    last = history[-1]
    return [
        record._replace(
            iteration=last.iteration + record.iteration,
            n_evaluations=last.n_evaluations + record.n_evaluations,
            seconds=last.seconds + record.seconds,
        )
        for record in more[1:]
    ]


def first_gamma(rows: Rows, prior: Float64Array) -> Float64Array:
    """Return the posteriors of users whose ratings come from all attitudes alike."""
    return prior + np.diff(rows.indptr)[:, None] / len(prior)


def learn_prior(prior: Float64Array, expected: Float64Array) -> Float64Array:
    """Return Dirichlet parameters that make some expected logarithms of mixtures more likely.

    By Newton's method; the Hessian is diagonal but for a constant, so that a step takes linear
    time (Minka, "Estimating a Dirichlet distribution", 2000).  No step lowers the likelihood.
    Mixtures of one component say nothing: its parameter stays.
    """
    n, sums = len(expected), expected.sum(axis=0)

    def likelihood(a: Float64Array) -> float:
        return n * float(gammaln(a.sum()) - gammaln(a).sum()) + float((a - 1.0) @ sums)

    for _ in range(NEWTON_STEPS if n and len(prior) > 1 else 0):
        gradient = n * (psi(prior.sum()) - psi(prior)) + sums
        diagonal, constant = -n * polygamma(1, prior), n * polygamma(1, prior.sum())
        shared = (gradient / diagonal).sum() / (1.0 / constant + (1.0 / diagonal).sum())
        step, value = (gradient - shared) / diagonal, likelihood(prior)
        for halving in range(HALVINGS):
            trial = prior - 0.5**halving * step
            if (trial > 0).all() and likelihood(trial) >= value:
                prior = trial
                break
    return prior
