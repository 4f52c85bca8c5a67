"""GPLVM: a Gaussian process for each user, over positions of the items that are learned."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import ndtr

from marginmf._utils.parameters import check_callbacks, check_number
from marginmf._utils.random import as_generator
from marginmf._utils.saved import TRAINING, floats
from marginmf._utils.types import Float64Array, FloatArray, IntArray
from marginmf.backends.rows import Side
from marginmf.backends.threads import one_blas_thread, run
from marginmf.progress import progress_bar
from marginmf.ratings.base import method
from marginmf.ratings.baselines.processes import (
    Committee,
    Covariance,
    GivenRatings,
    Likelihood,
    blocks_of,
)
from marginmf.ratings.baselines.products import Epochs
from marginmf.ratings.data import Ratings
from marginmf.ratings.estimator import Distributional, above_midpoints
from marginmf.ratings.fitting.fallback import LevelFrequencies
from marginmf.solvers import Callback, Stopping

#: Items' means and variances are drawn to those of all ratings as if by this many ratings more.
SHRINKAGE = 5.0
#: An item's deviation is at least this share of the mean distance of neighbouring levels.
LEAST_DEVIATION = 0.1
#: The standard deviation of positions at the start, and what the covariance is then.
START = 0.1
FIRST_PARAMETERS = {"signal": 0.5, "width": 1.0, "bias": 0.1, "noise": 0.8}
#: New items: how many steps at most look for their position, and the step, as a share of the
#: positions' deviation, that ends the search.
PLACING_STEPS, PLACED = 40, 1e-4


@method("gplvm")
@dataclass(eq=False, repr=False)
class GPLVM(Distributional):
    """The Gaussian process latent variable model: smooth functions of the items' positions.

    Every user is a Gaussian process over a space in which every item has a position: users rate
    items alike that lie side by side.  The positions and the four parameters of the covariance,
    which all users share, maximise the likelihood of the ratings, standardised item by item
    (Lawrence and Urtasun, 2009).  The predictive distribution of a rating is normal, and is cut in
    the middle between neighbouring levels.  New users are conditioned on their ratings, and nothing
    is trained for them; new items are put where their ratings are most probable.

    Parameters
    ----------
    n_factors : int
        The dimension of the space.
    max_iter : int
        How many epochs there are: one step for each user, or for each block of a user's ratings,
        in random order.  The errors at first fall with them, then rise.
    learning_rate : float
        The length of steps of positions.
    parameter_rate : float
        The length of steps of the logarithms of the covariance's parameters.
    block_size : int
        The ratings of users with more are divided into several blocks of equal size, because the
        time grows with the cube of their number.  What these predict is combined as in a Bayesian
        committee machine (Tresp, 2000).
    random_state : int, Generator or None
        Seeds the start and the order of the blocks, which has to be one after the other: more
        threads are of use in predictions only.
    callbacks : sequence of callable
        Called with a `marginmf.solvers.Progress` after every epoch; returning True stops.

    Attributes
    ----------
    item_positions_ : array
        A row for each of ``items_.ids``.
    item_means_, item_deviations_ : array
        What the ratings are standardised by, drawn to those of all ratings.
    covariance_ : array
        The width (an inverse squared length), and the variances of the smooth part, of what a user
        adds to all ratings, and of the noise; ratings are standardised.
    given_ : GivenRatings
        What the users' functions are conditioned on.
    history_, n_iter_, n_evaluations_, stop_reason_
        As for the factorisers.  The objective is minus the log-likelihood, each block's before its
        own step of the epoch; the gradient's norm is not known.

    Examples
    --------
    >>> from marginmf.datasets import make_ratings
    >>> data = make_ratings(50, 40, n_factors=2, observed=0.5, random_state=0)
    >>> model = GPLVM(n_factors=2, random_state=0).fit(data.pairs, data.ratings)
    >>> print(f"training error {-model.score(data.pairs, data.ratings):.1f} stars")
    training error 0.1 stars
    """

    _saved: ClassVar[dict[str, Any]] = {
        **TRAINING,
        "item_positions_": floats("items", "factors"),
        "item_means_": floats("items"),
        "item_deviations_": floats("items"),
        "mean_": float,
        "deviation_": float,
        "covariance_": floats("4"),
        "centre_": floats("factors"),
        "spread_": float,
        "block_size_": int,
        "given_": GivenRatings,
    }
    n_factors: int = 5
    _: KW_ONLY
    max_iter: int = 6
    learning_rate: float = 1e-3
    parameter_rate: float = 1e-5
    block_size: int = 500
    random_state: Any = None
    n_jobs: int | None = None
    verbose: int = 0
    callbacks: Sequence[Callback] = ()

    _rank_axis = "factors"
    _item_arrays = ("item_positions_", "item_means_", "item_deviations_")

    def _flaws(self, lengths: Mapping[str, int]) -> Iterator[str]:
        yield from super()._flaws(lengths)
        if self.block_size_ < 1:
            yield f".block_size_ is {self.block_size_}, which is no size"

    def _fit(self, data: Ratings) -> None:
        rng = self._checkpoint.generator("random start", self.random_state)
        # Weights are of blocks: these stay as they are, whatever the parameter is set to later.
        self.block_size_ = int(self.block_size)
        values = data.values if len(data) else data.levels  # of none, where all are held out
        self.mean_ = float(values.mean())
        self.deviation_ = max(float(values.std()), self._least_deviation(data))
        self.item_means_, self.item_deviations_ = self._standards(data)
        likelihood = Likelihood.of(data, self._standardised(data), *self._settings)
        positions = START * rng.standard_normal((data.n_items, int(self.n_factors)))
        start = np.append(positions, np.log(list(FIRST_PARAMETERS.values())))
        memory = [np.zeros_like(start)]
        solver = Epochs(len(likelihood.blocks), likelihood.epoch, rng, memory)
        rules = Stopping(int(self.max_iter), -np.inf)
        with progress_bar(type(self).__name__, 1, bool(self.verbose)) as report, one_blas_thread():
            watching = [*report(""), *self.callbacks]
            result = self._checkpoint.minimise("epochs", solver, likelihood, start, rules, watching)
        positions, covariance = likelihood.split(result.point)
        self.item_positions_, self.covariance_ = positions.copy(), np.array(covariance)
        # Without ratings they are where they began: in the middle nothing is said of them.
        rated = np.bincount(data.indices, minlength=data.n_items) > 0
        moved = positions[rated] if rated.any() else positions
        self.centre_ = moved.mean(axis=0)
        self.spread_ = float(moved.std(axis=0).mean())
        self.item_positions_[~rated] = self.centre_
        self.given_ = self._conditioned(data)
        self.history_, self.n_iter_ = result.history, result.n_iter
        self.n_evaluations_, self.stop_reason_ = result.n_evaluations, str(result.reason)

    def _fold_in(self, side: Side, data: Ratings) -> None:
        if side == "item":
            self.item_means_, self.item_deviations_ = self._standards(data)
            with one_blas_thread():
                self.item_positions_ = Placing(self, data, self._standardised(data)).positions()
        else:
            self.given_ = self._conditioned(data)

    def _joined(
        self, folded: Self, side: Side, data: Ratings, frequencies: LevelFrequencies | None = None
    ) -> Self:
        joined = super()._joined(folded, side, data, frequencies)
        if side == "user":
            about = self.users_, folded.given_, folded.users_, data.users
            joined.given_ = self.given_.joined(*about)
        return joined

    @property
    def _settings(self) -> tuple[int, int, tuple[float, float]]:
        rates = float(self.learning_rate), float(self.parameter_rate)
        return self.block_size_, int(self.n_factors), rates

    def _least_deviation(self, data: Ratings) -> float:
        least = LEAST_DEVIATION * float(np.ptp(data.levels)) / (data.n_levels - 1)
        return max(least, float(np.finfo(np.float64).tiny))

    def _standards(self, data: Ratings) -> tuple[Float64Array, Float64Array]:
        """Return every item's mean and standard deviation, drawn to those of all ratings."""
        n = SHRINKAGE + np.bincount(data.indices, minlength=data.n_items)
        sums = np.bincount(data.indices, data.values, data.n_items)
        means = (sums + SHRINKAGE * self.mean_) / n
        squares = np.bincount(data.indices, (data.values - means[data.indices]) ** 2, data.n_items)
        deviations = np.sqrt((squares + SHRINKAGE * self.deviation_**2) / n)
        return means, np.maximum(deviations, self._least_deviation(data))

    def _standardised(self, data: Ratings) -> Float64Array:
        return (data.values - self.item_means_[data.indices]) / self.item_deviations_[data.indices]

    def _conditioned(self, data: Ratings) -> GivenRatings:
        """Return what users are conditioned on, given the positions of the items."""
        from scipy.linalg.lapack import dpotrs

        targets, covariance = self._standardised(data), Covariance(*self.covariance_)
        weights = np.zeros(len(data))
        indices = data.indices.astype(np.int32)
        given = GivenRatings(self.item_positions_, data.indptr, indices, weights)

        def task(start: int, stop: int) -> None:
            for user in range(start, stop):
                for entries in blocks_of(data.indptr, user, self.block_size_):
                    factor = covariance.factorised(given.block(entries)[0])
                    weights[entries] = dpotrs(factor.T, targets[entries], lower=1)[0]

        self._over_users(task, np.arange(data.n_users), data.indptr)
        return given

    def _over_users(self, task: Any, users: IntArray, indptr: IntArray) -> None:
        """Run a task for ranges of users, of about as much work each, in threads."""
        work = np.cumsum(np.diff(indptr)[users].astype(np.float64) ** 2 + 1e3)
        total = float(work[-1]) if len(work) else 0.0
        threads = self._n_threads(total)
        cuts = np.searchsorted(work, np.linspace(0, total, 8 * threads + 1)[1:-1])
        bounds = np.concatenate([[0], cuts, [len(users)]]) if threads > 1 else [0, len(users)]
        with one_blas_thread():
            run(task, np.asarray(bounds, np.int64), threads)

    def _predictive(
        self, users: IntArray, items: IntArray, spread: bool
    ) -> tuple[Float64Array, Float64Array]:
        """Return the mean and, if wanted, the standard deviation of the ratings of pairs.

        A user is factorised once for all of their pairs, and every pair is then found by itself.
        """
        order = np.argsort(users, kind="stable")
        asked, firsts = np.unique(users[order], return_index=True)
        ends = np.append(firsts, len(users))
        points, means = self.item_positions_[items[order]], np.empty(len(users))
        variances = np.empty(len(users))
        covariance = Covariance(*self.covariance_)

        def task(start: int, stop: int) -> None:
            for k in range(start, stop):
                own, user = slice(ends[k], ends[k + 1]), int(asked[k])
                blocks = blocks_of(self.given_.indptr, user, self.block_size_)
                found = Committee.of(self.given_, blocks, covariance, points[own], spread)
                means[own], variances[own] = found.means, found.variances

        self._over_users(task, asked, self.given_.indptr)
        deviations = self.item_deviations_[items]
        back = np.empty(len(users), np.int64)
        back[order] = np.arange(len(users))
        spreads = deviations * np.sqrt(np.maximum(variances[back], 0.0) + covariance.noise)
        return self.item_means_[items] + deviations * means[back], spreads

    def _distribution(self, users: IntArray, items: IntArray) -> Float64Array:
        means, spreads = self._predictive(users, items, spread=True)
        above = ndtr(above_midpoints(means, self.levels_) / spreads[:, None])
        edges = np.ones((len(users), 1)), np.zeros((len(users), 1))
        return -np.diff(np.hstack([edges[0], above, edges[1]]), axis=1)

    def _margins(self, users: IntArray, items: IntArray) -> FloatArray:
        # In units of ratings: their signs are those of the log-odds, without any factorisation.
        return above_midpoints(self._predictive(users, items, spread=False)[0], self.levels_)

    def _check(self, data: Ratings) -> None:
        super()._check(data)
        check_number(self, "n_factors", int, 1)
        check_number(self, "max_iter", int, 1)
        check_number(self, "learning_rate", float, 0)
        check_number(self, "parameter_rate", float, 0)
        check_number(self, "block_size", int, 1)
        as_generator(self.random_state)
        check_callbacks(self)


@dataclass(frozen=True, eq=False)
class Placing:
    """Where items lie: what makes their ratings most probable, given what is known of their users.

    Of a new item's users, that is their ratings of other items.  An item that `update_items` learns
    again is among the ratings that its users are conditioned on, where it was: those count as well,
    and draw it to where they were learned.

    Positions are expected to be like those of known items: without that, a few ratings would move
    an item as far as many.  Every item is looked for by itself, uphill from the middle.
    """

    model: GPLVM
    data: Ratings
    targets: Float64Array

    def positions(self) -> Float64Array:
        """Return a position for each of the items."""
        model, n = self.model, self.data.n_items
        points = np.tile(model.centre_, (n, 1))
        spread = max(model.spread_, 1e-6)
        active = np.arange(n)
        values, slopes = self.evaluate(points, active)
        lengths = 0.5 * spread / np.maximum(np.linalg.norm(slopes, axis=1), 1e-12)
        for _ in range(PLACING_STEPS):
            moves = lengths[active, None] * slopes[active]
            sizes = np.linalg.norm(moves, axis=1)
            going = sizes > PLACED * spread
            active, moves, sizes = active[going], moves[going], sizes[going]
            if len(active) == 0:
                break
            moves *= np.minimum(1.0, 2.0 * spread / sizes)[:, None]
            tried = points.copy()
            tried[active] += moves
            found, uphill = self.evaluate(tried, active)
            better = found[active] > values[active]
            # The step that suits the curvature along the last one (Barzilai and Borwein, 1988).
            bends = -np.einsum("nd,nd->n", moves, uphill[active] - slopes[active])
            squares = np.einsum("nd,nd->n", moves, moves)
            suited = np.where(bends > 0, squares / np.maximum(bends, 1e-300), 2 * lengths[active])
            lengths[active] = np.where(better, suited, 0.25 * lengths[active])
            won = active[better]
            points[won], values[won], slopes[won] = tried[won], found[won], uphill[won]
        return points

    def evaluate(self, points: Float64Array, active: IntArray) -> tuple[Float64Array, Float64Array]:
        """Return the log-posterior of some items at their points, and its slopes."""
        model, data = self.model, self.data
        wanted = np.zeros(data.n_items, bool)
        wanted[active] = True
        covariance = Covariance(*model.covariance_)
        values, slopes = np.zeros(len(data)), np.zeros((len(data), points.shape[1]))

        def task(start: int, stop: int) -> None:
            for user in range(start, stop):
                entries = np.arange(data.indptr[user], data.indptr[user + 1])
                entries = entries[wanted[data.indices[entries]]]
                if len(entries) == 0:
                    continue
                blocks = blocks_of(model.given_.indptr, user, model.block_size_)
                at = points[data.indices[entries]]
                found = Committee.of(model.given_, blocks, covariance, at, slopes=True)
                variances, errors = found.variances + covariance.noise, self.targets[entries]
                errors = errors - found.means
                shares = errors**2 / variances
                values[entries] = -0.5 * (np.log(variances) + shares)
                slopes[entries] = (errors / variances)[:, None] * found.mean_slopes
                slopes[entries] += (0.5 * (shares - 1) / variances)[:, None] * found.variance_slopes

        model._over_users(task, np.arange(data.n_users), model.given_.indptr)
        precision = 1.0 / max(model.spread_, 1e-6) ** 2
        away = points - model.centre_
        total: Float64Array = np.bincount(data.indices, values, data.n_items).astype(np.float64)
        total -= 0.5 * precision * np.einsum("nd,nd->n", away, away)
        uphill: Float64Array = -precision * away
        for p in range(points.shape[1]):
            uphill[:, p] += np.bincount(data.indices, slopes[:, p], data.n_items)
        return total, uphill
