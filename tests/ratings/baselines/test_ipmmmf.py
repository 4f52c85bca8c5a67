"""IPMMMF keeps the contract, lowers its objective and finds what data were made with."""

from copy import deepcopy

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import digamma, gammaln, softmax
from scipy.stats import wishart

from contracts import DescentContract, RatingsEstimatorContract, assert_same_fit, synthetic
from marginmf.ratings import Ratings
from marginmf.ratings.baselines.ipmmmf import (
    IPMMMF,
    VariationalPosterior,
    VariationalRules,
    improve_item_prior,
    improved_sticks,
    item_divergence,
    stick_divergence,
    stick_expectations,
)
from new_row_contracts import NewRowsContract


def defaults(params):
    return {"n_factors": 5, "cost": 0.5, "max_iter": 15, "random_state": 0, **params}


class TestIPMMMF(DescentContract):
    """All of the contract, with a zero mean and unit variances for the items' factors."""

    parameter, usual, refused = "n_factors", 5, (0, 2.5, None)

    def make(self, **params):
        return IPMMMF(**defaults(params))


class TestBayesian(NewRowsContract):
    """What depends on a learned prior of the items' factors."""

    scale, UNKNOWN = (1, 2, 3, 4, 5), RatingsEstimatorContract.UNKNOWN
    histories = DescentContract.histories
    test_objective_never_rises = DescentContract.test_objective_never_rises
    test_same_seed = RatingsEstimatorContract.test_same_seed_same_answer_whatever_the_threads
    test_saved = RatingsEstimatorContract.test_a_saved_and_loaded_model_is_the_same_to_the_last_bit
    test_better_than_the_median = (
        RatingsEstimatorContract.test_predictions_are_levels_and_better_than_the_median
    )

    data = RatingsEstimatorContract.data
    fitted = RatingsEstimatorContract.fitted
    model = RatingsEstimatorContract.model

    def make(self, **params):
        return IPMMMF(bayesian=True, **defaults(params))


both_forms = pytest.mark.parametrize("bayesian", [False, True])


@both_forms
@pytest.mark.parametrize("rounds", [1, 6])
def test_a_fit_that_is_interrupted_resumes_to_the_same_answer(bayesian, rounds, tmp_path):
    def interrupt(progress):
        if progress.record.iteration == rounds:
            raise KeyboardInterrupt

    data, path = synthetic((1, 2, 3, 4, 5)), tmp_path / "checkpoint"
    make = lambda **params: IPMMMF(bayesian=bayesian, calibrate=False, **defaults(params))  # noqa: E731
    with pytest.raises(KeyboardInterrupt):
        make(callbacks=[interrupt]).fit(*data, checkpoint=path)
    assert len(list(path.iterdir())) > 1
    assert_same_fit(make().fit(*data, checkpoint=path), make().fit(*data))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("bayesian", "share", "numbers"),
    [(False, 15.0, {"max_iter": 50, "tol": 1e-3}), (True, 8.0, {"max_iter": 80, "tol": 1e-4})],
)
def test_what_auto_stands_for(bayesian, share, numbers):
    pairs, ratings = synthetic((1, 2, 3, 4, 5))
    n_users, n_items = (len(np.unique(column)) for column in pairs.T)
    numbers = {"cost": share * n_users / len(ratings), "prior_items": n_items, **numbers}
    shared = {"n_factors": 5, "bayesian": bayesian, "calibrate": False, "random_state": 0}
    automatic = IPMMMF(**shared).fit(pairs, ratings)
    assert_same_fit(automatic, IPMMMF(**shared, **numbers).fit(pairs, ratings))


def test_callbacks_can_stop_and_verbose_shows_one_bar(capsys):
    data = synthetic((1, 2, 3, 4, 5))
    stop = lambda progress: progress.record.iteration == 2  # noqa: E731
    model = IPMMMF(verbose=1, callbacks=[stop], **defaults({"calibrate": False})).fit(*data)
    assert model.n_iter_ == 2
    assert "callback" in model.stop_reason_
    out, err = capsys.readouterr()
    assert out == ""
    assert "IPMMMF" in err
    assert "objective" in err


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"cost": 0}, "cost=0 must be a number > 0, or 'auto'"),
        ({"cost": "high"}, "cost='high' must be a number > 0, or 'auto'"),
        ({"concentration": -1.0}, r"concentration=-1\.0 must be a number > 0"),
        ({"margin": np.inf}, r"margin=inf must be a finite number >= 1e-09 and <= 1e\+09"),
        ({"margin": 1e200}, r"margin=1e\+200 must be a number >= 1e-09 and <= 1e\+09"),
        ({"margin": 1e-300}, r"margin=1e-300 must be a number >= 1e-09"),
        ({"prior_items": -1}, r"prior_items=-1 must be a number >= 0 and <= 1e\+09"),
        ({"prior_items": "all"}, "prior_items='all' must be a number >= 0"),
        ({"bayesian": "yes"}, "bayesian='yes' must be True or False"),
        ({"max_iter": 0}, "max_iter=0 must be a whole number >= 1, or 'auto'"),
        ({"tol": -1.0}, r"tol=-1\.0 must be a number >= 0"),
        ({"calibrate": "no"}, "calibrate='no' must be True or False"),
        ({"random_state": "dice"}, "random_state='dice' cannot seed"),
        ({"callbacks": None}, "callbacks=None must be a list of functions"),
    ],
)
def test_bad_parameters_get_a_sentence(params, sentence):
    with pytest.raises(ValueError, match=sentence):
        IPMMMF(**params).fit([(0, 0), (0, 1)], [1, 2])


def test_factors_are_for_similarities_and_not_for_explanations():
    pairs, ratings = synthetic((1, 2, 3, 4, 5))
    model = IPMMMF(**defaults({"calibrate": False})).fit(pairs, ratings)
    assert len(model.similar_items(3, n=4)) == len(model.similar_users(3, n=4)) == 4
    with pytest.raises(ValueError, match="predictions of IPMMMF are not sums over ratings"):
        model.explain(0, 0)


@both_forms
@pytest.mark.parametrize("scale", [(0, 1), (0.5, 1, 1.5, 2), (-3, 10, 11)])
def test_few_ratings_and_odd_scales_give_finite_answers(bayesian, scale):
    pairs = [("ann", "x"), ("ann", "y"), ("bob", "x"), ("cy", "z")]
    model = IPMMMF(bayesian=bayesian, **defaults({})).fit(
        Ratings.of(pairs, [scale[0], scale[-1], scale[0], scale[-1]], levels=scale)
    )
    every = [(user, item) for user in ("ann", "bob", "cy") for item in "xyz"]
    assert np.isfinite(model.decision_function(every)).all()
    np.testing.assert_allclose(model.predict_proba(every).sum(axis=1), 1.0)


# --- what the steps find ---------------------------------------------------------------------


def random_problem(seed, bayesian, prior_items=0.0):
    rng = np.random.default_rng(seed)
    n_users, n_items, n_factors = (int(n) for n in rng.integers(1, 8, 3))
    n_levels, cost = int(rng.integers(2, 6)), float(rng.choice([0.03, 0.2, 1.5]))
    rules = VariationalRules(cost, float(rng.choice([1.0, 9.0])), 3.0, n_levels, 1, prior_items)
    rated = np.argwhere(rng.random((n_users, n_items)) < 0.6)
    if len(rated) == 0:
        rated = np.zeros((1, 2), int)
    codes = rng.integers(0, n_levels, len(rated)).astype(float)
    learned = n_factors if bayesian else 0
    data = Ratings.of(rated, codes, levels=range(n_levels))
    root = rng.normal(size=(learned, learned))
    posterior = VariationalPosterior(
        rng.random((data.n_users, n_factors)),
        3 * rng.normal(size=(data.n_items, n_factors)),
        rules.centres + 5 * rng.normal(size=(data.n_users, n_levels - 1)),
        rng.exponential(size=(n_factors, 2)) + 0.1,
        rng.normal(size=learned),
        root @ root.T + 0.1 * np.eye(learned),
    )
    return rules, data, posterior


def objective(rules, data, posterior):
    x = np.einsum(
        "nk,nk->n", posterior.user_factors[data.rows], posterior.item_factors[data.indices]
    )
    T = np.where(data.codes[:, None] <= np.arange(data.n_levels - 1), 1.0, -1.0)
    hinges = np.maximum(0, rules.margin - T * (posterior.thresholds[data.rows] - x[:, None]))
    # The means are two margins apart, the deviation is one and a half.
    centres = 2.0 * rules.margin * (np.arange(1, data.n_levels) - data.n_levels / 2)
    deviations = (posterior.thresholds - centres) / (1.5 * rules.margin)
    prior = 0.5 * np.square(deviations).sum()
    return rules.cost * hinges.sum() + prior + rules.divergence(posterior)


@pytest.mark.parametrize(
    ("bayesian", "prior_items"), [(False, 0.0), (True, 0.0), (True, 6.0), (True, 50.5)]
)
@settings(deadline=None)
@given(seed=st.integers(0, 100_000))
def test_no_step_raises_the_objective(bayesian, prior_items, seed):
    rules, data, posterior = random_problem(seed, bayesian, prior_items)
    duals = np.zeros(len(data))
    values = [objective(rules, data, posterior)]
    for _ in range(3):
        if bayesian:
            improve_item_prior(posterior, prior_items)
            values.append(objective(rules, data, posterior))
        posterior.item_factors = rules.improve_items(
            data.by_item, posterior, duals, posterior.item_factors
        )
        values.append(objective(rules, data, posterior))
        losses = rules.improve_users(data, posterior, 1)
        values.append(objective(rules, data, posterior))
        assert losses + rules.divergence(posterior) == pytest.approx(values[-1], rel=1e-9, abs=1e-7)
        posterior.sticks = rules.improve_sticks(posterior)
        values.append(objective(rules, data, posterior))
    assert (np.diff(values) <= 1e-9 * np.abs(values).max()).all()


def test_expected_log_probabilities_of_factors():
    sticks = np.array([[3.0, 1.0], [2.0, 5.0], [8.0, 0.7]])
    present, absent, terms = stick_expectations(sticks)
    draws = np.random.default_rng(0).beta(*sticks.T[:, None], size=(200_000, 3))
    products = draws.cumprod(axis=1)
    np.testing.assert_allclose(present, np.log(products).mean(axis=0), atol=0.02)
    exact = np.log1p(-products).mean(axis=0)
    assert (absent <= exact + 0.01).all()
    # No other shares make Jensen's bound higher.
    rng = np.random.default_rng(1)
    for k in range(3):
        own = terms[: k + 1]
        for shares in (softmax(own), *rng.dirichlet(np.ones(k + 1), 20)):
            bound = shares @ own - shares @ np.log(shares)
            assert bound <= absent[k] + 1e-12
        best = softmax(own)
        assert best @ own - best @ np.log(best) == pytest.approx(absent[k])


def test_sticks_are_the_best_for_the_shares():
    rng = np.random.default_rng(0)
    n_users, concentration, K = 20, 3.0, 4
    sticks, with_factor = rng.exponential(size=(K, 2)) + 0.5, n_users * rng.random(K)
    terms = stick_expectations(sticks)[2]
    shares = [softmax(terms[: k + 1]) for k in range(K)]

    def value(flat):
        own = np.exp(flat).reshape(K, 2)
        present, _, e = stick_expectations(own)
        bounds = np.array([s @ e[: k + 1] for k, s in enumerate(shares)])
        expected = with_factor @ present + (n_users - with_factor) @ bounds
        return stick_divergence(own, concentration) - expected

    found = minimize(value, np.zeros(2 * K), tol=1e-12, options={"maxiter": 2000})
    best = improved_sticks(sticks, with_factor, n_users, concentration)
    np.testing.assert_allclose(np.exp(found.x).reshape(K, 2), best, rtol=1e-3)


def test_divergence_of_sticks_is_that_of_beta_distributions():
    a, b, concentration = 2.5, 1.7, 3.0
    draws = np.random.default_rng(0).beta(a, b, 200_000)
    log_q = (a - 1) * np.log(draws) + (b - 1) * np.log1p(-draws)
    log_q += gammaln(a + b) - gammaln(a) - gammaln(b)
    log_p = np.log(concentration) + (concentration - 1) * np.log(draws)
    found = stick_divergence(np.array([[a, b]]), concentration)
    assert found == pytest.approx((log_q - log_p).mean(), abs=0.01)


def with_items(items, seed=0):
    K, empty = items.shape[1], np.zeros((0, items.shape[1]))
    return VariationalPosterior(empty, items, empty, np.ones((K, 2)), np.zeros(K), np.eye(K) / K)


def test_divergence_of_items_is_that_of_normal_and_wishart_distributions():
    # One factor: the Wishart distribution is a gamma distribution.
    rng = np.random.default_rng(0)
    posterior = with_items(rng.normal(size=(6, 1)))
    improve_item_prior(posterior, 0.0)
    S, mean = posterior.covariance[0, 0], posterior.mean[0]
    freedom, weight, n = 7, 7, 100_000
    scale = 1 / (freedom * S)
    precision = rng.gamma(freedom / 2, 2 * scale, n)
    mu = mean + rng.normal(size=n) / np.sqrt(weight * precision)

    def log_normal(x, centre, precision):
        return 0.5 * np.log(precision / (2 * np.pi)) - 0.5 * precision * (x - centre) ** 2

    def log_gamma(x, freedom, scale):
        shape = freedom / 2
        log_x = (shape - 1) * np.log(x)
        return log_x - x / (2 * scale) - shape * np.log(2 * scale) - gammaln(shape)

    ratio = log_gamma(precision, freedom, scale) - log_gamma(precision, 1, 1.0)
    ratio += log_normal(mu, mean, weight * precision) - log_normal(mu, 0.0, precision)
    for item in posterior.item_factors[:, 0]:
        draws = item + np.sqrt(S) * rng.normal(size=n)
        ratio += log_normal(draws, item, 1 / S) - log_normal(draws, mu, precision)
    assert item_divergence(posterior, 0.0) == pytest.approx(ratio.mean(), abs=0.05)


both_priors = pytest.mark.parametrize("prior_items", [0.0, 12.0])


@both_priors
def test_divergence_of_items_with_two_factors(prior_items):
    rng, n = np.random.default_rng(0), 20_000
    posterior = with_items(rng.normal(size=(4, 2)) @ rng.normal(size=(2, 2)) + 0.5)
    improve_item_prior(posterior, prior_items)
    S, mean = posterior.covariance, posterior.mean
    before, after = 2 + prior_items, 2 + prior_items + 4
    start, scale = np.eye(2) / (1 + prior_items), np.linalg.inv(S) / after
    normals = rng.normal(size=(n, int(after), 2)) @ np.linalg.cholesky(scale).T
    precisions = normals.transpose(0, 2, 1) @ normals

    def log_normal(x, centre, precision):
        distance = np.einsum("ni,nij,nj->n", x - centre, precision, x - centre)
        return 0.5 * (np.linalg.slogdet(precision / (2 * np.pi))[1] - distance)

    def draws(centre, covariances):
        roots = np.linalg.cholesky(covariances)
        return centre + np.einsum("nij,nj->ni", roots, rng.normal(size=(n, 2)))

    mu = draws(mean, np.linalg.inv(5 * precisions))
    stacked = precisions.transpose(1, 2, 0)
    ratio = wishart(after, scale).logpdf(stacked) - wishart(before, start).logpdf(stacked)
    ratio += log_normal(mu, mean, 5 * precisions) - log_normal(mu, 0.0, precisions)
    for item in posterior.item_factors:
        own = draws(item, np.broadcast_to(S, (n, 2, 2)))
        ratio += log_normal(own, item, np.broadcast_to(np.linalg.inv(S), (n, 2, 2)))
        ratio -= log_normal(own, mu, precisions)
    error = ratio.std() / np.sqrt(n)
    assert error < 0.05
    assert item_divergence(posterior, prior_items) == pytest.approx(ratio.mean(), abs=4 * error)


@both_priors
def test_the_learned_prior_settles_at_the_best_mean_and_covariance(prior_items):
    rng = np.random.default_rng(0)
    items = rng.normal(size=(10, 3)) @ rng.normal(size=(3, 3)) + 1.0
    posterior = with_items(items)
    for _ in range(300):
        improve_item_prior(posterior, prior_items)
    mean = items.sum(axis=0) / 11
    np.testing.assert_allclose(posterior.mean, mean)
    # Every item's own covariance is that of the prior, so both grow until the Wishart prior holds.
    scatter = items.T @ items - 11 * np.outer(mean, mean)
    settled = ((1 + prior_items) * np.eye(3) + scatter) / (3 + prior_items)
    np.testing.assert_allclose(posterior.covariance, settled, rtol=1e-6)
    least = item_divergence(posterior, prior_items)
    for _ in range(20):
        other = deepcopy(posterior)
        root = np.eye(3) + 0.05 * rng.normal(size=(3, 3))
        other.covariance = root @ other.covariance @ root.T
        other.mean = other.mean + 0.05 * rng.normal(size=3)
        assert item_divergence(other, prior_items) > least


@both_priors
def test_a_learned_prior_starts_at_what_is_expected_before_there_are_items(prior_items):
    points = []
    seen = {"callbacks": [lambda progress: points.append(progress.point)], "max_iter": 1}
    fitted(True, n_factors=3, prior_items=prior_items, **seen)
    expected = (1 + prior_items) / (3 + prior_items) * np.eye(3)
    np.testing.assert_allclose(points[0][-9:].reshape(3, 3), expected)


# --- new users and items -----------------------------------------------------------------------


def fitted(bayesian=False, **params):
    return IPMMMF(
        bayesian=bayesian, **defaults({"n_factors": 8, "calibrate": False, **params})
    ).fit(*synthetic((1, 2, 3, 4, 5)))


def new_rows(model, side, seed=1):
    """Return ratings by new users, or of new items, as the columns (user, item) and values."""
    rng = np.random.default_rng(seed)
    known = rng.permutation(20)[:12]
    pairs = [
        (900 + row, old) if side == "user" else (old, 900 + row)
        for row in (0, 1)
        for old in known.tolist()
    ]
    return pairs, rng.integers(1, 6, len(pairs)).astype(float)


@both_forms
def test_new_users_have_ten_rounds_from_the_usual_share_of_every_factor(bayesian):
    model = fitted(bayesian)
    folded = model.fold_in(*new_rows(model, "user"))
    data, n_levels = folded.ratings_, 5
    a, b = model.sticks_.T
    usual = np.exp(np.cumsum(digamma(a) - digamma(a + b)))
    centres = 2 * 9.0 * (np.arange(1, n_levels) - n_levels / 2)
    known = VariationalPosterior(
        np.tile(usual, (data.n_users, 1)),
        model.item_factors_,
        np.tile(centres, (data.n_users, 1)),
        model.sticks_,
        np.zeros(0),
        np.zeros((0, 0)),
    )
    rules = VariationalRules(model.cost_, 9.0, 3.0, n_levels, 1)
    for _ in range(10):
        rules.improve_users(data, known, 1)
    np.testing.assert_allclose(folded.user_factors_, known.user_factors, atol=1e-8)
    np.testing.assert_allclose(folded.thresholds_, known.thresholds, atol=1e-8)


@both_forms
def test_new_items_are_the_best_for_their_ratings(bayesian):
    model = fitted(bayesian)
    folded = model.fold_in_items(*new_rows(model, "item"))
    mean, root = np.zeros(8), np.eye(8)
    if bayesian:
        mean, root = model.item_mean_, np.linalg.cholesky(model.item_covariance_)
    for item, v in enumerate(folded.item_factors_):
        own = folded.ratings_.indices == item
        rows, codes = folded.ratings_.rows[own], folded.ratings_.codes[own, None]
        U, T = folded.user_factors_[rows], np.where(codes <= np.arange(4), 1.0, -1.0)
        gaps = (9.0 - T * (folded.thresholds_[rows] - (U @ mean)[:, None])).ravel()
        A = (T[:, :, None] * (U @ root)[:, None, :]).reshape(-1, 8)

        def dual(a, A=A, gaps=gaps):  # one number for each hinge
            return 0.5 * np.square(a @ A).sum() - a @ gaps, A @ (a @ A) - gaps

        bounds = [(0.0, 0.5)] * len(A)
        least = -minimize(dual, np.zeros(len(A)), jac=True, bounds=bounds, tol=1e-14).fun
        unit = np.linalg.solve(root, v - mean)
        found = 0.5 * unit @ unit + 0.5 * np.maximum(0.0, gaps + A @ unit).sum()
        assert found == pytest.approx(least, rel=1e-3)


def test_new_rows_are_learned_with_the_margin_of_the_fit():
    model = fitted()
    (pairs, ratings), everything = new_rows(model, "user"), [(900, item) for item in range(20)]
    expected = model.fold_in(pairs, ratings).decision_function(everything)
    model.set_params(margin=1.0)
    found = model.fold_in(pairs, ratings).decision_function(everything)
    np.testing.assert_array_equal(found, expected)
    # Files of before had no margin but the parameter.
    del model.set_params(margin=9.0).margin_
    found = model.fold_in(pairs, ratings).decision_function(everything)
    np.testing.assert_array_equal(found, expected)


# --- what data were made with ----------------------------------------------------------------


def made_of_binary_factors(n_users=200, n_items=100, n_factors=4, seed=0):
    rng = np.random.default_rng(seed)
    scores = (rng.random((n_users, n_factors)) < 0.5) @ rng.normal(size=(n_factors, n_items))
    ratings = 1 + np.searchsorted(np.quantile(scores, [0.2, 0.4, 0.6, 0.8]), scores)
    cells = rng.permutation(scores.size)[: int(0.3 * scores.size)]
    pairs = np.column_stack([cells // n_items, cells % n_items])
    picked = ratings[pairs[:, 0], pairs[:, 1]].astype(float)
    n_test = len(cells) // 5
    return (pairs[n_test:], picked[n_test:]), (pairs[:n_test], picked[:n_test])


@both_forms
def test_ratings_made_of_binary_factors_are_recovered(bayesian):
    train, (pairs, ratings) = made_of_binary_factors()
    model = IPMMMF(10, 0.5, bayesian=bayesian, random_state=0, calibrate=False).fit(*train)
    error = np.abs(model.predict(pairs, output="rule") - ratings).mean()
    medians = np.array([np.median(train[1][train[0][:, 1] == item]) for item in range(100)])
    assert error < 0.5 * np.abs(np.round(medians[pairs[:, 1]]) - ratings).mean()


def test_more_rounds_do_not_wear_out_the_prior():
    # The published prior, which has seen no items, lets variances grow with every round.
    train, (pairs, ratings) = made_of_binary_factors()
    errors, variances = {}, {}
    for prior_items in (0, "auto"):
        params = {"bayesian": True, "prior_items": prior_items, "max_iter": 60, "tol": 0.0}
        model = IPMMMF(10, 0.2, **params, random_state=0, calibrate=False).fit(*train)
        predicted = model.predict(pairs, output="rule")
        errors[prior_items] = np.abs(predicted - ratings).mean()
        variances[prior_items] = np.trace(model.item_covariance_) / 10
    assert variances["auto"] < 0.2 * variances[0]
    assert errors["auto"] < errors[0]


def test_a_cost_too_low_leaves_the_factors_unused():
    # The prior is stronger than what few ratings can cost then: all users are alike.
    train, (pairs, ratings) = made_of_binary_factors()
    errors = []
    for cost in (0.03, 0.5):
        model = IPMMMF(10, cost, random_state=0, calibrate=False).fit(*train)
        errors.append(np.abs(model.predict(pairs, output="rule") - ratings).mean())
    assert errors[0] > 1.5 * errors[1]


@pytest.mark.parametrize(("bayesian", "error"), [(False, 0.70), (True, 0.68)])
def test_held_out_errors_on_movielens(movielens_80_20, bayesian, error):
    pairs, ratings, test_pairs, test_ratings = movielens_80_20
    model = IPMMMF(20, bayesian=bayesian, random_state=0, calibrate=False)
    predicted = model.fit(pairs, ratings).predict(test_pairs, output="rule")
    assert np.abs(predicted - test_ratings).mean() < error
    # There is enough to do here for two threads.
    alone, both = (
        model.set_params(max_iter=2, n_jobs=n).fit(pairs, ratings).history_ for n in (1, 2)
    )
    assert [record.objective for record in alone] == [record.objective for record in both]
