"""Item-item weights: what having one item says of another, from who has what alone.

The score of an item for a user is the sum of its weights over the items that the user has.  The
weights are a ridge regression of who has the item on who has its neighbours: all other items as in
EASE (Steck, 2019; `closed_form`), or the hundred nearest, which says as much in less memory
(`Neighbourhoods`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property
from itertools import pairwise
from typing import Any, ClassVar

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri
from scipy.sparse import csr_array

from marginmf._utils.concurrency import Snapshot
from marginmf._utils.saved import Stored, saved
from marginmf._utils.sparse import settled
from marginmf._utils.types import Float64Array, FloatArray, IntArray
from marginmf.backends.ranking import Best, top_n
from marginmf.backends.threads import one_blas_thread, run
from marginmf.metrics import LIST_METRICS
from marginmf.ratings.data import Ratings, restricted
from marginmf.ratings.ids import IdIndex
from marginmf.ratings.lists.search import Lists

#: How many neighbours an item has: twice as many add less than 0.002 to nDCG@10 on MovieLens 1M.
NEIGHBOURS = 100
#: Items are near when they share many users, divided by this power of the neighbour's own users:
#: with 1/2, as in the cosine, what everybody has is near to everything.
DISCOUNT = 0.7
#: Up to this many items, a table tells how many users any two share: it takes 256 MB then, and
#: spares most of the counting.
MOST_TABLED = 8000
#: Items that are worked on at a time.
ITEMS_AT_A_TIME = 256
#: Candidate regularisation strengths, and the default where none can be chosen.
STRENGTHS = (10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0)
USUAL_STRENGTH = 300.0
#: It is chosen on lists of this length (the first ten alone are few enough for chance to choose),
#: of bounded numbers of users and of items (those that most users have).
LENGTH, MOST_USERS, MOST_ITEMS = 50, 2000, 3000
#: The share of these users' ratings that is held out.
HELD_OUT = 0.2


@saved
@dataclass(frozen=True, eq=False)
class ItemWeights(Snapshot):
    """Weights of items (columns) in the scores of items (rows), sparse or dense."""

    _saved: ClassVar[dict[str, Any]] = {"matrix": Stored(("items", "items"))}

    matrix: Any

    def __post_init__(self) -> None:
        settled(self.matrix)

    def among(self, items: IntArray | None) -> "ItemWeights":
        """Return the weights in the scores of some items; None is all of them."""
        return self if items is None else ItemWeights(self.matrix[items])

    @cached_property
    def by_source(self) -> Any:
        """The same with an item that users have in each row, for whole rows of scores."""
        if isinstance(self.matrix, np.ndarray):
            return np.ascontiguousarray(self.matrix.T)
        return self.matrix.T.tocsr()

    def of(self, item: int, sources: IntArray) -> Float64Array:
        """Return the weights that some items have in the score of one."""
        row = self.matrix[[item]]
        weights: FloatArray = row[0] if isinstance(row, np.ndarray) else row.toarray()[0]
        return weights[sources].astype(np.float64)

    @cached_property
    def largest_score(self) -> float:
        """What no score exceeds, whatever a user has."""
        if isinstance(self.matrix, np.ndarray):
            # In parts: the absolute values of all weights take as much memory as the weights.
            sums = [np.abs(self.matrix[rows]).sum(axis=1) for rows in _slices(len(self.matrix))]
            return float(np.concatenate([*sums, [0.0]]).max())
        return float(abs(self.matrix).sum(axis=1).max(initial=0.0))

    def block(self, has: Lists, users: IntArray, columns: slice) -> FloatArray:
        """Return the scores of some users and items in float32; user -1 has nothing."""
        from marginmf.backends.cpu import neighbours

        first, stop, _ = columns.indices(self.matrix.shape[0])
        out = np.zeros((len(users), stop - first), np.float32)
        own, rows = self.by_source, (0, len(users), users, has.indptr, has.columns)
        if isinstance(own, np.ndarray):
            neighbours.add_dense_weights(*rows, own, first, out)
        else:
            neighbours.add_weights(*rows, own.indptr, own.indices, own.data, first, out)
        return out

    def pairs(self, has: Lists, users: IntArray, items: IntArray) -> Float64Array:
        """Return the scores of pairs, summed in float64 in the order of items."""
        from marginmf.backends.cpu import neighbours

        own, out = self.matrix, np.empty(len(users))
        pairs = (users, items, has.indptr, has.columns)
        if isinstance(own, np.ndarray):
            neighbours.dense_pair_scores(*pairs, own, out)
        else:
            sparse = (own.shape[1], own.indptr, own.indices, own.data)
            neighbours.pair_scores(*pairs, *sparse, out)
        return out


@dataclass(frozen=True, eq=False)
class Neighbourhoods:
    """The neighbours of some items, and how many users each shares with the item."""

    #: Who has what: every rating counts, however high.
    data: Ratings
    #: The neighbours of each target in the order of items, -1 behind where there are fewer.
    near: IntArray
    shared: IntArray
    #: How many users any two items share; of shape (0, 0) where there are too many items.
    table: IntArray

    @classmethod
    def of(
        cls,
        data: Ratings,
        targets: IntArray | None = None,
        n_neighbours: int = NEIGHBOURS,
        n_threads: int = 1,
        scales: Float64Array | None = None,
    ) -> "Neighbourhoods":
        """Find the items that share most users, times their scales, with each target."""
        from marginmf.backends.cpu import neighbours

        n_tabled = data.n_items if targets is None and data.n_items <= MOST_TABLED else 0
        table = np.zeros((n_tabled, n_tabled), np.int32)
        targets = np.arange(data.n_items) if targets is None else targets
        if scales is None:
            scales = np.maximum(np.diff(data.item_indptr), 1.0) ** -DISCOUNT
        shape = (len(targets), min(n_neighbours, max(data.n_items - 1, 1)))
        near, shared = np.empty(shape, np.int32), np.empty(shape, np.int32)
        arguments = (data.indptr, data.indices, data.item_indptr, data.item_indices, scales)

        def task(start: int, stop: int) -> None:
            neighbours.nearest(start, stop, targets, *arguments, near, shared, table)

        run(task, _parts(len(targets)), n_threads)
        return cls(data, near, shared, table)

    def weights(self, strength: float, n_threads: int = 1) -> ItemWeights:
        """Return ridge regressions on the neighbours, with that strength of the penalty."""
        from marginmf.backends.cpu import neighbours

        data, found = self.data, np.empty(self.near.shape)
        users = (data.n_users, data.item_indptr, data.item_indices)

        def task(start: int, stop: int) -> None:
            near = (self.near, self.shared, self.table)
            neighbours.ridge_weights(start, stop, *near, *users, float(strength), found)

        run(task, _parts(len(self.near)), n_threads)
        return self._as_weights(found)

    @classmethod
    def learner(
        cls, data: Ratings, n_threads: int, n_neighbours: int = NEIGHBOURS
    ) -> Callable[[float], ItemWeights]:
        """Return a function of the strength of the penalty that gives the weights of all items."""
        near = cls.of(data, None, n_neighbours, n_threads)
        return lambda strength: near.weights(strength, n_threads)

    def similarities(self, scales: Float64Array) -> ItemWeights:
        """Return how many users items share with their neighbours, times the scales of both."""
        return self._as_weights(self.shared * scales[self.near] * scales[:, None])

    def _as_weights(self, values: Float64Array) -> ItemWeights:
        """Return weights of the neighbours, of which some rows have fewer."""
        there = self.near >= 0
        indptr = np.concatenate(([0], np.cumsum(there.sum(axis=1)))).astype(np.int32)
        shape = (len(self.near), self.data.n_items)
        entries = (values[there].astype(np.float32), self.near[there], indptr)
        return ItemWeights(csr_array(entries, shape=shape))


def closed_form(data: Ratings, strength: float) -> ItemWeights:
    """Return the ridge regression of every item on all others: EASE's closed form.

    With P the inverse of ``X^T X + strength I``, the weight of item j in the score of item i is
    ``-P_ij / P_ii``.
    """
    n_items, entries = data.n_items, np.ones(len(data))
    has = csr_array((entries, data.indices, data.indptr), shape=(data.n_users, n_items))
    by_item = has.T.tocsr()
    # By columns, as LAPACK wants it, so that it is overwritten and not copied.
    gram = np.empty((n_items, n_items), order="F")
    for part in _slices(n_items):
        gram[:, part] = (by_item @ by_item[part].T).toarray()
    gram[np.diag_indices(n_items)] += strength
    # One thread, or the number of threads would change the rounding.
    with one_blas_thread():
        inverse, failed = dpotrf(gram, lower=1, clean=0, overwrite_a=1)
        if not failed:
            inverse, failed = dpotri(inverse, lower=1, overwrite_c=1)
    if failed:
        raise ValueError(
            f"reg={strength:g} is too small for these data: the regression has no single solution."
        )
    weights = np.empty((n_items, n_items), np.float32)
    diagonal = -inverse.diagonal()[:, None]
    for part in _slices(n_items):
        # LAPACK fills the lower half; what is beyond the diagonal is found below it.
        rows = inverse[part].copy()
        rows[:, part] = np.tril(rows[:, part]) + np.tril(rows[:, part], -1).T
        rows[:, part.stop :] = inverse[part.stop :, part].T
        weights[part] = rows / diagonal[part]
    weights[np.diag_indices(n_items)] = 0
    return ItemWeights(weights)


#: Makes ready to learn item-item weights from who has what, with one strength after another.
Learn = Callable[[Ratings], Callable[[float], ItemWeights]]


def chosen_strength(data: Ratings, rng: np.random.Generator, learn: Learn) -> float:
    """Return the strength whose lists find most of what was held out, by nDCG."""
    popular = np.argsort(-np.diff(data.item_indptr), kind="stable")[:MOST_ITEMS]
    if len(popular) < data.n_items:
        data = restricted(data, "item", IdIndex(data.items.ids[np.sort(popular)], "item"))
    counts = np.diff(data.indptr)
    judged = rng.permutation(np.flatnonzero(counts >= 2))[:MOST_USERS]
    if not len(judged) or data.n_items < 2:
        return USUAL_STRENGTH
    is_judged = np.zeros(data.n_users, bool)
    is_judged[judged] = True
    held = is_judged[data.rows] & (rng.random(len(data)) < HELD_OUT)
    held[data.indptr[judged]] |= np.diff(data.indptr)[judged] < 1 / HELD_OUT
    if not held.any() or held.all():
        return USUAL_STRENGTH
    train, test = data.subset(~held), data.subset(held)
    has, wanted = Lists.rated(train), Lists.rated(test)
    judged = judged[np.diff(test.indptr)[judged] > 0]
    weights_at = learn(train)

    @cache
    def found(k: int) -> float:
        return _ndcg(weights_at(STRENGTHS[k]), has, wanted, judged)

    # Lists get better up to some strength and worse beyond it: a walk from the usual one finds it.
    k = STRENGTHS.index(USUAL_STRENGTH)
    for step in (1, -1):
        while 0 <= k + step < len(STRENGTHS) and found(k + step) > found(k):
            k += step
    return STRENGTHS[k]


def _ndcg(weights: ItemWeights, has: Lists, wanted: Lists, users: IntArray) -> float:
    total = 0.0
    for start in range(0, len(users), 256):
        some = users[start : start + 256]
        scores = weights.block(has, some, slice(None))
        best = Best.none_yet(len(some), min(LENGTH, scores.shape[1]), np.float32)
        top_n(scores, scores, *has.of(some), best)
        relevant = wanted.of(some)
        hits = relevant.contain(best.columns)
        total += LIST_METRICS["ndcg"](hits, np.diff(relevant.indptr), LENGTH).sum()
    return total / len(users)


def _parts(n: int) -> IntArray:
    """Cut rows into parts of bounded size."""
    return np.append(np.arange(0, n, ITEMS_AT_A_TIME), n)


def _slices(n: int) -> list[slice]:
    return [slice(int(start), int(stop)) for start, stop in pairwise(_parts(n))]
