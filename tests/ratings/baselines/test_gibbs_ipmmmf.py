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
from marginmf.ratings.fitting.mixtures import Hinge
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


def test_long_run_moments_of_two_users_are_those_of_the_model():
    # One item that one user rates high and the other low.  Features are had by the first alone, by
    # the second alone, or by both; numbers of each kind are Poisson with mean alpha / 2.
    alpha, hinge = 1.2, Hinge(1.5, 1.0)
    data = Ratings.of([(0, 0), (1, 0)], [2.0, 1.0], levels=[1, 2])
    rng, n = np.random.default_rng(0), 2_000_000
    numbers = rng.poisson(alpha / 2, (3, n))
    parts = np.sqrt(numbers) * rng.normal(size=(3, n))
    x, thetas = parts[:2] + parts[2], 1.5 * hinge.margin * rng.normal(size=(2, n))
    sign = np.array([[-1.0], [1.0]])
    losses = np.maximum(0.0, hinge.margin - sign * (thetas - x)).sum(axis=0)
    weights = np.exp(-hinge.cost * losses)
    values = [*numbers, *x, *thetas, x[0] * x[1], *x**2]
    expected = np.array([(weights * value).sum() for value in values]) / weights.sum()

    chain = sampler(data, concentration=alpha, max_factors=30, hinge=hinge)
    current, _ = chain.start(Sweep(0, 0))
    found = []
    for number in range(1, 6051):
        current, _ = chain.sweep(current, Sweep(0, number))
        Z, V = current["user_factors_"], current["item_factors_"]
        x, theta = Z @ V[0], current["thresholds_"][:, 0]
        kinds = [(Z[0] * (1 - Z[1])).sum(), (Z[1] * (1 - Z[0])).sum(), (Z[0] * Z[1]).sum()]
        found.append([*kinds, *x, *theta, x[0] * x[1], *x**2])
    batches = np.array(found[50:]).reshape(30, 200, -1).mean(axis=1)
    errors = batches.std(axis=0, ddof=1) / np.sqrt(len(batches))
    assert (errors < 0.1).all()
    assert (np.abs(batches.mean(axis=0) - expected) < 4 * errors + 0.01).all()


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


def test_new_items_have_no_weights_of_features_that_a_sample_does_not_use():
    model = GibbsIPMMMF(**QUICK).fit(DATA)
    unused = model.feature_shares_ == 0
    assert unused.any()
    V = model.fold_in_items([(0, 99), (1, 99), (2, 98)], TABLE.ratings[:3]).item_factors_
    for sample in range(len(V)):
        assert not V[sample][:, unused[sample]].any()
        assert V[sample][:, ~unused[sample]].all()


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
