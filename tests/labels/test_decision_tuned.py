"""`DecisionTuned` around classifiers of scikit-learn, and what the base class promises."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_iris, make_multilabel_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.multiclass import OneVsRestClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier
from sklearn.naive_bayes import BernoulliNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import LinearSVC

from marginmf.labels import DecisionTuned
from marginmf.labels.order import inner_folds

X, Y = make_multilabel_classification(300, 12, n_classes=6, random_state=0)
RIDGE = RidgeClassifier()


def accuracy(true, predicted):
    both, either = (true & predicted).sum(axis=1), (true | predicted).sum(axis=1)
    return np.mean(both / np.maximum(either, 1))


@pytest.mark.parametrize(
    "estimator",
    [
        RIDGE,
        OneVsRestClassifier(LinearSVC()),
        OneVsRestClassifier(BernoulliNB()),
        MultiOutputClassifier(LogisticRegression(max_iter=500)),
        RandomForestClassifier(20, random_state=0),
        KNeighborsClassifier(),
        DecisionTuned(RIDGE),
    ],
    ids=["ridge", "svm", "bayes", "multi-output", "forest", "neighbours", "nested"],
)
def test_classifiers_of_every_kind_of_score_are_tuned(estimator) -> None:
    model = DecisionTuned(estimator).fit(X, Y)
    assert model.predict(X).shape == Y.shape
    assert accuracy(Y, model.predict(X)) > 0.4
    assert ((model.decision_function(X) > 0) == model.predict(X)).all()


def test_the_global_threshold_is_the_best_one_on_rows_held_out() -> None:
    scores = np.zeros(Y.shape)
    for fold in inner_folds(X, csr_array(Y.astype(float)), 3):
        scores[fold.test] = (
            clone(RIDGE).fit(X[fold.train], Y[fold.train]).decision_function(X[fold.test])
        )
    tuned = DecisionTuned(RIDGE).fit(X, Y)
    reached = accuracy(Y, scores > tuned.thresholds_)
    tried = [accuracy(Y, scores > t) for t in np.linspace(scores.min(), scores.max(), 500)]
    assert reached > max(tried) - 0.004
    assert reached > accuracy(Y, scores > 0)


def test_parameters_and_thresholds_are_chosen_together() -> None:
    grid = {"alpha": [1e-3, 1.0, 1e5]}
    tuned = DecisionTuned(RIDGE, grid).fit(X, Y)
    single = [DecisionTuned(RidgeClassifier(alpha=a), {"alpha": [a]}) for a in grid["alpha"]]
    assert tuned.cv_values_ == [one.fit(X, Y).cv_values_[0] for one in single]
    assert tuned.best_params_["alpha"] == grid["alpha"][int(np.argmax(tuned.cv_values_))]
    assert tuned.estimator_.alpha == tuned.best_params_["alpha"]
    assert RIDGE.alpha == 1.0  # what was given is not changed


def test_thresholds_are_those_of_the_candidate_that_was_chosen() -> None:
    tuned = DecisionTuned(RidgeClassifier(alpha=1e6), {"alpha": [1.0]}).fit(X, Y)
    alone = DecisionTuned(RidgeClassifier(alpha=1.0)).fit(X, Y)
    assert (tuned.thresholds_ == alone.thresholds_).all()
    assert (tuned.predict(X) == alone.predict(X)).all()


def test_parameters_can_be_chosen_under_the_sign_rule() -> None:
    tuned = DecisionTuned(RIDGE, {"alpha": [1.0, 1e6]}, decision="sign").fit(X, Y)
    assert tuned.best_params_ == {"alpha": 1.0}
    assert (tuned.thresholds_ == 0).all()


@pytest.mark.parametrize("decision", ["sign", "global", "per_label"])
def test_top1_leaves_no_row_empty(decision) -> None:
    model = DecisionTuned(RIDGE, decision=decision, top1_if_empty=True).fit(X, Y)
    assert model.predict(X).any(axis=1).all()


def test_labels_that_nobody_or_everybody_has_do_not_disturb() -> None:
    odd = np.column_stack([Y, np.zeros(300, int), np.ones(300, int)])
    model = DecisionTuned(OneVsRestClassifier(LinearSVC())).fit(X, odd)
    predicted = model.predict(X)
    assert not predicted[:, -2].any()
    assert predicted[:, -1].all()
    assert (predicted[:, :-2].any(axis=0) == Y.any(axis=0)).all()


def test_only_constant_labels_and_a_single_row_can_be_learned() -> None:
    model = DecisionTuned(RIDGE).fit(X[:4], np.ones((4, 2), int))
    assert model.predict(X[:2]).tolist() == [[1, 1], [1, 1]]
    assert DecisionTuned(RIDGE).fit(X[:1], Y[:1]).predict(X[:1]).shape == (1, 6)


def test_names_of_labels_come_from_a_data_frame() -> None:
    names = ["a", "b", "c", "d", "e", "f"]
    model = DecisionTuned(RIDGE).fit(X, pd.DataFrame(Y, columns=names))
    assert model.classes_.tolist() == names
    assert (model.predict(X) == DecisionTuned(RIDGE).fit(X, Y).predict(X)).all()


def test_sparse_labels_come_back_sparse() -> None:
    model = DecisionTuned(RIDGE).fit(X, csr_array(Y))
    predicted = model.predict(X)
    assert isinstance(predicted, csr_array)
    assert (predicted.toarray() == DecisionTuned(RIDGE).fit(X, Y).predict(X)).all()


def test_batches_do_not_change_answers(monkeypatch) -> None:
    model = DecisionTuned(RIDGE).fit(X, Y)
    scores, predicted = model.decision_function(X), model.predict(X)
    monkeypatch.setattr("marginmf.labels.base.BATCH_BYTES", 2**14)
    assert np.allclose(model.decision_function(X), scores)
    assert (model.predict(X) == predicted).all()
    # Candidates come from the first batch, so they are a little different.
    again = DecisionTuned(RIDGE).fit(X, Y)
    assert np.allclose(again.thresholds_, model.thresholds_, atol=0.05)


def test_the_order_of_the_rows_does_not_matter() -> None:
    order = np.random.default_rng(0).permutation(300)
    model = DecisionTuned(RIDGE).fit(X, Y)
    other = DecisionTuned(RIDGE).fit(X[order], Y[order])
    assert np.allclose(model.thresholds_, other.thresholds_)
    assert np.allclose(model.decision_function(X), other.decision_function(X))


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"decision": "best"}, "decision='best' is not known"),
        ({"tune_for": "auc"}, "tune_for='auc' is not known"),
        ({"cv": 1}, "cv=1 must be"),
        ({"cv": 2.5}, "cv=2.5 must be"),
        ({"estimator": "svm"}, "estimator='svm' is not a classifier"),
        ({"estimator": RidgeClassifier}, "is not a classifier"),
        ({"estimator": DecisionTuned}, "is not a classifier"),
    ],
)
def test_bad_parameters_are_refused(params, said) -> None:
    with pytest.raises(ValueError, match=said):
        DecisionTuned(RIDGE).set_params(**params).fit(X, Y)


def test_an_estimator_without_scores_is_refused() -> None:
    class Silent:
        def fit(self, X, y): ...

    with pytest.raises(ValueError, match="Silent has neither decision_function nor"):
        DecisionTuned(Silent()).fit(X, Y)


@pytest.mark.parametrize(
    ("x", "y", "said"),
    [
        (X[:5], Y[:4], "inconsistent numbers of samples"),
        (X[:2], [[0, 1], [2, 0]], "value 2 in row 1, column 0"),
        (
            np.where(np.arange(60).reshape(5, 12) == 25, np.nan, X[:5]),
            Y[:5],
            "X has NaN in row 2, column 1",
        ),
    ],
)
def test_bad_data_is_refused_and_a_fitted_model_stays_as_it_was(x, y, said) -> None:
    model = DecisionTuned(RIDGE).fit(X, Y)
    before = model.predict(X)
    with pytest.raises(ValueError, match=said):
        model.fit(x, y)
    assert (model.predict(X) == before).all()


@pytest.mark.parametrize(
    "estimator",
    [MultiOutputClassifier(LogisticRegression()), ClassifierChain(LogisticRegression())],
    ids=["multi-output", "chain"],
)
def test_one_label_that_varies_is_learned_by_wrappers_too(estimator) -> None:
    few = np.column_stack([Y[:, :1], np.zeros((300, 1), int)])
    few[0, 1] = 1  # varies in all rows, but not in every fold
    assert DecisionTuned(estimator).fit(X, few).predict(X).shape == few.shape


def test_sparse_features_with_long_indices_are_taken() -> None:
    long = csr_array(X)
    long.indices, long.indptr = long.indices.astype(np.int64), long.indptr.astype(np.int64)
    svm = DecisionTuned(OneVsRestClassifier(LinearSVC()))
    assert (svm.fit(long, Y).predict(long) == svm.fit(csr_array(X), Y).predict(X)).all()


def test_for_classes_parameters_are_chosen_by_how_many_are_right() -> None:
    X, y = load_iris(return_X_y=True)
    grid = {"alpha": [1e-3, 10.0, 1e5]}
    tuned = DecisionTuned(RidgeClassifier(), grid).fit(X, y)
    right = [np.zeros(150, bool) for _ in grid["alpha"]]
    for fold in inner_folds(X, csr_array(np.eye(3)[y]), 3):
        for k, alpha in enumerate(grid["alpha"]):
            model = RidgeClassifier(alpha=alpha).fit(
                X[fold.train], np.eye(3, dtype=int)[y[fold.train]]
            )
            scores = model.decision_function(X[fold.test])
            right[k][fold.test] = scores.argmax(axis=1) == y[fold.test]
    assert tuned.cv_values_ == [each.mean() for each in right]


@pytest.mark.parametrize(
    ("grid", "said"),
    [
        ([], "has no candidates"),
        ({f"parameter {k}": range(10) for k in range(40)}, "has too many candidates"),
        ({"decision": ["sign"]}, "a parameter of DecisionTuned itself"),
    ],
)
def test_grids_that_cannot_be_used_are_refused(grid, said) -> None:
    with pytest.raises(ValueError, match=said):
        DecisionTuned(DecisionTuned(RIDGE), grid).fit(X, Y)


def test_labels_that_nobody_has_rank_last() -> None:
    odd = np.column_stack([np.zeros(300, int), Y])
    scores = DecisionTuned(OneVsRestClassifier(LinearSVC()), decision="sign").fit(X, odd)
    assert (scores.decision_function(X).argmin(axis=1) == 0).all()


def test_thresholds_are_found_when_few_rows_have_a_label() -> None:
    rng = np.random.default_rng(2)
    x = rng.normal(size=(60, 3))
    y = np.zeros((60, 1), int)
    y[np.argsort(-x[:, 0])[:3]] = 1
    assert DecisionTuned(RIDGE).fit(x, y).predict(x).sum() > 0
