"""Decision rules: what they do with scores, and that the search finds the best thresholds."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import expit, logit

from marginmf.labels.calibration import (
    SHIFTS,
    LabelCalibrator,
    Tuner,
    best_shift,
    expected_f1_thresholds,
    is_ahead,
)
from marginmf.labels.decisions import (
    EXPECTED,
    MEASURES,
    DecisionRule,
    ExpectedRule,
    ThresholdSearch,
    candidate_thresholds,
    row_overlaps,
    value_of_sets,
)
from marginmf.metrics.labels import log_loss

SHAPE = (7, 4)
# On a grid, so that subtracting a threshold makes no ties that were not there.
SCORES = arrays(np.int64, SHAPE, elements=st.integers(-32, 32)).map(lambda a: a / 16)
PRESENT = arrays(np.bool_, SHAPE)
patient = settings(deadline=None)  # the first example may have to compile


def f1(right, predicted, present):
    total = predicted + present
    return 2 * right / total if total else 0.0


def measured(measure, present, predicted):
    """The measures, one row and one label at a time; 0/0 counts as 0."""
    if measure == "accuracy":
        rows = zip(present, predicted, strict=True)
        return np.mean([(y & p).sum() / (y | p).sum() if (y | p).any() else 0.0 for y, p in rows])
    if measure == "hamming":
        return -float((present != predicted).sum())
    if measure == "micro_f1":
        return f1((present & predicted).sum(), predicted.sum(), present.sum())
    if measure == "macro_f1":
        present, predicted = present.T, predicted.T
    lines = zip(present, predicted, strict=True)
    return np.mean([f1((y & p).sum(), p.sum(), y.sum()) for y, p in lines])


@pytest.mark.parametrize("top1", [False, True])
@pytest.mark.parametrize("measure", MEASURES)
@given(scores=SCORES, present=PRESENT)
@patient
def test_the_search_counts_what_the_rule_would_reach(measure, top1, scores, present) -> None:
    candidates = np.linspace(-1.5, 1.5, 13)
    search = ThresholdSearch(SHAPE[1], top1, candidates)
    search.add(scores[:3], present[:3])
    search.add(scores[3:], present[3:])
    for threshold, value in zip(candidates, search.value(measure), strict=True):
        predicted = DecisionRule(np.full(SHAPE[1], threshold), top1)(scores)
        assert value == pytest.approx(measured(measure, present, predicted))


@pytest.mark.parametrize("measure", MEASURES)
@given(scores=SCORES, present=PRESENT)
@patient
def test_the_best_common_threshold_is_no_worse_than_any_candidate(measure, scores, present) -> None:
    candidates = candidate_thresholds([(scores, present)])
    search = ThresholdSearch(SHAPE[1], False, candidates)
    search.add(scores, present)
    _, value = search.best("global", measure)
    best = max(
        measured(measure, present, scores > threshold)
        for threshold in [*candidates, *np.nextafter(scores.ravel(), -9)]
        if candidates[0] <= threshold <= candidates[-1]
    )
    assert value == pytest.approx(best)


def test_between_well_separated_scores_the_threshold_is_in_the_middle_of_the_gap() -> None:
    present = np.random.default_rng(0).random((200, 5)) < 0.3
    scores = np.where(present, 0.9, -0.7)
    search = ThresholdSearch(5, False)
    search.add(scores, present)
    thresholds, value = search.best("global", "accuracy")
    assert value == pytest.approx(present.any(axis=1).mean())
    assert -0.4 < thresholds[0] < 0.6
    assert (thresholds == thresholds[0]).all()


def test_own_thresholds_are_halfway_between_the_labels_best_and_the_common_one() -> None:
    rng = np.random.default_rng(1)
    present = rng.random((3000, 3)) < [0.5, 0.2, 0.1]
    shift = np.array([0.0, -1.0, -2.0])
    scores = np.where(present, 1.0, -1.0) + rng.normal(scale=0.1, size=present.shape) + shift
    search = ThresholdSearch(3, False)
    search.add(scores, present)
    common = search.best("global", "macro_f1")[0][0]
    own = search.best("per_label", "macro_f1")[0]
    assert np.allclose(2 * own - common, shift, atol=0.5)


def test_a_label_without_positives_keeps_the_common_threshold() -> None:
    present = np.array([[True, False], [False, False], [True, False]])
    scores = np.array([[0.5, 0.4], [-0.5, -0.2], [0.4, 0.1]])
    search = ThresholdSearch(2, False)
    search.add(scores, present)
    thresholds, _ = search.best("per_label", "accuracy")
    assert thresholds[1] == search.best("global", "accuracy")[0][1]


def test_a_score_equal_to_its_threshold_is_not_above_it() -> None:
    assert DecisionRule(np.zeros(2))(np.array([[0.0, 1e-9]])).tolist() == [[False, True]]


def test_only_empty_rows_get_their_best_label() -> None:
    rule = DecisionRule(np.array([0.0, 0.5, 0.0]), top1_if_empty=True)
    found = rule(np.array([[-1.0, -0.6, -1.3], [0.1, 0.2, -3.0]]))
    assert found.tolist() == [[True, False, False], [True, False, False]]


def test_a_label_with_an_infinite_threshold_is_never_there_and_never_the_best() -> None:
    rule = DecisionRule(np.array([np.inf, 0.0]), top1_if_empty=True)
    assert rule(np.array([[5.0, -5.0]])).tolist() == [[False, True]]
    assert rule.excess(np.array([[5.0, -5.0]])).tolist() == [[-6.0, -5.0]]


def test_without_any_possible_label_rows_stay_empty() -> None:
    rule = DecisionRule(np.full(2, np.inf), top1_if_empty=True)
    assert not rule(np.ones((3, 2))).any()


def test_candidates_come_from_all_rows_unless_these_are_very_many(monkeypatch) -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(90, 2))
    present = np.zeros((90, 2), bool)
    present[60:] = scores[60:] > 0.7  # the first batches have no label at all
    search = ThresholdSearch(2, False)
    for start in range(0, 90, 30):
        search.add(scores[start : start + 30], present[start : start + 30])
    whole = ThresholdSearch(2, False)
    whole.add(scores, present)
    assert search.best("global", "micro_f1")[1] == whole.best("global", "micro_f1")[1]
    assert len(search.candidates) > 20
    monkeypatch.setattr("marginmf.labels.decisions.MOST_KEPT", 70)
    early = ThresholdSearch(2, False)
    for start in range(0, 90, 30):
        early.add(scores[start : start + 30], present[start : start + 30])
        assert hasattr(early, "candidates") == (start >= 30)


def test_without_rows_the_threshold_is_zero() -> None:
    assert ThresholdSearch(2, False).best("per_label", "accuracy")[0].tolist() == [0.0, 0.0]


def test_no_scores_of_present_labels_leave_zero_as_the_only_candidate() -> None:
    assert candidate_thresholds([(np.ones((2, 2)), np.zeros((2, 2), bool))]).tolist() == [0.0]


@given(
    scores=arrays(np.float64, SHAPE, elements=st.floats(-1e3, 1e3)),
    present=PRESENT,
    own=st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=9, unique=True),
)
@patient
def test_candidates_far_and_near_are_told_apart_exactly(scores, present, own) -> None:
    # Neighbouring numbers, and the scores themselves: a score equal to a candidate is not above it.
    candidates = np.unique([*own, *np.nextafter(own, 9e9), *scores[0]])
    search = ThresholdSearch(SHAPE[1], False, candidates)
    search.add(scores, present)
    right = [(present & (scores > candidate)).sum() for candidate in candidates]
    predicted = [(scores > candidate).sum() for candidate in candidates]
    expected = [f1(r, p, present.sum()) for r, p in zip(right, predicted, strict=True)]
    np.testing.assert_allclose(search.value("micro_f1"), expected)


def test_scores_of_float32_and_in_another_order_count_the_same() -> None:
    rng = np.random.default_rng(3)
    scores, present = rng.integers(-8, 8, (50, 6)) / 8, rng.random((50, 6)) < 0.3
    found = []
    for form in (scores, scores.astype(np.float32), np.asfortranarray(scores)):
        search = ThresholdSearch(6, False)
        search.add(form, present)
        found.append(search.best("global", "accuracy"))
    for thresholds, value in found[1:]:
        assert value == found[0][1]
        np.testing.assert_allclose(thresholds, found[0][0], atol=1e-6)


def test_infinite_scores_are_above_all_candidates_or_none() -> None:
    scores = np.array([[np.inf, -np.inf, 0.5]])
    for candidates in (np.zeros(1), np.array([0.0, 1.0])):
        search = ThresholdSearch(3, False, candidates)
        search.add(scores, np.array([[True, True, False]]))
        predicted = (scores[0] > candidates[:, None]).sum(axis=1)
        np.testing.assert_allclose(search.value("micro_f1"), 2.0 / (predicted + 2.0))


@given(scores=SCORES, present=PRESENT)
@patient
def test_the_even_candidates_begin_at_the_middle_absent_score_or_the_least_present(
    scores, present
) -> None:
    candidates = candidate_thresholds([(scores, present)])
    if present.any():
        middle = np.median(scores[~present]) if not present.all() else 0.0
        least = np.nextafter(scores[present].min(), -9)
        assert candidates[0] == min(least, middle, 0.0)


def expected_overlap(overlap, likely, chosen):
    """The expected overlap of a set with the true one, as the rule approximates it."""
    right, size, total = likely[chosen].sum(), chosen.sum(), likely.sum()
    return right / (size + total - right) if overlap == "jaccard" else 2 * right / (size + total)


@pytest.mark.parametrize("overlap", EXPECTED)
@given(scores=SCORES)
@patient
def test_the_set_of_the_largest_expected_overlap_is_the_best_of_all_sets(overlap, scores) -> None:
    shift = 0.5
    likely = expit(scores + shift)
    for row, found in zip(likely, ExpectedRule(overlap, shift)(scores), strict=True):
        every = (np.array(bits, bool) for bits in product((0, 1), repeat=SHAPE[1]))
        # Labels that are equally likely are taken together.
        whole = [one for one in every if one.any() and not np.isin(row[one], row[~one]).any()]
        best = max(expected_overlap(overlap, row, one) for one in whole)
        assert found.any()
        assert expected_overlap(overlap, row, found) == pytest.approx(best)


@pytest.mark.parametrize("overlap", EXPECTED)
def test_expected_overlap_is_about_the_mean_over_draws(overlap) -> None:
    rng = np.random.default_rng(0)
    likely = np.array([0.9, 0.6, 0.3, 0.2, 0.1, 0.1])
    truth = rng.random((20_000, 6)) < likely
    sets = np.tril(np.ones((6, 6), bool))
    both = (truth[:, None] & sets).sum(axis=2)
    sizes = truth.sum(axis=1)[:, None] + sets.sum(axis=1)
    drawn = both / (sizes - both) if overlap == "jaccard" else 2 * both / sizes
    found = ExpectedRule(overlap)(logit(likely)[None])[0]
    # The rule divides expectations, which are not the expectation of the quotient, but near it.
    reached = drawn.mean(axis=0)[found.sum() - 1]
    assert reached > drawn.mean(axis=0).max() - 0.01


def test_labels_are_predicted_where_the_excess_over_the_rows_limit_is_positive() -> None:
    logits = np.random.default_rng(0).normal(size=(50, 6))
    possible = np.array([True, True, False, True, True, True])
    rule = ExpectedRule("jaccard", -0.5, possible)
    excess, found = rule.excess(logits), rule(logits)
    np.testing.assert_array_equal(excess > 0, found)
    assert not found[:, 2].any()
    assert (excess[:, 2] < excess[:, possible].min(axis=1)).all()
    # Within a row, labels keep the order of their logits.
    order = np.argsort(logits[:, possible], axis=1)
    assert (np.diff(np.take_along_axis(excess[:, possible], order, axis=1)) >= 0).all()
    nothing = ExpectedRule("f1", 0.0, np.zeros(6, bool))
    assert not nothing(logits).any()


@pytest.mark.parametrize("measure", MEASURES)
@given(scores=SCORES, present=PRESENT)
@patient
def test_the_value_of_sets_is_the_measure(measure, scores, present) -> None:
    assert value_of_sets(measure, scores > 0, present) == pytest.approx(
        measured(measure, present, scores > 0)
    )


def made_scores(n_rows, seed=0):
    """Rows with one or two labels of ten, and scores that know them with noise."""
    rng = np.random.default_rng(seed)
    present = np.zeros((n_rows, 10), bool)
    present[np.arange(n_rows), rng.integers(10, size=n_rows)] = True
    present[np.arange(n_rows), rng.integers(10, size=n_rows)] = True
    easy = rng.uniform(0.2, 3.0, (n_rows, 1))  # rows differ in how clear their labels are
    return np.where(present, easy, -easy) + rng.normal(size=present.shape), present


def tune(decision, scores, present, tune_for="accuracy", top1=True):
    calibrator = LabelCalibrator(present.sum(axis=0), len(present))
    tuner = Tuner(ThresholdSearch(10, top1), calibrator, decision, tune_for)
    for part in np.array_split(np.arange(len(scores)), 3):
        tuner.add(scores[part], present[part])
    return tuner.result()


def apply(tuning, scores):
    if tuning.decision in EXPECTED:
        return ExpectedRule(tuning.decision, tuning.shift)(tuning.calibration.logits(scores))
    return DecisionRule(tuning.thresholds, True)(scores)


@pytest.mark.parametrize(("measure", "overlap"), [("accuracy", "jaccard"), ("example_f1", "f1")])
def test_auto_takes_the_rule_that_reaches_more(measure, overlap) -> None:
    scores, present = made_scores(2000)
    new, truth = made_scores(4000, seed=1)
    reached = {
        name: value_of_sets(measure, apply(tune(name, scores, present, measure), new), truth)
        for name in ("auto", "global", overlap)
    }
    assert reached["auto"] >= max(reached.values()) - 0.003
    assert tune("auto", scores, present, measure).decision in ("global", overlap)
    # What was promised on rows held out is what new rows get.
    promised = tune("auto", scores, present, measure).value
    assert reached["auto"] == pytest.approx(promised, abs=0.02)


def test_auto_keeps_expected_overlap_unless_a_threshold_is_clearly_ahead() -> None:
    assert is_ahead(np.array([0.5, 0.6, 0.5]), np.array([0.4, 0.4, 0.4]))
    assert not is_ahead(np.array([1.0, 0.0, 0.2]), np.array([0.0, 1.0, 0.1]))
    assert not is_ahead(np.ones(3), np.ones(3))
    rng = np.random.default_rng(0)
    kept = 0
    for seed in range(20):
        scores, present = made_scores(60, seed)
        tuner = Tuner(
            ThresholdSearch(10, True), LabelCalibrator(present.sum(0), 60), "auto", "accuracy"
        )
        order = rng.permutation(60)
        tuner.add(scores[order], present[order])
        scores, present = scores[order], present[order]
        logits = tuner.calibrator.held_out_logits()
        shift = best_shift(logits, present, present.any(axis=0), "jaccard", "accuracy")
        expected = ExpectedRule("jaccard", shift, present.any(axis=0))(logits)
        overlap = row_overlaps("accuracy", expected, present)
        by_threshold = np.empty_like(present)
        for half in (0, 1):  # thresholds of the other half
            search = ThresholdSearch(10, True)
            search.add(scores[1 - half :: 2], present[1 - half :: 2])
            rule = DecisionRule(search.best("global", "accuracy")[0], True)
            by_threshold[half::2] = rule(scores[half::2])
        other = row_overlaps("accuracy", by_threshold, present)
        gain = other - overlap
        clear = gain.mean() > gain.std() / np.sqrt(60)
        assert tuner.result().decision == ("global" if clear else "jaccard")
        kept += gain.mean() > 0 and not clear
    assert kept  # the better mean alone would have decided otherwise


@pytest.mark.parametrize(
    ("decision", "tune_for", "by_log_loss"),
    [
        ("auto", "accuracy", True),
        ("auto", "example_f1", True),
        ("jaccard", "accuracy", True),
        ("global", "accuracy", False),
        ("auto", "micro_f1", False),
        ("auto", "hamming", False),
    ],
)
def test_scores_are_judged_by_what_decides(decision, tune_for, by_log_loss) -> None:
    scores, present = made_scores(300)
    calibrator = LabelCalibrator(present.sum(axis=0), 300)
    tuner = Tuner(ThresholdSearch(10, True), calibrator, decision, tune_for)
    tuner.add(scores, present)
    if by_log_loss:
        expected = -log_loss(present, calibrator.fit()(scores))
    else:
        thresholds = tuner.search.best("global", tune_for)[0]
        expected = value_of_sets(tune_for, DecisionRule(thresholds, True)(scores), present)
    assert tuner.value() == pytest.approx(expected)


def test_auto_keeps_one_threshold_where_there_is_nothing_to_choose() -> None:
    scores, present = made_scores(500)
    assert tune("auto", scores, present, "hamming").decision == "global"
    assert tune("auto", scores[:15], present[:15]).decision == "global"
    assert tune("auto", scores, present, "macro_f1").decision in ("global", "per_label")


def test_the_best_shift_is_the_first_of_the_best() -> None:
    scores, present = made_scores(300)
    possible = np.ones(10, bool)
    shift = best_shift(scores, present, possible, "jaccard", "accuracy")
    values = [
        value_of_sets("accuracy", ExpectedRule("jaccard", one)(scores), present) for one in SHIFTS
    ]
    assert shift == SHIFTS[values.index(max(values))]


def test_expected_f1_thresholds_are_the_best_of_all() -> None:
    scores, present = made_scores(200)
    calibrator = LabelCalibrator(present.sum(axis=0), len(present))
    calibrator.add(scores, present)
    calibration = calibrator.fit()
    likely = calibration(scores)
    found = expected_f1_thresholds(calibration, scores)
    for label in range(10):

        def expected(threshold, label=label):
            above = scores[:, label] > threshold
            return 2 * likely[above, label].sum() / (above.sum() + likely[:, label].sum())

        every = [expected(one) for one in np.nextafter(scores[:, label], -np.inf)]
        assert expected(found[label]) == pytest.approx(max(every))


def test_for_macro_f1_own_thresholds_are_drawn_to_the_expected_ones() -> None:
    scores, present = made_scores(400)
    tuning = tune("per_label", scores, present, "macro_f1")
    search = ThresholdSearch(10, True)
    for part in np.array_split(np.arange(len(scores)), 3):
        search.add(scores[part], present[part])
    halfway, _ = search.best("per_label", "macro_f1")
    common, _ = search.best("global", "macro_f1")
    expected = expected_f1_thresholds(tuning.calibration, scores)
    np.testing.assert_allclose(tuning.thresholds, halfway + 0.5 * (expected - common), atol=1e-9)
    # For other measures they are drawn to the common one.
    others = tune("per_label", scores, present, "accuracy").thresholds
    np.testing.assert_array_equal(others, search.best("per_label", "accuracy")[0])
