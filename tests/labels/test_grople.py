"""GroPLE against a slow oracle with the embedded rows written out, and in odd circumstances."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import make_multilabel_classification
from sklearn.model_selection import KFold

from marginmf.labels import GroPLE
from marginmf.labels.algebra import matrices
from marginmf.labels.algebra.embedding import (
    Factorisation,
    FactorProblem,
    LabelEmbedding,
    fit_feature_map,
    largest_eigenvalue,
    leading_eigenvectors,
    unrelatedness,
)
from marginmf.labels.algebra.matrices import LabelGram, feature_moments, normal_matrix
from marginmf.solvers import Stopping, StopReason

patient = settings(deadline=None, max_examples=8)
GROUPS = np.array([0, 0, 0, 1, 1, 2, 2, 2])
STARTS = (0, 3, 5)
EXACT = Stopping(max_iter=6, tol=1e-13, gradient_tol=0.0)


def data(
    seed: int, n: int = 60, width: int = 9, n_labels: int = 8
) -> tuple[np.ndarray, np.ndarray]:
    """Return features with many zeros and labels that depend on them."""
    generator = np.random.default_rng(seed)
    X = generator.normal(1.0, 1.0, (n, width)) * (generator.random((n, width)) < 0.5)
    noise = 0.5 * generator.normal(size=(n, n_labels))
    Y = X @ generator.normal(size=(width, n_labels)) + noise > 1.0
    return X, Y.astype(np.float64)


def centred(A: np.ndarray) -> np.ndarray:
    return A - A.mean(axis=0)


# The oracle: the thesis's formulas with U as a matrix, one group after the other.


def slow_basis(Y: np.ndarray, V: np.ndarray, l1: float) -> np.ndarray:
    return Y @ V.T @ np.linalg.inv(V @ V.T + l1 * np.eye(len(V)))


def slow_objective(Y: np.ndarray, U: np.ndarray, V: np.ndarray, l1: float, l2: float) -> float:
    fit = np.square(Y - U @ V).sum() + l1 * np.square(U).sum()
    return fit + l2 * sum(np.linalg.norm(V[:, k == GROUPS], axis=1).sum() for k in range(3))


def slow_factors(Y: np.ndarray, U: np.ndarray, V: np.ndarray, l2: float) -> np.ndarray:
    """Solve one group after the other by plain proximal gradient."""
    V, L = V.copy(), 2 * np.linalg.norm(U.T @ U, 2)
    for k in range(3):
        own = k == GROUPS
        for _ in range(20_000):
            moved = V[:, own] - 2 * U.T @ (U @ V[:, own] - Y[:, own]) / L
            lengths = np.linalg.norm(moved, axis=1, keepdims=True)
            new = moved * np.maximum(1 - l2 / L / np.maximum(lengths, 1e-300), 0)
            done = np.abs(new - V[:, own]).max() < 1e-15
            V[:, own] = new
            if done:
                break
    return V


def slow_map(X: np.ndarray, U: np.ndarray, R: np.ndarray, alpha: float, beta: float) -> np.ndarray:
    Z = np.zeros((X.shape[1], U.shape[1]))
    L = 2 * np.linalg.norm(X, 2) ** 2 + 2 * alpha * np.linalg.norm(R, 2)
    for _ in range(3_000):
        moved = Z - (2 * X.T @ (X @ Z - U) + 2 * alpha * Z @ R) / L
        Z = np.sign(moved) * np.maximum(np.abs(moved) - beta / L, 0)
    return Z


def slow_map_objective(X, U, R, alpha, beta, Z) -> float:
    related = alpha * sum(R[i, j] * Z[:, i] @ Z[:, j] for i in range(len(R)) for j in range(len(R)))
    return np.square(X @ Z - U).sum() + related + beta * np.abs(Z).sum()


def embedding(Y: np.ndarray, l1: float = 1e-3, l2: float = 1.0) -> LabelEmbedding:
    return LabelEmbedding(LabelGram.of(csr_array(Y)), STARTS, l1, l2)


@patient
@given(seed=st.integers(0, 1000), l1=st.floats(1e-3, 2), l2=st.floats(0, 3))
def test_products_and_objective_are_those_of_the_embedded_rows(
    seed: int, l1: float, l2: float
) -> None:
    _, Y = data(seed)
    V = np.random.default_rng(seed).normal(size=(4, 8))
    place = embedding(Y, l1, l2).with_best_basis(V)
    U = slow_basis(centred(Y), V, l1)
    np.testing.assert_allclose(centred(Y) @ place.mixing, U, atol=1e-9)
    np.testing.assert_allclose(place.inner, U.T @ U, atol=1e-9)
    np.testing.assert_allclose(place.cross, U.T @ centred(Y), atol=1e-9)
    expected = slow_objective(centred(Y), U, V, l1, l2)
    assert embedding(Y, l1, l2).objective(place) == pytest.approx(expected, rel=1e-9)


def test_the_best_basis_is_not_beaten_by_its_neighbours() -> None:
    _, Y = data(0)
    V = np.random.default_rng(0).normal(size=(4, 8))
    U, h = slow_basis(centred(Y), V, 0.3), 1e-5
    for place in [(0, 0), (7, 3), (30, 1)]:
        step = np.zeros_like(U)
        step[place] = h
        slope = slow_objective(centred(Y), U + step, V, 0.3, 1) - slow_objective(
            centred(Y), U - step, V, 0.3, 1
        )
        assert slope / (2 * h) == pytest.approx(0, abs=1e-6)


def test_gradient_by_the_factors_is_the_slope() -> None:
    _, Y = data(1)
    whole = embedding(Y)
    here = whole.with_best_basis(np.random.default_rng(1).normal(size=(4, 8)))
    problem, h = FactorProblem(whole, here), 1e-5
    gradient = problem.smooth(problem.start)[1]
    for entry in np.ndindex(4, 8):
        step = np.zeros((4, 8))
        step[entry] = h
        values = [problem.smooth(problem.start + sign * step)[0] for sign in (1, -1)]
        assert gradient[entry] == pytest.approx((values[0] - values[1]) / (2 * h), abs=1e-5)


@pytest.mark.parametrize(("l1", "l2"), [(1e-3, 1.0), (0.5, 0.2), (1e-3, 8.0)])
@pytest.mark.parametrize("n_factors", [3, 8])
def test_turns_agree_with_the_oracle(l1: float, l2: float, n_factors: int) -> None:
    _, Y = data(2)
    result = embedding(Y, l1, l2).minimise(n_factors, EXACT)
    V = leading_eigenvectors(LabelGram.of(csr_array(Y)), n_factors).T
    for _ in range(result.n_iter):
        V = slow_factors(centred(Y), slow_basis(centred(Y), V, l1), V, l2)
    U = slow_basis(centred(Y), V, l1)
    np.testing.assert_allclose(result.point.factors, V, atol=1e-9)
    np.testing.assert_allclose(centred(Y) @ result.point.mixing, U, atol=1e-7)
    assert result.objective == pytest.approx(slow_objective(centred(Y), U, V, l1, l2), rel=1e-9)


def test_a_strong_penalty_makes_groups_share_few_factors() -> None:
    _, Y = data(3, n=200)
    result = embedding(Y, 1e-3, 20.0).minimise(8, Stopping(max_iter=100, tol=1e-6))
    lengths = np.sqrt(np.add.reduceat(np.square(result.point.factors), STARTS, axis=1))
    assert 0.2 < (lengths == 0).mean() < 0.9


def test_no_penalty_leaves_the_eigenvectors() -> None:
    _, Y = data(4)
    result = embedding(Y, 0.0, 0.0).minimise(3, Stopping(max_iter=20, tol=1e-12))
    leading = leading_eigenvectors(LabelGram.of(csr_array(Y)), 3)
    expected = np.square(centred(Y) - centred(Y) @ leading @ leading.T).sum()
    assert result.objective == pytest.approx(expected, rel=1e-9)


@patient
@given(seed=st.integers(0, 1000), l2=st.floats(0, 20))
def test_the_objective_of_the_labels_never_rises(seed: int, l2: float) -> None:
    _, Y = data(seed)
    history = embedding(Y, 1e-3, l2).minimise(5, Stopping(max_iter=8, tol=1e-6)).history
    assert (np.diff([record.objective for record in history]) <= 0).all()
    assert (np.diff([record.n_evaluations for record in history]) > 0).all()


@pytest.mark.parametrize("many", [False, True])
def test_eigenvectors_of_few_and_of_many_labels(many: bool, monkeypatch) -> None:
    monkeypatch.setattr("marginmf.labels.algebra.matrices.MOST_DENSE_LABELS", 4 if many else 100)
    _, Y = data(5, n_labels=12)
    Y[:, 3] = Y[:, 4] = Y[:, 5]
    Y[:, 0] = 0
    gram = LabelGram.of(csr_array(Y))
    vectors = leading_eigenvectors(gram, 6)
    values = np.linalg.eigvalsh(gram.matrix)[::-1]
    np.testing.assert_allclose(gram.apply(vectors), vectors * values[:6], atol=1e-8)
    assert leading_eigenvectors(gram, 12).shape == (12, 9)


@pytest.mark.parametrize("formed", [False, True])
@pytest.mark.parametrize(("alpha", "beta"), [(0.0, 2.0), (3.0, 0.5), (1.0, 0.0)])
def test_map_agrees_with_the_oracle(alpha, beta, formed, monkeypatch) -> None:
    monkeypatch.setattr(matrices, "should_form", lambda *_: formed)
    X, Y = data(6)
    X[:, 4] = 2.0
    place: Factorisation = embedding(Y).minimise(5, EXACT).point
    U = centred(Y) @ place.mixing
    R = unrelatedness(place.inner)
    result = fit_feature_map(
        normal_matrix(X, feature_moments(X), np.float64, 5),
        centred(X).T @ U,
        place.inner,
        alpha,
        beta,
        Stopping(5000, -np.inf, 0.0, step_tol=1e-13),
    )
    Z = slow_map(centred(X), U, R, alpha, beta)
    expected = slow_map_objective(centred(X), U, R, alpha, beta, Z)
    assert result.objective == pytest.approx(expected, rel=1e-9)
    np.testing.assert_allclose(result.point, Z, atol=1e-5)
    assert (result.point[4] == 0).all()


def test_unrelatedness_is_the_nearest_matrix_without_negative_eigenvalues() -> None:
    generator = np.random.default_rng(7)
    U = centred(generator.normal(size=(50, 6)))
    raw = 1 - np.corrcoef(U.T)
    assert (np.linalg.eigvalsh(raw) < -0.1).any()
    R = unrelatedness(U.T @ U)
    assert np.linalg.eigvalsh(R).min() > -1e-12
    values, vectors = np.linalg.eigh(raw)
    negative = vectors[:, values < 0] * values[values < 0] @ vectors[:, values < 0].T
    np.testing.assert_allclose(raw - R, negative, atol=1e-12)
    # Dead columns have no correlations, and no NaN.
    U[:, 2] = 0
    assert np.isfinite(unrelatedness(U.T @ U)).all()


@patient
@given(seed=st.integers(0, 1000), n=st.integers(1, 40))
def test_largest_eigenvalue_is_bounded_from_above_closely(seed: int, n: int) -> None:
    generator = np.random.default_rng(seed)
    A = generator.normal(size=(n, n)) * generator.uniform(0, 3, n)
    matrix = A.T @ A
    exact = np.linalg.eigvalsh(matrix)[-1]
    bound = largest_eigenvalue(lambda v: matrix @ v, n, np.float64)
    assert exact * (1 - 1e-9) <= bound <= 1.1 * exact


# The estimator.


def model(**params) -> GroPLE:
    return GroPLE(**{"n_factors": 5, "n_groups": 3, "random_state": 0, "decision": "sign"} | params)


def test_scores_are_those_of_the_oracle() -> None:
    X, Y = data(8)
    fitted = model(grouping=GROUPS, reg_sparse=1.0, dtype="float64", tol=1e-6, max_iter=100).fit(
        X, Y
    )
    V = fitted.label_factors_
    U = slow_basis(centred(Y), V, 1e-3)
    Z = slow_map(centred(X), U, np.zeros((5, 5)), 0.0, 1.0)
    new = data(9)[0]
    np.testing.assert_allclose(fitted.transform(new), (new - X.mean(axis=0)) @ Z, atol=1e-4)
    expected = (new - X.mean(axis=0)) @ Z @ V + Y.mean(axis=0) - 0.5
    np.testing.assert_allclose(fitted.decision_function(new), expected, atol=1e-4)
    np.testing.assert_array_equal(fitted.predict(new), fitted.decision_function(new) > 0)


def test_sparse_and_dense_features_give_the_same() -> None:
    X, Y = data(10)
    dense = model(dtype="float64", tol=1e-5, max_iter=30).fit(X, Y)
    sparse = clone(dense).fit(csr_array(X), csr_array(Y))
    np.testing.assert_allclose(
        sparse.decision_function(csr_array(X)), dense.decision_function(X), atol=1e-4
    )
    np.testing.assert_array_equal(sparse.label_groups_, dense.label_groups_)


def test_features_that_are_too_small_for_float32_are_as_good_as_constant() -> None:
    X, Y = data(11)
    tiny = np.column_stack([X, 1e-160 * X[:, 0]])
    with_tiny = model().fit(tiny, Y).decision_function(tiny)
    np.testing.assert_allclose(with_tiny, model().fit(X, Y).decision_function(X), atol=1e-6)


def test_float32_is_near_float64() -> None:
    X, Y = data(11)
    scores = [
        model(dtype=dtype, tol=1e-5).fit(X, Y).decision_function(X)
        for dtype in ("float32", "float64")
    ]
    np.testing.assert_allclose(*scores, atol=1e-3)


@pytest.mark.parametrize(("decision", "seed"), [("sign", 0), ("global", 2)])
def test_the_order_of_rows_and_labels_does_not_matter(seed: int, decision: str) -> None:
    X, Y = data(seed, n=80, n_labels=20)
    # Labels that are equal, empty or rare, whose eigenvalues are equal too.
    Y[:, 3:7] = 0
    Y[0, 4] = Y[1, 5] = Y[2, 6] = 1
    Y[:, 8] = Y[:, 7]
    generator = np.random.default_rng(seed)
    rows, labels = generator.permutation(80), generator.permutation(20)
    first = model(dtype="float64", tol=1e-5, max_iter=30, decision=decision, n_groups=5).fit(X, Y)
    second = clone(first).fit(X[rows], Y[rows][:, labels])
    np.testing.assert_array_equal(second.label_groups_, first.label_groups_[labels])
    np.testing.assert_allclose(
        second.decision_function(X), first.decision_function(X)[:, labels], atol=1e-5
    )
    np.testing.assert_array_equal(second.predict(X), first.predict(X)[:, labels])


def test_the_same_seed_gives_the_same_answer() -> None:
    X, Y = data(12)
    scores = [model().fit(X, Y).decision_function(X) for _ in range(2)]
    np.testing.assert_array_equal(*scores)


def test_both_histories_fall_and_say_why_they_ended() -> None:
    X, Y = data(13)
    fitted = model(dtype="float64").fit(X, Y)
    assert len(fitted.history_) == len(fitted.stop_reason_) == 2
    for history in fitted.history_:
        assert (np.diff([record.objective for record in history]) <= 0).all()
    assert fitted.n_iter_ == max(len(history) - 1 for history in fitted.history_)
    assert fitted.stop_reason_ == [str(StopReason.OBJECTIVE), str(StopReason.STEP)]


@pytest.mark.parametrize("n_factors", [1, 8, 50])
def test_factors_are_no_more_than_the_rank_of_the_labels(n_factors: int) -> None:
    X, Y = data(14)
    Y[:, 1] = Y[:, 0]
    fitted = model(n_factors=n_factors).fit(X, Y)
    n_components = min(n_factors, 7)
    assert fitted.label_factors_.shape == (n_components, 8)
    assert fitted.feature_map_.shape == (9, n_components)
    assert fitted.transform(X).shape == (60, n_components)


def test_embeddings_come_as_data_frames() -> None:
    X, Y = data(15)
    fitted = model().set_output(transform="pandas").fit(X, Y)
    names = [f"grople{k}" for k in range(5)]
    assert fitted.transform(X).columns.tolist() == names
    assert fitted.get_feature_names_out().tolist() == names


def test_a_sparser_map_for_a_larger_penalty() -> None:
    X, Y = data(16, n=300)
    shares = [
        np.mean(model(reg_sparse=reg).fit(X, Y).feature_map_ != 0) for reg in (0.0, 10.0, 1e6)
    ]
    assert shares[0] > shares[1] > shares[2] == 0


def test_a_penalty_that_kills_all_factors_predicts_the_means() -> None:
    X, Y = data(17)
    for reg_corr in (0.0, 1.0):
        fitted = model(reg_group=1e6, reg_corr=reg_corr).fit(X, Y)
        assert (fitted.label_factors_ == 0).all()
        np.testing.assert_allclose(fitted.decision_function(X)[0], Y.mean(axis=0) - 0.5)


@pytest.mark.parametrize("kind", [np.asarray, csr_array])
def test_reg_corr_works_where_features_are_more_than_rows(kind) -> None:
    X, Y = data(18, n=20, width=40)
    fitted = model(reg_corr=100.0, reg_sparse=0.0).fit(kind(X), Y)
    assert np.isfinite(fitted.decision_function(kind(X))).all()
    size = np.abs(fitted.feature_map_).sum()
    assert size < np.abs(model(reg_sparse=0.0).fit(kind(X), Y).feature_map_).sum()


def odd_labels(name: str) -> tuple[np.ndarray, np.ndarray]:
    X, Y = data(19)
    if name == "a label without positives":
        Y[:, 2] = 0
    elif name == "a label that all rows have":
        Y[:, 2] = 1
    elif name == "only labels without positives":
        Y[:] = 0
    elif name == "rows without labels and features":
        X[:10], Y[:20] = 0, 0
    elif name == "one label":
        Y = Y[:, :1]
    elif name == "constant features":
        X[:] = 3.0
    elif name == "empty features":
        X[:] = 0.0
    elif name == "one row":
        X, Y = X[:1], Y[:1]
    elif name == "more features than rows":
        X, Y = data(19, n=8, width=50)
    elif name == "features far from zero":
        X += 1e6
    return X, Y


@pytest.mark.parametrize(("kind", "reg_corr"), [(np.asarray, 0.0), (csr_array, 1.0)])
@pytest.mark.parametrize(
    "name",
    [
        "a label without positives",
        "a label that all rows have",
        "only labels without positives",
        "rows without labels and features",
        "one label",
        "constant features",
        "empty features",
        "one row",
        "more features than rows",
        "features far from zero",
    ],
)
def test_odd_data(name: str, kind, reg_corr: float) -> None:
    X, Y = odd_labels(name)
    fitted = model(decision="global", n_groups=10, reg_corr=reg_corr, cv=2, max_iter=20)
    fitted.fit(kind(X), Y)
    assert np.isfinite(fitted.decision_function(kind(X))).all()
    predicted = fitted.predict(kind(X))
    assert predicted.shape == Y.shape
    assert not predicted[:, Y.sum(axis=0) == 0].any()
    if name == "a label that all rows have":
        assert predicted[:, 2].all()


def test_groups_may_be_given_or_clustered() -> None:
    X, Y = data(20)
    groups = np.array([5, 5, 1, 1, 1, 9, 9, 5])
    np.testing.assert_array_equal(model(grouping=groups).fit(X, Y).label_groups_, groups)
    clustered = model(grouping=KMeans(2, n_init=1, random_state=0)).fit(X, Y)
    assert set(clustered.label_groups_) == {0, 1}


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"n_factors": 0}, "n_factors=0 must be a whole number >= 1"),
        ({"n_groups": 2.5}, "n_groups=2.5 must be a whole number >= 1"),
        ({"reg_sparse": -1.0}, "reg_sparse=-1.0 must be a number >= 0"),
        ({"reg_corr": np.nan}, "reg_corr=nan must be a number >= 0"),
        ({"max_iter": 0}, "max_iter=0 must be a whole number >= 1"),
        ({"dtype": "float16"}, "dtype='float16' is not known"),
        ({"grouping": "kmeans"}, "grouping='kmeans' is not known"),
        ({"grouping": [0, 1]}, "the groups of 2 labels, but there are 8"),
        ({"random_state": "seed"}, "random_state='seed' cannot seed"),
    ],
)
def test_bad_parameters_are_sentences(params: dict, said: str) -> None:
    X, Y = data(21)
    with pytest.raises(ValueError, match=said):
        model(**params).fit(X, Y)


def test_corel5k_under_sign(data_root) -> None:
    """Accuracy of PLST's order, as the thesis has it for methods that decide by the sign."""
    with np.load(data_root / "labels" / "corel5k.npz") as file:
        X, Y = (
            csr_array(
                tuple(file[f"{name}_{part}"] for part in ("data", "indices", "indptr")),
                shape=tuple(file[f"{name}_shape"]),
            ).astype(np.float64)
            for name in "XY"
        )
    train, test = next(KFold(5, shuffle=True, random_state=0).split(np.arange(5000)))
    fitted = GroPLE(reg_sparse=0.1, decision="sign", random_state=0).fit(X[train], Y[train])
    predicted, true = fitted.predict(X[test]).toarray() > 0, Y[test].toarray() > 0
    union = (predicted | true).sum(axis=1)
    accuracy = np.mean((predicted & true).sum(axis=1) / np.maximum(union, 1))
    assert 0.050 <= accuracy <= 0.060


@pytest.mark.parametrize("form", [np.asarray, csr_array])
@pytest.mark.parametrize("n", [60, 300])
def test_features_may_be_far_from_zero(form, n) -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 200))
    Y = (X[:, :8] + 0.5 * rng.normal(size=(n, 8)) > 0.5).astype(int)
    fits = (model(grouping=GROUPS).fit(form(X + offset), Y) for offset in (0.0, 1e5))
    near, far = (fitted.feature_map_ @ fitted.label_factors_ for fitted in fits)
    assert np.corrcoef(near.ravel(), far.ravel())[0, 1] > 0.999


def test_very_large_features_do_not_overflow() -> None:
    X, Y = data(3)
    fitted = model().fit(1e25 * X, Y)
    assert np.isfinite(fitted.decision_function(1e25 * X)).all()


@pytest.mark.parametrize(("decision", "n_jobs"), [("sign", 2), ("global", 2), ("per_label", 5)])
def test_threads_do_not_change_a_bit(decision, n_jobs) -> None:
    X, Y = data(11, n=90)
    one = GroPLE(3, 2, max_iter=20, decision=decision, random_state=0).fit(X, Y)
    several = clone(one).set_params(n_jobs=n_jobs).fit(X, Y)
    for name in ("label_factors_", "feature_map_", "label_groups_", "thresholds_"):
        np.testing.assert_array_equal(getattr(several, name), getattr(one, name))
    assert several.n_iter_ == one.n_iter_


def test_an_error_in_one_of_the_threads_is_told() -> None:
    class Failing(KMeans):
        def fit_predict(self, X, y=None):
            raise RuntimeError("no clusters today")

    X, Y = data(12)
    with pytest.raises(RuntimeError, match="no clusters today"):
        GroPLE(3, 2, grouping=Failing(2), n_jobs=4).fit(X, Y)


def test_an_impossible_number_of_threads_is_refused() -> None:
    with pytest.raises(ValueError, match="n_jobs='two' must be a whole number"):
        GroPLE(n_jobs="two").fit(*data(13))


def test_the_draws_of_a_generator_do_not_depend_on_the_number_of_jobs() -> None:
    X, Y = make_multilabel_classification(400, n_classes=40, n_labels=4, random_state=0)
    thresholds = [
        GroPLE(5, n_groups=8, n_jobs=n, random_state=np.random.default_rng(0)).fit(X, Y).thresholds_
        for n in (1, 2, 4)
    ]
    np.testing.assert_array_equal(thresholds[0], thresholds[1])
    np.testing.assert_array_equal(thresholds[0], thresholds[2])
