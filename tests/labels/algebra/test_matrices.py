"""Products of centred features and labels against the matrices that they stand for."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from marginmf.labels.algebra import matrices
from marginmf.labels.algebra.matrices import (
    FormedNormal,
    ImplicitNormal,
    LabelGram,
    cross_product,
    feature_moments,
    normal_matrix,
    row_blocks,
    should_form,
)

patient = settings(deadline=None, max_examples=25)


def features(seed: int, n: int = 23, width: int = 7) -> np.ndarray:
    generator = np.random.default_rng(seed)
    X = generator.normal(3.0, 2.0, (n, width)) * (generator.random((n, width)) < 0.5)
    X[:, 2] = 5.0
    X[:, 4] = 0.0
    return X


def centred(A: np.ndarray) -> np.ndarray:
    return A - A.mean(axis=0)


@pytest.fixture(params=["sparse", "dense"])
def kind(request):
    return csr_array if request.param == "sparse" else np.asarray


@pytest.mark.parametrize("piece", [1, 20, 2**22])
@pytest.mark.parametrize("normal", [FormedNormal, ImplicitNormal])
def test_normal_matrix_is_that_of_centred_features(kind, normal, piece, monkeypatch) -> None:
    monkeypatch.setattr(matrices, "BLOCK", piece)
    monkeypatch.setattr(matrices, "should_form", lambda *_: normal is FormedNormal)
    X = features(0)
    moments = feature_moments(kind(X))
    product = normal_matrix(kind(X), moments, np.float64, 3)
    assert isinstance(product, normal)
    Z = np.random.default_rng(1).normal(size=(7, 3))
    expected = centred(X).T @ centred(X)
    np.testing.assert_allclose(product.apply(Z), expected @ Z, atol=1e-9)
    np.testing.assert_allclose(product.diagonal, np.diag(expected), atol=1e-9)
    assert product.diagonal[2] == product.diagonal[4] == 0


@patient
@given(seed=st.integers(0, 1000))
def test_sparse_and_dense_features_give_the_same(seed: int) -> None:
    X, Z = features(seed), np.random.default_rng(seed).normal(size=(7, 2))
    images = [
        normal_matrix(form, feature_moments(form), np.float64, 2).apply(Z)
        for form in (X, csr_array(X))
    ]
    np.testing.assert_allclose(images[0], images[1], atol=1e-9)


def test_float32_features_are_summed_in_float64(kind) -> None:
    generator = np.random.default_rng(2)
    # Next to a large mean the deviations would drown in float32 sums.
    X = (1000.0 + generator.random((5000, 2))).astype(np.float32)
    means, squares = feature_moments(kind(X))
    exact = X.astype(np.float64)
    np.testing.assert_allclose(means, exact.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(squares, np.square(centred(exact)).sum(axis=0), rtol=1e-9)
    matrix = normal_matrix(kind(X), (means, squares), np.float64, 1000).apply(np.eye(2))
    np.testing.assert_allclose(matrix, centred(exact).T @ centred(exact), rtol=1e-5, atol=1e-4)


def test_cross_product_is_that_of_centred_features_and_labels(kind, monkeypatch) -> None:
    X, generator = features(3), np.random.default_rng(3)
    Y = (generator.random((23, 5)) < 0.4).astype(np.float64)
    M = generator.normal(size=(5, 3))
    expected = centred(X).T @ centred(Y) @ M
    for piece in (5, 2**22):
        monkeypatch.setattr(matrices, "BLOCK", piece)
        found = cross_product(kind(X), X.mean(axis=0), csr_array(Y), M)
        np.testing.assert_allclose(found, expected, atol=1e-10)


@pytest.mark.parametrize("most_dense", [0, 100])
def test_label_gram_is_that_of_centred_labels(most_dense, monkeypatch) -> None:
    monkeypatch.setattr(matrices, "MOST_DENSE_LABELS", most_dense)
    generator = np.random.default_rng(4)
    Y = (generator.random((30, 6)) < 0.4).astype(np.float64)
    Y[:, 1], Y[:, 2] = 0, 1
    gram = LabelGram.of(csr_array(Y))
    M = generator.normal(size=(6, 4))
    np.testing.assert_allclose(gram.apply(M), centred(Y).T @ centred(Y) @ M, atol=1e-12)
    np.testing.assert_allclose(gram.apply(M[:, 0]), gram.apply(M)[:, 0], atol=1e-12)
    np.testing.assert_allclose(gram.matrix, centred(Y).T @ centred(Y), atol=1e-12)
    assert gram.trace == pytest.approx(np.square(centred(Y)).sum())
    order = np.array([3, 0, 5, 1, 2, 4])
    np.testing.assert_array_equal(gram.take(order).together.toarray(), Y[:, order].T @ Y[:, order])


def test_wide_features_are_never_multiplied_out() -> None:
    def sparse(n: int, width: int, density: float) -> csr_array:
        each = max(1, round(width * density))
        columns = np.random.default_rng(0).integers(width, size=n * each)
        bounds = np.arange(0, n * each + 1, each)
        return csr_array((np.ones(n * each), columns, bounds), shape=(n, width))

    assert not should_form(sparse(6000, 47_236, 0.0016), np.float32, 100)
    # Few entries: two thin products are cheaper than a square matrix.
    assert not should_form(sparse(978, 1449, 0.009), "f4", 45)
    # Many rows: forming the matrix once pays.
    assert should_form(sparse(20_000, 500, 0.02), "f4", 100)
    assert should_form(np.zeros((2000, 100)), np.float32, 50)
    assert not should_form(np.zeros((100, 5000)), np.float32, 50)


def test_row_blocks_are_all_rows_once(kind, monkeypatch) -> None:
    X = kind(features(5))
    assert next(row_blocks(X, 7)) is X
    monkeypatch.setattr(matrices, "BLOCK", 30)
    blocks = list(row_blocks(X, 7))
    assert max(block.shape[0] for block in blocks) == 30 // 7
    dense = [block.toarray() if kind is csr_array else block for block in blocks]
    np.testing.assert_array_equal(np.vstack(dense), features(5))
