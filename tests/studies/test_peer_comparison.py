"""Repetitions as rows of tables, and who lies below our curve."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from studies.peers.comparison import (
    LEARNING,
    Spread,
    error_column,
    method_table,
    summarise,
    times_column,
)
from studies.peers.ratings import (
    Point,
    find_below,
    find_envelope,
    find_unanswered,
    pareto_picture,
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


def timed_record(method, peer, repetition, cost, error):
    return {
        "method": method,
        "peer": peer,
        "data": "made up",
        "split": "weak",
        "threads": 1,
        "repetition": repetition,
        "phases": {phase: {"cpu": cost / 2, "wall": cost} for phase in ("prepare", "fit")},
        "errors": {"mae": error},
    }


def test_a_slow_peer_is_compared_on_the_splits_that_it_was_measured_on():
    # The second split is harder: our mean over both is worse than the peer's on the first.
    ours = [timed_record("HMF", "", 1, 1.0, 0.6), timed_record("HMF", "", 2, 1.0, 0.8)]
    slow = [timed_record("slow", "them", 1, 50.0, 0.65)]
    better = [timed_record("better", "them", 1, 50.0, 0.55)]
    below = find_below(summarise(ours + slow + better), "made up", "weak", "mae")
    assert [point.name for point in below] == ["better"]


figures = st.integers(0, 6).map(float)
point = st.builds(Point, st.just("a"), figures, figures, st.booleans())
points = st.lists(point, max_size=8)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(points)
def test_a_peer_is_unanswered_exactly_when_no_setting_of_ours_is_as_quick_and_as_good(found):
    costs = np.array([p.cost for p in found if p.ours])
    errors = np.array([p.error for p in found if p.ours])
    expected = [
        p for p in found if not p.ours and not np.any((costs <= p.cost) & (errors <= p.error))
    ]
    assert sorted(find_unanswered(found), key=str) == sorted(expected, key=str)


@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(points)
def test_the_envelope_answers_every_point_and_has_none_to_spare(found):
    best = find_envelope(found)
    assert all(any(b.answers(p) for b in best) for p in found)
    assert all(not b.answers(other) for b in best for other in best if b is not other)
    assert [b.cost for b in best] == sorted(b.cost for b in best)


def test_a_tie_is_answered():
    tie = Point("peer", 1.0, 0.5)
    assert find_unanswered([Point("ours", 1.0, 0.5, ours=True), tie]) == []


def test_without_settings_of_ours_everybody_is_find_unanswered():
    peer = Point("peer", 1.0, 0.5)
    assert find_unanswered([peer]) == [peer]


#: Close together, as the methods on MovieLens are.
POINTS = [
    *(Point(f"setting {k}", 2.0**k, 0.68 - 0.01 * k, ours=True) for k in range(5)),
    *(Point(f"a peer of ours, {k}", 1.5 + k, 0.66 + 0.002 * k) for k in range(8)),
]


def test_every_point_has_a_name_and_names_do_not_cover_each_other():
    figure = pareto_picture({"one": POINTS, "two": POINTS[:6]}, "MAE")
    assert [ax.get_title(loc="left") for ax in figure.axes] == ["one", "two"]
    for ax, n_points in zip(figure.axes, (13, 6), strict=True):
        names = [text for text in ax.texts if text.get_text()]
        assert len(names) == n_points
        boxes = [text.get_window_extent() for text in names]
        assert not any(one.overlaps(other) for one, other in combinations(boxes, 2))


def test_a_single_panel_without_peers_can_be_drawn(tmp_path):
    figure = pareto_picture({"alone": POINTS[:1]}, "MAE")
    figure.savefig(tmp_path / "alone.svg")
    assert (tmp_path / "alone.svg").stat().st_size > 0
