"""EASE: neighbours against the exact form, large catalogues, and users who are folded in.

Run by hand, for example::

    python -m studies exposure                  # everything, about a quarter of an hour
    python -m studies exposure forms --data ml-100k
    python -m studies exposure large new-users

``forms`` measures lists by who rated what alone (every held-out rating is relevant) and by
relevance (those of 4 and more are), with weights from all items and from some neighbours of each.
``large`` learns from made-up ratings of 200,000 items.  ``new-users`` compares lists for users of
MovieLens 1M who are folded in with those for the same users in a model that was trained with them.
"""

import time
from argparse import ArgumentParser, Namespace
from functools import partial
from itertools import product
from typing import Any

import numpy as np

from marginmf.protocols import ListRule, judge_lists
from marginmf.ratings import EASE, MarginEnsemble, MostPopular, Ratings
from marginmf.ratings.lists.neighbours import ItemWeights
from marginmf.ratings.lists.relevance import Exposure, item_shares
from studies.harness.commands import timed
from studies.harness.machine import resident_bytes
from studies.harness.markdown import print_header, print_row
from studies.peers.problems import load_table, split_rows

NEIGHBOURS = (25, 50, 100, 200)
STRENGTHS = (100.0, 300.0, 1000.0)
#: Users of MovieLens 1M who are folded in, and the share of their ratings that is held out.
NEW_USERS, HELD_OUT = 1040, 0.2
#: Of the made-up ratings: items, users, ratings, and groups of items that users keep to.
LARGE = (200_000, 80_000, 5_000_000, 1000)
#: How many of their users are judged.
JUDGED = 5000


def section_forms(args: Namespace) -> None:
    """Weights from all items and from neighbours, at several strengths."""
    for data in args.data:
        measure_forms(data)


def measure_forms(data: str) -> None:
    table = load_table(data)
    rows, held_out = split_rows(table, "80/20", 1)
    train = Ratings.of(table.pairs[rows], table.ratings[rows])
    test = table.pairs[held_out], table.ratings[held_out]
    model = MarginEnsemble(random_state=0, n_jobs=-1).fit(train)
    print(f"\n{data}\n")
    print_header("weights", "strength", "nDCG@10, taken", "nDCG@10, liked", "CPU seconds", "MB")
    for n_neighbours, strength in product((None, *NEIGHBOURS), STRENGTHS):
        ease = EASE(strength, n_neighbours=n_neighbours, n_jobs=-1)
        taking, seconds = timed(partial(ease.fit, train), time.process_time)
        model._exposure = Exposure(taking.weights_, item_shares(train), strength)
        taken = judge_lists(taking, *test, ListRule(level="any")).mean("ndcg")
        liked = judge_lists(model, *test, ListRule(level=4)).mean("ndcg")
        costs = f"{seconds:.2f}", f"{_megabytes(taking.weights_):.1f}"
        print_row(f"{n_neighbours or 'all'} items", f"{strength:g}", taken, liked, *costs)


def _megabytes(weights: ItemWeights) -> float:
    matrix: Any = weights.matrix
    dense = isinstance(matrix, np.ndarray)
    parts = [matrix] if dense else [matrix.data, matrix.indices, matrix.indptr]
    return sum(part.nbytes for part in parts) / 1e6


def make_large(n_items: int, n_users: int, n_ratings: int, n_groups: int) -> Ratings:
    """Return ratings of many items: popularity falls as a power, and users keep to three groups."""
    rng = np.random.default_rng(0)
    popularity = rng.permutation((np.arange(n_items) + 50.0) ** -0.9)
    group = np.sort(rng.integers(n_groups, size=n_items))
    starts = np.searchsorted(group, np.arange(n_groups + 1))
    ends = np.concatenate(([0.0], np.cumsum(popularity)))
    counts = rng.lognormal(4, 0.8, n_users)
    # Some are drawn twice, and count once.
    counts = np.maximum(1.35 * counts * n_ratings / counts.sum(), 5).astype(np.int64)
    users = np.repeat(np.arange(n_users), counts)
    own = rng.integers(n_groups, size=(n_users, 3))
    kept = rng.integers(4, size=len(users))
    chosen = own[users, np.minimum(kept, 2)]
    low, high = np.where(kept == 3, 0.0, ends[starts[chosen]]), ends[starts[chosen + 1]]
    high = np.where(kept == 3, ends[-1], high)
    items = np.searchsorted(ends, low + rng.random(len(users)) * (high - low), side="right") - 1
    cells = np.unique(users * np.int64(n_items) + np.minimum(items, n_items - 1))
    cells = np.sort(rng.permutation(cells)[:n_ratings])
    pairs = np.column_stack([cells // n_items, cells % n_items])
    return Ratings.of(pairs, rng.integers(1, 6, len(pairs)))


def section_large(args: Namespace) -> None:
    """A catalogue too large for the exact form, and how much memory it takes."""
    data = make_large(*LARGE)
    print(f"\n{data}\n")
    rng = np.random.default_rng(1)
    held = rng.random(len(data)) < 0.1
    train, test = data.subset(~held), data.subset(held)
    before = resident_bytes(peak=True) / 1e9
    model, seconds = timed(partial(EASE(n_jobs=-1).fit, train))
    after = resident_bytes(peak=True) / 1e9
    few = test.subset(np.isin(test.rows, rng.permutation(data.n_users)[:JUDGED]))
    pairs = np.column_stack([few.users.ids[few.rows], few.items.ids[few.indices]])
    judged = pairs, few.values, ListRule(level="any")
    scores, lists = timed(partial(judge_lists, model, *judged))
    least = judge_lists(MostPopular(n_jobs=-1).fit(train), *judged)
    costs = f"{seconds:.1f}", f"{before:.2f}", f"{after:.2f}", f"{_megabytes(model.weights_):.0f}"
    found = f"{scores.mean('ndcg'):.4f} ({lists:.1f} s for {len(scores.users)} users)"
    print_header("strength", "seconds", "peak GB before", "peak GB", "MB", "nDCG@10", "popular")
    print_row(f"{model.reg_:g}", *costs, found, least.mean("ndcg"))


def section_new_users(args: Namespace) -> None:
    """Users who are folded in, and the same users in training."""
    table = load_table("ml-1m")
    rng = np.random.default_rng(1)
    new = rng.permutation(np.unique(table.pairs[:, 0]))[:NEW_USERS]
    is_new = np.isin(table.pairs[:, 0], new)
    held = is_new & (rng.random(len(table)) < HELD_OUT)
    test = table.pairs[held], table.ratings[held]
    own = table.pairs[is_new & ~held], table.ratings[is_new & ~held]
    known = Ratings.of(table.pairs[~held], table.ratings[~held])
    print_header("users", "nDCG@10", "precision@10", "coverage", "seconds")
    for name in ("folded in", "trained in full"):
        begin = time.perf_counter()
        model: Any = MarginEnsemble(random_state=0, n_jobs=-1)
        if name == "folded in":
            model = model.fit(table.pairs[~is_new], table.ratings[~is_new]).fold_in(*own)
        else:
            model = model.fit(known)
        scores = judge_lists(model, *test, ListRule(level=4), training=known)
        seconds = time.perf_counter() - begin
        figures = (scores.mean(metric) for metric in ("ndcg", "precision", "coverage"))
        print_row(name, *figures, f"{seconds:.0f}")


SECTIONS = {"forms": section_forms, "large": section_large, "new-users": section_new_users}


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--data", nargs="+", default=["ml-100k", "ml-1m"])
