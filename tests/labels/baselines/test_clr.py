"""Calibrated label ranking: the thesis's example, a slow oracle, and what it has of others."""

import numpy as np
import pytest
from scipy.sparse import csr_array, issparse
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold

import marginmf
from label_contracts import labelled
from marginmf.datasets import load_labels
from marginmf.labels import CLR, BinaryRelevance, MLkNN, Scaled
from marginmf.labels.baselines import classifiers
from marginmf.labels.baselines.pairwise import tell_apart
from marginmf.labels.order import canonical_order
from marginmf.metrics import jaccard_accuracy

X, Y = labelled()
#: The labels that the review of Kumar's thesis, chapter 5, explains methods with.
LABELS = np.array([[1, 0, 0], [0, 1, 1], [1, 1, 1], [1, 0, 1], [0, 1, 0]])


@pytest.mark.parametrize(
    ("pair", "rows", "first"),
    [
        ((0, 1), [0, 1, 3, 4], [0, 3]),
        ((0, 2), [0, 1], [0]),
        # Printed with both signs turned round.
        ((1, 2), [3, 4], [4]),
    ],
)
def test_the_training_sets_of_the_thesis(pair, rows, first) -> None:
    problem = tell_apart(*(np.flatnonzero(LABELS[:, label]) for label in pair))
    assert problem.among is not None
    assert problem.among.tolist() == rows
    assert problem.among[problem.rows].tolist() == first


def test_the_vote_of_the_thesis() -> None:
    model = CLR(soft=False, decision="sign").fit(np.arange(10.0).reshape(5, 2), LABELS)
    # The pairs of labels 1 and 2, 1 and 3, 2 and 3 go to 2, 1 and 2; printed is "1, 2 and 2", but a
    # pair cannot go to a third label.  Against the virtual label, what binary relevance says there.
    winners = {(0, 1): 1, (0, 2): 0, (1, 2): 1}
    present = [True, True, False]
    model.classifiers_.coef[:] = 0.0
    for number, (a, b) in enumerate(model.pairs_.tolist()):
        won = present[a] if a == b else winners[min(a, b), max(a, b)] == a
        model.classifiers_.intercept[number] = 1.0 if won else -1.0
    scores = model.decision_function(np.zeros((1, 2)))
    # Votes 2, 3 and 0, the virtual label 1: the ranking is 2, 1, 3.
    np.testing.assert_allclose(scores, [[1 / 3, 2 / 3, -1 / 3]], atol=1e-8)
    assert model.predict(np.zeros((1, 2))).tolist() == [[1, 1, 0]]


@pytest.mark.parametrize("form", [np.asarray, csr_array])
@pytest.mark.parametrize("soft", [False, True])
def test_votes_are_those_of_a_loop_over_pairs(form, soft) -> None:
    estimator = LogisticRegression(tol=1e-8)
    model = CLR(estimator, soft, decision="sign").fit(form(X), Y)
    rows = canonical_order(X, csr_array(Y.astype(float))).rows
    features, labels, n_labels = X[rows], Y[rows], Y.shape[1]

    def share(target, among):
        scores = estimator.fit(features[among], target[among]).decision_function(X)
        return 1 / (1 + np.exp(-8 * scores)) if soft else (scores > 0).astype(float)

    votes, virtual = np.zeros(Y.shape), np.zeros(len(X))
    for a in range(n_labels):
        won = share(labels[:, a], np.full(len(X), True))
        votes[:, a] += won
        virtual += 1 - won
        for b in range(a + 1, n_labels):
            won = share(labels[:, a], labels[:, a] != labels[:, b])
            votes[:, a] += won
            votes[:, b] += 1 - won
    expected = (votes - virtual[:, None]) / n_labels
    np.testing.assert_allclose(model.decision_function(form(X)), expected, atol=1e-5)
    assert issparse(model.classifiers_.coef) == (form is csr_array)


def test_against_the_virtual_label_it_is_binary_relevance() -> None:
    odd = np.column_stack([np.zeros(len(Y), int), Y])
    model = CLR(decision="sign").fit(X, odd)
    relevance = BinaryRelevance(decision="sign").fit(X, odd).decision_function(X)
    alone = model.pairs_[:, 0] == model.pairs_[:, 1]
    assert sorted(model.pairs_[alone, 0]) == [1, 2, 3, 4, 5]
    scores = model.classifiers_.scores(X)[:, alone]
    np.testing.assert_allclose(scores, relevance[:, model.pairs_[alone, 0]], atol=1e-5)


def test_a_label_has_as_many_votes_as_the_virtual_one() -> None:
    # Two labels that always go together share the vote between them.
    twins = np.column_stack([Y[:, 0], Y[:, 0]])
    scores = CLR(soft=False, decision="sign").fit(X, twins).decision_function(X)
    sign = np.sign(BinaryRelevance(decision="sign").fit(X, Y[:, :1]).decision_function(X))
    # 1 + 1/2 against 0 votes, or 1/2 against 2.
    np.testing.assert_allclose(scores, np.where(sign > 0, 0.75, -0.75) * [[1, 1]], atol=1e-8)


def test_a_label_that_implies_another_never_beats_it() -> None:
    both = np.column_stack([Y[:, 0], Y[:, 0] * (X[:, 0] > 0.4)])
    model = CLR(decision="sign").fit(X, both)
    (pair,) = np.flatnonzero(model.pairs_[:, 0] != model.pairs_[:, 1])
    scores = model.classifiers_.scores(X)[:, pair]
    assert (scores == (1.0 if model.pairs_[pair, 0] == 0 else -1.0)).all()


def test_blocks_do_not_change_answers(monkeypatch) -> None:
    scores = CLR(decision="sign").fit(X, Y).decision_function(X)
    monkeypatch.setattr(classifiers, "BLOCK", 200)
    blocked = CLR(decision="sign").fit(X, Y)
    np.testing.assert_allclose(blocked.decision_function(X), scores, atol=1e-12)


def test_classifiers_that_are_not_linear(tmp_path) -> None:
    model = CLR(MLkNN(3), decision="sign").fit(X, Y[:, :3])
    model.save(tmp_path / "model.marginmf")
    copy = marginmf.load(tmp_path / "model.marginmf")
    np.testing.assert_array_equal(copy.decision_function(X), model.decision_function(X))
    assert model.classifiers_.estimators is not None


def test_bad_parameters_get_a_sentence() -> None:
    with pytest.raises(ValueError, match="soft='yes' must be True or False"):
        CLR(soft="yes").fit(X, Y)
    with pytest.raises(ValueError, match="501 labels are too many for: take at most 500, or RAkEL"):
        CLR().fit(np.eye(3), np.eye(3, 501, dtype=int))


def test_accuracy_on_emotions(data_root, monkeypatch) -> None:
    monkeypatch.setenv("MARGINMF_DATA", str(data_root))
    data = load_labels("emotions")
    reached = []
    for train, test in KFold(5, shuffle=True, random_state=0).split(data.X):
        model = Scaled(CLR(soft=False, decision="sign")).fit(data.X[train], data.Y[train])
        reached.append(jaccard_accuracy(data.Y[test], model.predict(data.X[test])))
    assert abs(np.mean(reached) - 0.529) < 0.01
