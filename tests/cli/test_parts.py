import numpy as np
import pytest

from marginmf.cli.example import most_varied, spread
from marginmf.cli.methods import demo_methods
from marginmf.cli.report import stars
from marginmf.ratings import Ratings


def grid(n_users: int, n_items: int) -> Ratings:
    pairs = [(user, item) for user in range(n_users) for item in range(n_items)]
    return Ratings.of(pairs, [1 + k % 5 for k in range(len(pairs))])


def test_tiny_data_get_fewer_factors() -> None:
    models = demo_methods(grid(9, 5), seed=0, n_jobs=1, progress=False)
    assert models["HMF"].n_factors == 5


@pytest.mark.parametrize(
    ("rating", "levels", "written"),
    [
        (1, [1, 2, 3, 4, 5], "★☆☆☆☆"),
        (5, [1, 5], "★★★★★"),
        (4.5, [0.5, 4.5, 5], "4.5"),
        (0, [0, 1, 2], "0"),
        (40, [1, 40, 100], "40"),
    ],
)
def test_stars_only_on_scales_of_stars(rating: float, levels: list[float], written: str) -> None:
    assert stars(rating, levels) == written


def test_no_stars_where_the_terminal_has_none() -> None:
    assert stars(4, [1, 2, 3, 4, 5], plain=True) == "4"


def test_the_example_is_the_user_of_most_levels() -> None:
    users = np.array([0, 0, 0, 0, 1, 1, 1])
    assert most_varied(users, np.array([1.0, 1, 2, 2, 1, 2, 3]), 2) == 1


def test_a_long_scale_is_shown_from_end_to_end() -> None:
    ratings = np.arange(1.0, 11.0)
    shown = ratings[spread(ratings, np.arange(10))]
    assert len(shown) == 5
    assert (shown[0], shown[-1]) == (10, 1)


def test_few_ratings_are_all_shown() -> None:
    assert spread(np.array([2.0, 5.0]), np.array([1, 1])).tolist() == [1, 0]
