"""Attitude: binary attitudes whose proposals for an item are multiplied."""

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from marginmf._utils.parameters import check_number
from marginmf._utils.saved import floats
from marginmf._utils.types import Float64Array, FloatArray, IntArray
from marginmf.backends.rows import Rows, Side
from marginmf.backends.threads import row_bounds, run
from marginmf.ratings.base import method
from marginmf.ratings.baselines.urp import AttitudeModel, swap_items_and_levels
from marginmf.ratings.data import Ratings
from marginmf.solvers import Counted, State, Vectors
from marginmf.solvers.rowwise import minimise_rows

#: How strongly the items' own proposals are drawn to the shares of their levels.
OWN_STRENGTH = 0.1
#: Updates of a new user's chances.
NEW_USER_PASSES = 30
#: The start: standard deviations of how far an attitude tilts all items from the lowest level to
#: the highest, and of what it proposes for each item and level beside that.
START_TILT, START_NOISE = 0.3, 0.05
#: Adam: the length of a step, how much of its averages is kept, and what keeps its divisor above 0.
RATE, KEPT_MEAN, KEPT_SQUARE, TINY = 0.1, 0.9, 0.999, 1e-8
#: How fast a step grows again that had to be halved, and how often it may be halved in a sweep.
GROWTH, MOST_TRIALS = 1.2, 40


@method("attitude")
@dataclass(eq=False, repr=False)
class Attitude(AttitudeModel):
    """The Attitude model: those attitudes that a user has multiply the chances of an item's levels.

    A user has attitude k with chance ``pi_k``.  Every attitude multiplies the chance of each level
    of each item by a number, and so does, for all users, the item itself:

        p(level v of item j) is proportional to exp(c_jv + sum_k z_k w_jvk),   z_k in {0, 1}.

    (After Marlin, "Collaborative filtering: a machine learning perspective", 2004.)  Learned by
    variational EM on a lower bound of the likelihood, see `ProposalProblem`, with one step of Adam
    for the items in each sweep.

    Parameters
    ----------
    reg : float
        The regularisation strength of the logarithms of what attitudes multiply by.

    Attributes
    ----------
    user_attitudes_ : array of shape (n_users, n_factors)
        The chance that each of ``users_.ids`` has each attitude.
    item_proposals_ : array of shape (n_levels, n_items, n_factors + 1)
        What the item itself, and then every attitude, multiplies the chance of each level by.
    attitude_priors_ : array of shape (n_factors,)
        The chances of the attitudes before a user's ratings are known.

    Examples
    --------
    >>> from marginmf.datasets import make_ratings
    >>> data = make_ratings(50, 40, n_factors=2, observed=0.5, random_state=0)
    >>> model = Attitude(n_factors=3, random_state=0).fit(data.pairs, data.ratings)
    >>> model.user_attitudes_.shape, model.item_proposals_.shape
    ((50, 3), (5, 40, 4))
    """

    n_factors: int = 8
    reg: float = 10.0
    _: KW_ONLY
    max_iter: int = 100
    tol: float = 1e-5

    _saved: ClassVar[dict[str, Any]] = {
        "item_proposals_": floats("levels", "items", "attitudes + 1"),
        "attitude_priors_": floats("attitudes"),
    }
    _item_arrays = ("item_proposals_",)

    def _fit(self, data: Ratings) -> None:
        self._count_levels(data)
        rng = self._checkpoint.generator("random start", self.random_state)
        problem = self._problem(data, int(self.n_factors))
        point = self._minimise({"attitudes": ProposalEM()}, problem, problem.start(rng))
        chances, proposals, priors = problem.split(point)
        self.user_attitudes_, self.attitude_priors_ = chances.copy(), priors.copy()
        self.item_proposals_ = swap_items_and_levels(np.exp(proposals))

    def _problem(self, data: Ratings, n_attitudes: int) -> "ProposalProblem":
        threads = self._n_threads(len(data) * n_attitudes * data.n_levels)
        own = np.log(self._item_priors(data))
        return ProposalProblem(data, data.by_item, n_attitudes, float(self.reg), own, threads)

    def _fold_in(self, side: Side, data: Ratings) -> None:
        priors = self.attitude_priors_
        problem = self._problem(data, len(priors))
        if side == "user":
            tilts = swap_items_and_levels(self.item_proposals_)
            chances = np.tile(priors, (data.n_users, 1))
            problem.improve_users(chances, tilts, priors, NEW_USER_PASSES)
            self.user_attitudes_ = chances
            return
        proposals = problem.solve_items(self.user_attitudes_)
        self.item_proposals_ = swap_items_and_levels(np.exp(proposals))

    def _fill_pairs(
        self, start: int, stop: int, users: IntArray, items: IntArray, out: Float64Array
    ) -> None:
        from marginmf.backends.cpu.attitudes import attitude_pairs

        attitude_pairs(start, stop, users, items, self.user_attitudes_, self.item_proposals_, out)

    def _check(self, data: Ratings) -> None:
        super()._check(data)
        check_number(self, "reg", float, np.nextafter(0.0, 1.0))


@dataclass(frozen=True, eq=False)
class ProposalProblem:
    """Minus the bound of `Attitude`, and what improves it.

    Derivation.  With q(z_ik) = Bernoulli(m_ik), the expected logarithm of the joint probability
    needs ``E log Z``, where ``Z = sum_v exp(c_jv + sum_k z_k w_jvk)``.  The logarithm is concave,
    so this is at most ``log E Z``, and as the z_k are independent under q,

        E Z = sum_v exp(c_jv) prod_k (1 - m_ik + m_ik exp(w_jvk)).

    Let ``f_jvk`` be such a factor, and rho_v the share of level v in E Z.  The bound is

        sum_ik [m log(pi_k / m) + (1 - m) log((1 - pi_k) / (1 - m))] + sum_k log(pi_k (1 - pi_k))
        + sum_ij [c_jy + sum_k m_ik w_jyk - log E Z] - reg / 2 |w|^2 - strength / 2 |c - own|^2.

    *Users.*  As a function of one m_ik alone, E Z = A + B m with ``B / E Z = sum_v rho_v
    (exp(w_jvk) - 1) / f_jvk``.  The convex ``-log(A + B m)`` is above its tangent; with the tangent
    in its place, the bound is highest at

        logit m = logit pi_k + sum_j [w_jyk - B / E Z],

    so that this update never lowers it, undamped, as long as attitudes follow one another.

    *Items.*  log E Z is convex in c_j and w_j (a log-sum-exp of sums of softplus functions), so the
    items' problems are concave, each of its own, with the gradients ``1[v = y] - rho_v`` and ``m_ik
    (1[v = y] - rho_v exp(w_jvk) / f_jvk)``.

    *Chances.*  ``pi_k = (1 + sum_i m_ik) / (n_users + 2)`` is the maximum.

    A point has all m, then all proposals (items, levels, c and then w), then all pi.
    """

    data: Rows
    by_item: Rows
    n_attitudes: int
    reg: float
    own: Float64Array
    n_threads: int

    def start(self, rng: np.random.Generator) -> Float64Array:
        """Return attitudes that differ by chance, and users who were looked at once."""
        n_items, n_levels = self.own.shape
        slopes = np.linspace(-0.5, 0.5, n_levels)[:, None] * rng.standard_normal(self.n_attitudes)
        noise = rng.standard_normal((n_items, n_levels, self.n_attitudes))
        tilts = START_TILT * slopes + START_NOISE * noise
        proposals = np.concatenate([self.own[:, :, None], tilts], axis=2)
        priors = np.full(self.n_attitudes, 0.5)
        chances = np.full((self.data.n_rows, self.n_attitudes), 0.5)
        self.improve_users(chances, np.exp(proposals), priors, 1)
        return self.join(chances, proposals)

    def join(self, chances: Float64Array, proposals: Float64Array) -> Float64Array:
        """Return a point, with the chances of attitudes that suit the users best."""
        priors = (1.0 + chances.sum(axis=0)) / (len(chances) + 2.0)
        return np.concatenate([chances.ravel(), proposals.ravel(), priors])

    def split(self, point: Float64Array) -> tuple[Float64Array, Float64Array, Float64Array]:
        """Return the users' chances, the proposals and the chances of attitudes of a point."""
        n, k = self.data.n_rows * self.n_attitudes, self.n_attitudes
        chances, proposals, priors = point[:n], point[n:-k], point[-k:]
        return chances.reshape(-1, k), proposals.reshape(*self.own.shape, k + 1), priors

    def __call__(self, point: Float64Array) -> tuple[float, Float64Array]:
        """Return minus the bound, and its gradient by the proposals."""
        m, proposals, priors = self.split(point)
        divergence = m * np.log(m / priors) + (1.0 - m) * np.log((1.0 - m) / (1.0 - priors))
        values, gradients = self.item_values(m, proposals)
        value = values.sum() + divergence.sum() - np.log(priors * (1.0 - priors)).sum()
        return float(value), gradients

    def moved(self, point: Float64Array, step: Float64Array) -> Float64Array:
        """Return the point when the proposals have moved, and all else was updated once."""
        chances, proposals, priors = self.split(point)
        chances, proposals = chances.copy(), proposals - step
        self.improve_users(chances, np.exp(proposals), priors, 1)
        return self.join(chances, proposals)

    def improve_users(
        self, chances: Float64Array, tilts: Float64Array, priors: Float64Array, n_passes: int
    ) -> None:
        """Update the users' chances n times, in their place."""
        from marginmf.backends.cpu.attitudes import attitude_users

        given = (tilts, np.log(priors / (1.0 - priors)), n_passes, chances)
        self._over_rows(self.data, attitude_users, *given)

    def item_values(
        self, chances: Float64Array, proposals: Float64Array
    ) -> tuple[Float64Array, Float64Array]:
        """Return minus the items' parts of the bound, and the gradients by their proposals."""
        from marginmf.backends.cpu.attitudes import attitude_items

        values, gradients = np.empty(len(proposals)), np.empty_like(proposals)
        self._over_rows(self.by_item, attitude_items, chances, proposals, values, gradients)
        away, tilts = proposals[:, :, 0] - self.own, proposals[:, :, 1:]
        penalties = 0.5 * self.reg * np.einsum("jvk,jvk->j", tilts, tilts)
        penalties += 0.5 * OWN_STRENGTH * np.einsum("jv,jv->j", away, away)
        gradients *= -1.0
        gradients[:, :, 0] += OWN_STRENGTH * away
        gradients[:, :, 1:] += self.reg * tilts
        return penalties - values, gradients

    def solve_items(self, chances: Float64Array) -> Float64Array:
        """Return the items' best proposals when the users' chances are given."""
        start = np.zeros((*self.own.shape, self.n_attitudes + 1))
        start[:, :, 0] = self.own
        problems = ItemProblems(replace(self, n_threads=1), chances)
        points = start.reshape(len(start), -1)

        def solve(first: int, last: int) -> None:
            rows = np.arange(first, last)
            points[first:last] = minimise_rows(problems.take(rows), points[first:last])

        bounds = row_bounds(self.by_item.indptr, self.n_threads, self._work)
        run(solve, bounds, self.n_threads)
        return points.reshape(start.shape)

    @property
    def _work(self) -> int:
        return self.n_attitudes * self.own.shape[1]

    def _over_rows(self, rows: Rows, task: Any, *args: Any) -> None:
        bounds = row_bounds(rows.indptr, self.n_threads, self._work)
        run(task, bounds, self.n_threads, rows.indptr, rows.indices, rows.codes, *args)


@dataclass(frozen=True, eq=False)
class ItemProblems:
    """The items' problems when the users' chances are given, for `minimise_rows`."""

    problem: ProposalProblem
    chances: Float64Array

    def __call__(self, points: FloatArray) -> tuple[Float64Array, FloatArray]:
        """Return minus every item's part of the bound, and its gradient."""
        n_levels = self.problem.own.shape[1]
        proposals = points.astype(np.float64, copy=False).reshape(len(points), n_levels, -1)
        values, gradients = self.problem.item_values(self.chances, proposals)
        return values, gradients.reshape(points.shape)

    def take(self, which: IntArray) -> Self:
        """Return the problems of some items."""
        problem = self.problem
        some = replace(problem, by_item=problem.by_item.take(which), own=problem.own[which])
        return replace(self, problem=some)


class ProposalEM:
    """The solver of `Attitude`: a step of Adam for the items, then the users' chances once.

    A sweep that raises the objective is made again: without the average of earlier gradients, and
    with half the step, so that some step lowers it.
    """

    def steps(self, objective: Any, start: Any, vectors: Vectors) -> Iterator[State]:
        """Yield a state after every sweep; none raises the objective."""
        counted = Counted.of(objective, start)
        problem: ProposalProblem = counted.objective
        if isinstance(start, State):
            here = start
            gradient = problem(here.point)[1]
        else:
            value, gradient = counted(start)
            moments = {"moments": [np.zeros_like(gradient), np.zeros_like(gradient)]}
            numbers = {"steps": [0.0, 0.0], "rate": [RATE]}
            here = self._state(counted, start, value, moments, numbers)
            yield here
        while True:
            mean, square = here.vectors["moments"]
            n_means, n_squares = (number + 1.0 for number in here.numbers["steps"])
            rate = min(RATE, GROWTH * here.numbers["rate"][0])
            square = KEPT_SQUARE * square + (1.0 - KEPT_SQUARE) * gradient**2
            # The averages began at zero: these correct them (Kingma and Ba, 2015).
            scale = np.sqrt(square / (1.0 - KEPT_SQUARE**n_squares)) + TINY
            for _ in range(MOST_TRIALS):
                mean = KEPT_MEAN * mean + (1.0 - KEPT_MEAN) * gradient
                step = rate / (1.0 - KEPT_MEAN**n_means) * mean / scale
                point = problem.moved(here.point, step)
                value, next_gradient = counted(point)
                if value <= here.value:
                    break
                rate, mean, n_means = 0.5 * rate, np.zeros_like(mean), 1.0
            else:
                return
            gradient = next_gradient
            moments = {"moments": [mean, square]}
            numbers = {"steps": [n_means, n_squares], "rate": [rate]}
            here = self._state(counted, point, value, moments, numbers)
            yield here

    @staticmethod
    def _state(counted: Counted, point: Any, value: float, vectors: Any, numbers: Any) -> State:
        n = counted.n_evaluations
        return State(point, value, np.nan, n, vectors=vectors, numbers=numbers)
