"""Kernel ridge regression: folds without fits, landmarks, what is chosen; kernels as features."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.gaussian_process.kernels import RBF
from sklearn.kernel_ridge import KernelRidge
from sklearn.preprocessing import MinMaxScaler, Normalizer

import marginmf
from label_contracts import LabelsEstimatorContract, accuracy, labelled
from marginmf.labels import GroPLE, KernelEmbedding, KernelFeatures, RidgeEmbedding, kernels
from marginmf.labels.algebra.kernels import (
    DualRidge,
    LandmarkMoments,
    median_distance,
    rbf_kernel,
    squared_distances,
)
from marginmf.labels.strengths import climb

patient = settings(deadline=None)
#: A kernel that is given, so that nothing is chosen.
GIVEN = {"reg": 0.1, "gamma": 1.0, "prepare": "none"}


def test_the_kernel_is_that_of_squared_distances() -> None:
    X, _ = labelled(20, 5)
    expected = RBF(length_scale=np.sqrt(0.5 / 0.7))(X, X[:7])
    for form in (np.asarray, csr_array):
        np.testing.assert_allclose(rbf_kernel(form(X), form(X[:7]), 0.7), expected, atol=1e-12)
    brute = ((X[:, None] - X) ** 2).sum(axis=2)
    np.testing.assert_allclose(squared_distances(X, X), brute, atol=1e-12)
    assert median_distance(X) == pytest.approx(np.median(brute[np.triu_indices(20, 1)]))
    assert median_distance(np.ones((3, 2))) == 1.0


def solve_with_intercept(K, Y, reg):
    """Kernel ridge regression with an intercept that is not penalised, by its normal equations."""
    n = len(K)
    system = np.block([[K + reg * np.eye(n), np.ones((n, 1))], [np.ones((1, n)), np.zeros((1, 1))]])
    found = np.linalg.solve(system, np.vstack([Y, np.zeros((1, Y.shape[1]))]))
    return found[:-1], found[-1]


@given(seed=st.integers(0, 1000), reg=st.sampled_from([0.01, 0.3, 3.0]), n_folds=st.integers(2, 7))
@patient
def test_predictions_of_folds_equal_refits(seed, reg, n_folds) -> None:
    X, Y = labelled(24, 5, 3, seed)
    K = rbf_kernel(X, X, 1.0)
    ridge = DualRidge(K, reg)
    weights, intercept = ridge.weights(csr_array(Y.astype(float)))
    expected = solve_with_intercept(K, Y, reg)
    np.testing.assert_allclose(weights, expected[0], atol=1e-8)
    np.testing.assert_allclose(intercept, expected[1], atol=1e-8)
    parts = [np.arange(k, 24, n_folds) for k in range(n_folds)]
    found = ridge.held_out(csr_array(Y.astype(float)), weights, parts)
    for part, predicted in zip(parts, found, strict=True):
        others = np.setdiff1d(np.arange(24), part)
        own, shift = solve_with_intercept(K[np.ix_(others, others)], Y[others], reg)
        np.testing.assert_allclose(predicted, K[np.ix_(part, others)] @ own + shift, atol=1e-8)


def test_a_penalty_that_single_precision_loses_is_kept_in_double_precision() -> None:
    X, Y = labelled(40, 3)
    near = np.vstack([X, X + 1e-5])
    K = rbf_kernel(near, near, 1.0)
    targets = csr_array(np.vstack([Y, Y]).astype(float))
    weights, _ = DualRidge(K.astype(np.float32), 1e-6).weights(targets)
    assert weights.dtype == np.float64
    with pytest.raises(ValueError, match="reg=1e-20 is too small for these rows"):
        DualRidge(K, 1e-20).weights(targets)


def test_scores_are_those_of_scikit_learn_on_centred_data() -> None:
    # With centred targets, and a kernel whose rows all have the same sum, the intercept is zero.
    X = np.array([[0.0], [1.0]])
    Y = np.array([[1, 0], [0, 1]])
    model = KernelEmbedding(0.5, 1.0, "none", decision="sign").fit(X, Y)
    centred = Y - Y.mean(axis=0)
    other = KernelRidge(alpha=0.5, kernel="rbf", gamma=model.gamma_).fit(X, centred)
    np.testing.assert_allclose(model.decision_function(X), other.predict(X), atol=1e-12)


@pytest.mark.parametrize("reg", [0.1, 3.0])
def test_as_many_landmarks_as_rows_are_the_exact_solution(reg) -> None:
    X, Y = labelled(40, 6)
    Y = csr_array(Y.astype(float))
    K = rbf_kernel(X, X, 1.0)
    weights, intercept = DualRidge(K, reg).weights(Y)
    moments = LandmarkMoments(40, Y.shape[1])
    for rows in np.array_split(np.arange(40), 3):
        moments.add(K[rows], Y[rows])
    others, other = moments.weights(K, reg)
    np.testing.assert_allclose(K @ others + other, K @ weights + intercept, atol=1e-5)


def test_landmarks_of_some_rows_are_near_the_exact_solution(monkeypatch) -> None:
    X, Y = labelled(300, 6)
    exact = KernelEmbedding(**GIVEN).fit(X, Y)
    few = KernelEmbedding(**GIVEN, n_landmarks=150).fit(X, Y)
    assert few.rows_.shape == (150, 6)
    assert few.weights_.dtype == np.float32
    assert np.abs(few._label_scores(X) - exact._label_scores(X)).mean() < 0.02
    assert accuracy(Y, few.predict(X)) > accuracy(Y, exact.predict(X)) - 0.05
    monkeypatch.setattr(kernels, "MOST_EXACT", 200)
    monkeypatch.setattr(kernels, "N_LANDMARKS", 150)
    automatic = KernelEmbedding(**GIVEN).fit(csr_array(X), Y)
    np.testing.assert_allclose(automatic.decision_function(X), few.decision_function(X), atol=1e-5)


@pytest.mark.parametrize("n_landmarks", ["auto", 30])
def test_thresholds_are_chosen_on_what_refits_would_predict(n_landmarks) -> None:
    X, Y = labelled(60)
    model = KernelEmbedding(**GIVEN, n_landmarks=n_landmarks)
    model.fit(X, Y)
    found = dict.fromkeys(range(60))
    bare = KernelEmbedding(**GIVEN, n_landmarks=n_landmarks)
    bare.targets_ = model.targets_
    for rows, scores in bare._cross_fit(X, csr_array(Y.astype(float))):
        found.update(zip(rows.tolist(), scores, strict=True))
    held_out = np.array([found[row] for row in range(60)])
    # A model of the other two thirds, with the bandwidth of all.
    order = np.argsort(marginmf.labels.order.canonical_order(X, csr_array(Y.astype(float))).rows)
    for fold in range(3):
        part = np.flatnonzero(order % 3 == fold)
        others = np.setdiff1d(np.arange(60), part)
        K = rbf_kernel(X, X, model.gamma_)
        if n_landmarks == "auto":
            weights, shift = solve_with_intercept(K[np.ix_(others, others)], Y[others], 0.1)
            expected = K[np.ix_(part, others)] @ weights + shift
        else:
            chosen = np.flatnonzero(order < 30)
            moments = LandmarkMoments(30, Y.shape[1])
            moments.add(K[np.ix_(others, chosen)], csr_array(Y[others].astype(float)))
            weights, shift = moments.weights(K[np.ix_(chosen, chosen)], 0.1)
            expected = K[np.ix_(part, chosen)] @ weights + shift
        np.testing.assert_allclose(held_out[part], expected - 0.5, atol=1e-5)


def test_what_is_auto_is_chosen_on_rows_held_out() -> None:
    X, Y = labelled(120)
    X = X * np.array([1e4, 1, 1, 1, 1, 1, 1, 1e-4])  # one feature drowns the others
    model = KernelEmbedding().fit(X, Y)
    assert model.kernel_["prepare"] == "scale"
    assert model.kernel_["reg"] in kernels.REGS
    assert model.kernel_["gamma"] in kernels.GAMMAS
    given = KernelEmbedding(**{name: model.kernel_[name] for name in model.kernel_}).fit(X, Y)
    np.testing.assert_array_equal(given.decision_function(X), model.decision_function(X))
    np.testing.assert_allclose(model.factor_, MinMaxScaler().fit(X).scale_)


def test_a_strength_that_is_given_leaves_the_kernel_to_be_chosen() -> None:
    X, Y = labelled(120)
    X = X * np.array([1e4, 1, 1, 1, 1, 1, 1, 1e-4])
    for decision in ("auto", "sign"):
        model = KernelEmbedding(0.3, decision=decision).fit(X, Y)
        assert model.kernel_["prepare"] == "scale"
        assert model.kernel_["reg"] == 0.3


def test_rows_are_prepared_as_scikit_learn_does() -> None:
    X, Y = labelled()
    for how, scaler in (("scale", MinMaxScaler()), ("normalize", Normalizer())):
        prepared = scaler.fit_transform(X)
        model = KernelEmbedding(0.1, 1.0, how, decision="sign").fit(X, Y)
        plain = KernelEmbedding(0.1, 1.0, "none", decision="sign").fit(prepared, Y)
        np.testing.assert_allclose(
            model.decision_function(X), plain.decision_function(prepared), atol=1e-8
        )


def test_a_search_goes_where_it_gets_better() -> None:
    asked = []

    def value(x):
        asked.append(x)
        return -abs(x - 8.0)

    assert climb(value, 2.0, [1.0, 2.0, 4.0, 8.0, 16.0, 32.0]) == 8.0
    assert 32.0 not in asked
    assert climb(value, 8.0, [8.0]) == 8.0


def test_bad_kernels_get_a_sentence() -> None:
    X, Y = labelled()
    for params, said in (
        ({"reg": 0.0}, "reg=0.* must be above 0"),
        ({"gamma": 0}, "gamma=0 must be above 0"),
        ({"reg": "best"}, "reg='best'"),
        ({"prepare": "whiten"}, "prepare='whiten' is not known"),
        ({"n_landmarks": 0}, "n_landmarks=0 must be a whole number"),
    ):
        with pytest.raises(ValueError, match=said):
            KernelEmbedding(**params).fit(X, Y)
    for params, said in (
        ({"kind": "poly"}, "kind='poly' is not known"),
        ({"gamma": 0}, "gamma=0 must be above 0"),
        ({"n_components": 0}, "n_components=0"),
    ):
        with pytest.raises(ValueError, match=said):
            KernelFeatures(RidgeEmbedding(), **params).fit(X, Y)


class TestKernelFeatures(LabelsEstimatorContract):
    grid = {"gamma": (0.5, 2.0)}  # noqa: RUF012
    # Features are kept in single precision.
    tolerance = 1e-4

    def make(self, **params):
        return KernelFeatures(RidgeEmbedding(0.01), prepare="none", **params)

    def make_for_many_labels(self):
        return KernelFeatures(RidgeEmbedding(0.01, decision="sign"), n_components=50)


@pytest.mark.parametrize("kind", ["nystroem", "fourier"])
def test_products_of_features_are_about_the_kernel(kind) -> None:
    X, Y = labelled(50)
    model = KernelFeatures(RidgeEmbedding(), n_components=4000, kind=kind, random_state=0).fit(X, Y)
    rows = X * model.factor_
    features = model._map(X)
    error = np.abs(features @ features.T - rbf_kernel(rows, rows, model.gamma_)).max()
    assert error < (1e-3 if kind == "nystroem" else 0.1)


def test_any_method_can_see_them() -> None:
    X, Y = labelled(200)
    mapped = KernelFeatures(GroPLE(5, 2, reg_sparse=0.1, random_state=0), n_components=100)
    assert mapped.fit(X, Y).estimator_.feature_map_.shape[0] == 100
    kernel = KernelEmbedding(1.0, 1.0, "scale").fit(X, Y)
    ridge = KernelFeatures(RidgeEmbedding(1.0), n_components=200).fit(X, Y)
    np.testing.assert_allclose(ridge._label_scores(X), kernel._label_scores(X), atol=1e-3)


def test_models_of_kernels_are_kept(tmp_path) -> None:
    X, Y = labelled()
    for number, model in enumerate(
        (KernelEmbedding(n_landmarks=20), KernelFeatures(RidgeEmbedding(), kind="fourier"))
    ):
        model.fit(X, Y).save(tmp_path / f"{number}.marginmf")
        copy = marginmf.load(tmp_path / f"{number}.marginmf")
        np.testing.assert_array_equal(copy.decision_function(X), model.decision_function(X))
