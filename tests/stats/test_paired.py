import numpy as np
import pytest
from scipy import stats

from marginmf.stats import paired_comparison

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
