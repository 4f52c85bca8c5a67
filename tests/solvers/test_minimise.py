"""Do the solvers find the minimum?  On problems whose answer is known otherwise."""

import weakref

import numpy as np
import pytest
from scipy.optimize import minimize as scipy_minimize

from marginmf.solvers import (
    LBFGS,
    SOLVERS,
    ConjugateGradient,
    Descent,
    GradientDescent,
    NumpyVectors,
    Objective,
    Paused,
    Progress,
    Stopping,
    StopReason,
    get_solver,
    minimise,
)
from marginmf.solvers.descent import Step, StrongWolfe, Walk

TO_THE_END = Stopping(max_iter=20_000, tol=0.0, gradient_tol=1e-7)
names = pytest.mark.parametrize("name", SOLVERS)


def quadratic(n: int = 12, condition: float = 100.0) -> tuple[Objective, np.ndarray]:
    """Return 1/2 x'Ax - b'x and the solution of Ax = b."""
    rng = np.random.default_rng(0)
    Q, _ = np.linalg.qr(rng.normal(size=(n, n)))
    A = Q @ np.diag(np.geomspace(1, condition, n)) @ Q.T
    b = rng.normal(size=n)
    return lambda x: (float(0.5 * x @ A @ x - b @ x), A @ x - b), np.linalg.solve(A, b)


def rosenbrock(p: np.ndarray) -> tuple[float, np.ndarray]:
    x, y = p
    value = (1 - x) ** 2 + 100 * (y - x * x) ** 2
    return float(value), np.array([-2 * (1 - x) - 400 * x * (y - x * x), 200 * (y - x * x)])


def logistic_regression() -> tuple[Objective, int]:
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(200, 8)), np.sign(rng.normal(size=200))

    def objective(w: np.ndarray) -> tuple[float, np.ndarray]:
        z = y * (X @ w)
        value = np.logaddexp(0, -z).sum() + 0.5 * w @ w
        return float(value), -X.T @ (y / (1 + np.exp(z))) + w

    return objective, 8


@names
def test_quadratic(name: str) -> None:
    objective, solution = quadratic()
    result = minimise(get_solver(name), objective, np.ones(12), TO_THE_END)
    np.testing.assert_allclose(result.point, solution, atol=1e-5)
    assert result.objective == objective(result.point)[0]


@pytest.mark.parametrize("solver", [LBFGS(memory=1), LBFGS(), ConjugateGradient()])
def test_rosenbrock(solver: Descent) -> None:
    result = minimise(solver, rosenbrock, np.array([-1.2, 1.0]), TO_THE_END)
    np.testing.assert_allclose(result.point, [1.0, 1.0], atol=1e-4)
    assert result.n_iter < 200


@names
def test_logistic_regression_agrees_with_scipy(name: str) -> None:
    objective, n = logistic_regression()
    expected = scipy_minimize(
        objective, np.zeros(n), jac=True, method="BFGS", options={"gtol": 1e-8}
    )
    result = minimise(get_solver(name), objective, np.zeros(n), TO_THE_END)
    np.testing.assert_allclose(result.point, expected.x, atol=1e-5)
    assert result.objective == pytest.approx(expected.fun, rel=1e-10)


@pytest.mark.parametrize("solver", [LBFGS(memory=1), LBFGS(), ConjugateGradient()])
def test_curvature_is_learned(solver: Descent) -> None:
    # Steepest descent needs some condition number's worth of iterations.
    objective, solution = quadratic(n=30, condition=1e3)
    result = minimise(solver, objective, np.ones(30), TO_THE_END)
    np.testing.assert_allclose(result.point, solution, atol=1e-4)
    assert result.n_iter < 300


@names
def test_objective_never_rises(name: str) -> None:
    for objective, n in ((quadratic(12)[0], 12), logistic_regression(), (rosenbrock, 2)):
        result = minimise(get_solver(name), objective, np.full(n, -1.5), Stopping(max_iter=200))
        values = [record.objective for record in result.history]
        assert (np.diff(values) <= 0).all()


@names
@pytest.mark.parametrize("unit", [1e-12, 1e-6, 1e6, 1e12])
def test_unit_of_the_objective_does_not_matter(name: str, unit: float) -> None:
    objective, _ = quadratic()

    def in_unit(x: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = objective(x)
        return unit * value, unit * gradient

    rules = Stopping(max_iter=2000, tol=0.0, gradient_tol=1e-5)
    plain = minimise(get_solver(name), objective, np.ones(12), rules)
    scaled = minimise(get_solver(name), in_unit, np.ones(12), rules)
    assert scaled.n_iter <= 1.5 * plain.n_iter
    np.testing.assert_allclose(scaled.point, plain.point, atol=1e-3)


@names
def test_start_is_not_modified(name: str) -> None:
    objective, _ = quadratic()
    start = np.ones(12)
    result = minimise(get_solver(name), objective, start, Stopping(max_iter=5))
    np.testing.assert_array_equal(start, np.ones(12))
    assert not np.shares_memory(result.point, start)


@names
def test_start_at_the_minimum_is_the_answer(name: str) -> None:
    result = minimise(get_solver(name), lambda x: (float(x @ x), 2 * x), np.zeros(3))
    np.testing.assert_array_equal(result.point, np.zeros(3))
    assert result.n_iter == 0


@names
def test_start_at_the_origin(name: str) -> None:
    objective, solution = quadratic()
    result = minimise(get_solver(name), objective, np.zeros(12), TO_THE_END)
    np.testing.assert_allclose(result.point, solution, atol=1e-5)


@names
def test_float32_parameters(name: str) -> None:
    objective, solution = quadratic()

    def in_float32(x: np.ndarray) -> tuple[float, np.ndarray]:
        assert x.dtype == np.float32
        value, gradient = objective(x.astype(np.float64))
        return value, gradient.astype(np.float32)

    rules = Stopping(max_iter=5000, tol=1e-9, gradient_tol=1e-4)
    result = minimise(get_solver(name), in_float32, np.ones(12, np.float32), rules)
    assert result.point.dtype == np.float32
    np.testing.assert_allclose(result.point, solution, atol=5e-3)


@names
@pytest.mark.parametrize("beyond", [np.inf, np.nan])
def test_barrier_is_met_by_shorter_steps(name: str, beyond: float) -> None:
    # x - log x has its minimum at 1 and no value at 0 and below.
    def barrier(x: np.ndarray) -> tuple[float, np.ndarray]:
        if (x <= 0).any():
            return beyond, np.full_like(x, np.nan)
        return float((x - np.log(x)).sum()), 1 - 1 / x

    # The first step, a tenth of the point's length, takes the small entry beyond the barrier.
    result = minimise(get_solver(name), barrier, np.array([100.0, 1e-3, 50.0]), TO_THE_END)
    np.testing.assert_allclose(result.point, 1.0, atol=1e-4)


class Blocks:
    """Vectors as lists of arrays, made anew every time: a stand-in for other machines."""

    def dots(self, vectors: list[list[np.ndarray]], b: list[np.ndarray]) -> list[float]:
        return [sum(float(x @ y) for x, y in zip(a, b, strict=True)) for a in vectors]

    def combine(
        self, scales: list[float], vectors: list[list[np.ndarray]], out: object = None
    ) -> list[np.ndarray]:
        return [
            sum(scale * part for scale, part in zip(scales, parts, strict=True))
            for parts in zip(*vectors, strict=True)
        ]

    def to_host(self, vector: list[np.ndarray]) -> np.ndarray:
        return np.concatenate(vector)

    def from_host(self, array: np.ndarray) -> list[np.ndarray]:
        return np.split(array, [3, 4, 9])


@names
def test_any_kind_of_vectors_gives_the_same_answer(name: str) -> None:
    objective, _ = quadratic()
    cuts = [3, 4, 9]

    def in_blocks(blocks: list[np.ndarray]) -> tuple[float, list[np.ndarray]]:
        value, gradient = objective(np.concatenate(blocks))
        return value, [part.copy() for part in np.split(gradient, cuts)]

    # Few iterations: sums in another order round differently, and the difference grows.
    solver, rules = get_solver(name), Stopping(max_iter=6, tol=0.0)
    whole = minimise(solver, objective, np.ones(12), rules)
    parts = minimise(solver, in_blocks, np.split(np.ones(12), cuts), rules, vectors=Blocks())
    assert parts.n_evaluations == whole.n_evaluations
    np.testing.assert_allclose(np.concatenate(parts.point), whole.point, rtol=1e-6)


def test_solver_is_found_by_name_or_taken_as_it_is() -> None:
    own = LBFGS(memory=3)
    assert get_solver(own) is own
    assert {name: type(get_solver(name)) for name in SOLVERS} == dict(SOLVERS)


@pytest.mark.parametrize("unknown", ["newton", None, 3, LBFGS])
def test_unknown_solver_is_refused_with_the_choices(unknown: object) -> None:
    with pytest.raises(ValueError, match=r"is not known\. Choose one of 'lbfgs', 'cg', 'gd'"):
        get_solver(unknown)


ALL = [LBFGS(memory=1), LBFGS(), ConjugateGradient(), GradientDescent()]


@pytest.mark.parametrize("solver", ALL, ids=repr)
def test_vectors_made_of_old_ones_change_nothing(solver: Descent) -> None:
    objective, _ = quadratic()
    points: list[np.ndarray] = []
    copies: list[np.ndarray] = []

    def watch(progress: Progress) -> None:
        points.append(progress.point)
        copies.append(progress.point.copy())

    def keep(paused: Paused) -> None:
        paused.keep()

    one, other = (
        # The vectors of states that are kept are not used again.
        minimise(solver, objective, np.ones(12), Stopping(max_iter=9), [watch], save=save)
        for save in (None, keep)
    )
    np.testing.assert_array_equal(one.point, other.point)
    np.testing.assert_array_equal(points, copies)


class Untrusting(StrongWolfe):
    """A line search that finds nothing along directions that come with their length."""

    def __call__(self, walk: Walk, start: Step, first_length: float) -> Step | None:
        return None if first_length == 1.0 else super().__call__(walk, start, first_length)


@pytest.mark.parametrize("memory", [1, 2, 5])
def test_lbfgs_tries_steepest_descent_before_it_gives_up(memory: int) -> None:
    class Misled(LBFGS):
        line_search = Untrusting()

    objective, solution = quadratic(condition=3.0)
    result = minimise(Misled(memory), objective, np.ones(12), TO_THE_END)
    assert result.reason is StopReason.GRADIENT
    np.testing.assert_allclose(result.point, solution, atol=1e-5)


class Vector(np.ndarray):
    """An array of a kind that only `Live` makes."""


class Live(NumpyVectors):
    """Vectors that count how many of them exist at once, gradients included."""

    def __init__(self) -> None:
        self.n = self.peak = 0

    def new(self, array: np.ndarray) -> np.ndarray:
        vector = array.view(Vector)
        self.n += 1
        self.peak = max(self.peak, self.n)
        weakref.finalize(vector, self.drop)
        return vector

    def drop(self) -> None:
        self.n -= 1

    def combine(self, scales, vectors, out=None) -> np.ndarray:
        total = super().combine(scales, vectors, out)
        return total if out is not None else self.new(total)


@pytest.mark.parametrize(("memory", "most"), [(1, 10), (5, 16)])
def test_lbfgs_holds_few_vectors_at_once(memory: int, most: int) -> None:
    # Start, point, gradient, direction, and of two trials the points and gradients: eight, and
    # two more where a bracket has two ends.
    vectors = Live()

    def objective(x: np.ndarray) -> tuple[float, np.ndarray]:
        value, gradient = rosenbrock(x)
        return value, vectors.new(gradient)

    start = vectors.new(np.array([-1.2, 1.0]))
    result = minimise(LBFGS(memory), objective, start, TO_THE_END, vectors=vectors)
    assert result.n_evaluations > result.n_iter + 5  # line searches with several trials
    assert vectors.peak <= most


@pytest.mark.parametrize("memory", [0, -1, 2.5])
def test_lbfgs_remembers_at_least_one_step(memory):
    with pytest.raises(ValueError, match=rf"memory={memory} must be a whole number >= 1"):
        minimise(LBFGS(memory), lambda x: (0.5 * x @ x, x), np.ones(3))
