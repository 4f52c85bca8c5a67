"""Lists by item-item weights: what the items that a user has say of the others.

`ItemKNN` takes similarities for weights, `EASE` ridge regressions; `lists.neighbours` finds both.
"""

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from marginmf._utils.parameters import check_number, n_threads
from marginmf._utils.random import as_generator
from marginmf._utils.types import IntArray
from marginmf.ratings.data import Ratings
from marginmf.ratings.lists import neighbours
from marginmf.ratings.lists.neighbours import ItemWeights, Neighbourhoods
from marginmf.ratings.lists.recommend import similar_by
from marginmf.ratings.lists.search import ItemScores, Lists
from marginmf.ratings.positive import POSITIVE, ROUNDING, PositiveOnly

#: Up to this many items EASE inverts a matrix of them all ...
MOST_ITEMS = 20_000
#: ... and it does not do so, even when told to, where that matrix takes more memory than this.
MOST_BYTES = 4 << 30


class _Weighted:
    """Sums of item-item weights over what users have."""

    cell_bytes = 4

    def __init__(self, weights: ItemWeights, has: Lists) -> None:
        self.weights, self.has = weights, has
        self.tolerance = ROUNDING * weights.largest_score

    def block(self, users: IntArray, columns: slice) -> Any:
        return (self.weights.block(self.has, users, columns),) * 2

    def pairs(self, users: IntArray, columns: IntArray) -> Any:
        return (self.weights.pairs(self.has, users, columns),) * 2


class ItemBased(PositiveOnly):
    """A method whose scores are sums of item-item weights over what a user has."""

    _saved: ClassVar[dict[str, Any]] = {"weights_": ItemWeights}
    weights_: ItemWeights

    def similar_items(self, items: Any, n: int = 10) -> Any:
        """Return the n items to whose scores having each of some items adds most."""
        check_is_fitted(self)
        codes = np.arange(len(self.items_) + 1, dtype=np.int64)
        alone = Lists(codes, codes[:-1].astype(np.int32))  # as if each user had one item
        about = self.items_, self.n_jobs, self.ratings_.source.library
        return similar_by(_Weighted(self.weights_, alone), items, n, *about)

    def _scores(self, items: IntArray | None) -> ItemScores:
        return _Weighted(self.weights_.among(items), self._has)


@POSITIVE.register("itemknn")
@dataclass(eq=False, repr=False)
class ItemKNN(ItemBased):
    """Items like those that the user has, by the cosine of who has them.

    The similarity of items i and j is ``n_ij / sqrt((n_i + shrinkage) (n_j + shrinkage))``, where
    ``n_i`` users have i and ``n_ij`` have both; the score of an item is the sum of the similarities
    of its nearest neighbours that the user has.

    Parameters
    ----------
    n_neighbours : int
        How many items the score of an item is made of.
    shrinkage : float
        How many users an item is taken to have beside its own: similarities of items that few users
        have are mostly chance.

    Attributes
    ----------
    weights_ : ItemWeights
        The similarities of every item (row) to its neighbours (columns).

    Examples
    --------
    >>> pairs = [("ann", "x"), ("ann", "y"), ("bob", "x"), ("bob", "y"), ("cy", "z")]
    >>> ItemKNN(shrinkage=0).fit(pairs).similar_items("x", n=1)["similarity"].tolist()
    [1.0]
    """

    n_neighbours: int = neighbours.NEIGHBOURS
    _: KW_ONLY
    shrinkage: float = 50.0
    level: float | None = None
    n_jobs: int | None = None

    def _fit(self, taken: Ratings) -> None:
        # An item that nobody took has no neighbours, whatever its scale.
        scales = np.maximum(self.popularity_ + float(self.shrinkage), 1e-9) ** -0.5
        threads = n_threads(self.n_jobs)
        near = Neighbourhoods.of(taken, None, int(self.n_neighbours), threads, scales)
        self.weights_ = near.similarities(scales)

    def _check(self, data: Ratings) -> None:
        super()._check(data)
        check_number(self, "n_neighbours", int, 1)
        check_number(self, "shrinkage", float, 0)


@POSITIVE.register("ease")
@dataclass(eq=False, repr=False)
class EASE(ItemBased):
    """A ridge regression for each item: of who has it on who has the other items.

    The weights minimise ``|X - X B|^2 + reg |B|^2`` with zeros on the diagonal of B, where X is one
    for pairs that are there and zero for all others (Steck, "Embarrassingly shallow autoencoders
    for sparse data", WWW 2019).  The score of an item is the sum of its weights over what the user
    has.

    Parameters
    ----------
    reg : float or "auto"
        The regularisation strength.  Auto: the one whose lists find most of what was held out of
        up to 2,000 users' items.
    n_neighbours : int, None or "auto"
        On how many of the nearest items each is regressed.  None is all of them, in closed form,
        which takes 8 bytes for each pair of items.  Auto: all up to 20,000 items, and 100 where
        there are more.
    random_state : int, Generator or None
        Chooses what is held out.
    n_jobs : int or None
        Threads, as in scikit-learn, of which the closed form uses one.

    Attributes
    ----------
    weights_ : ItemWeights
        The weights of all items (columns) in the score of each (row).
    reg_ : float
        The regularisation strength that was used.

    Examples
    --------
    >>> pairs = [("ann", "x"), ("ann", "y"), ("bob", "x"), ("bob", "y"), ("cy", "x")]
    >>> EASE(reg=1.0).fit(pairs).recommend("cy")["score"].round(3).tolist()
    [0.5]
    """

    reg: float | str = "auto"
    _: KW_ONLY
    level: float | None = None
    n_neighbours: int | str | None = "auto"
    random_state: Any = 0
    n_jobs: int | None = None

    _saved: ClassVar[dict[str, Any]] = {"reg_": float}

    def _fit(self, taken: Ratings) -> None:
        if self.reg == "auto":
            rng = as_generator(self.random_state)
            self.reg_ = neighbours.chosen_strength(taken, rng, self._learn)
        else:
            self.reg_ = float(self.reg)
        self.weights_ = self._learn(taken)(self.reg_)

    def _learn(self, taken: Ratings) -> Callable[[float], ItemWeights]:
        n_neighbours = self.n_neighbours
        if n_neighbours == "auto":
            n_neighbours = None if len(self.items_) <= MOST_ITEMS else neighbours.NEIGHBOURS
        if n_neighbours is None:
            return lambda strength: neighbours.closed_form(taken, strength)
        return Neighbourhoods.learner(taken, n_threads(self.n_jobs), int(n_neighbours))

    def _check(self, data: Ratings) -> None:
        super()._check(data)
        if self.reg != "auto":
            if isinstance(self.reg, str):
                raise ValueError(f"reg={self.reg!r} must be a number > 0, or 'auto'.")
            check_number(self, "reg", float, np.nextafter(0, 1))
        if self.n_neighbours not in ("auto", None):
            check_number(self, "n_neighbours", int, 1)
        n_bytes = 8 * data.n_items**2
        if self.n_neighbours is None and n_bytes > MOST_BYTES:
            raise ValueError(
                f"n_neighbours=None inverts a matrix of all {data.n_items:,} items, which takes "
                f"{n_bytes / 2**30:.1f} GiB: use n_neighbours=100, or 'auto'."
            )
