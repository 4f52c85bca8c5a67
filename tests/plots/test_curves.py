import numpy as np
import pytest

from marginmf.plots import curves
from marginmf.plots.style import new_figure

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


def test_bars_in_place_of_bands() -> None:
    ax = curves([10, 20], LINES, spread="bars")
    (bars,) = ax.containers
    (drawn,) = bars.lines[2]
    assert [segment[:, 1].tolist() for segment in drawn.get_segments()] == [
        pytest.approx([0.40, 0.44]),
        pytest.approx([0.40, 0.42]),
    ]


def test_lines_may_have_places_of_their_own() -> None:
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
        ([1, 2, 3], LINES, {}, "HMF has 2 means at 3 places"),
        ({"HMF": [1, 2]}, LINES, {}, "x has no places for ALS"),
        ([1, 2], {"A": ([1, 2], [1])}, {}, "A has 2 means, but a spread at 1 of them"),
        ([1, 2], LINES, {"spread": "cloud"}, "spread='cloud' is not known"),
    ],
)
def test_what_cannot_be_drawn_is_a_sentence(x, lines, options, message) -> None:
    with pytest.raises(ValueError, match=message):
        curves(x, lines, **options)
