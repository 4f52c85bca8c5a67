"""ALS: its few steps of conjugate gradients against alternating exact solutions in NumPy."""

from itertools import pairwise

import numpy as np
import pytest

from marginmf.backends import get_backend
from marginmf.backends.specs import Real
from marginmf.datasets import make_ratings
from marginmf.losses import squared
from marginmf.ratings import ALS, Ratings
from marginmf.ratings.baselines import ridge

TABLE = make_ratings(120, 90, n_factors=3, observed=0.3, random_state=1)
DATA = Ratings.of(TABLE.pairs, TABLE.ratings)


def alternate(users: np.ndarray, items: np.ndarray, reg: float, n_iter: int) -> list[float]:
    """Return the objective after every iteration of the exact method."""
    backend, targets = get_backend("reference"), DATA.values - DATA.values.mean()
    by_user = (DATA, Real(squared, targets))
    by_item = (DATA.by_item, by_user[1].take(DATA.item_order))
    objectives = []
    for _ in range(n_iter):
        users = backend.solve_rows(*by_user, items, ridge(reg))
        items = backend.solve_rows(*by_item, users, ridge(reg))
        error = targets - backend.scores(DATA.rows, DATA.indices, users, items)
        penalty = reg / 2 * ((users**2).sum() + (items**2).sum())
        objectives.append(float(error @ error + penalty))
    return objectives


def start_of(model: ALS) -> tuple[np.ndarray, np.ndarray]:
    """Return the users' and the items' factors that a fit of the model starts from."""
    points = []
    model.set_params(callbacks=[lambda progress: points.append(progress.point)]).fit(DATA)
    shapes = [(DATA.n_users, model.n_factors), (DATA.n_items, model.n_factors), (DATA.n_users, 0)]
    users, items, _ = get_backend().layout(shapes, model.dtype).split(points[0])
    return users, items


@pytest.mark.parametrize("reg", [0.5, 4.0, 20.0])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_objective_is_that_of_the_exact_method(reg: float, dtype: str) -> None:
    model = ALS(6, reg, random_state=0, max_iter=100, dtype=dtype)
    start = start_of(model)
    exact = alternate(*(side.astype(np.float64) for side in start), reg, model.n_iter_)
    assert model.history_[-1].objective == pytest.approx(exact[-1], rel=1e-3)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_objective_falls_at_every_iteration(dtype: str) -> None:
    model = ALS(20, 0.1, random_state=0, max_iter=60, tol=1e-5, dtype=dtype).fit(DATA)
    assert all(b.objective < a.objective for a, b in pairwise(model.history_))


def test_stops_where_rows_of_both_sides_are_solved() -> None:
    model = ALS(3, 5.0, random_state=0, max_iter=2000, tol=0.0, dtype="float64").fit(DATA)
    for side in ("user", "item"):
        placed, name = model._placed(side, DATA), f"{side}_factors_"
        np.testing.assert_allclose(getattr(placed, name), getattr(model, name), atol=2e-4)


def test_new_users_get_the_exact_solution() -> None:
    model = ALS(6, 2.0, random_state=0, dtype="float64").fit(DATA)
    targets = DATA.values - model.offsets_.mean_
    spec = Real(squared, targets)
    solved = get_backend("reference").solve_rows(DATA, spec, model.item_factors_, ridge(2.0))
    np.testing.assert_allclose(model._placed("user", DATA).user_factors_, solved, atol=1e-9)


def test_threads_do_not_change_a_bit() -> None:
    one, two = (ALS(40, 2.0, random_state=0, n_jobs=n).fit(DATA) for n in (1, 2))
    np.testing.assert_array_equal(one.user_factors_, two.user_factors_)
    np.testing.assert_array_equal(one.item_factors_, two.item_factors_)
