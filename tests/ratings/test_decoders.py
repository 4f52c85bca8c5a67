"""From margins to levels."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from marginmf.ratings.fitting.calibration import count_above, first_below

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
