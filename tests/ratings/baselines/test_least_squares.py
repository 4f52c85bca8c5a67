"""BiasOnly, PMF and ALS, against closed forms and least squares."""

from itertools import pairwise

import numpy as np
import pytest

from marginmf.backends import get_backend
from marginmf.backends.specs import Real
from marginmf.datasets import make_ratings
from marginmf.losses import squared
from marginmf.ratings import ALS, BiasOnly, Ratings

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


def test_a_seed_is_for_the_calibration_alone() -> None:
    plain, seeded = (BiasOnly(**seed).fit(DATA) for seed in ({}, {"random_state": 7}))
    np.testing.assert_array_equal(biases(seeded), biases(plain))
    again = BiasOnly(random_state=7).fit(DATA).predict_proba(TABLE.pairs)
    np.testing.assert_array_equal(seeded.predict_proba(TABLE.pairs), again)
    with pytest.raises(ValueError, match="random_state"):
        BiasOnly(random_state="seven").fit(DATA)


def test_fit_is_where_fold_in_stays() -> None:
    model = BiasOnly().fit(DATA)
    for side in ("user", "item"):
        np.testing.assert_allclose(
            biases(model._folded(side, DATA)), biases(model), rtol=1e-5, atol=1e-6
        )


LARGER_TABLE = make_ratings(120, 90, n_factors=3, observed=0.3, random_state=1)
LARGER = Ratings.of(LARGER_TABLE.pairs, LARGER_TABLE.ratings)


def alternate(users: np.ndarray, items: np.ndarray, reg: float, n_iter: int) -> list[float]:
    """Return the objective after every iteration of the exact method."""
    backend, targets = get_backend("reference"), LARGER.values - LARGER.values.mean()
    by_user = (LARGER, Real(squared, targets))
    by_item = (LARGER.by_item, by_user[1].take(LARGER.item_order))
    objectives = []
    for _ in range(n_iter):
        users = backend.solve_rows(*by_user, items, reg / 2)
        items = backend.solve_rows(*by_item, users, reg / 2)
        error = targets - backend.scores(LARGER.rows, LARGER.indices, users, items)
        penalty = reg / 2 * ((users**2).sum() + (items**2).sum())
        objectives.append(float(error @ error + penalty))
    return objectives


def start_of(model: ALS) -> tuple[np.ndarray, np.ndarray]:
    """Return the users' and the items' factors that a fit of the model starts from."""
    points = []
    model.set_params(callbacks=[lambda progress: points.append(progress.point)]).fit(LARGER)
    shapes = [
        (LARGER.n_users, model.n_factors),
        (LARGER.n_items, model.n_factors),
        (LARGER.n_users, 0),
    ]
    users, items, _ = get_backend().layout(shapes, model.dtype).split(points[0])
    return users, items


@pytest.mark.parametrize(
    ("reg", "dtype"), [(0.5, "float32"), (4.0, "float32"), (4.0, "float64"), (20.0, "float64")]
)
def test_objective_is_that_of_the_exact_method(reg: float, dtype: str) -> None:
    model = ALS(6, reg, random_state=0, max_iter=100, dtype=dtype)
    start = start_of(model)
    exact = alternate(*(side.astype(np.float64) for side in start), reg, model.n_iter_)
    assert model.history_[-1].objective == pytest.approx(exact[-1], rel=1e-3)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_objective_falls_at_every_iteration(dtype: str) -> None:
    model = ALS(20, 0.1, random_state=0, max_iter=60, tol=1e-5, dtype=dtype).fit(LARGER)
    assert all(b.objective < a.objective for a, b in pairwise(model.history_))


def test_stops_where_rows_of_both_sides_are_solved() -> None:
    model = ALS(3, 5.0, random_state=0, max_iter=2000, tol=0.0, dtype="float64").fit(LARGER)
    for side in ("user", "item"):
        folded, name = model._folded(side, LARGER), f"{side}_factors_"
        np.testing.assert_allclose(getattr(folded, name), getattr(model, name), atol=2e-4)


def test_new_users_get_the_exact_solution() -> None:
    model = ALS(6, 2.0, random_state=0, dtype="float64").fit(LARGER)
    targets = LARGER.values - model.offsets_.mean_
    spec = Real(squared, targets)
    solved = get_backend("reference").solve_rows(LARGER, spec, model.item_factors_, 2.0 / 2)
    np.testing.assert_allclose(model._folded("user", LARGER).user_factors_, solved, atol=1e-9)


def test_threads_do_not_change_a_bit() -> None:
    one, two = (ALS(40, 2.0, random_state=0, n_jobs=n).fit(LARGER) for n in (1, 2))
    np.testing.assert_array_equal(one.user_factors_, two.user_factors_)
    np.testing.assert_array_equal(one.item_factors_, two.item_factors_)
