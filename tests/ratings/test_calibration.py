"""From margins to probabilities."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.special import expit

from marginmf.ratings.calibration import (
    MANY_LEVELS,
    Calibrator,
    distribution_of,
    falling,
    never_certain,
)

PROBABILITIES = hnp.arrays(np.float64, (4, 5), elements=st.floats(0, 1))


@given(PROBABILITIES)
def test_falling_falls_and_leaves_what_falls_alone(above):
    mended = falling(above)
    assert (np.diff(mended, axis=1) <= 1e-15).all()
    ordered = -np.sort(-above, axis=1)
    np.testing.assert_array_equal(falling(ordered), ordered)


@given(PROBABILITIES)
def test_distributions_add_up_and_rule_nothing_out(above):
    distribution = distribution_of(never_certain(falling(above)))
    np.testing.assert_allclose(distribution.sum(axis=1), 1.0)
    assert (distribution > 5e-5).all()


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
    margins, above, codes = ordinal(n_levels)
    found = Calibrator.fit(margins, codes, n_levels).above(margins)
    assert np.abs(found - above).mean() < 0.01


def test_the_scale_of_margins_does_not_matter():
    margins, _, codes = ordinal(5)
    one = Calibrator.fit(margins, codes, 5).above(margins)
    other = Calibrator.fit(1000 * margins, codes, 5).above(1000 * margins)
    np.testing.assert_allclose(one, other, atol=1e-6)


def test_infinite_margins_are_clipped():
    margins, _, codes = ordinal(5, n=500)
    margins[:10, 0], margins[10:20, 3] = np.inf, -np.inf
    found = Calibrator.fit(margins, codes, 5).above(margins)
    assert np.isfinite(found).all()


def test_one_answer_only_and_constant_margins():
    margins, codes = np.zeros((30, 2)), np.ones(30, int)
    distribution = distribution_of(Calibrator.fit(margins, codes, 3).above(margins))
    assert (distribution[:, 1] > 0.9).all()
    assert (distribution[:, [0, 2]] > 0).all()
