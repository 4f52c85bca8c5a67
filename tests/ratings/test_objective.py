"""Value and gradient of every factorisation, against loops over METHODS.md's formulas."""

from collections.abc import Callable

import numpy as np
import pytest

from marginmf.backends import get_backend
from marginmf.backends.specs import Anchored, Proximal, Real, Spec, Thresholds, TwoLevel
from marginmf.losses import REAL, TWO_LEVEL, beta_divergence
from marginmf.ratings.data import Ratings
from marginmf.ratings.fitting.objective import FactorObjective, Parameters, RowObjective
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


def objective_of(
    spec: Spec, dtype: type = np.float64, backend: str = "cpu", reg: float = REG
) -> FactorObjective:
    arithmetic = get_backend(backend)
    resident = arithmetic.place(DATA, spec, reg, (N_ITEMS, N_FACTORS), dtype)
    return FactorObjective(arithmetic, resident)


def parameters_of(spec: Spec, positive: bool = False) -> Parameters:
    """Return random parameters, the same for every objective of the same shape."""
    rng = np.random.default_rng(1)
    users = rng.normal(size=(N_USERS, N_FACTORS))
    items = rng.normal(size=(N_ITEMS, N_FACTORS))
    thresholds = rng.normal(size=(N_USERS, spec.n_thresholds(N_LEVELS)))
    if positive:
        users, items = np.abs(users) + 0.1, np.abs(items) + 0.1
    return Parameters(users, items, thresholds)


def arrays_of(parameters: Parameters) -> tuple[np.ndarray, ...]:
    """Return factors and thresholds; without features there is nothing else."""
    *arrays, weights = parameters
    assert weights == ()
    return tuple(arrays)


def value_of(objective: FactorObjective, parameters: Parameters) -> float:
    return objective(objective.join(parameters))[0]


def gradient_of(objective: FactorObjective, parameters: Parameters) -> Parameters:
    return objective.split(objective(objective.join(parameters))[1])


def entries(parameters: Parameters) -> list[tuple[int, int, int, float]]:
    """Return (user, item, stars, score) of every rating, by loops."""
    users, items, _ = arrays_of(parameters)
    found = []
    for i in range(N_USERS):
        for k in range(DATA.indptr[i], DATA.indptr[i + 1]):
            j = int(DATA.indices[k])
            score = sum(float(users[i, p]) * float(items[j, p]) for p in range(N_FACTORS))
            found.append((i, j, int(DATA.values[k]), score))
    return found


def penalty(parameters: Parameters) -> float:
    users, items, _ = arrays_of(parameters)
    return REG / 2 * (sum(float(u) ** 2 for u in users.flat) + sum(v**2 for v in items.flat))


def assert_gradient_is_the_slope(objective: FactorObjective, parameters: Parameters) -> None:
    gradient, h = gradient_of(objective, parameters), 1e-6
    for part, by_part in enumerate(arrays_of(gradient)):
        for place in np.ndindex(by_part.shape):
            values = []
            for step in (h, -h):
                moved = [array.copy() for array in arrays_of(parameters)]
                moved[part][place] += step
                values.append(value_of(objective, Parameters(*moved)))
            slope = (values[0] - values[1]) / (2 * h)
            assert by_part[place] == pytest.approx(slope, rel=1e-6, abs=1e-6)


@two_level
@pytest.mark.parametrize("q", [1, 2, 3])
def test_two_level_rows(name: str, q: int) -> None:
    # Stage q of HMF asks whether the stars are above q; levels are numbered from 0 in the code.
    h = TWO_LEVEL_BY_CASES[name]
    spec = TwoLevel(TWO_LEVEL[name], cut=q - 1)
    objective, point = objective_of(spec), parameters_of(spec)
    expected = penalty(point)
    for _, _, stars, x in entries(point):
        expected += h((1 if stars > q else -1) * x)
    assert value_of(objective, point) == pytest.approx(expected, rel=1e-12)
    assert_gradient_is_the_slope(objective, point)


@two_level
@pytest.mark.parametrize("construction", REACH)
def test_threshold_rows(name: str, construction: str) -> None:
    h = TWO_LEVEL_BY_CASES[name]
    spec = Thresholds(TWO_LEVEL[name], REACH[construction])
    objective, point = objective_of(spec), parameters_of(spec)
    thresholds = point.thresholds
    expected = penalty(point)
    for i, _, stars, x in entries(point):
        for r in range(1, N_LEVELS):
            if construction == "all" or r in (stars - 1, stars):
                sign = 1 if r >= stars else -1
                expected += h(sign * (thresholds[i, r - 1] - x))
    assert value_of(objective, point) == pytest.approx(expected, rel=1e-12)
    assert_gradient_is_the_slope(objective, point)


def test_thresholds_are_not_penalised() -> None:
    spec = Thresholds(TWO_LEVEL["hinge"])
    users, items, thresholds = (0 * part for part in arrays_of(parameters_of(spec)))
    point = Parameters(users, items, thresholds + np.array([-1e3, 0.0, 1e3]))
    assert value_of(objective_of(spec), point) == value_of(objective_of(spec, reg=0.0), point)


@two_level
def test_proximal_rows(name: str) -> None:
    h = TWO_LEVEL_BY_CASES[name]
    spec = Proximal(TWO_LEVEL[name])
    objective, point = objective_of(spec), parameters_of(spec)
    seen = entries(point)
    by_level: dict[tuple[int, int], list[float]] = {}
    for i, _, stars, x in seen:
        by_level.setdefault((i, stars), []).append(x)
    prototypes = {key: sum(scores) / len(scores) for key, scores in by_level.items()}
    expected = penalty(point)
    for i, _, stars, x in seen:
        expected += (x - prototypes[i, stars]) ** 2
        for r in range(1, N_LEVELS + 1):
            if r != stars and (i, r) in prototypes:
                expected += h((1 if r < stars else -1) * (x - prototypes[i, r]))
    assert value_of(objective, point) == pytest.approx(expected, rel=1e-12)
    # The prototypes move with the scores here, so this is where their part is checked.
    assert_gradient_is_the_slope(objective, point)


def test_proximal_gradient_is_the_closed_form_of_the_methods() -> None:
    # w_ij - S_{i,y} / n_{i,y}; without the second term it would be wrong.
    spec = Proximal(TWO_LEVEL["logistic"])
    objective, point = objective_of(spec), parameters_of(spec)
    users, items, _ = arrays_of(point)
    seen = entries(point)

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
    gradient = gradient_of(objective, point).users
    np.testing.assert_allclose(gradient, expected, rtol=1e-10, atol=1e-12)
    assert np.abs(gradient - naive).max() > 0.1


@pytest.mark.parametrize("name", REAL_BY_CASES)
def test_real_rows(name: str) -> None:
    spec = Real(real_losses[name], DATA.values)
    objective, point = objective_of(spec), parameters_of(spec, positive=True)
    expected = penalty(point)
    for _, _, stars, x in entries(point):
        expected += REAL_BY_CASES[name](stars, x)
    assert value_of(objective, point) == pytest.approx(expected, rel=1e-12)
    assert_gradient_is_the_slope(objective, point)


SPECS: dict[str, Spec] = {
    "two_level": TwoLevel(TWO_LEVEL["smooth_hinge"], cut=1),
    "all": Thresholds(TWO_LEVEL["smooth_hinge"], REACH["all"]),
    "immediate": Thresholds(TWO_LEVEL["smooth_hinge"], REACH["immediate"]),
    "proximal": Proximal(TWO_LEVEL["smooth_hinge"]),
    "real": Real(REAL["squared"], DATA.values),
}


@pytest.mark.parametrize("name", SPECS)
def test_rows_of_users_are_parts_of_the_whole(name: str) -> None:
    spec = SPECS[name]
    whole, point = objective_of(spec), parameters_of(spec)
    users, items, thresholds = arrays_of(point)
    part = RowObjective(DATA, spec, REG, items, get_backend("cpu"))
    value, gradient = value_of(whole, point), gradient_of(whole, point)
    values, by_row = part(np.hstack([users, thresholds]))
    assert values.shape == (N_USERS,)
    assert values.sum() == pytest.approx(value - REG / 2 * (items**2).sum())
    by_users, by_thresholds = part.split(by_row)
    np.testing.assert_allclose(by_users, gradient.users)
    np.testing.assert_allclose(by_thresholds, gradient.thresholds)


@pytest.mark.parametrize("name", SPECS)
def test_rows_around_their_means(name: str) -> None:
    spec = SPECS[name]
    users, items, thresholds = arrays_of(parameters_of(spec))
    means = np.random.default_rng(2).normal(size=users.shape)
    plain, around = (
        RowObjective(DATA, spec, REG, items, get_backend("cpu"), own) for own in (None, means)
    )
    points = np.hstack([users, thresholds])
    (values, by_row), (values_around, by_row_around) = plain(points), around(points)
    # |u - m|^2 is |u|^2 - 2 u m + |m|^2; nothing but the penalty knows of means.
    moved = REG * ((means**2).sum(axis=1) / 2 - (users * means).sum(axis=1))
    np.testing.assert_allclose(values_around - values, moved, atol=1e-10)
    slopes = around.split(by_row_around - by_row)
    np.testing.assert_allclose(slopes[0], -REG * means, atol=1e-10)
    assert not slopes[1].any()
    few = np.array([4, 1])
    np.testing.assert_allclose(around.take(few)(points[few])[0], values_around[few])


def item_objective(name: str) -> RowObjective:
    """Return the objective of the items' rows, the users and what belongs to them given."""
    rng = np.random.default_rng(2)
    users = rng.normal(size=(N_USERS, N_FACTORS))
    thresholds, prototypes = rng.normal(size=(2, N_USERS, N_LEVELS))
    prototypes[1, 2] = np.nan  # a level that the user never used
    by_user = DATA.by_item.indices
    spec = {
        "two_level": SPECS["two_level"],
        "real": SPECS["real"].take(DATA.item_order),
        "proximal": Anchored(ProximalLoss(TWO_LEVEL["smooth_hinge"]), prototypes[by_user]),
        **{
            name: Anchored(
                ThresholdLoss(TWO_LEVEL["smooth_hinge"], reach), thresholds[by_user, :-1]
            )
            for name, reach in REACH.items()
        },
    }[name]
    return RowObjective(DATA.by_item, spec, REG, users, get_backend("cpu"))


@pytest.mark.parametrize("name", ["two_level", "real"])
def test_rows_of_items_are_parts_of_the_whole(name: str) -> None:
    # What these ask of a score has nothing to do with the user: both sides see the same losses.
    part = item_objective(name)
    items = np.random.default_rng(3).normal(size=(N_ITEMS, N_FACTORS))
    whole = objective_of(SPECS[name])
    point = Parameters(part.given, items, np.empty((N_USERS, 0)))
    value, gradient = value_of(whole, point), gradient_of(whole, point)
    values, by_row = part(items)
    assert values.sum() == pytest.approx(value - REG / 2 * (part.given**2).sum())
    np.testing.assert_allclose(by_row, gradient.items)


def test_new_items_are_judged_by_the_given_thresholds_and_prototypes() -> None:
    h = TWO_LEVEL_BY_CASES["smooth_hinge"]
    items = np.random.default_rng(3).normal(size=(N_ITEMS, N_FACTORS))
    for name in ("all", "immediate", "proximal"):
        objective = item_objective(name)
        expected = REG / 2 * (items**2).sum(axis=1)
        for k, (j, i) in enumerate(zip(objective.data.rows, objective.data.indices, strict=True)):
            stars = objective.data.codes[k] + 1
            x, anchors = objective.given[i] @ items[j], objective.spec.anchors[k]
            for r, anchor in enumerate(anchors, start=1):
                if name == "proximal" and not np.isnan(anchor):
                    away = h((1 if r < stars else -1) * (x - anchor))
                    expected[j] += (x - anchor) ** 2 if r == stars else away
                elif name == "all" or (name == "immediate" and r in (stars - 1, stars)):
                    expected[j] += h((1 if r >= stars else -1) * (anchor - x))
        np.testing.assert_allclose(objective(items)[0], expected, rtol=1e-12)


@pytest.mark.parametrize("side", ["user", "item"])
@pytest.mark.parametrize("name", SPECS)
def test_gradient_of_rows_is_the_slope(name: str, side: str) -> None:
    objective = item_objective(name)
    if side == "user":
        items = np.random.default_rng(4).normal(size=(N_ITEMS, N_FACTORS))
        objective = RowObjective(DATA, SPECS[name], REG, items, get_backend("cpu"))
    n_rows = objective.data.n_rows
    n_columns = N_FACTORS + objective.spec.n_thresholds(N_LEVELS)
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


@pytest.mark.parametrize("name", SPECS)
def test_some_rows_have_the_values_that_they_have_among_all(name: str) -> None:
    objective, which = item_objective(name), np.array([5, 0, 3])
    points = np.random.default_rng(6).normal(size=(N_ITEMS, N_FACTORS))
    values, gradient = objective(points)
    some_values, some_gradient = objective.take(which)(points[which])
    np.testing.assert_array_equal(some_values, values[which])
    np.testing.assert_array_equal(some_gradient, gradient[which])


@pytest.mark.parametrize("name", SPECS)
def test_float32_is_close_to_float64(name: str) -> None:
    spec = SPECS[name]
    if name == "real":
        spec = Real(REAL["squared"], DATA.values.astype(np.float32))
    single, double = objective_of(spec, np.float32), objective_of(SPECS[name])
    point = parameters_of(spec)
    assert value_of(single, point) == pytest.approx(value_of(double, point), rel=1e-5)
    for ours, expected in zip(
        *(arrays_of(gradient_of(own, point)) for own in (single, double)), strict=True
    ):
        assert ours.dtype == np.float32
        np.testing.assert_allclose(ours, expected, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("backend", ["cpu", "reference"])
@pytest.mark.parametrize("name", SPECS)
def test_split_gives_what_was_joined(name: str, backend: str) -> None:
    spec = SPECS[name]
    objective, point = objective_of(spec, backend=backend), parameters_of(spec)
    parts = arrays_of(objective.split(objective.join(point)))
    n_thresholds = spec.n_thresholds(N_LEVELS)
    assert [part.shape for part in parts] == [(6, 3), (8, 3), (6, n_thresholds)]
    assert all(part.flags.c_contiguous for part in parts)
    for part, expected in zip(parts, arrays_of(point), strict=True):
        np.testing.assert_array_equal(part, expected)


@pytest.mark.parametrize("name", SPECS)
def test_backends_agree(name: str) -> None:
    spec = SPECS[name]
    ours, expected = (objective_of(spec, backend=which) for which in ("cpu", "reference"))
    point = parameters_of(spec)
    assert value_of(ours, point) == pytest.approx(value_of(expected, point), rel=1e-12)
    for a, b in zip(*(arrays_of(gradient_of(own, point)) for own in (ours, expected)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)
