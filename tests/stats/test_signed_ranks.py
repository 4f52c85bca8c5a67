import numpy as np
import pytest
import scikit_posthocs
from demsar import PLAIN, TUNED
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from score_strategies import patient, score_arrays

from marginmf.stats import holm, signed_rank_test, wilcoxon_holm


def test_demsars_example() -> None:
    found = signed_rank_test(TUNED, PLAIN)
    # The article shares the ranks of its two zeros, 1 and 2, between both sums: 93 and 12.
    assert found.statistic == 12 - 1.5
    assert (found.wins, found.ties, found.losses) == (10, 2, 2)
    assert found.rank_biserial == pytest.approx((91.5 - 10.5) / (91.5 + 10.5))
    assert found.superiority == pytest.approx(11 / 14)
    assert found.differ


def test_without_ties_the_p_value_is_the_exact_one_of_scipy() -> None:
    random = np.random.default_rng(1)
    for n in (3, 6, 12, 30, 50):
        a, b = random.normal(0.5, size=n), random.normal(size=n)
        expected = stats.wilcoxon(a, b, method="exact")
        found = signed_rank_test(a, b)
        assert found.p_value == pytest.approx(expected.pvalue)
        assert found.statistic == expected.statistic


@settings(patient, max_examples=25)
@given(score_arrays(min_datasets=2, min_methods=2))
def test_with_ties_and_zeros_it_is_that_of_all_signs(scores: np.ndarray) -> None:
    a, b = scores[:10, 0], scores[:10, 1]
    d = a - b
    ranks = stats.rankdata(np.abs(d)) * (d != 0)
    signs = np.array(np.meshgrid(*[[-1, 1]] * len(d))).reshape(len(d), -1).T
    as_far = np.abs(signs @ ranks) >= abs(np.sign(d) @ ranks) - 1e-9
    assert signed_rank_test(a, b).p_value == pytest.approx(as_far.mean())


def test_many_data_sets_have_the_normal_p_value_of_scipy() -> None:
    random = np.random.default_rng(2)
    a, b = random.integers(0, 30, (2, 150)) + np.array([[2], [0]])
    expected = stats.wilcoxon(a, b, zero_method="pratt", method="approx", correction=False)
    assert signed_rank_test(a, b).p_value == pytest.approx(expected.pvalue, rel=1e-6)


@patient
@given(score_arrays())
def test_the_other_way_round_it_is_the_same_with_signs_turned(scores: np.ndarray) -> None:
    there, back = signed_rank_test(*scores[:, :2].T), signed_rank_test(*scores[:, 1::-1].T)
    assert there.p_value == pytest.approx(back.p_value)
    assert there.rank_biserial == pytest.approx(-back.rank_biserial)
    assert there.superiority == pytest.approx(1 - back.superiority)
    assert (there.wins, there.losses) == (back.losses, back.wins)
    assert -1 <= there.rank_biserial <= 1


def test_decimals_that_differ_by_as_much_tie() -> None:
    # In binary 0.3 - 0.2 < 0.2 - 0.1.
    found = signed_rank_test([0.3, 0.2, 0.9], [0.2, 0.3, 0.1])
    assert found.statistic == 1.5


@pytest.mark.parametrize("n", [1, 5, 150])
def test_equal_scores_everywhere_are_no_difference(n: int) -> None:
    found = signed_rank_test(np.ones(n), np.ones(n))
    assert (found.p_value, found.rank_biserial, found.superiority) == (1.0, 0.0, 0.5)
    assert not found.differ


def test_five_data_sets_are_too_few() -> None:
    assert signed_rank_test([2, 3, 4, 5, 6], [1, 1, 1, 1, 1]).p_value == 0.0625


def test_pairs_are_those_of_scikit_posthocs() -> None:
    scores = np.random.default_rng(3).normal(size=(12, 4)) + np.arange(4) / 2
    expected = scikit_posthocs.posthoc_wilcoxon(list(scores.T), p_adjust="holm").to_numpy()
    found = wilcoxon_holm(scores, higher_is_better=True)
    assert [(test.first[-1], test.second[-1]) for test in found] == [
        ("1", "2"), ("1", "3"), ("1", "4"), ("2", "3"), ("2", "4"), ("3", "4"),
    ]  # fmt: skip
    for test in found:
        row, column = int(test.first[-1]) - 1, int(test.second[-1]) - 1
        assert test.adjusted_p == pytest.approx(expected[row, column])
        assert test.differ == (test.adjusted_p <= 0.05)


def test_of_errors_the_smaller_is_better() -> None:
    scores = {"A": [1, 2, 3], "B": [2, 3, 5]}
    assert wilcoxon_holm(scores, higher_is_better=False)[0].wins == 3
    assert wilcoxon_holm(scores, higher_is_better=True)[0].losses == 3


@patient
@given(st.lists(st.floats(0, 1), max_size=12))
def test_holm_keeps_the_order_and_lies_between_nothing_and_bonferroni(p: list[float]) -> None:
    adjusted = holm(p)
    for own, after in zip(p, adjusted, strict=True):
        assert own <= after <= min(1.0, len(p) * own) + 1e-12
    order = np.argsort(p, kind="stable")
    assert (np.diff(np.array(adjusted)[order]) >= 0).all()


def test_holm_refuses_what_is_no_p_value() -> None:
    with pytest.raises(ValueError, match="numbers from 0 to 1"):
        holm([0.5, 1.5])
