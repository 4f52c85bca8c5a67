"""Accelerated proximal gradient against closed forms, optimality and other solvers."""

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from marginmf.penalties import L1, L21
from marginmf.solvers import APG, Composite, Paused, Progress, Stopping, StopReason, minimise

patient = settings(deadline=None, max_examples=6)
# Without function restarts the objective may rise: its fall is no reason to stop.
TIGHT = Stopping(max_iter=5_000, tol=-math.inf, gradient_tol=0.0, step_tol=1e-13)
Smooth = Callable[[np.ndarray], tuple[float, np.ndarray]]
schemes = pytest.mark.parametrize("restart", ["function", "gradient", None])


def least_squares(A: np.ndarray, B: np.ndarray) -> Smooth:
    """Return ``|A X - B|^2`` and its gradient."""

    def smooth(X: np.ndarray) -> tuple[float, np.ndarray]:
        residual = A @ X - B
        return float(np.sum(residual * residual)), 2 * A.T @ residual

    return smooth


def curvature(A: np.ndarray) -> float:
    return float(2 * np.linalg.norm(A, 2) ** 2)


def logistic(A: np.ndarray, signs: np.ndarray) -> Smooth:
    def smooth(x: np.ndarray) -> tuple[float, np.ndarray]:
        margins = signs * (A @ x)
        return (
            float(np.logaddexp(0.0, -margins).sum()),
            -A.T @ (signs / (1 + np.exp(margins))),
        )

    return smooth


def problem(seed: int, n: int = 30, p: int = 12, q: int = 3) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    # Columns of very different lengths: badly conditioned, as real features are.
    A = generator.normal(size=(n, p)) * np.geomspace(1, 0.1, p)
    return A, A @ (generator.normal(size=(p, q)) * (generator.random((p, q)) < 0.3))


def ista(A: np.ndarray, B: np.ndarray, penalty: L1 | L21, rounds: int) -> np.ndarray:
    X, step = np.zeros((A.shape[1], B.shape[1])), 1 / curvature(A)
    for _ in range(rounds):
        X = penalty.prox(X - step * least_squares(A, B)(X)[1], step)
    return X


@schemes
def test_lasso_with_an_orthogonal_design_is_soft_thresholding(restart) -> None:
    generator = np.random.default_rng(0)
    Q, _ = np.linalg.qr(generator.normal(size=(20, 6)))
    B = 2 * generator.normal(size=(20, 4))
    result = minimise(
        APG(restart), Composite(least_squares(Q, B), L1(1.0), curvature(Q)), np.zeros((6, 4)), TIGHT
    )
    inner = Q.T @ B
    expected = np.sign(inner) * np.maximum(np.abs(inner) - 0.5, 0.0)
    np.testing.assert_allclose(result.point, expected, atol=1e-12)
    assert (result.point == 0).any()


def test_group_lasso_with_an_orthogonal_design_shortens_rows_of_groups() -> None:
    generator = np.random.default_rng(1)
    Q, _ = np.linalg.qr(generator.normal(size=(20, 6)))
    B = generator.normal(size=(20, 5))
    penalty = L21(1.5, starts=(0, 2))
    result = minimise(
        APG(affine=True),
        Composite(least_squares(Q, B), penalty, curvature(Q)),
        np.zeros((6, 5)),
        TIGHT,
    )
    inner = Q.T @ B
    for columns in (slice(0, 2), slice(2, 5)):
        for row, found in zip(inner[:, columns], result.point[:, columns], strict=True):
            length = np.linalg.norm(row)
            np.testing.assert_allclose(found, row * max(0.0, 1 - 0.75 / length), atol=1e-12)


@schemes
@pytest.mark.parametrize("affine", [False, True])
@patient
@given(seed=st.integers(0, 10_000), weight=st.floats(0.01, 20))
def test_lasso_meets_the_conditions_of_optimality(
    restart, affine: bool, seed: int, weight: float
) -> None:
    A, B = problem(seed)
    smooth = least_squares(A, B)
    X = minimise(
        APG(restart, affine), Composite(smooth, L1(weight), curvature(A)), np.zeros((12, 3)), TIGHT
    )
    gradient = smooth(X.point)[1]
    # A fall of the objective below its rounding cannot be seen; that is this much gradient.
    near = 1e-6 * np.linalg.norm(smooth(np.zeros((12, 3)))[1]) + 1e-6 * weight
    assert np.abs(gradient).max() <= weight + near
    at = X.point != 0
    np.testing.assert_allclose(gradient[at], -weight * np.sign(X.point[at]), atol=near)


@pytest.mark.parametrize("penalty", [L1(0.7), L21(0.7), L21(0.7, starts=(0, 1))])
def test_it_ends_where_plain_proximal_gradient_ends(penalty: L1 | L21) -> None:
    A, B = problem(3)
    result = minimise(
        APG(affine=True),
        Composite(least_squares(A, B), penalty, curvature(A)),
        np.ones((12, 3)),
        TIGHT,
    )
    slow = ista(A, B, penalty, 20_000)
    np.testing.assert_allclose(result.point, slow, atol=1e-6)


def test_l1_logistic_regression_agrees_with_scipy() -> None:
    generator = np.random.default_rng(5)
    A = generator.normal(size=(40, 5))
    signs = np.sign(A[:, 0] + generator.normal(size=40))
    smooth, weight = logistic(A, signs), 2.0

    def split(parts: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = smooth(parts[:5] - parts[5:])
        return value + weight * parts.sum(), np.append(gradient, -gradient) + weight

    oracle = minimize(
        split, np.ones(10), jac=True, bounds=[(0, None)] * 10, options={"ftol": 1e-15}
    )
    result = minimise(APG(), Composite(smooth, L1(weight)), np.zeros(5), TIGHT)
    assert result.objective == pytest.approx(oracle.fun, rel=1e-8)
    np.testing.assert_allclose(result.point, oracle.x[:5] - oracle.x[5:], atol=1e-4)


@patient
@given(seed=st.integers(0, 10_000), affine=st.booleans())
def test_backtracking_ends_where_the_known_constant_does(seed: int, affine: bool) -> None:
    A, B = problem(seed)
    smooth, solver = least_squares(A, B), APG(affine=affine)
    known = minimise(solver, Composite(smooth, L1(0.5), curvature(A)), np.zeros((12, 3)), TIGHT)
    found = minimise(solver, Composite(smooth, L1(0.5)), np.zeros((12, 3)), TIGHT)
    assert found.objective == pytest.approx(known.objective, rel=1e-9)


@patient
@given(seed=st.integers(0, 10_000), affine=st.booleans(), known=st.booleans())
def test_the_objective_never_rises_with_function_restarts(
    seed: int, affine: bool, known: bool
) -> None:
    A, B = problem(seed)
    result = minimise(
        APG("function", affine),
        Composite(least_squares(A, B), L1(0.1), curvature(A) if known else None),
        np.ones((12, 3)),
        TIGHT,
    )
    objectives = [record.objective for record in result.history]
    assert (np.diff(objectives) <= 0).all()


def iterations(restart, rules: Stopping) -> int:
    A, B = problem(7, n=60)
    return minimise(
        APG(restart, affine=True),
        Composite(least_squares(A, B), L1(0.01), curvature(A)),
        np.zeros((12, 3)),
        rules,
    ).n_iter


@pytest.mark.parametrize("restart", ["function", "gradient"])
def test_restarts_save_iterations(restart) -> None:
    rules = Stopping(max_iter=50_000, tol=-math.inf, gradient_tol=1e-9)
    assert iterations(restart, rules) < 0.5 * iterations(None, rules)


def test_an_affine_gradient_is_evaluated_once_an_iteration() -> None:
    A, B = problem(8)
    for affine, evaluations in ((True, 1), (False, 2)):
        result = minimise(
            APG(None, affine),
            Composite(least_squares(A, B), L1(0.1), curvature(A)),
            np.zeros((12, 3)),
            TIGHT,
        )
        # The first two iterations have no momentum.
        extra = 1 if affine else -1
        assert result.n_evaluations == evaluations * result.n_iter + extra


def test_the_step_ends_it() -> None:
    A, B = problem(9)
    rules = Stopping(max_iter=10_000, tol=-math.inf, gradient_tol=0.0, step_tol=1e-6)
    shorter = Stopping(max_iter=10_000, tol=-math.inf, gradient_tol=0.0, step_tol=1e-3)
    runs = [
        minimise(
            APG("gradient"),
            Composite(least_squares(A, B), L1(0.1), curvature(A)),
            np.zeros((12, 3)),
            stop,
        )
        for stop in (rules, shorter)
    ]
    assert all(run.reason is StopReason.STEP for run in runs)
    assert runs[0].n_iter > runs[1].n_iter
    size = np.linalg.norm(runs[0].point)
    last = runs[0].history[-1].gradient_norm / curvature(A)
    assert last <= 1e-6 * size
    assert all(
        record.gradient_norm / curvature(A) > 1e-6 * 0.5 * size for record in runs[0].history[1:-1]
    )


def test_a_start_at_the_minimum_ends_at_once() -> None:
    A, B = problem(10)
    result = minimise(
        APG(), Composite(least_squares(A, B), L1(1e6), curvature(A)), np.zeros((12, 3))
    )
    assert (result.point == 0).all()
    assert result.n_iter == 0
    assert result.reason is StopReason.GRADIENT


def test_a_constant_needs_no_curvature() -> None:
    result = minimise(
        APG(), Composite(lambda x: (1.0, np.zeros_like(x)), L1(1.0)), np.array([3.0, -2.0])
    )
    np.testing.assert_array_equal(result.point, [0.0, 0.0])


def test_the_start_and_the_points_that_callbacks_saw_are_not_changed() -> None:
    A, B = problem(11)
    start, seen, copies = np.ones((12, 3)), [], []

    def watch(progress: Progress) -> bool:
        seen.append(progress.point)
        copies.append(progress.point.copy())
        return len(seen) == 9

    result = minimise(
        APG(affine=True),
        Composite(least_squares(A, B), L1(0.1), curvature(A)),
        start,
        TIGHT,
        [watch],
    )
    assert result.reason is StopReason.CALLBACK
    assert (start == 1).all()
    np.testing.assert_array_equal(seen, copies)


def test_float32_stays_float32_and_ends_near_float64() -> None:
    A, B = problem(12)
    results = [
        minimise(
            APG(affine=True),
            Composite(least_squares(A.astype(kind), B.astype(kind)), L1(0.3), curvature(A)),
            np.zeros((12, 3), kind),
            Stopping(max_iter=2000, tol=-math.inf, gradient_tol=0.0, step_tol=1e-6),
        )
        for kind in (np.float32, np.float64)
    ]
    assert results[0].point.dtype == np.float32
    np.testing.assert_allclose(results[0].point, results[1].point, atol=1e-3)


def test_an_unknown_scheme_is_a_sentence() -> None:
    with pytest.raises(ValueError, match="restart='often' is not known"):
        minimise(APG("often"), Composite(lambda x: (0.0, x), L1()), np.zeros(2))  # type: ignore[arg-type]


@schemes
@pytest.mark.parametrize("known", [False, True])
def test_a_run_goes_on_from_every_state(restart, known: bool) -> None:
    A, B = problem(13)
    objective = Composite(least_squares(A, B), L1(0.3), curvature(A) if known else None)
    runs: list[Paused] = []
    whole = minimise(APG(restart), objective, np.ones((12, 3)), save=runs.append)
    for run in runs:
        resumed = minimise(APG(restart), objective, run)
        np.testing.assert_array_equal(resumed.point, whole.point)
        assert (resumed.reason, resumed.n_evaluations) == (whole.reason, whole.n_evaluations)
