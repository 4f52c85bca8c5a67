"""Early stopping: the best point by a second measure is kept, and interruptions change nothing."""

import numpy as np
import pytest

from marginmf.solvers import (
    LBFGS,
    ConjugateGradient,
    EarlyStopping,
    GradientDescent,
    StopReason,
    minimise,
)

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
    minimise(solver, valley, START, callbacks=[lambda p: points.append(p.point.copy())])
    return points, [error_at(point) for point in points]


@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("patience", [1, 3, 1000])
def test_the_best_point_is_kept_and_the_rest_is_not_made(solver, patience):
    points, errors = measured(solver)
    waits = [k - int(np.argmin(errors[: k + 1])) for k in range(len(errors))]
    end = next((k for k, wait in enumerate(waits) if wait >= patience), len(errors) - 1)
    result = minimise(solver, valley, START, early_stopping=EarlyStopping(error_at, patience))
    assert result.n_iter == end
    assert result.errors == errors[: end + 1]
    np.testing.assert_array_equal(result.point, points[int(np.argmin(errors[: end + 1]))])
    assert (result.reason is StopReason.HELD_OUT) == (waits[end] >= patience)


def test_of_equal_errors_the_first_is_kept():
    result = minimise(LBFGS(), valley, START, early_stopping=EarlyStopping(lambda x: 1.0, 2))
    np.testing.assert_array_equal(result.point, START)
    assert result.n_iter == 2


def test_an_error_that_falls_with_the_objective_changes_nothing():
    plain = minimise(LBFGS(), valley, START)
    watched = minimise(
        LBFGS(), valley, START, early_stopping=EarlyStopping(lambda x: valley(x)[0], 1)
    )
    np.testing.assert_array_equal(watched.point, plain.point)
    assert (watched.n_iter, watched.reason) == (plain.n_iter, plain.reason)
    assert plain.errors == []


@pytest.mark.parametrize("solver", SOLVERS)
def test_every_state_leads_to_the_same_end(solver):
    runs, rule = [], EarlyStopping(error_at, 3)

    def save(paused):
        runs.append(paused.keep())

    whole = minimise(solver, valley, START, early_stopping=rule, save=save)
    assert len(runs) == whole.n_iter
    for run in runs:
        resumed = minimise(solver, valley, run, early_stopping=rule)
        np.testing.assert_array_equal(resumed.point, whole.point)
        assert resumed.errors == whole.errors
        assert resumed.reason is whole.reason


def test_the_reason_of_a_callback_goes_before_a_mere_yes():
    callbacks = [lambda progress: True]
    result = minimise(
        LBFGS(), valley, START, callbacks=callbacks, early_stopping=EarlyStopping(lambda x: 1.0, 1)
    )
    assert result.reason is StopReason.CALLBACK
    assert result.n_iter == 0
    callbacks = [lambda progress: progress.record.iteration == 2]
    result = minimise(
        LBFGS(), valley, START, callbacks=callbacks, early_stopping=EarlyStopping(lambda x: 1.0, 2)
    )
    assert result.reason is StopReason.HELD_OUT
