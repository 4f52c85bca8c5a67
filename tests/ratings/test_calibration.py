"""From margins to levels and to probabilities that can be trusted."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import expit
from sklearn.isotonic import isotonic_regression

import marginmf
from marginmf.datasets import make_ratings
from marginmf.ratings import MMMF, Ratings
from marginmf.ratings.fitting.calibration import (
    MANY_LEVELS,
    Calibrator,
    certainty,
    count_above,
    distribution_of,
    features_of,
    first_below,
)
from marginmf.ratings.fitting.fallback import LevelFrequencies


def above(calibrator, features):
    """Return what `Calibrator.above_pairs` gives for the features of pairs, by NumPy alone."""
    log_odds = calibrator.part(features, np.arange(features.shape[1])) + calibrator.intercepts
    shrink, shift = certainty(log_odds.shape[1])
    found = np.minimum.accumulate(expit(log_odds), axis=1)
    if calibrator.unimodal:
        free = distribution_of(found)
        rough = dips(free)
        smooth = pooled(free[rough], free[rough].argmax(axis=1))
        found[rough] = 1.0 - smooth.cumsum(axis=1)[:, :-1]
    return shrink * found + shift


def pooled(distributions, modes):
    """Return distributions once neighbours share a mean that are out of order with the modes."""
    found = distributions.copy()
    for row, mode in zip(found, modes, strict=True):
        if mode > 0:
            row[:mode] = isotonic_regression(row[:mode])
        if mode < len(row) - 1:
            row[mode + 1 :] = isotonic_regression(row[mode + 1 :], increasing=False)
    return found


def dips(distribution, tolerance=0.0):
    """Whether each distribution rises again after having fallen."""
    steps = np.diff(distribution, axis=1)
    fell = np.maximum.accumulate(steps < -tolerance, axis=1)
    return (fell & (steps > tolerance)).any(axis=1)


def ordinal(n_levels, n=20_000, seed=0):
    """Levels drawn from known probabilities, logistic in one score."""
    rng = np.random.default_rng(seed)
    score = 2 * rng.normal(size=n)
    cuts = np.linspace(-2, 2, n_levels - 1)
    above = expit(score[:, None] - cuts)
    codes = (rng.random((n, 1)) < above).sum(axis=1)
    return score[:, None] - cuts, above, codes


@pytest.mark.parametrize("n_levels", [2, 5, MANY_LEVELS + 4])
def test_known_probabilities_are_found(n_levels):
    margins, chances, codes = ordinal(n_levels)
    found = above(Calibrator.fit(margins, codes, n_levels), margins)
    assert np.abs(found - chances).mean() < 0.01


def test_the_scale_of_margins_does_not_matter():
    margins, _, codes = ordinal(5)
    one = above(Calibrator.fit(margins, codes, 5), margins)
    other = above(Calibrator.fit(1000 * margins, codes, 5), 1000 * margins)
    np.testing.assert_allclose(one, other, atol=1e-6)


def test_infinite_margins_are_clipped():
    margins, _, codes = ordinal(5, n=500)
    margins[:10, 0], margins[10:20, 3] = np.inf, -np.inf
    found = above(Calibrator.fit(margins, codes, 5), margins)
    assert np.isfinite(found).all()


def test_one_answer_only_and_constant_margins():
    margins, codes = np.zeros((30, 2)), np.ones(30, int)
    distribution = distribution_of(above(Calibrator.fit(margins, codes, 3), margins))
    assert (distribution[:, 1] > 0.9).all()
    assert (distribution[:, [0, 2]] > 0).all()


TABLE = make_ratings(40, 25, n_factors=2, observed=0.5, random_state=0)
DATA = Ratings.of(TABLE.pairs, TABLE.ratings)


def calibrated_pairs(n_pairs, n_kinds, dtype=np.float64, unimodal=False):
    """Return a calibrator, level frequencies, and margins, users and items of some pairs."""
    rng, frequencies = np.random.default_rng(0), LevelFrequencies.of(DATA)
    users, items = rng.integers(40, size=n_pairs), rng.integers(25, size=n_pairs)
    margins = rng.normal(scale=3, size=(n_pairs, 4 * n_kinds)).astype(dtype)
    margins[::7, 0], margins[1::7, -1] = np.inf, -np.inf
    features = features_of([margins], frequencies, users, items)
    calibrator = Calibrator.fit(features, rng.integers(5, size=n_pairs), 5)
    # Weights that matter, and chances that rise from level to level here and there.
    weights = rng.normal(size=calibrator.weights.shape)
    calibrator = replace(calibrator, weights=weights, unimodal=unimodal)
    return calibrator, frequencies, margins, users, items


@pytest.mark.parametrize("n_pairs", [3, 30, 500])
@pytest.mark.parametrize("n_kinds", [1, 2])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("unimodal", [False, True])
def test_pairs_have_the_probabilities_of_their_features(n_pairs, n_kinds, dtype, unimodal):
    calibrator, *pairs = calibrated_pairs(n_pairs, n_kinds, dtype, unimodal)
    frequencies, margins, users, items = pairs
    expected = above(calibrator, features_of([margins], frequencies, users, items))
    found = calibrator.above_pairs(margins, frequencies, users, items)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)
    # Chances fall from level to level, and no level is impossible.
    assert (np.diff(found, axis=1) < 0).all()
    np.testing.assert_allclose(distribution_of(found).sum(axis=1), 1.0)
    assert (distribution_of(found) > 5e-5).all()


@pytest.mark.parametrize("unimodal", [False, True])
def test_other_pairs_and_threads_do_not_change_a_bit(unimodal):
    calibrator, frequencies, *columns = calibrated_pairs(20_000, 1, unimodal=unimodal)
    together = calibrator.above_pairs(columns[0], frequencies, *columns[1:])
    threaded = calibrator.above_pairs(columns[0], frequencies, *columns[1:], n_threads=3)
    np.testing.assert_array_equal(threaded, together)
    for part in (slice(5, 6), slice(7, 10), slice(0, 33), slice(1, 99)):
        margins, users, items = (column[part] for column in columns)
        alone = calibrator.above_pairs(margins, frequencies, users, items)
        np.testing.assert_array_equal(alone, together[part])


def test_no_pairs_have_no_probabilities():
    calibrator, frequencies, *columns = calibrated_pairs(30, 1)
    margins, users, items = (column[:0] for column in columns)
    assert calibrator.above_pairs(margins, frequencies, users, items).shape == (0, 4)


log_odds = arrays(
    np.float64, st.tuples(st.integers(1, 5), st.integers(1, 8)), elements=st.floats(-40, 40)
)


@settings(deadline=None)
@given(z=log_odds)
def test_unimodal_distributions(z):
    n_steps = z.shape[1]
    free, unimodal = (distribution_of(chances(z, which)) for which in (False, True))
    # The most probable level stays, and so does its probability.
    modes = unimodal.argmax(axis=1)
    np.testing.assert_allclose(free[np.arange(len(z)), modes], free.max(axis=1), atol=1e-14)
    np.testing.assert_allclose(unimodal, pooled(free, modes), atol=1e-14)
    assert not dips(unimodal, 1e-14).any()
    np.testing.assert_allclose(unimodal.sum(axis=1), 1.0, rtol=1e-14)
    assert (unimodal > 0.9e-4 / (1 + 1e-4 * (n_steps + 1))).all()


def chances(log_odds, unimodal):
    """Return what is made of log-odds that a pair has from a margin for each of them."""
    n_steps = log_odds.shape[1]
    no_items = replace(LevelFrequencies.of(DATA), user_biases=None, item_biases=None)
    counts = np.zeros((1, n_steps + 1), int)
    frequencies = replace(no_items, by_user=counts, by_item=counts, overall=np.ones(n_steps + 1))
    weights = np.hstack([np.eye(n_steps), np.zeros((n_steps, 2 * n_steps))])
    bounds = np.array([[-50.0], [50.0]]) * np.ones(3 * n_steps)
    calibrator = Calibrator(weights, np.zeros(n_steps), bounds, unimodal)
    nobody = np.zeros(len(log_odds), int)
    return calibrator.above_pairs(log_odds, frequencies, nobody, nobody)


def test_dips_that_are_noise_are_smoothed_away():
    rng = np.random.default_rng(0)
    margins, _, codes = ordinal(5, n=1000)
    features = np.hstack([margins, rng.normal(size=(1000, 40))])
    calibrator = Calibrator.fit(features, codes, 5)
    assert calibrator.unimodal
    # Far more of them would have dips, which chance alone has put there.
    rough = replace(calibrator, unimodal=False)
    assert dips(distribution_of(above(rough, features))).mean() > 0.05
    assert not dips(distribution_of(above(calibrator, features)), 1e-12).any()


def test_dips_that_are_real_stay():
    # Half of the users never give the second and the fourth level.
    margins, _, codes = ordinal(5)
    odd = np.arange(len(codes)) % 2 == 0
    codes[odd] = codes[odd] // 2 * 2
    features = np.column_stack([margins, odd])
    calibrator = Calibrator.fit(features, codes, 5)
    assert not calibrator.unimodal
    assert dips(distribution_of(above(calibrator, features)))[odd].mean() > 0.5


@pytest.mark.parametrize("unimodal", [False, True])
def test_files_keep_whether_distributions_are_unimodal(unimodal, tmp_path):
    model = MMMF(2, 1.0, max_iter=3, random_state=0).fit(TABLE.pairs, TABLE.ratings)
    weights = np.random.default_rng(0).normal(size=model._calibrator.weights.shape)
    model._calibrator = replace(model._calibrator, weights=weights, unimodal=unimodal)
    model.save(tmp_path / "model.marginmf")
    loaded = marginmf.load(tmp_path / "model.marginmf")
    assert loaded._calibrator.unimodal is unimodal
    found = loaded.predict_proba(TABLE.pairs)
    np.testing.assert_array_equal(found, model.predict_proba(TABLE.pairs))
    assert dips(found, 1e-12).any() != unimodal


def noisy_ordinal(n_levels, variance, n=60_000, seed=0):
    """Margins of known probabilities, and the same ones with noise of a given variance."""
    margins, chances, codes = ordinal(n_levels, n, seed)
    errors = np.random.default_rng(seed + 1).normal(scale=variance**0.5, size=(n, 1))
    return margins, margins + errors, chances, codes


@pytest.mark.parametrize("variance", [0.25, 1.0])
def test_weights_fitted_to_noisy_margins_are_right_for_margins_without_noise(variance):
    margins, noisy, chances, codes = noisy_ordinal(5, variance)
    # The margins of all levels share one error.
    noise = variance * np.ones((4, 4))
    found = above(Calibrator.fit(noisy, codes, 5, noise), margins)
    naive = above(Calibrator.fit(noisy, codes, 5), margins)
    assert np.abs(found - chances).mean() < 0.01
    assert np.abs(found - chances).mean() < 0.3 * np.abs(naive - chances).mean()


def test_no_noise_changes_nothing():
    margins, _, codes = ordinal(5)
    plain = above(Calibrator.fit(margins, codes, 5), margins)
    without = above(Calibrator.fit(margins, codes, 5, np.zeros((4, 4))), margins)
    np.testing.assert_allclose(without, plain, atol=1e-6)


def test_more_noise_than_there_is_variance_leaves_finite_weights():
    margins, _, codes = ordinal(5, n=500)
    found = above(Calibrator.fit(margins, codes, 5, 100.0 * np.eye(4)), margins)
    assert np.isfinite(found).all()


# Other work on the machine must not fail a test.
patient = settings(deadline=None)

margins = arrays(
    np.float64, st.tuples(st.integers(1, 6), st.integers(1, 5)), elements=st.integers(-2, 2)
)


@patient
@given(m=margins)
def test_count_above_counts_the_thresholds_that_were_passed(m: np.ndarray) -> None:
    assert count_above(m).tolist() == [sum(x > 0 for x in row) for row in m]


@patient
@given(m=margins)
def test_first_below_is_the_first_stage_that_says_no(m: np.ndarray) -> None:
    expected = [next((q for q, x in enumerate(row) if x < 0), len(row)) for row in m]
    assert first_below(m).tolist() == expected


@patient
@given(m=margins)
def test_both_agree_where_margins_fall(m: np.ndarray) -> None:
    # Shifted off zero, where they differ on purpose: theta_{r-1} < x <= theta_r against x >= theta.
    falling = -np.sort(-m, axis=1) + 0.5
    assert count_above(falling).tolist() == first_below(falling).tolist()


def test_score_on_the_threshold() -> None:
    assert count_above(np.array([[0.0]])).tolist() == [0]
    assert first_below(np.array([[0.0]])).tolist() == [1]


def test_infinite_margins() -> None:
    m = np.array([[np.inf, 1.0, -np.inf]])
    assert count_above(m).tolist() == [2]
    assert first_below(m).tolist() == [2]


def test_no_rows() -> None:
    assert count_above(np.empty((0, 4))).shape == (0,)
    assert first_below(np.empty((0, 4))).shape == (0,)
