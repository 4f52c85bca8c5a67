"""BPMF: Bayesian probabilistic matrix factorisation by Gibbs sampling."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import solve_triangular

from marginmf._utils.parameters import check_number, n_threads
from marginmf._utils.saved import floats
from marginmf._utils.types import Float64Array, FloatArray, IntArray
from marginmf.backends import Backend, get_backend
from marginmf.backends.rows import SIDES, Side
from marginmf.backends.threads import even_bounds, one_blas_thread, run
from marginmf.ratings.base import method
from marginmf.ratings.baselines.products import mean_of, star_unit
from marginmf.ratings.data import Ratings
from marginmf.ratings.estimator import Numbers
from marginmf.ratings.fitting.calibration import distribution_of
from marginmf.ratings.fitting.chains import Sample, Sampled, Sweep, row_keys
from marginmf.ratings.fitting.new_rows import OTHER
from marginmf.ratings.fitting.stages import random_factors

#: The prior of the factors' mean: as if this many rows had been zero.
MEAN_STRENGTH = 2.0
#: The prior of the noise's precision: the shape and the rate of a gamma distribution.
NOISE_SHAPE, NOISE_RATE = 1.0, 1.0
#: The precision of the noise where a chain that learns it begins: that of the published model.
PUBLISHED_NOISE = 2.0
#: The largest precision of the noise that may be given: added to much larger ones, the factors'
#: prior would be lost in the rounding of float64.
MOST_NOISE_PRECISION = 1e6


@method("bpmf")
@dataclass(eq=False, repr=False)
class BPMF(Sampled, Numbers):
    """Bayesian probabilistic matrix factorisation (Salakhutdinov and Mnih, 2008).

    A rating is normal around the mean of all plus the product of its user's and its item's factors.
    Factors are normal, with a mean and a covariance of their side that are learned too, so there is
    no regularisation strength to choose.  Predictions average over samples of all of it.

    Parameters
    ----------
    n_factors : int
        The number of factors.
    noise_precision : float or "learned"
        One over the variance of a rating around its expected value, on a scale from 1 to 5, to
        which others are stretched; at most 1e6.  The published model has 2.0, which is too certain
        of itself on most data.

    Attributes
    ----------
    user_factors_, item_factors_ : array of shape (n_samples, n_ids, n_factors)
        The factors in every sample.
    user_means_, item_means_ : array of shape (n_samples, n_factors)
        The means of their distributions.
    user_precisions_, item_precisions_ : array of shape (n_samples, n_factors, n_factors)
        The inverses of their covariances.
    noise_precisions_ : array of shape (n_samples,)
        The precision of a rating, on a scale from 1 to 5.
    mean_ : float
        The mean rating.

    Examples
    --------
    >>> from marginmf.datasets import make_ratings
    >>> data = make_ratings(50, 40, n_factors=8, observed=0.5, random_state=0)
    >>> model = BPMF(n_factors=3, n_samples=10, random_state=0).fit(data.pairs, data.ratings)
    >>> low, high = model.credible_interval(data.pairs[:1], level=0.9)[0]
    >>> bool(low < model.predict(data.pairs[:1], output="mean")[0] < high)
    True
    """

    _saved: ClassVar[dict[str, Any]] = {
        "user_factors_": floats("samples", "users", "factors"),
        "item_factors_": floats("samples", "items", "factors"),
        "user_means_": floats("samples", "factors"),
        "item_means_": floats("samples", "factors"),
        "user_precisions_": floats("samples", "factors", "factors"),
        "item_precisions_": floats("samples", "factors", "factors"),
        "noise_precisions_": floats("samples"),
        "mean_": float,
    }
    n_factors: int = 32
    _: KW_ONLY
    noise_precision: float | str = "learned"

    _rank_axis = "factors"
    _user_arrays = ("user_factors_",)
    _item_arrays = ("item_factors_",)

    def _sampler(self, data: Ratings) -> "FactorSampler":
        self.mean_ = mean_of(data)
        given = self.noise_precision
        noise = None if isinstance(given, str) else float(given)
        backend = get_backend("cpu", n_threads(self.n_jobs))
        residuals = _residuals(data, self.mean_, star_unit(self.levels_))
        return FactorSampler(data, residuals, int(self.n_factors), noise, backend)

    def _fold_in(self, side: Side, data: Ratings) -> None:
        backend, rows = self._arithmetic(), data.view(side)
        keys = row_keys(rows)
        residuals = _residuals(data, self.mean_, star_unit(self.levels_))[side]
        given = getattr(self, f"{OTHER[side]}_factors_")
        means, precisions = (getattr(self, f"{side}_{name}_") for name in ("means", "precisions"))
        factors = np.empty((len(given), rows.n_rows, given.shape[2]), given.dtype)
        for k, noise in enumerate(self.noise_precisions_):
            precision = precisions[k].astype(np.float64)
            with one_blas_thread():
                shift = precision @ means[k]
            factors[k] = backend.draw_rows(
                *(rows, given[k], noise[None], noise * residuals, precision, shift),
                self._new_row_sweep(side, k).row_normals(keys, 0, given.shape[2]),
            )
        if not np.isfinite(factors).all():
            raise FloatingPointError(
                f"The factors of new {side}s are not finite: the numbers of a sample overflow, or "
                "its prior is not positive definite. Fit again, with a smaller noise_precision."
            )
        setattr(self, f"{side}_factors_", factors)

    def _mean_distribution(self, users: IntArray, items: IntArray, which: slice) -> Float64Array:
        from marginmf.backends.cpu.sampling import gaussian_chances

        edges = (self.levels_[:-1] + self.levels_[1:]) / 2 - self.mean_
        edges /= star_unit(self.levels_)
        precisions = np.sqrt(self.noise_precisions_[which].astype(np.float64))
        U, V = self.user_factors_[which], self.item_factors_[which]
        above, work = np.zeros((len(users), len(edges))), len(precisions) * U.shape[2]
        threads = self._n_threads(len(users) * work)
        bounds = even_bounds(len(users), threads, work)
        run(gaussian_chances, bounds, threads, users, items, U, V, precisions, edges, above)
        return distribution_of(above)

    def _check(self, data: Ratings) -> None:
        super()._check(data)
        check_number(self, "n_factors", int, 1)
        bounds = np.nextafter(0, 1), MOST_NOISE_PRECISION
        check_number(self, "noise_precision", float, *bounds, word="learned")


def _residuals(data: Ratings, mean: float, unit: float) -> dict[Side, FloatArray]:
    """Return what ratings are beyond the mean, in units, in the order of users and of items."""
    by_user = ((data.values - mean) / unit).astype(np.float32)
    return {"user": by_user, "item": by_user[data.item_order]}


class FactorSampler:
    """The sweeps of BPMF: users' prior, users, items' prior, items, and the noise."""

    def __init__(
        self,
        data: Ratings,
        residuals: dict[Side, FloatArray],
        n_factors: int,
        noise: float | None,
        backend: Backend,
    ) -> None:
        self.data, self.residuals, self.backend = data, residuals, backend
        self.n_factors, self.noise = n_factors, noise
        d, self.kept = n_factors, dict[str, tuple[int, ...]]()
        for side in SIDES:
            self.kept |= {
                f"{side}_factors_": (data.view(side).n_rows, d),
                f"{side}_means_": (d,),
                f"{side}_precisions_": (d, d),
            }
        self.kept["noise_precisions_"] = ()

    def start(self, sweep: Sweep) -> tuple[Sample, float]:
        """Return small random factors."""
        current = {name: np.zeros(shape, np.float32) for name, shape in self.kept.items()}
        for step, side in enumerate(SIDES):
            n_rows, generator = self.data.view(side).n_rows, sweep.generator(step)
            factors = random_factors(generator, n_rows, self.n_factors, np.float32)
            current[f"{side}_factors_"] = factors
        noise = PUBLISHED_NOISE if self.noise is None else self.noise
        current["noise_precisions_"] = np.array(noise, np.float32)
        return current, self._squared_error(current)

    def sweep(self, current: Sample, sweep: Sweep) -> tuple[Sample, float]:
        """Draw everything once, given all the rest."""
        drawn = dict(current)
        noise = drawn["noise_precisions_"]
        for step, side in enumerate(SIDES):
            factors = drawn[f"{side}_factors_"]
            mean, precision = draw_normal_wishart(factors, sweep.generator(2 * step))
            with one_blas_thread():
                shift = precision @ mean
            drawn[f"{side}_factors_"] = self.backend.draw_rows(
                self.data.view(side),
                drawn[f"{OTHER[side]}_factors_"],
                noise[None],
                noise * self.residuals[side],
                precision,
                shift,
                sweep.normals(2 * step + 1, factors.shape),
            )
            drawn[f"{side}_means_"] = mean.astype(np.float32)
            drawn[f"{side}_precisions_"] = precision.astype(np.float32)
        error = self._squared_error(drawn)
        if self.noise is None:
            shape, rate = NOISE_SHAPE + len(self.data) / 2, NOISE_RATE + error / 2
            drawn["noise_precisions_"] = np.array(
                sweep.generator(2 * len(SIDES)).gamma(shape, 1 / rate), np.float32
            )
        return drawn, error

    def _squared_error(self, current: Sample) -> float:
        data = self.data
        factors = (current[f"{side}_factors_"] for side in SIDES)
        left = self.residuals["user"] - self.backend.scores(data.rows, data.indices, *factors)
        return float(np.square(left, dtype=np.float64).sum())


def draw_normal_wishart(
    factors: FloatArray, generator: np.random.Generator
) -> tuple[Float64Array, Float64Array]:
    """Draw the mean and the precision of the distribution that these rows come from.

    The prior of the precision is Wishart, with as many degrees of freedom as there are factors and
    the identity for its scale; that of the mean is normal with the precision times `MEAN_STRENGTH`.
    """
    n, d = factors.shape
    with one_blas_thread():  # so that threads do not change the rounding
        centre = factors.mean(axis=0, dtype=np.float64)
        centred = factors - centre
        scatter = centred.T @ centred
        strength = MEAN_STRENGTH + n
        inverse_scale = np.eye(d) + scatter
        inverse_scale += MEAN_STRENGTH * n / strength * np.outer(centre, centre)
        # By Bartlett: with A lower triangular, L A is the root of a draw whose scale is L L^T.
        bartlett = np.tril(generator.standard_normal((d, d)), -1)
        bartlett[np.diag_indices(d)] = np.sqrt(generator.chisquare(d + n - np.arange(d)))
        # If C C^T is the inverse of the scale, C^-T is a root of the scale, though not a triangular
        # one: any root is as good.
        root = solve_triangular(
            np.linalg.cholesky(inverse_scale), bartlett, lower=True, trans="T", check_finite=False
        )
        precision = root @ root.T
        upper = np.linalg.cholesky(strength * precision).T
        noise = solve_triangular(upper, generator.standard_normal(d), check_finite=False)
    return n / strength * centre + noise, precision
