"""BiasOnly: the exact minimum of the penalised squared error, for every penalty."""

from itertools import pairwise

import numpy as np
import pytest

from marginmf.datasets import make_ratings
from marginmf.ratings import BiasOnly, Ratings

TABLE = make_ratings(60, 40, n_factors=2, observed=0.2, random_state=3)
DATA = Ratings.of(TABLE.pairs, TABLE.ratings)


def design(data: Ratings) -> np.ndarray:
    """Return a column for each user and for each item, one where the rating is theirs."""
    matrix = np.zeros((len(data), data.n_users + data.n_items))
    matrix[np.arange(len(data)), data.rows] = 1.0
    matrix[np.arange(len(data)), data.n_users + data.indices] = 1.0
    return matrix


def biases(model: BiasOnly) -> np.ndarray:
    return np.concatenate([model.user_biases_, model.item_biases_])


def objective(model: BiasOnly, data: Ratings) -> float:
    error = data.values - model.mean_ - design(data) @ biases(model)
    penalty = model.reg * biases(model) @ biases(model) if biases(model).any() else 0.0
    return float(error @ error + penalty)


@pytest.mark.parametrize("reg", [1e-3, 0.5, 5.0, 1e6])
def test_biases_solve_the_normal_equations(reg: float) -> None:
    model, matrix = BiasOnly(reg=reg).fit(DATA), design(DATA)
    normal = matrix.T @ matrix + reg * np.eye(matrix.shape[1])
    expected = np.linalg.solve(normal, matrix.T @ (DATA.values - DATA.values.mean()))
    np.testing.assert_allclose(biases(model), expected, rtol=1e-6, atol=1e-7)


def test_without_penalty_the_error_is_that_of_least_squares() -> None:
    model, matrix = BiasOnly(reg=0.0).fit(DATA), design(DATA)
    left = DATA.values - DATA.values.mean()
    best = left - matrix @ np.linalg.lstsq(matrix, left, rcond=None)[0]
    assert objective(model, DATA) == pytest.approx(best @ best, rel=1e-9)


def test_ratings_that_biases_explain_are_explained() -> None:
    pairs = [(user, item) for user in range(4) for item in range(5)]
    model = BiasOnly(reg=0.0, tol=0.0).fit(pairs, [float(user + item) for user, item in pairs])
    np.testing.assert_allclose(
        model.predict(pairs, output="rule"), [user + item for user, item in pairs]
    )
    assert model.history_[-1].objective == pytest.approx(0.0, abs=1e-12)


def test_infinite_penalty_leaves_the_mean_alone() -> None:
    model = BiasOnly(reg=np.inf).fit(DATA)
    assert not biases(model).any()
    assert model.mean_ == pytest.approx(DATA.values.mean())
    assert model.n_iter_ == 0
    assert model.history_[-1].objective == pytest.approx(objective(model, DATA))


@pytest.mark.parametrize("reg", [0.0, 5.0, np.inf])
def test_history_falls_to_the_objective(reg: float) -> None:
    model = BiasOnly(reg=reg).fit(DATA)
    history = [record.objective for record in model.history_]
    assert all(later < earlier for earlier, later in pairwise(history))
    assert history[-1] == pytest.approx(objective(model, DATA), rel=1e-12)
    assert model.n_iter_ == len(history) - 1
    assert model.n_evaluations_ == len(history)
    assert "fell" in model.stop_reason_ or "gradient" in model.stop_reason_


def test_one_step_is_usable() -> None:
    model = BiasOnly(max_iter=1).fit(DATA)
    assert (model.n_iter_, model.stop_reason_) == (1, "max_iter iterations were done")
    assert model.history_[-1].objective == pytest.approx(objective(model, DATA), rel=1e-12)


@pytest.mark.parametrize("reg", [0.0, 5.0])
def test_users_and_items_without_ratings_have_no_bias(reg: float) -> None:
    # As in a hold-out, where ids keep their codes.
    kept = (DATA.rows != 7) & (DATA.indices != 3)
    model = BiasOnly(reg=reg)._fit_copy(DATA.subset(kept))
    assert model.user_biases_[7] == model.item_biases_[3] == 0.0
    assert np.isfinite(biases(model)).all()


def test_order_of_the_ratings_does_not_matter() -> None:
    order = np.random.default_rng(0).permutation(len(TABLE.ratings))
    shuffled = BiasOnly().fit(TABLE.pairs[order], TABLE.ratings[order])
    np.testing.assert_array_equal(biases(shuffled), biases(BiasOnly().fit(DATA)))


def test_fit_is_where_fold_in_stays() -> None:
    model = BiasOnly().fit(DATA)
    for side in ("user", "item"):
        np.testing.assert_allclose(
            biases(model._placed(side, DATA)), biases(model), rtol=1e-5, atol=1e-6
        )
