"""Who lies below our curve, where methods were measured on different splits."""

from studies.peers.comparison import summarise
from studies.peers.ratings import find_below


def record(method, peer, repetition, cost, error):
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
    ours = [record("HMF", "", 1, 1.0, 0.6), record("HMF", "", 2, 1.0, 0.8)]
    slow = [record("slow", "them", 1, 50.0, 0.65)]
    better = [record("better", "them", 1, 50.0, 0.55)]
    below = find_below(summarise(ours + slow + better), "made up", "weak", "mae")
    assert [point.name for point in below] == ["better"]
