"""Heat maps, and the confusion of levels."""

import io

import numpy as np
import pytest

from marginmf.plots import heat_map, level_confusion
from marginmf.plots.style import new_figure

VALUES = [[0.1, 0.2, 0.3], [0.4, np.nan, 0.9]]


def draw(**options):
    return heat_map(VALUES, [0.001, 10.0], ["a", "b", "c"], **options)


def test_rows_and_columns_are_named_and_the_first_row_is_on_top() -> None:
    ax = draw(row_label="reg", column_label="set", value_label="accuracy", title="T")
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["0.001", "10"]
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["a", "b", "c"]
    assert ax.yaxis_inverted()
    assert (ax.get_xlabel(), ax.get_ylabel(), ax.get_title(loc="left")) == ("set", "reg", "T")
    assert ax.figure.axes[1].get_ylabel() == "accuracy"
    assert not ax.texts


def test_numbers_stand_in_their_cells_and_are_legible() -> None:
    ax = draw(annotate=".1f")
    written = {text.get_position(): (text.get_text(), text.get_color()) for text in ax.texts}
    assert len(written) == 5  # what was not measured has none
    assert written[0, 1][0] == "0.4"
    assert written[2, 1] == ("0.9", "white")
    assert written[0, 0][1] != "white"


def test_shades_run_between_the_extremes_or_the_given_limits() -> None:
    (mesh,) = draw().collections
    assert mesh.get_clim() == (0.1, 0.9)
    (mesh,) = draw(limits=(0.0, 1.0)).collections
    assert mesh.get_clim() == (0.0, 1.0)


def test_large_matrices_have_no_lines_between_cells_and_few_names() -> None:
    size = 100
    ax = heat_map(np.eye(size), range(size), range(size))
    (mesh,) = ax.collections
    assert len(mesh.get_edgecolor()) == 0
    assert len(ax.get_xticks()) <= 13


def test_one_value_everywhere_can_be_drawn() -> None:
    ax = heat_map([[2.0, 2.0]], ["x"], ["a", "b"], annotate="g")
    assert [text.get_text() for text in ax.texts] == ["2", "2"]


def test_it_draws_into_given_axes() -> None:
    ax = new_figure(4, 3).subplots()
    assert draw(ax=ax) is ax


def test_what_cannot_be_drawn_is_a_sentence() -> None:
    with pytest.raises(ValueError, match=r"shape \(2, 3\), but there are names of 1 rows and 3"):
        heat_map(VALUES, ["x"], ["a", "b", "c"])
    with pytest.raises(ValueError, match="no values to draw"):
        heat_map([[np.nan]], ["x"], ["a"])


TRUE = [1, 1, 1, 1, 2, 2, 3]
PREDICTED = [1, 1, 1, 2, 2, 3, 3]


def test_every_cell_has_its_share_in_its_row_and_column() -> None:
    ax = level_confusion(TRUE, PREDICTED, [1, 2, 3], title="A title")
    written = {text.get_position(): text.get_text() for text in ax.texts}
    assert written[0, 0] == "75%"
    assert written[1, 0] == "25%"  # x is the predicted level, y the true one
    assert written[1, 1] == written[2, 1] == "50%"
    assert written[2, 2] == "100%"
    assert len(written) == 9
    assert ax.get_title(loc="left") == "A title"
    assert ax.get_xlabel().startswith("predicted")
    assert ax.get_ylabel().startswith("true")


def test_ticks_are_the_levels_themselves() -> None:
    ax = level_confusion([0.5, 1.5], [0.5, 4], levels=[4, 0.5, 1.5])
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["0.5", "1.5", "4"]
    assert [tick.get_text() for tick in ax.get_yticklabels()] == ["0.5", "1.5", "4"]


def test_a_level_without_ratings_has_an_empty_row() -> None:
    ax = level_confusion([1, 3], [1, 2], levels=[1, 2, 3])
    assert {text.get_position()[1] for text in ax.texts} == {0, 2}


def test_long_scales_are_drawn_without_numbers() -> None:
    levels = np.arange(100)
    ax = level_confusion(levels, levels, levels)
    assert not ax.texts
    assert len(ax.get_xticks()) <= 12


def test_can_be_written_without_a_backend() -> None:
    file = io.BytesIO()
    level_confusion(TRUE, PREDICTED, [1, 2, 3]).figure.savefig(file, format="png")
    assert file.getvalue().startswith(b"\x89PNG")


@pytest.mark.parametrize("strange", [7, np.nan])
def test_a_rating_off_the_scale_is_named(strange: float) -> None:
    with pytest.raises(ValueError, match=f"predicted rating {strange:g} in row 1 is not one of"):
        level_confusion([1, 2], [1, strange], [1, 2])


def test_columns_of_two_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="3 true ratings but 2 predicted"):
        level_confusion([1, 2, 2], [1, 2], [1, 2])
