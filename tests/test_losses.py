"""The losses against their definitions, written case by case."""

import math

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from marginmf import losses
from marginmf.losses import REAL, TWO_LEVEL, RealLoss, TwoLevelLoss, beta_divergence

# Other work on the machine must not fail a test.
patient = settings(deadline=None)

CONVEX = [loss for loss in TWO_LEVEL.values() if loss.convex]
POSITIVE = [losses.kullback_leibler, losses.itakura_saito, beta_divergence(1.5), beta_divergence(3)]

margins = st.floats(-20, 20)
positives = st.floats(0.05, 20)


def by_name(loss: TwoLevelLoss | RealLoss) -> str:
    return loss.name


def smooth_hinge_by_cases(z: float) -> float:
    if z >= 1:
        return 0.0
    return (1 - z) ** 2 / 2 if z > 0 else 0.5 - z


BY_CASES = {
    "zero_one": lambda z: 1.0 if z < 0 else 0.0,
    "hinge": lambda z: 0.0 if z >= 1 else 1 - z,
    "smooth_hinge": smooth_hinge_by_cases,
    "modified_square": lambda z: 0.0 if z >= 1 else (1 - z) ** 2,
    "logistic": lambda z: math.log(1 + math.exp(-z)),
}


@pytest.mark.parametrize("name", TWO_LEVEL)
@patient
@given(z=margins)
def test_two_level_loss_is_its_definition(name: str, z: float) -> None:
    assert TWO_LEVEL[name].value(z) == pytest.approx(BY_CASES[name](z), abs=1e-12)


@pytest.mark.parametrize("name", TWO_LEVEL)
def test_two_level_loss_is_its_definition_at_the_joints(name: str) -> None:
    for z in (-1.0, -0.0, 0.0, 1.0, np.nextafter(1, 0), np.nextafter(0, 1), np.nextafter(0, -1)):
        assert TWO_LEVEL[name].value(float(z)) == pytest.approx(BY_CASES[name](z), abs=1e-15)


def test_smooth_hinge_derivative_is_its_definition() -> None:
    z = np.array([-3.0, 0.0, 0.25, 1.0, 5.0])
    np.testing.assert_array_equal(losses.smooth_hinge.derivative(z), [-1.0, -1.0, -0.75, 0.0, 0.0])


@pytest.mark.parametrize("loss", CONVEX, ids=by_name)
@patient
@given(z=margins)
def test_two_level_derivative_is_the_slope(loss: TwoLevelLoss, z: float) -> None:
    h = 1e-5
    assume(min(abs(z), abs(z - 1)) > 2 * h)
    slope = (loss.value(z + h) - loss.value(z - h)) / (2 * h)
    assert loss.derivative(z) == pytest.approx(slope, abs=1e-7)


@pytest.mark.parametrize("loss", CONVEX, ids=by_name)
@patient
@given(a=margins, b=margins)
def test_every_tangent_lies_below_a_convex_loss(loss: TwoLevelLoss, a: float, b: float) -> None:
    # Also at kinks, where the derivative has to be one of the subgradients.
    assert loss.value(b) >= loss.value(a) + loss.derivative(a) * (b - a) - 1e-9


@pytest.mark.parametrize("loss", CONVEX, ids=by_name)
@patient
@given(a=margins, b=margins)
def test_convex_losses_never_rise_with_the_margin(loss: TwoLevelLoss, a: float, b: float) -> None:
    assert loss.value(max(a, b)) <= loss.value(min(a, b)) + 1e-12


@pytest.mark.parametrize("loss", [losses.hinge, losses.modified_square], ids=by_name)
@patient
@given(z=margins)
def test_hinge_and_modified_square_bound_the_zero_one_loss(loss: TwoLevelLoss, z: float) -> None:
    assert loss.value(z) >= losses.zero_one.value(z)


@patient
@given(z=margins)
def test_smooth_hinge_lies_within_a_half_below_the_hinge(z: float) -> None:
    # It is the hinge less 1/2 below zero, so twice the smooth hinge bounds the zero-one loss.
    smooth, sharp = losses.smooth_hinge.value(z), losses.hinge.value(z)
    assert sharp - 0.5 - 1e-12 <= smooth <= sharp + 1e-12
    assert 2 * smooth >= losses.zero_one.value(z)


@patient
@given(z=margins)
def test_logistic_in_bits_bounds_the_zero_one_loss(z: float) -> None:
    assert losses.logistic.value(z) / math.log(2) >= losses.zero_one.value(z)


def test_logistic_neither_overflows_nor_loses_its_slope() -> None:
    z = np.array([-1000.0, 0.0, 1000.0])
    with np.errstate(all="raise", under="ignore"):
        np.testing.assert_allclose(losses.logistic.value(z), [1000.0, math.log(2), 0.0])
        np.testing.assert_allclose(losses.logistic.derivative(z), [-1.0, -0.5, 0.0])


@pytest.mark.parametrize("loss", TWO_LEVEL.values(), ids=by_name)
def test_two_level_losses_keep_float32(loss: TwoLevelLoss) -> None:
    z = np.array([-1.0, 0.5, 2.0], np.float32)
    assert loss.value(z).dtype == np.float32
    assert loss.derivative(z).dtype == np.float32


@pytest.mark.parametrize("loss", [losses.squared, *POSITIVE], ids=by_name)
def test_real_losses_keep_float32(loss: RealLoss) -> None:
    y, x = np.array([1.0, 5.0], np.float32), np.array([2.0, 0.5], np.float32)
    assert loss.value(y, x).dtype == np.float32
    assert loss.derivative(y, x).dtype == np.float32


REAL_BY_CASES = {
    "squared": lambda y, x: (y - x) ** 2,
    "kullback_leibler": lambda y, x: y * math.log(y / x) - y + x,
    "itakura_saito": lambda y, x: y / x - math.log(y / x) - 1,
}


@pytest.mark.parametrize("name", REAL)
@patient
@given(y=positives, x=positives)
def test_real_loss_is_its_definition(name: str, y: float, x: float) -> None:
    assert REAL[name].value(y, x) == pytest.approx(REAL_BY_CASES[name](y, x), abs=1e-9)


@patient
@given(y=positives, x=positives, beta=st.floats(0.1, 4).filter(lambda b: abs(b - 1) > 0.05))
def test_beta_divergence_is_its_definition(y: float, x: float, beta: float) -> None:
    expected = (y**beta + (beta - 1) * x**beta - beta * y * x ** (beta - 1)) / (beta * (beta - 1))
    assert beta_divergence(beta).value(y, x) == pytest.approx(expected, rel=1e-9, abs=1e-7)


@pytest.mark.parametrize("loss", [losses.squared, *POSITIVE], ids=by_name)
@patient
@given(y=positives, x=positives)
def test_real_derivative_is_the_slope(loss: RealLoss, y: float, x: float) -> None:
    h = 1e-5 * x
    slope = (loss.value(y, x + h) - loss.value(y, x - h)) / (2 * h)
    # Subtracting two values leaves an error of their rounding over the step.
    noise = 1e-15 * (abs(loss.value(y, x)) + y**3 + x**3 + 100) / h
    assert loss.derivative(y, x) == pytest.approx(slope, rel=1e-6, abs=1e-6 + noise)


@pytest.mark.parametrize("loss", [losses.squared, *POSITIVE], ids=by_name)
@patient
@given(y=positives, x=positives)
def test_real_loss_is_zero_exactly_where_the_score_is_right(
    loss: RealLoss, y: float, x: float
) -> None:
    assert loss.value(y, y) == pytest.approx(0.0, abs=1e-9)
    assert loss.derivative(y, y) == pytest.approx(0.0, abs=1e-9)
    if abs(y - x) > 0.01 * y:
        assert loss.value(y, x) > 1e-8


@patient
@given(y=positives, x=positives)
def test_beta_two_is_half_the_squared_loss(y: float, x: float) -> None:
    half = 0.5 * losses.squared.value(y, x)
    assert beta_divergence(2).value(y, x) == pytest.approx(half, rel=1e-9, abs=1e-10)


@pytest.mark.parametrize("beta", [0, 1])
@patient
@given(y=st.floats(0.5, 3), x=st.floats(0.5, 3))
def test_beta_divergence_has_its_limits(beta: int, y: float, x: float) -> None:
    at, near = beta_divergence(beta), beta_divergence(beta + 1e-5)
    assert near.value(y, x) == pytest.approx(at.value(y, x), abs=1e-3)
    assert near.derivative(y, x) == pytest.approx(at.derivative(y, x), abs=1e-3)


@pytest.mark.parametrize("beta", [-0.5, math.nan, math.inf])
def test_beta_must_be_a_number_that_is_not_negative(beta: float) -> None:
    with pytest.raises(ValueError, match=r"beta=.* must be a finite number >= 0"):
        beta_divergence(beta)


def test_losses_are_found_by_name_or_taken_as_they_are() -> None:
    own = TwoLevelLoss("own", np.exp, np.exp)
    assert losses.two_level_loss("hinge") is losses.hinge
    assert losses.two_level_loss(own) is own
    assert losses.real_loss("squared") is losses.squared
    assert losses.real_loss(losses.itakura_saito) is losses.itakura_saito


@pytest.mark.parametrize("unknown", ["hing", None, 3, losses.squared])
def test_unknown_two_level_loss_is_refused_with_the_choices(unknown: object) -> None:
    with pytest.raises(ValueError, match=r"is not known\. Choose one of 'smooth_hinge', 'hinge'"):
        losses.two_level_loss(unknown)


@pytest.mark.parametrize("unknown", ["hinge", None, losses.hinge])
def test_unknown_real_loss_is_refused_with_the_choices(unknown: object) -> None:
    with pytest.raises(ValueError, match=r"Choose one of 'squared', .* or pass a RealLoss"):
        losses.real_loss(unknown)


@pytest.mark.parametrize("loss", ["zero_one", losses.zero_one])
def test_zero_one_loss_cannot_be_minimised(loss: str | TwoLevelLoss) -> None:
    with pytest.raises(ValueError, match=r"'zero_one' cannot be minimised: it is not convex") as no:
        losses.two_level_loss(loss)
    assert "'smooth_hinge', 'hinge', 'modified_square', 'logistic'" in str(no.value)
    assert "'zero_one'" not in str(no.value).partition("Choose")[2]
