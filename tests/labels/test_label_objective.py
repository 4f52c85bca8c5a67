"""The objective of one embedding against the formula, its gradient against differences."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from marginmf.backends.threads import one_blas_thread
from marginmf.labels import objective as module
from marginmf.labels.objective import LabelObjective, label_loss
from marginmf.losses import TWO_LEVEL, RealLoss, TwoLevelLoss, itakura_saito, smooth_hinge, squared

OWN = TwoLevelLoss("exponential", lambda z: np.exp(-z), lambda z: -np.exp(-z))
OWN_REAL = RealLoss("fourth power", lambda y, x: (y - x) ** 4, lambda y, x: -4 * (y - x) ** 3)
LOSSES = [*(loss for loss in TWO_LEVEL.values() if loss.convex), OWN, squared, OWN_REAL]
SMOOTH = [loss for loss in LOSSES if loss.name != "hinge"]


def problem(seed, n=13, n_features=7, n_labels=5, n_factors=3, dtype=np.float64):
    rng = np.random.default_rng(seed)
    X = (rng.normal(size=(n, n_features)) * (rng.random((n, n_features)) < 0.5)).astype(dtype)
    Y = (rng.random((n, n_labels)) < 0.4).astype(float)
    U = rng.normal(scale=0.5, size=(n_features + 1, n_factors))
    V = rng.normal(scale=0.5, size=(n_factors, n_labels))
    return X, Y, U, V


def oracle(X, Y, U, V, reg, loss):
    """The formula, with the constant feature written out."""
    signs = 2 * Y - 1
    extended = np.column_stack([X, np.ones(len(X))])
    scores = extended @ U @ V
    if isinstance(loss, RealLoss):
        G, losses = loss.derivative(signs, scores), loss.value(signs, scores)
    else:
        G, losses = signs * loss.derivative(signs * scores), loss.value(signs * scores)
    value = losses.sum() + reg / 2 * ((U**2).sum() + (V**2).sum())
    return value, extended.T @ G @ V.T + reg * U, (extended @ U).T @ G + reg * V


def evaluate(X, Y, U, V, reg=0.7, loss=smooth_hinge, n_threads=1):
    objective = LabelObjective(X, csr_array(Y), reg, U.shape[1], loss, n_threads)
    point = objective.join(U, V)
    with one_blas_thread():
        value, gradient = objective(point)
    return value, gradient, objective


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("loss", LOSSES, ids=lambda loss: loss.name)
def test_value_and_gradient_follow_the_formula(loss, sparse) -> None:
    X, Y, U, V = problem(0)
    value, gradient, objective = evaluate(csr_array(X) if sparse else X, Y, U, V, 0.7, loss)
    expected, by_U, by_V = oracle(X, Y, U, V, 0.7, loss)
    assert value == pytest.approx(expected, rel=1e-12)
    for found, by in zip(objective.split(gradient), (by_U, by_V), strict=True):
        np.testing.assert_allclose(found, by, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("loss", SMOOTH, ids=lambda loss: loss.name)
def test_the_gradient_is_what_differences_of_values_say(loss) -> None:
    X, Y, U, V = problem(1)
    _, gradient, objective = evaluate(X, Y, U, V, 0.3, loss)
    point, step = objective.join(U, V), 1e-6
    for k in range(len(point)):
        ahead, behind = point.copy(), point.copy()
        ahead[k] += step
        behind[k] -= step
        slope = (objective(ahead)[0] - objective(behind)[0]) / (2 * step)
        assert gradient[k] == pytest.approx(slope, abs=2e-4)


@given(
    seed=st.integers(0, 10_000),
    n=st.integers(1, 30),
    n_features=st.integers(1, 9),
    n_labels=st.integers(1, 6),
    n_factors=st.integers(1, 4),
)
@settings(max_examples=30, deadline=None)
def test_sparse_and_dense_features_give_the_same(seed, n, n_features, n_labels, n_factors) -> None:
    X, Y, U, V = problem(seed, n, n_features, n_labels, n_factors)
    dense, sparse = evaluate(X, Y, U, V), evaluate(csr_array(X), Y, U, V)
    assert dense[0] == pytest.approx(sparse[0], rel=1e-12)
    np.testing.assert_allclose(dense[1], sparse[1], rtol=1e-9, atol=1e-11)
    expected, by_U, by_V = oracle(X, Y, U, V, 0.7, smooth_hinge)
    assert dense[0] == pytest.approx(expected, rel=1e-12)
    joined = np.concatenate([by_U.ravel(), by_V.ravel()])
    np.testing.assert_allclose(dense[1], joined, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("sparse", [False, True])
def test_blocks_and_threads_do_not_matter(monkeypatch, sparse) -> None:
    X, Y, U, V = problem(2, n=2000, n_features=40, n_labels=6)
    X = csr_array(X) if sparse else X
    value, gradient, objective = evaluate(X, Y, U, V)
    monkeypatch.setattr(module, "BLOCK", 600)
    monkeypatch.setattr(module, "COLUMNS", 7)
    blocked = evaluate(X, Y, U, V)
    assert len(list(blocked[2]._blocks(0, 2000))) > 10
    assert blocked[0] == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(blocked[1], gradient, rtol=1e-10, atol=1e-10)
    for n_threads in (2, 5):
        threaded = evaluate(X, Y, U, V, n_threads=n_threads)
        assert threaded[0] == blocked[0]
        assert (threaded[1] == blocked[1]).all()
    point = objective.join(U, V)
    assert (objective.n_errors(point) == blocked[2].n_errors(point)).all()


def test_scores_of_few_rows_are_held_however_many_labels_there_are() -> None:
    n_labels = 30_000
    X, Y = np.ones((200, 1)), csr_array((200, n_labels))
    objective = LabelObjective(X, Y, 1.0, 2, smooth_hinge)
    assert list(objective._blocks(0, 40)) == [(0, 16), (16, 32), (32, 40)]
    point = objective.join(np.full((2, 2), 0.1), np.full((2, n_labels), 0.1))
    tracemalloc.start()
    objective(point)
    objective.n_errors(point)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 200 * n_labels * 8 / 2


def test_float32_is_close_to_float64() -> None:
    X, Y, U, V = problem(4, n=500)
    value, gradient, _ = evaluate(X, Y, U, V)
    for kind in (np.asarray, csr_array):
        short = evaluate(kind(X.astype(np.float32)), Y, U, V)
        assert short[1].dtype == np.float32
        assert short[0] == pytest.approx(value, rel=1e-6)
        np.testing.assert_allclose(short[1], gradient, rtol=1e-4, atol=1e-3)


def test_errors_are_labels_on_the_wrong_side_and_zero_is_minus() -> None:
    X, Y = np.array([[1.0], [-2.0], [0.0]]), np.array([[1.0, 1], [0, 1], [1, 0]])
    objective = LabelObjective(X, csr_array(Y), 1.0, 1, smooth_hinge)
    point = objective.join(np.array([[1.0], [0.0]]), np.array([[1.0, -1.0]]))
    # Scores (1, -1), (-2, 2) and (0, 0).
    assert objective.n_errors(point).tolist() == [1, 0, 1]


def test_an_instance_without_labels_and_a_label_without_instances() -> None:
    X, U, V = np.ones((2, 1)), np.ones((2, 1)), np.ones((1, 2))
    value, gradient, _ = evaluate(X, np.array([[0.0, 0.0], [0.0, 1.0]]), U, V, reg=0.0)
    assert value == 3 * 2.5  # scores of 2: three are wrong, one is right
    assert np.isfinite(gradient).all()


def test_losses_that_labels_cannot_have_get_a_sentence() -> None:
    assert label_loss("squared") is label_loss(squared) is squared
    for loss in ("itakura_saito", itakura_saito):
        with pytest.raises(ValueError, match="is for positive numbers, but labels are targets"):
            label_loss(loss)
    with pytest.raises(ValueError, match="loss='cubed' is not known"):
        label_loss("cubed")
