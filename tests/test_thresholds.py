"""The ordinal losses against the thesis's example and a loop over thresholds."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginmf.losses import TWO_LEVEL, TwoLevelLoss, smooth_hinge
from marginmf.thresholds import REACH, ProximalLoss, ThresholdLoss
from studies.thesis.published import worked_example

# Other work on the machine must not fail a test.
patient = settings(deadline=None)

CONVEX = [loss for loss in TWO_LEVEL.values() if loss.convex]
CONSTRUCTIONS = ["all", "immediate"]

# The first user of the thesis's 10 x 10 example rates item 3 with four stars.
EXAMPLE = worked_example("stars")
THETAS, FOUR_STARS = EXAMPLE["thresholds"][:1], EXAMPLE["Y"][0, 2:3] - 1
SCORE = EXAMPLE["scores"][0, 2:3]


def by_name(loss: TwoLevelLoss) -> str:
    return loss.name


@pytest.mark.parametrize("construction", CONSTRUCTIONS)
def test_worked_example_of_the_thesis(construction: str) -> None:
    printed = EXAMPLE["loss_of_y13"][construction]
    loss = ThresholdLoss(smooth_hinge, REACH[construction])
    assert loss.value(SCORE, FOUR_STARS, THETAS)[0] == pytest.approx(printed, abs=0.005)


def problem(seed: int, n_levels: int, n: int = 5) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Random scores, levels, and a row of thresholds for each (not even in order)."""
    rng = np.random.default_rng(seed)
    thresholds = rng.normal(size=(n, n_levels - 1))
    return rng.normal(size=n), rng.integers(n_levels, size=n), thresholds


def threshold_oracle(
    base: TwoLevelLoss, construction: str, x: float, stars: int, thetas: np.ndarray
) -> float:
    """METHODS.md: sum over r of h(T (theta_r - x)), T = +1 if r >= y else -1; r from 1."""
    total = 0.0
    for r, theta in enumerate(thetas, start=1):
        if construction == "all" or r in (stars - 1, stars):
            sign = 1 if r >= stars else -1
            total += base.value(sign * (theta - x))
    return total


@pytest.mark.parametrize("construction", CONSTRUCTIONS)
@pytest.mark.parametrize("base", CONVEX, ids=by_name)
@patient
@given(seed=st.integers(0, 2**32 - 1), n_levels=st.integers(2, 7))
def test_threshold_loss_is_its_definition(
    base: TwoLevelLoss, construction: str, seed: int, n_levels: int
) -> None:
    x, levels, thresholds = problem(seed, n_levels)
    expected = [
        threshold_oracle(base, construction, *entry)
        for entry in zip(x, levels + 1, thresholds, strict=True)
    ]
    values = ThresholdLoss(base, REACH[construction]).value(x, levels, thresholds)
    np.testing.assert_allclose(values, expected, atol=1e-12)


@pytest.mark.parametrize("construction", CONSTRUCTIONS)
@pytest.mark.parametrize("base", CONVEX, ids=by_name)
def test_two_levels_and_one_threshold_are_the_two_level_loss(
    base: TwoLevelLoss, construction: str
) -> None:
    x = np.linspace(-3, 3, 31)
    for level, y in ((0, -1.0), (1, 1.0)):
        loss = ThresholdLoss(base, REACH[construction])
        values = loss.value(x, np.full(31, level), np.zeros((31, 1)))
        np.testing.assert_allclose(values, base.value(y * x))


@patient
@given(seed=st.integers(0, 2**32 - 1), n_levels=st.integers(2, 7))
def test_immediate_never_exceeds_all(seed: int, n_levels: int) -> None:
    entries = problem(seed, n_levels)
    immediate, everything = (
        ThresholdLoss(smooth_hinge, REACH[name]).value(*entries) for name in ("immediate", "all")
    )
    assert (immediate <= everything + 1e-12).all()


def difference(value, point: np.ndarray, h: float = 1e-6) -> np.ndarray:
    """Central differences of a function that gives one number for each row of the point."""
    out = np.empty_like(point)
    for place in np.ndindex(point.shape):
        up, down = point.copy(), point.copy()
        up[place] += h
        down[place] -= h
        out[place] = (value(up)[place[0]] - value(down)[place[0]]) / (2 * h)
    return out


@pytest.mark.parametrize("construction", CONSTRUCTIONS)
@pytest.mark.parametrize("base", CONVEX, ids=by_name)
def test_threshold_derivatives_are_slopes(base: TwoLevelLoss, construction: str) -> None:
    x, levels, thresholds = problem(seed=1, n_levels=5, n=12)
    loss = ThresholdLoss(base, REACH[construction])
    by_score, by_threshold = loss.derivatives(x, levels, thresholds)
    slopes = difference(lambda p: loss.value(p, levels, thresholds), x)
    np.testing.assert_allclose(by_score, slopes, atol=1e-8)
    slopes = difference(lambda p: loss.value(x, levels, p), thresholds)
    np.testing.assert_allclose(by_threshold, slopes, atol=1e-8)


@pytest.mark.parametrize("base", CONVEX, ids=by_name)
@patient
@given(seed=st.integers(0, 2**32 - 1), n_levels=st.integers(2, 7))
def test_proximal_loss_is_its_definition(base: TwoLevelLoss, seed: int, n_levels: int) -> None:
    x, levels, _ = problem(seed, n_levels)
    prototypes = np.random.default_rng(seed + 1).normal(size=(len(x), n_levels))
    expected = []
    for score, level, row in zip(x, levels, prototypes, strict=True):
        total = (score - row[level]) ** 2
        for r in range(n_levels):
            if r != level:
                total += base.value((1 if r < level else -1) * (score - row[r]))
        expected.append(total)
    np.testing.assert_allclose(ProximalLoss(base).value(x, levels, prototypes), expected)


@pytest.mark.parametrize("base", CONVEX, ids=by_name)
def test_proximal_derivatives_are_slopes(base: TwoLevelLoss) -> None:
    x, levels, _ = problem(seed=2, n_levels=5, n=12)
    prototypes = np.random.default_rng(3).normal(size=(12, 5))
    loss = ProximalLoss(base)
    by_score, push = loss.derivatives(x, levels, prototypes)
    slopes = difference(lambda p: loss.value(p, levels, prototypes), x)
    np.testing.assert_allclose(by_score, slopes, atol=1e-8)
    slopes = difference(lambda p: loss.value(x, levels, p), prototypes)
    own = np.arange(5) == levels[:, None]
    np.testing.assert_allclose(-push[~own], slopes[~own], atol=1e-8)
    assert (push[own] == 0).all()


@pytest.mark.parametrize("base", CONVEX, ids=by_name)
def test_unused_levels_take_no_part(base: TwoLevelLoss) -> None:
    x, levels = np.array([0.3, -1.2]), np.array([0, 2])
    sparse_row = np.array([[-1.0, np.nan, 0.4, np.nan]] * 2)
    dense_row, dense_levels = np.array([[-1.0, 0.4]] * 2), np.array([0, 1])
    loss = ProximalLoss(base)
    np.testing.assert_allclose(
        loss.value(x, levels, sparse_row), loss.value(x, dense_levels, dense_row)
    )
    by_score, push = loss.derivatives(x, levels, sparse_row)
    dense_by_score, dense_push = loss.derivatives(x, dense_levels, dense_row)
    np.testing.assert_allclose(by_score, dense_by_score)
    np.testing.assert_allclose(push[:, [0, 2]], dense_push)
    assert (push[:, [1, 3]] == 0).all()
