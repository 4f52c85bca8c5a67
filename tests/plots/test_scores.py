import pytest

from marginmf.plots import error_bars
from marginmf.plots.style import COLOURS


def test_a_panel_for_each_metric_and_the_best_is_filled() -> None:
    scores = {
        "A": {"mae": [0.5, 0.6], "rmse": [0.9, 1.0]},
        "B": {"mae": [0.6, 0.7], "rmse": [0.8, 0.8]},
    }
    assert [ax.get_xlabel() for ax in error_bars(scores).axes] == ["MAE", "RMSE"]
    assert filled_methods(scores) == [[True, False], [False, True]]


def filled_methods(scores) -> list[list[bool]]:
    """Return, panel by panel, which methods are filled."""
    return [
        [line.get_markerfacecolor() == COLOURS[0] for line in ax.lines if line.get_marker() == "o"]
        for ax in error_bars(scores).axes
    ]


@pytest.mark.parametrize("name", ["precision_at_1", "ndcg_at_10", "ndcg", "recall", "accuracy"])
def test_where_higher_is_better_the_highest_is_filled(name: str) -> None:
    assert filled_methods({"A": {name: [0.4]}, "B": {name: [0.9]}}) == [[False, True]]


def test_coverage_is_that_of_the_other_metrics() -> None:
    labels = {
        "A": {"accuracy": [0.4], "coverage": [2.0]},
        "B": {"accuracy": [0.3], "coverage": [9.0]},
    }
    assert filled_methods(labels) == [[True, False], [True, False]]
    lists = {"A": {"ndcg": [0.4], "coverage": [0.2]}, "B": {"ndcg": [0.3], "coverage": [0.9]}}
    assert filled_methods(lists) == [[True, False], [False, False]]


def test_a_metric_without_a_known_direction_has_no_best() -> None:
    scores = {"A": {"regret": [0.4]}, "B": {"regret": [0.9]}}
    assert filled_methods(scores) == [[False, False]]
    assert error_bars(scores).axes[0].get_xlabel() == "regret"


def test_one_split_has_no_bar() -> None:
    (ax,) = error_bars({"A": {"mae": [0.5]}}).axes
    assert len(ax.collections) == 0


def test_nothing_to_draw_is_a_sentence() -> None:
    with pytest.raises(ValueError, match="There are no scores to draw"):
        error_bars({})
