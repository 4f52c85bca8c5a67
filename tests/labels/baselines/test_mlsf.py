"""MLSF: affinities, groups and targets against their definitions, and chains on chosen features."""

from itertools import islice

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.model_selection import KFold
from sklearn.naive_bayes import GaussianNB

from label_contracts import labelled
from marginmf.datasets import load_labels
from marginmf.labels import MLSF, ClassifierChains
from marginmf.labels.baselines import mlsf
from marginmf.labels.order import content_order
from marginmf.metrics import jaccard_accuracy

X, Y = labelled(80, 8, 7)
SIGN = {"decision": "sign", "random_state": 0}


def slow_affinities(X, Y, alpha, epsilon):
    """Return the affinities of labels, pair by pair."""
    n_labels = Y.shape[1]
    table = np.zeros((n_labels, n_labels))
    for j in range(n_labels):
        for k in range(n_labels):
            has_j, has_k = Y[:, j] > 0, Y[:, k] > 0
            jaccard = (has_j & has_k).sum() / (has_j | has_k).sum()
            distance = np.linalg.norm(X[has_j].mean(axis=0) - X[has_k].mean(axis=0))
            value = alpha * jaccard + (1 - alpha) * np.exp(-distance)
            table[j, k] = value if j != k and value >= epsilon else 0.0
    return table


@pytest.mark.parametrize("form", [np.asarray, csr_array])
@pytest.mark.parametrize(("alpha", "epsilon"), [(0.8, 0.01), (0.0, 0.5), (1.0, 0.2)])
def test_affinities_are_those_of_the_definition(form, alpha, epsilon) -> None:
    found = mlsf.label_affinities(form(X), csr_array(Y.astype(float)), alpha, epsilon)
    np.testing.assert_allclose(found, slow_affinities(X, Y, alpha, epsilon), atol=1e-12)
    assert (found == 0).any()


@settings(deadline=None, max_examples=40)
@given(st.lists(st.lists(st.booleans(), min_size=3, max_size=3), min_size=1, max_size=12))
def test_targets_are_ranks_of_binary_numbers(rows) -> None:
    leading = sorted(range(3), key=lambda k: -sum(row[k] for row in rows))
    numbers = [sum(row[k] << (2 - digit) for digit, k in enumerate(leading)) for row in rows]
    occurring = sorted(set(numbers))
    expected = [occurring.index(number) / max(1, len(occurring) - 1) for number in numbers]
    found = mlsf.rank_combinations(csr_array(np.array(rows, float)))
    np.testing.assert_allclose(found, expected)


def test_the_target_of_a_single_label_is_the_label() -> None:
    np.testing.assert_array_equal(mlsf.rank_combinations(csr_array(Y[:, :1])), Y[:, 0])


def test_a_group_of_a_hundred_labels_is_ranked_without_overflow() -> None:
    wide = (np.random.default_rng(0).random((50, 100)) < 0.3).astype(int)
    leading = np.argsort(-wide.sum(axis=0), kind="stable")
    order = np.lexsort(wide[:, leading].T[::-1])
    found = mlsf.rank_combinations(csr_array(wide))
    assert (np.diff(found[order]) > 0).all()


@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_weights_meet_the_conditions_of_the_optimum(form) -> None:
    """No step of 1/2 |Xv - z|^2 + gamma |v|_1 goes down: its subgradient holds zero."""
    gamma, target = 1.0, mlsf.rank_combinations(csr_array(Y[:, :3]))
    weights = mlsf.sparse_regressions(form(X), iter([target]), gamma).toarray()[0]
    slope = X.T @ (X @ weights - target)
    used = weights != 0
    assert 0 < used.sum() < len(weights)
    np.testing.assert_allclose(slope[used], -gamma * np.sign(weights[used]), atol=0.02)
    assert (np.abs(slope[~used]) <= gamma + 0.02).all()


def test_spectral_clusters_find_blocks() -> None:
    blocks = np.kron(np.eye(3), np.ones((4, 4))) + 0.01
    np.fill_diagonal(blocks, 0)
    shuffle = np.random.default_rng(0).permutation(12)
    found = mlsf.spectral_clusters(blocks[np.ix_(shuffle, shuffle)], 3, 0)
    truth = np.repeat([0, 1, 2], 4)[shuffle]
    assert len(set(zip(found.tolist(), truth.tolist(), strict=True))) == 3


def test_few_eigenvectors_find_the_same_clusters_as_all(monkeypatch) -> None:
    rng = np.random.default_rng(1)
    table = np.kron(np.eye(4), np.ones((5, 5))) + 0.1 * rng.random((20, 20))
    table += table.T
    np.fill_diagonal(table, 0)
    every = mlsf.spectral_clusters(table, 4, 0)
    monkeypatch.setattr(mlsf, "MOST_DENSE", 5)
    np.testing.assert_array_equal(mlsf.spectral_clusters(table, 4, 0), every)


def test_labels_without_affinities_do_no_harm() -> None:
    table = np.zeros((6, 6))
    table[0, 1] = table[1, 0] = 1.0
    found = mlsf.spectral_clusters(table, 2, 0)
    assert len(set(found[2:])) == 1
    assert not set(found[:2]) <= set(found[2:])


@pytest.mark.parametrize("estimator", [None, GaussianNB()], ids=["svm", "bayes"])
def test_each_group_is_a_chain_on_its_features(estimator) -> None:
    model = MLSF(3, gamma=1.0, estimator=estimator, **SIGN).fit(X, Y)
    scores = model.decision_function(X)
    rows, labels, _ = content_order(X, csr_array(Y.astype(float)))
    groups = model.label_groups_
    assert set(groups) == {0, 1, 2}
    assert (np.diff(np.bincount(groups)) <= 0).all()
    for group, chain in enumerate(model.chains_):
        weights = model.feature_weights_.toarray()[group]
        members = [label for label in labels if groups[label] == group]
        target = mlsf.rank_combinations(csr_array(Y[rows][:, members]))
        slope = X[rows].T @ (X[rows] @ weights - target)
        assert (np.abs(slope) <= 1.02).all()
        used = weights != 0 if weights.any() else np.ones(len(weights), bool)
        order = chain.orders_[0].tolist()
        plain = ClassifierChains(estimator, order=order, decision="sign")
        plain.fit(X[rows][:, used], Y[rows][:, members])
        np.testing.assert_allclose(
            scores[:, members], plain.decision_function(X[:, used]), atol=1e-8
        )


def test_one_group_of_all_features_is_a_chain() -> None:
    model = MLSF(10, gamma=1e6, **SIGN).fit(X, Y)
    assert model.feature_weights_.nnz == 0
    (chain,) = model.chains_
    labels = content_order(X, csr_array(Y.astype(float))).labels
    order = labels[chain.orders_[0]]
    plain = ClassifierChains(order=order, decision="sign").fit(X, Y)
    np.testing.assert_allclose(model.decision_function(X), plain.decision_function(X), atol=1e-8)


def test_labels_of_the_same_rows_get_the_same_answers() -> None:
    twice = np.column_stack([Y, Y[:, [2, 0]], np.zeros(len(Y), int)])
    model = MLSF(3, gamma=0.1, **SIGN).fit(X, twice)
    scores = model.decision_function(X)
    np.testing.assert_array_equal(scores[:, [2, 0]], scores[:, [7, 8]])
    shuffle = np.random.default_rng(0).permutation(twice.shape[1])
    other = MLSF(3, gamma=0.1, **SIGN).fit(X, twice[:, shuffle])
    np.testing.assert_allclose(other.decision_function(X), scores[:, shuffle], atol=1e-9)


def test_the_authors_step_has_no_effect() -> None:
    scores = [MLSF(3, rho=rho, **SIGN).fit(X, Y).decision_function(X) for rho in (0.1, 10.0)]
    np.testing.assert_array_equal(*scores)


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"meta_label_size": 0}, "meta_label_size=0 must be a whole number >= 1"),
        ({"alpha": 1.5}, "alpha=1.5 must be at most 1"),
        ({"epsilon": -1.0}, "epsilon=-1.0 must be a number >= 0"),
        ({"gamma": 0.0}, "gamma=0.0 must be a number > 0"),
        ({"rho": 0}, "rho=0 must be a number > 0"),
        ({"estimator": "svm"}, "estimator='svm' is not a classifier"),
        ({"random_state": "x"}, "random_state='x' cannot seed"),
    ],
)
def test_bad_parameters_are_refused(params, said) -> None:
    with pytest.raises(ValueError, match=said):
        MLSF(**params).fit(X, Y)


def test_too_many_labels_are_refused(monkeypatch) -> None:
    monkeypatch.setattr(mlsf, "MOST_LABELS", 5)
    with pytest.raises(ValueError, match="7 different labels are more than 5: leave out rare"):
        MLSF(**SIGN).fit(X, Y)


def test_accuracy_is_near_that_of_the_thesis(data_root, monkeypatch) -> None:
    """Table of chapter 6: .779 on medical, the best of a grid; here one setting and three folds."""
    monkeypatch.setenv("MARGINMF_DATA", str(data_root))
    data = load_labels("medical")
    reached = []
    folds = KFold(5, shuffle=True, random_state=0).split(np.arange(data.X.shape[0]))
    for train, test in islice(folds, 3):
        model = MLSF(gamma=0.1, **SIGN).fit(data.X[train], data.Y[train])
        reached.append(jaccard_accuracy(data.Y[test], model.predict(data.X[test])))
    assert abs(np.mean(reached) - 0.779) < 0.03
