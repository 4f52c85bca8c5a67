import numpy as np
import pytest
from scipy import stats

from marginmf.stats import bootstrap_interval, paired_randomisation_test, resampling


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


def test_blocks_bound_the_memory_and_the_seed_decides(monkeypatch) -> None:
    values = np.random.default_rng(0).random(100)
    whole = bootstrap_interval(values), paired_randomisation_test(values, 1 - values)
    assert whole == (bootstrap_interval(values), paired_randomisation_test(values, 1 - values))
    sizes = []
    blocks = resampling._blocks

    def watched(n_rows, n_columns):
        for rows in blocks(n_rows, n_columns):
            sizes.append(rows * n_columns)
            yield rows

    monkeypatch.setattr(resampling, "NUMBERS_AT_A_TIME", 1000)
    monkeypatch.setattr(resampling, "_blocks", watched)
    bootstrap_interval(values)
    assert max(sizes) <= 1000
    assert sum(sizes) == 2000 * 100


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: bootstrap_interval([]), "one at least"),
        (lambda: bootstrap_interval([1.0, np.nan]), "finite numbers"),
        (lambda: bootstrap_interval([1.0], confidence=95), "confidence=95 must lie between"),
        (lambda: bootstrap_interval([1.0], n_resamples=0), "n_resamples=0 is not a number"),
        (lambda: paired_randomisation_test([1.0], [2.0], n_resamples=1.5), "n_resamples=1.5"),
        (lambda: paired_randomisation_test([1.0, 2], [2.0]), "has 2 scores but"),
        (lambda: paired_randomisation_test([], []), "0 data set"),
    ],
)
def test_wrong_arguments_are_sentences(call, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        call()
