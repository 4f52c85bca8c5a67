"""Penalties against their definitions, differences and the conditions of optimality."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy.optimize import minimize_scalar

from marginmf.penalties import L1, L21, SquaredL2

# Other work on the machine must not fail a test.
patient = settings(deadline=None)

PENALTIES = [SquaredL2, L1, L21]
matrices = arrays(np.float64, array_shapes(min_dims=2, max_dims=2), elements=st.floats(-10, 10))
weights = st.floats(0, 5)
steps = st.floats(0, 5)


def norms(a: np.ndarray) -> np.ndarray:
    return np.sqrt((a * a).sum(axis=1))


def test_values_of_a_small_matrix() -> None:
    a = np.array([[3.0, -4.0], [0.0, 0.0], [0.0, 2.0]])
    assert SquaredL2(2.0).value(a) == pytest.approx(29.0)
    assert L1(2.0).value(a) == pytest.approx(18.0)
    assert L21(2.0).value(a) == pytest.approx(14.0)


@pytest.mark.parametrize(
    ("penalty", "big", "expected"),
    [(SquaredL2, 2.0**12, (2**24 + 1) / 2), (L1, 2.0**24, 2**24 + 1), (L21, 2.0**24, 2**24 + 1)],
)
def test_values_of_float32_are_summed_in_float64(
    penalty: type, big: float, expected: float
) -> None:
    # 2^24 + 1 is not a float32.
    assert penalty().value(np.array([[big], [1.0]], np.float32)) == expected


@patient
@given(a=matrices, weight=weights)
def test_gradient_is_the_slope(a: np.ndarray, weight: float) -> None:
    penalty, h = SquaredL2(weight), 1e-4
    gradient = penalty.gradient(a)
    for place in np.ndindex(a.shape):
        step = np.zeros_like(a)
        step[place] = h
        slope = (penalty.value(a + step) - penalty.value(a - step)) / (2 * h)
        assert gradient[place] == pytest.approx(slope, abs=1e-6)


@pytest.mark.parametrize("penalty", PENALTIES)
@patient
@given(a=matrices, weight=weights, step=st.floats(0.01, 5), seed=st.integers(0, 1000))
def test_prox_is_not_beaten_by_its_neighbours(
    penalty: type, a: np.ndarray, weight: float, step: float, seed: int
) -> None:
    p = penalty(weight)

    def prox_objective(b: np.ndarray) -> float:
        return p.value(b) + ((b - a) ** 2).sum() / (2 * step)

    best = p.prox(a, step)
    rng = np.random.default_rng(seed)
    for scale in (1e-3, 0.1, 1.0):
        there = best + scale * rng.normal(size=a.shape)
        assert prox_objective(best) <= prox_objective(there) + 1e-9
    assert prox_objective(best) <= min(prox_objective(a), prox_objective(0 * a)) + 1e-9


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("number", [-2.0, -0.3, 0.0, 0.3, 2.0])
def test_prox_of_a_number_is_the_numeric_minimum(penalty: type, number: float) -> None:
    p, a, step = penalty(0.8), np.array([[number]]), 0.5
    found = minimize_scalar(
        lambda b: p.value(np.array([[b]])) + (b - number) ** 2 / (2 * step),
        bounds=(-3, 3),
        method="bounded",
        options={"xatol": 1e-9},
    )
    assert p.prox(a, step)[0, 0] == pytest.approx(found.x, abs=1e-5)


@patient
@given(a=matrices, weight=weights, step=st.floats(0.01, 5))
def test_l1_prox_satisfies_the_subgradient_condition(
    a: np.ndarray, weight: float, step: float
) -> None:
    # (a - prox) / step is a subgradient of the penalty at prox.
    kept = L1(weight).prox(a, step)
    subgradient = (a - kept) / step
    moved = kept != 0
    np.testing.assert_allclose(subgradient[moved], weight * np.sign(kept[moved]), atol=1e-9)
    assert (np.abs(subgradient[~moved]) <= weight + 1e-9).all()


@patient
@given(a=matrices, weight=weights, step=st.floats(0.01, 5))
def test_l21_prox_satisfies_the_subgradient_condition(
    a: np.ndarray, weight: float, step: float
) -> None:
    kept = L21(weight).prox(a, step)
    subgradient = (a - kept) / step
    moved = norms(kept) > 1e-6
    unit = kept[moved] / norms(kept[moved])[:, None]
    np.testing.assert_allclose(subgradient[moved], weight * unit, atol=1e-6)
    assert (norms(subgradient[~moved]) <= weight + 1e-3).all()


def test_l21_makes_whole_rows_zero_and_leaves_zero_rows_alone() -> None:
    a = np.array([[3.0, 4.0], [0.3, 0.4], [0.0, 0.0]])
    np.testing.assert_allclose(L21().prox(a, 1.0), [[2.4, 3.2], [0.0, 0.0], [0.0, 0.0]])


def test_l1_makes_entries_zero() -> None:
    a = np.array([[3.0, -0.5, 0.5], [-2.0, 0.0, 1.0]])
    np.testing.assert_allclose(L1().prox(a, 1.0), [[2.0, 0.0, 0.0], [-1.0, 0.0, 0.0]])


@pytest.mark.parametrize("penalty", PENALTIES)
@patient
@given(a=matrices, weight=weights)
def test_prox_with_no_step_changes_nothing(penalty: type, a: np.ndarray, weight: float) -> None:
    np.testing.assert_allclose(penalty(weight).prox(a, 0.0), a, atol=1e-100)


@pytest.mark.parametrize("penalty", PENALTIES)
@patient
@given(a=matrices, step=steps)
def test_prox_with_no_weight_changes_nothing(penalty: type, a: np.ndarray, step: float) -> None:
    np.testing.assert_allclose(penalty(0.0).prox(a, step), a, atol=1e-100)


@pytest.mark.parametrize("penalty", PENALTIES)
@pytest.mark.parametrize("weight", [0.5, np.float64(0.5)])
def test_prox_keeps_float32_and_its_argument(penalty: type, weight: float) -> None:
    a = np.array([[3.0, -4.0], [0.0, 0.0]], np.float32)
    before = a.copy()
    assert penalty(weight).prox(a, 0.1).dtype == np.float32
    np.testing.assert_array_equal(a, before)


@pytest.mark.parametrize("weight", [0.5, np.float64(0.5)])
def test_gradient_keeps_float32(weight: float) -> None:
    assert SquaredL2(weight).gradient(np.ones((2, 2), np.float32)).dtype == np.float32


@patient
@given(a=matrices, seed=st.integers(0, 1000), step=steps)
def test_weights_of_entries_and_rows_are_penalties_one_by_one(
    a: np.ndarray, seed: int, step: float
) -> None:
    weights = np.random.default_rng(seed).uniform(0, 3, (len(a), 1))
    for penalty in (L1, L21):
        parts = [penalty(float(weight)) for weight in weights[:, 0]]
        rows = [a[row : row + 1] for row in range(len(a))]
        values = [part.value(row) for part, row in zip(parts, rows, strict=True)]
        assert penalty(weights).value(a) == pytest.approx(sum(values), abs=1e-9)
        proxes = [part.prox(row, step) for part, row in zip(parts, rows, strict=True)]
        np.testing.assert_allclose(penalty(weights).prox(a, step), np.vstack(proxes), atol=1e-12)


@patient
@given(a=matrices, weight=weights, step=steps, cut=st.integers(1, 9))
def test_groups_of_columns_have_norms_of_their_own(
    a: np.ndarray, weight: float, step: float, cut: int
) -> None:
    if cut >= a.shape[1]:
        return
    grouped, whole = L21(weight, starts=(0, cut)), L21(weight)
    left, right = a[:, :cut], a[:, cut:]
    assert grouped.value(a) == pytest.approx(whole.value(left) + whole.value(right), abs=1e-9)
    expected = np.hstack([whole.prox(left, step), whole.prox(right, step)])
    np.testing.assert_allclose(grouped.prox(a, step), expected, atol=1e-12)
