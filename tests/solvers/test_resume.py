"""A solver that resumes from any of its states ends where it would have ended without a break."""

from collections.abc import Callable, Iterator
from copy import deepcopy
from itertools import islice

import numpy as np
import pytest

from marginmf._utils.random import GeneratorState
from marginmf.solvers import (
    LBFGS,
    BufferPool,
    ConjugateGradient,
    Descent,
    GradientDescent,
    NumpyVectors,
    Paused,
    Result,
    State,
    Stopping,
    StopReason,
    minimise,
)
from marginmf.solvers.descent import Directions, Step
from marginmf.solvers.vectors import downhill

SHAPE = np.geomspace(1.0, 300.0, 15)
START = np.linspace(-2, 3, 15)
EVERY = [LBFGS(), LBFGS(memory=1), ConjugateGradient(), GradientDescent()]


def keep_in(states: list[Paused]) -> Callable[[Paused], None]:
    """Return a function that keeps a run after every iteration in a list."""
    return lambda paused: states.append(paused.keep())


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


@pytest.mark.parametrize("solver", EVERY, ids=repr)
@pytest.mark.parametrize(
    ("objective", "dtype", "tol"), [(smooth, np.float64, 1e-12), (coarse, np.float32, 0.0)]
)
def test_every_state_leads_to_the_same_end(
    solver: Descent, objective: Callable, dtype: type, tol: float
) -> None:
    start, states = np.linspace(-2, 3, 15, dtype=dtype), []
    rules = Stopping(max_iter=3000, tol=tol, gradient_tol=0.0)
    whole = minimise(solver, objective, start, rules, save=keep_in(states))
    failed = objective is coarse and not isinstance(solver, GradientDescent)
    assert whole.reason == (StopReason.PRECISION if failed else StopReason.OBJECTIVE)
    assert len(states) == whole.n_iter + failed
    for state in [*states[:10], *states[-10:]]:
        assert same(whole, minimise(solver, objective, state, rules))


@pytest.mark.parametrize("solver", EVERY, ids=repr)
def test_a_state_that_is_kept_stays_as_it_was_when_the_solver_goes_on(solver: Descent) -> None:
    runs: list[Paused] = []
    copies: list[Paused] = []

    def save(paused: Paused) -> None:
        if len(copies) % 3:  # others in between are not kept
            runs.append(paused.keep())
        copies.append(deepcopy(paused))

    minimise(solver, smooth, START, save=save)
    minimise(solver, smooth, runs[3])
    kept = [copy for number, copy in enumerate(copies) if number % 3]
    for run, copy in zip(runs, kept, strict=True):
        np.testing.assert_equal(run.state.vectors, copy.state.vectors)
        np.testing.assert_equal(run.state.point, copy.state.point)
        assert (run.history, run.state.numbers) == (copy.history, copy.state.numbers)


@pytest.mark.parametrize("solver", EVERY, ids=repr)
def test_states_can_be_taken_from_the_solver_itself(solver: Descent) -> None:
    vectors = NumpyVectors()
    states = [state.keep() for state in islice(solver.steps(smooth, START, vectors), 9)]
    again = list(islice(solver.steps(smooth, states[3], vectors), 5))
    for one, other in zip(states[4:], again, strict=True):
        np.testing.assert_array_equal(one.point, other.point)
        assert (one.value, one.n_evaluations) == (other.value, other.n_evaluations)


@pytest.mark.parametrize("solver", EVERY, ids=repr)
def test_keeping_changes_nothing_and_resuming_evaluates_nothing_twice(solver: Descent) -> None:
    states, points = [], []
    whole = minimise(solver, smooth, START, save=keep_in(states))
    assert same(whole, minimise(solver, smooth, START))
    state = states[4]
    minimise(solver, lambda x: (points.append(x), smooth(x))[1], state)
    assert len(points) == whole.n_evaluations - state.history[-1].n_evaluations


def test_the_clock_goes_on_from_the_state() -> None:
    states: list[Paused] = []
    minimise(LBFGS(), smooth, START, save=keep_in(states))
    last = states[5].history[-1]._replace(seconds=1000.0)
    late = Paused(states[5].state, (*states[5].history[:-1], last))
    seconds = [record.seconds for record in minimise(LBFGS(), smooth, late).history]
    assert 1000 <= seconds[6] < 1010
    limited = minimise(LBFGS(), smooth, late, Stopping(max_seconds=1000))
    assert (limited.reason, limited.n_iter) == (StopReason.MAX_SECONDS, 6)


def test_the_iteration_on_which_a_callback_stops_is_no_state() -> None:
    # Else a fit that was killed right after it would go on where it should have stopped.
    states: list[Paused] = []
    stop = [lambda progress: progress.record.iteration == 3]
    minimise(LBFGS(), smooth, START, callbacks=stop, save=keep_in(states))
    assert [state.history[-1].iteration for state in states] == [0, 1, 2]


@pytest.mark.parametrize("solver", EVERY, ids=repr)
def test_a_run_can_pause_and_go_on(solver: Descent) -> None:
    whole, run = minimise(solver, smooth, START), START
    for end in (0, 2, 2, 7):
        states: list[Paused] = []

        def pause(paused: Paused, end: int = end, states: list[Paused] = states) -> bool:
            states.append(paused)
            return paused.history[-1].iteration >= end

        result = minimise(solver, smooth, run, save=pause)
        assert (result.reason, result.n_iter) == (StopReason.PAUSED, end)
        run = states[-1]
    assert same(whole, minimise(solver, smooth, run))


class Walkers:
    """A random walk: a solver whose states are samples."""

    def steps(self, objective: Callable, start: object, vectors: NumpyVectors) -> Iterator[State]:
        if isinstance(start, State):
            point, rng = start.point, start.generators["steps"].generator()
        else:
            point, rng = start, np.random.default_rng(3)
        while True:
            point = vectors.combine((1.0, 1.0), (point, rng.standard_normal(len(point))))
            value, _ = objective(point)
            yield State(point, value, 1.0, generators={"steps": GeneratorState.of(rng)})


def test_a_random_walk_resumes_to_the_same_bits() -> None:
    states: list[Paused] = []
    rules = Stopping(max_iter=20, tol=-np.inf)
    whole = minimise(Walkers(), smooth, START, rules, save=keep_in(states))
    for state in states:
        assert same(whole, minimise(Walkers(), smooth, state, rules))


class Momentum(Directions):
    """Directions that learn, by an author who did not think of resuming."""

    last = None

    def choose(self, gradient: np.ndarray) -> np.ndarray:
        return downhill(self.pool, gradient if self.last is None else gradient + 0.1 * self.last)

    def learn(self, direction: np.ndarray, here: Step, step: Step) -> None:
        self.last = here.gradient


class WithMomentum(GradientDescent):
    def directions(self, pool: BufferPool) -> Momentum:
        return Momentum(pool)


def test_directions_that_learn_must_have_a_memory() -> None:
    with pytest.raises(NotImplementedError, match=r"Momentum learns but has no memory\(\)"):
        minimise(WithMomentum(), smooth, START)
