import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn import metrics as sk

from marginmf import metrics

STARS = st.lists(st.tuples(st.integers(1, 5), st.integers(1, 5)), min_size=1, max_size=50)


@given(STARS)
def test_errors_agree_with_scikit_learn(pairs):
    true, predicted = np.array(pairs, float).T
    report = metrics.ratings_report(true, predicted, levels=[1, 2, 3, 4, 5])
    assert report["mae"] == pytest.approx(sk.mean_absolute_error(true, predicted))
    assert report["rmse"] == pytest.approx(sk.root_mean_squared_error(true, predicted))
    assert report["zero_one"] == pytest.approx(sk.zero_one_loss(true, predicted))
    assert report["nmae"] == pytest.approx(report["mae"] / 1.6)
    expected = np.linalg.norm(true - predicted) / np.linalg.norm(true)
    assert report["fre"] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        (range(1, 6), 1.6),  # the divisor for MovieLens in the literature
        (range(1, 7), 35 / 18),  # 1.944, for EachMovie
        (np.arange(0.5, 5.5, 0.5), 1.65),
    ],
)
def test_chance_error_follows_the_scale(levels, expected):
    assert metrics.chance_error(list(levels)) == pytest.approx(expected)


def test_guessing_at_random_has_an_nmae_of_one():
    rng = np.random.default_rng(0)
    true, guess = rng.integers(1, 6, (2, 100_000)).astype(float)
    nmae = metrics.normalised_mean_absolute_error(true, guess, levels=[1, 2, 3, 4, 5])
    assert nmae == pytest.approx(1.0, abs=0.01)


@pytest.mark.parametrize(
    ("true", "predicted", "sentence"),
    [
        ([1, 2], [1], r"shapes are \(2,\) and \(1,\)"),
        ([], [], "no ratings"),
        ([1, 2], [1, np.nan], "predicted rating in row 1 is nan, not a number"),
        ([np.nan], [1], "true rating in row 0"),
    ],
)
def test_bad_input_gets_a_sentence(true, predicted, sentence):
    with pytest.raises(ValueError, match=sentence):
        metrics.mean_absolute_error(true, predicted)


def test_relative_error_of_zeros_and_a_flat_scale_are_refused():
    with pytest.raises(ValueError, match="Every true rating is 0"):
        metrics.frobenius_relative_error([0, 0], [1, 1])
    with pytest.raises(ValueError, match="two different levels"):
        metrics.chance_error([3, 3])


LEVELS = [1.0, 2.0, 5.0]


def random_case(seed=0, n=500):
    rng = np.random.default_rng(seed)
    distribution = rng.dirichlet([2.0, 1.0, 1.0], size=n)
    codes = [rng.choice(3, p=p) for p in distribution]
    return np.asarray(LEVELS)[codes], distribution


def test_log_loss_is_that_of_scikit_learn():
    true, distribution = random_case()
    assert metrics.log_loss(true, distribution, LEVELS) == pytest.approx(
        sk.log_loss(true.astype(int), distribution, labels=[1, 2, 5])
    )


def test_true_probabilities_are_calibrated_and_others_are_not():
    true, distribution = random_case(n=20_000)
    assert metrics.expected_calibration_error(true, distribution, LEVELS) < 0.015
    sure = np.eye(3)[distribution.argmax(axis=1)]
    missed = (np.asarray(LEVELS)[distribution.argmax(axis=1)] != true).mean()
    assert metrics.expected_calibration_error(true, sure, LEVELS) == pytest.approx(missed)


def test_calibration_error_by_hand():
    distribution = [[0.62, 0.38, 0.0]] * 2 + [[0.0, 0.05, 0.95]] * 2
    found = metrics.expected_calibration_error([1, 2, 5, 5], distribution, LEVELS)
    assert found == pytest.approx((abs(1 - 1.24) + abs(2 - 1.9)) / 4)


@pytest.mark.parametrize("metric", [metrics.log_loss, metrics.expected_calibration_error])
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


def test_probabilities_are_not_negative():
    with pytest.raises(ValueError, match="in row 1 are not all >= 0"):
        metrics.log_loss([1, 2], [[0.5, 0.5], [1.5, -0.5]], [1, 2])
