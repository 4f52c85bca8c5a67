"""Early stopping: the best point by a second measure is kept, and interruptions change nothing."""

import numpy as np
import pytest

from marginmf.solvers import LBFGS, ConjugateGradient, EarlyStopped, GradientDescent, StopReason

START = np.array([3.0, -4.0, 2.0, 1.0])
SCALES = np.array([1.0, 10.0, 30.0, 300.0])
SOLVERS = [LBFGS(), ConjugateGradient(), GradientDescent()]


def valley(x):
    return float(x @ (SCALES * x)), 2 * SCALES * x


def error_at(x):
    """A measure whose minimum lies on the way to the objective's, but is another."""
    return float(np.abs(x - 0.2).sum())


def measured(solver):
    """Return all points of a minimisation, and the error of each."""
    points = []
    solver.minimise(valley, START, callbacks=[lambda p: points.append(p.point.copy())])
    return points, [error_at(point) for point in points]


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("patience", [1, 3, 1000])
def test_the_best_point_is_kept_and_the_rest_is_not_made(solver, patience):
    points, errors = measured(solver)
    waits = [k - int(np.argmin(errors[: k + 1])) for k in range(len(errors))]
    end = next((k for k, wait in enumerate(waits) if wait >= patience), len(errors) - 1)
    result = EarlyStopped(solver, error_at, patience).minimise(valley, START)
    assert result.n_iter == end
    assert result.errors == errors[: end + 1]
    np.testing.assert_array_equal(result.point, points[int(np.argmin(errors[: end + 1]))])
    assert (result.reason is StopReason.HELD_OUT) == (waits[end] >= patience)


def test_of_equal_errors_the_first_is_kept():
    result = EarlyStopped(LBFGS(), lambda x: 1.0, 2).minimise(valley, START)
    np.testing.assert_array_equal(result.point, START)
    assert result.n_iter == 2


def test_an_error_that_falls_with_the_objective_changes_nothing():
    plain = LBFGS().minimise(valley, START)
    watched = EarlyStopped(LBFGS(), lambda x: valley(x)[0], 1).minimise(valley, START)
    np.testing.assert_array_equal(watched.point, plain.point)
    assert (watched.n_iter, watched.reason) == (plain.n_iter, plain.reason)
    assert plain.errors == []


@pytest.mark.parametrize("solver", SOLVERS)
def test_every_state_leads_to_the_same_end(solver):
    states, early = [], EarlyStopped(solver, error_at, 3)
    whole = early.minimise(valley, START, save=states.append)
    assert len(states) == whole.n_iter
    for state in states:
        resumed = early.minimise(valley, START, resume=state)
        np.testing.assert_array_equal(resumed.point, whole.point)
        assert resumed.errors == whole.errors
        assert resumed.reason is whole.reason


def test_a_solver_that_cannot_resume_can_be_stopped_early():
    class Simple:
        def minimise(self, objective, start, stopping=None, callbacks=(), space=None):
            return LBFGS().minimise(objective, start, stopping, callbacks, space)

    found = EarlyStopped(Simple(), error_at, 3).minimise(valley, START, save=lambda state: 1 / 0)
    expected = EarlyStopped(LBFGS(), error_at, 3).minimise(valley, START)
    np.testing.assert_array_equal(found.point, expected.point)


def test_the_reason_of_a_callback_goes_before_a_mere_yes():
    callbacks = [lambda progress: True]
    result = EarlyStopped(LBFGS(), lambda x: 1.0, 1).minimise(valley, START, callbacks=callbacks)
    assert result.reason is StopReason.CALLBACK
    assert result.n_iter == 0
    callbacks = [lambda progress: progress.record.iteration == 2]
    result = EarlyStopped(LBFGS(), lambda x: 1.0, 2).minimise(valley, START, callbacks=callbacks)
    assert result.reason is StopReason.HELD_OUT
