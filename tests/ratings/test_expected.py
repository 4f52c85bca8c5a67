"""Expected ratings of pairs, and of blocks: two ways to one number."""

import numpy as np
import pytest
from scipy.special import expit

from contracts import synthetic
from marginmf.ratings import HMF, MMMF
from marginmf.ratings.expected import Calibration, expected_above_lowest, sum_of_margins

SCALE = (0.5, 1.0, 2.0, 4.0)


def random_calibration(model, seed=0):
    rng = np.random.default_rng(seed)
    n_cuts = len(model.levels_) - 1
    return Calibration(
        weights=np.eye(n_cuts) + 0.3 * rng.normal(size=(n_cuts, n_cuts)),
        intercepts=rng.normal(size=n_cuts),
        user_terms=rng.normal(size=(len(model.users_), n_cuts)),
        item_terms=rng.normal(size=(len(model.items_), n_cuts)),
        bound=2.0,
    )


@pytest.fixture(params=[MMMF, HMF])
def model(request):
    return request.param(n_factors=3, reg=0.5, random_state=0).fit(*synthetic(SCALE))


def test_identity_takes_margins_for_log_odds():
    margins = np.array([[1.0, -2.0], [100.0, -np.inf]])
    log_odds = Calibration.identity(2).log_odds(margins, np.array([0, 1]), np.array([0, 0]))
    np.testing.assert_array_equal(log_odds, [[1.0, -2.0], [30.0, -30.0]])


def test_log_odds_are_the_sum_in_the_docstring(model):
    calibration = random_calibration(model)
    users, items = np.array([3, 5]), np.array([7, 2])
    margins = model._margins(users, items)
    log_odds = calibration.log_odds(margins, users, items)
    for k, (i, j) in enumerate(zip(users, items, strict=True)):
        for q in range(3):
            expected = calibration.intercepts[q]
            expected += calibration.user_terms[i, q] + calibration.item_terms[j, q]
            for p in range(3):
                expected += calibration.weights[q, p] * np.clip(margins[k, p], -2.0, 2.0)
            assert log_odds[k, q] == pytest.approx(expected)


def test_the_mean_is_that_of_the_distribution():
    levels, log_odds = np.array(SCALE), np.array([[3.0, 0.5, -1.0]])
    above = np.concatenate([[1.0], expit(log_odds[0]), [0.0]])
    assert expected_above_lowest(log_odds, levels)[0] == pytest.approx(
        -np.diff(above) @ levels - levels[0]
    )


def test_ties_leave_infinite_margins_out():
    margins = np.array([[np.inf, 1.0, -np.inf], [1.0, 2.0, 3.0]])
    np.testing.assert_array_equal(sum_of_margins(margins), [1.0, 6.0])


@pytest.mark.parametrize("calibrated", [False, True])
@pytest.mark.parametrize("items", [slice(4, 19), np.array([8, 2, 29])], ids=["slice", "codes"])
def test_blocks_agree_with_pairs(model, monkeypatch, calibrated, items):
    if calibrated:
        calibration = random_calibration(model)
        monkeypatch.setattr(model, "_calibration", lambda: calibration)
    users, codes = np.array([0, -1, 17, 39]), np.arange(30)[items]
    expected, ties = model._expected_block(users, items)
    rows, columns = np.repeat(users, len(codes)), np.tile(codes, len(users))
    for block, pairs in zip((expected, ties), model._expected_pairs(rows, columns), strict=True):
        assert block.dtype == np.float32
        np.testing.assert_allclose(block.ravel(), pairs, rtol=1e-5, atol=2e-5)


def test_recommendations_follow_the_calibration(model, monkeypatch):
    calibration = random_calibration(model)
    monkeypatch.setattr(model, "_calibration", lambda: calibration)
    best = model.recommend(3, n=30, exclude_seen=False)
    users, items = np.full(30, 3), np.arange(30)
    expected, _ = model._expected_pairs(users, items)
    np.testing.assert_array_equal(best["item"], np.argsort(-expected, kind="stable"))
    np.testing.assert_array_equal(best["score"], SCALE[0] + np.sort(expected)[::-1])
