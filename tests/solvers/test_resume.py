"""A solver that resumes from any of its states ends where it would have ended without a break."""

from collections.abc import Callable
from copy import deepcopy

import numpy as np
import pytest

from marginmf.solvers import (
    LBFGS,
    SOLVERS,
    ConjugateGradient,
    Descent,
    GradientDescent,
    Result,
    State,
    Stopping,
    StopReason,
    VectorSpace,
    can_resume,
)
from marginmf.solvers.descent import Directions, downhill
from marginmf.solvers.line_search import Step

SHAPE = np.geomspace(1.0, 300.0, 15)


def smooth(x: np.ndarray) -> tuple[float, np.ndarray]:
    return float(np.sum(SHAPE * x**2 + np.cos(3 * x))), 2 * SHAPE * x - 3 * np.sin(3 * x)


def coarse(x: np.ndarray) -> tuple[float, np.ndarray]:
    """Single precision: line searches fail near the minimum, and directions are forgotten."""
    value, gradient = smooth(x.astype(np.float32))
    return float(np.float32(value)), gradient.astype(np.float32)


def same(a: Result, b: Result) -> bool:
    def without_seconds(result: Result) -> list[tuple[float, ...]]:
        return [record[:-1] for record in result.history]

    return (
        a.point.tobytes() == b.point.tobytes()
        and without_seconds(a) == without_seconds(b)
        and (a.reason, a.n_evaluations) == (b.reason, b.n_evaluations)
    )


@pytest.mark.parametrize(
    "solver", [LBFGS(), LBFGS(memory=1), ConjugateGradient(), GradientDescent()], ids=repr
)
@pytest.mark.parametrize(
    ("objective", "dtype", "tol"), [(smooth, np.float64, 1e-12), (coarse, np.float32, 0.0)]
)
def test_every_state_leads_to_the_same_end(
    solver: Descent, objective: Callable, dtype: type, tol: float
) -> None:
    start, states = np.linspace(-2, 3, 15, dtype=dtype), []
    rules = Stopping(max_iter=3000, tol=tol, gradient_tol=0.0)
    whole = solver.minimise(objective, start, rules, save=states.append)
    failed = objective is coarse and not isinstance(solver, GradientDescent)
    assert whole.reason == (StopReason.PRECISION if failed else StopReason.OBJECTIVE)
    assert len(states) == whole.n_iter + failed
    for state in [*states[:10], *states[-10:]]:
        assert same(whole, solver.minimise(objective, start, rules, resume=state))


@pytest.mark.parametrize("name", SOLVERS)
def test_a_state_stays_as_it_was_when_the_solver_goes_on(name: str) -> None:
    states, copies = [], []

    def save(state: State) -> None:
        states.append(state)
        copies.append(deepcopy(state))

    solver, start = SOLVERS[name](), np.linspace(-2, 3, 15)
    solver.minimise(smooth, start, save=save)
    solver.minimise(smooth, start, resume=states[3])
    for state, copy in zip(states, copies, strict=True):
        np.testing.assert_equal(state.vectors, copy.vectors)
        assert (state.history, state.numbers) == (copy.history, copy.numbers)


@pytest.mark.parametrize("name", SOLVERS)
def test_saving_changes_nothing_and_resuming_evaluates_nothing_twice(name: str) -> None:
    states, points, solver, start = [], [], SOLVERS[name](), np.linspace(-2, 3, 15)
    whole = solver.minimise(smooth, start, save=states.append)
    assert same(whole, solver.minimise(smooth, start))
    state = states[4]
    solver.minimise(lambda x: (points.append(x), smooth(x))[1], start, resume=state)
    assert len(points) == whole.n_evaluations - state.history[-1].n_evaluations


def test_the_clock_goes_on_from_the_state() -> None:
    states, start = [], np.linspace(-2, 3, 15)
    LBFGS().minimise(smooth, start, save=states.append)
    last = states[5].history[-1]._replace(seconds=1000.0)
    late = State((*states[5].history[:-1], last), states[5].vectors, states[5].numbers)
    seconds = [record.seconds for record in LBFGS().minimise(smooth, start, resume=late).history]
    assert 1000 <= seconds[6] < 1010
    limited = LBFGS().minimise(smooth, start, Stopping(max_seconds=1000), resume=late)
    assert (limited.reason, limited.n_iter) == (StopReason.MAX_SECONDS, 6)


def test_the_iteration_on_which_a_callback_stops_is_no_state() -> None:
    # Else a fit that was killed right after it would go on where it should have stopped.
    states: list[State] = []
    stop = [lambda progress: progress.record.iteration == 3]
    LBFGS().minimise(smooth, np.linspace(-2, 3, 15), callbacks=stop, save=states.append)
    assert [state.history[-1].iteration for state in states] == [0, 1, 2]


class Momentum(Directions):
    """Directions that learn, by an author who did not think of resuming."""

    last = None

    def choose(self, gradient: np.ndarray) -> np.ndarray:
        return downhill(self.space, gradient if self.last is None else gradient + 0.1 * self.last)

    def learn(self, direction: np.ndarray, here: Step, step: Step) -> None:
        self.last = here.gradient


class WithMomentum(GradientDescent):
    def directions(self, space: VectorSpace) -> Momentum:
        return Momentum(space)


def test_directions_without_a_memory_cannot_be_saved_by_mistake() -> None:
    start = np.linspace(-2, 3, 15)
    assert WithMomentum().minimise(smooth, start).n_iter > 1
    with pytest.raises(NotImplementedError, match=r"Momentum learns but has no memory\(\)"):
        WithMomentum().minimise(smooth, start, save=lambda state: None)


def test_a_solver_that_takes_no_state_cannot_resume() -> None:
    class Own:
        def minimise(self, objective, start, stopping=None, callbacks=(), space=None):
            raise AssertionError

    assert can_resume(LBFGS())
    assert not can_resume(Own())
