"""RAkEL and label powersets: the thesis's example, slow oracles, which sets are drawn."""

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.special import expit
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import BernoulliNB

import marginmf
from label_contracts import labelled
from marginmf.datasets import load_labels
from marginmf.labels import BinaryRelevance, LabelPowerset, MLkNN, RAkEL, Scaled
from marginmf.labels.baselines.binary import rows_of_each
from marginmf.labels.baselines.labelsets import SHARPNESS, draw_sets, find_combinations
from marginmf.labels.order import canonical_order
from marginmf.metrics import jaccard_accuracy

X, Y = labelled()
#: The data set that the review of Kumar's thesis, chapter 5, explains methods with.
FEATURES = np.array(
    [
        [-0.71, -0.33, 0.40, 0.80],
        [0.01, -0.57, -0.34, 0.91],
        [-0.08, -0.33, 0.11, -0.31],
        [0.10, -0.20, 0.33, 0.92],
        [0.08, 0.09, -0.41, 0.60],
    ]
)
LABELS = np.array([[1, 0, 0], [0, 1, 1], [1, 1, 1], [1, 0, 1], [0, 1, 0]])


def test_the_vote_of_the_thesis() -> None:
    model = RAkEL(k=2, n_sets=3, soft=False, decision="sign", random_state=0).fit(FEATURES, LABELS)
    # What the classifier of each set predicts of the new row.
    said = {(0, 1): {1}, (0, 2): {2}, (1, 2): {1}}
    model.classifiers_.coef[:] = 0.0
    model.classifiers_.intercept[:] = -1.0
    for labels, ends in zip(model.labelsets_, pairwise(model.set_ends_), strict=True):
        for number in range(*ends):
            combination = model.combinations_[[number]].toarray()
            if set(np.flatnonzero(combination)) == said[tuple(sorted(labels.tolist()))]:
                # The fifth row alone is a combination in two sets: in that which says something
                # else, the classifier of the second row has a higher score.
                rows = np.flatnonzero((combination == LABELS)[:, labels].all(axis=1))
                model.classifiers_.intercept[model.classifier_of_[number]] = 9.0 - rows[0]
    votes = model.decision_function(FEATURES[:1]) + 0.5
    np.testing.assert_allclose(votes, [[0 / 2, 2 / 2, 1 / 2]], atol=1e-8)
    assert model.predict(FEATURES[:1]).tolist() == [[0, 1, 1]]


@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_votes_are_those_of_a_loop_over_sets(form) -> None:
    estimator = LogisticRegression(tol=1e-8)
    soft = RAkEL(2, 6, estimator, decision="sign", random_state=1).fit(form(X), Y)
    hard = clone(soft).set_params(soft=False, threshold=0.3).fit(form(X), Y)
    rows = canonical_order(X, csr_array(Y.astype(float))).rows
    votes, shares, times = np.zeros(Y.shape), np.zeros(Y.shape), np.zeros(Y.shape[1])
    for labels in hard.labelsets_:
        found, codes = np.unique(Y[rows][:, labels], axis=0, return_inverse=True)
        scores = np.column_stack(
            [
                estimator.fit(X[rows], codes.ravel() == number).decision_function(X)
                for number in range(len(found))
            ]
        )
        votes[:, labels] += found[scores.argmax(axis=1)]
        odds = np.exp(SHARPNESS * (scores - scores.max(axis=1, keepdims=True)))
        shares[:, labels] += (odds / odds.sum(axis=1, keepdims=True)) @ found
        times[labels] += 1
    assert (times > 0).all()
    np.testing.assert_allclose(hard.decision_function(form(X)), votes / times - 0.3, atol=1e-8)
    np.testing.assert_allclose(soft.decision_function(form(X)), shares / times - 0.5, atol=1e-5)


@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_sets_of_one_label_are_binary_relevance(form) -> None:
    relevance = BinaryRelevance(decision="sign").fit(form(X), Y)
    sets = RAkEL(k=1, soft=False, decision="sign", random_state=0).fit(form(X), Y)
    np.testing.assert_array_equal(sets.predict(form(X)), relevance.predict(form(X)))
    soft = RAkEL(k=1, decision="sign", random_state=0).fit(form(X), Y)
    expected = expit(SHARPNESS * relevance.decision_function(form(X))) - 0.5
    np.testing.assert_allclose(soft.decision_function(form(X)), expected, atol=1e-8)


@pytest.mark.parametrize("soft", [False, True])
def test_a_set_of_all_labels_is_a_label_powerset(soft) -> None:
    powerset = LabelPowerset(soft=soft, decision="sign").fit(X, Y)
    one_set = RAkEL(k=9, n_sets=1, soft=soft, decision="sign").fit(X, Y)
    np.testing.assert_array_equal(powerset.decision_function(X), one_set.decision_function(X))


def test_a_label_powerset_is_one_class_for_each_set_of_labels() -> None:
    estimator = LogisticRegression(tol=1e-8)
    model = LabelPowerset(estimator, soft=False, decision="sign").fit(X, Y)
    names = np.array(["".join(map(str, row)) for row in Y])
    oracle = OneVsRestClassifier(estimator).fit(X, names)
    predicted = ["".join(map(str, row)) for row in model.predict(X)]
    assert predicted == oracle.predict(X).tolist()
    assert set(predicted) <= set(names)


def test_probabilities_are_shared_as_they_are() -> None:
    model = RAkEL(1, estimator=BernoulliNB(), decision="sign").fit(X, Y)
    relevance = BinaryRelevance(BernoulliNB(), decision="sign").fit(X, Y)
    np.testing.assert_allclose(
        model.decision_function(X), relevance.decision_function(X), atol=1e-8
    )
    assert model.classifiers_.estimators is not None


def test_classifiers_that_are_not_linear_are_saved(tmp_path) -> None:
    model = RAkEL(2, 3, MLkNN(3), random_state=0, decision="sign").fit(X, Y)
    model.save(tmp_path / "model.marginmf")
    copy = marginmf.load(tmp_path / "model.marginmf")
    np.testing.assert_array_equal(copy.decision_function(X), model.decision_function(X))


def test_equal_problems_are_learned_once() -> None:
    alone = np.eye(6, dtype=int)[np.arange(60) % 6]
    model = RAkEL(k=3, random_state=0, decision="sign").fit(X, alone)
    # A label that is always alone is the same problem in every set; each set has one of its own.
    assert len(model.labelsets_) == 12
    assert len(model.classifiers_) == 1 + 6 + 12
    assert len(model.classifier_of_) == 4 * 12


@given(
    n_labels=st.integers(1, 30), k=st.integers(1, 8), n_sets=st.integers(1, 40), seed=st.integers(0)
)
@settings(max_examples=60, deadline=None)
def test_every_label_is_in_a_set_and_sets_are_distinct(n_labels, k, n_sets, seed) -> None:
    sets = draw_sets(n_labels, k, n_sets, np.random.default_rng(seed))
    k = min(k, n_labels)
    assert sets.shape[1] == k
    assert all(len(set(each)) == k for each in sets.tolist())
    assert len(set(map(tuple, sets.tolist()))) == len(sets)
    assert set(sets.ravel()) == set(range(n_labels))
    assert len(sets) <= n_sets + -(-n_labels // k)


@given(
    st.integers(1, 40), st.integers(1, 80), st.floats(0.02, 0.9), st.integers(0, 2**32), st.data()
)
@settings(max_examples=60, deadline=None)
def test_combinations_are_the_distinct_rows(n_rows, n_labels, density, seed, data) -> None:
    rng = np.random.default_rng(seed)
    labels = rng.permutation(n_labels)[: data.draw(st.integers(1, n_labels))]
    indicator = (rng.random((n_rows, n_labels)) < density).astype(float)
    found = find_combinations(labels, rows_of_each(csr_array(indicator)), indicator.shape)
    dense = found.labels.toarray()
    assert sorted(np.concatenate(found.rows)) == list(range(n_rows))
    for combination, rows in zip(dense, found.rows, strict=True):
        assert (indicator[rows][:, labels] == combination[labels]).all()
    assert len(np.unique(indicator[:, labels], axis=0)) == len(found)
    assert not np.delete(dense, labels, axis=1).any()


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"k": 0}, "k=0 must be a whole number >= 1"),
        ({"n_sets": 0}, "n_sets=0 must be a whole number >= 1"),
        ({"threshold": 1.5}, "threshold=1.5 must be a share of votes, from 0 to 1"),
        ({"soft": "yes"}, "soft='yes' must be True or False"),
        ({"random_state": "x"}, "random_state='x' cannot seed"),
        ({"estimator": "svm"}, "estimator='svm' is not a classifier"),
    ],
)
def test_bad_parameters_get_a_sentence(params, said) -> None:
    with pytest.raises(ValueError, match=said):
        RAkEL(**params).fit(X, Y)


@pytest.mark.parametrize(
    ("method", "measured"),
    [(RAkEL(soft=False, random_state=0), 0.57), (LabelPowerset(soft=False), 0.51)],
)
def test_accuracy_on_emotions(method, measured, data_root, monkeypatch) -> None:
    monkeypatch.setenv("MARGINMF_DATA", str(data_root))
    data = load_labels("emotions")
    reached = []
    for train, test in KFold(5, shuffle=True, random_state=0).split(data.X):
        model = Scaled(method, decision="sign").fit(data.X[train], data.Y[train])
        reached.append(jaccard_accuracy(data.Y[test], model.predict(data.X[test])))
    assert abs(np.mean(reached) - measured) < 0.015
