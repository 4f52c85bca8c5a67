"""LLSF against a slow version of its algorithm, and against what it becomes at its ends."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.preprocessing import normalize

from label_contracts import labelled
from marginmf.labels import LLSF, BinaryRelevance
from marginmf.labels.algebra.matrices import LabelGram
from marginmf.labels.baselines import llsf
from marginmf.labels.baselines.llsf import unlike

X, Y = labelled(n_labels=7)
WIDE = labelled(30, 50, 5)


def unlikeness(Y):
    lengths = np.linalg.norm(Y, axis=0)
    R = 1.0 - Y.T @ Y / np.outer(lengths, lengths)
    np.fill_diagonal(R, 0.0)
    return R


def objective(X, Y, W, alpha, beta):
    together = 0.5 * alpha * np.trace(unlikeness(Y) @ W.T @ W)
    return 0.5 * np.sum((X @ W - Y) ** 2) + together + beta * np.abs(W).sum()


def oracle(X, Y, alpha, beta, gamma, n_iter):
    """Return the weights after some steps, as the paper has them."""
    R, inner = unlikeness(Y), X.T @ X
    W = last = np.linalg.solve(inner + gamma * np.eye(X.shape[1]), X.T @ Y)
    norms = np.linalg.norm(inner, 2), np.linalg.norm(alpha * R, 2)
    bound = np.sqrt(2.0 * (norms[0] ** 2 + norms[1] ** 2))
    b = b_last = 1.0
    for _ in range(n_iter):
        V = W + (b_last - 1.0) / b * (W - last)
        V = V - (inner @ V - X.T @ Y + alpha * V @ R) / bound
        W, last = np.sign(V) * np.maximum(np.abs(V) - beta / bound, 0.0), W
        b, b_last = (1.0 + np.sqrt(1.0 + 4.0 * b**2)) / 2.0, b
    return W


@pytest.mark.parametrize("form", [np.asarray, csr_array])
@pytest.mark.parametrize("data", [(X, Y), WIDE], ids=["narrow", "wide"])
@pytest.mark.parametrize("n_iter", [1, 3, 12])
def test_steps_are_those_of_the_paper(form, data, n_iter) -> None:
    X, Y = data
    model = LLSF(0.1, 0.1, 0.01, n_iter, 0.0, decision="sign").fit(form(X), Y)
    # The bound of the curvature is a little above the norm.
    expected = oracle(X, Y, 0.1, 0.1, 0.01, n_iter)
    np.testing.assert_allclose(model.coef_.T, expected, atol=1e-4)
    np.testing.assert_allclose(model.decision_function(form(X)), X @ expected - 0.5, atol=1e-3)


@pytest.mark.parametrize("alpha", [0.0, 0.1, 3.0])
@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_the_objective_is_what_it_says_and_never_rises(alpha, form) -> None:
    model = LLSF(alpha, 0.5, max_iter=50, tol=0.0, decision="sign").fit(form(X), Y)
    values = [record.objective for record in model.history_]
    assert values[-1] == pytest.approx(objective(X, Y, model.coef_.T, alpha, 0.5))
    assert (np.diff(values) <= 0).all()
    assert values[-1] < values[0]


def test_many_steps_reach_the_minimum() -> None:
    model = LLSF(0.1, 0.5, max_iter=5000, tol=0.0, decision="sign").fit(X, Y)
    W = model.coef_.T
    slope = X.T @ (X @ W - Y) + 0.1 * W @ unlikeness(Y)
    np.testing.assert_allclose(slope[W != 0], -0.5 * np.sign(W[W != 0]), atol=1e-4)
    assert (np.abs(slope[W == 0]) <= 0.5 + 1e-6).all()
    assert 0 < np.mean(W == 0) < 1


@pytest.mark.parametrize("form", [np.asarray, csr_array])
@pytest.mark.parametrize("gamma", [0.0, 1e-10])
def test_without_penalties_it_stays_at_least_squares(form, gamma) -> None:
    model = LLSF(0.0, 0.0, gamma, decision="sign").fit(form(X), Y)
    expected = np.linalg.lstsq(X, Y, rcond=None)[0]
    np.testing.assert_allclose(model.coef_.T, expected, atol=1e-8)


@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_features_that_no_row_has_get_no_weight(form) -> None:
    wide = np.zeros((len(X), 3 * X.shape[1]))
    wide[:, 1::3] = X
    model = LLSF(decision="sign").fit(form(wide), Y)
    assert not np.delete(model.coef_, np.s_[1::3], axis=1).any()
    plain = LLSF(decision="sign").fit(X, Y)
    np.testing.assert_allclose(model.coef_[:, 1::3], plain.coef_, atol=1e-6)
    assert not LLSF(decision="sign").fit(form(0.0 * X), Y).coef_.any()


def test_rows_can_be_normalised() -> None:
    plain = LLSF(decision="sign").fit(normalize(X), Y).decision_function(normalize(X))
    for form in (np.asarray, csr_array):
        model = LLSF(normalize_rows=True, decision="sign").fit(form(3.0 * X), Y)
        np.testing.assert_allclose(model.decision_function(form(7.0 * X)), plain, atol=1e-10)
    assert np.isfinite(model.decision_function(np.zeros((1, X.shape[1])))).all()


def test_machines_see_the_features_that_have_a_weight() -> None:
    settings = {"beta": 8.0, "max_iter": 1000, "decision": "sign"}
    support = LLSF(**settings).fit(X, Y).coef_ != 0
    model = LLSF(**settings, refit=True).fit(X, Y)
    assert not model.coef_[~support & support.any(axis=1, keepdims=True)].any()
    some = np.flatnonzero(support.any(axis=1))[0]
    assert 0 < support[some].sum() < X.shape[1]
    used = X[:, support[some]]
    machine = BinaryRelevance(decision="sign").fit(used, Y[:, some : some + 1])
    # The rows come in another order there, and a machine is not learned to the last digit.
    np.testing.assert_allclose(
        model.decision_function(X)[:, some], machine.decision_function(used)[:, 0], atol=1e-3
    )


def test_machines_without_features_left_see_all() -> None:
    settings = {"beta": 1e4, "max_iter": 1000, "tol": 0.0, "decision": "sign"}
    assert not LLSF(**settings).fit(X, Y).coef_.any()
    scores = LLSF(**settings, refit=True).fit(X, Y).decision_function(X)
    expected = BinaryRelevance(decision="sign").fit(X, Y).decision_function(X)
    np.testing.assert_allclose(scores, expected, atol=1e-9)


def test_many_labels_keep_their_cosines_sparse(monkeypatch) -> None:
    gram, W = LabelGram.of(csr_array(Y.astype(float))), np.random.default_rng(0).normal(size=(3, 7))
    np.testing.assert_allclose(unlike(gram, False)(W), W @ unlikeness(Y), atol=1e-12)
    monkeypatch.setattr(llsf, "MOST_DENSE_LABELS", 2)
    np.testing.assert_allclose(unlike(gram, False)(W), W @ unlikeness(Y), atol=1e-12)


def test_a_problem_without_a_minimum_says_so_unless_it_is_projected() -> None:
    settings = {"alpha": 300.0, "beta": 0.0, "tol": 0.0, "decision": "sign"}
    with pytest.raises(ValueError, match="no minimum, and the weights grew without end"):
        LLSF(**settings, max_iter=3000).fit(X, Y)
    values, vectors = np.linalg.eigh(unlikeness(Y))
    R = vectors * np.maximum(values, 0.0) @ vectors.T
    model = LLSF(**settings, max_iter=3000, project=True).fit(X, Y)
    W = model.coef_.T
    np.testing.assert_allclose(X.T @ (X @ W - Y) + 300.0 * W @ R, 0.0, atol=1e-3)


def test_labels_that_never_vary_have_no_weights() -> None:
    odd = np.column_stack([np.zeros(len(Y), int), Y, np.ones(len(Y), int)])
    model = LLSF(decision="sign").fit(X, odd)
    assert not model.coef_[[0, -1]].any()
    assert model.intercept_[[0, -1]].tolist() == [-1.0, 1.0]
    plain = LLSF(decision="sign").fit(X, Y).decision_function(X)
    np.testing.assert_allclose(model.decision_function(X)[:, 1:-1], plain, atol=1e-8)


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (LLSF(alpha=-1.0), "alpha=-1.0 must be a number >= 0"),
        (LLSF(beta=None), "beta=None must be a number >= 0"),
        (LLSF(gamma=float("inf")), "gamma=inf must be a finite number >= 0"),
        (LLSF(max_iter=0.5), "max_iter=0.5 must be a whole number >= 1"),
        (LLSF(refit="yes"), "refit='yes' must be True or False"),
        (LLSF(n_jobs="all"), "n_jobs='all' must be a whole number"),
    ],
)
def test_bad_parameters_are_refused(model, said) -> None:
    with pytest.raises(ValueError, match=said):
        model.fit(X, Y)
