import numpy as np
import pytest

from marginmf.losses import TWO_LEVEL, TwoLevelLoss
from marginmf.plots import loss_curves
from marginmf.plots.style import new_figure


def test_every_loss_is_drawn_by_default() -> None:
    ax = loss_curves(title="Losses")
    assert len(ax.lines) == len(TWO_LEVEL)
    for line, loss in zip(ax.lines, TWO_LEVEL.values(), strict=True):
        z, values = map(np.asarray, line.get_data())
        np.testing.assert_array_equal(values, loss.value(z))
    assert ax.get_title(loc="left") == "Losses"


def test_the_step_of_the_zero_one_loss_is_upright() -> None:
    (line,) = loss_curves(["zero_one"]).lines
    z, values = map(np.asarray, line.get_data())
    assert np.diff(z)[np.abs(np.diff(values)) > 0].max() < 1e-6


def test_a_loss_of_ones_own_into_given_axes() -> None:
    square = TwoLevelLoss("square", lambda z: (1 - z) ** 2, lambda z: 2 * (z - 1))
    ax = new_figure(4, 3).subplots()
    assert loss_curves([square, "hinge"], ax) is ax
    assert [line.get_label() for line in ax.lines] == ["square", "hinge"]


def test_what_is_no_two_level_loss_is_a_sentence() -> None:
    with pytest.raises(ValueError, match="'squared' is not a two-level loss"):
        loss_curves(["squared"])
    with pytest.raises(ValueError, match="no losses to draw"):
        loss_curves([])
