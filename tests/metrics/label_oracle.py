"""The label metrics again, slowly, from their definitions: sets and permutations of labels."""

from itertools import pairwise, permutations
from math import log, log2
from statistics import fmean


def sets(table):
    return [{label for label, cell in enumerate(row) if cell} for row in table]


def share(part, whole):
    return part / whole if whole else 0.0


def f1(true, predicted):
    return share(2 * len(true & predicted), len(true) + len(predicted))


def hamming(Y, P):
    return fmean(
        float(a != b) for y, p in zip(Y, P, strict=True) for a, b in zip(y, p, strict=True)
    )


def accuracy(Y, P):
    return fmean(share(len(y & p), len(y | p)) for y, p in zip(sets(Y), sets(P), strict=True))


def subset_accuracy(Y, P):
    return fmean(float(y == p) for y, p in zip(sets(Y), sets(P), strict=True))


def example_f1(Y, P):
    return fmean(f1(y, p) for y, p in zip(sets(Y), sets(P), strict=True))


def macro_f1(Y, P):
    return example_f1(zip(*Y, strict=True), zip(*P, strict=True))


def micro_f1(Y, P):
    return example_f1([[cell for row in Y for cell in row]], [[cell for row in P for cell in row]])


def rankings(scores):
    """Every order of the labels that the scores allow: those with equal scores stand anyhow."""
    orders = permutations(range(len(scores)))
    return [o for o in orders if all(scores[a] >= scores[b] for a, b in pairwise(o))]


def precision_at(k, Y, scores):
    def of(y, order):
        return len(y & set(order[:k])) / k

    return fmean(fmean(of(y, o) for o in rankings(s)) for y, s in zip(sets(Y), scores, strict=True))


def ndcg_at(k, Y, scores):
    def gain(hits):
        return sum(1 / log2(place + 2) for place, hit in enumerate(hits[:k]) if hit)

    def of(y, order):
        hits = [label in y for label in order]
        return share(gain(hits), gain(sorted(hits, reverse=True)))

    return fmean(fmean(of(y, o) for o in rankings(s)) for y, s in zip(sets(Y), scores, strict=True))


def log_loss(Y, P):
    def of(cell, p):
        p = min(max(p, 1e-15), 1 - 1e-15)
        return -log(p if cell else 1 - p)

    return fmean(of(cell, p) for y, ps in zip(Y, P, strict=True) for cell, p in cells(y, ps))


def cells(*rows):
    return zip(*rows, strict=True)


def calibration_error(Y, P, n_bins=15):
    every = [both for y, ps in zip(Y, P, strict=True) for both in cells(y, ps)]
    total = 0.0
    for k in range(n_bins):
        own = [(cell, p) for cell, p in every if min(int(p * n_bins), n_bins - 1) == k]
        if own:
            gap = fmean(cell for cell, _ in own) - fmean(p for _, p in own)
            total += len(own) / len(every) * abs(gap)
    return total


def coverage(Y, scores):
    def of(y, order):
        return max((order.index(label) + 1 for label in y), default=0)

    return fmean(max(of(y, o) for o in rankings(s)) for y, s in zip(sets(Y), scores, strict=True))
