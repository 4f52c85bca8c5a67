"""Figures that compare methods."""

from itertools import combinations

import numpy as np
import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from marginmf.plots import critical_difference, error_bars
from marginmf.plots.style import COLOURS, new_figure
from marginmf.stats import cliques


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


RANKS = {"A": 1.2, "B": 2.0, "C": 2.9, "D": 3.9}


def bars(ax) -> list[tuple[float, float]]:
    """The first and last rank under each bar."""
    thick = [line for line in ax.lines if line.get_color() == COLOURS[0]]
    return [(line.get_xdata()[0] + 0.04, line.get_xdata()[1] - 0.04) for line in thick]


def names(ax) -> dict[str, float]:
    """Every name and where its words stand."""
    return {
        text.get_text().replace(f"{rank:.2f}", "").strip(): text.xy[0]
        for text in ax.texts
        for rank in RANKS.values()
        if f"{rank:.2f}" in text.get_text()
    }


def test_bars_join_what_does_not_differ() -> None:
    ax = critical_difference(RANKS, 1.0, title="Accuracy")
    found = [pytest.approx((RANKS[group[0]], RANKS[group[-1]])) for group in cliques(RANKS, 1.0)]
    assert bars(ax) == found
    assert len(found) == 2
    assert ax.get_title(loc="left") == "Accuracy"
    assert any(text.get_text() == "CD = 1.00" for text in ax.texts)


def test_the_best_is_on_the_left_and_halves_are_named_on_their_sides() -> None:
    ax = critical_difference(RANKS, 1.0)
    low, high = ax.get_xlim()
    assert low < high
    placed = names(ax)
    assert set(placed) == set(RANKS)
    assert {name for name, x in placed.items() if x < 1} == {"A", "B"}
    assert {name for name, x in placed.items() if x > 4} == {"C", "D"}


def test_a_wide_bracket_is_whole() -> None:
    ax = critical_difference(RANKS, 4.5)
    assert ax.get_xlim()[1] >= 5.5
    assert bars(ax) == [pytest.approx((1.2, 3.9))]


@pytest.mark.parametrize("count", [2, 4, 7, 11, 15])
@pytest.mark.parametrize("close", [False, True])
def test_no_words_overlap_and_all_are_in_the_picture(count: int, close: bool) -> None:
    random = np.random.default_rng(count)
    middle = (count + 1) / 2
    values = middle + random.normal(0, 0.05, count) if close else random.uniform(1, count, count)
    ranks = {f"A method with a long name {i}": float(rank) for i, rank in enumerate(values)}
    ax = critical_difference(ranks, cd=min(2.0, count / 3), title="Example-based F1")
    canvas = FigureCanvasAgg(ax.figure)
    canvas.draw()
    boxes = [text.get_window_extent(canvas.get_renderer()) for text in [*ax.texts, ax.title]]
    boxes = [box for box in boxes if box.width > 0]
    for first, second in combinations(boxes, 2):
        assert not first.overlaps(second)
    width, height = canvas.get_width_height()
    for box in boxes:
        assert box.x0 >= 0
        assert box.y0 >= 0
        assert box.x1 <= width
        assert box.y1 <= height


def test_it_draws_into_given_axes() -> None:
    ax = new_figure(8, 3).subplots()
    assert critical_difference(RANKS, 1.0, ax) is ax


def test_one_method_is_no_comparison() -> None:
    with pytest.raises(ValueError, match=r"ranks of 1 method\(s\)"):
        critical_difference({"A": 1.0}, 1.0)
