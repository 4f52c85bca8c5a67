import numpy as np
import pytest
import scikit_posthocs
from demsar import SCORES
from hypothesis import given, settings
from hypothesis import strategies as st
from score_strategies import patient, score_arrays

from marginmf.stats import (
    average_ranks,
    bonferroni_dunn_critical_difference,
    bonferroni_dunn_test,
    cliques,
    nemenyi_critical_difference,
    nemenyi_test,
)

RANDOM = np.random.default_rng(0).normal(size=(11, 6)) + np.arange(6) / 2


# Demšar's table 5a, whose last digits are not all rounded.
@pytest.mark.parametrize(
    ("alpha", "row"),
    [
        (0.05, [1.960, 2.343, 2.569, 2.728, 2.850, 2.949, 3.031, 3.102, 3.164]),
        (0.10, [1.645, 2.052, 2.291, 2.459, 2.589, 2.693, 2.780, 2.855, 2.920]),
    ],
)
def test_quantiles_are_those_of_the_table(alpha: float, row: list[float]) -> None:
    computed = [
        nemenyi_critical_difference(k, 1, alpha) / np.sqrt(k * (k + 1) / 6) for k in range(2, 11)
    ]
    np.testing.assert_allclose(computed, row, atol=0.0011)


def test_demsars_example() -> None:
    assert nemenyi_critical_difference(4, 14, 0.05) == pytest.approx(1.25, abs=0.005)
    assert nemenyi_critical_difference(4, 14, 0.10) == pytest.approx(1.12, abs=0.005)
    assert nemenyi_test(SCORES, higher_is_better=False).differing == ()
    found = nemenyi_test(SCORES, higher_is_better=False, alpha=0.10)
    assert set(found.differing) == {("C4.5+m", "C4.5"), ("C4.5+m+cf", "C4.5")}
    assert cliques(found.average_ranks, found.critical_difference) == [
        ("C4.5+m+cf", "C4.5+m", "C4.5+cf"),
        ("C4.5+cf", "C4.5"),
    ]
    # The article cuts 1.168 and 1.038 off after two digits.
    assert bonferroni_dunn_critical_difference(4, 14, 0.05) == pytest.approx(1.16, abs=0.01)
    assert bonferroni_dunn_critical_difference(4, 14, 0.10) == pytest.approx(1.04, abs=0.01)


def test_p_values_are_those_of_scikit_posthocs() -> None:
    found = nemenyi_test(RANDOM, higher_is_better=True)
    expected = scikit_posthocs.posthoc_nemenyi_friedman(RANDOM).to_numpy()
    for i in range(6):
        for j in range(i):
            p = found.p_value(f"method {i + 1}", f"method {j + 1}")
            assert p == pytest.approx(expected[i, j], abs=1e-6)


@settings(patient, max_examples=30)
@given(score_arrays())
def test_differing_methods_lie_a_critical_difference_apart(scores: np.ndarray) -> None:
    everyone = nemenyi_test(scores, higher_is_better=True)
    control = bonferroni_dunn_test(scores, "method 1", higher_is_better=True)
    for found in (everyone, control):
        for (better, worse), p in found.p_values.items():
            apart = found.average_ranks[worse] - found.average_ranks[better]
            assert apart >= 0
            assert (p <= found.alpha) == (apart >= found.critical_difference)
    assert control.critical_difference <= everyone.critical_difference + 1e-9
    k = scores.shape[1]
    assert (len(everyone.p_values), len(control.p_values)) == (k * (k - 1) // 2, k - 1)


@patient
@given(
    st.lists(st.integers(0, 40).map(lambda n: n / 4), min_size=1, max_size=9),
    st.sampled_from([0.5, 1.0, 2.6, 20.0]),
)
def test_cliques_are_the_largest_groups_that_do_not_differ(ranks, cd) -> None:
    named = {str(place): rank for place, rank in enumerate(ranks)}
    groups = [set(group) for group in cliques(named, cd)]
    for group in groups:
        spread = [named[name] for name in group]
        assert max(spread) - min(spread) < cd
        assert not any(group < other for other in groups)
    for a in named:
        for b in named:
            together = any({a, b} <= group for group in groups)
            assert together == (abs(named[a] - named[b]) < cd and (a != b or together))


def test_methods_that_all_differ_have_no_cliques() -> None:
    assert cliques({"A": 1.0, "B": 2.0, "C": 3.0}, 1.0) == []


def test_mean_ranks_are_those_of_average_ranks() -> None:
    ranks = average_ranks(RANDOM, higher_is_better=True)
    assert nemenyi_test(RANDOM, higher_is_better=True).average_ranks == ranks


def test_wrong_questions_are_sentences() -> None:
    with pytest.raises(ValueError, match=r"control='C45' is not one of the methods \(C4.5, "):
        bonferroni_dunn_test(SCORES, "C45", higher_is_better=False)
    with pytest.raises(ValueError, match="n_methods=1 must be a whole number >= 2"):
        nemenyi_critical_difference(1, 10)
    with pytest.raises(ValueError, match="n_datasets=0 must be a whole number >= 1"):
        nemenyi_critical_difference(3, 0)
    with pytest.raises(ValueError, match="alpha=0 must lie"):
        bonferroni_dunn_critical_difference(3, 5, alpha=0)
    found = bonferroni_dunn_test(SCORES, "C4.5", higher_is_better=False)
    with pytest.raises(KeyError, match=r"'C4.5\+m' and 'C4.5\+cf' were not compared"):
        found.p_value("C4.5+m", "C4.5+cf")
