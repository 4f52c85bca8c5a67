"""The ensemble: what its combination learns, who its members are, and what it is worth."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.special import expit, logit
from sklearn.linear_model import RidgeClassifier

import marginmf
from label_contracts import accuracy, labelled, log_loss
from marginmf.labels import (
    MLCHMF,
    MLDT,
    DecisionTuned,
    KernelEmbedding,
    LabelEnsemble,
    MLkNN,
    RidgeEmbedding,
    Scaled,
    ensemble,
)
from marginmf.labels.ensemble import Combiner, fit_logistic, label_offsets, sample_cells

patient = settings(deadline=None)


def members_scores(n_rows=400, n_labels=5, seed=0):
    """Scores of a member that knows the labels, of one that knows less, and of one that guesses."""
    rng = np.random.default_rng(seed)
    present = rng.random((n_rows, n_labels)) < np.linspace(0.1, 0.5, n_labels)
    signs = np.where(present, 1.0, -1.0)
    return [signs * k + rng.normal(size=present.shape) for k in (1.5, 0.7, 0.0)], present


def fit(scores, present, **params):
    return Combiner.fit(scores, present, present.sum(axis=0), len(present), **params)


def test_members_are_trusted_by_what_they_know() -> None:
    scores, present = members_scores()
    found = fit(scores, present)
    good, fair, guess = found.weights + found.gap_weights
    assert good > fair > abs(guess)
    new, truth = members_scores(seed=1)
    alone = [
        log_loss(truth, expit(fit([own], present)([other])))
        for own, other in zip(scores, new, strict=True)
    ]
    assert log_loss(truth, expit(found(new))) < min(alone)


@given(seed=st.integers(0, 100))
@patient
def test_the_logistic_regression_is_at_its_minimum(seed) -> None:
    rng = np.random.default_rng(seed)
    table = np.column_stack([rng.normal(3.0, 2.0, (60, 2)), np.ones(60)])
    targets, weights = (rng.random(60) < 0.4).astype(float), rng.uniform(0.5, 2.0, 60)
    found = fit_logistic(table, targets, weights)
    means = weights @ table / weights.sum()
    spreads = np.sqrt(weights @ np.square(table - means) / weights.sum())[:-1]

    def loss(point):
        logits = table @ point
        value = weights @ (np.logaddexp(0.0, logits) - targets * logits)
        return value + 0.5 * np.square(point[:-1] * spreads).sum()

    best = minimize(loss, np.zeros(3), method="BFGS", options={"gtol": 1e-8})
    assert loss(found) <= best.fun + 1e-5


def test_separable_scores_leave_finite_weights() -> None:
    present = np.arange(40).reshape(20, 2) % 3 == 0
    found = fit([np.where(present, 1.0, -1.0)], present)
    assert np.isfinite(found([np.where(present, 1.0, -1.0)])).all()
    constant = fit([np.zeros(present.shape)], present)
    assert constant.weights.tolist() == [0.0]


def test_offsets_of_labels_are_drawn_towards_zero() -> None:
    present = np.zeros((1000, 2), bool)
    present[:500, 0], present[:3, 1] = True, True
    offsets = label_offsets(np.zeros((1000, 2)), present)
    assert offsets[0] == pytest.approx(0.0, abs=1e-6)
    assert logit(0.003) < offsets[1] < -3.0
    # At the maximum, the gradient of likelihood and prior is zero.
    gradient = (expit(offsets) * 1000 - present.sum(axis=0)) + ensemble.LABEL_PRECISION * offsets
    np.testing.assert_allclose(gradient, 0.0, atol=0.1)


def test_one_member_keeps_its_order_of_labels_without_gaps_and_labels() -> None:
    (own, *_), present = members_scores()
    plain = fit([own], present, gaps=False, labels=False)
    np.testing.assert_array_equal(np.argsort(plain([own]), axis=1), np.argsort(own, axis=1))
    # Distances from the row's highest score never change the order within a row either.
    with_gaps = fit([own], present, labels=False)
    np.testing.assert_array_equal(np.argsort(with_gaps([own]), axis=1), np.argsort(own, axis=1))


def test_cells_are_sampled_with_weights_that_add_up(monkeypatch) -> None:
    _, present = members_scores()
    rows, columns, weights = sample_cells(present)
    assert (weights == 1).all()
    assert len(weights) == present.size
    monkeypatch.setattr(ensemble, "MOST_ABSENT", 100)
    rows, columns, weights = sample_cells(present)
    chosen = present[rows, columns]
    assert chosen.sum() == present.sum()
    assert np.count_nonzero(~chosen) <= 100
    assert weights.sum() == pytest.approx(present.size)


def test_members_are_scored_on_rows_that_they_have_not_seen() -> None:
    # Labels that have nothing to do with the features can be remembered, not predicted.
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(200, 4)), (rng.random((200, 3)) < 0.4).astype(int)
    memory = KernelEmbedding(0.01, 8.0, "none")
    model = LabelEnsemble([memory, MLDT(30, bootstrap=True, random_state=0)]).fit(X, Y)
    likely = model.predict_proba(X)
    assert np.ptp(likely, axis=0).max() < 0.6
    assert accuracy(Y, memory.set_params(decision="sign").fit(X, Y).predict(X)) > 0.7


def test_by_default_a_forest_is_a_member_unless_labels_are_too_many(monkeypatch) -> None:
    X, Y = labelled(40)
    monkeypatch.setitem(ensemble.MEMBERS, "forest", ("mldt", {"n_trees": 3, "bootstrap": True}))
    model = LabelEnsemble(random_state=0).fit(X, Y)
    kinds = [type(member) for member in model.members_]
    assert kinds == [RidgeEmbedding, KernelEmbedding, MLDT]
    monkeypatch.setattr(ensemble, "MOST_OF_FOREST", 100)
    with pytest.warns(UserWarning, match="leaves out the forest, .* 5 labels of 40"):
        few = LabelEnsemble().fit(X, Y)
    assert [type(member) for member in few.members_] == kinds[:2]


def test_the_combination_learns_from_some_rows_where_there_are_many(monkeypatch) -> None:
    X, Y = labelled(300)
    members = (RidgeEmbedding(0.1), KernelEmbedding(0.1, 1.0, "none", n_landmarks=40))
    whole = LabelEnsemble(members).fit(X, Y)
    monkeypatch.setattr(ensemble, "MOST_SCORES", 500)
    some = LabelEnsemble(members).fit(X, Y)
    difference = np.abs(some.predict_proba(X) - whole.predict_proba(X))
    assert 0 < difference.mean() < 0.1


def test_classes_are_told_apart() -> None:
    X, Y = labelled(200)
    target = np.array(["red", "green", "blue"])[Y[:, 0] + Y[:, 1]]
    model = LabelEnsemble((RidgeEmbedding(0.1), MLkNN(5)), calibrate=True).fit(X, target)
    assert np.mean(model.predict(X) == target) > 0.75
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)


def test_files_and_sparse_features_give_the_same_answers(tmp_path) -> None:
    X, Y = labelled(80)
    model = LabelEnsemble(("ridge", "kernel", "knn"), random_state=0).fit(csr_array(X), Y)
    model.save(tmp_path / "model.marginmf")
    copy = marginmf.load(tmp_path / "model.marginmf")
    np.testing.assert_array_equal(copy.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))


def test_a_classifier_of_scikit_learn_is_a_member_with_thresholds_around_it(tmp_path) -> None:
    X, Y = labelled(80)
    members = (DecisionTuned(RidgeClassifier()), Scaled(MLCHMF(max_depth=0, random_state=0)))
    model = LabelEnsemble(members).fit(X, Y)
    model.save(tmp_path / "model.marginmf")
    copy = marginmf.load(tmp_path / "model.marginmf")
    np.testing.assert_array_equal(copy.predict(X), model.predict(X))


def test_members_that_cannot_be_get_a_sentence() -> None:
    X, Y = labelled()
    for members, said in (
        ("ridge", "members='ridge' must be 'auto' or a sequence"),
        ((), r"members=\(\) must be"),
        (("rigde",), "members has 'rigde'.*Did you mean ridge"),
        (("ensemble",), "members has 'ensemble'"),
        ((3,), "members has 3"),
        ((RidgeEmbedding(-1.0),), "reg=-1.0"),
        (("mlchmf",), "members has 'mlchmf', whose max_depth is chosen only"),
        ((Scaled(MLCHMF()),), "whose max_depth is chosen only where it is fitted by itself"),
        ((DecisionTuned(MLkNN(), {"n_neighbors": [3, 5]}),), "whose param_grid is chosen only"),
    ):
        with pytest.raises(ValueError, match=said):
            LabelEnsemble(members).fit(X, Y)


def test_it_is_ahead_of_its_members_on_real_data(data_root, monkeypatch) -> None:
    monkeypatch.setenv("MARGINMF_DATA", str(data_root))
    table = marginmf.datasets.load_labels("emotions")
    train, test = table.train_idx, table.test_idx
    true = table.Y[test].toarray()
    forest = MLDT(60, min_samples_leaf=2, bootstrap=True, random_state=0)
    kinds = (RidgeEmbedding(), KernelEmbedding(), forest)
    losses = {}
    for model in (*kinds, LabelEnsemble(kinds)):
        fitted = marginmf.labels.Scaled(model).fit(table.X[train], table.Y[train])
        losses[type(model).__name__] = log_loss(true, fitted.predict_proba(table.X[test]))
    assert min(losses, key=losses.__getitem__) == "LabelEnsemble"
