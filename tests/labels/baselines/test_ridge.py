"""Ridge regression: every way to solve it gives the same weights."""

import numpy as np
import pytest
import sklearn.linear_model
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning

from label_contracts import labelled
from marginmf.labels.algebra import products, ridge
from marginmf.labels.algebra.ridge import Ridge


def oracle(X, Y, reg):
    """Return the weights by a stacked least-squares problem, the smallest ones if many are best."""
    X, Y = X - X.mean(axis=0), Y - Y.mean(axis=0)
    width = X.shape[1]
    stacked = np.vstack([X, np.sqrt(reg) * np.eye(width)])
    targets = np.vstack([Y, np.zeros((width, Y.shape[1]))])
    return np.linalg.lstsq(stacked, targets, rcond=1e-10)[0]


@given(
    st.integers(0, 1000),
    st.integers(1, 20),
    st.integers(1, 20),
    st.sampled_from([0.01, 1.0, 100.0]),
    st.booleans(),
    st.sampled_from([8192, 0]),
)
@settings(max_examples=60, deadline=None)
def test_weights_are_those_of_least_squares(seed, n, width, reg, sparse, largest) -> None:
    X, Y = labelled(n, width, 3, seed)
    X[:, 0] = 2.0  # a feature without information
    form, labels = (csr_array if sparse else np.asarray), csr_array(Y.astype(float))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(products, "LARGEST", largest)
        solver = Ridge(form(X), reg)
        weights = solver.solve(labels)
        mixed = solver.solve(labels, np.array([[1.0, 0.5], [0.0, 1.0], [-1.0, 0.0]]))
    expected = oracle(X, Y, reg)
    np.testing.assert_allclose(weights, expected, atol=1e-6)
    np.testing.assert_allclose(mixed, expected @ [[1.0, 0.5], [0.0, 1.0], [-1.0, 0.0]], atol=1e-6)


@pytest.mark.parametrize("largest", [8192, 0])
@pytest.mark.parametrize("form", [np.asarray, csr_array])
@pytest.mark.parametrize(("n", "width"), [(40, 6), (8, 30)])
def test_without_a_penalty_weights_are_the_smallest_of_the_best(
    n, width, form, largest, monkeypatch
) -> None:
    monkeypatch.setattr(products, "LARGEST", largest)
    X, Y = labelled(n, width, 3, 1)
    weights = Ridge(form(X), 0.0).solve(csr_array(Y.astype(float)))
    np.testing.assert_allclose(weights, oracle(X, Y, 0.0), atol=1e-6)


@pytest.mark.parametrize("form", [np.asarray, csr_array])
@pytest.mark.parametrize("block", [10, 2**22])
def test_what_is_explained_is_the_product_of_labels_and_predictions(
    form, block, monkeypatch
) -> None:
    monkeypatch.setattr("marginmf.labels.algebra.matrices.BLOCK", block)
    X, Y = labelled()
    labels = csr_array(Y.astype(float))
    solver = Ridge(form(X), 1.0)
    weights = solver.solve(labels)
    predictions = (X - X.mean(axis=0)) @ weights
    np.testing.assert_allclose(
        solver.explained(labels, weights), (Y - Y.mean(axis=0)).T @ predictions, atol=1e-12
    )


def test_float32_features_are_worked_on_in_float64() -> None:
    X, Y = labelled()
    labels = csr_array(Y.astype(float))
    for form in (np.asarray, csr_array):
        weights = Ridge(form(X.astype(np.float32)), 1e-3).solve(labels)
        assert weights.dtype == np.float64
        np.testing.assert_allclose(weights, oracle(X, Y, 1e-3), atol=1e-9)


def test_conjugate_gradients_that_do_not_end_say_so(monkeypatch) -> None:
    monkeypatch.setattr(products, "LARGEST", 0)
    monkeypatch.setattr(ridge, "ITERATIONS", 2)
    X, Y = labelled()
    with pytest.warns(ConvergenceWarning, match="after 2 iterations"):
        Ridge(X, 1e-6).solve(csr_array(Y.astype(float)))


@pytest.mark.parametrize("form", [np.asarray, csr_array])
@pytest.mark.parametrize(("n", "width"), [(400, 4), (30, 60)])
def test_ordinary_features_are_not_lost_beside_a_large_one(n, width, form) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, width))
    X[:, -1] *= 1e7
    labels = csr_array((X[:, :2] > 0).astype(float))
    expected = sklearn.linear_model.Ridge(1.0, solver="svd").fit(X, labels.toarray()).coef_.T
    np.testing.assert_allclose(Ridge(form(X), 1.0).solve(labels), expected, atol=1e-6)


@pytest.mark.parametrize("largest", [8192, 0])
@pytest.mark.parametrize(("n", "width"), [(200, 3), (20, 40)])
def test_sparse_features_may_be_far_from_zero(n, width, largest, monkeypatch) -> None:
    monkeypatch.setattr(products, "LARGEST", largest)
    rng = np.random.default_rng(7)
    X = rng.normal(size=(n, width))
    X[:, 0] += 1.7e9  # such as a date
    labels = csr_array((X[:, 1:3] > 0).astype(float))
    near = X - X.mean(axis=0)
    expected = Ridge(near, 1.0).solve(labels)
    np.testing.assert_allclose(Ridge(csr_array(X), 1.0).solve(labels), expected, atol=1e-5)
