"""Max-margin factorisation by Gibbs sampling: the hinge loss as a mixture of Gaussians."""

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from math import prod
from typing import Any, ClassVar, Self

import numpy as np

from marginmf._utils.parameters import check_choice, check_number
from marginmf._utils.saved import floats
from marginmf._utils.types import Float64Array, FloatArray, IntArray
from marginmf.backends import Backend
from marginmf.backends.rows import SIDES, Rows, Side
from marginmf.backends.threads import even_bounds, one_blas_thread, run
from marginmf.progress import progress_bar
from marginmf.ratings.base import method
from marginmf.ratings.data import Ratings
from marginmf.ratings.fitting.chains import Keys, Sample, Sampled, Sweep, row_keys, split_samples
from marginmf.ratings.fitting.mixtures import (
    Hinge,
    Terms,
    draw_terms,
    hinge_loss,
    new_item_terms,
    new_user_terms,
    published_prior,
    shared_noise,
)
from marginmf.ratings.fitting.new_rows import OTHER
from marginmf.solvers import State, Stopping, Vectors

#: Sweeps for new rows: in each sample, from the prior's means to a draw that no longer knows them.
NEW_ROW_SWEEPS = 10
#: The same of EM, which has one sample and ends in short steps.
EM_NEW_ROW_SWEEPS = 200
#: The prior of one over the variance of users' thresholds: the shape and the rate of a gamma
#: distribution.
SHAPE, RATE = 1.0, 0.1
#: The size of the factors that a chain with learned means begins with.
START = 0.3
#: The least and the largest precision of factors: all that lies between stays finite in float32.
PRECISIONS = 1e-6, 1e6
#: Where EM stops: when sweeps lower the objective by less than this share.
EM_TOL = 1e-5
#: The parts of a sweep that draw random numbers, after those of `draw_terms`.
FACTORS, MEANS, PRIOR = range(1, 4)


@dataclass(eq=False, repr=False)
class HingeMixture(Sampled):
    """A factorisation with users' own thresholds, under hinge losses and sampled.

    Parameters
    ----------
    cost : float
        What a unit of hinge loss costs, C in the literature: how closely ratings are followed.
    margin : float
        How far scores should be from every threshold.

    Attributes
    ----------
    thresholds_ : array of shape (n_samples, n_users, n_levels - 1)
        Each user's thresholds in every sample; they may cross.
    threshold_means_, threshold_precisions_ : array of shape (n_samples, n_levels - 1)
        The means of their distributions over users, and one over the variances.
    cost_, margin_ : float
        Those of the fit: predictions depend on them.
    """

    _saved: ClassVar[dict[str, Any]] = {
        "user_factors_": floats("samples", "users", "factors"),
        "item_factors_": floats("samples", "items", "factors"),
        "thresholds_": floats("samples", "users", "stages"),
        "threshold_means_": floats("samples", "stages"),
        "threshold_precisions_": floats("samples", "stages"),
        "cost_": float,
        "margin_": float,
    }
    _: KW_ONLY
    cost: float = 0.7
    margin: float = 1.0

    _user_arrays = ("user_factors_", "thresholds_")
    _item_arrays = ("item_factors_",)

    @property
    def _noiseless(self) -> bool:
        """Whether conditional means stand for all draws."""
        return False

    @property
    def _hinge(self) -> Hinge:
        return Hinge(self.cost_, self.margin_)

    @abstractmethod
    def _row_prior(self, side: Side, sample: int) -> tuple[Float64Array, Float64Array]:
        """Return the mean and the precision of one side's rows of factors in a sample."""

    def _new_factors(
        self,
        side: Side,
        sample: int,
        rows: Rows,
        keys: Keys,
        factors: FloatArray,
        terms: Terms,
        sweep: Sweep,
    ) -> FloatArray:
        """Return the next draw of new rows' factors in a sample, given their scores' terms."""
        mean, precision = self._row_prior(side, sample)
        given = getattr(self, f"{OTHER[side]}_factors_")[sample].astype(np.float64)
        noise = sweep.row_normals(keys, FACTORS, len(mean)) * (not self._noiseless)
        with one_blas_thread():  # so that threads do not change the rounding
            shift = precision @ mean
        return self._arithmetic().draw_rows(rows, given, *terms, precision, shift, noise)

    def _fold_in(self, side: Side, data: Ratings) -> None:
        drawn = [self._new_sample(side, data, sample) for sample in range(len(self.thresholds_))]
        factors, thresholds = zip(*drawn, strict=True)
        self.__dict__[f"{side}_factors_"] = np.stack(factors)
        if side == "user":
            self.__dict__["thresholds_"] = np.stack(thresholds)

    def _new_sample(self, side: Side, data: Ratings, sample: int) -> tuple[FloatArray, FloatArray]:
        """Return the factors of new rows in a sample, and their thresholds if they have any."""
        rows, (mean, _) = data.view(side), self._row_prior(side, sample)
        keys = row_keys(rows)
        given = getattr(self, f"{OTHER[side]}_factors_")[sample].astype(np.float64)
        factors: FloatArray = np.tile(mean, (rows.n_rows, 1))
        thresholds = self.thresholds_[sample].astype(np.float64)
        prior = np.stack([self.threshold_means_[sample], self.threshold_precisions_[sample]])
        prior = prior.astype(np.float64)
        if side == "user":
            thresholds = np.tile(prior[0], (rows.n_rows, 1))
        longest = 0 if self._noiseless else int(np.diff(rows.indptr).max(initial=0))
        threads = self._n_threads(len(rows) * (len(mean) + 8 * prior.shape[1]))
        n_sweeps = EM_NEW_ROW_SWEEPS if self._noiseless else NEW_ROW_SWEEPS
        for number in range(n_sweeps):
            sweep = self._new_row_sweep(side, sample * n_sweeps + number)
            noise = shared_noise(sweep, longest, prior.shape[1])
            if side == "user":
                own = sweep.row_normals(keys, PRIOR, prior.shape[1]) * (not self._noiseless)
                arguments = (thresholds, prior, self._hinge, noise, own, threads)
                terms = new_user_terms(rows, factors, given, *arguments)
            else:
                terms = new_item_terms(
                    rows, factors, given, thresholds, self._hinge, noise, threads
                )
            factors = self._new_factors(side, sample, rows, keys, factors, terms, sweep)
        return factors.astype(np.float32), thresholds.astype(np.float32)

    def _mean_distribution(self, users: IntArray, items: IntArray, which: slice) -> Float64Array:
        from marginmf.backends.cpu.mixtures import add_distributions

        arrays = (self.user_factors_[which], self.item_factors_[which], self.thresholds_[which])
        chances = np.zeros((len(users), len(self.levels_)))
        work = len(arrays[0]) * (arrays[0].shape[2] + 20 * len(self.levels_))
        threads = self._n_threads(len(users) * work)
        bounds = even_bounds(len(users), threads, work)
        run(add_distributions, bounds, threads, users, items, *arrays, *self._hinge, chances)
        return chances / len(arrays[0])

    def _margins(self, users: IntArray, items: IntArray) -> FloatArray:
        # The rule of the literature: mean scores against mean thresholds.
        backend, scores = self._arithmetic(), np.zeros(len(users))
        for U, V in zip(self.user_factors_, self.item_factors_, strict=True):
            scores += backend.scores(users, items, U, V)
        return (scores / len(self.thresholds_))[:, None] - self._mean_thresholds[users]

    @property
    def _mean_thresholds(self) -> Float64Array:
        return self.thresholds_.mean(axis=0, dtype=np.float64)

    def _fit(self, data: Ratings) -> None:
        self.cost_, self.margin_ = float(self.cost), float(self.margin)
        super()._fit(data)

    def _check(self, data: Ratings) -> None:
        super()._check(data)
        check_number(self, "cost", float, np.nextafter(0, 1))
        check_number(self, "margin", float, 1e-9, 1e9)  # one over its square is float32


@method("gibbsmmmf")
@dataclass(eq=False, repr=False)
class GibbsMMMF(HingeMixture):
    """Max-margin matrix factorisation by Gibbs sampling (Xu, Zhu and Zhang, 2013).

    The loss is that of MMMF: hinges on a margin to every threshold of the user.  As a mixture of
    Gaussians it lets factors, thresholds and the scales of the mixture be drawn in turn from
    well-known distributions, and predictions average over many draws.

    By default the means of factors and the distribution of thresholds are learned, which needs
    far fewer factors than the published model; `published` returns that one.

    Parameters
    ----------
    n_factors : int
        The number of factors.
    cost : float
        What a unit of hinge loss costs, C in the literature: how closely ratings are followed.
        Good values of ``precision`` are about 8 to 12 times as large.
    precision : float
        One over the variance of the factors around their means: the regularisation strength, from
        1e-6 to 1e6.
    margin : float
        How far scores should be from every threshold.
    prior : {"learned", "fixed"}
        Whether the means of factors and of thresholds, and how users' thresholds vary, are learned.
        Fixed, as published: factors have mean 0, and thresholds normal distributions with means
        three margins apart and a standard deviation of one and a half.
        Learned means of factors and thresholds never settle where ratings are few, or fit without
        any loss: larger ones always look better.  In no case that was tried did predictions suffer.
    solver : {"gibbs", "em"}
        EM puts the conditional mean in the place of every draw: one sample to predict from, and no
        uncertainty.  No sweep lowers the posterior, but it may stop short of the maximum, where
        margins that are met exactly hold factors and thresholds.  It makes at most as many sweeps
        as a chain would, ``n_burn + n_samples * thin``, and forgets and keeps none.  A callback may
        stop it after any sweep, which is no error.

    Attributes
    ----------
    user_factors_, item_factors_ : array of shape (n_samples, n_ids, n_factors)
        The factors in every sample; of EM, all arrays have one sample.
    user_means_, item_means_ : array of shape (n_samples, n_factors)
        The means of their distributions.

    Examples
    --------
    >>> from marginmf.datasets import make_ratings
    >>> data = make_ratings(50, 40, n_factors=2, observed=0.5, random_state=0)
    >>> model = GibbsMMMF(n_factors=3, n_samples=20, thin=1, random_state=0)
    >>> model = model.fit(data.pairs, data.ratings)
    >>> model.thresholds_.shape
    (20, 50, 4)
    >>> GibbsMMMF.published(random_state=0).margin
    9.0
    """

    _saved: ClassVar[dict[str, Any]] = {
        "user_means_": floats("samples", "factors"),
        "item_means_": floats("samples", "factors"),
    }
    _rank_axis = "factors"
    n_factors: int = 16
    _: KW_ONLY
    precision: float = 6.0
    prior: str = "learned"
    solver: str = "gibbs"
    n_burn: int = 30

    @classmethod
    def published(cls, **changes: Any) -> Self:
        """Return an estimator with the published settings but for these changes.

        The published ``cost`` was chosen for each data set, from 0.01 to 0.18.  The published
        predictions are those of ``predict(..., output="rule")``.
        """
        settings: dict[str, Any] = {
            "n_factors": 100,
            "cost": 0.1,
            "precision": 1.0,
            "margin": 9.0,
            "prior": "fixed",
            "n_burn": 10,
            "n_samples": 40,
            "thin": 1,
        }
        return cls(**settings | changes)

    @property
    def _noiseless(self) -> bool:
        return self.solver == "em"

    def _sampler(self, data: Ratings) -> "MarginSampler":
        precision, learned = float(self.precision), self.prior == "learned"
        return MarginSampler(
            *(data, int(self.n_factors), self._hinge, precision, learned),
            *(self._noiseless, self._arithmetic(), self._n_threads()),
        )

    def _fit(self, data: Ratings) -> None:
        if not self._noiseless:
            super()._fit(data)
            return
        self.cost_, self.margin_ = float(self.cost), float(self.margin)
        sampler = self._sampler(data)
        generator = self._checkpoint.generator("seed", self.random_state)
        solver = Maximiser(sampler, int(generator.integers(2**63)))
        stopping = Stopping(self.n_burn + self.n_samples * self.thin, tol=EM_TOL)
        start = np.zeros(sum(map(prod, sampler.kept.values())))
        with progress_bar(type(self).__name__, 1, bool(self.verbose)) as report:
            callbacks = [*self.callbacks, *report("sweeps")]
            result = self._checkpoint.minimise("EM", solver, None, start, stopping, callbacks)
        for name, array in split_samples(result.point, 1, sampler.kept).items():
            setattr(self, name, array.astype(np.float32))
        self.history_, self.n_iter_ = result.history, result.n_iter
        self.n_evaluations_, self.stop_reason_ = result.n_iter, str(result.reason)

    def _row_prior(self, side: Side, sample: int) -> tuple[Float64Array, Float64Array]:
        mean = getattr(self, f"{side}_means_")[sample].astype(np.float64)
        return mean, float(self.precision) * np.eye(len(mean))

    def _margins(self, users: IntArray, items: IntArray) -> FloatArray:
        if self.user_means_.any():
            return super()._margins(users, items)
        # As published: the product of the means, instead of the mean of the products.
        sides = (self.user_factors_, self.item_factors_)
        means = (factors.mean(axis=0, dtype=np.float64) for factors in sides)
        scores = self._arithmetic().scores(users, items, *means)
        return scores[:, None] - self._mean_thresholds[users]

    def _check(self, data: Ratings) -> None:
        super()._check(data)
        check_number(self, "n_factors", int, 1)
        check_number(self, "precision", float, *PRECISIONS)
        check_choice(self, "prior", ("learned", "fixed"))
        check_choice(self, "solver", ("gibbs", "em"))


class MarginSampler:
    """The sweeps of Gibbs MMMF, with conditional means for draws if it is ``noiseless``."""

    def __init__(
        self,
        data: Ratings,
        n_factors: int,
        hinge: Hinge,
        precision: float,
        learned: bool,
        noiseless: bool,
        backend: Backend,
        n_threads: int,
    ) -> None:
        self.data, self.hinge, self.precision, self.learned = data, hinge, precision, learned
        self.noiseless, self.backend, self.n_threads = noiseless, backend, n_threads
        n_thresholds = data.n_levels - 1
        self.kept: Mapping[str, tuple[int, ...]] = {
            "user_factors_": (data.n_users, n_factors),
            "item_factors_": (data.n_items, n_factors),
            "user_means_": (n_factors,),
            "item_means_": (n_factors,),
            "thresholds_": (data.n_users, n_thresholds),
            "threshold_means_": (n_thresholds,),
            "threshold_precisions_": (n_thresholds,),
        }

    def start(self, sweep: Sweep) -> tuple[Sample, float]:
        """Return small random factors, and all thresholds at the published means."""
        current: dict[str, FloatArray] = {}
        scale = START if self.learned else self.precision**-0.5
        for step, side in enumerate(SIDES):
            shape = self.kept[f"{side}_factors_"]
            current[f"{side}_factors_"] = scale * sweep.normals(step, shape)
            current[f"{side}_means_"] = np.zeros(shape[1])
        current["threshold_means_"], precisions = published_prior(self.data, self.hinge)
        current["threshold_precisions_"] = precisions
        current["thresholds_"] = np.tile(current["threshold_means_"], (self.data.n_users, 1))
        return current, self.objective(current)

    def sweep(self, current: Sample, sweep: Sweep) -> tuple[Sample, float]:
        """Draw everything once, given all the rest."""
        drawn = dict(current)
        prior = np.stack([drawn["threshold_means_"], drawn["threshold_precisions_"]])
        U, V = drawn["user_factors_"], drawn["item_factors_"]
        drawn["thresholds_"], terms = draw_terms(
            *(self.data, U, V, drawn["thresholds_"], prior, self.hinge),
            *(None if self.noiseless else sweep, self.n_threads),
        )
        order, d = self.data.item_order, U.shape[1]
        of_items = Terms(*(each[order] for each in terms))
        for number, (side, own) in enumerate(zip(SIDES, (terms, of_items), strict=True)):
            name, mean = f"{side}_factors_", drawn[f"{side}_means_"]
            factors = drawn[name]
            if self.learned:
                variance = 1.0 / (self.precision * len(factors))
                noise = self._normals(sweep, MEANS + 10 * number, (d,))
                drawn[f"{side}_means_"] = mean = factors.mean(axis=0) + np.sqrt(variance) * noise
            drawn[name] = self.backend.draw_rows(
                self.data.view(side),
                drawn[f"{OTHER[side]}_factors_"],
                *own,
                precision=self.precision * np.eye(d),
                shift=np.asarray(self.precision * mean, np.float64),
                noise=self._normals(sweep, FACTORS + 10 * number, factors.shape),
            )
        if self.learned:
            self._draw_threshold_prior(drawn, sweep)
        return drawn, self.objective(drawn)

    def _draw_threshold_prior(self, drawn: dict[str, FloatArray], sweep: Sweep) -> None:
        thresholds, generator = drawn["thresholds_"], sweep.generator(PRIOR)
        n, n_thresholds = thresholds.shape
        spread = np.sqrt(1.0 / (n * drawn["threshold_precisions_"]))
        noise = self._normals(sweep, MEANS + 20, (n_thresholds,))
        means = thresholds.mean(axis=0) + spread * noise
        shape, rates = SHAPE + n / 2, RATE + np.square(thresholds - means).sum(axis=0) / 2
        gammas = np.full(n_thresholds, shape)
        if not self.noiseless:
            gammas = generator.standard_gamma(gammas)
        drawn["threshold_means_"], drawn["threshold_precisions_"] = means, gammas / rates

    def _normals(self, sweep: Sweep, step: int, shape: tuple[int, ...]) -> Float64Array:
        return np.zeros(shape) if self.noiseless else sweep.normals(step, shape)

    def objective(self, current: Sample) -> float:
        """Return what EM lowers: minus the logarithm of the posterior, up to a constant."""
        hinges = hinge_loss(self.data, current, self.hinge.margin, self.n_threads)
        total = self.hinge.cost * hinges
        for side in SIDES:
            centred = current[f"{side}_factors_"] - current[f"{side}_means_"]
            total += self.precision / 2 * np.square(centred).sum()
        deviations = current["thresholds_"] - current["threshold_means_"]
        precisions = current["threshold_precisions_"]
        total += (precisions * np.square(deviations).sum(axis=0)).sum() / 2
        if self.learned:
            # By the logarithm of a precision: the mean of its gamma distribution is the mode then.
            shape = SHAPE + len(deviations) / 2
            total += (RATE * precisions - shape * np.log(precisions)).sum()
        return float(total)


@dataclass(frozen=True)
class Maximiser:
    """EM as a solver: a sampler without noise, whose state is the point."""

    sampler: MarginSampler
    seed: int

    def steps(self, objective: Any, start: Any, vectors: Vectors) -> Iterator[State]:
        """Yield a state after every sweep; the first is where they begin."""
        if isinstance(start, State):
            number, parts = start.n_evaluations, split_samples(start.point, 1, self.sampler.kept)
            current: Sample = {name: part[0] for name, part in parts.items()}
        else:
            current, value = self.sampler.start(Sweep(self.seed, 0))
            number = 0
            yield self._state(current, number, value)
        while True:
            number += 1
            current, value = self.sampler.sweep(current, Sweep(self.seed, number))
            yield self._state(current, number, value)

    def _state(self, current: Sample, number: int, value: float) -> State:
        point = np.concatenate([current[name].ravel() for name in self.sampler.kept])
        return State(point, value, np.nan, number)
