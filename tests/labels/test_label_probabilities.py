"""Probabilities of labels: the curves behind them, and that real data are calibrated."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.model_selection import GridSearchCV, cross_val_predict
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import BernoulliNB

from label_contracts import labelled, log_loss
from marginmf.datasets import load_labels
from marginmf.labels import (
    METHODS,
    BinaryRelevance,
    ClassifierChains,
    DecisionTuned,
    MLkNN,
    RidgeEmbedding,
    Scaled,
)
from marginmf.labels import calibration as module
from marginmf.labels.calibration import PRECISION, LabelCalibrator, fit_curves


def drawn(n_rows=400, n_labels=5, slope=1.7, seed=0):
    """Scores, and labels that are there with the probabilities of logistic curves."""
    rng = np.random.default_rng(seed)
    intercepts = rng.normal(-1.0, 1.0, n_labels)
    scores = rng.normal(size=(n_rows, n_labels))
    present = rng.random(scores.shape) < expit(slope * scores + intercepts)
    return scores, present, intercepts


def calibrated(scores, present, **params):
    calibrator = LabelCalibrator(present.sum(axis=0), len(present), **params)
    calibrator.add(scores, present)
    return calibrator.fit()


def smoothed(present):
    n, n_present = present.size, present.sum()
    return np.where(present, (n_present + 1) / (n_present + 2), 1 / (n - n_present + 2))


def test_the_curves_minimise_the_penalised_log_loss() -> None:
    scores, present, _ = drawn(n_rows=60)
    targets = smoothed(present)

    def loss(point):
        logits = point[0] * scores + point[1] + point[2:]
        own = np.logaddexp(0.0, logits) - targets * logits
        return own.sum() + 0.5 * PRECISION * (point[2:] ** 2).sum()

    found = minimize(loss, np.zeros(7), tol=1e-10)
    slope, intercepts = fit_curves(scores, present)
    assert slope == pytest.approx(found.x[0], abs=1e-4)
    np.testing.assert_allclose(intercepts, found.x[1] + found.x[2:], atol=1e-4)


def test_the_curves_that_labels_were_drawn_from_are_found() -> None:
    scores, present, intercepts = drawn(n_rows=20_000)
    curves = calibrated(scores, present)
    np.testing.assert_allclose(curves.slopes, 1.7, atol=0.05)
    np.testing.assert_allclose(curves.intercepts, intercepts, atol=0.08)
    # Probabilities add up to how often a label is there.
    np.testing.assert_allclose(curves(scores).mean(axis=0), present.mean(axis=0), atol=2e-3)


@given(
    seed=st.integers(0, 1000),
    shift=st.floats(-1e3, 1e3),
    scale=st.floats(1e-6, 1e6),
    n_rows=st.integers(1, 40),
)
@settings(deadline=None)
def test_probabilities_depend_on_neither_the_unit_nor_the_zero_of_scores(
    seed, shift, scale, n_rows
) -> None:
    scores, present, _ = drawn(n_rows, 3, seed=seed)
    likely = calibrated(scores, present)(scores)
    assert ((likely > 0) & (likely < 1)).all()
    moved = scale * (scores + shift)
    np.testing.assert_allclose(calibrated(moved, present)(moved), likely, atol=1e-5)


@given(seed=st.integers(0, 1000))
@settings(deadline=None)
def test_a_label_is_more_likely_where_its_score_is_higher(seed) -> None:
    rng = np.random.default_rng(seed)
    scores, present = rng.normal(size=(30, 4)), rng.random((30, 4)) < 0.3
    likely = calibrated(scores, present)(np.sort(scores, axis=0))
    assert (np.diff(likely, axis=0) >= 0).all()


def test_scores_that_tell_nothing_or_the_contrary_give_the_frequencies() -> None:
    scores, present, _ = drawn()
    frequencies = (present.sum(axis=0) + 1) / (len(present) + 2)
    for useless in (np.zeros_like(scores), -scores):
        likely = calibrated(useless, present)(useless)
        np.testing.assert_allclose(likely, np.tile(frequencies, (len(likely), 1)))
    nothing = LabelCalibrator(present.sum(axis=0), len(present)).fit()(scores)
    np.testing.assert_allclose(nothing[0], frequencies)


def test_scores_without_an_error_give_curves_that_are_finite() -> None:
    _, present, _ = drawn()
    curves = calibrated(np.where(present, 1e9, -1e9), present)
    likely = curves(np.array([[-1e300] * 5, [1e300] * 5]))
    assert np.isfinite(curves.slopes).all()
    assert (likely[0] < 1e-3).all()
    assert (likely[1] > 0.99).all()
    assert (likely < 1).all()


def test_of_many_scores_rows_at_equal_distances_are_enough(monkeypatch) -> None:
    scores, present, _ = drawn(n_rows=3000)
    monkeypatch.setattr(module, "MOST_SCORES", 3000 * 5 // 3)
    whole, parts = (LabelCalibrator(present.sum(axis=0), 3000) for _ in range(2))
    whole.add(scores, present)
    for start in range(0, 3000, 100):
        parts.add(scores[start : start + 100], present[start : start + 100])
    np.testing.assert_array_equal(parts.fit().intercepts, whole.fit().intercepts)
    slope, intercepts = fit_curves(scores[::3], present[::3])
    assert whole.fit().slopes[0] == pytest.approx(slope, rel=1e-6)
    np.testing.assert_allclose(whole.fit().intercepts, intercepts, rtol=1e-6)


def test_probabilities_are_learned_from_the_scores_that_thresholds_are_chosen_on(monkeypatch):
    X, Y = labelled()
    # Ridge regression knows the scores of rows held out from one fit.
    for model, n_fits in ((MLkNN(), 4), (RidgeEmbedding(0.1), 1)):
        fits = []
        fit = type(model)._fit
        monkeypatch.setattr(
            type(model),
            "_fit",
            lambda self, *data, fit=fit, fits=fits: (fits.append(1), fit(self, *data)),
        )
        model.set_params(calibrate=True)
        assert model.fit(X, Y).predict_proba(X).shape == Y.shape
        assert len(fits) == n_fits
        model.set_params(calibrate=False, decision="sign").fit(X, Y)
        assert len(fits) == n_fits + 1


def test_own_probabilities_of_a_method_become_logits() -> None:
    X, Y = labelled(300)
    assert MLkNN().fit(X, Y).calibration_.of_probabilities
    assert Scaled(MLkNN()).fit(X, Y).calibration_.of_probabilities
    assert DecisionTuned(Scaled(MLkNN())).fit(X, Y).calibration_.of_probabilities
    assert not RidgeEmbedding().fit(X, Y).calibration_.of_probabilities


@pytest.mark.parametrize(
    ("model", "own"),
    [
        (BinaryRelevance(RandomForestClassifier(20, random_state=0)), True),
        (BinaryRelevance(LogisticRegression()), False),
        (ClassifierChains(BernoulliNB()), True),
        (DecisionTuned(MultiOutputClassifier(LogisticRegression())), True),
        (DecisionTuned(RidgeClassifier(), {"alpha": [0.1, 1.0]}), False),
        (DecisionTuned(RidgeClassifier(), {"alpha": [0.1, 1.0]}, decision="sign"), False),
        (Scaled(BinaryRelevance(BernoulliNB())), True),
    ],
    ids=["forest", "logistic", "chains", "multi-output", "grid", "grid, sign", "scaled"],
)
def test_wrapped_classifiers_are_calibrated(model, own) -> None:
    X, Y = labelled(400, seed=1)
    fitted = clone(model).fit(X[:300], Y[:300])
    assert fitted.calibration_.of_probabilities is own
    likely, base = fitted.predict_proba(X[300:]), Y[:300].mean(axis=0)
    assert log_loss(Y[300:], likely) < log_loss(Y[300:], np.tile(base, (100, 1)))


def test_scikit_learn_finds_probabilities_where_they_are() -> None:
    X, Y = labelled()
    assert not hasattr(RidgeEmbedding(), "predict_proba")
    asked = RidgeEmbedding(0.1, calibrate=True, decision="sign")
    assert cross_val_predict(asked, X, Y, method="predict_proba", cv=2).shape == Y.shape
    search = GridSearchCV(RidgeEmbedding(), {"reg": [0.1, 1.0]}, cv=2).fit(X, Y)
    assert search.predict_proba(X).shape == Y.shape


#: Settings that are as good, and much faster.
QUICK = {"mlchmf": {"max_depth": 0}}
#: Methods whose scores of all labels can be compared, as a common slope assumes.
ALIKE = (
    *("grople", "mlchmf", "binary-relevance", "classifier-chains", "mlknn", "plst", "cplst"),
    *("ridge-embedding", "kernel"),
)


@pytest.mark.parametrize("data", ["emotions", "yeast", "scene"])
@pytest.mark.parametrize("name", ALIKE)
def test_probabilities_of_real_data_beat_the_base_rates(data_root, monkeypatch, data, name) -> None:
    monkeypatch.setenv("MARGINMF_DATA", str(data_root))
    table = load_labels(data)
    train, test = table.train_idx, table.test_idx
    kind = METHODS[name]
    settings = {"random_state": 0} if "random_state" in kind().get_params() else {}
    model = Scaled(kind(**settings | QUICK.get(name, {}))).fit(table.X[train], table.Y[train])
    likely, true = model.predict_proba(table.X[test]), table.Y[test].toarray() > 0
    base = table.Y[train].toarray().mean(axis=0)
    assert log_loss(true, likely) < 0.97 * log_loss(true, np.tile(base, (len(test), 1)))
    # Of the labels that are said to be there with a certain probability, that share is.
    for low, high in ((0.0, 0.2), (0.2, 0.5), (0.5, 1.0)):
        among = (likely >= low) & (likely < high)
        expected = likely[among].mean()
        error = np.sqrt(expected * (1.0 - expected) / among.sum())
        assert true[among].mean() == pytest.approx(expected, abs=0.05 + 3.0 * error)
