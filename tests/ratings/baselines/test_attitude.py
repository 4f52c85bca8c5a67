"""Attitude: its bound against sums over all attitudes, its updates, and what it recovers."""

from copy import copy
from dataclasses import replace
from itertools import islice, pairwise, product

import numpy as np
import pytest
from scipy.special import expit, logit, logsumexp

from contracts import DescentContract, assert_same_fit
from marginmf.metrics import mean_absolute_error
from marginmf.ratings import Ratings
from marginmf.ratings.baselines.attitude import (
    GROWTH,
    KEPT_MEAN,
    KEPT_SQUARE,
    OWN_STRENGTH,
    RATE,
    TINY,
    Attitude,
    ProposalEM,
    ProposalProblem,
)
from marginmf.ratings.baselines.urp import swap_items_and_levels


class TestAttitude(DescentContract):
    parameter, usual, refused = "n_factors", 5, (0, 2.5, None)

    def make(self, **params):
        defaults = {"n_factors": 5, "reg": 2.0, "max_iter": 50, "tol": 1e-4, "random_state": 0}
        return Attitude(**(defaults | params))


class TestAttitudeOfTwoLevels(TestAttitude):
    scale = (0, 1)


def draw(n_users=300, n_items=60, n_attitudes=3, observed=0.5, steepness=1.5, seed=0):
    """Ratings drawn from the model, and what they were drawn from: attitudes, and proposals."""
    rng = np.random.default_rng(seed)
    attitudes = (rng.random((n_users, n_attitudes)) < 0.4).astype(float)
    proposals = steepness * rng.standard_normal((n_items, 5, n_attitudes + 1))
    users, items = np.nonzero(rng.random((n_users, n_items)) < observed)
    logs = proposals[items, :, 0]
    logs = logs + np.einsum("pk,pvk->pv", attitudes[users], proposals[items, :, 1:])
    chances = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
    levels = (chances.cumsum(axis=1) < rng.random((len(users), 1))).sum(axis=1)
    return np.column_stack([users, items]), np.minimum(levels, 4) + 1.0, attitudes, proposals


K = 3


@pytest.fixture(scope="module")
def problem():
    pairs, ratings, *_ = draw(20, 12, observed=0.4)
    data = Ratings.of(pairs, ratings)
    own = np.log(np.random.default_rng(1).dirichlet(np.ones(5), data.n_items))
    return ProposalProblem(data, data.by_item, K, 0.7, own, 1)


def random_point(problem, seed=0, steepness=1.0):
    rng = np.random.default_rng(seed)
    chances = rng.random((problem.data.n_rows, K))
    proposals = steepness * rng.standard_normal((*problem.own.shape, K + 1))
    return problem.join(chances, proposals)


def brute_force(problem, point):
    """The bound with E Z, the evidence lower bound, and the evidence, from sums over all z."""
    m, proposals, priors = problem.split(point)
    data, states = problem.data, np.array(list(product((0.0, 1.0), repeat=K)))
    tilts, away = proposals[:, :, 1:], proposals[:, :, 0] - problem.own
    penalty = 0.5 * problem.reg * (tilts**2).sum() + 0.5 * OWN_STRENGTH * (away**2).sum()
    extra = np.log(priors * (1 - priors)).sum() - penalty
    bound = elbo = evidence = extra
    for user in range(data.n_rows):
        q = np.prod(np.where(states == 1, m[user], 1 - m[user]), axis=1)
        log_prior = np.log(np.where(states == 1, priors, 1 - priors)).sum(axis=1)
        entries = slice(data.indptr[user], data.indptr[user + 1])
        items, codes = data.indices[entries], data.codes[entries]
        # Axes: states, ratings, levels.
        logs = proposals[items, :, 0] + np.einsum("sk,jvk->sjv", states, tilts[items])
        chosen = logs[:, np.arange(len(items)), codes]
        normaliser = logsumexp(logs, axis=2)
        joint = log_prior + (chosen - normaliser).sum(axis=1)
        evidence += logsumexp(joint)
        elbo += q @ (joint - np.log(q))
        bound += q @ (log_prior - np.log(q) + chosen.sum(axis=1))
        bound -= np.log(q @ np.exp(normaliser)).sum()
    return bound, elbo, evidence


def test_the_objective_is_minus_a_bound_of_the_evidence(problem):
    for seed in range(3):
        point = random_point(problem, seed)
        bound, elbo, evidence = brute_force(problem, point)
        assert problem(point)[0] == pytest.approx(-bound, rel=1e-12)
        assert bound < elbo < evidence


def test_the_bound_is_the_evidence_lower_bound_when_users_are_certain(problem):
    _, proposals, _ = problem.split(random_point(problem))
    chances = np.where(np.random.default_rng(2).random((20, K)) < 0.5, 1e-10, 1 - 1e-10)
    bound, elbo, _ = brute_force(problem, problem.join(chances, proposals))
    assert bound == pytest.approx(elbo, abs=1e-5)


def test_gradients_agree_with_differences(problem):
    point = random_point(problem)
    gradient = problem(point)[1]
    chances, proposals, _ = (part.copy() for part in problem.split(point))
    for cell in [(0, 0, 0), (3, 4, 0), (5, 2, 1), (7, 1, 3), (11, 0, 2)]:
        values = []
        for step in (1e-5, -1e-5):
            moved = proposals.copy()
            moved[cell] += step
            values.append(problem(problem.join(chances, moved))[0])
        assert (values[0] - values[1]) / 2e-5 == pytest.approx(gradient[cell], rel=1e-6, abs=1e-7)


def test_users_update_is_that_of_plain_numpy(problem):
    m, proposals, priors = problem.split(random_point(problem))
    updated, expected, tilts = m.copy(), m.copy(), np.exp(proposals)
    problem.improve_users(updated, tilts, priors, 2)
    data = problem.data
    for _ in range(2):
        for k in range(K):
            more = tilts[data.indices, :, 1:] - 1
            factors = 1 + expected[data.rows][:, None, :] * more
            shares = tilts[data.indices, :, 0] * factors.prod(axis=2)
            shares /= shares.sum(axis=1, keepdims=True)
            pull = proposals[data.indices, data.codes, k + 1]
            pull = pull - (shares * more[:, :, k] / factors[:, :, k]).sum(axis=1)
            sums = np.bincount(data.rows, pull, len(m))
            expected[:, k] = expit(np.log(priors[k] / (1 - priors[k])) + sums)
    np.testing.assert_allclose(updated, expected, rtol=1e-10)


@pytest.mark.parametrize("steepness", [0.3, 1.0, 4.0])
def test_users_updates_never_lower_the_bound_and_end_at_a_stationary_point(problem, steepness):
    m, proposals, _ = problem.split(random_point(problem, 1, steepness))
    m, priors, tilts = m.copy(), np.full(K, 0.3), np.exp(proposals)

    def value(m):
        return problem(np.concatenate([m.ravel(), proposals.ravel(), priors]))[0]

    values = [value(m)]
    for _ in range(300):
        problem.improve_users(m, tilts, priors, 1)
        values.append(value(m))
    assert all(later <= earlier + 1e-10 for earlier, later in pairwise(values))
    for cell in [(0, 0), (4, 2), (11, 1)]:
        middle, step = logit(m[cell]), 1e-4
        around = []
        for logits in (middle + step, middle - step):
            moved = m.copy()
            moved[cell] = expit(logits)
            around.append(value(moved))
        assert abs(around[0] - around[1]) < 1e-3 * step + 1e-10
        assert min(around) >= values[-1] - 1e-9


def test_chances_of_attitudes_are_those_where_the_bound_is_highest(problem):
    point = random_point(problem)
    for k in range(1, K + 1):
        for step in (-0.01, 0.01):
            moved = point.copy()
            moved[-k] += step
            assert problem(point)[0] < problem(moved)[0]


def test_many_steep_attitudes_do_not_overflow():
    # Products of forty factors as large as exp(25) or as small as 1 - m.
    from marginmf.backends.cpu.attitudes import attitude_items, attitude_pairs, attitude_users

    rng, n_attitudes = np.random.default_rng(0), 40
    proposals = rng.choice([-25.0, 0.0, 25.0], (2, 3, n_attitudes + 1))
    proposals[1] = np.abs(proposals[1])  # all of them at once
    chances = rng.choice([1e-13, 0.5, 1 - 1e-13], (1, n_attitudes))
    log_factors = np.log1p(chances * np.expm1(proposals[:, :, 1:])).sum(axis=2)
    logs = proposals[:, :, 0] + log_factors
    expected = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
    zeros, items = np.zeros(2, np.int32), np.arange(2, dtype=np.int32)
    out, tilts = np.empty((2, 3)), np.exp(proposals)
    by_level = np.ascontiguousarray(tilts.transpose(1, 0, 2))
    attitude_pairs(0, 2, zeros, items, chances, by_level, out)
    np.testing.assert_allclose(out, expected, rtol=1e-9, atol=1e-300)
    values, gradients = np.empty(2), np.empty_like(proposals)
    ones = np.ones(2, np.int16)
    attitude_items(0, 2, np.arange(3), zeros, ones, chances, proposals, values, gradients)
    own = proposals[:, 1, 0] + proposals[:, 1, 1:] @ chances[0]
    np.testing.assert_allclose(values, own - logsumexp(logs, axis=1), rtol=1e-9)
    assert np.isfinite(gradients).all()
    attitude_users(0, 1, np.array([0, 2]), items, ones, tilts, np.zeros(40), 30, chances)
    assert ((chances > 0) & (chances < 1)).all()


def test_users_update_is_that_of_logarithms_when_attitudes_are_many_and_steep():
    # On the way, products are larger than exp(800): there is no such number.
    from marginmf.backends.cpu.attitudes import attitude_users

    rng, n_attitudes, n = np.random.default_rng(0), 40, 60
    proposals = rng.choice([-10.0, 0.0, 25.0], (n, 3, n_attitudes + 1))
    proposals[: n // 2] = rng.choice([22.0, 22.5, 23.0], (n // 2, 3, n_attitudes + 1))
    codes = rng.integers(0, 3, n)
    start, expected = rng.uniform(0.05, 0.95, (2, n_attitudes))
    m, logits = start.copy(), np.empty(n_attitudes)
    for k in range(n_attitudes):
        log_factors = np.log1p(m * np.expm1(proposals[:, :, 1:]))
        logs = proposals[:, :, 0] + log_factors.sum(axis=2)
        shares = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
        slopes = np.expm1(proposals[:, :, k + 1]) / np.exp(log_factors[:, :, k])
        pull = proposals[np.arange(n), codes, k + 1].sum() - (shares * slopes).sum()
        # A prior against which the ratings do not make the attitude certain.
        logits[k] = logit(expected[k]) - pull
        m[k] = expit(logits[k] + pull)
    rows = np.array([0, n]), np.arange(n, dtype=np.int32), codes.astype(np.int16)
    found = start[None].copy()
    attitude_users(0, 1, *rows, np.exp(proposals), logits, 1, found)
    np.testing.assert_allclose(found[0], expected, rtol=1e-8)


class Parabola:
    """What `ProposalEM` needs of a problem, with a minimum that long steps go beyond."""

    steepness = np.array([1.0, 20.0])

    def __init__(self):
        self.steps = []

    def __call__(self, point):
        return 0.5 * (self.steepness * point**2).sum(), self.steepness * point

    def moved(self, point, step):
        self.steps.append(step)
        return point - step


def test_a_sweep_is_made_again_with_its_own_gradient_and_half_the_step():
    problem = Parabola()
    states = list(islice(ProposalEM().steps(problem, np.array([0.5, -0.3]), None), 25))
    numbers = [state.n_evaluations - 1 for state in states]
    n_again = 0
    for n, (before, after) in enumerate(pairwise(states), 1):
        tried = problem.steps[numbers[n - 1] : numbers[n]]
        square = after.vectors["moments"][1] / (1 - KEPT_SQUARE**n)
        gradient = problem(before.point)[1]
        rate = min(RATE, GROWTH * before.numbers["rate"][0])
        for k in range(1, len(tried)):
            alone = 0.5**k * rate * gradient / (np.sqrt(square) + TINY)
            np.testing.assert_allclose(tried[k], alone, rtol=1e-12)
        if len(tried) > 1:
            n_again += n > 3  # there is an average by then
            np.testing.assert_allclose(after.vectors["moments"][0], (1 - KEPT_MEAN) * gradient)
            assert after.numbers["steps"] == [1.0, n]
        assert after.numbers["rate"][0] == pytest.approx(0.5 ** (len(tried) - 1) * rate)
        assert after.value <= before.value
    assert n_again > 2


def test_folding_in_the_users_of_training_gives_their_chances_again():
    pairs, ratings, *_ = draw(100, 40)
    model = Attitude(K, max_iter=600, tol=1e-9, random_state=0).fit(pairs, ratings)
    folded = model.fold_in(pairs, ratings)
    away = np.abs(folded.user_attitudes_ - model.user_attitudes_).max(axis=1)
    # Some users' bounds have several maxima: theirs may be another one.
    assert (away < 0.01).mean() > 0.9
    problem, old = model._problem(model.ratings_, K), folded.user_attitudes_
    new, tilts = old.copy(), swap_items_and_levels(model.item_proposals_)
    problem.improve_users(new, tilts, model.attitude_priors_, 1)
    np.testing.assert_allclose(new, old, atol=1e-3)


def test_new_items_get_the_proposals_where_the_bound_is_highest():
    pairs, ratings, *_ = draw(60, 20)
    data = Ratings.of(pairs, ratings)
    model = Attitude(K, max_iter=300, tol=1e-7, random_state=0).fit(data)
    problem = model._problem(data, K)
    solved = problem.solve_items(model.user_attitudes_)
    values, gradients = problem.item_values(model.user_attitudes_, solved)
    learned = np.log(model.item_proposals_.transpose(1, 0, 2))
    assert np.abs(gradients).max() < 1e-2
    assert (values <= problem.item_values(model.user_attitudes_, learned)[0] + 1e-9).all()
    np.testing.assert_allclose(solved, learned, atol=0.05)


def test_the_bound_rises_in_every_sweep():
    pairs, ratings, *_ = draw(100, 40)
    model = Attitude(random_state=0).fit(pairs, ratings)
    values = [record.objective for record in model.history_]
    assert len(values) > 20
    assert all(later <= earlier for earlier, later in pairwise(values))


def test_the_model_is_recovered_from_ratings_drawn_from_it():
    pairs, ratings, attitudes, proposals = draw(1500, 50)
    test = np.random.default_rng(1).random(len(pairs)) < 0.2
    model = Attitude(3, 1.0, max_iter=300, random_state=0).fit(pairs[~test], ratings[~test])
    oracle = copy(model)  # it knows the items, and must find out about the users
    oracle.item_proposals_ = np.ascontiguousarray(np.exp(proposals).transpose(1, 0, 2))
    oracle.attitude_priors_ = np.full(3, 0.4)
    oracle = oracle.fold_in(pairs[~test], ratings[~test])
    assert ((oracle.user_attitudes_ > 0.5) == attitudes).mean() > 0.97
    own, best, usual = (
        np.log(distribution[np.arange(test.sum()), ratings[test].astype(int) - 1]).mean()
        for distribution in (
            model.predict_proba(pairs[test]),
            oracle.predict_proba(pairs[test]),
            model._item_priors(model.ratings_)[pairs[test, 1]],
        )
    )
    assert own > best - 0.1 * (best - usual)
    # The attitudes are the true ones, in an order of their own, or their absence is.
    agreement = np.abs(np.corrcoef(model.user_attitudes_.T, attitudes.T)[:3, 3:])
    assert sorted(agreement.argmax(axis=1)) == [0, 1, 2]
    assert (agreement.max(axis=1) > 0.9).all()


@pytest.mark.parametrize(
    ("pairs", "ratings", "levels"),
    [
        ([(0, 0)], [3], (3, 4)),
        ([(0, 0), (1, 1)], [1, 1], (1, 2)),
        ([(0, 0), (0, 1), (1, 0)], [2, 2, 2], (1, 2, 3)),
        ([(user, 0) for user in range(30)], [1, 5] * 15, None),
    ],
)
@pytest.mark.parametrize("reg", [1e-6, 10.0, 1e6])
def test_degenerate_ratings_get_finite_answers(pairs, ratings, levels, reg):
    model = Attitude(reg=reg, random_state=0).fit(Ratings.of(pairs, ratings, levels=levels))
    for answer in (model, model.fold_in(pairs, ratings), model.fold_in_items(pairs, ratings)):
        distribution = answer.predict_proba(pairs)
        assert np.isfinite(distribution).all()
        assert (distribution > 0).all()


def test_users_without_ratings_are_expected_to_be_average():
    pairs, ratings, *_ = draw(30, 15)
    data = Ratings.of(pairs, ratings)
    kept = (data.rows != 7) & (data.indices != 3)
    model = Attitude(random_state=0)._fit_copy(data.subset(kept))
    np.testing.assert_allclose(model.user_attitudes_[7], model.attitude_priors_, atol=0.01)
    everybody, unrated = np.arange(30, dtype=np.int32), np.full(30, 3, np.int32)
    distribution = model._distribution(everybody, unrated)
    np.testing.assert_allclose(distribution, np.tile(model.level_shares_, (30, 1)), atol=0.1)


@pytest.mark.parametrize("sweep", [1, 7, 25])
def test_an_interrupted_fit_goes_on_to_the_same_bits(sweep, tmp_path):
    pairs, ratings, *_ = draw(40, 20)
    settings = {"n_factors": 3, "max_iter": 30, "tol": 0.0, "random_state": 0}

    def interrupt(progress):
        if progress.record.iteration == sweep:
            raise KeyboardInterrupt

    path = tmp_path / "checkpoint"
    with pytest.raises(KeyboardInterrupt):
        Attitude(callbacks=[interrupt], **settings).fit(pairs, ratings, checkpoint=path)
    again = Attitude(**settings).fit(pairs, ratings, checkpoint=path)
    assert_same_fit(again, Attitude(**settings).fit(pairs, ratings))


def test_threads_change_no_bit():
    pairs, ratings, *_ = draw(1500, 60, observed=0.9)
    one, two = (Attitude(max_iter=3, random_state=0, n_jobs=n).fit(pairs, ratings) for n in (1, 2))
    assert_same_fit(one, two)
    problem = one._problem(one.ratings_, 8)
    solved = (
        replace(
            problem, n_threads=n, by_item=problem.by_item.take(np.arange(40)), own=problem.own[:40]
        ).solve_items(one.user_attitudes_)
        for n in (1, 2)
    )
    np.testing.assert_array_equal(*solved)


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"reg": 0}, "reg=0 must be a number > 0"),
        ({"reg": float("inf")}, "reg=inf must be a finite number"),
        ({"max_iter": 0}, "max_iter=0 must be a whole number >= 1"),
        ({"random_state": "dice"}, "random_state='dice' cannot seed"),
    ],
)
def test_bad_parameters_get_a_sentence(params, sentence):
    with pytest.raises(ValueError, match=sentence):
        Attitude(**params).fit([(0, 0), (1, 1)], [1, 2])


def test_on_movielens_it_is_about_as_good_as_the_prototype(movielens_80_20):
    pairs, ratings, test_pairs, test_ratings = movielens_80_20
    model = Attitude(random_state=0).fit(pairs, ratings)
    assert mean_absolute_error(test_ratings, model.predict(test_pairs)) < 0.75
