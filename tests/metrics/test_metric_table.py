"""The table of metrics: every name that reports use, in the right direction."""

import numpy as np
import pytest

from marginmf.metrics import (
    METRICS,
    describe_metrics,
    labels_report,
    metric,
    ratings_report,
)

#: What is better when it is lower; of all others that have a direction, higher is better.
ERRORS = {
    *("mae", "zero_one", "rmse", "nmae", "fre"),
    *("hamming", "log_loss", "calibration_error", "seconds"),
}


def test_only_errors_seconds_and_the_coverage_of_labels_are_better_when_lower():
    lower = {(one.name, one.kind) for one in METRICS if one.higher_is_better is False}
    assert {name for name, _ in lower} == {*ERRORS, "coverage"}
    assert ("coverage", "labels") in lower
    neither = {one.name for one in METRICS if one.higher_is_better is None}
    assert neither == {"coverage", "novelty", "popularity"}


def test_reports_use_the_names_of_the_table():
    errors = ratings_report([1, 2], [1, 1], levels=[1, 2])
    assert set(errors) == {one.name for one in METRICS if one.kind == "ratings"}
    Y = np.eye(6, dtype=int)
    values = labels_report(Y, Y, Y, probabilities=Y)
    assert set(values) == {one.name for one in METRICS if one.kind == "labels"}
    # A perfect prediction is the best in the direction of every metric.
    worse = labels_report(Y, 1 - Y, 1 - Y, probabilities=1 - Y)
    for name, value in values.items():
        assert metric(name, "labels").best({"right": value, "wrong": worse[name]}) == "right"


def test_labels_and_lists_have_a_coverage_each():
    assert metric("coverage") is metric("coverage", "labels")
    assert metric("coverage", "lists").higher_is_better is None
    assert describe_metrics(["ndcg", "coverage", "seconds"])["coverage"].kind == "lists"
    assert describe_metrics(["accuracy", "coverage", "seconds"])["coverage"].kind == "labels"
    assert metric("seconds", "lists") is metric("seconds", "ratings")


def test_precision_and_ndcg_of_labels_are_known_at_any_k():
    assert metric("precision_at_7").heading == "precision@7"
    assert metric("ndcg_at_10", "labels").higher_is_better
    with pytest.raises(ValueError, match="There is no list metric 'ndcg_at_10'"):
        metric("ndcg_at_10", "lists")


def test_no_value_is_not_the_best():
    assert metric("fre").best({"a": float("nan"), "b": 0.5}) == "b"
    assert metric("fre").best({"a": float("nan")}) is None
    assert metric("novelty").best({"a": 1.0}) is None


@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [
        ("rmze", None, r"There is no metric 'rmze'; .* seconds\. Did you mean rmse\?"),
        ("ndgc", "lists", r"There is no list metric 'ndgc'; .* popularity\. Did you mean ndcg\?"),
        ("accuracy", "ratings", r"There is no rating metric 'accuracy'; .* mae, zero_one, rmse"),
    ],
)
def test_an_unknown_name_is_a_sentence(name, kind, said):
    with pytest.raises(ValueError, match=said):
        metric(name, kind)


def test_what_only_comparisons_measure_has_no_function():
    with pytest.raises(TypeError, match="seconds has no function"):
        metric("seconds")([1.0])
