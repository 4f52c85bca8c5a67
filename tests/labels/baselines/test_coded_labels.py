"""CSSP and FaIE against their formulas, with matrices that have a row for every row."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from label_contracts import labelled
from marginmf.labels import CSSP, FaIE, RidgeEmbedding
from marginmf.labels.algebra.matrices import LabelGram
from marginmf.labels.baselines import codes
from marginmf.labels.baselines.codes import CodedGram

X, Y = labelled(n_labels=7)
WIDE = labelled(30, 50, 5)
REG = 0.5
FORMS = pytest.mark.parametrize("form", [np.asarray, csr_array])


def ridge_of(X, reg=REG):
    """Return what makes predictions of targets, by ridge regression with an intercept."""
    centred = X - X.mean(axis=0)
    inner = np.linalg.inv(centred.T @ centred + reg * np.eye(X.shape[1]))
    return centred @ inner @ centred.T + 1.0 / len(X)


def scores_of(model, X, Y, form=np.asarray):
    return model.set_params(decision="sign").fit(form(X), Y).decision_function(form(X))


# --- CSSP --------------------------------------------------------------------------------------


@FORMS
@pytest.mark.parametrize("coding", ["plus-minus", "zero-one"])
@pytest.mark.parametrize("data", [(X, Y), WIDE], ids=["narrow", "wide"])
def test_all_labels_kept_give_twice_the_score_of_ridge_regression(form, coding, data) -> None:
    plain = scores_of(RidgeEmbedding(REG), *data, form)
    scores = scores_of(CSSP(1.0, REG, coding), *data, form)
    np.testing.assert_allclose(scores, 2.0 * plain, atol=1e-10)


@FORMS
@pytest.mark.parametrize(("coding", "low"), [("plus-minus", -1.0), ("zero-one", 0.0)])
def test_the_labels_kept_are_predicted_and_decode_the_others(form, coding, low) -> None:
    model = CSSP(3, REG, coding, random_state=2, decision="sign").fit(form(X), Y)
    kept = model.kept_labels_
    assert len(set(kept.tolist())) == 3
    coded = np.where(Y, 1.0, low)
    decoder = np.linalg.lstsq(coded[:, kept], coded, rcond=None)[0]
    decoded = ridge_of(X) @ coded[:, kept] @ decoder
    expected = decoded if low else 2.0 * decoded - 1.0
    np.testing.assert_allclose(model.decision_function(form(X)), expected, atol=1e-10)


def test_labels_are_drawn_by_their_leverage() -> None:
    vectors = np.linalg.svd(2.0 * Y - 1.0)[2][:2]
    leverage = np.square(vectors).sum(axis=0) / 2
    gram = CodedGram(LabelGram.of(csr_array(Y.astype(float))), 2.0, -1.0)
    pairs = [CSSP(2, random_state=seed)._draw(gram) for seed in range(300)]
    shares = np.bincount(np.ravel(pairs), minlength=7) / 300
    # Without replacement: the chance to be drawn first, and after each of the others.
    later = leverage * (leverage / (1 - leverage)).sum() - leverage**2 / (1 - leverage)
    np.testing.assert_allclose(shares, leverage + later, atol=0.1)
    assert np.corrcoef(shares, leverage + later)[0, 1] > 0.9


def test_labels_that_are_alike_are_decoded_alike() -> None:
    double = np.column_stack([Y[:, :2], Y[:, :2], 1 - Y[:, :2], np.ones(len(Y), int)])
    for seed in range(5):
        model = CSSP(6, REG, random_state=seed, decision="sign").fit(X, double)
        assert len(model.kept_labels_) == 2  # the rank of the others, of which one is constant
        scores = model.decision_function(X)
        np.testing.assert_allclose(scores[:, :2], scores[:, 2:4], atol=1e-10)
        np.testing.assert_allclose(scores[:, :2], -scores[:, 4:6], atol=1e-10)


def test_seeds_decide_which_labels_are_kept() -> None:
    kept = [CSSP(2, random_state=k, decision="sign").fit(X, Y).kept_labels_ for k in (0, 0, 1, 2)]
    np.testing.assert_array_equal(kept[0], kept[1])
    assert any(not np.array_equal(kept[0], other) for other in kept[2:])


def test_coded_labels_of_many_have_the_same_products(monkeypatch) -> None:
    gram = CodedGram(LabelGram.of(csr_array(Y.astype(float))), 2.0, -1.0)
    coded, M = 2.0 * Y - 1.0, np.random.default_rng(0).normal(size=(7, 3))
    np.testing.assert_allclose(gram.matrix, coded.T @ coded, atol=1e-10)
    np.testing.assert_allclose(gram.rows(np.array([4, 1])), (coded.T @ coded)[[4, 1]], atol=1e-10)
    assert gram.trace == pytest.approx(coded.size)
    monkeypatch.setattr("marginmf.labels.algebra.matrices.MOST_DENSE_LABELS", 2)
    np.testing.assert_allclose(gram.apply(M), coded.T @ coded @ M, atol=1e-10)


# --- FaIE --------------------------------------------------------------------------------------


def faie_oracle(X, Y, d, alpha, reg):
    """Return scores by the eigenvectors of a matrix that has a row for every row."""
    coded, H = 2.0 * Y - 1.0, ridge_of(X, reg)
    Z = np.linalg.eigh(coded @ coded.T + alpha * H)[1][:, ::-1][:, :d]
    return H @ Z @ Z.T @ coded


@FORMS
@pytest.mark.parametrize("d", [1, 3, 5])
@pytest.mark.parametrize("alpha", [0.0, 1.0, 1000.0])
@pytest.mark.parametrize("data", [(X, Y), WIDE], ids=["narrow", "wide"])
def test_faie_without_rows_is_that_with_a_matrix_of_rows(form, d, alpha, data) -> None:
    scores = scores_of(FaIE(d, alpha, REG), *data, form)
    np.testing.assert_allclose(scores, faie_oracle(*data, d, alpha, REG), atol=1e-8)


@given(st.integers(0, 1000), st.integers(12, 40), st.integers(2, 30), st.floats(0.1, 100.0))
@settings(max_examples=30, deadline=None)
def test_faie_is_its_formula_whatever_the_sizes(seed, n, width, alpha) -> None:
    X, Y = labelled(n, width, 4, seed)
    Y = Y[:, (Y.min(axis=0) < Y.max(axis=0))]
    if Y.shape[1] == 4:
        expected = faie_oracle(X, Y, 2, alpha, REG)
        np.testing.assert_allclose(scores_of(FaIE(2, alpha, REG), X, Y), expected, atol=1e-6)


@pytest.mark.parametrize("d", [1, 3, 7])
def test_faie_that_ignores_features_is_plst_without_centring(d) -> None:
    coded = 2.0 * Y - 1.0
    directions = np.linalg.svd(coded)[2][:d].T
    expected = ridge_of(X) @ coded @ directions @ directions.T
    np.testing.assert_allclose(scores_of(FaIE(d, 0.0, REG), X, Y), expected, atol=1e-10)


def test_a_large_alpha_takes_codes_that_features_predict() -> None:
    def unpredictable(alpha):
        codes = FaIE(3, alpha, REG, decision="sign").fit(X, Y).transform(X)
        return 3.0 - np.sum(codes**2)  # predictions of orthonormal codes are shorter

    assert unpredictable(1000.0) < unpredictable(10.0) < unpredictable(0.0)


def test_moved_features_give_the_same_answers() -> None:
    plain = scores_of(FaIE(3, 10.0, REG), X, Y)
    for form in (np.asarray, csr_array):
        np.testing.assert_allclose(
            scores_of(FaIE(3, 10.0, REG), X + 1e4, Y, form), plain, atol=1e-6
        )


def test_many_labels_are_coded_alike(monkeypatch) -> None:
    expected = scores_of(FaIE(3, 10.0, REG), X, Y)
    monkeypatch.setattr("marginmf.labels.algebra.matrices.MOST_DENSE_LABELS", 2)
    np.testing.assert_allclose(scores_of(FaIE(3, 10.0, REG), X, Y), expected, atol=1e-8)


def test_without_a_penalty_dependent_features_do_no_harm() -> None:
    plain = scores_of(FaIE(3, 10.0, 0.0), X, Y)
    twice = scores_of(FaIE(3, 10.0, 0.0), np.hstack([X, X[:, ::-1], np.ones((len(X), 1))]), Y)
    np.testing.assert_allclose(twice, plain, atol=1e-8)


def test_too_much_of_both_is_refused(monkeypatch) -> None:
    monkeypatch.setattr(codes, "LARGEST", 7)
    with pytest.raises(ValueError, match="FaIE cannot learn from 60 rows with 8 features"):
        FaIE(decision="sign").fit(X, Y)


# --- parameters --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("size", "n"), [(3, 3), (0.3, 3), (0.29, 3), (1.0, 7), (1, 1), (50, 7), (np.int64(2), 2)]
)
def test_sizes_are_numbers_or_shares_of_the_labels_that_vary(size, n) -> None:
    with_constant = np.column_stack([np.ones(len(Y), int), Y])
    model = FaIE(size, decision="sign").fit(X, with_constant)
    assert model.transform(X).shape == (len(X), n)
    assert model.label_factors_.shape == (n, 8)
    assert len(CSSP(size, decision="sign", random_state=0).fit(X, Y).kept_labels_) == n


@pytest.mark.parametrize(
    ("model", "said"),
    [
        (CSSP(0), "n_labels_kept=0 must be a whole number >= 1, or a share"),
        (CSSP(1.5), "n_labels_kept=1.5 must be"),
        (FaIE(True), "n_factors=True must be"),
        (FaIE("all"), "n_factors='all' must be"),
        (FaIE(float("nan")), "n_factors=nan must be"),
        (FaIE(alpha=-1.0), "alpha=-1.0 must be a number >= 0"),
        (FaIE(reg=None), "reg=None must be a number >= 0"),
        (CSSP(coding="hot"), "coding='hot' is not known"),
        (CSSP(random_state="x"), "random_state='x' cannot seed"),
    ],
)
def test_bad_parameters_are_refused(model, said) -> None:
    with pytest.raises(ValueError, match=said):
        model.fit(X, Y)
