"""Max-margin factorisation with a variational number of binary factors: IPMMMF."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields
from typing import Any, ClassVar

import numpy as np
from scipy.special import digamma, gammaln, multigammaln, xlogy

from marginmf._utils.parameters import check_callbacks, check_flag, check_number, n_threads
from marginmf._utils.random import as_generator
from marginmf._utils.saved import TRAINING, Optional, floats
from marginmf._utils.types import Float64Array, FloatArray, IntArray
from marginmf.backends.rows import Rows, Side
from marginmf.backends.threads import one_blas_thread, row_bounds, run
from marginmf.progress import progress_bar
from marginmf.ratings.base import method
from marginmf.ratings.data import Ratings
from marginmf.ratings.estimator import RatingsEstimator
from marginmf.ratings.lists.relevance import Columns, MarginBlock, block_product
from marginmf.solvers import Callback, State, Stopping, Vectors

#: Without and with a learned prior of the items' factors: ``cost="auto"`` times the mean number of
#: a user's ratings, because what held-out ratings like best falls with the ratings that speak for
#: a user's factors (MovieLens 100K and 1M, ratings made of binary factors); and what
#: ``max_iter="auto"`` and ``tol="auto"`` are: with a learned prior, rounds help for longer.
USUAL_COSTS, USUAL_ROUNDS, USUAL_TOLS = (15.0, 8.0), (50, 80), (1e-3, 1e-4)
#: Of the prior of thresholds, in margins: the distance between the means, and the deviation.
SPACING, SPREAD = 2.0, 1.5
#: Beyond these, squares of scores overflow or vanish.
MARGINS = 1e-9, 1e9
#: With more of them, the objective would be a small difference of large numbers.
MOST_PRIOR_ITEMS = 1e9
#: In each round: passes over an item's ratings, and the change of a dual number, as a share of the
#: cost, below which there are fewer.  More passes, or sweeps over users, end no lower.
PASSES, SETTLED = 3, 1e-3
#: The same for new items, which begin from nothing and have one round; and rounds for new users.
NEW_PASSES, NEW_SETTLED, NEW_ROUNDS = 200, 1e-5, 10


@dataclass(eq=False)
class VariationalPosterior:
    """What is known of everything: the parameters of the variational distributions.

    ``user_factors`` are probabilities and ``item_factors`` means.  ``sticks`` are the parameters of
    the Beta distributions whose products are the prior probabilities of the factors.  ``mean`` and
    ``covariance`` are those of a learned prior of items' factors, and empty without one, when
    these are zeros and a unit matrix.  Every item's own covariance is that of the prior.
    """

    user_factors: Float64Array
    item_factors: Float64Array
    thresholds: Float64Array
    sticks: Float64Array
    mean: Float64Array
    covariance: Float64Array

    def pack(self) -> Float64Array:
        """Return everything as one vector."""
        return np.concatenate([getattr(self, field.name).ravel() for field in fields(self)])

    def unpack(self, point: Float64Array) -> "VariationalPosterior":
        """Return a posterior of the same shapes from a copy of a vector."""
        parts, first = [], 0
        for field in fields(self):
            like = getattr(self, field.name)
            parts.append(point[first : first + like.size].copy().reshape(like.shape))
            first += like.size
        return VariationalPosterior(*parts)

    def item_prior(self) -> tuple[Float64Array, Float64Array]:
        """Return the mean of the items' prior, and the lower root of its covariance."""
        n_factors = self.item_factors.shape[1]
        if not self.mean.size:
            return np.zeros(n_factors), np.eye(n_factors)
        with one_blas_thread():
            return self.mean, np.asarray(np.linalg.cholesky(self.covariance), np.float64)


@dataclass(frozen=True)
class VariationalRules:
    """What ratings cost, and the priors; ``prior_items`` is for a learned prior of items."""

    cost: float
    margin: float
    concentration: float
    n_levels: int
    n_threads: int
    prior_items: float = 0.0

    @property
    def centres(self) -> Float64Array:
        """The prior means of thresholds."""
        steps = np.arange(self.n_levels - 1, dtype=np.float64) - (self.n_levels - 2) / 2
        return SPACING * self.margin * steps

    def improve_items(
        self,
        rows: Rows,
        posterior: VariationalPosterior,
        duals: Float64Array,
        items: Float64Array,
        n_passes: int = PASSES,
        settled: float = SETTLED,
    ) -> Float64Array:
        """Return better factors of items, the rows here, than these; dual numbers in place."""
        from marginmf.backends.cpu.variational import improve_items

        mean, root = posterior.item_prior()
        with one_blas_thread():  # in coordinates where the prior is a unit one
            unit = np.ascontiguousarray(np.linalg.solve(root, (items - mean).T).T)
            factors, offsets = posterior.user_factors @ root, posterior.user_factors @ mean
        problem = (rows.indptr, rows.indices, rows.codes, factors, offsets, posterior.thresholds)
        how = float(self.cost), float(self.margin), n_passes, float(settled)
        self._run(improve_items, rows, factors.shape[1], *problem, *how, duals, unit)
        # Not a matrix product: BLAS rounds a row by what else there is.
        return np.asarray(mean + np.einsum("jk,lk->jl", unit, root), np.float64)

    def improve_users(self, rows: Rows, posterior: VariationalPosterior, n_rounds: int) -> float:
        """Improve users' probabilities and thresholds in place; return what their ratings cost."""
        from marginmf.backends.cpu.variational import improve_users

        present, absent = stick_expectations(posterior.sticks)[:2]
        problem = (rows.indptr, rows.indices, rows.codes, posterior.item_factors, present - absent)
        prior = self.centres, SPREAD * self.margin, float(self.cost), float(self.margin), n_rounds
        losses = np.zeros(rows.n_rows)
        outputs = posterior.user_factors, posterior.thresholds, losses
        self._run(improve_users, rows, posterior.item_factors.shape[1], *problem, *prior, *outputs)
        return float(losses.sum())

    def _run(self, kernel: Callable[..., None], rows: Rows, width: int, *arguments: Any) -> None:
        def task(start: int, stop: int) -> None:
            kernel(start, stop, *arguments)

        run(task, row_bounds(rows.indptr, self.n_threads, 4 * width), self.n_threads)

    def improve_sticks(self, posterior: VariationalPosterior) -> Float64Array:
        """Return better sticks."""
        n_users, with_factor = len(posterior.user_factors), posterior.user_factors.sum(axis=0)
        return improved_sticks(posterior.sticks, with_factor, n_users, self.concentration)

    def divergence(self, posterior: VariationalPosterior) -> float:
        """Return the divergence of the posterior from the prior, thresholds excepted."""
        present, absent = stick_expectations(posterior.sticks)[:2]
        p = posterior.user_factors
        users = xlogy(p, p) + xlogy(1 - p, 1 - p) - present * p - absent * (1 - p)
        if posterior.mean.size:
            items = item_divergence(posterior, self.prior_items)
        else:
            items = 0.5 * float(np.square(posterior.item_factors).sum())
        return float(users.sum()) + stick_divergence(posterior.sticks, self.concentration) + items


def stick_expectations(sticks: Float64Array) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Return the expected log-probability of each factor, a bound on that of its absence, shares.

    A factor has the probability ``v_1 ... v_k``, where v are from Beta distributions.  That it is
    absent is ``sum_t (1 - v_t) v_1 ... v_(t-1)``, t up to k; by Jensen's inequality its expected
    logarithm is at least ``log sum_t exp(e_t)``, e_t being the expected logarithms of the terms.
    These, the logarithms of shares in the sums, come last.
    """
    first, second, both = digamma(sticks[:, 0]), digamma(sticks[:, 1]), digamma(sticks.sum(axis=1))
    terms = second - both + np.cumsum(first - both) - (first - both)
    return np.cumsum(first - both), np.logaddexp.accumulate(terms), terms


def improved_sticks(
    sticks: Float64Array, with_factor: Float64Array, n_users: int, concentration: float
) -> Float64Array:
    """Return the best sticks for the shares that belong to the sticks of before.

    With those shares, the bound is linear in the logarithms of v and 1 - v: they are counts.
    """
    _, absent, terms = stick_expectations(sticks)
    later = np.log(np.maximum(n_users - with_factor, 1e-300)) - absent
    stopped = np.exp(terms + np.logaddexp.accumulate(later[::-1])[::-1])
    passed = np.cumsum(with_factor[::-1])[::-1] + np.cumsum(stopped[::-1])[::-1] - stopped
    return np.column_stack([concentration + passed, 1.0 + stopped])


def stick_divergence(sticks: Float64Array, concentration: float) -> float:
    """Return the divergence of the sticks' distributions from Beta(concentration, 1)."""
    a, b = sticks.T
    normaliser = gammaln(a + b) - gammaln(a) - gammaln(b) - np.log(concentration)
    moments = (a - concentration) * digamma(a) + (b - 1) * digamma(b)
    return float((normaliser + moments - (a + b - 1 - concentration) * digamma(a + b)).sum())


def improve_item_prior(posterior: VariationalPosterior, prior_items: float) -> None:
    """Take the best distribution of the items' mean and precision, then the best covariance.

    The normal-Wishart prior is the published one, with ``n_factors`` degrees of freedom, a unit
    scale and one item's weight for a mean of zero, after some items with unit variances.
    """
    items, (n_items, n_factors) = posterior.item_factors, posterior.item_factors.shape
    with one_blas_thread():
        mean = items.sum(axis=0) / (1 + n_items)
        scatter = items.T @ items - (1 + n_items) * np.outer(mean, mean)
        inverse_scale = (1 + prior_items) * np.eye(n_factors) + n_items * posterior.covariance
    posterior.mean = mean
    posterior.covariance = (inverse_scale + scatter) / (n_factors + prior_items + n_items)


def item_divergence(posterior: VariationalPosterior, prior_items: float) -> float:
    """Return the divergence of the items' factors, their mean and precision from their prior.

    The covariance of every item is the inverse of the expected precision.
    """
    n_items, n_factors = posterior.item_factors.shape
    prior_freedom, prior_inverse_scale = n_factors + prior_items, 1 + prior_items
    freedom, weight = prior_freedom + n_items, 1 + n_items
    mean, root = posterior.item_prior()
    with one_blas_thread():
        precision = np.linalg.inv(posterior.covariance)
        quadratic = np.square(np.linalg.solve(root, (posterior.item_factors - mean).T)).sum()
    log_scale = -n_factors * np.log(freedom) - 2 * np.log(np.diag(root)).sum()
    digammas = float(digamma((freedom - np.arange(n_factors)) / 2).sum())
    each = n_factors * (np.log(freedom / 2) + 1 / weight) - digammas
    means = n_factors * (1 / weight - 1 + np.log(weight)) + mean @ precision @ mean
    wishart = prior_inverse_scale * np.trace(precision) + n_items * digammas
    wishart -= prior_freedom * (log_scale + n_factors * np.log(prior_inverse_scale))
    wishart -= n_factors * freedom
    gammas = multigammaln(prior_freedom / 2, n_factors) - multigammaln(freedom / 2, n_factors)
    return 0.5 * float(quadratic + n_items * each + means + wishart) + float(gammas)


@dataclass(frozen=True, eq=False)
class VariationalRounds:
    """The solver: items, users with their thresholds, sticks; none of these raises the objective.

    What it yields is a posterior in one vector, and the dual numbers of items' ratings.
    """

    rules: VariationalRules
    data: Ratings
    like: VariationalPosterior

    def steps(self, objective: Any, start: Any, vectors: Vectors) -> Iterator[State]:
        """Yield a state after every round, until one no longer lowers the objective."""
        if isinstance(start, State):
            point, value = start.point, start.value
            duals = start.vectors["duals"][0].copy()
        else:
            point, duals = start, np.zeros(len(self.data))
            posterior = self.like.unpack(point)
            losses = self.rules.improve_users(self.data, posterior, 0)
            value = losses + self.rules.divergence(posterior)
            yield State(point, value, np.nan, vectors={"duals": [duals.copy()]})
        while True:
            posterior = self.like.unpack(point)
            if posterior.mean.size:
                improve_item_prior(posterior, self.rules.prior_items)
            items, rows = posterior.item_factors, self.data.by_item
            posterior.item_factors = self.rules.improve_items(rows, posterior, duals, items)
            losses = self.rules.improve_users(self.data, posterior, 1)
            posterior.sticks = self.rules.improve_sticks(posterior)
            point, before = posterior.pack(), value
            value = losses + self.rules.divergence(posterior)
            if not value < before:  # but for rounding
                return
            yield State(point, value, np.nan, vectors={"duals": [duals.copy()]})


@method("ipmmmf")
@dataclass(eq=False, repr=False)
class IPMMMF(RatingsEstimator):
    """Max-margin matrix factorisation where users have, or lack, each of many binary factors.

    The factors that users have come from an Indian buffet process, so that the data choose how many
    are in use.  A score, the sum of the item's numbers for the factors that the user has, should
    be above the user's thresholds below its rating's level and below the others, each by a margin.
    A posterior of independent parts is found that makes the divergence from the prior plus the
    hinge losses of expected scores small (Xu, Zhu and Zhang, 2012).

    Parameters
    ----------
    n_factors : int
        The largest number of factors.  With ``bayesian`` it also counts in the prior of the
        covariance, which is worth ``n_factors`` + ``prior_items`` items.
    cost : float or "auto"
        What a rating costs for each unit that a score is on the wrong side of a margin.  Auto:
        15 or, with ``bayesian``, 8, divided by how many ratings a user has on average.
    concentration : float
        Of the Indian buffet process: how many factors a user has before there are data.
    margin : float
        How far scores should be from thresholds.
    bayesian : bool
        Whether mean and covariance of the items' factors are learned too, under a normal-Wishart
        prior, instead of a zero mean and unit variances.
    prior_items : float or "auto"
        With ``bayesian``: how many items with unit variances the prior of the covariance has seen.
        Auto: as many as there are.  The published prior has seen none (0): variances grow with
        every round, and predictions become worse after about a dozen.
    max_iter, tol
        When to stop: after this many rounds (auto: 50 or, with ``bayesian``, 80), or when one of
        them (on the average of the last three) lowers the objective by less than this share of it
        (auto: 1e-3 or, with ``bayesian``, 1e-4).
    random_state : int, Generator or None
        Seeds the start.
    callbacks : sequence of callable
        Called with a `marginmf.solvers.Progress` after every round; returning True stops.

    Attributes
    ----------
    user_factors_ : array of shape (n_users, n_factors)
        The probability that a user has a factor.
    item_factors_ : array of shape (n_items, n_factors)
        The expected numbers of the items.
    thresholds_ : array of shape (n_users, n_levels - 1)
        Each user's thresholds.
    sticks_ : array of shape (n_factors, 2)
        The Beta distributions whose products are the prior probabilities of the factors.
    item_mean_, item_covariance_ : array
        Of the items' factors (with ``bayesian``).
    cost_, margin_ : float
        Those of the fit.
    history_, n_iter_, n_evaluations_, stop_reason_
        As for the factorisers; there are no gradients.

    Examples
    --------
    >>> from marginmf.datasets import make_ratings
    >>> data = make_ratings(50, 40, n_factors=2, observed=0.5, random_state=0)
    >>> model = IPMMMF(n_factors=8, random_state=0).fit(data.pairs, data.ratings)
    >>> model.user_factors_.shape, model.thresholds_.shape
    ((50, 8), (50, 4))
    """

    _saved: ClassVar[dict[str, Any]] = {
        **TRAINING,
        "user_factors_": floats("users", "factors"),
        "item_factors_": floats("items", "factors"),
        "thresholds_": floats("users", "stages"),
        "sticks_": floats("factors", "2"),
        "item_mean_": Optional(floats("factors")),
        "item_covariance_": Optional(floats("factors", "factors")),
        "cost_": float,
        "margin_": Optional(float),
    }
    n_factors: int = 50
    cost: float | str = "auto"
    _: KW_ONLY
    concentration: float = 3.0
    margin: float = 9.0
    bayesian: bool = False
    prior_items: float | str = "auto"
    calibrate: bool = True
    max_iter: int | str = "auto"
    tol: float | str = "auto"
    random_state: Any = None
    n_jobs: int | None = None
    verbose: int = 0
    callbacks: Sequence[Callback] = ()

    _rank_axis = "factors"
    _user_arrays = ("user_factors_", "thresholds_")
    _item_arrays = ("item_factors_",)

    def _flaws(self, lengths: Mapping[str, int]) -> Iterator[str]:
        yield from super()._flaws(lengths)
        covariance = getattr(self, "item_covariance_", None)
        if covariance is not None and np.linalg.eigvalsh(covariance)[0] <= 0:
            yield ".item_covariance_ is no covariance"

    def _fit(self, data: Ratings) -> None:
        kind = int(self.bayesian)
        usual = USUAL_COSTS[kind] * data.n_users / max(len(data), 1)
        self.cost_ = float(usual if self.cost == "auto" else self.cost)
        self.margin_ = float(self.margin)
        max_iter = int(USUAL_ROUNDS[kind] if self.max_iter == "auto" else self.max_iter)
        tol = float(USUAL_TOLS[kind] if self.tol == "auto" else self.tol)
        rules = self._rules()
        start = self._start(data, rules)
        solver, rounds = VariationalRounds(rules, data, start), Stopping(max_iter, tol)
        with progress_bar(type(self).__name__, 1, bool(self.verbose)) as report:
            callbacks = [*self.callbacks, *report("")]
            run_with = start.pack(), rounds, callbacks
            found = self._checkpoint.minimise("rounds", solver, None, *run_with)
        best = start.unpack(found.point)
        self.user_factors_, self.item_factors_ = best.user_factors, best.item_factors
        self.thresholds_, self.sticks_ = best.thresholds, best.sticks
        if self.bayesian:
            self.item_mean_, self.item_covariance_ = best.mean, best.covariance
        self.history_, self.n_iter_ = found.history, found.n_iter
        self.n_evaluations_, self.stop_reason_ = found.n_evaluations, str(found.reason)

    def _rules(self) -> VariationalRules:
        margin = getattr(self, "margin_", self.margin)  # older files have the parameter alone
        size = len(self.levels_), n_threads(self.n_jobs)
        prior_items = len(self.items_) if self.prior_items == "auto" else self.prior_items
        priors = self.cost_, margin, self.concentration, *size
        return VariationalRules(*priors, float(prior_items))

    def _start(self, data: Ratings, rules: VariationalRules) -> VariationalPosterior:
        rng = self._checkpoint.generator("random start", self.random_state)
        K, learned = self.n_factors, self.n_factors if self.bayesian else 0
        return VariationalPosterior(
            rng.random((data.n_users, K)),
            rng.normal(size=(data.n_items, K)),
            np.tile(rules.centres, (data.n_users, 1)),
            np.tile([float(self.concentration), 1.0], (K, 1)),
            np.zeros(learned),
            # What the prior expects, as published.
            np.eye(learned) * (1 + rules.prior_items) / (K + rules.prior_items),
        )

    def _known(self) -> VariationalPosterior:
        mean = getattr(self, "item_mean_", np.zeros(0))
        covariance = getattr(self, "item_covariance_", np.zeros((0, 0)))
        own = self.user_factors_, self.item_factors_, self.thresholds_, self.sticks_
        return VariationalPosterior(*own, mean, covariance)

    def _fold_in(self, side: Side, data: Ratings) -> None:
        rules, known = self._rules(), self._known()
        if side == "item":
            duals, usual = np.zeros(len(data)), np.tile(known.item_prior()[0], (data.n_items, 1))
            how = NEW_PASSES, NEW_SETTLED
            self.item_factors_ = rules.improve_items(data.by_item, known, duals, usual, *how)
            return
        # Everybody begins as somebody without ratings.
        usual = np.exp(stick_expectations(self.sticks_)[0])
        known.user_factors = np.tile(usual, (data.n_users, 1))
        known.thresholds = np.tile(rules.centres, (data.n_users, 1))
        rules.improve_users(data, known, NEW_ROUNDS)
        self.user_factors_, self.thresholds_ = known.user_factors, known.thresholds

    def _margins(self, users: IntArray, items: IntArray) -> FloatArray:
        backend = self._arithmetic(self.item_factors_.shape[1] * len(users))
        scores = backend.scores(users, items, self.user_factors_, self.item_factors_)
        margins: FloatArray = scores[:, None] - self.thresholds_[users]
        return margins

    def _margin_block(self, users: IntArray, items: Columns) -> MarginBlock:
        scores = block_product(self.user_factors_[users], self.item_factors_[items])
        return MarginBlock(scores[None], -self.thresholds_[users])

    def _check(self, data: Ratings) -> None:
        super()._check(data)
        check_number(self, "n_factors", int, 1)
        least = np.nextafter(0, 1)
        check_number(self, "cost", float, least, word="auto")
        check_number(self, "concentration", float, least)
        check_number(self, "margin", float, *MARGINS)
        check_flag(self, "bayesian")
        check_number(self, "prior_items", float, 0, MOST_PRIOR_ITEMS, word="auto")
        check_number(self, "max_iter", int, 1, word="auto")
        check_number(self, "tol", float, 0, word="auto")
        check_callbacks(self)
        as_generator(self.random_state)
