"""Metrics of ranked lists of items.

Each function takes a list of item ids for every user, best first, and ``k``: what comes after the
first k items does not count, and a list may be shorter.  The metrics of relevance also take the
relevant items of every user.  Users without any are left out of their means, because no list could
be right for them.  `marginmf.metrics.LIST_METRICS` has the same metrics user by user.
"""

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import numpy as np

from marginmf._utils.ids import shown
from marginmf._utils.parameters import check_whole
from marginmf._utils.types import BoolArray, Float64Array, IntArray

Lists = Sequence[Sequence[Any]]
#: A metric user by user.  Takes ``hits`` of shape (n_users, n_ranks), with fewer than k ranks where
#: no list is longer; ``n_relevant`` of shape (n_users,); and ``k``.  0 for users without any.
UserMetric = Callable[[BoolArray, IntArray, int], Float64Array]


def precision(lists: Lists, relevant: Sequence[Collection[Any]], k: int = 10) -> float:
    """Return the mean share of relevant items among the first ``k``.

    The divisor is k for shorter lists too: an empty rank is a miss.

    >>> precision([["a", "b"], ["c"]], [{"a", "d"}, {"c"}], k=2)
    0.5
    """
    return _mean(_precision, lists, relevant, k)


def recall(lists: Lists, relevant: Sequence[Collection[Any]], k: int = 10) -> float:
    """Return the mean share of a user's relevant items that are among the first ``k``.

    >>> recall([["a", "b"], ["c"]], [{"a", "d"}, {"c"}], k=2)
    0.75
    """
    return _mean(_recall, lists, relevant, k)


def ndcg(lists: Lists, relevant: Sequence[Collection[Any]], k: int = 10) -> float:
    """Return the mean normalised discounted cumulative gain of the first ``k`` (nDCG).

    A relevant item at rank r gains ``1 / log2(1 + r)``, and the sum is divided by the largest one
    possible, that of ``min(k, n_relevant)`` hits at the top.

    >>> round(ndcg([["a", "b", "c"]], [{"a", "c"}], k=3), 4)
    0.9197
    """
    return _mean(_ndcg, lists, relevant, k)


def average_precision(lists: Lists, relevant: Sequence[Collection[Any]], k: int = 10) -> float:
    """Return the mean of average precisions (MAP).

    The average precision of a user is the sum of the precisions at the ranks of the hits, divided
    by ``min(k, n_relevant)``: the best list has 1.

    >>> round(average_precision([["a", "b", "c"]], [{"a", "c"}], k=3), 4)
    0.8333
    """
    return _mean(_average_precision, lists, relevant, k)


def reciprocal_rank(lists: Lists, relevant: Sequence[Collection[Any]], k: int = 10) -> float:
    """Return the mean of 1 / rank of the first hit (MRR); a list without a hit counts as 0.

    >>> reciprocal_rank([["a", "b"], ["c", "d"]], [{"b"}, {"c", "d"}])
    0.75
    """
    return _mean(_reciprocal_rank, lists, relevant, k)


def hit_rate(lists: Lists, relevant: Sequence[Collection[Any]], k: int = 10) -> float:
    """Return the share of users with a relevant item among the first ``k``.

    >>> hit_rate([["a", "b"], ["c", "d"]], [{"b"}, {"e"}])
    0.5
    """
    return _mean(_hit_rate, lists, relevant, k)


def coverage(lists: Lists, n_items: int, k: int = 10) -> float:
    """Return the share of all ``n_items`` items that are among the first ``k`` of any list.

    >>> coverage([["a", "b"], ["a", "c"]], n_items=6, k=2)
    0.5
    """
    listed = _listed(lists, k)
    if n_items < max(1, len(listed)):
        raise ValueError(f"n_items={n_items!r}, but the lists hold {len(listed)} different items.")
    return len(listed) / n_items


def novelty(lists: Lists, shares: Mapping[Any, float], k: int = 10) -> float:
    """Return the mean of ``-log2`` of the share of users who have a listed item, in bits.

    Each bit more is half as popular.  An item that nobody has counts like the rarest of the others.

    Parameters
    ----------
    lists, k
        As in the other metrics.
    shares : mapping of id to float
        Which share of the training users has an item, for every item that may be listed.

    Examples
    --------
    >>> novelty([["a", "b"], ["a", "c"]], {"a": 1.0, "b": 0.5, "c": 0.125})
    1.0
    """
    return exposure(*_counts_and_shares(lists, shares, k))["novelty"]


def popularity(lists: Lists, shares: Mapping[Any, float], k: int = 10) -> float:
    """Return the mean share of users who have a listed item; parameters as in `novelty`.

    >>> popularity([["a", "b"], ["a", "c"]], {"a": 1.0, "b": 0.5, "c": 0.125})
    0.65625
    """
    return exposure(*_counts_and_shares(lists, shares, k))["popularity"]


def _precision(hits: BoolArray, n_relevant: IntArray, k: int) -> Float64Array:
    return hits.sum(axis=1) / k


def _recall(hits: BoolArray, n_relevant: IntArray, k: int) -> Float64Array:
    return _shares(hits.sum(axis=1), n_relevant)


def _ndcg(hits: BoolArray, n_relevant: IntArray, k: int) -> Float64Array:
    # The ideal list may be longer than any that was made: items that no model knows are relevant.
    n_ranks = min(k, max(hits.shape[1], int(n_relevant.max(initial=0))))
    gains = 1 / np.log2(np.arange(2, n_ranks + 2))
    ideal = np.concatenate([[0.0], np.cumsum(gains)])[np.minimum(n_relevant, n_ranks)]
    return _shares(hits @ gains[: hits.shape[1]], ideal)


def _average_precision(hits: BoolArray, n_relevant: IntArray, k: int) -> Float64Array:
    precisions = hits.cumsum(axis=1) / np.arange(1, hits.shape[1] + 1)
    return _shares((precisions * hits).sum(axis=1), np.minimum(n_relevant, k))


def _reciprocal_rank(hits: BoolArray, n_relevant: IntArray, k: int) -> Float64Array:
    return (hits / np.arange(1, hits.shape[1] + 1)).max(axis=1, initial=0.0)


def _hit_rate(hits: BoolArray, n_relevant: IntArray, k: int) -> Float64Array:
    return np.any(hits, axis=1).astype(np.float64)


def _shares(part: Any, whole: Any) -> Float64Array:
    """Return part / whole, 0 where the whole is 0."""
    return np.divide(part, whole, out=np.zeros(len(whole)), where=whole > 0)


#: The headings and functions of the metrics user by user, by name.
PER_USER: Mapping[str, tuple[str, UserMetric]] = {
    "ndcg": ("nDCG", _ndcg),
    "precision": ("precision", _precision),
    "recall": ("recall", _recall),
    "map": ("MAP", _average_precision),
    "mrr": ("MRR", _reciprocal_rank),
    "hit_rate": ("hit rate", _hit_rate),
}


def exposure(counts: IntArray, shares: Float64Array) -> dict[str, float]:
    """Return coverage, novelty and popularity, given how often every item is listed, and by whom.

    ``counts[i]`` is the number of lists that have item i, ``shares[i]`` the share of the training
    users who have it.

    >>> exposure(np.array([3, 1, 0, 0]), np.array([0.5, 0.125, 0.5, 0.0]))
    {'coverage': 0.5, 'novelty': 1.5, 'popularity': 0.40625}
    """
    n_listed = int(counts.sum())
    if n_listed == 0:
        raise ValueError("Every list is empty: there is nothing to measure.")
    if not (shares > 0).any():
        raise ValueError("No user has any of the items, so none of them is more popular.")
    rarest = shares[shares > 0].min()
    return {
        "coverage": float((counts > 0).mean()),
        "novelty": float(counts @ np.log2(1 / np.maximum(shares, rarest)) / n_listed),
        "popularity": float(counts @ shares / n_listed),
    }


def _mean(metric: UserMetric, lists: Lists, relevant: Sequence[Collection[Any]], k: int) -> float:
    """Return the mean of a metric over the users who have relevant items."""
    k = check_whole("k", k)
    if len(lists) != len(relevant):
        raise ValueError(
            f"There are {len(lists)} lists but the relevant items of {len(relevant)} users."
        )
    wanted = [(_first(own, k), set(items)) for own, items in zip(lists, relevant, strict=True)]
    judged = [(own, items) for own, items in wanted if items]
    if not judged:
        raise ValueError("No user has a relevant item, so no list can be right or wrong.")
    hits = np.zeros((len(judged), max(len(own) for own, _ in judged)), bool)
    for row, (own, items) in enumerate(judged):
        hits[row, : len(own)] = [item in items for item in own]
    n_relevant = np.array([len(items) for _, items in judged])
    return float(metric(hits, n_relevant, k).mean())


def _first(own: Sequence[Any], k: int) -> list[Any]:
    """Return the first k items of a list; none may come twice, or it would be found twice."""
    first = list(own[:k])
    if len(set(first)) < len(first):
        again = next(item for item, count in Counter(first).items() if count > 1)
        raise ValueError(f"The item {shown(again)} is twice in one list.")
    return first


def _listed(lists: Lists, k: int) -> Counter[Any]:
    k = check_whole("k", k)
    return Counter(item for own in lists for item in _first(own, k))


def _counts_and_shares(
    lists: Lists, shares: Mapping[Any, float], k: int
) -> tuple[IntArray, Float64Array]:
    listed = _listed(lists, k)
    for item in listed:
        if item not in shares:
            raise ValueError(f"The item {shown(item)} is in a list, but has no entry in shares.")
    counts = np.array([listed[item] for item in shares], np.int64)
    values = np.array(list(shares.values()), np.float64)
    if not ((values >= 0) & (values <= 1)).all():
        raise ValueError("shares must be numbers from 0 to 1: the part of the users who have it.")
    return counts, values
