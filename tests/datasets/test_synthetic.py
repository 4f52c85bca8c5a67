from typing import Any

import numpy as np
import pytest
from scipy import sparse

from marginmf.datasets import make_labels, make_matrix, make_ratings, synthetic

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


def test_sizes_and_form_are_as_asked() -> None:
    dense = make_labels(300, 40, 12, random_state=0)
    assert (dense.n_samples, dense.n_features, dense.n_labels) == (300, 40, 12)
    assert isinstance(dense.X, np.ndarray)
    words = make_labels(300, 400, 12, features_per_sample=25, random_state=0)
    assert sparse.issparse(words.X)
    assert words.X.shape == (300, 400)
    # Each of the words drawn counts; a value is log(1 + count).
    np.testing.assert_allclose(np.expm1(words.X).sum(axis=1), 25)


def test_labels_are_as_many_as_asked_and_most_are_rare() -> None:
    table = make_labels(20_000, 5, 50, cardinality=4.0, random_state=1)
    assert table.cardinality == pytest.approx(4.0, rel=0.05)
    shares = table.Y.mean(axis=0)
    assert shares.max() < 0.5 + 0.02
    expected = synthetic._frequencies(50, 4.0)
    assert expected.sum() == pytest.approx(4.0)
    np.testing.assert_allclose(shares, expected, atol=5 * np.sqrt(0.25 / 20_000))
    assert shares[:5].mean() > 5 * shares[-5:].mean()


@pytest.mark.parametrize("words", [None, 40])
def test_features_say_something_of_the_labels(words: int | None) -> None:
    table = make_labels(
        2000, 60, 8, n_factors=4, noise=0.1, features_per_sample=words, random_state=2
    )
    X = table.X if words is None else table.X.toarray()
    X = np.column_stack([X, np.ones(len(X))])
    Y = table.Y.toarray()
    train, test = slice(0, 1500), slice(1500, 2000)
    weights = np.linalg.lstsq(X[train], Y[train], rcond=None)[0]
    missed = ((X[test] @ weights > 0.5) != Y[test]).mean()
    guessed = (Y[test] != (Y[train].mean(axis=0) > 0.5)).mean()
    assert missed < 0.8 * guessed


def test_without_noise_labels_are_a_function_of_few_factors() -> None:
    table = make_labels(500, 30, 10, n_factors=3, noise=0.0, random_state=3)
    assert np.linalg.matrix_rank(table.X) == 3


def test_blocks_do_not_change_what_rows_are(monkeypatch) -> None:
    monkeypatch.setattr(synthetic, "BATCH_ROWS", 64)
    table = make_labels(150, 30, 5, features_per_sample=7, random_state=0)
    np.testing.assert_allclose(np.expm1(table.X).sum(axis=1), 7)
    assert table.X.indices.max() < 30


def test_the_same_seed_gives_the_same_dataset() -> None:
    for words in (None, 10):
        first, again, other = (
            make_labels(100, 50, 6, features_per_sample=words, random_state=seed)
            for seed in (7, np.random.default_rng(7), 8)
        )
        assert (first.Y != again.Y).nnz == 0
        assert abs(first.X - again.X).max() == 0
        assert (first.Y != other.Y).nnz > 0


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_samples": 0}, "n_samples must be a whole number of at least 1; got 0"),
        ({"n_labels": 2.5}, "n_labels must be a whole number"),
        ({"n_features": True}, "n_features must be a whole number"),
        ({"n_factors": 0}, "n_factors must be a whole number"),
        ({"features_per_sample": 0}, "features_per_sample must be a whole number"),
        ({"cardinality": 0}, "cardinality must be above 0 and at most 10, half of n_labels; got 0"),
        ({"cardinality": 11}, "cardinality must be above 0 and at most 10"),
        ({"noise": -0.1}, "noise must be a share from 0 to 1; got -0.1"),
        ({"noise": "much"}, "noise must be a share from 0 to 1; got 'much'"),
        ({"random_state": "seed"}, "random_state='seed' cannot seed"),
    ],
)
def test_label_arguments_out_of_range_are_named(arguments, message) -> None:
    with pytest.raises(ValueError, match=message):
        make_labels(**arguments)
