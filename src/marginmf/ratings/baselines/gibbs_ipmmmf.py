"""Max-margin factorisation with a number of binary features that the ratings choose."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from marginmf._utils.parameters import check_number
from marginmf._utils.saved import floats
from marginmf._utils.types import Float64Array, FloatArray, IntArray
from marginmf.backends import Backend
from marginmf.backends.rows import Rows, Side
from marginmf.backends.threads import row_bounds, run
from marginmf.ratings.base import method
from marginmf.ratings.baselines.gibbs_mmmf import HingeMixture
from marginmf.ratings.data import Ratings
from marginmf.ratings.fitting.chains import Keys, Sample, Sweep, copy_views
from marginmf.ratings.fitting.mixtures import Hinge, Terms, draw_terms, hinge_loss, published_prior

#: The most features that a user may be given at a time.
MOST_BIRTHS = 10
#: The variance of what a feature adds to an item's scores.
VARIANCE = 1.0
#: A chain begins with this many times as many features as are usual before any ratings, each had by
#: half of the users.  From a draw of the process itself, or from nothing, it needs far more sweeps.
MORE_FEATURES = 2.0
#: The parts of a sweep that draw random numbers, after those of `draw_terms`.
FEATURES, ORDER, BIRTHS, ITEMS = range(1, 5)


@method("gibbsipmmmf")
@dataclass(eq=False, repr=False)
class GibbsIPMMMF(HingeMixture):
    """Infinite max-margin matrix factorisation by Gibbs sampling (Xu, Zhu and Zhang, 2013).

    Users have or lack features, by an Indian buffet process: any number of them, which is
    sampled with the rest.  Items have a weight for each feature, and users thresholds, under the
    loss of MMMF; see `GibbsMMMF`.  The settings are the published ones.

    The number of features keeps rising for more sweeps than the published fifty.

    Parameters
    ----------
    concentration : float
        How many features a user has before any ratings, in the mean: alpha in the literature.
    max_factors : int
        There are no more features than this, because effort grows with the square of the number;
        ``limit_reached_`` says in which samples there might have been more.
    margin : float
        How far scores should be from every threshold, where a feature's weights are about 1.

    Attributes
    ----------
    user_factors_ : array of shape (n_samples, n_users, n_features)
        1 where a user has a feature in a sample, else 0.
    item_factors_ : array of shape (n_samples, n_items, n_features)
        The items' weights of features.
    feature_shares_ : array of shape (n_samples, n_features)
        The share of the users in training who have a feature; 0 for what a sample does not use.
    limit_reached_ : array of shape (n_samples,)
        1 where there are ``max_factors`` features and might have been more, else 0.

    Examples
    --------
    >>> from marginmf.datasets import make_ratings
    >>> data = make_ratings(50, 40, n_factors=2, observed=0.5, random_state=0)
    >>> model = GibbsIPMMMF(n_samples=20, random_state=0).fit(data.pairs, data.ratings)
    >>> np.unique(model.user_factors_)
    array([0., 1.], dtype=float32)
    """

    _saved: ClassVar[dict[str, Any]] = {
        "feature_shares_": floats("samples", "factors"),
        "limit_reached_": floats("samples"),
    }
    concentration: float = 3.0
    _: KW_ONLY
    max_factors: int = 100
    cost: float = 0.1
    margin: float = 9.0
    n_burn: int = 10
    n_samples: int = 40
    thin: int = 1

    def _sampler(self, data: Ratings) -> "FeatureSampler":
        return FeatureSampler(
            *(data, float(self.concentration), int(self.max_factors), self._hinge),
            *(self._arithmetic(), self._n_threads()),
        )

    def _fit(self, data: Ratings) -> None:
        super()._fit(data)
        # Features that are in use come first in every sample.
        n_used = max(1, int((self.feature_shares_ > 0).sum(axis=1).max()))
        for name in ("user_factors_", "item_factors_", "feature_shares_"):
            setattr(self, name, getattr(self, name)[..., :n_used])
        copy_views(self)

    def _row_prior(self, side: Side, sample: int) -> tuple[Float64Array, Float64Array]:
        n_features = self.item_factors_.shape[2]
        return np.zeros(n_features), np.eye(n_features) / VARIANCE

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
        if side == "item":
            weights = super()._new_factors(side, sample, rows, keys, factors, terms, sweep)
            return weights * (self.feature_shares_[sample] > 0)
        from marginmf.backends.cpu.mixtures import draw_features

        Z, V = factors.copy(), self.item_factors_[sample].astype(np.float64)
        shares = self.feature_shares_[sample].astype(np.float64)
        with np.errstate(divide="ignore"):  # nobody has what a sample does not use
            log_odds = np.log(shares / (1.0 - shares))
        uniforms = sweep.row_uniforms(keys, FEATURES, len(shares))
        threads = self._n_threads(len(rows) * len(shares))
        bounds = row_bounds(rows.indptr, threads, len(shares))
        arguments = (rows.indptr, rows.indices, *terms, V, log_odds, uniforms, Z)
        run(draw_features, bounds, threads, *arguments)
        return Z

    def _check(self, data: Ratings) -> None:
        super()._check(data)
        check_number(self, "concentration", float, np.nextafter(0, 1))
        check_number(self, "max_factors", int, 1)


class FeatureSampler:
    """The sweeps of Gibbs iPMMMF.  Features in use come first; what follows is zero."""

    def __init__(
        self,
        data: Ratings,
        concentration: float,
        max_factors: int,
        hinge: Hinge,
        backend: Backend,
        n_threads: int,
    ) -> None:
        self.data, self.hinge, self.backend, self.n_threads = data, hinge, backend, n_threads
        self.concentration, self.max_factors = concentration, max_factors
        self.longest = int(np.diff(data.indptr).max())
        n_thresholds = data.n_levels - 1
        self.kept: Mapping[str, tuple[int, ...]] = {
            "user_factors_": (data.n_users, max_factors),
            "item_factors_": (data.n_items, max_factors),
            "feature_shares_": (max_factors,),
            "limit_reached_": (),
            "thresholds_": (data.n_users, n_thresholds),
            "threshold_means_": (n_thresholds,),
            "threshold_precisions_": (n_thresholds,),
        }

    def start(self, sweep: Sweep) -> tuple[Sample, float]:
        """Return random features, with all thresholds at their means."""
        n = self.data.n_users
        # The process has this many features in the mean, before any ratings.
        usual = self.concentration * (1.0 / np.arange(1, n + 1)).sum()
        n_features = min(self.max_factors, round(MORE_FEATURES * usual))
        Z = (sweep.generator(FEATURES).random((n, n_features)) < 0.5).astype(np.float64)
        Z = np.ascontiguousarray(Z[:, Z.any(axis=0)])
        V = np.sqrt(VARIANCE) * sweep.normals(ITEMS, (self.data.n_items, Z.shape[1]))
        means, precisions = published_prior(self.data, self.hinge)
        current = {
            "thresholds_": np.tile(means, (self.data.n_users, 1)),
            "threshold_means_": means,
            "threshold_precisions_": precisions,
        }
        return self._sample(current, Z, V)

    def sweep(self, current: Sample, sweep: Sweep) -> tuple[Sample, float]:
        """Draw everything once, given all the rest."""
        drawn, data = dict(current), self.data
        n_used = int((drawn["feature_shares_"] > 0).sum())
        Z, V = (
            np.ascontiguousarray(drawn[f"{side}_factors_"][:, :n_used]) for side in ("user", "item")
        )
        prior = np.stack([drawn["threshold_means_"], drawn["threshold_precisions_"]])
        drawn["thresholds_"], terms = draw_terms(
            *(data, Z, V, drawn["thresholds_"], prior, self.hinge, sweep, self.n_threads)
        )
        Z = self._draw_features(Z, V, terms, sweep)
        n_used = Z.shape[1]
        V = self.backend.draw_rows(
            data.by_item,
            Z,
            terms.weights[data.item_order],
            terms.linear[data.item_order],
            precision=np.eye(n_used) / VARIANCE,
            shift=np.zeros(n_used),
            noise=sweep.normals(ITEMS, (data.n_items, n_used)),
        )
        return self._sample(drawn, Z, V)

    def _draw_features(
        self, Z: FloatArray, V: FloatArray, terms: Terms, sweep: Sweep
    ) -> FloatArray:
        """Return which users have which features, of those in use."""
        from marginmf.backends.cpu.mixtures import next_birth

        data, generator = self.data, sweep.generator(BIRTHS)
        order = sweep.generator(ORDER).permutation(data.n_users)
        uniforms = sweep.generator(FEATURES).random((data.n_users, 1 + self.max_factors))
        Z, counts = Z.copy(), Z.sum(axis=0).astype(np.int64)
        scores, position = np.empty(self.longest), 0
        entries = (order, data.indptr, data.indices, *terms)
        arguments = (self.concentration, VARIANCE, MOST_BIRTHS, self.max_factors, uniforms, scores)
        while True:
            used = counts > 0
            Z, V, counts = Z[:, used], V[:, used], counts[used]
            position, n_new = next_birth(position, *entries, V, Z, counts, *arguments)
            if n_new == 0:
                return np.ascontiguousarray(Z[:, counts > 0])
            user, position = order[position], position + 1
            own = slice(data.indptr[user], data.indptr[user + 1])
            born = self._draw_weights(
                *(n_new, data.indices[own], scores[: own.stop - own.start]),
                *(Terms(terms.weights[own], terms.linear[own]), generator),
            )
            V, mine = np.hstack([V, born]), np.zeros((data.n_users, n_new))
            mine[user] = 1.0
            Z, counts = np.hstack([Z, mine]), np.append(counts, np.ones(n_new, np.int64))

    def _draw_weights(
        self,
        n_new: int,
        rated: IntArray,
        scores: FloatArray,
        terms: Terms,
        generator: np.random.Generator,
    ) -> FloatArray:
        """Return the items' weights of new features of a user who rated some, with these scores."""
        born = np.sqrt(VARIANCE) * generator.standard_normal((self.data.n_items, n_new))
        # What the new features add to the scores has a normal distribution given the rest; how
        # they share it is as in the prior.
        precision = terms.weights + 1.0 / (n_new * VARIANCE)
        sums = (terms.linear - terms.weights * scores) / precision
        sums += generator.standard_normal(len(rated)) / np.sqrt(precision)
        born[rated] += ((sums - born[rated].sum(axis=1)) / n_new)[:, None]
        return born

    def _sample(self, drawn: dict[str, FloatArray], Z: FloatArray, V: FloatArray) -> Any:
        width, n_used = self.max_factors, Z.shape[1]
        for name, array in (("user_factors_", Z), ("item_factors_", V)):
            drawn[name] = np.zeros((len(array), width))
            drawn[name][:, :n_used] = array
        drawn["feature_shares_"] = np.zeros(width)
        # As a new user sees it: of the users with themselves, who do not have it yet.
        drawn["feature_shares_"][:n_used] = Z.sum(axis=0) / (len(Z) + 1)
        drawn["limit_reached_"] = np.array(float(n_used == width))
        loss = hinge_loss(self.data, drawn, self.hinge.margin, self.n_threads)
        return drawn, self.hinge.cost * loss
