"""The worked examples of the thesis, from its printed factors to its printed predictions."""

import numpy as np
import pytest

from marginmf.losses import TWO_LEVEL
from marginmf.ratings import BMMMF, HMF, MMMF
from marginmf.thresholds import REACH, ThresholdLoss
from studies.thesis.published import worked_example


def observed_pairs(Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the pairs with a rating (0 is unobserved in the thesis) and their ratings."""
    return np.argwhere(Y != 0), Y[Y != 0]


def all_pairs(Y: np.ndarray) -> np.ndarray:
    return np.argwhere(np.isfinite(Y))


def complete(model: BMMMF | MMMF | HMF, Y: np.ndarray) -> np.ndarray:
    """Return observed entries as observed, and predictions elsewhere."""
    return np.where(Y != 0, Y, model.predict(all_pairs(Y), output="rule").reshape(Y.shape))


# --- two levels, 7 x 7 --------------------------------------------------------------------------

EXAMPLE = worked_example("likes", corrected=True)
LIKES, LIKES_U, LIKES_V = EXAMPLE["Y"], EXAMPLE["U"], EXAMPLE["V"]
LIKES_SCORES = EXAMPLE["scores"]


def likes_model(threshold: float) -> BMMMF:
    model = BMMMF(n_factors=2, threshold=threshold, max_iter=1, random_state=0)
    model.fit(*observed_pairs(LIKES))
    model.user_factors_, model.item_factors_ = LIKES_U, LIKES_V
    return model


def test_likes_have_the_printed_scores() -> None:
    scores = likes_model(0.0).decision_function(all_pairs(LIKES)).reshape(7, 7)
    np.testing.assert_allclose(scores, LIKES_SCORES, atol=0.015)


@pytest.mark.parametrize("name", ["hinge", "smooth_hinge"])
def test_likes_have_the_printed_losses(name: str) -> None:
    pairs, y = observed_pairs(LIKES)
    losses = np.zeros((7, 7))
    losses[tuple(pairs.T)] = TWO_LEVEL[name].value(y * likes_model(0.0).decision_function(pairs))
    np.testing.assert_allclose(losses, EXAMPLE[name], atol=0.006)


def test_likes_are_completed_as_the_figure_shows() -> None:
    # y_34 is predicted +1: V_4 lies on the positive side of U_3, whose threshold is 0.1.
    completed = complete(likes_model(EXAMPLE["threshold"]), LIKES)
    assert completed[2, 3] == 1
    expected = np.where(LIKES != 0, LIKES, np.where(LIKES_SCORES >= 0.1, 1, -1))
    np.testing.assert_array_equal(completed, expected)
    # The threshold matters: the score of y_26 is printed as 0.09.
    assert completed[1, 5] == -1
    assert complete(likes_model(0.0), LIKES)[1, 5] == 1


# --- thresholds, 10 x 10 ------------------------------------------------------------------------

STARS_EXAMPLE = worked_example("stars")
STARS, STARS_U, STARS_V = STARS_EXAMPLE["Y"], STARS_EXAMPLE["U"], STARS_EXAMPLE["V"]
STARS_THETAS, STARS_SCORES = STARS_EXAMPLE["thresholds"], STARS_EXAMPLE["scores"]


def stars_model() -> MMMF:
    model = MMMF(n_factors=2, max_iter=1, random_state=0).fit(*observed_pairs(STARS))
    model.user_factors_, model.item_factors_ = STARS_U, STARS_V
    model.thresholds_ = STARS_THETAS
    return model


def test_stars_have_the_printed_scores() -> None:
    margins = stars_model().decision_function(all_pairs(STARS)).reshape(10, 10, 4)
    for r in range(4):
        scores = margins[:, :, r] + STARS_THETAS[:, [r]]
        np.testing.assert_allclose(scores, STARS_SCORES, atol=0.015)


@pytest.mark.parametrize("construction", ["immediate", "all"])
def test_stars_have_the_printed_losses(construction: str) -> None:
    assert STARS[0, 2] == 4
    score = stars_model().decision_function([(0, 2)])[0] + STARS_THETAS[0]
    loss = ThresholdLoss(TWO_LEVEL["smooth_hinge"], REACH[construction])
    value = loss.value(score[:1], np.array([3]), STARS_THETAS[:1])[0]
    assert value == pytest.approx(STARS_EXAMPLE["loss_of_y13"][construction], abs=0.01)


def test_stars_are_completed_by_the_corrected_rule() -> None:
    # theta_{r-1} < x <= theta_r is level r (METHODS.md, slip 5); thetas are in order here.
    edges = np.hstack([np.full((10, 1), -np.inf), STARS_THETAS, np.full((10, 1), np.inf)])
    expected = STARS.copy()
    for i, j in np.argwhere(STARS == 0):
        (r,) = [r for r in range(1, 6) if edges[i, r - 1] < STARS_SCORES[i, j] <= edges[i, r]]
        expected[i, j] = r
    np.testing.assert_array_equal(complete(stars_model(), STARS), expected)


# --- the hierarchy, 5 x 7 -----------------------------------------------------------------------

HIERARCHY = worked_example("hierarchy")
TOY, TOY_COMPLETED, STAGES = HIERARCHY["Y"], HIERARCHY["completed"], HIERARCHY["stages"]


def toy_model() -> HMF:
    model = HMF(n_factors=2, max_iter=1, random_state=0).fit(*observed_pairs(TOY))
    model.user_factors_ = np.stack([stage["U"] for stage in STAGES])
    model.item_factors_ = np.stack([stage["V"] for stage in STAGES])
    return model


@pytest.mark.parametrize("q", [1, 2, 3, 4])
def test_every_stage_of_the_hierarchy_predicts_as_printed(q: int) -> None:
    margins = toy_model().decision_function(all_pairs(TOY))[:, q - 1].reshape(5, 7)
    np.testing.assert_array_equal(np.where(margins >= 0, 1, -1), STAGES[q - 1]["predicted"])


def test_hierarchy_completes_the_matrix_stage_by_stage() -> None:
    completed = complete(toy_model(), TOY)
    np.testing.assert_array_equal(completed, TOY_COMPLETED)
    for q in (1, 2, 3, 4):
        np.testing.assert_array_equal(
            np.where(completed <= q, completed, 0), STAGES[q - 1]["completed"]
        )
