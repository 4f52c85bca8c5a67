"""The worked examples of the thesis, from its printed factors to its printed predictions.

A slip beyond METHODS.md's list: the set Omega^3 of the HMF example names 14, 25 and 46, which the
table beside it predicts +1, and lacks 17, 24, 26 and 47, which it predicts -1.  (With 46 in it the
completed matrix would have a 3 there, not its 4.)
"""

import numpy as np
import pytest

from marginmf.losses import TWO_LEVEL
from marginmf.ratings import BMMMF, HMF, MMMF
from marginmf.thresholds import REACH, ThresholdLoss


def table(text: str) -> np.ndarray:
    return np.array([[float(number) for number in row.split()] for row in text.split("|")])


def observed_pairs(Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the pairs with a rating (0 is unobserved in the thesis) and their ratings."""
    return np.argwhere(Y != 0), Y[Y != 0]


def all_pairs(Y: np.ndarray) -> np.ndarray:
    return np.argwhere(np.isfinite(Y))


def complete(model: BMMMF | MMMF | HMF, Y: np.ndarray) -> np.ndarray:
    """Return observed entries as observed, and predictions elsewhere."""
    return np.where(Y != 0, Y, model.predict(all_pairs(Y)).reshape(Y.shape))


# --- two levels, 7 x 7 --------------------------------------------------------------------------

LIKES = table(
    "0 1 0 0 1 0 -1|-1 0 1 1 1 0 -1|0 1 -1 0 0 1 -1|-1 1 -1 1 -1 1 0|-1 0 -1 1 1 0 0|"
    "0 -1 0 1 0 1 1|1 1 0 -1 0 0 0"
)
LIKES_U = table("-.63 -.50|-.69 -.96|.27 -1.09|.63 -.84|-.02 -1.03|1.19 -.03|-1.11 .21")
LIKES_V = table("-.37 .94|-.70 -1.02|-1.06 .42|.55 -.97|-1.04 -.36|.67 -.58|.65 .81")
LIKES_SCORES = table(
    "-.24 .95 .46 .14 .84 -.13 -.81|-.65 1.46 .33 .55 1.06 .09 -1.23|"
    "-1.12 .92 -.74 1.21 .11 .81 -.71|-1.02 .42 -1.02 1.16 -.35 .91 -.27|"
    "-.96 1.06 -.41 .99 .39 .58 -.85|-.47 -.80 -1.27 .68 -1.23 .81 .75|"
    ".61 .56 1.26 -.81 1.08 -.87 -.55"
)
# Column 7 as corrected in METHODS.md (slip 3): in print it repeats column 1.
LIKES_LOSSES = {
    "hinge": table(
        "0 .05 0 0 .16 0 .19|.35 0 .67 .45 0 0 0|0 .08 .26 0 0 .19 .29|0 .58 0 0 .65 .09 0|"
        ".04 0 .59 .01 .61 0 0|0 .20 0 .32 0 .19 .25|.39 .44 0 .19 0 0 0"
    ),
    "smooth_hinge": table(
        "0 0 0 0 .01 0 .018|.06 0 .23 .10 0 0 0|0 0 .03 0 0 .02 .042|0 .17 0 0 .21 0 0|"
        "0 0 .17 0 .19 0 0|0 .02 0 .05 0 .02 .031|.08 .10 0 .02 0 0 0"
    ),
}


def likes_model(threshold: float) -> BMMMF:
    model = BMMMF(n_factors=2, threshold=threshold, max_iter=1, random_state=0)
    model.fit(*observed_pairs(LIKES))
    model.user_factors_, model.item_factors_ = LIKES_U, LIKES_V
    return model


def test_likes_have_the_printed_scores() -> None:
    scores = likes_model(0.0).decision_function(all_pairs(LIKES)).reshape(7, 7)
    np.testing.assert_allclose(scores, LIKES_SCORES, atol=0.015)


@pytest.mark.parametrize("name", LIKES_LOSSES)
def test_likes_have_the_printed_losses(name: str) -> None:
    pairs, y = observed_pairs(LIKES)
    losses = np.zeros((7, 7))
    losses[tuple(pairs.T)] = TWO_LEVEL[name].value(y * likes_model(0.0).decision_function(pairs))
    np.testing.assert_allclose(losses, LIKES_LOSSES[name], atol=0.006)


def test_likes_are_completed_as_the_figure_shows() -> None:
    # y_34 is predicted +1: V_4 lies on the positive side of U_3, whose threshold is 0.1.
    completed = complete(likes_model(0.1), LIKES)
    assert completed[2, 3] == 1
    expected = np.where(LIKES != 0, LIKES, np.where(LIKES_SCORES >= 0.1, 1, -1))
    np.testing.assert_array_equal(completed, expected)
    # The threshold matters: the score of y_26 is printed as 0.09.
    assert completed[1, 5] == -1
    assert complete(likes_model(0.0), LIKES)[1, 5] == 1


# --- thresholds, 10 x 10 ------------------------------------------------------------------------

STARS = table(
    "1 2 4 3 5 2 1 4 3 0|0 4 5 3 2 4 1 1 3 2|4 3 5 5 2 0 2 3 1 4|5 0 1 2 3 1 4 3 5 2|"
    "2 5 3 4 2 4 0 3 1 1|0 1 5 3 1 5 3 2 4 4|4 2 5 1 4 3 2 5 0 3|2 2 3 1 3 4 5 0 5 4|"
    "5 4 5 2 3 1 4 0 1 2|3 0 4 5 1 2 1 5 3 4"
)
STARS_U = table(
    ".22 -.12|.90 .05|1.45 .31|-1.52 .04|.94 1.06|1.09 -1.45|.10 .14|-.60 -1.65|-.24 .71|.48 .59"
)
STARS_V = table(
    "-.79 1.01|.10 1.21|1.51 -.32|.76 .63|-.53 .24|1.45 -.79|-.98 -.74|-.17 .72|-.72 -1.32|.39 -.63"
)
STARS_THETAS = table(
    "-.61 -.18 .51 1.21|-.74 .09 .69 1.41|-1.42 -.65 .28 .91|-1.35 -.25 .74 .96|"
    "-.50 .25 .77 1.44|-1.08 -.60 .56 1.51|-1.10 -.24 .34 .62|-1.41 -.62 .13 .99|"
    "-.73 -.24 .02 .83|-.73 -.51 .09 .90"
)
STARS_SCORES = table(
    "-.30 -.12 .37 .09 -.15 .41 -.13 -.12 0 .16|-.66 .15 1.34 .72 -.47 1.27 -.92 -.12 -.71 .32|"
    "-.83 .52 2.09 1.30 -.69 1.86 -1.65 -.02 -1.45 .37|"
    "1.24 -.10 -2.31 -1.13 .82 -2.24 1.46 .29 1.04 -.62|"
    ".33 1.38 1.08 1.38 -.24 .53 -1.71 .60 -2.08 -.30|"
    "-2.33 -1.65 2.11 -.09 -.93 2.73 0 -1.23 1.13 1.34|.06 .18 .11 .16 -.02 .03 -.20 .08 -.26 -.05|"
    "-1.19 -2.06 -.38 -1.50 -.08 .43 1.81 -1.09 2.61 .81|"
    ".91 .84 -.59 .26 .30 -.91 -.29 .55 -.76 -.54|.22 .76 .54 .74 -.11 .23 -.91 .34 -1.12 -.18"
)


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


@pytest.mark.parametrize(("construction", "printed"), [("immediate", 0.65), ("all", 0.75)])
def test_stars_have_the_printed_losses(construction: str, printed: float) -> None:
    assert STARS[0, 2] == 4
    score = stars_model().decision_function([(0, 2)])[0] + STARS_THETAS[0]
    loss = ThresholdLoss(TWO_LEVEL["smooth_hinge"], REACH[construction])
    value = loss.value(score[:1], np.array([3]), STARS_THETAS[:1])[0]
    assert value == pytest.approx(printed, abs=0.01)


def test_stars_are_completed_by_the_corrected_rule() -> None:
    # theta_{r-1} < x <= theta_r is level r (METHODS.md, slip 5); thetas are in order here.
    edges = np.hstack([np.full((10, 1), -np.inf), STARS_THETAS, np.full((10, 1), np.inf)])
    expected = STARS.copy()
    for i, j in np.argwhere(STARS == 0):
        (r,) = [r for r in range(1, 6) if edges[i, r - 1] < STARS_SCORES[i, j] <= edges[i, r]]
        expected[i, j] = r
    np.testing.assert_array_equal(complete(stars_model(), STARS), expected)


# --- the hierarchy, 5 x 7 -----------------------------------------------------------------------

TOY = table("3 0 0 5 2 0 0|5 4 0 1 5 3 4|1 0 4 0 3 1 0|5 4 0 0 0 0 1|0 3 2 0 5 2 0")
TOY_U = [
    table("-.48 -.54|.12 -1.09|.98 -.13|-.77 -.29|-.01 -.94"),
    table("-.69 -.47|-.43 1.06|.92 .01|-.79 .05|.24 .86"),
    table("-.42 .70|.26 -1.05|-.80 .44|.84 .08|-.05 -.81"),
    table(".76 .28|-.76 -.73|.81 -.58|-.71 -.43|-.43 -.85"),
]
TOY_V = [
    table("-.70 -.63|-.36 -.72|.47 -.53|-.51 .25|.28 -.80|-.52 -.66|.58 -.37"),
    table("-.89 .21|-.43 .64|.42 -.54|-.21 -.67|.53 .76|-.76 .01|.35 .56"),
    table(".72 -.54|.80 -.12|-.18 .68|-.26 .62|.26 -.83|.59 .52|-.39 -.57"),
    table("-.89 -.15|.54 .55|-.17 .69|.58 .35|-.86 -.27|.01 .83|.54 .40"),
]
TOY_STAGES = [
    table("1 1 1 1 1 1 -1|1 1 1 -1 1 1 1|-1 -1 1 -1 1 -1 1|1 1 -1 1 1 1 -1|1 1 1 -1 1 1 1"),
    table("1 -1 -1 1 -1 1 -1|1 1 -1 -1 1 1 1|-1 -1 1 -1 1 -1 1|1 1 -1 1 -1 1 -1|-1 1 -1 -1 1 -1 1"),
    table("-1 -1 1 1 -1 1 -1|1 1 -1 -1 1 -1 1|-1 -1 1 1 -1 -1 1|1 1 -1 -1 1 1 -1|1 1 -1 -1 1 -1 1"),
    table(
        "-1 1 1 1 -1 1 1|1 -1 -1 -1 1 -1 -1|-1 1 -1 1 -1 -1 1|1 -1 -1 -1 1 -1 -1|1 -1 -1 -1 1 -1 -1"
    ),
]
# After stages 1..4, and at last with 5 for what remains.
TOY_PARTIAL = [
    table("0 0 0 0 0 0 1|0 0 0 1 0 0 0|1 1 0 1 0 1 0|0 0 1 0 0 0 1|0 0 0 1 0 0 0"),
    table("0 2 2 0 2 0 1|0 0 2 1 0 0 0|1 1 0 1 0 1 0|0 0 1 0 2 0 1|2 0 2 1 0 2 0"),
    table("3 2 2 0 2 0 1|0 0 2 1 0 3 0|1 1 0 1 3 1 0|0 0 1 3 2 0 1|2 3 2 1 0 2 0"),
    table("3 2 2 0 2 0 1|0 4 2 1 0 3 4|1 1 4 1 3 1 0|0 4 1 3 2 4 1|2 3 2 1 0 2 4"),
    table("3 2 2 5 2 5 1|5 4 2 1 5 3 4|1 1 4 1 3 1 5|5 4 1 3 2 4 1|2 3 2 1 5 2 4"),
]


def toy_model() -> HMF:
    model = HMF(n_factors=2, max_iter=1, random_state=0).fit(*observed_pairs(TOY))
    model.user_factors_, model.item_factors_ = np.stack(TOY_U), np.stack(TOY_V)
    return model


@pytest.mark.parametrize("q", [1, 2, 3, 4])
def test_every_stage_of_the_hierarchy_predicts_as_printed(q: int) -> None:
    margins = toy_model().decision_function(all_pairs(TOY))[:, q - 1].reshape(5, 7)
    np.testing.assert_array_equal(np.where(margins >= 0, 1, -1), TOY_STAGES[q - 1])


def test_hierarchy_completes_the_matrix_stage_by_stage() -> None:
    completed = complete(toy_model(), TOY)
    np.testing.assert_array_equal(completed, TOY_PARTIAL[4])
    for q in (1, 2, 3, 4):
        np.testing.assert_array_equal(np.where(completed <= q, completed, 0), TOY_PARTIAL[q - 1])
