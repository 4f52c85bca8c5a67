from types import SimpleNamespace
from typing import Any

import pytest
from matplotlib.colors import to_hex

from marginmf.plots import training_curves
from marginmf.plots.style import COLOURS, new_figure
from marginmf.solvers import Record


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
