import math

import numpy as np
import pytest

from marginmf.cli.example import most_varied, spread
from marginmf.cli.methods import demo_methods, regularisation
from marginmf.cli.report import stars
from marginmf.ratings import Ratings


def grid(n_users: int, n_items: int) -> Ratings:
    pairs = [(user, item) for user in range(n_users) for item in range(n_items)]
    return Ratings.of(pairs, [1 + k % 5 for k in range(len(pairs))])


def test_movielens_keeps_the_weights_of_the_thesis() -> None:
    assert regularisation(grid(4, 4), "movielens").hmf == (6, 10, 17, 14)


def test_weights_grow_with_the_root_of_the_ratings_a_user_and_item() -> None:
    small, large = regularisation(grid(9, 9), "file"), regularisation(grid(36, 36), "file")
    assert math.isclose(large.mmmf, 2 * small.mmmf)
    assert math.isclose(large.hmf, 2 * small.hmf)


def test_made_up_ratings_are_regularised_less() -> None:
    data = grid(9, 9)
    assert regularisation(data, "synthetic").als < regularisation(data, "file").als


def test_tiny_data_get_fewer_factors() -> None:
    models = demo_methods(grid(9, 5), "file", seed=0, n_jobs=1, progress=False)
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
