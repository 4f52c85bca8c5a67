"""ML-kNN against the paper's formulas, row by row and label by label."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from label_contracts import labelled
from marginmf.labels import MLkNN


def oracle(X, Y, new, k, s):
    """Return the posterior probability of every label of every new row, as in the paper."""
    n, n_labels = Y.shape
    k = min(k, n - 1)

    def neighbours(row, left_out=None):
        distances = [np.sum((row - other) ** 2) for other in X]
        order = [i for i in np.argsort(distances, kind="stable") if i != left_out]
        return order[:k]

    result = np.zeros((len(new), n_labels))
    for label in range(n_labels):
        prior = (s + Y[:, label].sum()) / (2 * s + n)
        having, lacking = np.zeros(k + 1), np.zeros(k + 1)
        for i in range(n):
            delta = sum(Y[a, label] for a in neighbours(X[i], left_out=i))
            if Y[i, label]:
                having[delta] += 1
            else:
                lacking[delta] += 1
        for j, row in enumerate(new):
            count = sum(Y[a, label] for a in neighbours(row))
            for_label = prior * (s + having[count]) / (s * (k + 1) + having.sum())
            against = (1 - prior) * (s + lacking[count]) / (s * (k + 1) + lacking.sum())
            result[j, label] = for_label / (for_label + against)
    return result


@given(
    st.integers(0, 1000),
    st.integers(1, 12),
    st.integers(1, 8),
    st.sampled_from([0.3, 1.0, 2.5]),
    st.booleans(),
)
@settings(max_examples=25, deadline=None)
def test_scores_are_the_posterior_probability_minus_one_half(seed, n, k, s, sparse) -> None:
    X, Y = labelled(n, 4, 3, seed)
    X += np.random.default_rng(seed).uniform(0.01, 0.02, X.shape)  # no ties
    new = np.random.default_rng(seed + 1).random((5, 4))
    form = csr_array if sparse else np.asarray
    model = MLkNN(k, s, decision="sign").fit(form(X), Y)
    expected = oracle(X, Y, new, k, s) - 0.5
    present = Y.any(axis=0)  # for others the decision function stays below zero
    np.testing.assert_allclose(
        model.decision_function(form(new))[:, present], expected[:, present], atol=1e-12
    )
    np.testing.assert_allclose(model._scores(form(new)), expected, atol=1e-12)


def test_of_rows_that_are_alike_one_is_left_out() -> None:
    # Three copies of each row: its own neighbours are the two others, and then the next ones.
    X, Y = np.repeat(np.eye(3) * 5, 3, axis=0), np.repeat(np.eye(3, dtype=int), 3, axis=0)
    model = MLkNN(2).fit(X, Y)
    # Rows with the label always have two neighbours with it, the others none.
    having, lacking, prior = (1 + 3) / (3 + 3), 1 / (3 + 6), (1 + 3) / (2 + 9)
    expected = prior * having / (prior * having + (1 - prior) * lacking)
    np.testing.assert_allclose(model.posterior_[:, 2], expected)
    np.testing.assert_allclose(model.prior_, prior)


def test_the_state_is_arrays() -> None:
    X, Y = labelled()
    model = MLkNN(5).fit(csr_array(X), Y)
    assert isinstance(model.neighbours_.stored_, csr_array)
    assert isinstance(model.stored_labels_, csr_array)
    assert model.posterior_.shape == (5, 6)
    assert ((model.posterior_ > 0) & (model.posterior_ < 1)).all()


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"n_neighbors": 0}, "n_neighbors=0 must be a whole number >= 1"),
        ({"smoothing": 0}, "smoothing=0 must be above 0"),
        ({"smoothing": -1.0}, "smoothing=-1.0 must be a number >= 0"),
    ],
)
def test_bad_parameters_are_refused(params, said) -> None:
    with pytest.raises(ValueError, match=said):
        MLkNN(**params).fit(*labelled())
