"""Label metrics as scikit-learn scorers."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.linear_model import Ridge, RidgeClassifier
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.naive_bayes import BernoulliNB
from sklearn.neighbors import KNeighborsClassifier

from marginmf.labels import RidgeEmbedding
from marginmf.metrics import (
    LABEL_METRICS,
    PROBABILITY_METRICS,
    RANKING_METRICS,
    label_scorer,
    ndcg_at_k,
)

RNG = np.random.default_rng(0)
X = RNG.normal(size=(90, 5))
Y = (X @ RNG.normal(size=(5, 4)) + RNG.normal(size=(90, 4)) > 0.5).astype(int)
LINEAR = OneVsRestClassifier(RidgeClassifier())


@pytest.mark.parametrize("name", [*LABEL_METRICS, *RANKING_METRICS])
def test_scorers_are_the_metrics_with_errors_negated(name):
    model = LINEAR.fit(X, Y)
    metric = {**LABEL_METRICS, **RANKING_METRICS}[name]
    seen = model.predict(X) if name in LABEL_METRICS else model.decision_function(X)
    sign = 1 if metric.higher_is_better else -1
    assert label_scorer(name)(model, X, Y) == sign * metric(Y, seen)
    assert pickle.loads(pickle.dumps(label_scorer(name)))(model, X, Y) == label_scorer(name)(
        model, X, Y
    )


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("hamming", np.asarray),
        ("micro_f1", sparse.csr_array),
        ("precision_at_2", sparse.csr_array),
        ("coverage", np.asarray),
    ],
)
def test_grid_search_picks_the_better_model(name, form):
    grid = {"estimator__alpha": [1e7, 1.0]}
    search = GridSearchCV(LINEAR, grid, scoring=label_scorer(name), cv=3).fit(X, form(Y))
    assert search.best_params_ == {"estimator__alpha": 1.0}
    expected = cross_val_score(LINEAR, X, Y, cv=3, scoring=label_scorer(name)).mean()
    assert search.best_score_ == pytest.approx(expected)


@pytest.mark.parametrize("n_labels", [2, 4])
def test_probabilities_are_scores_where_there_is_no_decision_function(n_labels):
    model = OneVsRestClassifier(BernoulliNB()).fit(X, Y[:, :n_labels])
    assert not hasattr(model, "decision_function")
    expected = ndcg_at_k(Y[:, :n_labels], model.predict_proba(X), k=2)
    assert label_scorer("ndcg_at_2")(model, X, Y[:, :n_labels]) == expected


def test_lists_of_probabilities_are_scores_even_of_labels_never_seen():
    seen = Y.copy()
    seen[:, 1], seen[:, 2] = 0, 1
    model = KNeighborsClassifier(9).fit(X, seen)
    votes = np.stack([seen[rows].mean(axis=0) for rows in model.kneighbors(X)[1]])
    assert label_scorer("ndcg_at_2")(model, X, Y) == pytest.approx(ndcg_at_k(Y, votes, k=2))


@pytest.mark.parametrize("name", PROBABILITY_METRICS)
def test_scorers_of_probabilities_ask_for_them(name):
    metric = PROBABILITY_METRICS[name]
    model = OneVsRestClassifier(BernoulliNB()).fit(X, Y)
    assert label_scorer(name)(model, X, Y) == -metric(Y, model.predict_proba(X))
    votes = KNeighborsClassifier(9).fit(X, Y)
    shares = np.stack([Y[rows].mean(axis=0) for rows in votes.kneighbors(X)[1]])
    assert label_scorer(name)(votes, X, Y) == pytest.approx(-metric(Y, shares))
    own = RidgeEmbedding(1.0).fit(X, Y)
    assert label_scorer(name)(own, X, Y) == -metric(Y, own.predict_proba(X))


def test_a_model_without_probabilities_gets_a_sentence():
    with pytest.raises(ValueError, match=r"log_loss judges probabilities, but One.*er has no pre"):
        label_scorer("log_loss")(LINEAR.fit(X, Y), X, Y)
    model = RidgeEmbedding(1.0, decision="sign").fit(X, Y)
    with pytest.raises(ValueError, match=r"no predict_proba\. Fit it with calibrate=True\.$"):
        label_scorer("calibration_error")(model, X, Y)


def test_a_model_without_scores_gets_a_sentence():
    with pytest.raises(ValueError, match="Ridge has neither decision_function nor predict_proba"):
        label_scorer("coverage")(Ridge().fit(X, Y), X, Y)


@pytest.mark.parametrize(
    ("name", "nearest"),
    [
        ("macro-f1", "macro_f1"),
        ("Accuracy", "accuracy"),
        ("hamming_loss", "hamming"),
        ("precision_at_0", "precision_at_5"),
        ("ndcg_at_k", "ndcg_at_5"),
    ],
)
def test_an_unknown_name_gets_the_nearest_known_one(name, nearest):
    with pytest.raises(ValueError, match=rf"no label metric '{name}'; .*Did you mean {nearest}\?"):
        label_scorer(name)


def test_a_name_like_no_other_gets_the_list():
    with pytest.raises(
        ValueError, match=r"no label metric 'xyz'; the known .* log_loss, calibration_error\.$"
    ):
        label_scorer("xyz")


def test_seconds_are_no_score() -> None:
    with pytest.raises(ValueError, match="seconds is measured by comparisons"):
        label_scorer("seconds")
