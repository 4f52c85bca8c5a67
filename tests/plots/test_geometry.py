"""Items as points and users as lines."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginmf.plots import item_map, user_map
from marginmf.plots.models import clip_line
from marginmf.plots.style import new_figure

RNG = np.random.default_rng(0)
ITEMS, USERS, THRESHOLD = RNG.normal(size=(7, 2)), RNG.normal(size=(7, 2)), 0.2
NUMBER = st.floats(-3, 3)


def ends(line) -> np.ndarray:
    return np.column_stack(line.get_data())


@settings(deadline=None)
@given(st.tuples(NUMBER, NUMBER), NUMBER)
def test_a_clipped_line_lies_on_the_line_and_on_the_edges(direction, offset) -> None:
    normal = np.array(direction)
    if normal @ normal < 1e-4:
        return
    low, high = np.array([-1.0, -2.0]), np.array([2.0, 1.0])
    found = clip_line(low, high, normal, offset)
    corners = np.array([[x, y] for x in (-1.0, 2.0) for y in (-2.0, 1.0)]) @ normal - offset
    if found is None:  # all corners are on one side
        assert (corners >= -1e-9).all() or (corners <= 1e-9).all()
        return
    np.testing.assert_allclose(found @ normal, offset, atol=1e-6)
    assert (found >= low - 1e-6).all()
    assert (found <= high + 1e-6).all()


def test_lines_of_users_and_arrows_to_what_they_like() -> None:
    ax = item_map(ITEMS, USERS, threshold=THRESHOLD, title="Likes")
    assert len(ax.lines) == 7
    for line, direction in zip(ax.lines, USERS, strict=True):
        np.testing.assert_allclose(ends(line) @ direction, THRESHOLD, atol=1e-9)
    arrows = [text for text in ax.texts if not text.get_text()]
    for arrow, direction in zip(arrows, USERS, strict=True):
        assert np.array(arrow.xy) @ direction > THRESHOLD
        assert np.array(arrow.xyann) @ direction == pytest.approx(THRESHOLD)
    written = {text.get_text() for text in ax.texts} - {""}
    assert written == {f"{letter}{n}" for letter in "UV" for n in range(1, 8)}
    np.testing.assert_allclose(ax.collections[0].get_offsets(), ITEMS)
    assert ax.get_title(loc="left") == "Likes"


def test_thresholds_have_margins_of_one_to_either_side() -> None:
    direction, thetas = np.array([1.0, 0.4]), np.array([-0.9, 0.1, 0.8])
    ax = user_map(ITEMS, [1, 2, 3, 4, 1, 2, 3], direction, thresholds=thetas)
    offsets = {round(float(ends(line)[0] @ direction), 6) for line in ax.lines}
    wanted = {round(float(theta + by), 6) for theta in thetas for by in (-1, 0, 1)}
    assert offsets <= wanted
    assert {round(float(theta), 6) for theta in thetas} <= offsets


def test_points_of_a_rating_share_a_colour_and_a_name() -> None:
    ax = user_map([[0, 0], [1, 0], [2, 0]], [1, 5, 5], [1, 0], levels=[1, 2, 3, 4, 5])
    low, high = ax.collections
    assert (len(low.get_offsets()), len(high.get_offsets())) == (1, 2)
    legend = ax.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["1", "5"]
    assert legend.get_title().get_text() == "rating"


def test_prototypes_have_the_colours_of_their_levels_and_unused_levels_no_line() -> None:
    items, ratings = [[0.0, 0.1], [0.2, 0.0], [2.0, 0.3]], [1, 1, 3]
    ax = user_map(
        items,
        ratings,
        [1.0, 0.0],
        prototypes=[0.1, np.nan, 2.0],
        boundaries=[1.4, 1.4],
        levels=[1, 2, 3],
    )
    first, last, boundary = ax.lines
    assert [line.get_xdata()[0] for line in ax.lines] == pytest.approx([0.1, 2.0, 1.4])
    for line, points in zip((first, last), ax.collections, strict=True):
        np.testing.assert_allclose(line.get_color(), points.get_facecolor()[0])
    assert boundary.get_linestyle() == "--"


def test_many_items_have_no_names_and_a_user_without_factors_no_line() -> None:
    items = np.random.default_rng(0).normal(size=(200, 2))
    ax = item_map(items, [[0.0, 0.0]])
    assert not ax.lines
    assert not ax.texts


def test_a_single_item_can_be_drawn_into_given_axes() -> None:
    ax = new_figure(4, 4).subplots()
    assert item_map([[1.0, 1.0]], [[1.0, 1.0]], ax, item_names=["Heat"], user_names=["Ada"]) is ax
    assert {text.get_text() for text in ax.texts} >= {"Heat", "Ada"}


def test_what_cannot_be_drawn_is_a_sentence() -> None:
    with pytest.raises(ValueError, match=r"items have the shape \(3, 5\): only models of two"):
        item_map(np.ones((3, 5)), np.ones((2, 5)))
    with pytest.raises(ValueError, match="1 names for 2 rows"):
        item_map(np.eye(2), np.eye(2), item_names=["one"])
    with pytest.raises(ValueError, match="2 items but 1 ratings"):
        user_map(np.eye(2), [1], [1, 0])
    with pytest.raises(ValueError, match="3 prototypes for 2 levels: pass levels="):
        user_map(np.eye(2), [1, 3], [1, 0], prototypes=[0, 1, 2])


def test_every_rating_is_one_of_the_levels():
    with pytest.raises(ValueError, match="The rating 4 is not one of the levels"):
        user_map([[0.1, 0.0], [1.4, 0.5]], [1, 4], [1.0, 0.2], levels=[1, 2, 3])
