"""LEML against its objective, its equations and the nuclear norm."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from label_contracts import labelled
from marginmf.labels import LEML
from marginmf.labels.algebra.products import Spectrum
from marginmf.labels.baselines import leml
from marginmf.labels.baselines.leml import ByEigenvectors, ByIterations

X, Y = labelled(n_labels=7)
WIDE = labelled(30, 50, 5)
LABELS = csr_array(Y.astype(float))


def objective(X, Y, W, H, reg):
    return 0.5 * np.sum((Y - X @ W @ H) ** 2) + 0.5 * reg * (np.sum(W**2) + np.sum(H**2))


def oracle(X, Y, H, reg, n_iter):
    """Return W and H after some turns, each by the normal equations of all its entries."""
    for _ in range(n_iter):
        equations = np.kron(X.T @ X, H @ H.T) + reg * np.eye(X.shape[1] * len(H))
        W = np.linalg.solve(equations, (X.T @ Y @ H.T).ravel()).reshape(X.shape[1], -1)
        Z = X @ W
        H = np.linalg.solve(Z.T @ Z + reg * np.eye(len(H)), Z.T @ Y)
    return W, H


@pytest.mark.parametrize("form", [np.asarray, csr_array])
@pytest.mark.parametrize("data", [(X, Y), WIDE], ids=["narrow", "wide"])
def test_weights_solve_the_normal_equations(form, data) -> None:
    X, Y = data
    H, reg = np.random.default_rng(0).normal(size=(3, Y.shape[1])), 0.7
    spectrum = Spectrum.of(form(X), csr_array(Y.astype(float)), centred=False)
    W = spectrum.lift(ByEigenvectors(spectrum).best_weights(H, reg, None))
    np.testing.assert_allclose(X.T @ X @ W @ H @ H.T + reg * W, X.T @ Y @ H.T, atol=1e-10)


@pytest.mark.parametrize("data", [(X, Y), WIDE], ids=["narrow", "wide"])
def test_turns_are_those_of_the_oracle(data) -> None:
    X, Y = data
    model = LEML(3, 0.5, 4, 0.0, random_state=1, decision="sign").fit(X, Y)
    start = np.random.default_rng(1).uniform(0.0, 0.1, (3, Y.shape[1]))
    # The method sees labels in an order of its own, so that its start is a permutation of this.
    spectrum = Spectrum.of(X, csr_array(Y.astype(float)), centred=False)
    W, H, values = model._take_turns(ByEigenvectors(spectrum), start, float(Y.sum()))
    expected_W, expected_H = oracle(X, Y, start, 0.5, 4)
    np.testing.assert_allclose(spectrum.lift(W), expected_W, atol=1e-8)
    np.testing.assert_allclose(H, expected_H, atol=1e-8)
    assert values[-1] == pytest.approx(objective(X, Y, expected_W, expected_H, 0.5))


@pytest.mark.parametrize("intercept", [False, True])
def test_the_objective_is_what_it_says_and_never_rises(intercept) -> None:
    model = LEML(3, 0.5, 30, 0.0, intercept, random_state=0, decision="sign").fit(X, Y)
    means = (X.mean(axis=0), Y.mean(axis=0)) if intercept else (0.0, 0.0)
    value = objective(X - means[0], Y - means[1], model.feature_map_, model.label_factors_, 0.5)
    assert model.objectives_[-1] == pytest.approx(value)
    assert (np.diff(model.objectives_) <= 1e-12).all()
    assert model.n_iter_ == len(model.objectives_) == 30
    scores = (X - means[0]) @ model.feature_map_ @ model.label_factors_ + means[1] - 0.5
    np.testing.assert_allclose(model.decision_function(X), scores, atol=1e-10)


@pytest.mark.parametrize("reg", [0.3, 1.0])
def test_with_orthonormal_features_singular_values_are_made_smaller(reg) -> None:
    orthonormal = np.linalg.qr(X)[0]
    model = LEML(1.0, reg, 5000, 0.0, random_state=0, decision="sign").fit(orthonormal, Y)
    left, values, right = np.linalg.svd(orthonormal.T @ Y, full_matrices=False)
    expected = left * np.maximum(values - reg, 0.0) @ right
    np.testing.assert_allclose(model.feature_map_ @ model.label_factors_, expected, atol=1e-4)


def test_without_a_penalty_and_all_factors_it_is_least_squares() -> None:
    model = LEML(1.0, 0.0, 20, 0.0, random_state=0, decision="sign").fit(X, Y)
    expected = np.linalg.lstsq(X, Y, rcond=None)[0]
    np.testing.assert_allclose(model.feature_map_ @ model.label_factors_, expected, atol=1e-8)


@pytest.mark.parametrize("form", [np.asarray, csr_array])
@pytest.mark.parametrize("intercept", [False, True])
def test_iterations_for_many_features_come_near(form, intercept, monkeypatch) -> None:
    settings = {"random_state": 0, "fit_intercept": intercept, "decision": "sign"}
    exact = LEML(3, 1.0, 200, 1e-12, **settings).fit(form(X), Y)
    monkeypatch.setattr(leml, "MOST_EIGENVECTORS", 1)
    model = LEML(3, 1.0, 200, 1e-12, **settings).fit(form(X), Y)
    assert model.objectives_[-1] == pytest.approx(exact.objectives_[-1], rel=1e-3)
    np.testing.assert_allclose(
        model.decision_function(form(X)), exact.decision_function(form(X)), atol=0.05
    )


def test_iterations_have_the_same_products() -> None:
    spectrum, W = Spectrum.of(X, LABELS, True), np.random.default_rng(0).normal(size=(8, 2))
    inner, cross = ByIterations.of(csr_array(X), LABELS, True).products(W)
    centred = X - X.mean(axis=0)
    np.testing.assert_allclose(inner, W.T @ centred.T @ centred @ W, atol=1e-10)
    np.testing.assert_allclose(cross, W.T @ centred.T @ Y, atol=1e-10)
    basis = spectrum.lift(np.eye(8))
    for found, expected in zip(
        ByEigenvectors(spectrum).products(basis.T @ W), (inner, cross), strict=True
    ):
        np.testing.assert_allclose(found, expected, atol=1e-10)


def test_a_large_penalty_leaves_no_factors() -> None:
    model = LEML(4, 1e4, 100, random_state=0, decision="sign").fit(X, Y)
    np.testing.assert_allclose(model.decision_function(X), -0.5, atol=1e-6)
    assert not model.predict(X).any()


def test_turns_end_when_the_objective_hardly_falls() -> None:
    long, short = (LEML(3, max_iter=500, tol=tol, random_state=0).fit(X, Y) for tol in (0, 1e-3))
    assert short.n_iter_ < long.n_iter_
    falls = -np.diff(short.objectives_) / short.objectives_[1:]
    assert (falls[:-1] > 1e-3).all()
    assert falls[-1] <= 1e-3


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (LEML(0.0), "n_factors=0.0 must be a whole number >= 1, or a share"),
        (LEML(reg=-1), "reg=-1 must be a number >= 0"),
        (LEML(max_iter=0), "max_iter=0 must be a whole number >= 1"),
        (LEML(tol="no"), "tol='no' must be a number >= 0"),
        (LEML(fit_intercept="no"), "fit_intercept='no' must be True or False"),
        (LEML(random_state=-1), "random_state=-1 cannot seed"),
    ],
)
def test_bad_parameters_are_refused(model, said) -> None:
    with pytest.raises(ValueError, match=said):
        model.fit(X, Y)
