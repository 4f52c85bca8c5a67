"""BPMF: its sweeps are draws from the posterior, and its answers averages over them."""

from math import erf, sqrt

import numpy as np
import pytest
from scipy import stats

from marginmf.backends import get_backend
from marginmf.datasets import make_ratings
from marginmf.metrics import log_loss
from marginmf.ratings import Ratings
from marginmf.ratings.baselines.bpmf import BPMF, FactorSampler, draw_normal_wishart
from marginmf.ratings.fitting.calibration import LEAST
from marginmf.ratings.fitting.chains import Sweep
from sampled_contracts import SampledContract


class TestBPMF(SampledContract):
    parameter, usual, refused = "n_factors", 3, (0, 2.5, None)

    def make(self, **params):
        few = {"n_factors": 3, "n_burn": 8, "n_samples": 12, "thin": 2, "random_state": 0}
        return BPMF(**few | params)

    def test_probabilities_are_means_over_samples_of_a_normal_distribution_in_slices(
        self, model, data
    ):
        pairs, _ = data
        users, items = model.users_.encode(pairs[:5, 0]), model.items_.encode(pairs[:5, 1])
        edges = [-np.inf, *(model.levels_[:-1] + model.levels_[1:]) / 2, np.inf]
        expected = np.zeros((5, len(model.levels_)))
        samples = zip(
            model.user_factors_, model.item_factors_, model.noise_precisions_, strict=True
        )
        for U, V, precision in samples:
            for k in range(5):
                mean = model.mean_ + U[users[k]].astype(float) @ V[items[k]]
                below = [(1 + erf((edge - mean) * sqrt(precision / 2))) / 2 for edge in edges]
                expected[k] += np.diff(below) / model.n_samples
        expected = (expected + LEAST) / (1 + LEAST * len(model.levels_))
        np.testing.assert_allclose(model.predict_proba(pairs[:5]), expected, atol=1e-6)

    def test_noise_can_be_given(self, data):
        model = self.make(noise_precision=2.0).fit(*data)
        assert (model.noise_precisions_ == 2.0).all()
        for wrong in ("loud", 0):
            sentence = (
                rf"noise_precision={wrong!r} must be a number > 0 and <= 1e\+06, or 'learned'"
            )
            with pytest.raises(ValueError, match=sentence):
                self.make(noise_precision=wrong).fit(*data)

    @pytest.mark.parametrize("wrong", [np.ones(2), [2.0], None, True, np.nan, 1e12, 1e39])
    def test_noise_that_is_no_number_or_too_small_gets_a_sentence(self, data, wrong):
        with pytest.raises(ValueError, match=r"noise_precision=.* must be a .*number > 0 and <= "):
            self.make(noise_precision=wrong).fit(*data)

    def test_another_scale_stretches_answers_and_changes_nothing_else(self, model, data):
        pairs, ratings = data
        stretched = self.make().fit(pairs, 50.0 * ratings - 30.0)
        np.testing.assert_allclose(
            stretched.predict_proba(pairs), model.predict_proba(pairs), rtol=1e-4, atol=1e-6
        )
        expected = 50.0 * model.credible_interval(pairs) - 30.0
        np.testing.assert_allclose(stretched.credible_interval(pairs), expected, rtol=1e-4)
        np.testing.assert_allclose(stretched.noise_precisions_, model.noise_precisions_, rtol=1e-4)


def test_draws_of_the_prior_have_its_moments():
    rng = np.random.default_rng(0)
    factors = rng.normal(size=(30, 2)) @ [[1.0, 0.5], [0.0, 0.3]] + [0.4, -0.2]
    n, d, mean = len(factors), 2, factors.mean(axis=0)
    scatter = (factors - mean).T @ (factors - mean)
    inverse_scale = np.eye(d) + scatter + 2 * n / (n + 2) * np.outer(mean, mean)
    means, precisions = zip(*(draw_normal_wishart(factors, rng) for _ in range(6_000)), strict=True)
    expected = (n + d) * np.linalg.inv(inverse_scale)
    np.testing.assert_allclose(np.mean(precisions, axis=0), expected, rtol=0.02)
    spread = stats.wishart(n + d, np.linalg.inv(inverse_scale)).var()
    np.testing.assert_allclose(np.var(precisions, axis=0), spread, rtol=0.08)
    np.testing.assert_allclose(np.mean(means, axis=0), n / (n + 2) * mean, atol=0.01)
    # Given the precision, the mean's covariance is its inverse over n + 2.
    residuals = np.array(means) - n / (n + 2) * mean
    sizes = np.einsum("sp,spq,sq->s", residuals, np.array(precisions), residuals) * (n + 2)
    assert sizes.mean() == pytest.approx(d, rel=0.03)


@pytest.mark.parametrize(("noise", "n_factors"), [(1e6, 32), (1e6, 3), (1e-50, 3)])
def test_nearly_no_noise_and_nothing_but_noise_give_finite_answers(noise, n_factors):
    users, items = np.divmod(np.arange(300 * 200), 200)
    ratings = 3.0 + (users % 3 - 1) + (items % 3 - 1)
    pairs = np.column_stack([users, items])
    model = BPMF(n_factors, noise_precision=noise, n_burn=10, n_samples=2, thin=1, random_state=0)
    model.fit(pairs, ratings)
    assert np.isfinite(model.predict_proba(pairs[:500])).all()
    moved = pairs[:500] + np.array([1000, 0])
    folded = model.fold_in(moved, ratings[:500])
    assert np.isfinite(folded.predict_proba(moved)).all()
    if noise > 1:
        assert np.abs(model.predict(pairs) - ratings).mean() < 0.01
        assert np.abs(folded.predict(moved) - ratings[:500]).mean() < 0.01


def test_fold_in_with_a_broken_sample_gets_a_sentence():
    data = make_ratings(30, 20, n_factors=2, observed=0.5, random_state=0)
    model = BPMF(2, n_burn=2, n_samples=2, thin=1, random_state=0).fit(data.pairs, data.ratings)
    model.user_precisions_[1] *= -1e6
    with pytest.raises(FloatingPointError, match="The factors of new users are not finite"):
        model.fold_in([(1000, data.pairs[0, 1])], [3.0])


@pytest.mark.parametrize("side", ["user", "item"])
def test_new_rows_are_draws_from_their_conditional_distribution(side, monkeypatch):
    table = make_ratings(60, 50, n_factors=2, observed=0.3, random_state=4)
    ratings = 10.0 * table.ratings
    model = BPMF(3, n_burn=10, n_samples=30, thin=2, random_state=0).fit(table.pairs, ratings)
    fold_in = model.fold_in if side == "user" else model.fold_in_items
    own = 0 if side == "user" else 1
    moved = table.pairs.copy()
    moved[:, own] += 1000

    def factors_of(folded):
        return getattr(folded, f"{side}_factors_").astype(float)

    with monkeypatch.context() as patch:
        patch.setattr(Sweep, "row_normals", lambda sweep, keys, step, n: np.zeros((len(keys), n)))
        means = fold_in(moved, ratings)
    draws = fold_in(moved, ratings)
    codes = {name: getattr(means, f"{name}s_") for name in ("user", "item")}
    other = "item" if side == "user" else "user"
    users_or_items = np.unique(moved[:, own])
    found = []
    for row in users_or_items:
        mine = moved[:, own] == row
        (code,) = codes[side].encode([row])
        others = codes[other].encode(moved[mine, 1 - own])
        y = (ratings[mine] - model.mean_) / 10
        for k in range(model.n_samples):
            given = getattr(model, f"{other}_factors_")[k][others].astype(float)
            prior = getattr(model, f"{side}_precisions_")[k].astype(float)
            noise = float(model.noise_precisions_[k])
            precision = prior + noise * given.T @ given
            shift = prior @ getattr(model, f"{side}_means_")[k] + noise * given.T @ y
            mean = np.linalg.solve(precision, shift)
            np.testing.assert_allclose(factors_of(means)[k, code], mean, rtol=1e-4, atol=1e-5)
            root = np.linalg.cholesky(precision)
            found.append(root.T @ (factors_of(draws)[k, code] - mean))
    assert stats.kstest(np.ravel(found), "norm").pvalue > 1e-3


def statistics(state, scores):
    """Bounded functions, because the prior of the factors has heavy tails."""
    users, items = state["user_factors_"], state["item_factors_"]
    found = [
        np.log(state["noise_precisions_"]),
        np.tanh(users.mean()),
        1 / (1 + np.square(users).mean()),
        1 / (1 + np.square(items).mean()),
        np.tanh(scores).mean(),
        1 / (1 + np.square(scores).mean()),
        np.tanh(users[0, 0] * items[0, 0]),
        np.tanh(users[0, 0] * users[1, 0]),
    ]
    for side, factors in (("user", users), ("item", items)):
        mean, precision = state[f"{side}_means_"], state[f"{side}_precisions_"]
        centred = factors - mean
        distances = np.einsum("np,pq,nq->n", centred, precision, centred)
        found += [1 / (1 + distances.mean()), np.tanh(mean[0] * mean[1])]
        found += [1 / (1 + np.trace(precision)), np.tanh(precision[0, 1])]
    return found


def draw_from_prior(rng, shapes):
    """Draw everything from the prior."""
    state = {"noise_precisions_": np.array(rng.gamma(1.0))}
    for side, (n, d) in shapes.items():
        half = rng.normal(size=(d, d))  # half half^T is Wishart with d degrees of freedom
        root = np.linalg.inv(half).T
        mean = root @ rng.normal(size=d) / sqrt(2)
        state[f"{side}_means_"], state[f"{side}_precisions_"] = mean, half @ half.T
        state[f"{side}_factors_"] = mean + rng.normal(size=(n, d)) @ root.T
    return state


def test_sweeps_leave_the_joint_distribution_as_it_is():
    # After Geweke (2004): parameters from the prior; then ratings given these, and a sweep given
    # the ratings, some times in turn.  All that has still the distribution of the prior.
    rng, n_draws, n_rounds = np.random.default_rng(1), 700, 6
    pairs = [(user, item) for user in range(4) for item in range(3) if user != item]
    data = Ratings.of(pairs, np.arange(len(pairs)) % 5 + 1.0)
    sampler = FactorSampler(data, 0.0, 2, None, get_backend("cpu"))

    def scores_of(state):
        U, V = (state[f"{side}_factors_"] for side in ("user", "item"))
        return np.einsum("kd,kd->k", U[data.rows], V[data.indices])

    changes = []
    for draw in range(n_draws):
        state = draw_from_prior(rng, {"user": (4, 2), "item": (3, 2)})
        assert state.keys() == sampler.kept.keys()
        before = statistics(state, scores_of(state))
        for number in range(n_rounds):
            scores, noise = scores_of(state), float(state["noise_precisions_"])
            ratings = scores + rng.normal(size=len(scores)) / sqrt(noise)
            sampler.residuals = {"user": ratings, "item": ratings[data.item_order]}
            state, _ = sampler.sweep(state, Sweep(draw, number))
        changes.append(np.subtract(statistics(state, scores_of(state)), before))
    z = np.mean(changes, axis=0) / (np.std(changes, axis=0) / sqrt(n_draws))
    assert np.abs(z).max() < 4, z


def test_movielens(movielens_80_20):
    pairs, ratings, test_pairs, truth = movielens_80_20
    model = BPMF(10, n_samples=20, thin=3, random_state=0).fit(pairs, ratings)
    assert np.abs(model.predict(test_pairs) - truth).mean() < 0.67
    assert log_loss(truth, model.predict_proba(test_pairs), model.levels_) < 1.26
    assert 1.2 < np.median(model.noise_precisions_) < 2.0
