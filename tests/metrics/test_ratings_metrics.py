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
