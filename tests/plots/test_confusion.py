import io

import numpy as np
import pytest

from marginmf.plots import level_confusion
from marginmf.plots.confusion import confusion_shares

TRUE = [1, 1, 1, 1, 2, 2, 3]
PREDICTED = [1, 1, 1, 2, 2, 3, 3]


def test_rows_are_true_levels_and_add_up_to_one() -> None:
    shares = confusion_shares(TRUE, PREDICTED, np.array([1.0, 2.0, 3.0]))
    np.testing.assert_allclose(shares, [[0.75, 0.25, 0], [0, 0.5, 0.5], [0, 0, 1]])


def test_every_cell_has_its_share_at_its_place() -> None:
    ax = level_confusion(TRUE, PREDICTED, [1, 2, 3], title="A title")
    written = {text.get_position(): text.get_text() for text in ax.texts}
    assert written[0, 0] == "75%"
    assert written[1, 0] == "25%"  # x is the predicted level, y the true one
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
