"""NMF: its updates against a slow oracle, its objective, and what it recovers."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize, nnls

from contracts import RatingsEstimatorContract, assert_same_fit
from marginmf.checkpoints import Checkpoint
from marginmf.datasets import make_ratings
from marginmf.ratings import Ratings
from marginmf.ratings.baselines.nmf import NMF
from marginmf.ratings.fitting.validation import ValidationSplit

TABLE = make_ratings(60, 40, n_factors=2, observed=0.3, random_state=3)
DATA = Ratings.of(TABLE.pairs, TABLE.ratings)
LOSSES = pytest.mark.parametrize("loss", ["squared", "kl"])


class TestNMF(RatingsEstimatorContract):
    parameter, usual, refused = "n_factors", 5, (0, 2.5, None)

    def make(self, **params):
        return NMF(**{"n_factors": 5, "reg": 0.5, "max_iter": 60, "random_state": 0} | params)


class TestNMFOfTwoLevels(RatingsEstimatorContract):
    scale = (0, 1)
    parameter, usual, refused = "reg", 0.5, (-1.0, "strong", None)

    def make(self, **params):
        settings = {"n_factors": 4, "reg": 0.3, "max_iter": 80, "random_state": 0}
        return NMF(**settings | {"loss": "kl"} | params)


def objective(U, V, data, reg, loss):
    """The objective, entry by entry."""
    total = 0.0
    for i, j, y in zip(data.rows, data.indices, data.values, strict=True):
        x = U[i] @ V[j]
        total += 0.5 * (y - x) ** 2 if loss == "squared" else y * np.log(y / x) - y + x
    if loss == "squared":
        return total + reg / 2 * ((U**2).sum() + (V**2).sum())
    return total + reg * (U.sum() + V.sum())


def updated(own, given, mask, Y, reg, loss):
    """One update of all rows by dense matrices; ``mask`` is one where there is a rating."""
    X = own @ given.T
    if loss == "squared":
        return own * ((mask * Y) @ given) / ((mask * X) @ given + reg * own)
    return own * ((mask * Y / X) @ given) / (mask @ given + reg)


@LOSSES
def test_updates_are_those_of_dense_matrices(loss):
    mask, Y = np.zeros((2, DATA.n_users, DATA.n_items))
    mask[DATA.rows, DATA.indices], Y[DATA.rows, DATA.indices] = 1.0, DATA.values
    points = []
    keep = lambda progress: points.append(progress.point.copy())  # noqa: E731
    NMF(3, 0.7, loss=loss, max_iter=3, random_state=1, calibrate=False, callbacks=[keep]).fit(DATA)
    U, V = np.split(points[0], [DATA.n_users])
    for point in points[1:]:
        U = updated(U, V, mask, Y, 0.7, loss)
        V = updated(V, U, mask.T, Y.T, 0.7, loss)
        np.testing.assert_allclose(point, np.vstack([U, V]), rtol=1e-10)


@LOSSES
@pytest.mark.parametrize("reg", [0.0, 3.0])
def test_the_objective_never_rises(loss, reg):
    model = NMF(6, reg, loss=loss, tol=0, max_iter=300, random_state=0, calibrate=False).fit(DATA)
    history = [record.objective for record in model.history_]
    assert all(later <= earlier * (1 + 1e-12) for earlier, later in pairwise(history))
    U, V = model.user_factors_, model.item_factors_
    assert history[-1] == pytest.approx(objective(U, V, DATA, reg, loss), rel=1e-10)
    assert min(U.min(), V.min()) > 0


@LOSSES
def test_non_negative_factors_are_recovered(loss):
    rng = np.random.default_rng(0)
    truth = rng.uniform(0, 1, (80, 3)) @ rng.uniform(0, 1.5, (3, 50))
    seen = rng.random(truth.shape) < 0.6
    model = NMF(3, 0.0, loss=loss, max_iter=3000, tol=0, random_state=0, calibrate=False)
    model.fit(np.argwhere(seen), truth[seen])
    users, items = np.nonzero(~seen)
    error = model._estimates(users, items) - truth[~seen]
    assert np.sqrt((error**2).mean()) < 0.05 * truth.std()


@LOSSES
def test_fold_in_is_the_minimum_of_the_new_row(loss):
    for n_factors, reg in ((3, 1.0), (5, 3.0)):
        model = NMF(n_factors, reg, loss=loss, random_state=0, calibrate=False).fit(DATA)
        folded, V = model.fold_in(DATA), model.item_factors_
        for user in range(DATA.n_users):
            mine = DATA.rows == user
            best = lowest_row(V[DATA.indices[mine]], DATA.values[mine], reg, loss)
            # Also of items that the user has not rated, in stars.
            np.testing.assert_allclose(V @ folded.user_factors_[user], V @ best, atol=3e-3)


def lowest_row(given, targets, reg, loss):
    """The minimum of a row's objective, by methods that are not multiplicative."""
    n = given.shape[1]
    if loss == "squared":  # the penalty is that of n more ratings of zero
        rows = np.vstack([given, np.sqrt(reg) * np.eye(n)])
        return nnls(rows, np.append(targets, np.zeros(n)))[0]

    def value(row):
        estimates = given @ row
        slope = given.T @ (1.0 - targets / estimates) + reg
        return (estimates - targets * np.log(estimates)).sum() + reg * row.sum(), slope

    options = {"ftol": 1e-15, "gtol": 1e-9}
    return minimize(value, np.ones(n), jac=True, bounds=[(1e-12, None)] * n, options=options).x


@LOSSES
def test_a_new_row_is_the_same_beside_others_that_take_longer(loss):
    model = NMF(8, 0.01, loss=loss, random_state=0, calibrate=False).fit(DATA)
    together = model.fold_in(DATA)
    for user in range(0, DATA.n_users, 7):
        mine = DATA.rows == user
        alone = model.fold_in(DATA.pairs[mine], DATA.values[mine])
        np.testing.assert_array_equal(alone.user_factors_[0], together.user_factors_[user])


def test_new_rows_keep_to_the_number_of_factors_that_was_learned():
    model = NMF(3, 1.0, random_state=0, calibrate=False).fit(DATA)
    expected = model.fold_in(DATA).user_factors_
    found = model.set_params(n_factors=7).fold_in(DATA).user_factors_
    np.testing.assert_array_equal(found, expected)


@LOSSES
@pytest.mark.parametrize("scale", [(-2.0, -1.0, 0.0, 1.0, 3.0), (0.0, 0.5, 1.0), (-1.0, 1.0)])
def test_scales_with_zero_and_negative_levels(loss, scale):
    ratings = np.asarray(scale)[np.minimum(DATA.codes, len(scale) - 1)]
    model = NMF(3, 0.3, loss=loss, random_state=0).fit(DATA.pairs, ratings)
    assert model.zero_ == min(0.0, scale[0])
    predicted = model.predict(DATA.pairs, output="rule")
    assert np.abs(predicted - ratings).mean() < 0.8 * np.abs(np.median(ratings) - ratings).mean()
    shifted = NMF(3, 0.3, loss=loss, random_state=0).fit(DATA.pairs, ratings - model.zero_)
    np.testing.assert_allclose(shifted.user_factors_, model.user_factors_, rtol=1e-6)


@LOSSES
def test_one_level_only_is_predicted(loss):
    for level in (1.0, 3.0, 5.0):
        data = Ratings.of(DATA.pairs, np.full(len(DATA), level), levels=[1, 2, 3, 4, 5])
        model = NMF(2, 0.01, loss=loss, random_state=0).fit(data)
        assert set(model.predict(DATA.pairs)) == {level}
        assert np.isfinite(model.predict_proba(DATA.pairs)).all()


@LOSSES
def test_rows_without_ratings_answer_the_mean(loss):
    kept = (DATA.rows != 4) & (DATA.indices != 7)
    model = NMF(2, 1.0, loss=loss, random_state=0)._fit_copy(DATA.subset(kept))
    users, items = np.array([4, 4, 5]), np.array([7, 8, 7])
    np.testing.assert_array_equal(model._estimates(users, items), model.mean_)
    block, pairs = model._margin_block(users[:2], np.array([7, 8])), model._margins(users, items)
    np.testing.assert_allclose(block.scores[0, 0, 0] + block.offsets[0], pairs[0], atol=1e-5)


@pytest.mark.parametrize("below", [0.0, 4.0])
def test_blocks_agree_with_pairs(below):
    model = NMF(4, 1.0, random_state=0).fit(DATA.pairs, DATA.values - below)
    assert model.zero_ == min(0.0, 1.0 - below)
    users, items = np.arange(5), np.arange(3, 9)
    block = model._margin_block(users, items)
    margins = model._margins(np.repeat(users, 6), np.tile(items, 5)).reshape(5, 6, -1)
    np.testing.assert_allclose(
        np.moveaxis(block.scores, 0, -1) + block.offsets[:, None], margins, atol=1e-5
    )


def test_an_interrupted_fit_goes_on_to_the_same_bits(tmp_path):
    class StopError(Exception):
        pass

    def interrupt(progress):
        if progress.record.iteration == 7:
            raise StopError

    make = lambda **more: NMF(3, 1.0, max_iter=20, random_state=0, calibrate=False, **more)  # noqa: E731
    checkpoint = Checkpoint(tmp_path / "checkpoint", seconds=0)
    with pytest.raises(StopError):
        make(callbacks=[interrupt]).fit(DATA, checkpoint=checkpoint)
    assert_same_fit(make().fit(DATA, checkpoint=checkpoint), make().fit(DATA))


def test_held_out_parts_with_unrated_rows_are_calibrated():
    few = DATA.subset(np.arange(len(DATA)) % 12 == 0)
    (split, *_) = ValidationSplit.to_calibrate(few, np.random.default_rng(0))
    assert (np.bincount(split.train.indices, minlength=few.n_items) == 0).any()
    model = NMF(2, 1.0, random_state=0).fit(few)
    assert np.isfinite(model.predict_proba(few.pairs)).all()


def test_unknown_losses_get_a_sentence():
    with pytest.raises(ValueError, match="loss='hinge' is not known"):
        NMF(loss="hinge").fit(DATA)


def test_movielens(movielens_80_20):
    pairs, ratings, test_pairs, test_ratings = movielens_80_20
    model = NMF(random_state=0, calibrate=False).fit(pairs, ratings)
    error = model.predict(test_pairs, output="rule") - test_ratings
    assert np.abs(error).mean() <= 0.71
