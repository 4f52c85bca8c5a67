import numpy as np
import pytest

from studies.peers.synthetic import Shape, make, ratings_per_user


@pytest.mark.parametrize(
    "shape", [Shape(30, 50, 300), Shape(40, 20, 400, n_levels=2), Shape(1, 30, 15, n_levels=3)]
)
def test_the_shape_is_the_one_asked_for(shape: Shape) -> None:
    made = make(shape)
    assert made.pairs.shape == (shape.n_ratings, 2)
    assert len(np.unique(made.pairs, axis=0)) == shape.n_ratings
    assert set(made.pairs[:, 0]) == set(range(shape.n_users))
    assert made.pairs[:, 1].min() >= 0
    assert made.pairs[:, 1].max() < shape.n_items
    assert set(made.ratings.tolist()) == set(range(1, shape.n_levels + 1))


def test_the_same_seed_makes_the_same_ratings() -> None:
    first, again, other = (make(Shape(30, 50, 300), seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.pairs, again.pairs)
    np.testing.assert_array_equal(first.ratings, again.ratings)
    assert not np.array_equal(first.ratings, other.ratings)


def test_some_items_are_far_more_popular_than_others() -> None:
    made = make(Shape(400, 300, 12_000))
    counts = np.sort(np.bincount(made.pairs[:, 1], minlength=300))[::-1]
    assert counts[:30].sum() > 4 * counts[-30:].sum()


def test_users_give_at_least_one_and_at_most_half_of_all() -> None:
    counts = ratings_per_user(Shape(50, 40, 900), np.random.default_rng(0))
    assert counts.sum() == 900
    assert counts.min() >= 1
    assert counts.max() <= 20


@pytest.mark.parametrize("n_ratings", [9, 101])
def test_numbers_that_do_not_fit_are_refused(n_ratings: int) -> None:
    with pytest.raises(ValueError, match="every user gives 1 to 10 ratings"):
        make(Shape(10, 20, n_ratings))
