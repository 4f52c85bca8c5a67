import math

import pytest

from studies.peers.scaling_report import (
    BYTES_PER_RATING,
    fit_law,
    memory_ratio,
    upper_half,
)


@pytest.mark.parametrize("exponent", [-0.5, 0.0, 1.0, 1.37])
def test_a_power_law_is_found_again(exponent: float) -> None:
    x = [2.0, 10.0, 70.0, 900.0]
    law = fit_law(x, [3.0 * value**exponent for value in x])
    assert law.exponent == pytest.approx(exponent, abs=1e-12)
    assert law.scale == pytest.approx(3.0)
    assert law.error == pytest.approx(1.0)


def test_the_error_is_the_worst_factor() -> None:
    # Through (1, 1), (10, 8), (100, 1) the best power law is the constant 2.
    law = fit_law([1, 10, 100], [1, 8, 1])
    assert law.exponent == pytest.approx(0.0)
    assert law.error == pytest.approx(4.0)


def test_scaling_either_axis_does_not_change_the_exponent() -> None:
    x, y = [1.0, 3.0, 10.0, 40.0], [2.0, 5.0, 30.0, 70.0]
    scaled = fit_law([1000 * value for value in x], [1e-6 * value for value in y])
    assert scaled.exponent == pytest.approx(fit_law(x, y).exponent)


def test_the_upper_half_is_free_of_a_constant_cost() -> None:
    x = [10.0**k for k in range(7)]
    y = [100.0 + value for value in x]
    upper = fit_law(*upper_half(x, y))
    assert fit_law(x, y).exponent < 0.8 < 0.95 < upper.exponent < 1.0


def test_the_upper_half_keeps_the_middle() -> None:
    assert upper_half([1, 10, 100], [7, 8, 9]) == ([10, 100], [8, 9])


@pytest.mark.parametrize(
    ("x", "y", "words"),
    [
        ([1, 2], [1], "2 positions but 1 measurements"),
        ([3, 3], [1, 2], "two different positions"),
        ([1, 2], [0.0, 2], "positive numbers alone, not 0.0"),
        ([1, 2], [math.nan, 2], "not nan"),
    ],
)
def test_what_is_no_law_is_refused(x: list[float], y: list[float], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        fit_law(x, y)


def test_memory_is_measured_in_ratings_and_parameters() -> None:
    needed = 10 * BYTES_PER_RATING + 4
    point = {"peak_bytes": 3 * needed, "n_ratings": 10, "parameter_bytes": 4}
    assert memory_ratio(point) == pytest.approx(3.0)
