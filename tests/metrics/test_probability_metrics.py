"""Errors of distributions over the levels."""

import numpy as np
import pytest
from sklearn.metrics import log_loss as reference

from marginmf.metrics import expected_calibration_error, log_loss

LEVELS = [1.0, 2.0, 5.0]


def random_case(seed=0, n=500):
    rng = np.random.default_rng(seed)
    distribution = rng.dirichlet([2.0, 1.0, 1.0], size=n)
    codes = [rng.choice(3, p=p) for p in distribution]
    return np.asarray(LEVELS)[codes], distribution


def test_log_loss_is_that_of_scikit_learn():
    true, distribution = random_case()
    assert log_loss(true, distribution, LEVELS) == pytest.approx(
        reference(true.astype(int), distribution, labels=[1, 2, 5])
    )


def test_true_probabilities_are_calibrated_and_others_are_not():
    true, distribution = random_case(n=20_000)
    assert expected_calibration_error(true, distribution, LEVELS) < 0.015
    sure = np.eye(3)[distribution.argmax(axis=1)]
    missed = (np.asarray(LEVELS)[distribution.argmax(axis=1)] != true).mean()
    assert expected_calibration_error(true, sure, LEVELS) == pytest.approx(missed)


def test_calibration_error_by_hand():
    distribution = [[0.62, 0.38, 0.0]] * 2 + [[0.0, 0.05, 0.95]] * 2
    found = expected_calibration_error([1, 2, 5, 5], distribution, LEVELS)
    assert found == pytest.approx((abs(1 - 1.24) + abs(2 - 1.9)) / 4)


@pytest.mark.parametrize("metric", [log_loss, expected_calibration_error])
@pytest.mark.parametrize(
    ("true", "distribution", "sentence"),
    [
        ([1, 2], [[0.5, 0.5, 0.0]], "need a distribution of the shape"),
        ([3], [[0.5, 0.5, 0.0]], "rating 3 in row 0 is not one of the levels"),
        ([9], [[0.5, 0.5, 0.0]], "rating 9 in row 0 is not one of the levels"),
        ([1, 1], [[1, 0, 0], [0.5, 0.2, 0.2]], "row 1 do not add up to one"),
        ([1, 1], [[1, 0, 0], [np.nan] * 3], "row 1 do not add up to one"),
        ([], np.empty((0, 3)), "no ratings to measure"),
    ],
)
def test_what_cannot_be_measured_gets_a_sentence(metric, true, distribution, sentence):
    with pytest.raises(ValueError, match=sentence):
        metric(true, distribution, LEVELS)
