"""Products of features and labels, and that folds which share them give what refits give."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.base import clone

from label_contracts import labelled
from marginmf.labels import CSSP, LEML, LLSF, FaIE
from marginmf.labels.algebra.products import Products, Spectrum
from marginmf.labels.base import LabelsEstimator
from marginmf.labels.order import inner_folds

X, Y = labelled(n_labels=7)
LABELS = csr_array(Y.astype(float))
FORMS = pytest.mark.parametrize("form", [np.asarray, csr_array])


def centred_products(X, Y):
    X, Y = X - X.mean(axis=0), Y - Y.mean(axis=0)
    return X.T @ X, X.T @ Y, Y.T @ Y


def assert_products(products, X, Y, atol=1e-10) -> None:
    expected = centred_products(X, Y)
    found = (products.normal, products.cross, products.labels.matrix)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=atol)
    np.testing.assert_allclose(products.means, X.mean(axis=0), rtol=1e-12, atol=1e-12)


@given(st.integers(0, 1000), st.integers(3, 40), st.integers(1, 10), st.booleans(), st.booleans())
@settings(max_examples=40, deadline=None)
def test_products_of_the_rows_left_are_differences(seed, n, width, sparse, far) -> None:
    X, Y = labelled(n, width, 3, seed)
    X = X + 1e6 * far  # as dates are
    form, labels = (csr_array if sparse else np.asarray), csr_array(Y.astype(float))
    out = np.arange(n) % 3 == 0
    whole = Products.of(form(X), labels)
    assert_products(whole, X, Y, 1e-8)
    part = Products.of(form(X[out]), labels[out])
    assert_products(whole.without(part), X[~out], Y[~out], 1e-6 if far else 1e-10)


@FORMS
def test_products_without_centring_and_of_some_labels(form) -> None:
    products = Products.of(form(X), LABELS)
    plain, some = products.uncentred(), products.take(np.array([4, 0]))
    np.testing.assert_allclose(plain.normal, X.T @ X, atol=1e-10)
    np.testing.assert_allclose(plain.cross, X.T @ Y, atol=1e-10)
    assert_products(some, X, Y[:, [4, 0]])


@FORMS
@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("shape", [(60, 8), (20, 50)])
def test_a_spectrum_is_the_same_from_either_side(form, centred, shape) -> None:
    X, Y = labelled(*shape, 4)
    spectrum = Spectrum.of(form(X), csr_array(Y.astype(float)), centred)
    X, Y = X - X.mean(axis=0) * centred, Y - Y.mean(axis=0) * centred
    basis = spectrum.lift(np.eye(len(spectrum.values)))
    np.testing.assert_allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-8)
    np.testing.assert_allclose(basis * spectrum.values @ basis.T, X.T @ X, atol=1e-8)
    np.testing.assert_allclose(basis @ spectrum.cross, X.T @ Y, atol=1e-8)


@FORMS
@pytest.mark.parametrize(
    "model",
    [
        LLSF(),
        LLSF(normalize_rows=True),
        CSSP(3, random_state=0),
        FaIE(3, 10.0),
        LEML(3, random_state=0),
        LEML(3, fit_intercept=True, random_state=0),
    ],
    ids=repr,
)
def test_folds_that_share_products_give_what_refits_give(model, form, monkeypatch) -> None:
    monkeypatch.setattr("marginmf.labels.baselines.llsf.should_form", lambda *_: True)
    rare = Y.copy()
    rare[:, 0] = 0
    rare[5, 0] = 1  # a label that does not vary in one of the folds
    labels = csr_array(rare.astype(float))
    folds = inner_folds(form(X), labels, 3)
    refits = list(LabelsEstimator._fit_each(model, form(X), labels, folds))
    model = clone(model)
    model._known = Products.of(model._prepare(form(X)), labels)
    for one, other in zip(model._fit_each(form(X), labels, folds), refits, strict=True):
        scores = other._label_scores(form(X))
        np.testing.assert_allclose(one._label_scores(form(X)), scores, atol=1e-8)
        assert set(vars(one)) == set(vars(other))


@pytest.mark.parametrize("decision", ["sign", "global"])
def test_two_passes_over_the_rows_serve_all_folds(decision, monkeypatch) -> None:
    made, make = [], Products.of
    monkeypatch.setattr(Products, "of", lambda X, Y: made.append(X.shape[0]) or make(X, Y))
    model = FaIE(3, decision=decision).fit(X, Y)
    assert made == ([60] if decision == "sign" else [60, 20, 20, 20])
    assert "_known" not in vars(model)
    scores = FaIE(3, decision="sign").fit(X, Y).decision_function(X)
    np.testing.assert_allclose(model.decision_function(X) + model.thresholds_, scores, atol=1e-10)


@pytest.mark.parametrize("n", [20, 11])
def test_folds_with_fewer_rows_than_features_are_refits(n) -> None:
    X, Y = labelled(n, 8, 4, seed=3)  # eleven rows leave seven to learn from
    labels, model = csr_array(Y.astype(float)), FaIE(3, 10.0)
    model._known = Products.of(X, labels)
    folds = inner_folds(X, labels, 3)
    for one, other in zip(
        model._fit_each(X, labels, folds),
        LabelsEstimator._fit_each(model, X, labels, folds),
        strict=True,
    ):
        np.testing.assert_allclose(one._label_scores(X), other._label_scores(X), atol=1e-8)
