import pytest

from marginmf.plots import error_bars
from marginmf.plots.style import COLOURS


def test_a_panel_for_each_metric_and_the_best_is_filled() -> None:
    figure = error_bars(
        {"A": {"mae": [0.5, 0.6], "rmse": [0.9, 1.0]}, "B": {"mae": [0.6, 0.7], "rmse": [0.8, 0.8]}}
    )
    assert [ax.get_xlabel() for ax in figure.axes] == ["MAE", "RMSE"]
    filled = [
        [line.get_markerfacecolor() == COLOURS[0] for line in ax.lines if line.get_marker() == "o"]
        for ax in figure.axes
    ]
    assert filled == [[True, False], [False, True]]


def test_one_split_has_no_bar() -> None:
    (ax,) = error_bars({"A": {"mae": [0.5]}}).axes
    assert len(ax.collections) == 0


def test_nothing_to_draw_is_a_sentence() -> None:
    with pytest.raises(ValueError, match="There are no scores to draw"):
        error_bars({})
