"""Value and gradient of every factorisation, against loops over METHODS.md's formulas."""

from collections.abc import Callable

import numpy as np
import pytest

from marginmf.backends import get_kernels
from marginmf.losses import REAL, TWO_LEVEL, beta_divergence
from marginmf.ratings.data import Ratings
from marginmf.ratings.objective import (
    AnchoredRows,
    FactorObjective,
    ProximalRows,
    RealRows,
    RowLoss,
    RowObjective,
    ThresholdRows,
    TwoLevelRows,
)
from marginmf.thresholds import REACH, ProximalLoss, ThresholdLoss

N_USERS, N_ITEMS, N_LEVELS, N_FACTORS, REG = 6, 8, 4, 3, 0.7

TWO_LEVEL_BY_CASES: dict[str, Callable[[float], float]] = {
    "smooth_hinge": lambda z: 0.0 if z >= 1 else (1 - z) ** 2 / 2 if z > 0 else 0.5 - z,
    "hinge": lambda z: max(0.0, 1 - z),
    "modified_square": lambda z: max(0.0, 1 - z) ** 2,
    "logistic": lambda z: float(np.log1p(np.exp(-z))),
}
REAL_BY_CASES: dict[str, Callable[[float, float], float]] = {
    "squared": lambda y, x: (y - x) ** 2,
    "kullback_leibler": lambda y, x: y * np.log(y / x) - y + x,
    "itakura_saito": lambda y, x: y / x - np.log(y / x) - 1,
    "beta": lambda y, x: y**1.5 / 0.75 + x**1.5 / 1.5 - y * x**0.5 / 0.5,
}
real_losses = {**REAL, "beta": beta_divergence(1.5)}
two_level = pytest.mark.parametrize("name", TWO_LEVEL_BY_CASES)


def ratings() -> Ratings:
    """Return random ratings 1..4; the second user rates twice and never uses most levels."""
    rng = np.random.default_rng(0)
    cells = [(i, j) for i in range(N_USERS) for j in range(N_ITEMS) if rng.random() < 0.7]
    cells = [(i, j) for i, j in cells if i != 1] + [(1, 0), (1, 5)]
    return Ratings.of(cells, rng.integers(1, N_LEVELS + 1, size=len(cells)), levels=[1, 2, 3, 4])


DATA = ratings()


def objective_of(row_loss: RowLoss, dtype: type = np.float64) -> FactorObjective:
    return FactorObjective(DATA, row_loss, REG, N_FACTORS, get_kernels("cpu"), dtype)


def point_of(objective: FactorObjective, positive: bool = False) -> np.ndarray:
    """Return a random point, the same for every objective of the same shape."""
    rng = np.random.default_rng(1)
    users = rng.normal(size=(N_USERS, N_FACTORS))
    items = rng.normal(size=(N_ITEMS, N_FACTORS))
    thresholds = rng.normal(size=(N_USERS, objective.row_loss.n_thresholds(DATA)))
    if positive:
        users, items = np.abs(users) + 0.1, np.abs(items) + 0.1
    return objective.join(users, items, thresholds)


def entries(objective: FactorObjective, point: np.ndarray) -> list[tuple[int, int, int, float]]:
    """Return (user, item, stars, score) of every rating, by loops."""
    users, items, _ = objective.split(point)
    found = []
    for i in range(N_USERS):
        for k in range(DATA.indptr[i], DATA.indptr[i + 1]):
            j = int(DATA.indices[k])
            score = sum(float(users[i, p]) * float(items[j, p]) for p in range(N_FACTORS))
            found.append((i, j, int(DATA.values[k]), score))
    return found


def penalty(objective: FactorObjective, point: np.ndarray) -> float:
    users, items, _ = objective.split(point)
    return REG / 2 * (sum(float(u) ** 2 for u in users.flat) + sum(v**2 for v in items.flat))


def assert_gradient_is_the_slope(objective: FactorObjective, point: np.ndarray) -> None:
    _, gradient = objective(point)
    slopes, h = np.empty_like(point), 1e-6
    for p in range(len(point)):
        up, down = point.copy(), point.copy()
        up[p] += h
        down[p] -= h
        slopes[p] = (objective(up)[0] - objective(down)[0]) / (2 * h)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-6, atol=1e-6)


@two_level
@pytest.mark.parametrize("q", [1, 2, 3])
def test_two_level_rows(name: str, q: int) -> None:
    # Stage q of HMF asks whether the stars are above q; levels are numbered from 0 in the code.
    h = TWO_LEVEL_BY_CASES[name]
    objective = objective_of(TwoLevelRows(TWO_LEVEL[name], cut=q - 1))
    point = point_of(objective)
    expected = penalty(objective, point)
    for _, _, stars, x in entries(objective, point):
        expected += h((1 if stars > q else -1) * x)
    assert objective(point)[0] == pytest.approx(expected, rel=1e-12)
    assert_gradient_is_the_slope(objective, point)


@two_level
@pytest.mark.parametrize("construction", REACH)
def test_threshold_rows(name: str, construction: str) -> None:
    h = TWO_LEVEL_BY_CASES[name]
    objective = objective_of(ThresholdRows(TWO_LEVEL[name], REACH[construction]))
    point = point_of(objective)
    thresholds = objective.split(point).thresholds
    expected = penalty(objective, point)
    for i, _, stars, x in entries(objective, point):
        for r in range(1, N_LEVELS):
            if construction == "all" or r in (stars - 1, stars):
                sign = 1 if r >= stars else -1
                expected += h(sign * (thresholds[i, r - 1] - x))
    assert objective(point)[0] == pytest.approx(expected, rel=1e-12)
    assert_gradient_is_the_slope(objective, point)


def test_thresholds_are_not_penalised() -> None:
    objective = objective_of(ThresholdRows(TWO_LEVEL["hinge"]))
    point = np.zeros_like(point_of(objective))
    objective.split(point).thresholds[:] = [-1e3, 0.0, 1e3]
    without = FactorObjective(
        DATA, objective.row_loss, 0.0, N_FACTORS, get_kernels("cpu"), np.float64
    )
    assert objective(point)[0] == without(point)[0]


@two_level
def test_proximal_rows(name: str) -> None:
    h = TWO_LEVEL_BY_CASES[name]
    objective = objective_of(ProximalRows(TWO_LEVEL[name]))
    point = point_of(objective)
    seen = entries(objective, point)
    by_level: dict[tuple[int, int], list[float]] = {}
    for i, _, stars, x in seen:
        by_level.setdefault((i, stars), []).append(x)
    prototypes = {key: sum(scores) / len(scores) for key, scores in by_level.items()}
    expected = penalty(objective, point)
    for i, _, stars, x in seen:
        expected += (x - prototypes[i, stars]) ** 2
        for r in range(1, N_LEVELS + 1):
            if r != stars and (i, r) in prototypes:
                expected += h((1 if r < stars else -1) * (x - prototypes[i, r]))
    assert objective(point)[0] == pytest.approx(expected, rel=1e-12)
    # The prototypes move with the scores here, so this is where their part is checked.
    assert_gradient_is_the_slope(objective, point)


def test_proximal_gradient_is_the_closed_form_of_the_methods() -> None:
    # w_ij - S_{i,y} / n_{i,y}; without the second term it would be wrong.
    objective = objective_of(ProximalRows(TWO_LEVEL["logistic"]))
    point = point_of(objective)
    users, items, _ = objective.split(point)
    seen = entries(objective, point)

    def slope(z: float) -> float:
        return -1 / (1 + np.exp(z))

    expected, naive = REG * users, REG * users
    for i in range(N_USERS):
        own = [(j, y, x) for user, j, y, x in seen if user == i]
        used = {y for _, y, _ in own}
        theta = {r: np.mean([x for _, y, x in own if y == r]) for r in used}
        count = {r: sum(y == r for _, y, _ in own) for r in used}

        def push(r: int, y: int, x: float, theta: dict[int, float] = theta) -> float:
            sign = 1 if r < y else -1
            return sign * slope(sign * (x - theta[r]))

        S = {r: sum(push(r, y, x) for _, y, x in own if y != r) for r in used}
        for j, y, x in own:
            w = 2 * (x - theta[y]) + sum(push(r, y, x) for r in used if r != y)
            naive[i] += w * items[j]
            expected[i] += (w - S[y] / count[y]) * items[j]
    gradient = objective.split(objective(point)[1]).users
    np.testing.assert_allclose(gradient, expected, rtol=1e-10, atol=1e-12)
    assert np.abs(gradient - naive).max() > 0.1


@pytest.mark.parametrize("name", REAL_BY_CASES)
def test_real_rows(name: str) -> None:
    objective = objective_of(RealRows(real_losses[name], DATA.values))
    point = point_of(objective, positive=True)
    expected = penalty(objective, point)
    for _, _, stars, x in entries(objective, point):
        expected += REAL_BY_CASES[name](stars, x)
    assert objective(point)[0] == pytest.approx(expected, rel=1e-12)
    assert_gradient_is_the_slope(objective, point)


ROW_LOSSES: dict[str, RowLoss] = {
    "two_level": TwoLevelRows(TWO_LEVEL["smooth_hinge"], cut=1),
    "all": ThresholdRows(TWO_LEVEL["smooth_hinge"], REACH["all"]),
    "immediate": ThresholdRows(TWO_LEVEL["smooth_hinge"], REACH["immediate"]),
    "proximal": ProximalRows(TWO_LEVEL["smooth_hinge"]),
    "real": RealRows(REAL["squared"], DATA.values),
}


@pytest.mark.parametrize("name", ROW_LOSSES)
def test_rows_of_users_are_parts_of_the_whole(name: str) -> None:
    whole = objective_of(ROW_LOSSES[name])
    point = point_of(whole)
    users, items, thresholds = whole.split(point)
    part = RowObjective(DATA, ROW_LOSSES[name], REG, items.copy(), get_kernels("cpu"))
    value, gradient = whole(point)
    values, by_row = part(np.hstack([users, thresholds]))
    assert values.shape == (N_USERS,)
    assert values.sum() == pytest.approx(value - REG / 2 * (items**2).sum())
    by_users, by_thresholds = part.split(by_row)
    np.testing.assert_allclose(by_users, whole.split(gradient).users)
    np.testing.assert_allclose(by_thresholds, whole.split(gradient).thresholds)


def item_objective(name: str) -> RowObjective:
    """Return the objective of the items' rows, the users and what belongs to them given."""
    rng = np.random.default_rng(2)
    users = rng.normal(size=(N_USERS, N_FACTORS))
    thresholds, prototypes = rng.normal(size=(2, N_USERS, N_LEVELS))
    prototypes[1, 2] = np.nan  # a level that the user never used
    by_user = DATA.by_item.indices
    row_loss = {
        "two_level": ROW_LOSSES["two_level"],
        "real": ROW_LOSSES["real"].take(DATA.item_order),
        "proximal": AnchoredRows(ProximalLoss(TWO_LEVEL["smooth_hinge"]), prototypes[by_user]),
        **{
            name: AnchoredRows(
                ThresholdLoss(TWO_LEVEL["smooth_hinge"], reach), thresholds[by_user, :-1]
            )
            for name, reach in REACH.items()
        },
    }[name]
    return RowObjective(DATA.by_item, row_loss, REG, users, get_kernels("cpu"))


@pytest.mark.parametrize("name", ["two_level", "real"])
def test_rows_of_items_are_parts_of_the_whole(name: str) -> None:
    # What these ask of a score has nothing to do with the user: both sides see the same losses.
    part = item_objective(name)
    items = np.random.default_rng(3).normal(size=(N_ITEMS, N_FACTORS))
    whole = objective_of(ROW_LOSSES[name])
    value, gradient = whole(whole.join(part.given, items, np.empty((N_USERS, 0))))
    values, by_row = part(items)
    assert values.sum() == pytest.approx(value - REG / 2 * (part.given**2).sum())
    np.testing.assert_allclose(by_row, whole.split(gradient).items)


def test_new_items_are_judged_by_the_given_thresholds_and_prototypes() -> None:
    h = TWO_LEVEL_BY_CASES["smooth_hinge"]
    items = np.random.default_rng(3).normal(size=(N_ITEMS, N_FACTORS))
    for name in ("all", "immediate", "proximal"):
        objective = item_objective(name)
        expected = REG / 2 * (items**2).sum(axis=1)
        for k, (j, i) in enumerate(zip(objective.data.rows, objective.data.indices, strict=True)):
            stars = objective.data.codes[k] + 1
            x, anchors = objective.given[i] @ items[j], objective.row_loss.anchors[k]
            for r, anchor in enumerate(anchors, start=1):
                if name == "proximal" and not np.isnan(anchor):
                    away = h((1 if r < stars else -1) * (x - anchor))
                    expected[j] += (x - anchor) ** 2 if r == stars else away
                elif name == "all" or (name == "immediate" and r in (stars - 1, stars)):
                    expected[j] += h((1 if r >= stars else -1) * (anchor - x))
        np.testing.assert_allclose(objective(items)[0], expected, rtol=1e-12)


@pytest.mark.parametrize("side", ["user", "item"])
@pytest.mark.parametrize("name", ROW_LOSSES)
def test_gradient_of_rows_is_the_slope(name: str, side: str) -> None:
    objective = item_objective(name)
    if side == "user":
        items = np.random.default_rng(4).normal(size=(N_ITEMS, N_FACTORS))
        objective = RowObjective(DATA, ROW_LOSSES[name], REG, items, get_kernels("cpu"))
    n_rows = objective.data.n_rows
    n_columns = N_FACTORS + objective.row_loss.n_thresholds(objective.data)
    points = np.random.default_rng(5).normal(size=(n_rows, n_columns))
    _, gradient = objective(points)
    slopes, h = np.empty_like(points), 1e-6
    for p in range(n_columns):
        up, down = points.copy(), points.copy()
        up[:, p] += h
        down[:, p] -= h
        # A row's value depends on nothing but the row: all rows can move at once.
        slopes[:, p] = (objective(up)[0] - objective(down)[0]) / (2 * h)
    np.testing.assert_allclose(gradient, slopes, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("name", ROW_LOSSES)
def test_some_rows_have_the_values_that_they_have_among_all(name: str) -> None:
    objective, which = item_objective(name), np.array([5, 0, 3])
    points = np.random.default_rng(6).normal(size=(N_ITEMS, N_FACTORS))
    values, gradient = objective(points)
    some_values, some_gradient = objective.take(which)(points[which])
    np.testing.assert_array_equal(some_values, values[which])
    np.testing.assert_array_equal(some_gradient, gradient[which])


@pytest.mark.parametrize("name", ROW_LOSSES)
def test_float32_is_close_to_float64(name: str) -> None:
    if name == "real":
        row_loss: RowLoss = RealRows(REAL["squared"], DATA.values.astype(np.float32))
    else:
        row_loss = ROW_LOSSES[name]
    single, double = objective_of(row_loss, np.float32), objective_of(ROW_LOSSES[name])
    value, gradient = single(point_of(single))
    assert gradient.dtype == np.float32
    expected, expected_gradient = double(point_of(double))
    assert value == pytest.approx(expected, rel=1e-5)
    np.testing.assert_allclose(gradient, expected_gradient, rtol=1e-4, atol=1e-4)


def test_split_gives_views_and_join_puts_them_together() -> None:
    objective = objective_of(ROW_LOSSES["all"])
    point = point_of(objective)
    parts = objective.split(point)
    assert [part.shape for part in parts] == [(6, 3), (8, 3), (6, 3)]
    assert all(np.shares_memory(part, point) for part in parts)
    np.testing.assert_array_equal(objective.join(*parts), point)
