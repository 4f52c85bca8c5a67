"""GPLVM: its derivatives, its predictions against dense matrices, and what it keeps."""

from copy import deepcopy

import numpy as np
import pytest
from scipy.stats import norm

import marginmf
from contracts import RatingsEstimatorContract, assert_same_fit, synthetic
from marginmf.backends import threads
from marginmf.checkpoints import Checkpoint
from marginmf.datasets import make_ratings
from marginmf.ratings import Ratings
from marginmf.ratings.baselines.gplvm import GPLVM, Placing
from marginmf.ratings.baselines.processes import Covariance, Likelihood

TABLE = make_ratings(30, 25, n_factors=2, observed=0.5, random_state=3)
DATA = Ratings.of(TABLE.pairs, TABLE.ratings)


class TestGPLVM(RatingsEstimatorContract):
    parameter, usual, refused = "n_factors", 3, (0, 2.5, None)

    def make(self, **params):
        return GPLVM(**{"n_factors": 3, "max_iter": 6, "random_state": 0} | params)


class TestGPLVMInBlocks(TestGPLVM):
    """Small blocks, so that every user has several."""

    scale = (0, 1)
    parameter, usual, refused = "max_iter", 4, (0, 2.5, None)

    def make(self, **params):
        return super().make(**{"block_size": 9} | params)


@pytest.fixture(scope="module")
def fitted():
    return GPLVM(n_factors=2, max_iter=5, random_state=0).fit(DATA)


def dense_covariance(left, right, covariance):
    """The covariance of functions at positions, without noise."""
    squares = ((left[:, None] - right[None]) ** 2).sum(axis=-1)
    return covariance.signal * np.exp(-0.5 * covariance.width * squares) + covariance.bias


# --- training -----------------------------------------------------------------------------------


def likelihood(block_size=1000):
    model = GPLVM(n_factors=2, block_size=block_size).fit(DATA)
    return Likelihood.of(DATA, model._standardised(DATA), *model._settings)


def random_point(n_items=DATA.n_items):
    rng = np.random.default_rng(0)
    return np.append(0.7 * rng.normal(size=2 * n_items), np.log([0.6, 1.3, 0.2, 0.7]))


@pytest.mark.parametrize("block_size", [1000, 7])
def test_the_objective_is_minus_the_density_of_every_block(block_size):
    own, point = likelihood(block_size), random_point()
    positions, covariance = own.split(point)
    assert covariance == pytest.approx(Covariance(1.3, 0.6, 0.2, 0.7))
    assert max(len(items) for items, _ in own.blocks) <= block_size
    assert sum(len(items) for items, _ in own.blocks) == len(DATA)
    expected = 0.0
    for items, targets in own.blocks:
        K = dense_covariance(positions[items], positions[items], covariance)
        K += covariance.noise * np.eye(len(items))
        _, logarithm = np.linalg.slogdet(K)
        expected += targets @ np.linalg.solve(K, targets) + logarithm
        expected += len(items) * np.log(2 * np.pi)
    assert own(point)[0] == pytest.approx(0.5 * expected)


def test_slopes_are_those_of_central_differences():
    own, point, step = likelihood(), random_point(), 1e-5
    alone = Likelihood(own.n_items, own.blocks[3:4], own.rates)
    value, items, slopes, of_parameters = own.slopes_of(point, 3)
    assert value == pytest.approx(alone(point)[0], rel=1e-12)
    whole = np.zeros_like(point)
    whole[:-4].reshape(own.n_items, -1)[items] = slopes
    whole[-4:] = of_parameters
    for k in range(len(point)):
        ahead, behind = point.copy(), point.copy()
        ahead[k] += step
        behind[k] -= step
        numeric = -(alone(ahead)[0] - alone(behind)[0]) / (2 * step)
        assert whole[k] == pytest.approx(numeric, rel=1e-6, abs=1e-7)


def test_momentum_moves_every_item_and_slopes_those_of_the_block():
    own, point = likelihood(), random_point()
    order, expected, velocity = np.array([4, 2]), point.copy(), np.zeros_like(point)
    total = 0.0
    for number in order:
        value, items, slopes, of_parameters = own.slopes_of(expected, number)
        gradient = np.zeros_like(point)
        gradient[:-4].reshape(own.n_items, -1)[items] = slopes
        gradient[-4:] = of_parameters
        velocity = 0.9 * velocity + own.rates * gradient
        expected, total = expected + velocity, total + value
    memory = [np.zeros_like(point)]
    assert own.epoch(order, point, memory, 0) == pytest.approx(total)
    np.testing.assert_allclose(point, expected, rtol=1e-12)
    np.testing.assert_allclose(memory[0], velocity, rtol=1e-12)


def test_the_noise_has_a_floor():
    settings = {"learning_rate": 0.0, "parameter_rate": 0.05, "max_iter": 20, "random_state": 0}
    one = Ratings.of(DATA.pairs, np.full(len(DATA), 2.0), levels=[1, 2, 3])
    model = GPLVM(2, **settings).fit(one)
    assert model.covariance_[-1] == pytest.approx(1e-3)


def test_the_likelihood_rises_and_an_interrupted_fit_goes_on_to_the_same_bits(tmp_path):
    class StopError(Exception):
        pass

    def interrupt(progress):
        if progress.record.iteration == 3:
            raise StopError

    make = lambda **more: GPLVM(2, max_iter=6, random_state=0, **more)  # noqa: E731
    checkpoint = Checkpoint(tmp_path / "checkpoint", seconds=0)
    with pytest.raises(StopError):
        make(callbacks=[interrupt]).fit(DATA, checkpoint=checkpoint)
    whole = make().fit(DATA)
    assert_same_fit(make().fit(DATA, checkpoint=checkpoint), whole)
    assert whole.n_iter_ == 6
    assert whole.history_[-1].objective < whole.history_[0].objective


# --- predictions --------------------------------------------------------------------------------


def test_predictions_are_those_of_dense_matrices(fitted):
    covariance, X = Covariance(*fitted.covariance_), fitted.item_positions_
    targets, everything = fitted._standardised(DATA), np.arange(DATA.n_items)
    for user in (0, 11, 29):
        mine = DATA.rows == user
        own = X[DATA.indices[mine]]
        K = dense_covariance(own, own, covariance) + covariance.noise * np.eye(mine.sum())
        cross = dense_covariance(X, own, covariance)
        means = cross @ np.linalg.solve(K, targets[mine])
        variances = covariance.signal + covariance.bias + covariance.noise
        variances = variances - np.einsum("nk,kn->n", cross, np.linalg.solve(K, cross.T))
        means = fitted.item_means_ + fitted.item_deviations_ * means
        spreads = fitted.item_deviations_ * np.sqrt(variances)
        found = fitted._predictive(np.full(DATA.n_items, user), everything, spread=True)
        np.testing.assert_allclose(found[0], means, rtol=1e-9)
        np.testing.assert_allclose(found[1], spreads, rtol=1e-9)
        below = norm.cdf((np.arange(1, 5) + 0.5 - means[:, None]) / spreads[:, None])
        expected = np.diff(below, axis=1, prepend=0.0, append=1.0)
        found = fitted._distribution(np.full(DATA.n_items, user), everything)
        np.testing.assert_allclose(found, expected, atol=1e-9)


def test_items_are_standardised_by_shrunk_moments(fitted):
    values = DATA.values
    for item in (0, 9):
        own = values[DATA.indices == item]
        mean = (own.sum() + 5 * values.mean()) / (len(own) + 5)
        variance = (((own - mean) ** 2).sum() + 5 * values.var()) / (len(own) + 5)
        assert fitted.item_means_[item] == pytest.approx(mean)
        assert fitted.item_deviations_[item] == pytest.approx(np.sqrt(variance))


@pytest.mark.parametrize("block_size", [1000, 5])
def test_an_answer_does_not_depend_on_what_else_is_asked(block_size):
    model = GPLVM(2, block_size=block_size, max_iter=2, random_state=0).fit(DATA)
    users, items = np.divmod(np.arange(DATA.n_users * DATA.n_items), DATA.n_items)
    shuffled = np.random.default_rng(0).permutation(len(users))
    whole = model._distribution(users, items), model._margins(users, items)
    for which in (shuffled, shuffled[:37], shuffled[5:6]):
        found = model._distribution(users[which], items[which])
        np.testing.assert_array_equal(found, whole[0][which])
        margins = model._margins(users[which], items[which])
        np.testing.assert_array_equal(margins, whole[1][which])


def test_a_committee_of_one_is_itself_and_one_of_many_is_near(fitted):
    users, items = np.divmod(np.arange(DATA.n_users * DATA.n_items), DATA.n_items)
    exact = fitted._predictive(users, items, spread=True)
    divided = deepcopy(fitted)
    divided.block_size_ = 8
    divided = divided.fold_in(DATA)
    found = divided._predictive(users, items, spread=True)
    alone = divided._predictive(users, items, spread=False)[0]
    np.testing.assert_array_equal(alone, found[0])
    means = fitted.item_means_[items]
    correlation = np.corrcoef(exact[0] - means, found[0] - means)
    assert correlation[0, 1] > 0.9
    assert np.abs(found[1] / exact[1] - 1).max() < 0.1


def committee(model, user, points):
    """Means and variances, without noise, of what a user's blocks say together, dense."""
    given, covariance = model.given_, Covariance(*model.covariance_)
    entries = np.arange(given.indptr[user], given.indptr[user + 1])
    n_blocks = -(-len(entries) // model.block_size_)
    prior = covariance.signal + covariance.bias
    targets, blocks = model._standardised(DATA)[entries], []
    for k in range(n_blocks):
        own = given.positions[given.indices[entries[k::n_blocks]]]
        K = dense_covariance(own, own, covariance) + covariance.noise * np.eye(len(own))
        cross = dense_covariance(points, own, covariance)
        solved = np.linalg.solve(K, cross.T)
        blocks.append((solved.T @ targets[k::n_blocks], prior - (cross * solved.T).sum(axis=1)))
    precision = sum(1 / variance for _, variance in blocks) - (n_blocks - 1) / prior
    return sum(mean / variance for mean, variance in blocks) / precision, 1 / precision, n_blocks


def test_a_committee_combines_precisions_of_dense_matrices(fitted):
    model = deepcopy(fitted)
    model.block_size_ = 5
    model = model.fold_in(DATA)
    everything, seen = np.arange(DATA.n_items), set()
    for user in range(DATA.n_users):
        means, variances, n_blocks = committee(model, user, model.item_positions_)
        seen.add(n_blocks)
        users = np.full(DATA.n_items, user)
        found = model._predictive(users, everything, spread=True)
        means = model.item_means_ + model.item_deviations_ * means
        np.testing.assert_allclose(found[0], means, rtol=1e-9)
        spreads = model.item_deviations_ * np.sqrt(variances + model.covariance_[-1])
        np.testing.assert_allclose(found[1], spreads, rtol=1e-9)
        alone = model._predictive(users, everything, spread=False)[0]
        np.testing.assert_array_equal(alone, found[0])
    assert 3 in seen


def test_levels_may_be_any_numbers():
    levels = np.array([-3.0, 0.0, 10.0])
    ratings = levels[np.minimum(DATA.codes, 2)]
    model = GPLVM(2, random_state=0).fit(DATA.pairs, ratings)
    predicted = model.predict(DATA.pairs)
    assert np.abs(predicted - ratings).mean() < 0.8 * np.abs(np.median(ratings) - ratings).mean()


def test_one_level_only_is_predicted():
    data = Ratings.of(DATA.pairs, np.full(len(DATA), 4.0), levels=[1, 2, 3, 4, 5])
    model = GPLVM(2, random_state=0).fit(data)
    assert set(model.predict(DATA.pairs)) == {4.0}
    assert np.isfinite(model.predict_proba(DATA.pairs)).all()


def test_without_any_ratings_the_middle_of_the_levels_is_answered():
    # As in a fold of few ratings, all of which are held out.
    model = GPLVM(2, random_state=0)._fit_copy(DATA.subset(np.zeros(len(DATA), bool)))
    assert set(model.predict(DATA.pairs)) == {3.0}
    distribution = model.predict_proba(DATA.pairs)
    assert (distribution > 0.05).all()
    assert np.isfinite(model.fold_in(DATA).fold_in_items(DATA).predict_proba(DATA.pairs)).all()


def test_too_long_steps_get_a_sentence_alone():
    with np.errstate(all="raise", under="ignore"), pytest.raises(FloatingPointError) as caught:
        GPLVM(2, parameter_rate=10.0, random_state=0).fit(DATA)
    assert "choose settings nearer to the defaults" in str(caught.value)


def test_rows_without_ratings_have_finite_answers():
    kept = (DATA.rows != 4) & (DATA.indices != 7)
    model = GPLVM(2, random_state=0)._fit_copy(DATA.subset(kept))
    users, items = np.array([4, 4, 5]), np.array([7, 8, 7])
    distribution = model._distribution(users, items)
    assert np.isfinite(distribution).all()
    np.testing.assert_array_equal(model.item_positions_[7], model.centre_)
    # Nothing is known of the user: the item's mean, and all of the prior's variance.
    mean, spread = model._predictive(users[1:2], items[1:2], spread=True)
    assert mean == pytest.approx(model.item_means_[8])
    assert spread == pytest.approx(model.item_deviations_[8] * np.sqrt(model.covariance_[1:].sum()))


# --- new users and items ------------------------------------------------------------------------


def test_users_of_training_are_folded_in_to_the_same_answers(fitted):
    folded = fitted.fold_in(DATA)
    np.testing.assert_array_equal(
        folded.predict_proba(DATA.pairs), fitted.predict_proba(DATA.pairs)
    )


@pytest.mark.parametrize("block_size", [1000, 6])
def test_slopes_of_positions_are_those_of_central_differences(fitted, block_size):
    model = deepcopy(fitted)
    model.block_size_ = block_size
    model = model.fold_in(DATA)
    placing = Placing(model, DATA, model._standardised(DATA))
    points = np.random.default_rng(0).normal(size=(DATA.n_items, 2))
    everything, step = np.arange(DATA.n_items), 1e-5
    _, slopes = placing.evaluate(points, everything)
    for p in range(2):
        ahead, behind = points.copy(), points.copy()
        ahead[:, p] += step
        behind[:, p] -= step
        numeric = placing.evaluate(ahead, everything)[0] - placing.evaluate(behind, everything)[0]
        np.testing.assert_allclose(slopes[:, p], numeric / (2 * step), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("block_size", [1000, 5])
def test_values_of_positions_are_log_posteriors_of_dense_matrices(fitted, block_size):
    model = deepcopy(fitted)
    model.block_size_ = block_size
    model = model.fold_in(DATA)
    targets = model._standardised(DATA)
    points = np.random.default_rng(0).normal(size=(DATA.n_items, 2))
    # Positions are expected to be as far from the middle as those of known items.
    expected = -0.5 * ((points - model.centre_) ** 2).sum(axis=1) / model.spread_**2
    for user in range(DATA.n_users):
        mine = DATA.rows == user
        items = DATA.indices[mine]
        means, variances, _ = committee(model, user, points[items])
        variances = variances + model.covariance_[-1]
        expected[items] += norm.logpdf(targets[mine], means, np.sqrt(variances))
        expected[items] += 0.5 * np.log(2 * np.pi)
    active = np.arange(0, DATA.n_items, 2)
    values = Placing(model, DATA, targets).evaluate(points, active)[0]
    np.testing.assert_allclose(values[active], expected[active], rtol=1e-9)


def test_new_items_are_put_where_their_ratings_are_more_probable():
    table = make_ratings(80, 40, n_factors=2, observed=0.5, random_state=1)
    new = table.pairs[:, 1] % 5 == 0
    model = GPLVM(2, random_state=0, max_iter=30, learning_rate=0.005)
    model.fit(table.pairs[~new], table.ratings[~new])
    folded = model.fold_in_items(table.pairs[new], table.ratings[new])
    data = folded.ratings_
    placing = Placing(model, data, folded._standardised(data))
    items = np.arange(data.n_items)
    begin, _ = placing.evaluate(np.tile(model.centre_, (len(items), 1)), items)
    end, slopes = placing.evaluate(folded.item_positions_, items)
    assert (end >= begin).all()
    assert np.mean(end - begin) > 1.0
    # Where the search ended, an item is nearly at the top.
    assert np.linalg.norm(slopes, axis=1).max() * model.spread_ < 0.1


def test_threads_change_no_bit(fitted, monkeypatch):
    monkeypatch.setattr("marginmf.ratings.base.SMALLEST_TASK", 0)
    started, pool = [], threads._pool
    monkeypatch.setattr(threads, "_pool", lambda n: started.append(n) or pool(n))
    answers = []
    for n_jobs in (1, 2):
        model = deepcopy(fitted).set_params(n_jobs=n_jobs)
        folded = [model, model.fold_in(DATA), model.fold_in_items(DATA)]
        answers.append([each.predict_proba(DATA.pairs) for each in folded])
        # Alone: nobody helps.  Together: in all predictions, and in both ways to learn rows.
        assert len(started) >= 5 if n_jobs == 2 else not started
    np.testing.assert_array_equal(*answers)


def test_updates_of_items_leave_the_users_as_they_were_learned(fitted, tmp_path):
    model, before = deepcopy(fitted), fitted.given_
    item, users = int(DATA.items.ids[3]), DATA.users.ids[:5].tolist()
    model.update_items([(user, item) for user in users], [1, 5, 1, 5, 1])
    np.testing.assert_array_equal(model.given_.weights, before.weights)
    assert (model.item_positions_[3] != fitted.item_positions_[3]).any()
    # A user who is learned again is conditioned on the new position; all others keep the old one.
    model.update_users([(users[0], int(DATA.items.ids[5]))], [3])
    own, old = (given.positions[given.indices] for given in (model.given_, before))
    first = model.given_.indptr[1], before.indptr[1]
    np.testing.assert_array_equal(own[first[0] :], old[first[1] :])
    assert first[0] > first[1]
    model.save(tmp_path / "model.marginmf")
    loaded = marginmf.load(tmp_path / "model.marginmf")
    np.testing.assert_array_equal(loaded.predict_proba(DATA.pairs), model.predict_proba(DATA.pairs))


def test_movielens(movielens_80_20):
    pairs, ratings, test_pairs, test_ratings = movielens_80_20
    model = GPLVM(max_iter=4, random_state=0).fit(pairs, ratings)
    assert np.abs(model.predict(test_pairs) - test_ratings).mean() <= 0.69


def test_levels_whose_squares_are_zero_are_told_apart():
    pairs, ratings = synthetic((1, 2, 3, 4, 5))
    tiny = np.nextafter(0, 1) * np.asarray(ratings)
    model = GPLVM(2, max_iter=1, random_state=0).fit(pairs, tiny)
    assert set(model.predict(pairs)) <= set(tiny)
