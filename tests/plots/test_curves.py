"""Lines: any, objectives, regularisation paths, losses."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from matplotlib.colors import to_hex

from contracts import synthetic
from marginmf.losses import TWO_LEVEL, TwoLevelLoss
from marginmf.plots import curves, loss_curves, regularisation_path, training_curves
from marginmf.plots.style import COLOURS, new_figure
from marginmf.ratings import HMF, MMMF
from marginmf.solvers import Record

LINES = {"HMF": ([0.42, 0.41], [0.02, 0.01]), "ALS": ([0.46, 0.45], None)}


def test_a_line_for_each_name_and_a_band_where_there_is_a_spread() -> None:
    ax = curves([10, 20], LINES, title="Error", x_label="factors", y_label="NMAE")
    assert [line.get_label() for line in ax.lines] == ["HMF", "ALS"]
    assert list(ax.lines[1].get_ydata()) == [0.46, 0.45]
    (band,) = ax.collections
    heights = band.get_paths()[0].vertices[:, 1]
    assert (heights.min(), heights.max()) == pytest.approx((0.40, 0.44))
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("factors", "NMAE")
    assert ax.get_title(loc="left") == "Error"
    legend = ax.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["HMF", "ALS"]


def test_bars_instead_of_bands() -> None:
    ax = curves([10, 20], LINES, spread="bars")
    (bars,) = ax.containers
    (drawn,) = bars.lines[2]
    assert [segment[:, 1].tolist() for segment in drawn.get_segments()] == [
        pytest.approx([0.40, 0.44]),
        pytest.approx([0.40, 0.42]),
    ]


def test_lines_may_have_positions_of_their_own() -> None:
    ax = curves({"A": [1, 2], "B": [3]}, {"A": ([5, 6], None), "B": ([7], None)})
    assert [list(line.get_xdata()) for line in ax.lines] == [[1, 2], [3]]


def test_logarithmic_axes_have_plain_numbers_and_bands_above_zero() -> None:
    ax = curves([10, 100], {"A": ([1.0, 20.0], [2.0, 5.0])}, log_x=True, log_y=True)
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert ax.xaxis.get_major_formatter()(20) == "20"
    (band,) = ax.collections
    assert (band.get_paths()[0].vertices[:, 1] > 0).all()
    wide = curves([1, 1e6], {"A": ([1.0, 2.0], None)}, log_x=True)
    assert all(np.log10(tick) % 1 == 0 for tick in wide.get_xticks())


def test_it_draws_into_given_axes() -> None:
    ax = new_figure(4, 3).subplots()
    assert curves([1, 2], LINES, ax) is ax


@pytest.mark.parametrize(
    ("x", "lines", "options", "message"),
    [
        ([1], {}, {}, "There are no lines to draw"),
        ([1, 2, 3], LINES, {}, "HMF has 2 means at 3 positions"),
        ({"HMF": [1, 2]}, LINES, {}, "x has no positions for ALS"),
        ([1, 2], {"A": ([1, 2], [1])}, {}, "A has 2 means, but a spread at 1 of them"),
        ([1, 2], LINES, {"spread": "cloud"}, "spread='cloud' is not known"),
    ],
)
def test_what_cannot_be_drawn_is_a_sentence(x, lines, options, message) -> None:
    with pytest.raises(ValueError, match=message):
        curves(x, lines, **options)


def history(*objectives: float) -> list[Record]:
    return [Record(k, value, 1.0, k + 1, k / 10) for k, value in enumerate(objectives)]


@pytest.fixture
def models() -> dict[str, Any]:
    """A model without a history, one with, and one in two stages."""
    return {
        "BiasOnly": SimpleNamespace(),
        "MMMF": SimpleNamespace(history_=history(200.0, 100.0, 50.0)),
        "HMF": SimpleNamespace(history_=[history(10.0, 8.0), history(40.0, 30.0, 20.0)]),
    }


def test_a_line_for_each_model_and_stage(models: dict[str, Any]) -> None:
    ax = training_curves(models)
    assert [list(line.get_ydata()) for line in ax.lines] == [
        [1.0, 0.5, 0.25],
        [1.0, 0.8],
        [1.0, 0.75, 0.5],
    ]
    assert list(ax.lines[0].get_xdata()) == [0, 1, 2]


def test_stages_share_a_colour_and_are_thinner(models: dict[str, Any]) -> None:
    single, *stages = training_curves(models).lines
    assert to_hex(single.get_color()).upper() == COLOURS[0]
    assert {to_hex(stage.get_color()).upper() for stage in stages} == {COLOURS[1]}
    assert all(stage.get_linewidth() < single.get_linewidth() for stage in stages)


def test_the_legend_names_each_model_once(models: dict[str, Any]) -> None:
    legend = training_curves(models).get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["MMMF", "HMF (2 stages)"]


def test_the_horizontal_axis_can_count_seconds(models: dict[str, Any]) -> None:
    ax = training_curves(models, against="seconds")
    assert list(ax.lines[0].get_xdata()) == [0.0, 0.1, 0.2]
    assert ax.get_xlabel() == "seconds"


def test_draws_into_the_given_axes(models: dict[str, Any]) -> None:
    ax = new_figure(4, 4).subplots()
    assert training_curves(models, ax, title="Training") is ax
    assert ax.get_title(loc="left") == "Training"


def test_nothing_to_draw_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"None of the models \(BiasOnly\) has a history"):
        training_curves({"BiasOnly": SimpleNamespace()})


def test_an_unknown_axis_is_an_error(models: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="against='days' is not known"):
        training_curves(models, against="days")  # type: ignore[arg-type]


def test_iterations_are_counted_in_whole_numbers(models: dict[str, Any]) -> None:
    ax = training_curves(models)
    assert all(tick == round(tick) for tick in ax.get_xticks())


def test_one_line_and_one_ring_for_every_stage():
    model = HMF(3, random_state=0).fit(*synthetic((1, 2, 3)))
    ax = regularisation_path(model, title="HMF")
    drawn, rings = ax.lines[::2], ax.lines[1::2]
    assert len(drawn) == len(rings) == 2
    for path, curve, ring in zip(model.reg_path_, drawn, rings, strict=True):
        assert curve.get_xdata().tolist() == path.regs.tolist()
        assert ring.get_xdata() == [path.best]
    assert ax.get_xscale() == "log"
    assert ax.get_title(loc="left") == "HMF"


def test_several_hold_outs_have_a_band():
    model = MMMF(3, random_state=0, holdouts=2).fit(*synthetic((1, 2, 3, 4, 5)))
    ax = regularisation_path(model)
    assert len(ax.collections) == 1
    assert ax.get_ylabel() == "mean absolute error on held-out ratings"


def test_a_given_reg_has_no_path():
    model = MMMF(3, 1.0)
    with pytest.raises(ValueError, match="fit it with reg='auto' first"):
        regularisation_path(model)


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
