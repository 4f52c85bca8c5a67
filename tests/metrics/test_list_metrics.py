"""Measures of ranked lists: as in scikit-learn, as in plain loops, and what must always hold."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import (
    label_ranking_average_precision_score,
    ndcg_score,
    precision_score,
    recall_score,
)

from marginmf.metrics import LIST_METRICS, lists

MEASURES = {
    "ndcg": lists.ndcg,
    "precision": lists.precision,
    "recall": lists.recall,
    "map": lists.average_precision,
    "mrr": lists.reciprocal_rank,
    "hit_rate": lists.hit_rate,
}
N_ITEMS = 12


def oracle(name: str, own: list[int], wanted: set[int], k: int) -> float:
    """Return a measure of one user, rank by rank."""
    ranks = [rank for rank, item in enumerate(own[:k], start=1) if item in wanted]
    best = min(k, len(wanted))
    if name == "ndcg":
        gained = math.fsum(1 / math.log2(rank + 1) for rank in ranks)
        return gained / math.fsum(1 / math.log2(rank + 1) for rank in range(1, best + 1))
    if name == "map":
        return math.fsum((n + 1) / rank for n, rank in enumerate(ranks)) / best
    if name == "mrr":
        return 1 / ranks[0] if ranks else 0.0
    found = {"precision": len(ranks) / k, "recall": len(ranks) / len(wanted)}
    return found.get(name, float(bool(ranks)))


@st.composite
def cases(draw):
    """Lists of up to all items, relevant items that may be unknown or none, and any k."""
    items = list(range(N_ITEMS))
    n_users = draw(st.integers(1, 5))
    own = [draw(st.permutations(items))[: draw(st.integers(0, N_ITEMS))] for _ in range(n_users)]
    wanted = [draw(st.sets(st.integers(0, N_ITEMS + 4), max_size=8)) for _ in range(n_users)]
    wanted[0] |= {draw(st.integers(0, N_ITEMS - 1))}
    return own, wanted, draw(st.integers(1, N_ITEMS + 5))


@given(cases())
def test_every_measure_is_that_of_plain_loops_and_within_its_bounds(case) -> None:
    own, wanted, k = case
    for name, measure in MEASURES.items():
        each = [oracle(name, o, w, k) for o, w in zip(own, wanted, strict=True) if w]
        found = measure(own, wanted, k)
        assert found == pytest.approx(math.fsum(each) / len(each), abs=1e-12)
        assert 0 <= found <= 1


@given(cases(), st.randoms(use_true_random=False))
def test_the_order_of_the_users_does_not_matter(case, random) -> None:
    own, wanted, k = case
    order = list(range(len(own)))
    random.shuffle(order)
    for measure in MEASURES.values():
        permuted = measure([own[i] for i in order], [wanted[i] for i in order], k)
        assert permuted == pytest.approx(measure(own, wanted, k), abs=1e-12)


@given(cases(), st.data())
def test_a_relevant_item_that_moves_up_lowers_nothing(case, data) -> None:
    own, wanted, k = case
    ranks = [r for r in range(1, len(own[0])) if own[0][r] in wanted[0]]
    if not ranks:
        return
    rank = data.draw(st.sampled_from(ranks))
    above = data.draw(st.integers(0, rank - 1))
    if own[0][above] in wanted[0]:
        return
    better = list(own[0])
    better[above], better[rank] = better[rank], better[above]
    for name, measure in MEASURES.items():
        assert measure([better], wanted[:1], k) >= measure([own[0]], wanted[:1], k) - 1e-12, name


def random_lists(n_users=40, n_items=30, n_scores=6, seed=0):
    """Scores with many ties, the lists that scikit-learn makes of them, and what is relevant."""
    rng = np.random.default_rng(seed)
    scores = rng.integers(n_scores, size=(n_users, n_items)).astype(float)
    own = np.argsort(scores, axis=1)[:, ::-1]
    true = rng.random((n_users, n_items)) < 0.15
    true[0] = False  # nobody can please the first user
    true[1:, 3] |= ~true[1:].any(axis=1)
    return scores, own, true


def sets(true):
    return [set(np.flatnonzero(row)) for row in true]


@pytest.mark.parametrize("k", [1, 5, 30, 50])
def test_ndcg_is_that_of_scikit_learn(k: int) -> None:
    scores, own, true = random_lists()
    expected = ndcg_score(true[1:], scores[1:], k=k, ignore_ties=True)
    assert lists.ndcg(own, sets(true), k) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("k", [1, 5, 30])
def test_precision_and_recall_are_those_of_scikit_learn(k: int) -> None:
    _, own, true = random_lists()
    shown = np.zeros_like(true)
    np.put_along_axis(shown, own[:, :k], True, axis=1)
    for measure, expected in ((lists.precision, precision_score), (lists.recall, recall_score)):
        found = measure(own, sets(true), k)
        reference = expected(true[1:], shown[1:], average="samples", zero_division=0)
        assert found == pytest.approx(reference, abs=1e-12)


def test_mean_average_precision_of_whole_lists_is_that_of_scikit_learn() -> None:
    _, own, true = random_lists()
    # Scores without ties, because scikit-learn would let ties share their ranks.
    ranks = np.argsort(own, axis=1)
    expected = label_ranking_average_precision_score(true[1:], -ranks[1:])
    assert lists.average_precision(own, sets(true), 30) == pytest.approx(expected, abs=1e-12)


def test_reciprocal_ranks_of_one_relevant_item_are_those_of_scikit_learn() -> None:
    _, own, _ = random_lists()
    true = np.zeros(own.shape, bool)
    true[np.arange(len(own)), np.arange(len(own)) % own.shape[1]] = True
    ranks = np.argsort(own, axis=1)
    expected = label_ranking_average_precision_score(true, -ranks)
    assert lists.reciprocal_rank(own, sets(true), 30) == pytest.approx(expected, abs=1e-12)


def test_short_lists_have_empty_ranks() -> None:
    assert lists.precision([["a"]], [["a"]], k=10) == 0.1
    assert lists.ndcg([["a"]], [["a", "b"]], k=10) == pytest.approx(1 / (1 + 1 / math.log2(3)))
    assert lists.recall([[]], [["a"]]) == lists.reciprocal_rank([[]], [["a"]]) == 0.0


def test_users_without_relevant_items_are_left_out() -> None:
    for measure in MEASURES.values():
        assert measure([["a"], ["b"]], [["a"], []], k=1) == 1.0
        with pytest.raises(ValueError, match="No user has a relevant item"):
            measure([["a"], ["b"]], [[], []])


def test_measures_by_user_never_divide_by_zero() -> None:
    hits = np.zeros((3, 2), bool)
    for measure in LIST_METRICS.values():
        np.testing.assert_array_equal(measure(hits, np.array([0, 1, 5]), 10), 0.0)


def test_a_long_k_costs_nothing() -> None:
    assert lists.ndcg([["a", "b"]], [["b"]], k=10**12) == pytest.approx(1 / math.log2(3))


def test_what_the_lists_show() -> None:
    own = [["a", "b", "x"], ["a", "c", "x"], ["a"]]
    shares = {"a": 0.5, "b": 0.25, "c": 0.0, "d": 0.125, "x": 1.0}
    assert lists.coverage(own, 5, k=2) == 3 / 5
    assert lists.popularity(own, shares, k=2) == pytest.approx((3 * 0.5 + 0.25) / 5)
    # Nobody has c, which counts like d, the rarest of what somebody has.
    assert lists.novelty(own, shares, k=2) == pytest.approx((3 * 1 + 2 + 3) / 5)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: lists.ndcg([["a"]], [["a"]], k=0), "k=0 must be a whole number >= 1"),
        (lambda: lists.ndcg([["a"]], [["a"]], k=2.0), "k=2.0 must be a whole number"),
        (lambda: lists.recall([["a"]], []), "1 lists but the relevant items of 0 users"),
        (lambda: lists.recall([["a", "a"]], [["a"]]), "'a' is twice in one list"),
        (lambda: lists.coverage([["a", "b"]], 1), "the lists hold 2 different items"),
        (lambda: lists.novelty([["a"]], {"b": 1.0}), "'a' is in a list, but has no entry"),
        (lambda: lists.novelty([["a"]], {"a": 2.0}), "numbers from 0 to 1"),
        (lambda: lists.novelty([["a"]], {"a": 0.0}), "No user has any of the items"),
        (lambda: lists.popularity([[]], {"a": 1.0}), "Every list is empty"),
    ],
)
def test_what_cannot_be_measured_is_a_sentence(call, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        call()
