"""The line searches along functions of one number."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginmf.solvers.descent import SUFFICIENT_FALL, Backtracking, Step, StrongWolfe, Walk

# Value and slope of smooth functions that fall at 0 and have a minimum further on.
SMOOTH = {
    "quadratic": lambda a: ((a - 3.0) ** 2, 2 * (a - 3.0)),
    "quartic": lambda a: ((a - 1.0) ** 4 - a, 4 * (a - 1.0) ** 3 - 1),
    "far": lambda a: (1e-4 * (a - 800.0) ** 2, 2e-4 * (a - 800.0)),
    "near": lambda a: (1e6 * (a - 2e-4) ** 2, 2e6 * (a - 2e-4)),
    "wavy": lambda a: (0.1 * a * a - np.sin(3 * a), 0.2 * a - 3 * np.cos(3 * a)),
    "steep wall": lambda a: (np.cosh(min(a, 300.0)) - 5 * a, np.sinh(min(a, 300.0)) - 5),
}


def walk_on(function) -> Walk:
    def walk(length: float) -> Step:
        value, slope = map(float, function(length))
        return Step(length, value, slope, np.array([length]), np.array([slope]))

    return walk


def falls_enough(step: Step, start: Step) -> bool:
    return step.value <= start.value + SUFFICIENT_FALL * step.length * start.slope


@pytest.mark.parametrize("name", SMOOTH)
@pytest.mark.parametrize("curvature", [0.1, 0.9])
@given(exponent=st.floats(-3, 3))
@settings(deadline=None)
def test_accepted_steps_satisfy_the_strong_wolfe_conditions(
    name: str, curvature: float, exponent: float
) -> None:
    walk = walk_on(SMOOTH[name])
    start = walk(0.0)
    step = StrongWolfe(curvature)(walk, start, 10.0**exponent)
    assert step is not None
    assert falls_enough(step, start)
    assert abs(step.slope) <= curvature * abs(start.slope)


@pytest.mark.parametrize("name", SMOOTH)
@given(exponent=st.floats(-3, 3))
@settings(deadline=None)
def test_backtracking_finds_a_sufficient_fall(name: str, exponent: float) -> None:
    walk = walk_on(SMOOTH[name])
    start = walk(0.0)
    step = Backtracking()(walk, start, 10.0**exponent)
    assert step is not None
    assert falls_enough(step, start)


@pytest.mark.parametrize("search", [Backtracking(), StrongWolfe(0.1), StrongWolfe(0.9)])
def test_step_belongs_to_the_place_it_names(search: StrongWolfe | Backtracking) -> None:
    walk = walk_on(SMOOTH["quartic"])
    step = search(walk, walk(0.0), 5.0)
    assert step is not None
    assert step[:3] == walk(step.length)[:3]
    assert step.point[0] == step.length


@pytest.mark.parametrize("search", [Backtracking(), StrongWolfe()])
def test_uphill_all_the_way_gives_no_step(search: StrongWolfe | Backtracking) -> None:
    # The slope claims that it goes down, as a wrong or inexact gradient would.
    walk = walk_on(lambda a: (1.0 + a, -1.0))
    assert search(walk, walk(0.0), 1.0) is None


@pytest.mark.parametrize("beyond", [np.inf, np.nan])
@pytest.mark.parametrize("search", [Backtracking(), StrongWolfe(0.1), StrongWolfe(0.9)])
def test_values_that_are_not_finite_are_too_far(
    search: StrongWolfe | Backtracking, beyond: float
) -> None:
    walk = walk_on(lambda a: ((a - 1.0) ** 2, 2 * (a - 1.0)) if a < 1.5 else (beyond, np.nan))
    step = search(walk, walk(0.0), 1000.0)
    assert step is not None
    assert step.length < 1.5
    assert step.value < 1.0


@pytest.mark.parametrize("search", [Backtracking(), StrongWolfe(0.1), StrongWolfe(0.9)])
@given(
    kink=st.sampled_from([0.5, 1.0, 2.0, 4.0, 10.0, 1 / 3]),
    rise=st.floats(0.01, 1e4),
    length=st.sampled_from([0.01, 0.5, 1.0, 2.0, 7.0]),
)
@settings(deadline=None)
def test_kink_is_passed_or_met_but_never_breaks_the_search(
    search: StrongWolfe | Backtracking, kink: float, rise: float, length: float
) -> None:
    # As with the hinge loss: the minimum is a corner, where no step is ever flat.
    def corner(a: float) -> tuple[float, float]:
        return (kink - a, -1.0) if a <= kink else (rise * (a - kink), rise)

    walk = walk_on(corner)
    step = search(walk, walk(0.0), length)
    assert step is not None
    assert falls_enough(step, walk(0.0))


def test_trials_are_limited() -> None:
    lengths: list[float] = []

    def falling_for_ever(a: float) -> tuple[float, float]:
        lengths.append(a)
        return -a, -1.0

    walk = walk_on(falling_for_ever)
    step = StrongWolfe(0.9, max_trials=10)(walk, walk(0.0), 1.0)
    assert step is not None
    assert len(lengths) <= 13
    lengths.clear()
    walk = walk_on(lambda a: (lengths.append(a) or 1.0 + a, -1.0))
    assert Backtracking(max_trials=7)(walk, walk(0.0), 1.0) is None
    assert len(lengths) == 8
