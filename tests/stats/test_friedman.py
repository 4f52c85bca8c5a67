import numpy as np
import pytest
from demsar import SCORES
from hypothesis import assume, given
from scipy import stats
from score_strategies import patient, score_arrays

from marginmf.stats import friedman_test


def test_demsars_example() -> None:
    found = friedman_test(SCORES, higher_is_better=False)
    assert found.chi_square == pytest.approx(9.28, abs=0.01)
    assert found.f == pytest.approx(3.69, abs=0.01)
    assert (found.chi_square_df, found.f_df) == (3, (3, 39))
    assert found.f_critical == pytest.approx(2.85, abs=0.005)
    assert found.differ
    assert (found.n_methods, found.n_datasets) == (4, 14)


@patient
@given(score_arrays(min_methods=3))
def test_corrected_for_ties_it_is_that_of_scipy(scores: np.ndarray) -> None:
    assume(any(len(set(row)) > 1 for row in scores))  # scipy divides by zero where all tie
    found = friedman_test(scores, higher_is_better=True, tie_correction=True)
    expected = stats.friedmanchisquare(*scores.T)
    assert found.chi_square == pytest.approx(expected.statistic)
    assert found.chi_square_p == pytest.approx(expected.pvalue)


@patient
@given(score_arrays())
def test_uncorrected_it_is_the_textbook_formula_and_never_larger(scores: np.ndarray) -> None:
    found = friedman_test(scores, higher_is_better=True)
    n, k = scores.shape
    squares = sum(rank**2 for rank in found.average_ranks.values())
    textbook = 12 * n / (k * (k + 1)) * (squares - k * (k + 1) ** 2 / 4)
    assert found.chi_square == pytest.approx(textbook, abs=1e-9)
    corrected = friedman_test(scores, higher_is_better=True, tie_correction=True)
    assert found.chi_square <= corrected.chi_square + 1e-9
    assert not found.tie_corrected
    assert corrected.tie_corrected


@patient
@given(score_arrays())
def test_the_verdict_is_that_of_the_p_value(scores: np.ndarray) -> None:
    found = friedman_test(scores, higher_is_better=True, alpha=0.1)
    assert found.differ == (found.f_p <= 0.1)
    assert 0 <= found.f_p <= 1


def test_full_agreement_has_no_bound() -> None:
    found = friedman_test([[1, 2, 3]] * 4, higher_is_better=True)
    assert (found.f, found.f_p, found.chi_square) == (np.inf, 0.0, 8.0)
    assert found.differ


@pytest.mark.parametrize("correction", [False, True])
def test_equal_scores_everywhere_are_no_difference(correction: bool) -> None:
    found = friedman_test(np.ones((4, 3)), higher_is_better=True, tie_correction=correction)
    assert (found.chi_square, found.f, found.f_p) == (0.0, 0.0, 1.0)


def test_one_data_set_is_not_enough() -> None:
    with pytest.raises(ValueError, match=r"1 data set\(s\): 2 are needed"):
        friedman_test({"A": [1.0], "B": [2.0]}, higher_is_better=True)


def test_alpha_is_checked() -> None:
    with pytest.raises(ValueError, match="alpha=5 must lie between 0 and 1"):
        friedman_test(SCORES, higher_is_better=False, alpha=5)
