"""LIFT: features against a plain loop, seeds, shared classifiers, k-means on any form of rows."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.cluster import KMeans, MiniBatchKMeans
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import SVC

from label_contracts import labelled
from marginmf.datasets import load_labels
from marginmf.labels import LIFT, Scaled
from marginmf.labels.algebra import clusters
from marginmf.labels.baselines import lift
from marginmf.labels.order import canonical_order
from marginmf.metrics import jaccard_accuracy

X, Y = labelled()
SIGN = {"decision": "sign", "random_state": 0}


def seeds_of(random_state, classifier):
    """Return the seeds of k-means on the rows with the label, and on those without."""
    seed = int(np.random.default_rng(random_state).integers(2**63))
    return np.random.default_rng([seed, classifier]).integers(2**31, size=2)


def slow_scores(features, labels, new, ratio, seeds):
    """Return the scores of one label as the paper describes them, distance by distance."""
    sides = features[labels == 1], features[labels == 0]
    size = min(int(np.ceil(ratio * len(side) - 1e-9)) for side in sides)
    centres = []
    for side, seed in zip(sides, seeds, strict=True):
        centres += list(KMeans(size, n_init=1, random_state=seed).fit(side).cluster_centers_)

    def mapped(rows):
        return np.array([[np.sqrt(((x - c) ** 2).sum()) for c in centres] for x in rows])

    svm = SVC(kernel="linear", C=1.0, tol=1e-6).fit(mapped(features), labels)
    return mapped(new), svm.decision_function(mapped(new))


@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_features_and_scores_are_those_of_a_plain_loop(form) -> None:
    model = LIFT(0.2, **SIGN).fit(form(X), Y)
    rows = canonical_order(X, csr_array(Y.astype(float))).rows
    features = list(model._distances(form(X)))
    for label in range(Y.shape[1]):
        number = model.classifiers_[label]
        expected = slow_scores(X[rows], Y[rows, label], X, 0.2, seeds_of(0, number))
        np.testing.assert_allclose(features[number], expected[0], atol=1e-7)
        np.testing.assert_allclose(
            model.decision_function(form(X))[:, label], expected[1], atol=0.05
        )


def test_labels_of_the_same_rows_share_a_classifier() -> None:
    twice = np.column_stack([Y, Y[:, [2, 0]], np.ones(len(Y), int)])
    model = LIFT(**SIGN).fit(X, twice)
    assert len(model.n_centres_) == 5
    np.testing.assert_array_equal(model.classifiers_[[2, 0]], model.classifiers_[[5, 6]])
    scores = model.decision_function(X)
    np.testing.assert_array_equal(scores[:, [2, 0]], scores[:, [5, 6]])


def test_the_seed_decides_and_every_label_has_its_own() -> None:
    one, other = (LIFT(0.2, decision="sign", random_state=k).fit(X, Y) for k in (0, 1))
    assert np.abs(one.decision_function(X) - other.decision_function(X)).max() > 1e-3
    assert len({tuple(seeds_of(0, k)) for k in range(5)}) == 5


def test_a_label_of_one_row_has_that_row_as_its_centre() -> None:
    lonely = np.zeros((len(Y), 1), int)
    lonely[7] = 1
    model = LIFT(**SIGN).fit(X, lonely)
    np.testing.assert_allclose(model.centres_[0], X[7])
    np.testing.assert_allclose(model.centres_[1], np.delete(X, 7, axis=0).mean(axis=0))
    (features,) = model._distances(X)
    assert features[7, 0] == 0


def test_rows_that_are_all_alike_are_no_trouble() -> None:
    same = np.repeat(X[:3], 20, axis=0)
    model = LIFT(0.5, **SIGN).fit(same, Y)
    assert np.isfinite(model.decision_function(same)).all()


@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_features_far_from_zero_lose_no_digits(form) -> None:
    far = X + np.where(np.arange(X.shape[1]) == 2, 1e8, 0.0)
    model = LIFT(0.2, **SIGN).fit(form(far), Y)
    assert np.flatnonzero(model.origin_).tolist() == [2]
    centres = model.centres_[: model.n_centres_[0]]
    expected = np.sqrt((((far - model.origin_)[:, None] - centres) ** 2).sum(axis=2))
    np.testing.assert_allclose(next(model._distances(model._moved(form(far)))), expected, 1e-7)
    assert expected.max() < 5


@pytest.mark.parametrize("estimator", [LogisticRegression(), GaussianNB()])
def test_other_classifiers_see_the_distances(estimator) -> None:
    model = LIFT(0.2, estimator, **SIGN).fit(X, Y)
    features = list(model._distances(X))
    rows = canonical_order(X, csr_array(Y.astype(float))).rows
    for label in range(Y.shape[1]):
        mine = features[model.classifiers_[label]]
        oracle = estimator.fit(mine[rows], Y[rows, label])
        linear = hasattr(oracle, "coef_")
        expected = (
            oracle.decision_function(mine) if linear else oracle.predict_proba(mine)[:, 1] - 0.5
        )
        np.testing.assert_allclose(model.decision_function(X)[:, label], expected, atol=1e-6)
    assert hasattr(model, "coef_") == isinstance(estimator, LogisticRegression)


def test_binary_features_give_the_same_clusters_in_both_forms() -> None:
    """Many of their distances are equal, and rounding must not choose among them."""
    binary = (np.random.default_rng(0).random((200, 30)) < 0.1).astype(float)
    labels = (binary[:, :3].sum(axis=1, keepdims=True) > 0).astype(int)
    dense, sparse = (
        LIFT(0.3, **SIGN).fit(form(binary), labels) for form in (np.asarray, csr_array)
    )
    np.testing.assert_array_equal(dense.centres_.toarray(), sparse.centres_.toarray())
    np.testing.assert_allclose(
        dense.decision_function(binary), sparse.decision_function(csr_array(binary)), atol=1e-9
    )


def test_many_rows_are_clustered_in_small_batches(monkeypatch) -> None:
    monkeypatch.setattr(clusters, "MOST_ROWS", 50)
    centres = clusters.find_centres(X, 4, 3)
    expected = MiniBatchKMeans(4, n_init=1, max_iter=100, random_state=3).fit(X)
    np.testing.assert_array_equal(centres, expected.cluster_centers_)


@settings(deadline=None, max_examples=30)
@given(st.integers(0, 2**32 - 1), st.integers(1, 9), st.integers(1, 9), st.integers(1, 12))
def test_distances_in_blocks_are_those_of_differences(seed, n, n_centres, width) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, width)) * (rng.random((n, width)) < 0.5)
    centres = np.vstack([rows[:1], rng.normal(size=(n_centres, width))])
    expected = np.sqrt(((rows[:, None] - centres) ** 2).sum(axis=2))
    squares = (rows**2).sum(axis=1)
    block, lift.BLOCK = lift.BLOCK, 2 * width
    try:
        for form in (np.asarray, csr_array):
            found = lift.distances(form(rows), squares, form(centres))
            np.testing.assert_allclose(found, expected, atol=1e-7)
    finally:
        lift.BLOCK = block


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"ratio": 0.0}, "ratio=0.0 must be above 0 and at most 1"),
        ({"ratio": 1.5}, "ratio=1.5 must be above 0 and at most 1"),
        ({"ratio": "all"}, "ratio='all' must be a number"),
        ({"estimator": "svm"}, "estimator='svm' is not a classifier"),
        ({"random_state": "x"}, "random_state='x' cannot seed"),
        ({"n_jobs": 0.5}, "n_jobs=0.5 must be a whole number"),
    ],
)
def test_bad_parameters_are_refused(params, said) -> None:
    with pytest.raises(ValueError, match=said):
        LIFT(**params).fit(X, Y)


def test_accuracy_is_that_of_the_thesis(data_root, monkeypatch) -> None:
    """Table of chapter 5: .548 on emotions (ten folds there, three here)."""
    monkeypatch.setenv("MARGINMF_DATA", str(data_root))
    data = load_labels("emotions")
    reached = []
    for train, test in KFold(3, shuffle=True, random_state=0).split(np.arange(data.X.shape[0])):
        model = Scaled(LIFT(**SIGN)).fit(data.X[train], data.Y[train])
        reached.append(jaccard_accuracy(data.Y[test], model.predict(data.X[test])))
    assert abs(np.mean(reached) - 0.548) < 0.03
