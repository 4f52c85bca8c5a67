import pytest

from studies.peers.comparison import (
    LEARNING,
    Spread,
    error_column,
    method_table,
    summarise,
    times_column,
)


def record(method, cpu, mae, peer="", **more):
    phases = {
        "prepare": {"cpu": 1.0, "wall": 2.0},
        "fit": {"cpu": cpu, "wall": 2 * cpu},
    }
    place = {"data": "a", "split": "weak", "threads": 1, "peer": peer, "method": method}
    return {**place, "phases": phases, "errors": {"mae": mae}, "peak_bytes": 2**21, **more}


FAILURE = {
    "data": "a",
    "split": "weak",
    "threads": 1,
    "peer": "broken",
    "method": "broken MF",
    "error": "ImportError: a | b",
}


def test_times_are_medians_with_range_and_errors_are_means():
    rows = summarise([record("HMF", cpu, mae) for cpu, mae in ((3, 0.5), (1, 0.7), (9, 0.6))])
    (row,) = rows
    assert row.n == 3
    assert row.seconds("cpu", *LEARNING) == Spread(4.0, 2.0, 10.0)
    assert row.seconds("wall", "fit").median == 6.0
    assert row.error("mae") == pytest.approx(0.6)
    assert row.deviation("mae") == pytest.approx(0.1)
    assert row.error("rmse_real") is None
    assert row.megabytes.median == 2.0


def test_a_failure_keeps_its_row_and_its_reason():
    rows = summarise([record("HMF", 1, 0.5), FAILURE])
    table = method_table(rows, [error_column("MAE", "mae"), ("x", lambda r: "1")])
    assert table.splitlines() == [
        "| method | n | MAE | x |",
        "|---|---:|---:|---:|",
        "| HMF | 1 | 0.5000 | 1 |",
        "| broken MF | 0 | failed: ImportError: a / b |  |",
    ]


def test_a_later_failure_does_not_hide_what_was_measured():
    failure = {**FAILURE, "method": "HMF"}
    (row,) = summarise([record("HMF", 1, 0.5), failure])
    assert (row.n, row.reason) == (1, "ImportError: a | b")
    assert "stopped: ImportError" in method_table([row], [("MAE", lambda r: "0.5")])


def test_ratios_are_to_the_baseline_and_empty_without_it():
    rows = summarise([record("HMF", 1, 0.5), record("SVD", 3, 0.5)])

    def cost(row):
        return row.seconds("cpu", "fit").median

    assert [times_column(rows, "SVD", cost)[1](row) for row in rows] == ["0.33", "1.00"]
    assert times_column(rows, "absent", cost)[1](rows[0]) == ""


def test_a_spread_without_range_is_one_number():
    assert f"{Spread.of([2.0]):.1f}" == "2.0"
    assert f"{Spread.of([1.0, 2.0, 4.0]):.1f}" == "2.0 (1.0-4.0)"
