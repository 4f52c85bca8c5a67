"""The kernels of label methods against NumPy, for any width, type and number of threads."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from marginmf.backends import labels, threads
from marginmf.backends.labels import count_above, label_losses, mirror, sparse_times, upper_gram
from marginmf.losses import REAL, TWO_LEVEL, RealLoss, TwoLevelLoss, squared

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


OWN = TwoLevelLoss("exponential", lambda z: np.exp(-z), lambda z: -np.exp(-z))
OWN_REAL = RealLoss("absolute", lambda y, x: np.abs(y - x), lambda y, x: np.sign(x - y))


def label_loss_oracle(Y, scores, loss):
    """The loss of every row, and the derivatives, for targets of 1 and -1."""
    y = np.where(Y > 0, 1.0, -1.0)
    if isinstance(loss, RealLoss):
        return loss.value(y, scores).sum(axis=1, dtype=np.float64), loss.derivative(y, scores)
    return loss.value(y * scores).sum(axis=1, dtype=np.float64), y * loss.derivative(y * scores)


@pytest.mark.parametrize(
    "loss", [*TWO_LEVEL.values(), OWN, squared, OWN_REAL], ids=lambda loss: loss.name
)
@given(seed=st.integers(0, 10_000), dtype=st.sampled_from([np.float32, np.float64]))
@settings(max_examples=15, deadline=None)
def test_the_compiled_label_losses_are_the_ones_spelled_out(loss, seed, dtype) -> None:
    rng = np.random.default_rng(seed)
    Y = csr_array((rng.random((6, 4)) < 0.4).astype(float))
    scores = rng.normal(scale=1.5, size=(3, 4)).astype(dtype)
    ours = scores.copy()
    losses = label_losses(Y.indptr[2:6], Y.indices, ours, loss)  # some rows in the middle
    right, slopes = label_loss_oracle(Y.toarray()[2:5], scores, loss)
    tolerance = 1e-5 if dtype == np.float32 else 1e-12
    np.testing.assert_allclose(losses, right, rtol=tolerance, atol=tolerance)
    np.testing.assert_allclose(ours, slopes, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("loss", [TWO_LEVEL["logistic"], REAL["squared"]], ids=lambda one: one.name)
def test_threads_do_not_change_label_losses(loss, monkeypatch) -> None:
    monkeypatch.setattr(threads, "SMALLEST_TASK", 16)
    scores = np.random.default_rng(0).normal(size=(200, 7))
    Y = csr_array((scores > 0.5).astype(float))
    one, four = scores.copy(), scores.copy()
    losses = label_losses(Y.indptr, Y.indices, one, loss)
    np.testing.assert_array_equal(label_losses(Y.indptr, Y.indices, four, loss, 4), losses)
    np.testing.assert_array_equal(four, one)


@patient
@given(seed=st.integers(0, 10_000), top1=st.booleans())
def test_counts_above_thresholds_are_what_comparisons_say(seed, top1) -> None:
    rng = np.random.default_rng(seed)
    scores, present = rng.normal(size=(9, 4)), rng.random((9, 4)) < 0.5
    candidates = np.sort(rng.normal(size=5))
    scale = 7 / (candidates[-1] - candidates[0])
    cell_of = ((candidates - candidates[0]) * scale).astype(np.int64)
    cells = np.searchsorted(cell_of, np.arange(8), side="left")
    predicted, right, overlaps = count_above(scores, present, top1, candidates, cells, scale)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(labels, "COUNTED_ROWS", 2)
        one, three = (
            count_above(scores, present, top1, candidates, cells, scale, n) for n in (1, 3)
        )
    for ours, others in zip(one, three, strict=True):
        np.testing.assert_array_equal(ours, others)
    np.testing.assert_allclose(one[2], overlaps, atol=1e-12)
    above = scores[:, :, None] > candidates
    if top1:
        above[np.arange(9), scores.argmax(axis=1)] = True
    both, either = (above & present[:, :, None]).sum(1), (above | present[:, :, None]).sum(1)
    jaccard, f1 = both / np.maximum(either, 1), 2 * both / np.maximum(both + either, 1)
    np.testing.assert_allclose(overlaps, [jaccard.sum(axis=0), f1.sum(axis=0)], atol=1e-12)
    n_above = above.sum(axis=2)
    for k in range(6):
        np.testing.assert_array_equal(predicted[:, k] * (k > 0), (n_above == k).sum(0) * (k > 0))
        hits = (n_above == k) & present
        np.testing.assert_array_equal(right[:, k] * (k > 0), hits.sum(0) * (k > 0))
