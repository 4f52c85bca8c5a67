"""SVD and ImputedSVD: their updates against slow oracles, and what they recover."""

import warnings

import numpy as np
import pytest

from contracts import RatingsEstimatorContract, assert_same_fit
from marginmf.backends import threads
from marginmf.checkpoints import Checkpoint
from marginmf.datasets import make_ratings
from marginmf.ratings import Ratings
from marginmf.ratings.baselines import svd
from marginmf.ratings.baselines.nmf import NMF
from marginmf.ratings.baselines.svd import SVD, ImputedSVD

TABLE = make_ratings(60, 40, n_factors=2, observed=0.3, random_state=3)
DATA = Ratings.of(TABLE.pairs, TABLE.ratings)


class TestSVD(RatingsEstimatorContract):
    parameter, usual, refused = "n_factors", 5, (0, 2.5, None)

    def make(self, **params):
        return SVD(**{"n_factors": 5, "max_iter": 60, "random_state": 0} | params)


class TestImputedSVD(RatingsEstimatorContract):
    parameter, usual, refused = "n_factors", 3, (0, 2.5, None)

    def make(self, **params):
        return ImputedSVD(**{"n_factors": 3} | params)


class TestImputedSVDOfTwoLevels(TestImputedSVD):
    scale = (0, 1)


# --- biased SVD by stochastic gradients ---------------------------------------------------------


def test_epochs_are_those_of_a_loop_over_ratings():
    points, rates, reg = [], (0.05, 0.5), 0.2
    keep = lambda progress: points.append(progress.point.copy())  # noqa: E731
    settings = {"learning_rate": rates[0], "decay": rates[1], "callbacks": [keep]}
    model = SVD(3, reg, max_iter=2, random_state=4, calibrate=False, **settings).fit(DATA)
    rng = np.random.default_rng(4)
    start = 0.1 * rng.standard_normal((DATA.n_users + DATA.n_items, 4))
    start[:, -1] = 0.0
    np.testing.assert_array_equal(points[0], start)
    U, V, mean = start[: DATA.n_users], start[DATA.n_users :], DATA.values.mean()
    for epoch in range(2):
        rate = rates[0] * rates[1] ** epoch
        for k in rng.permutation(len(DATA)):
            u, v = U[DATA.rows[k]].copy(), V[DATA.indices[k]].copy()
            error = DATA.values[k] - mean - u[-1] - v[-1] - u[:-1] @ v[:-1]
            U[DATA.rows[k]] += rate * (error * np.append(v[:-1], 1.0) - reg * u)
            V[DATA.indices[k]] += rate * (error * np.append(u[:-1], 1.0) - reg * v)
        np.testing.assert_allclose(points[epoch + 1], np.vstack([U, V]), rtol=1e-9, atol=1e-12)
    error = DATA.values - model._estimates(DATA.rows, DATA.indices)
    squares = (U**2).sum(axis=1)[DATA.rows] + (V**2).sum(axis=1)[DATA.indices]
    expected = 0.5 * (error @ error + reg * squares.sum())
    assert model.history_[-1].objective == pytest.approx(expected, rel=1e-10)


def test_a_low_rank_matrix_with_biases_is_recovered():
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(80, 2)) @ rng.normal(size=(2, 60)) + rng.normal(size=(80, 1))
    truth = 3.0 + truth + rng.normal(size=60)
    seen = rng.random(truth.shape) < 0.6
    model = SVD(2, 0.001, max_iter=300, learning_rate=0.02, decay=0.99, random_state=0)
    model.set_params(calibrate=False).fit(np.argwhere(seen), truth[seen])
    error = model._estimates(*np.nonzero(~seen)) - truth[~seen]
    assert np.sqrt((error**2).mean()) < 0.05 * truth.std()


def test_fold_in_is_a_ridge_regression_whose_penalty_grows_with_the_ratings():
    model = SVD(3, 0.3, random_state=0, calibrate=False).fit(DATA)
    for fold, rows, columns, side in (
        (model.fold_in, DATA.rows, DATA.indices, "user"),
        (model.fold_in_items, DATA.indices, DATA.rows, "item"),
    ):
        mine = rows == 2
        folded = fold(DATA.pairs[mine], DATA.values[mine])
        other = "item" if side == "user" else "user"
        V = getattr(model, f"{other}_factors_")[columns[mine]]
        c = getattr(model, f"{other}_biases_")[columns[mine]]
        design = np.column_stack([V, np.ones(len(V))])
        gram = design.T @ design + 0.3 * len(V) * np.eye(4)
        expected = np.linalg.solve(gram, design.T @ (DATA.values[mine] - model.mean_ - c))
        found = np.append(getattr(folded, f"{side}_factors_"), getattr(folded, f"{side}_biases_"))
        np.testing.assert_allclose(found, expected, rtol=1e-8)


def test_threads_change_no_bit_of_new_rows(monkeypatch):
    for module in ("ratings.base", "backends.threads"):
        monkeypatch.setattr(f"marginmf.{module}.SMALLEST_TASK", 10)
    started, pool = [], threads._pool
    monkeypatch.setattr(threads, "_pool", lambda n: started.append(n) or pool(n))
    model, answers = SVD(3, random_state=0, calibrate=False).fit(DATA), []
    for n_jobs in (1, 2):
        model.set_params(n_jobs=n_jobs)
        users, items = model.fold_in(DATA), model.fold_in_items(DATA)
        answers.append(np.vstack([users.user_factors_, items.item_factors_]))
        assert len(started) == (2 if n_jobs == 2 else 0)
    np.testing.assert_array_equal(*answers)


def test_an_interrupted_fit_goes_on_to_the_same_bits(tmp_path):
    class StopError(Exception):
        pass

    def interrupt(progress):
        if progress.record.iteration == 7:
            raise StopError

    make = lambda **more: SVD(3, max_iter=12, random_state=0, calibrate=False, **more)  # noqa: E731
    checkpoint = Checkpoint(tmp_path / "checkpoint", seconds=0)
    with pytest.raises(StopError):
        make(callbacks=[interrupt]).fit(DATA, checkpoint=checkpoint)
    assert_same_fit(make().fit(DATA, checkpoint=checkpoint), make().fit(DATA))


def test_another_scale_stretches_the_answers():
    one = SVD(3, random_state=0, calibrate=False).fit(DATA)
    other = SVD(3, random_state=0, calibrate=False).fit(DATA.pairs, 50.0 * DATA.values - 30.0)
    expected = 50.0 * one._estimates(DATA.rows, DATA.indices) - 30.0
    np.testing.assert_allclose(other._estimates(DATA.rows, DATA.indices), expected)
    folded, stretched = (m.fold_in(DATA.pairs, m.ratings_.values) for m in (one, other))
    expected = 50.0 * folded._estimates(DATA.rows, DATA.indices) - 30.0
    np.testing.assert_allclose(stretched._estimates(DATA.rows, DATA.indices), expected)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"decay": 1.5}, r"decay=1.5 must be a number > 0 and <= 1\."),
        ({"decay": 0}, r"decay=0 must be a number > 0 and <= 1\."),
        ({"learning_rate": np.inf}, "learning_rate=inf must be a finite number > 0"),
        ({"learning_rate": np.float32(0)}, "must be a number > 0"),
        ({"reg": -1}, "reg=-1 must be a number >= 0"),
    ],
)
def test_wrong_parameters_get_a_sentence(wrong, sentence):
    with pytest.raises(ValueError, match=sentence):
        SVD(**wrong).fit(DATA)


def test_numbers_in_single_precision_are_as_good_as_others():
    learning_rate = np.float32(0.01)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = SVD(2, learning_rate=learning_rate, decay=np.float32(1), max_iter=2, random_state=0)
        assert model.fit(DATA).n_iter_ == 2


def test_too_long_steps_get_a_sentence():
    with pytest.raises(FloatingPointError, match="The objective is"), np.errstate(all="ignore"):
        SVD(3, learning_rate=50.0, random_state=0).fit(DATA)


# --- SVD of the filled matrix -------------------------------------------------------------------


def filled(data: Ratings) -> np.ndarray:
    """The ratings in a dense matrix, gaps filled with item means plus user offsets."""
    means = np.array([data.values[data.indices == j].mean() for j in range(data.n_items)])
    above = data.values - means[data.indices]
    offsets = np.array([above[data.rows == i].mean() for i in range(data.n_users)])
    matrix = means + offsets[:, None]
    matrix[data.rows, data.indices] = data.values
    return matrix


@pytest.mark.parametrize("small_side", [300, 0])
def test_it_is_the_truncated_svd_of_the_filled_matrix(monkeypatch, small_side):
    monkeypatch.setattr(svd, "SMALL_SIDE", small_side)  # with 0: by iteration
    for data in (DATA, transposed(DATA)):
        model = ImputedSVD(n_factors=4, calibrate=False).fit(data)
        U, s, Vt = np.linalg.svd(filled(data), full_matrices=False)
        expected = (U[:, :4] * s[:4]) @ Vt[:4]
        found = model.user_factors_ @ model.item_factors_.T
        np.testing.assert_allclose(found, expected, atol=1e-8)
        # Both sides have the roots of the singular values.
        for factors in (model.user_factors_, model.item_factors_):
            np.testing.assert_allclose(np.linalg.norm(factors, axis=0), np.sqrt(s[:4]))
        largest = np.abs(model.item_factors_).argmax(axis=0)
        assert (model.item_factors_[largest, np.arange(4)] > 0).all()


def transposed(data: Ratings) -> Ratings:
    return Ratings.of(data.pairs[:, ::-1], data.values)


def test_rows_of_training_are_folded_in_to_where_they_were():
    model = ImputedSVD(n_factors=4, calibrate=False).fit(DATA)
    users, items = (fold(DATA) for fold in (model.fold_in, model.fold_in_items))
    np.testing.assert_allclose(users.user_factors_, model.user_factors_, atol=1e-9)
    np.testing.assert_allclose(items.item_factors_, model.item_factors_, atol=1e-9)


@pytest.mark.parametrize("small_side", [300, 0])
def test_more_factors_than_the_rank_are_zeros(monkeypatch, small_side):
    monkeypatch.setattr(svd, "SMALL_SIDE", small_side)
    pairs = [(user, item) for user in range(6) for item in range(30)]
    data = Ratings.of(pairs, [2.0] * len(pairs), levels=[1, 2, 3])
    model = ImputedSVD(n_factors=5, calibrate=False).fit(data)
    assert (model.user_factors_[:, 1:] == 0).all()
    np.testing.assert_allclose(model._estimates(data.rows, data.indices), 2.0)
    for folded in (model.fold_in(data), model.fold_in_items(data)):
        np.testing.assert_allclose(folded._estimates(data.rows, data.indices), 2.0)


@pytest.mark.parametrize("small_side", [300, 0])
@pytest.mark.parametrize("level", [0.0, 3.0])
def test_one_level_only_is_predicted_by_iteration_too(monkeypatch, small_side, level):
    monkeypatch.setattr(svd, "SMALL_SIDE", small_side)
    cells = np.random.default_rng(0).permutation(600)[:200]
    pairs = np.column_stack([cells // 30, cells % 30])
    data = Ratings.of(pairs, np.full(200, level), levels=range(6))
    model = ImputedSVD(n_factors=5, calibrate=False).fit(data)
    for answer in (model, model.fold_in(data), model.fold_in_items(data)):
        np.testing.assert_allclose(answer._estimates(data.rows, data.indices), level, atol=1e-12)
        assert set(answer.predict(data.pairs)) == {level}


@pytest.mark.parametrize("small_side", [300, 0])
def test_ratings_that_cancel_out_in_all_rows_and_columns(monkeypatch, small_side):
    monkeypatch.setattr(svd, "SMALL_SIDE", small_side)
    signs = np.array([[1, -1, 1, -1], [-1, 1, -1, 1], [1, 1, -1, -1], [-1, -1, 1, 1]])
    data = Ratings.of(np.argwhere(np.ones((24, 32))), np.tile(signs, (6, 8)).ravel())
    model = ImputedSVD(n_factors=2, calibrate=False).fit(data)
    np.testing.assert_allclose(model._estimates(data.rows, data.indices), data.values, atol=1e-9)


# --- both ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("model", [SVD(3, random_state=0), ImputedSVD(n_factors=3)])
def test_one_level_only_is_predicted(model):
    data = Ratings.of(DATA.pairs, np.full(len(DATA), 4.0), levels=[1, 2, 3, 4, 5])
    model.fit(data)
    assert set(model.predict(DATA.pairs)) == {4.0}
    assert np.isfinite(model.predict_proba(DATA.pairs)).all()


@pytest.mark.parametrize("model", [SVD(3, random_state=0), ImputedSVD(n_factors=3)])
def test_rows_without_ratings_have_finite_answers(model):
    kept = (DATA.rows != 4) & (DATA.indices != 7)
    fitted = model._fit_copy(DATA.subset(kept))
    users, items = np.array([4, 4, 5]), np.array([7, 8, 7])
    estimates = fitted._estimates(users, items)
    assert np.isfinite(estimates).all()
    if isinstance(model, SVD):
        assert estimates[0] == pytest.approx(fitted.mean_)
        assert estimates[1] == pytest.approx(fitted.mean_ + fitted.item_biases_[8])


@pytest.mark.parametrize(
    "model", [SVD(3, random_state=0), ImputedSVD(n_factors=3), NMF(3, random_state=0)]
)
def test_without_any_ratings_the_middle_of_the_levels_is_answered(model):
    # As in a fold of few ratings, all of which are held out.
    fitted = model.set_params(calibrate=False)._fit_copy(DATA.subset(np.zeros(len(DATA), bool)))
    estimates = fitted._estimates(DATA.rows[:5], DATA.indices[:5])
    np.testing.assert_allclose(estimates, DATA.levels.mean())


@pytest.mark.parametrize("model", [SVD(3, random_state=0), ImputedSVD(n_factors=3)])
def test_blocks_agree_with_pairs(model):
    model.fit(DATA)
    users, items = np.arange(5), np.arange(3, 9)
    block = model._margin_block(users, items)
    margins = model._margins(np.repeat(users, 6), np.tile(items, 5)).reshape(5, 6, -1)
    np.testing.assert_allclose(
        np.moveaxis(block.scores, 0, -1) + block.offsets[:, None], margins, atol=1e-5
    )


@pytest.mark.parametrize(("model", "largest"), [(SVD(random_state=0), 0.695), (ImputedSVD(), 0.71)])
def test_movielens(movielens_80_20, model, largest):
    pairs, ratings, test_pairs, test_ratings = movielens_80_20
    model.set_params(calibrate=False).fit(pairs, ratings)
    error = model.predict(test_pairs, output="rule") - test_ratings
    assert np.abs(error).mean() <= largest
