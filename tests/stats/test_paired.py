"""Two methods on the same splits, data sets or users."""

import numpy as np
import pytest
import scikit_posthocs
from demsar import PLAIN, TUNED
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats
from score_strategies import patient, score_arrays

from marginmf.stats import (
    bootstrap_interval,
    holm,
    paired,
    paired_comparison,
    paired_randomisation_test,
    signed_rank_test,
    wilcoxon_holm,
)

A = [0.671, 0.668, 0.675, 0.670, 0.669]
B = [0.679, 0.680, 0.681, 0.673, 0.678]


def test_of_separate_data_it_is_the_paired_t_test_of_scipy() -> None:
    found, expected = paired_comparison(A, B, test_size=None), stats.ttest_rel(A, B)
    assert (found.t, found.p_value) == pytest.approx((expected.statistic, expected.pvalue))
    assert found.interval == pytest.approx(expected.confidence_interval(0.95))
    assert found.df == 4
    assert found.mean_difference == pytest.approx(np.mean(A) - np.mean(B))


def test_overlap_widens_the_error_as_nadeau_and_bengio_say() -> None:
    plain = paired_comparison(A, B, test_size=None)
    corrected = paired_comparison(A, B, test_size=0.2)
    factor = np.sqrt((1 / 5 + 0.2 / 0.8) / (1 / 5))
    assert corrected.standard_error == pytest.approx(plain.standard_error * factor)
    assert corrected.t == pytest.approx(plain.t / factor)
    assert corrected.p_value > plain.p_value
    assert corrected.mean_difference == plain.mean_difference


def test_the_interval_leaves_out_zero_exactly_where_the_p_value_is_small() -> None:
    found = paired_comparison(A, B, test_size=0.2)
    level = 1 - found.p_value
    for confidence, without_zero in ((level - 1e-6, True), (level + 1e-6, False)):
        low, high = paired_comparison(A, B, test_size=0.2, confidence=confidence).interval
        assert (low * high > 0) == without_zero


def test_the_correction_keeps_its_level_where_the_plain_test_does_not() -> None:
    """Two methods that are equally good, judged on random splits of one sample after another."""
    random = np.random.default_rng(0)
    plain = corrected = 0
    runs, n, splits, n_test = 300, 60, 10, 15
    for _ in range(runs):
        x = random.normal(size=(2, n))
        differences = []
        for _ in range(splits):
            order = random.permutation(n)
            test, train = order[:n_test], order[n_test:]
            # Each "method" predicts the mean of its own noisy view of the data.
            errors = [np.square(view[test] - view[train].mean()).mean() for view in x]
            differences.append(errors[0] - errors[1])
        zeros = np.zeros(splits)
        plain += paired_comparison(differences, zeros, test_size=None).p_value < 0.05
        corrected += paired_comparison(differences, zeros, test_size=n_test / n).p_value < 0.05
    assert plain / runs > 0.25
    assert corrected / runs < 0.12


def test_the_same_difference_everywhere_leaves_no_doubt() -> None:
    sure = paired_comparison([2, 3, 4], [1, 2, 3], test_size=0.5)
    assert (sure.t, sure.p_value, sure.interval) == (np.inf, 0.0, (1.0, 1.0))
    none = paired_comparison([1, 2], [1, 2], test_size=0.5)
    assert (none.t, none.p_value) == (0.0, 1.0)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"test_size": 5}, "test_size=5 must lie between 0 and 1: it is the share"),
        ({"test_size": 0.2, "confidence": 95}, "confidence=95 must lie between 0 and 1"),
    ],
)
def test_wrong_arguments_are_sentences(arguments, message) -> None:
    with pytest.raises(ValueError, match=message):
        paired_comparison(A, B, **arguments)


def test_one_split_is_not_enough() -> None:
    with pytest.raises(ValueError, match="2 are needed"):
        paired_comparison([1.0], [2.0], test_size=0.2)
    with pytest.raises(ValueError, match="first method has 2 scores but the second method has 1"):
        paired_comparison([1.0, 2.0], [2.0], test_size=0.2)


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


def test_the_interval_is_about_that_of_the_normal_distribution() -> None:
    values = np.random.default_rng(0).normal(size=1000)
    low, high = bootstrap_interval(values, n_resamples=5000)
    reach = 1.96 * values.std() / np.sqrt(1000)
    assert (low, high) == pytest.approx((values.mean() - reach, values.mean() + reach), abs=0.005)


def test_the_interval_is_about_that_of_scipy() -> None:
    values = np.random.default_rng(1).exponential(size=60)
    expected = stats.bootstrap((values,), np.mean, method="percentile").confidence_interval
    assert bootstrap_interval(values) == pytest.approx(tuple(expected), abs=0.03)


def test_more_confidence_is_a_wider_interval() -> None:
    values = np.random.default_rng(0).random(50)
    (low, high), (lower, higher) = (bootstrap_interval(values, c) for c in (0.5, 0.99))
    assert lower < low < values.mean() < high < higher


def test_values_that_are_all_the_same_leave_no_doubt() -> None:
    assert bootstrap_interval([0.25] * 8) == (0.25, 0.25)
    assert bootstrap_interval([3.0]) == (3.0, 3.0)


def test_the_interval_covers_the_truth_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    inside = 0
    for _ in range(400):
        low, high = bootstrap_interval(rng.random(80), 0.9, n_resamples=300)
        inside += low <= 0.5 <= high
    assert 0.85 < inside / 400 < 0.94


@pytest.mark.parametrize("n", [3, 7, 12])
def test_few_pairs_are_tested_exactly_as_scipy_does(n: int) -> None:
    rng = np.random.default_rng(n)
    a, b = rng.integers(8, size=(2, n)) / 4
    expected = stats.permutation_test(
        (a, b), lambda x, y: np.mean(x - y), permutation_type="samples", n_resamples=np.inf
    )
    # SciPy's p-value is twice the smaller tail, which here is the share of both.
    assert paired_randomisation_test(a, b) == pytest.approx(min(1.0, expected.pvalue))


def test_many_pairs_agree_with_the_normal_distribution() -> None:
    rng = np.random.default_rng(0)
    a = rng.random(2001)
    b = a + rng.normal(0.02, 0.5, size=2001)
    difference = a - b
    z = difference.sum() / np.sqrt(np.square(difference).sum())
    found = paired_randomisation_test(a, b, n_resamples=20_000)
    assert found == pytest.approx(2 * stats.norm.sf(abs(z)), abs=0.015)


def test_the_level_is_kept_when_nothing_differs() -> None:
    rng = np.random.default_rng(0)
    p = [paired_randomisation_test(*rng.normal(size=(2, 40)), n_resamples=400) for _ in range(400)]
    assert 0.025 < np.mean(np.array(p) <= 0.05) < 0.08


def test_the_p_value_is_never_zero_and_has_no_direction() -> None:
    a, b = np.arange(100) + 1.0, np.zeros(100)
    assert paired_randomisation_test(a, b, 999) == paired_randomisation_test(b, a, 999) == 0.001


def test_pairs_that_do_not_differ_change_nothing() -> None:
    a, b = [5.0, 6, 7, 9] + [1.0] * 100, [4.0, 4, 4, 5] + [1.0] * 100
    assert paired_randomisation_test(a, b) == 0.125
    assert paired_randomisation_test([1, 2], [1, 2]) == 1.0


def test_equal_sums_are_as_large_whatever_their_last_digits() -> None:
    # 0.1 + 0.2 is not 0.3: all four sums of size 0.6 or 0 are what they look like.
    assert paired_randomisation_test([0.1, 0.2, 0.3], [0, 0, 0]) == 0.25


def test_the_seed_decides_whatever_the_blocks(monkeypatch) -> None:
    values = np.random.default_rng(0).random(100)
    whole = bootstrap_interval(values), paired_randomisation_test(values, 1 - values)
    assert whole == (bootstrap_interval(values), paired_randomisation_test(values, 1 - values))
    monkeypatch.setattr(paired, "NUMBERS_AT_A_TIME", 1000)
    assert bootstrap_interval(values) == whole[0]
    assert paired_randomisation_test(values, 1 - values) == pytest.approx(whole[1], abs=0.01)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: bootstrap_interval([]), "one at least"),
        (lambda: bootstrap_interval([1.0, np.nan]), "finite numbers"),
        (lambda: bootstrap_interval([1.0], confidence=95), "confidence=95 must lie between"),
        (
            lambda: bootstrap_interval([1.0], n_resamples=0),
            "n_resamples=0 must be a whole",
        ),
        (lambda: paired_randomisation_test([1.0], [2.0], n_resamples=1.5), "n_resamples=1.5"),
        (lambda: paired_randomisation_test([1.0, 2], [2.0]), "has 2 scores but"),
        (lambda: paired_randomisation_test([], []), "0 data set"),
    ],
)
def test_wrong_samples_are_sentences(call, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        call()
