"""Products with sparse matrices against NumPy's, for any width, type and number of threads."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from marginmf.backends import threads
from marginmf.labels.products import mirror, sparse_times, upper_gram

patient = settings(deadline=None, max_examples=30)


def sparse(seed: int, n: int, width: int, dtype: type = np.float64) -> np.ndarray:
    rng = np.random.default_rng(seed)
    return (rng.normal(size=(n, width)) * (rng.random((n, width)) < 0.4)).astype(dtype)


def sum_by_sum(X: np.ndarray, dense: np.ndarray) -> np.ndarray:
    """The oracle: every number of the product by itself."""
    return np.array(
        [[sum(x * y for x, y in zip(row, column, strict=True)) for column in dense.T] for row in X]
    ).reshape(len(X), dense.shape[1])


@patient
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(0, 6),
    width=st.integers(1, 9),
    n_columns=st.integers(1, 73),
)
def test_a_product_is_what_numpy_says_whatever_its_width(seed, n, width, n_columns) -> None:
    X = sparse(seed, n, width)
    dense = np.random.default_rng(seed).normal(size=(width, n_columns))
    np.testing.assert_allclose(sparse_times(csr_array(X), dense), sum_by_sum(X, dense), atol=1e-12)


@pytest.mark.parametrize("n_columns", [1, 7, 8, 9, 17, 32, 33, 100])
@pytest.mark.parametrize("index", [np.int32, np.int64])
def test_nothing_is_written_beside_the_product(n_columns, index) -> None:
    X = csr_array(sparse(0, 5, 4, np.float32))
    X.indices, X.indptr = X.indices.astype(index), X.indptr.astype(index)
    dense = np.random.default_rng(0).normal(size=(4, n_columns)).astype(np.float32)
    room = np.full((7, n_columns), 9.0, np.float32)
    found = sparse_times(X, dense, room[1:-1])
    assert found.base is room
    np.testing.assert_allclose(room[1:-1], X.toarray() @ dense, atol=1e-5)
    assert (room[[0, -1]] == 9.0).all()


def test_the_type_is_that_of_the_dense_matrix_and_its_order_does_not_matter() -> None:
    X = csr_array(sparse(1, 5, 4, np.float32))
    dense = np.asfortranarray(np.random.default_rng(0).normal(size=(4, 11)))
    found = sparse_times(X, dense)
    assert found.dtype == np.float64
    np.testing.assert_allclose(found, X.toarray().astype(np.float64) @ dense, rtol=1e-12)


def test_numbers_that_are_not_finite_stay_where_they_are() -> None:
    dense = np.ones((2, 9))
    dense[0, 3], dense[1, 8] = np.nan, np.inf
    found = sparse_times(csr_array([[1.0, 0.0], [0.0, -1.0]]), dense)
    assert np.isnan(found[0, 3])
    assert found[1, 8] == -np.inf
    assert np.isfinite(found).sum() == 16


@pytest.mark.parametrize("n_threads", [2, 5])
def test_threads_do_not_change_a_bit(monkeypatch, n_threads) -> None:
    monkeypatch.setattr(threads, "SMALLEST_TASK", 10)
    X = csr_array(sparse(2, 200, 30, np.float32))
    dense = np.random.default_rng(2).normal(size=(30, 21)).astype(np.float32)
    assert (sparse_times(X, dense, n_threads=n_threads) == sparse_times(X, dense)).all()
    (_, one), (_, several) = (*upper_gram(X, 30), *upper_gram(X, 30, n_threads))
    assert (one == several).all()


@patient
@given(
    seed=st.integers(0, 10_000),
    n=st.integers(0, 8),
    width=st.integers(1, 12),
    n_rows=st.integers(1, 13),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_a_gram_matrix_is_what_numpy_says_above_its_diagonal(seed, n, width, n_rows, dtype) -> None:
    X = sparse(seed, n, width, dtype)
    exact = X.astype(np.float64)
    parts = [(rows, product.copy()) for rows, product in upper_gram(csr_array(X), n_rows)]
    assert [k for rows, _ in parts for k in range(width)[rows]] == list(range(width))
    found = np.vstack([product for _, product in parts])
    np.testing.assert_allclose(found, np.triu(sum_by_sum(exact.T, exact)), atol=1e-12)


def test_untidy_entries_are_put_in_order_and_the_matrix_stays_as_it_was() -> None:
    # The second row names its columns backwards, the first one names a column twice.
    X = csr_array(([1.0, 2.0, 4.0, 3.0], [1, 1, 2, 0], [0, 2, 4]), shape=(2, 3))
    ((_, product),) = upper_gram(X, 3)
    assert product.tolist() == [[9.0, 0.0, 12.0], [0.0, 9.0, 0.0], [0.0, 0.0, 16.0]]
    assert X.indices.tolist() == [1, 1, 2, 0]


@pytest.mark.parametrize("width", [1, 5, 256, 700])
def test_what_is_above_the_diagonal_is_mirrored(width) -> None:
    whole = np.random.default_rng(0).normal(size=(width, width))
    whole += whole.T
    matrix = np.triu(whole)
    mirror(matrix)
    np.testing.assert_array_equal(matrix, whole)
