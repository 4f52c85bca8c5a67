import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from studies.peers.pareto import Point, find_envelope, find_unanswered

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
