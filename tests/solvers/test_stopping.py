"""Why a solver stopped, what it recorded, and what callbacks saw."""

import math
import re
import time

import numpy as np
import pytest

from marginmf.solvers import (
    SOLVERS,
    Objective,
    Progress,
    Result,
    State,
    Stopping,
    StopReason,
    get_solver,
    minimise,
)

names = pytest.mark.parametrize("name", SOLVERS)
NEVER = Stopping(max_iter=10**6, tol=0.0, gradient_tol=0.0)


def bowl(x: np.ndarray) -> tuple[float, np.ndarray]:
    """Return a badly scaled quadratic plus one, so that shares of the objective have a meaning."""
    scales = np.geomspace(1, 1000, len(x))
    return float(1.0 + x @ (scales * x)), 2 * scales * x


def counted(objective: Objective) -> tuple[Objective, list[np.ndarray]]:
    seen: list[np.ndarray] = []

    def evaluate(x: np.ndarray) -> tuple[float, np.ndarray]:
        seen.append(x.copy())
        return objective(x)

    return evaluate, seen


def run(name: str, rules: Stopping, objective: Objective = bowl, callbacks=()) -> Result:
    return minimise(get_solver(name), objective, np.full(8, 3.0), rules, callbacks)


@names
def test_max_iter(name: str) -> None:
    result = run(name, Stopping(max_iter=4, tol=0.0, gradient_tol=0.0))
    assert result.reason is StopReason.MAX_ITER
    assert result.n_iter == 4
    assert [record.iteration for record in result.history] == [0, 1, 2, 3, 4]


@names
def test_objective(name: str) -> None:
    tol = 1e-3
    result = run(name, Stopping(max_iter=10**6, tol=tol, gradient_tol=0.0))
    values = [record.objective for record in result.history]
    falls = [(values[k - 3] - values[k]) / 3 / values[k] for k in range(3, len(values))]
    assert result.reason is StopReason.OBJECTIVE
    assert falls[-1] <= tol
    assert all(fall > tol for fall in falls[:-1])


@names
def test_gradient(name: str) -> None:
    result = run(name, Stopping(max_iter=10**6, tol=0.0, gradient_tol=1e-3))
    shares = [record.gradient_norm / result.history[0].gradient_norm for record in result.history]
    assert result.reason is StopReason.GRADIENT
    assert shares[-1] <= 1e-3
    assert all(share > 1e-3 for share in shares[:-1])
    assert result.history[-1].gradient_norm == pytest.approx(
        np.linalg.norm(bowl(result.point)[1]), rel=1e-12
    )


@names
def test_max_seconds(name: str) -> None:
    def slow(x: np.ndarray) -> tuple[float, np.ndarray]:
        time.sleep(0.005)
        return bowl(x)

    limit = 0.05
    rules = Stopping(max_iter=10**6, tol=0.0, gradient_tol=0.0, max_seconds=limit)
    result = run(name, rules, slow)
    assert result.reason is StopReason.MAX_SECONDS
    assert result.history[-1].seconds >= limit
    assert all(record.seconds < limit for record in result.history[:-1])


@names
def test_callback(name: str) -> None:
    result = run(name, NEVER, callbacks=[lambda progress: progress.record.iteration == 2])
    assert result.reason is StopReason.CALLBACK
    assert result.n_iter == 2


def rounded(x: np.ndarray) -> tuple[float, np.ndarray]:
    """Return a quadratic that is known to two places only."""
    scales = np.geomspace(1, 10, len(x))
    return float(np.round(x @ (scales * x), 2)), 2 * scales * x


@names
def test_precision(name: str) -> None:
    result = run(name, NEVER, rounded)
    assert result.reason is StopReason.PRECISION
    assert result.objective < 0.1
    assert result.history[-1].gradient_norm > 0


@names
def test_wrong_gradient_ends_where_it_began(name: str) -> None:
    result = run(name, NEVER, lambda x: (float(x @ x), -2 * x))
    assert result.reason is StopReason.PRECISION
    assert result.n_iter == 0
    np.testing.assert_array_equal(result.point, np.full(8, 3.0))


@names
@pytest.mark.parametrize("objective", [bowl, rounded])
def test_every_evaluation_is_counted(name: str, objective: Objective) -> None:
    evaluate, seen = counted(objective)
    result = run(name, Stopping(max_iter=50, tol=0.0, gradient_tol=1e-9), evaluate)
    assert result.n_evaluations == len(seen)


@names
def test_history_tells_when_evaluations_were_made(name: str) -> None:
    evaluate, seen = counted(bowl)
    counts: list[int] = []
    result = run(name, Stopping(max_iter=6), evaluate, [lambda _: counts.append(len(seen))])
    assert [record.n_evaluations for record in result.history] == counts
    seconds = [record.seconds for record in result.history]
    assert seconds == sorted(seconds)


@names
def test_callbacks_see_every_iteration_with_a_usable_point(name: str) -> None:
    seen: list[Progress] = []
    result = run(name, Stopping(max_iter=5, tol=0.0), callbacks=[seen.append])
    assert [progress.record for progress in seen] == result.history
    assert all(progress.max_iter == 5 for progress in seen)
    for progress in seen:
        assert bowl(progress.point)[0] == pytest.approx(progress.record.objective)
    np.testing.assert_array_equal(seen[-1].point, result.point)


@names
def test_points_shown_to_callbacks_are_not_changed_afterwards(name: str) -> None:
    kept: list[tuple[np.ndarray, np.ndarray]] = []
    run(
        name,
        Stopping(max_iter=8, tol=0.0),
        callbacks=[lambda progress: kept.append((progress.point, progress.point.copy()))],
    )
    for point, as_it_was in kept:
        np.testing.assert_array_equal(point, as_it_was)


@names
def test_every_callback_is_called_though_the_first_one_stops(name: str) -> None:
    seen: list[int] = []
    run(
        name,
        NEVER,
        callbacks=[lambda _: True, lambda progress: seen.append(progress.record.iteration)],
    )
    assert seen == [0]


@names
def test_callback_that_returns_none_does_not_stop(name: str) -> None:
    result = run(name, Stopping(max_iter=3, tol=0.0), callbacks=[lambda _: None])
    assert result.reason is StopReason.MAX_ITER


@names
@pytest.mark.parametrize("value", [math.inf, math.nan])
def test_objective_without_a_value_at_the_start_is_an_error(name: str, value: float) -> None:
    with pytest.raises(
        FloatingPointError, match=f"The objective is {value} at iteration 0"
    ) as raised:
        run(name, NEVER, lambda x: (value, np.full_like(x, math.nan)))
    # In words that suit every method: not all have the same settings.
    assert str(raised.value).endswith("choose settings nearer to the defaults.")
    assert not re.search(r"reg\b|_rate|dtype", str(raised.value))


def test_reasons_read_as_sentences() -> None:
    assert str(StopReason.MAX_ITER) == "max_iter iterations were done"
    assert len({str(reason) for reason in StopReason}) == len(StopReason) == 9


def test_a_solver_that_yields_nothing_is_named() -> None:
    class Idle:
        def steps(self, objective, start, vectors):
            return iter(())

    with pytest.raises(RuntimeError, match=r"Idle\.steps\(\) yielded no state"):
        minimise(Idle(), bowl, np.ones(2))


def test_a_solver_of_ones_own_needs_steps_alone() -> None:
    class Shrinking:
        """Halves the point as long as that helps."""

        def steps(self, objective, start, vectors):
            point = start.point if isinstance(start, State) else start
            while True:
                value, gradient = objective(point)
                yield State(point, value, float(np.linalg.norm(gradient)))
                point = vectors.combine((0.5,), (point,))

    result = minimise(get_solver(Shrinking()), bowl, np.full(8, 3.0), Stopping(max_iter=5))
    assert (result.n_iter, result.n_evaluations) == (5, 6)
    np.testing.assert_array_equal(result.point, np.full(8, 3.0 / 32))
