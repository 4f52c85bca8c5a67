"""URP: its bound, its updates against plain NumPy, and what it recovers."""

from copy import copy
from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import gammaln, psi

from contracts import DescentContract, assert_same_fit
from marginmf.metrics import mean_absolute_error
from marginmf.ratings import Ratings
from marginmf.ratings.baselines.urp import (
    URP,
    ProfileProblem,
    VariationalEM,
    first_gamma,
    learn_prior,
    swap_items_and_levels,
)
from marginmf.solvers import Stopping, minimise


class TestURP(DescentContract):
    parameter, usual, refused = "n_factors", 5, (0, 2.5, None)

    def make(self, **params):
        defaults = {"n_factors": 4, "max_iter": 40, "smoothing": 0.3, "random_state": 0}
        return URP(**(defaults | params))


class TestURPOfTwoLevels(TestURP):
    scale = (0, 1)


def draw(n_users=300, n_items=60, n_attitudes=3, observed=0.5, seed=0):
    """Ratings drawn from the model, and what they were drawn from."""
    rng = np.random.default_rng(seed)
    theta = rng.dirichlet(np.full(n_attitudes, 0.5), n_users)
    beta = rng.dirichlet(np.full(5, 0.3), (n_items, n_attitudes))
    users, items = np.nonzero(rng.random((n_users, n_items)) < observed)
    chances = np.einsum("pk,pkv->pv", theta[users], beta[items])
    levels = (chances.cumsum(axis=1) < rng.random((len(users), 1))).sum(axis=1)
    return np.column_stack([users, items]), levels + 1.0, theta, beta


@pytest.fixture(scope="module")
def problem():
    pairs, ratings, *_ = draw(20, 12, observed=0.4)
    data = Ratings.of(pairs, ratings)
    rng = np.random.default_rng(1)
    return ProfileProblem(data, 3, rng.dirichlet(np.ones(5), data.n_items), 1)


def random_point(problem, seed=0):
    rng = np.random.default_rng(seed)
    gamma = rng.gamma(2.0, size=(problem.data.n_users, 3)) + 0.1
    beta = rng.dirichlet(np.ones(5), (problem.data.n_items, 3)).transpose(0, 2, 1)
    return problem.join(gamma, beta, rng.gamma(2.0, size=3) + 0.2)


def bound(problem, point):
    """The evidence lower bound, term by term, with phi written out."""
    gamma, beta, prior = problem.split(point)
    data, expected = problem.data, psi(gamma) - psi(gamma.sum(axis=1, keepdims=True))

    def log_density(a):  # the expectation of log Dirichlet(theta; a)
        return gammaln(a.sum(-1)) - gammaln(a).sum(-1) + ((a - 1) * expected).sum(-1)

    logs = expected[data.rows] + np.log(beta[data.indices, data.codes])
    phi = np.exp(logs) / np.exp(logs).sum(axis=1, keepdims=True)
    value = (phi * (logs - np.log(phi))).sum()
    value += (log_density(prior) - log_density(gamma)).sum()
    return value + (problem.pseudo_counts[:, :, None] * np.log(beta)).sum(), phi


def test_the_objective_is_minus_the_evidence_lower_bound(problem):
    for seed in range(3):
        point = random_point(problem, seed)
        assert problem(point)[0] == pytest.approx(-bound(problem, point)[0], rel=1e-12)


def test_the_bound_is_below_the_likelihood_and_near_it():
    # One user with two ratings: the integral over mixtures of two attitudes is one-dimensional.
    data = Ratings.of([(0, 0), (0, 1)], [1, 2])
    beta = np.array([[[0.8, 0.3], [0.2, 0.7]], [[0.4, 0.1], [0.6, 0.9]]])
    problem = ProfileProblem(data, 2, np.zeros((2, 2)), 1)
    shares = (np.arange(100_000) + 0.5) / 100_000
    mixture = np.stack([shares, 1 - shares], axis=1)
    prior = np.array([2.0, 3.0])
    density = 12 * shares * (1 - shares) ** 2
    chances = (mixture @ beta[0, 0]) * (mixture @ beta[1, 1])
    evidence = np.log((density * chances).mean())
    gamma = problem.improve_users(first_gamma(data, prior), beta, prior, 100)[0]
    value = -problem(problem.join(gamma, beta, prior))[0]
    assert evidence - 0.25 < value < evidence


def test_users_updates_are_those_of_plain_numpy(problem):
    gamma, beta, prior = problem.split(random_point(problem))
    expected = gamma
    for _ in range(3):
        phi = bound(problem, problem.join(expected, beta, prior))[1]
        expected = np.tile(prior, (len(gamma), 1))
        np.add.at(expected, problem.data.rows, phi)
    changed, weights, _ = problem.improve_users(gamma, beta, prior, 3)
    np.testing.assert_allclose(changed, expected, rtol=1e-12)
    logs = psi(expected) - psi(expected.sum(axis=1, keepdims=True))
    np.testing.assert_allclose(weights, np.exp(logs), rtol=1e-12)


def test_items_updates_are_those_of_plain_numpy(problem):
    point, data = random_point(problem), problem.data
    gamma, beta, prior = problem.split(point)
    weights = problem.improve_users(gamma, beta, prior, 0)[1]
    expected = np.repeat(problem.pseudo_counts[:, :, None], 3, axis=2)
    np.add.at(expected, (data.indices, data.codes), bound(problem, point)[1])
    expected /= expected.sum(axis=1, keepdims=True)
    problem.improve_items(beta, weights, 1)
    np.testing.assert_allclose(beta, expected, rtol=1e-12)


def test_every_update_raises_the_bound(problem):
    point = random_point(problem)
    values = [problem(point)[0]]
    for _ in range(30):
        gamma, beta, prior = (part.copy() for part in problem.split(point))
        gamma, weights, _ = problem.improve_users(gamma, beta, prior, 1)
        values.append(problem(problem.join(gamma, beta, prior))[0])
        problem.improve_items(beta, weights, 1)
        values.append(problem(problem.join(gamma, beta, prior))[0])
        prior = learn_prior(prior, np.log(weights))
        point = problem.join(gamma, beta, prior)
        values.append(problem(point)[0])
    assert all(later <= earlier + 1e-9 for earlier, later in pairwise(values))
    assert values[-1] < values[0] - 10


@pytest.mark.parametrize("learns_prior", [False, True])
def test_the_bound_never_falls_on_many_sweeps(learns_prior):
    data = Ratings.of(*draw(80, 40)[:2])
    pseudo_counts = np.full((data.n_items, 5), 0.2)
    problem = ProfileProblem(data, 3, pseudo_counts, 1)
    start = problem.start(np.random.default_rng(0), 1.0)
    rules = Stopping(max_iter=300, tol=-np.inf)
    history = minimise(VariationalEM(learns_prior), problem, start, rules).history
    values = [record.objective for record in history]
    assert len(values) == 301
    assert all(later <= earlier + 1e-11 * earlier for earlier, later in pairwise(values))


def test_learned_priors_are_the_most_likely():
    rng = np.random.default_rng(0)
    for true in ([0.3, 1.0, 5.0], [2.0, 2.0], [0.05, 40.0, 3.0, 1.0]):
        logs = np.log(np.maximum(rng.dirichlet(true, 4000), 1e-300))
        means, found = logs.mean(axis=0), np.ones(len(true))
        for _ in range(10):
            found = learn_prior(found, logs)

        def loss(logs, means=means):
            a = np.exp(logs)
            return gammaln(a).sum() - gammaln(a.sum()) - (a - 1) @ means

        best = np.exp(minimize(loss, np.zeros(len(true)), tol=1e-12).x)
        np.testing.assert_allclose(found, best, rtol=1e-3)
        assert loss(np.log(found)) <= loss(np.log(best)) + 1e-12
        np.testing.assert_allclose(found, true, rtol=0.15)


def test_the_model_is_recovered_from_ratings_drawn_from_it():
    pairs, ratings, theta, beta = draw(1500, 50)
    test = np.random.default_rng(1).random(len(pairs)) < 0.2
    model = URP(3, 0.5, random_state=0).fit(pairs[~test], ratings[~test])
    oracle = copy(model)  # it knows the items, and must find out about the users
    oracle.item_profiles_ = np.ascontiguousarray(beta.transpose(2, 0, 1))
    oracle = oracle.fold_in(pairs[~test], ratings[~test])
    own, best, usual = (
        np.log(distribution[np.arange(test.sum()), ratings[test].astype(int) - 1]).mean()
        for distribution in (
            model.predict_proba(pairs[test]),
            oracle.predict_proba(pairs[test]),
            model._item_priors(model.ratings_)[pairs[test, 1]],
        )
    )
    assert own > best - 0.1 * (best - usual)
    # The attitudes are the true ones, in an order of their own.
    mixtures = model.user_attitudes_ / model.user_attitudes_.sum(axis=1, keepdims=True)
    agreement = np.corrcoef(mixtures.T, theta.T)[:3, 3:]
    assert sorted(agreement.argmax(axis=1)) == [0, 1, 2]
    assert (agreement.max(axis=1) > 0.85).all()


@pytest.mark.parametrize(
    ("pairs", "ratings", "levels"),
    [
        ([(0, 0)], [3], None),
        ([(0, 0), (1, 1)], [1, 1], (1, 2)),
        ([(0, 0), (0, 1), (1, 0)], [2, 2, 2], (1, 2, 3)),
        ([(user, 0) for user in range(30)], [1, 5] * 15, None),
    ],
)
@pytest.mark.parametrize("n_factors", [1, 5])
@pytest.mark.parametrize("learned", [False, True])
def test_degenerate_ratings_get_finite_answers(pairs, ratings, levels, learned, n_factors):
    if levels is None and len(set(ratings)) < 2:
        levels = (ratings[0], ratings[0] + 1)
    model = URP(n_factors, max_iter=30, random_state=0, learn_concentration=learned)
    with np.errstate(all="raise", under="ignore"):
        model.fit(Ratings.of(pairs, ratings, levels=levels))
    assert np.isfinite(model.concentrations_).all()
    distribution = model.predict_proba(pairs)
    assert np.isfinite(distribution).all()
    assert (distribution > 0).all()


def test_users_and_items_without_ratings_are_expected_to_be_average():
    pairs, ratings, *_ = draw(30, 15)
    data = Ratings.of(pairs, ratings)
    kept = (data.rows != 7) & (data.indices != 3)
    model = URP(max_iter=10, random_state=0)._fit_copy(data.subset(kept))
    np.testing.assert_allclose(model.user_attitudes_[7], model.concentrations_)
    prior = model._item_priors(model.ratings_)
    np.testing.assert_allclose(model.item_profiles_[:, 3], np.tile(prior[3][:, None], 5))


def test_new_items_get_the_probabilities_where_the_bound_is_highest():
    pairs, ratings, *_ = draw(60, 20)
    data = Ratings.of(pairs, ratings)
    model = URP(3, max_iter=30, random_state=0).fit(data)
    folded = model._folded("item", data)
    problem = folded._problem(data, 3)
    gamma, prior = model.user_attitudes_, model.concentrations_
    ours = folded.item_profiles_.transpose(1, 0, 2)
    best = problem(problem.join(gamma, ours, prior))[0]
    assert best <= problem(problem.join(gamma, model.item_profiles_.transpose(1, 0, 2), prior))[0]
    rng = np.random.default_rng(0)
    for _ in range(20):
        other = 0.99 * ours + 0.01 * rng.dirichlet(np.ones(5), (20, 3)).transpose(0, 2, 1)
        assert best < problem(problem.join(gamma, other, prior))[0]


@pytest.mark.parametrize("sweep", [1, 7, 25])
def test_an_interrupted_fit_goes_on_to_the_same_bits(sweep, tmp_path):
    pairs, ratings, *_ = draw(40, 20)
    settings = {"max_iter": 30, "random_state": 0, "learn_concentration": True}

    def interrupt(progress):
        if progress.record.iteration == sweep:
            raise KeyboardInterrupt

    path = tmp_path / "checkpoint"
    with pytest.raises(KeyboardInterrupt):
        URP(callbacks=[interrupt], **settings).fit(pairs, ratings, checkpoint=path)
    again = URP(**settings).fit(pairs, ratings, checkpoint=path)
    assert_same_fit(again, URP(**settings).fit(pairs, ratings))


def test_priors_are_learned_from_where_the_rest_has_settled(tmp_path):
    pairs, ratings, *_ = draw(60, 20)
    settings = {"n_factors": 3, "max_iter": 40, "tol": 1e-4, "random_state": 0}
    fixed, seen = URP(**settings).fit(pairs, ratings), []
    settings["learn_concentration"] = True
    learned = URP(**settings, callbacks=[seen.append]).fit(pairs, ratings)
    assert (fixed.concentrations_ == fixed.concentration).all()
    assert (learned.concentrations_ != learned.concentration).all()
    n = fixed.n_iter_
    objectives = [record.objective for record in learned.history_]
    assert objectives[: n + 1] == [record.objective for record in fixed.history_]
    assert all(later <= earlier * (1 + 1e-11) for earlier, later in pairwise(objectives))
    assert [record.iteration for record in learned.history_] == [*range(learned.n_iter_ + 1)]
    assert n < learned.n_iter_ <= n + 40
    assert (np.diff([record.seconds for record in learned.history_]) >= 0).all()

    def interrupt(progress):
        interrupt.calls += 1
        if interrupt.calls == n + 4:
            raise KeyboardInterrupt

    interrupt.calls, path = 0, tmp_path / "checkpoint"
    with pytest.raises(KeyboardInterrupt):
        URP(**settings, callbacks=[interrupt]).fit(pairs, ratings, checkpoint=path)
    assert_same_fit(URP(**settings).fit(pairs, ratings, checkpoint=path), learned)


def test_a_callback_that_stops_attitudes_stops_the_fit():
    pairs, ratings, *_ = draw(30, 15)
    stop = [lambda progress: progress.record.iteration == 3]
    model = URP(max_iter=20, random_state=0, learn_concentration=True, callbacks=stop)
    assert model.fit(pairs, ratings).n_iter_ == 3
    assert (model.concentrations_ == model.concentration).all()


def settled(problem, gamma, beta, prior, tol=1e-10):
    """The users' posteriors after updates in plain NumPy until none changes."""
    for _ in range(20_000):
        phi = bound(problem, problem.join(gamma, beta, prior))[1]
        changed = np.tile(prior, (len(gamma), 1))
        np.add.at(changed, problem.data.rows, phi)
        if np.abs(changed - gamma).max() < tol:
            return changed
        gamma = changed
    raise AssertionError("The posteriors do not settle.")


@pytest.mark.parametrize(
    ("settings", "share"),
    [({}, 1.0), ({"concentration": 0.05}, 0.8), ({"learn_concentration": True}, 1.0)],
)
def test_folding_in_the_users_of_training_gives_their_posteriors_again(settings, share):
    pairs, ratings, *_ = draw(60, 30)
    settings = {"n_factors": 3, "max_iter": 3000, "tol": 1e-10, "random_state": 0} | settings
    model = URP(**settings).fit(pairs, ratings)
    assert model.n_iter_ < 3000
    folded = model.fold_in(pairs, ratings)
    problem, prior = model._problem(model.ratings_, 3), model.concentrations_
    beta = swap_items_and_levels(model.item_profiles_)
    (mixtures, bounds), (old_mixtures, old_bounds) = (
        (gamma / gamma.sum(axis=1, keepdims=True), problem.improve_users(gamma, beta, prior, 1)[2])
        for gamma in (folded.user_attitudes_, model.user_attitudes_)
    )
    same = np.abs(mixtures - old_mixtures).max(axis=1) < 2e-4
    # With small parameters some users' bounds have several maxima: theirs may be another one.
    assert same.mean() >= share
    np.testing.assert_allclose(bounds[same], old_bounds[same], rtol=0, atol=1e-6)
    gamma = folded.user_attitudes_
    next_one = problem.improve_users(gamma, beta, prior, 1)[0]
    assert (np.abs(next_one - gamma).sum(axis=1) < 1e-6 * gamma.sum(axis=1)).all()


def test_new_users_begin_with_the_learned_parameters():
    pairs, ratings, *_ = draw(60, 30)
    settings = {"n_factors": 3, "max_iter": 60, "random_state": 0}
    model = URP(learn_concentration=True, **settings).fit(pairs, ratings)
    few = Ratings.of(pairs[::6], ratings[::6], levels=model.levels_)
    folded = model.fold_in(few)
    data, prior = folded.ratings_, model.concentrations_
    items = model.items_.encode(data.items.ids)
    beta = swap_items_and_levels(model.item_profiles_)[items]
    problem = ProfileProblem(data, 3, np.ones((data.n_items, 5)), 1)
    expected = settled(problem, first_gamma(data, prior), beta, prior)
    np.testing.assert_allclose(folded.user_attitudes_, expected, atol=1e-3)
    other = settled(problem, first_gamma(data, np.full(3, 2.0)), beta, np.full(3, 2.0))
    assert np.abs(expected - other).max() > 1.0


def test_a_new_user_is_the_same_beside_others_who_take_longer():
    pairs, ratings, *_ = draw(60, 30)
    model = URP(3, 0.05, max_iter=60, random_state=0).fit(pairs, ratings)
    together = model.fold_in(pairs, ratings)
    for user in range(0, 60, 7):
        mine = pairs[:, 0] == user
        alone = model.fold_in(pairs[mine], ratings[mine])
        np.testing.assert_array_equal(alone.user_attitudes_[0], together.user_attitudes_[user])


@pytest.mark.parametrize(("concentration", "smoothing"), [(2.0, 0.3), (0.7, 2.0), (5.0, 11.0)])
def test_one_attitude_is_everybodys_with_smoothed_shares(concentration, smoothing):
    pairs, ratings, *_ = draw(40, 20)
    model = URP(1, concentration, smoothing=smoothing, random_state=0).fit(pairs, ratings)
    data = model.ratings_
    assert model.concentrations_ == concentration
    expected = concentration + np.diff(data.indptr)
    np.testing.assert_allclose(model.user_attitudes_[:, 0], expected)
    smooth = data.level_counts("item") + smoothing * model._item_priors(data)
    expected = smooth / smooth.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.item_profiles_[:, :, 0], expected.T)


def test_new_rows_keep_to_the_number_of_attitudes_that_was_learned():
    pairs, ratings, *_ = draw(30, 15)
    model = URP(3, max_iter=5, random_state=0).fit(pairs, ratings)
    expected = [model.fold_in(pairs, ratings), model.fold_in_items(pairs, ratings)]
    model.set_params(n_factors=9)
    for before, after in zip(
        expected, [model.fold_in(pairs, ratings), model.fold_in_items(pairs, ratings)], strict=True
    ):
        np.testing.assert_array_equal(before.predict_proba(pairs), after.predict_proba(pairs))


def test_threads_change_no_bit():
    pairs, ratings, *_ = draw(1500, 60, observed=0.9)
    one, two = (URP(8, max_iter=4, random_state=0, n_jobs=n).fit(pairs, ratings) for n in (1, 2))
    assert_same_fit(one, two)
    for fold in ("fold_in", "fold_in_items"):
        ours, theirs = (getattr(model, fold)(pairs, ratings) for model in (one, two))
        np.testing.assert_array_equal(ours.predict_proba(pairs), theirs.predict_proba(pairs))


def test_callbacks_can_stop_and_a_bar_shows_progress(capsys):
    pairs, ratings, *_ = draw(30, 15)
    stop = [lambda progress: progress.record.iteration == 2]
    model = URP(callbacks=stop, verbose=1).fit(pairs, ratings)
    assert model.n_iter_ == 2
    assert "URP" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"concentration": 0.0}, r"concentration=0\.0 must be a number > 0"),
        ({"smoothing": -1}, "smoothing=-1 must be a number > 0"),
        ({"learn_concentration": "yes"}, "learn_concentration='yes' must be True or False"),
        ({"max_iter": 0}, "max_iter=0 must be a whole number >= 1"),
        ({"tol": -1.0}, r"tol=-1\.0 must be a number >= 0"),
        ({"callbacks": 3}, "callbacks=3 must be a list of functions"),
        ({"random_state": "dice"}, "random_state='dice' cannot seed"),
    ],
)
def test_bad_parameters_get_a_sentence(params, sentence):
    with pytest.raises(ValueError, match=sentence):
        URP(**params).fit([(0, 0), (1, 1)], [1, 2])


def test_on_movielens_it_is_as_good_as_the_prototype(movielens_80_20):
    pairs, ratings, test_pairs, test_ratings = movielens_80_20
    model = URP(random_state=0).fit(pairs, ratings)
    assert mean_absolute_error(test_ratings, model.predict(test_pairs)) < 0.745
