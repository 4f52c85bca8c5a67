from typing import Any

import numpy as np
import pytest

from marginmf.datasets import make_matrix, make_ratings

SHAPES = [(200, 200, 5, 5), (60, 40, 2, 5), (40, 90, 3, 3), (5, 1000, 2, 5), (80, 80, 1, 4)]


@pytest.mark.parametrize(("n_users", "n_items", "n_factors", "n_levels"), SHAPES)
@pytest.mark.parametrize("seed", [0, 1])
def test_the_matrix_is_the_rounded_product_of_its_factors(
    n_users: int, n_items: int, n_factors: int, n_levels: int, seed: int
) -> None:
    matrix = make_matrix(
        n_users, n_items, n_factors=n_factors, n_levels=n_levels, random_state=seed
    )
    product = matrix.user_factors @ matrix.item_factors.T
    np.testing.assert_array_equal(matrix.ratings, np.clip(np.rint(product), 1, n_levels))
    assert matrix.ratings.dtype == np.int64
    assert np.unique(matrix.ratings).tolist() == list(range(1, n_levels + 1))
    assert np.linalg.matrix_rank(product) <= n_factors


@pytest.mark.parametrize(("n_users", "n_items", "n_factors", "n_levels"), SHAPES)
def test_a_converged_matrix_is_a_fixed_point_of_the_generator(
    n_users: int, n_items: int, n_factors: int, n_levels: int
) -> None:
    matrix = make_matrix(n_users, n_items, n_factors=n_factors, n_levels=n_levels, random_state=3)
    assert matrix.converged
    assert matrix.n_rounds < 100
    # One more round, written with LAPACK's least squares as an independent oracle.
    Y = matrix.ratings.astype(float)
    V = np.linalg.lstsq(matrix.user_factors, Y, rcond=None)[0].T
    Y = np.clip(np.rint(matrix.user_factors @ V.T), 1, n_levels)
    U = np.linalg.lstsq(V, Y.T, rcond=None)[0].T
    np.testing.assert_array_equal(np.clip(np.rint(U @ V.T), 1, n_levels), matrix.ratings)


def test_the_cap_on_rounds_is_kept_and_told() -> None:
    matrix = make_matrix(random_state=0, max_rounds=2)
    assert (matrix.n_rounds, matrix.converged) == (2, False)
    assert (
        repr(matrix) == "SyntheticMatrix(200 x 200, 5 factors, stopped by the cap after 2 rounds)"
    )


def test_the_same_seed_gives_the_same_ratings() -> None:
    first, again = make_ratings(random_state=7), make_ratings(random_state=7)
    generated = make_ratings(random_state=np.random.default_rng(7))
    for table in (again, generated):
        np.testing.assert_array_equal(first.pairs, table.pairs)
        np.testing.assert_array_equal(first.ratings, table.ratings)
    other = make_ratings(random_state=8)
    assert not np.array_equal(first.pairs, other.pairs)
    assert len(make_ratings(random_state=None)) == len(first)


@pytest.mark.parametrize("observed", [0.1, 0.5, 1])
def test_observed_ratings_are_distinct_entries_of_the_matrix(observed: float) -> None:
    table = make_ratings(60, 50, n_factors=2, observed=observed, random_state=1)
    matrix = make_matrix(60, 50, n_factors=2, random_state=1)
    assert len(table) == round(observed * 3000)
    assert len({tuple(pair) for pair in table.pairs.tolist()}) == len(table)
    np.testing.assert_array_equal(matrix.ratings[table.users, table.items], table.ratings)
    assert table.levels.tolist() == [1, 2, 3, 4, 5]


def test_entries_are_observed_evenly() -> None:
    counts = np.zeros((30, 20))
    for seed in range(200):
        table = make_ratings(30, 20, n_factors=2, n_levels=2, observed=0.5, random_state=seed)
        counts[table.users, table.items] += 1
    # Each count is binomial(200, 1/2) with deviation 7.1; rows average 20 of them.
    assert abs(counts.mean() - 100) < 1e-9
    assert np.abs(counts - 100).max() < 5 * 7.1
    assert np.abs(counts.mean(axis=1) - 100).max() < 5 * 7.1 / np.sqrt(20)


def test_a_missing_level_is_an_error_that_names_it() -> None:
    with pytest.raises(ValueError, match=r"No rating of the matrix is at level .*; try another"):
        make_matrix(3, 2, n_factors=1, n_levels=9, random_state=0)
    with pytest.raises(ValueError, match=r"No rating of the observed ratings is at level"):
        make_ratings(60, 40, n_factors=2, observed=0.001, random_state=0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_users": 0}, "n_users must be a whole number of at least 1; got 0"),
        ({"n_items": 2.5}, "n_items must be a whole number of at least 1; got 2.5"),
        ({"n_factors": 0}, "n_factors must be a whole number"),
        ({"n_factors": 201}, "n_factors must be at most the smaller side of the matrix, 200"),
        ({"n_levels": 1}, "n_levels must be a whole number of at least 2; got 1"),
        ({"max_rounds": True}, "max_rounds must be a whole number of at least 1; got True"),
        ({"observed": 0}, "observed must be a share above 0 and at most 1; got 0"),
        ({"observed": 1.5}, "observed must be a share"),
        ({"observed": float("nan")}, "observed must be a share"),
        ({"observed": "all"}, "observed must be a share above 0 and at most 1; got 'all'"),
        ({"random_state": "seed"}, "random_state='seed' cannot seed"),
        ({"random_state": -1}, "random_state=-1 cannot seed"),
    ],
)
def test_arguments_out_of_range_are_named(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_ratings(**arguments)
