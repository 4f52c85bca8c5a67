"""PLST, CPLST and plain ridge regression against their formulas."""

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_array
from sklearn.linear_model import Ridge

from label_contracts import labelled
from marginmf.labels import CPLST, PLST, RidgeEmbedding

X, Y = labelled(n_labels=7)
REG = 0.5


def hat(X):
    """Return what makes predictions of centred targets."""
    centred = X - X.mean(axis=0)
    return centred @ np.linalg.solve(centred.T @ centred + REG * np.eye(X.shape[1]), centred.T)


def predicted_codes(directions):
    """Return the ridge regression of the codes, decoded, as scores."""
    ridge = Ridge(REG, solver="cholesky").fit(X, (Y - Y.mean(axis=0)) @ directions)
    return ridge.predict(X).reshape(len(X), -1) @ directions.T + Y.mean(axis=0) - 0.5


@pytest.mark.parametrize("form", [np.asarray, csr_array])
@pytest.mark.parametrize("d", [1, 3, 7])
def test_plst_is_ridge_regression_on_the_singular_vectors(form, d) -> None:
    directions = np.linalg.svd(Y - Y.mean(axis=0))[2][:d].T
    model = PLST(d, REG, decision="sign").fit(form(X), Y)
    np.testing.assert_allclose(
        model.decision_function(form(X)), predicted_codes(directions), atol=1e-10
    )
    np.testing.assert_allclose(np.abs(directions.T), np.abs(model.label_factors_), atol=1e-9)


@pytest.mark.parametrize("form", [np.asarray, csr_array])
@pytest.mark.parametrize("d", [1, 3, 7])
def test_cplst_takes_the_directions_that_can_be_predicted(form, d) -> None:
    centred = Y - Y.mean(axis=0)
    directions = np.linalg.eigh(centred.T @ hat(X) @ centred)[1][:, ::-1][:, :d]
    model = CPLST(d, REG, decision="sign").fit(form(X), Y)
    np.testing.assert_allclose(
        model.decision_function(form(X)), predicted_codes(directions), atol=1e-10
    )


def test_with_all_directions_they_are_ridge_regression() -> None:
    plain = RidgeEmbedding(REG, decision="sign").fit(X, Y).decision_function(X)
    ridge = Ridge(REG, solver="cholesky").fit(X, Y)
    np.testing.assert_allclose(plain, ridge.predict(X) - 0.5, atol=1e-10)
    for method in (PLST, CPLST):
        scores = method(100, REG, decision="sign").fit(X, Y).decision_function(X)
        np.testing.assert_allclose(scores, plain, atol=1e-10)


def test_with_few_directions_cplst_fits_the_labels_better() -> None:
    def residual(method):
        scores = method(2, REG, decision="sign").fit(X, Y).decision_function(X)
        return np.sum((Y - 0.5 - scores) ** 2)

    assert residual(CPLST) < residual(PLST)


@pytest.mark.parametrize("method", [PLST, CPLST])
def test_codes_are_given_and_named(method) -> None:
    model = method(3, REG).fit(pd.DataFrame(X).add_prefix("f"), Y)
    codes = model.set_output(transform="pandas").transform(pd.DataFrame(X).add_prefix("f"))
    name = method.__name__.lower()
    assert list(codes.columns) == [f"{name}{k}" for k in range(3)]
    scores = codes.to_numpy() @ model.label_factors_ + model.label_means_ - 0.5
    np.testing.assert_allclose(model._scores(X), scores, atol=1e-12)
    assert method(3, REG).fit_transform(X, Y).shape == (len(X), 3)


@pytest.mark.parametrize("method", [PLST, CPLST])
def test_no_more_directions_than_the_labels_have(method) -> None:
    double = np.column_stack([Y[:, :2], Y[:, :2], np.ones(len(Y), int)])
    model = method(5, REG, decision="sign").fit(X, double)
    assert model.transform(X).shape == (len(X), 2)
    predicted = model.predict(X)
    np.testing.assert_array_equal(predicted[:, :2], predicted[:, 2:4])
    assert method().fit(X, np.ones((len(Y), 2), int)).transform(X).tolist() == [[0.0]] * len(X)


@pytest.mark.parametrize("method", [PLST, CPLST])
def test_many_labels_are_coded_alike(method, monkeypatch) -> None:
    expected = method(3, REG, decision="sign").fit(X, Y).decision_function(X)
    monkeypatch.setattr("marginmf.labels.algebra.matrices.MOST_DENSE_LABELS", 2)
    scores = method(3, REG, decision="sign").fit(X, Y).decision_function(X)
    np.testing.assert_allclose(scores, expected, atol=1e-9)


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (PLST(n_factors=0), "n_factors=0 must be a whole number >= 1"),
        (CPLST(reg=-1.0), "reg=-1.0 must be a number >= 0"),
        (RidgeEmbedding(reg=None), "reg=None must be a number >= 0"),
    ],
)
def test_bad_parameters_are_refused(model, said) -> None:
    with pytest.raises(ValueError, match=said):
        model.fit(X, Y)
