"""Average ranks, and the Friedman test."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from demsar import NAMES, SCORES
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.stats import friedmanchisquare, rankdata
from score_strategies import patient, score_arrays

from marginmf.stats import average_ranks, friedman_test


def values(scores: np.ndarray, higher_is_better: bool = True) -> np.ndarray:
    return np.array(list(average_ranks(scores, higher_is_better).values()))


def test_the_ranks_of_demsars_example() -> None:
    ranks = average_ranks(SCORES, higher_is_better=False)
    assert ranks == pytest.approx(
        dict(zip(NAMES, (3.143, 2.0, 2.893, 1.964), strict=True)), abs=5e-4
    )


@patient
@given(score_arrays())
def test_ranks_are_those_of_scipy_and_share_ties(scores: np.ndarray) -> None:
    by_row = np.mean([rankdata(row) for row in scores], axis=0)
    np.testing.assert_allclose(values(scores, higher_is_better=False), by_row)


@patient
@given(score_arrays())
def test_ranks_of_a_data_set_have_one_sum_whatever_the_ties(scores: np.ndarray) -> None:
    k = scores.shape[1]
    assert values(scores).sum() == pytest.approx(k * (k + 1) / 2)


@patient
@given(score_arrays(), st.randoms(use_true_random=False))
def test_methods_in_another_order_have_their_ranks_in_that_order(scores, random) -> None:
    order = list(range(scores.shape[1]))
    random.shuffle(order)
    np.testing.assert_allclose(values(scores[:, order]), values(scores)[order])


@patient
@given(score_arrays())
def test_a_monotone_scale_changes_nothing_and_a_falling_one_turns_the_direction(scores) -> None:
    np.testing.assert_allclose(values(np.exp(scores / 4)), values(scores))
    np.testing.assert_allclose(values(-scores, higher_is_better=False), values(scores))


def test_every_form_of_scores_is_understood() -> None:
    table = {"A": [1.0, 2.0, 5.0], "B": [2.0, 1.0, 4.0]}
    expected = average_ranks(table, True)
    assert average_ranks(pd.DataFrame(table), True) == expected
    assert average_ranks(pl.DataFrame(table), True) == expected
    # Data sets have names here, and may come in any order.
    named = {"A": {"x": 1.0, "y": 2.0, "z": 5.0}, "B": {"z": 4.0, "x": 2.0, "y": 1.0}}
    assert average_ranks(named, True) == expected
    array = np.column_stack(list(table.values()))
    assert list(average_ranks(array, True)) == ["method 1", "method 2"]
    assert list(average_ranks(array, True).values()) == list(expected.values())


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        ({"A": {"x": 1.0, "y": np.nan}, "B": {"x": 1.0, "y": 2.0}}, "of A on y is nan. Ranks need"),
        ([[1.0, np.inf], [np.nan, 2.0]], "of method 2 on data set 1 is inf, and 1 more like it"),
        ({"A": [1.0, None], "B": [1.0, 2.0]}, "of A on data set 2 is nan"),
        ({"A": [1.0, 2.0], "B": [1.0]}, "A has 2 scores but B has 1"),
        ({"A": {"x": 1.0}, "B": {"y": 1.0}}, "B and A have scores on different data sets"),
        ({"A": [[1.0]], "B": [[2.0]]}, "scores of A are not a plain sequence"),
        ({"A": [1.0]}, r"scores of 1 method\(s\): two are needed"),
        ({}, r"scores of 0 method\(s\)"),
        ([1.0, 2.0], r"have 1 dimension\(s\): give a row for each data set"),
        ({"A": [], "B": []}, r"scores on 0 data set\(s\)"),
    ],
)
def test_what_cannot_be_ranked_is_a_sentence(scores, message) -> None:
    with pytest.raises(ValueError, match=message):
        average_ranks(scores, True)


def test_the_statistics_of_demsars_example() -> None:
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
    expected = friedmanchisquare(*scores.T)
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
