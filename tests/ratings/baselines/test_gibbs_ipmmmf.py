"""Gibbs iPMMMF: its moments in the long run, its features, new rows, odd data."""

import numpy as np
import pytest
from scipy import stats

from contracts import assert_same_fit
from marginmf.backends import get_backend
from marginmf.datasets import make_ratings
from marginmf.ratings import Ratings
from marginmf.ratings.baselines.gibbs_ipmmmf import FeatureSampler, GibbsIPMMMF
from marginmf.ratings.fitting.chains import Sweep
from marginmf.ratings.fitting.mixtures import Hinge, Terms
from sampled_contracts import SampledContract

TABLE = make_ratings(60, 40, n_factors=2, observed=0.3, random_state=3)
DATA = Ratings.of(TABLE.pairs, TABLE.ratings)
QUICK = {"cost": 0.5, "margin": 1.0, "n_burn": 12, "n_samples": 12, "random_state": 0}


class TestGibbsIPMMMF(SampledContract):
    parameter, usual, refused = "concentration", 2.0, (0, "many", None)

    def make(self, **params):
        return GibbsIPMMMF(**QUICK | params)


@pytest.mark.parametrize("wrong", [{"max_factors": 0}, {"max_factors": 2.5}, {"n_burn": -1}])
def test_wrong_parameters_get_a_sentence(wrong):
    with pytest.raises(ValueError, match=f"{next(iter(wrong))}=.* must be a whole number >= "):
        GibbsIPMMMF(**wrong).fit(DATA)


def sampler(data, **changes):
    settings = {"concentration": 3.0, "max_factors": 100, "hinge": Hinge(0.15, 9.0)} | changes
    return FeatureSampler(data, **settings, backend=get_backend(), n_threads=1)


@pytest.mark.parametrize(
    ("alpha", "cost", "table"),
    [(1.2, 1.5, [[2], [1]]), (2.5, 4.0, [[2], [1]]), (1.2, 1.5, [[2, 1], [2, 2]])],
)
def test_long_run_moments_of_two_users_are_those_of_the_model(alpha, cost, table):
    # All items are rated by both.  Features are had by the first alone, by the second alone, or by
    # both; numbers of each kind are Poisson with mean alpha / 2.
    hinge, table = Hinge(cost, 1.0), np.array(table, float)
    pairs = list(np.ndindex(table.shape))
    data = Ratings.of(pairs, [table[pair] for pair in pairs], levels=[1, 2])
    rng, n = np.random.default_rng(0), 2_000_000 // table.shape[1]
    numbers = rng.poisson(alpha / 2, (3, n))
    parts = np.sqrt(numbers)[:, None] * rng.normal(size=(3, table.shape[1], n))
    x, thetas = parts[:2] + parts[2], 1.5 * hinge.margin * rng.normal(size=(2, n))
    signs = np.where(table == 1.0, 1.0, -1.0)[:, :, None]
    losses = np.maximum(0.0, hinge.margin - signs * (thetas[:, None] - x)).sum(axis=(0, 1))
    weights = np.exp(-hinge.cost * losses)
    values = [*numbers, *x[0], *x[1], *thetas, *(x[0] * x[1]), *x[0] ** 2, *x[1] ** 2]
    expected = np.array([(weights * value).sum() for value in values]) / weights.sum()

    chain = sampler(data, concentration=alpha, max_factors=30, hinge=hinge)
    current, _ = chain.start(Sweep(0, 0))
    found = []
    for number in range(1, 6051):
        current, _ = chain.sweep(current, Sweep(0, number))
        Z, V = current["user_factors_"], current["item_factors_"]
        x, thetas = Z @ V.T, current["thresholds_"][:, 0]
        kinds = [(Z[0] * (1 - Z[1])).sum(), (Z[1] * (1 - Z[0])).sum(), (Z[0] * Z[1]).sum()]
        found.append([*kinds, *x[0], *x[1], *thetas, *(x[0] * x[1]), *x[0] ** 2, *x[1] ** 2])
    batches = np.array(found[50:]).reshape(30, 200, -1).mean(axis=1)
    errors = batches.std(axis=0, ddof=1) / np.sqrt(len(batches))
    assert (errors < 0.1).all()
    assert (np.abs(batches.mean(axis=0) - expected) < 4 * errors + 0.01).all()


def tilted_moments(n_new, weight, linear, score):
    """Return the integral, means and covariances of an item's weights of features that are new.

    Their density is that of the prior times that of the score: over a grid of all weights, not of
    their sum, which is what the sampler draws.
    """
    points, shares = np.polynomial.hermite_e.hermegauss(60)
    grid = np.stack(np.meshgrid(*n_new * [points])).reshape(n_new, -1)
    x = score + grid.sum(axis=0)
    density = np.prod(np.meshgrid(*n_new * [shares / shares.sum()]), axis=0).ravel()
    density *= np.exp(linear * (x - score) - weight * (x**2 - score**2) / 2)
    total = density.sum()
    means = grid @ density / total
    return total, means, (density * grid) @ grid.T / total - np.outer(means, means)


def test_numbers_of_new_features_have_the_chances_of_integrals(monkeypatch):
    # All features of a single user are new in every sweep: here none, one or two.
    monkeypatch.setattr("marginmf.ratings.baselines.gibbs_ipmmmf.MOST_BIRTHS", 2)
    alpha, terms, n = 0.8, Terms(np.array([1.7, 0.6]), np.array([-1.1, 1.9])), 2000
    chain = sampler(Ratings.of([(0, 0), (0, 1)], [1.0, 2.0]), concentration=alpha)
    old = (np.ones((1, 1)), np.full((2, 1), 0.7), terms)
    found = [chain._draw_features(*old, Sweep(seed, 1)).shape[1] for seed in range(n)]
    chances = np.array([1.0, alpha, alpha**2 / 2])
    for c in (1, 2):
        for weight, linear in zip(*terms, strict=True):
            chances[c] *= tilted_moments(c, weight, linear, 0.0)[0]
    chances /= chances.sum()
    errors = np.sqrt(chances * (1 - chances) / n)
    assert (np.abs(np.bincount(found, minlength=3) / n - chances) < 4 * errors).all()


@pytest.mark.parametrize("n_new", [1, 2])
def test_weights_of_new_features_have_the_moments_of_integrals(n_new):
    # The user has not rated the second of three items, and has scores by other features.
    rated, terms = np.array([2, 0]), Terms(np.array([1.7, 0.6]), np.array([-1.1, 1.9]))
    scores, rng, n = np.array([0.9, -0.5]), np.random.default_rng(0), 10_000
    chain = sampler(Ratings.of([(0, 0), (0, 1), (0, 2)], [1.0, 2.0, 1.0]))
    drawn = np.array([chain._draw_weights(n_new, rated, scores, terms, rng) for _ in range(n)])
    ratings = [(2, 1.7, -1.1, 0.9), (0, 0.6, 1.9, -0.5), (1, 0.0, 0.0, 0.0)]
    for item, weight, linear, score in ratings:
        _, means, covariances = tilted_moments(n_new, weight, linear, score)
        variances = covariances.diagonal()
        errors = np.sqrt((np.outer(variances, variances) + covariances**2) / n)
        own = drawn[:, item]
        assert (np.abs(own.mean(axis=0) - means) < 4 * np.sqrt(variances / n)).all()
        assert (np.abs(np.cov(own.T) - covariances) < 4 * errors).all()


@pytest.mark.parametrize("max_factors", [3, 60])
def test_without_ratings_to_speak_of_features_follow_the_buffet(max_factors):
    data = Ratings.of([(i, 0) for i in range(12)], np.tile([1.0, 2.0], 6))
    chain = sampler(data, concentration=2.0, max_factors=max_factors, hinge=Hinge(1e-6, 1.0))
    current, _ = chain.start(Sweep(0, 0))
    found = []
    for number in range(1, 1601):
        current, _ = chain.sweep(current, Sweep(0, number))
        Z, limited = current["user_factors_"], float(current["limit_reached_"])
        alone = (Z.sum(axis=0) == 1).sum()
        found.append([Z.any(axis=0).sum(), Z.sum(axis=1).mean(), alone, limited])
    batches = np.array(found[100:]).reshape(15, 100, -1).mean(axis=1)
    errors = batches.std(axis=0, ddof=1) / np.sqrt(len(batches))
    # The number of features is Poisson, up to the limit; those of n users are as frequent as 1 / n.
    harmonic, numbers = (1 / np.arange(1, 13)).sum(), np.arange(max_factors + 1)
    chances = stats.poisson.pmf(numbers, 2.0 * harmonic)
    chances /= chances.sum()
    n_features = chances @ numbers
    expected = [n_features, n_features / harmonic, n_features / harmonic, chances[-1]]
    assert (np.abs(batches.mean(axis=0) - expected) < 4 * errors + 0.02).all()


@pytest.mark.parametrize("max_factors", [1, 3, 100])
def test_a_chain_starts_with_features_that_somebody_has(max_factors):
    data = Ratings.of([(0, 0), (1, 0)], [1.0, 2.0])
    for seed in range(20):
        current, _ = sampler(data, max_factors=max_factors).start(Sweep(seed, 0))
        used = current["feature_shares_"] > 0
        np.testing.assert_array_equal(used, current["item_factors_"].any(axis=0))
        assert (np.diff(used.astype(int)) <= 0).all()


def test_features_in_use_come_first_and_shares_are_those_of_training():
    model = GibbsIPMMMF(**QUICK).fit(DATA)
    Z, V, shares = model.user_factors_, model.item_factors_, model.feature_shares_
    assert set(np.unique(Z)) == {0.0, 1.0}
    np.testing.assert_allclose(shares, Z.sum(axis=1) / (DATA.n_users + 1), rtol=1e-6)
    used = shares > 0
    assert (np.diff(used.astype(int), axis=1) <= 0).all()
    assert used.sum(axis=1).max() == Z.shape[2]
    assert not V[np.broadcast_to(~used[:, None], V.shape)].any()
    folded = model.fold_in(TABLE.pairs, TABLE.ratings)
    assert folded.feature_shares_ is shares
    assert not folded.user_factors_[np.broadcast_to(~used[:, None], Z.shape)].any()


def test_new_users_who_say_nothing_have_features_as_often_as_those_of_training():
    model = GibbsIPMMMF(**QUICK | {"cost": 1e-9, "n_samples": 4}).fit(DATA)
    # Different ratings, for random numbers of their own.
    users, items = np.repeat(np.arange(4000), 6), np.random.default_rng(0).integers(40, size=24_000)
    pairs = np.unique(np.column_stack([users, items]), axis=0)
    Z = model.fold_in(pairs, TABLE.ratings[np.arange(len(pairs)) % len(DATA)]).user_factors_
    shares = model.feature_shares_
    errors = np.sqrt(shares * (1 - shares) / Z.shape[1])
    assert np.ptp(shares) > 0.3
    assert (np.abs(Z.mean(axis=1) - shares) <= 4 * errors).all()


def test_new_items_have_no_weights_of_features_that_a_sample_does_not_use():
    model = GibbsIPMMMF(**QUICK).fit(DATA)
    unused = model.feature_shares_ == 0
    assert unused.any()
    V = model.fold_in_items([(0, 99), (1, 99), (2, 98)], TABLE.ratings[:3]).item_factors_
    for sample in range(len(V)):
        assert not V[sample][:, unused[sample]].any()
        assert V[sample][:, ~unused[sample]].all()


@pytest.mark.parametrize("margin", [1e-300, 1e-10, 1e10, 1e200])
def test_margins_out_of_bounds_get_a_sentence(margin):
    with pytest.raises(ValueError, match=r"margin=.* must be a number >= 1e-09 and <= 1e\+09"):
        GibbsIPMMMF(margin=margin).fit(DATA)


@pytest.mark.parametrize("margin", [1e-9, 1e9])
def test_extreme_margins_give_finite_answers(margin):
    model = GibbsIPMMMF(**QUICK | {"margin": margin}).fit(DATA)
    assert np.isfinite(model.threshold_precisions_).all()
    assert (model.threshold_precisions_ > 0).all()
    folded = model.fold_in([(99, 3), (99, 4)], TABLE.ratings[:2])
    assert np.isfinite(folded.predict_proba([(99, 5), (99, 6)])).all()


def test_the_number_of_features_is_limited_and_the_model_says_so():
    model = GibbsIPMMMF(**QUICK, max_factors=3).fit(DATA)
    assert model.user_factors_.shape[2] <= 3
    assert model.limit_reached_.any()
    assert not GibbsIPMMMF(**QUICK).fit(DATA).limit_reached_.any()


def test_threads_do_not_change_a_bit(monkeypatch):
    monkeypatch.setattr("marginmf.ratings.fitting.mixtures.NUMBERS_AT_A_TIME", 300)
    one, two = (GibbsIPMMMF(**QUICK, n_jobs=n).fit(DATA) for n in (1, 2))
    assert_same_fit(one, two)


@pytest.mark.parametrize("levels", [[1, 2, 3, 4, 5], [0, 1]])
def test_odd_data_gives_finite_answers(levels):
    low, high = levels[0], levels[-1]
    rated = {(0, j): low for j in range(6)} | {(1, j): high for j in range(6)} | {(2, 3): high}
    rated |= {(i, j): levels[(i * j) % len(levels)] for i in range(3, 9) for j in range(1, 7)}
    data = Ratings.of(list(rated), list(rated.values()), levels=levels)
    # As in a hold-out: an item, and a user, that have no ratings left.
    data = data.subset((data.indices != 5) & (data.rows != 8))
    model = GibbsIPMMMF(**QUICK)._fit_copy(data)
    everyone = [(i, j) for i in range(9) for j in range(7)]
    chances = model.predict_proba(everyone)
    assert (chances > 0).all()
    assert np.isfinite(chances).all()
    assert np.diff(model.predict([(0, 0), (1, 0)])) > 0
    assert np.isfinite(model.decision_function(everyone)).all()
    for folded in (model.fold_in([(77, 3)], [high]), model.fold_in_items([(2, 77)], [high])):
        assert np.isfinite(folded.predict_proba([(77, 3), (2, 77)])).all()


def test_a_model_may_have_no_features_at_all():
    model = GibbsIPMMMF(1e-9, n_burn=3, n_samples=3, random_state=0).fit(DATA)
    assert model.user_factors_.shape == (3, DATA.n_users, 1)
    assert not model.user_factors_.any()
    assert np.isfinite(model.fold_in(TABLE.pairs, TABLE.ratings).predict_proba(TABLE.pairs)).all()
