"""Methods that learn who has what (purchases, plays, clicks): lists, but no ratings.

A pair says that the user took the item; one that is absent says little.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator
from copy import copy
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any, ClassVar, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from marginmf._utils.concurrency import Snapshot
from marginmf._utils.parameters import MOST, check_n_jobs, check_number, unfitted
from marginmf._utils.saved import Methods, Sized, counts
from marginmf._utils.sparse import check_sparse
from marginmf._utils.types import Float64Array, FloatArray, IntArray
from marginmf.persistence import PairCounts, Savable
from marginmf.ratings import scales, tables
from marginmf.ratings.data import Ratings, observed
from marginmf.ratings.fitting.new_rows import keep_known
from marginmf.ratings.ids import IdIndex
from marginmf.ratings.lists.recommend import Request, UnknownUsers
from marginmf.ratings.lists.search import ItemScores, Lists

#: Every method for who has what by its name on the command line.
POSITIVE = Methods("positive-only")
#: Sums in float32 are as far as this from those in float64, as a share of the largest score.
ROUNDING = 1e-5


class PositiveOnly(Snapshot, Savable, BaseEstimator, ABC):
    """A recommender that learns from who has what.

    Subclasses say how to learn (`_fit`) and what they say of users who have something (`_scores`);
    and, where that is more than their items, how new users are learned (`_fold_in`).

    Parameters
    ----------
    level : float, optional
        Only ratings at this level or above it count; by default, whatever was rated does.
    n_jobs : int or None
        Threads, as in scikit-learn.  The result does not depend on it, to the last bit on one
        machine.

    Attributes
    ----------
    popularity_ : array of shape (n_items,)
        How many users have each item.
    users_, items_ : IdIndex
        The ids seen in training, and their codes.
    ratings_, taken_ : Ratings
        All that was given, and what of it counts as taken.
    """

    level: float | None
    n_jobs: int | None
    #: What the method is called on the command line, and its docstring's first line.
    command_name: ClassVar[str]
    summary: ClassVar[str]
    _saved: ClassVar[dict[str, Any]] = {
        "users_": Sized(IdIndex, "users"),
        "items_": Sized(IdIndex, "items"),
        "ratings_": Ratings,
        "popularity_": counts("items"),
    }
    _counts_type = PairCounts

    def fit(
        self,
        pairs: Any,
        ratings: Any = None,
        *,
        user: Any = None,
        item: Any = None,
        rating: Any = None,
    ) -> Self:
        """Learn from who has what; what was learned before is forgotten.

        Parameters
        ----------
        pairs : pairs, data frame, sparse matrix or Ratings
            (user, item) pairs in any form that `Ratings.of` takes; the stored entries of a sparse
            matrix are pairs.  A pair without a rating that occurs again counts once.
        ratings : sequence of float, optional
            The ratings of the pairs, where there are any and ``pairs`` does not hold them.
        user, item, rating : optional
            The columns of a frame, where their names do not say which is which.
        """
        data = observed(self._read(pairs, ratings, user=user, item=item, rating=rating))
        # A copy, so that a fit that fails or is interrupted changes nothing.
        fitted = unfitted(self)
        fitted._check(data)
        fitted._set_data(data)
        values = data.values
        if self.level is not None and not values.min() <= self.level <= values.max():
            raise ValueError(
                f"level={self.level!r} is outside the scale of the ratings, {values.min():g} to "
                f"{values.max():g}."
            )
        fitted.popularity_ = np.diff(fitted.taken_.item_indptr)
        fitted._fit(fitted.taken_)
        self.__dict__ = fitted.__dict__
        return self

    def fold_in(self, pairs: Any, ratings: Any = None) -> Self:
        """Return a model for new users; the items stay as they are.

        Parameters
        ----------
        pairs, ratings
            What the new users have, as in `fit`.  Unknown items are left out with a warning, and a
            user who has no others stays unknown; it is an error if none of the items is known.

        Returns
        -------
        estimator
            A fitted estimator of the same kind whose users are the new ones; this one is not
            changed.

        Examples
        --------
        >>> from marginmf.ratings import EASE
        >>> pairs = [("ann", "x"), ("ann", "y"), ("bob", "x"), ("bob", "y"), ("cy", "z")]
        >>> EASE(reg=1.0).fit(pairs).fold_in([("dan", "x")]).recommend("dan", n=1)["item"].tolist()
        ['y']
        """
        check_is_fitted(self)
        folded = copy(self)
        given = self._read(pairs, ratings, names=self.ratings_.source.columns)
        folded._set_data(keep_known(given, "user", self.items_, "Fit the model again with all."))
        folded._fold_in(folded.taken_)
        return folded

    def recommend(
        self,
        users: Any = None,
        n: int = 10,
        *,
        exclude_seen: bool = True,
        candidates: Any = None,
        filter: Any = None,  # noqa: A002
        unknown: UnknownUsers = "warn",
    ) -> Any:
        """Return the n items that each user is most likely to take.

        Parameters
        ----------
        users, n, candidates, filter
            As in `RatingsEstimator.recommend`.
        exclude_seen : bool
            Whether to leave out what is known of the user: also what was rated below ``level``.
        unknown : {"warn", "fallback", "raise", "skip"}
            What to do with unknown users: recommend what most users have, as to users who have
            nothing, with a warning or without one; raise an error; or leave them out.

        Returns
        -------
        frame
            As of `RatingsEstimator.recommend`, with the columns ``user``, ``item``, ``rank``,
            ``score`` (the number of users who have the item, where there is nothing else to go by)
            and ``known`` (whether the model knows the user).  Equal scores are ranked by that
            number, then by ``items_``.

        Examples
        --------
        >>> from marginmf.ratings import MostPopular
        >>> pairs = [("ann", "x"), ("ann", "y"), ("bob", "x"), ("bob", "z"), ("cy", "z")]
        >>> model = MostPopular().fit(pairs)
        >>> best = model.recommend(["ann", "new"], n=1, unknown="fallback")
        >>> best[["user", "item", "score", "known"]].values.tolist()
        [['ann', 'z', 2.0, True], ['new', 'x', 2.0, False]]
        """
        check_is_fitted(self)
        request = Request(self, users, n, exclude_seen, candidates, filter, unknown)
        return request.frame(request.best(self._ranked_by(request.items)), {}, users)

    def decision_function(self, pairs: Any) -> Float64Array:
        """Return the scores of (user, item) pairs, as lists are ranked by.

        For users who are unknown or have nothing, it is the number of users who have the item;
        unknown items have score 0.
        """
        check_is_fitted(self)
        user_ids, item_ids = tables.split_pairs(pairs, self.ratings_.source.columns)
        users, items = self.users_.encode(user_ids), self.items_.encode(item_ids)
        known, scores = items >= 0, np.zeros(len(items))
        scores[known], _ = self._ranked_by(None).pairs(users[known], items[known])
        return scores

    def similar_items(self, items: Any, n: int = 10) -> Any:
        """Return the n items most similar to each of some items.

        As `RatingsEstimator.similar_items`; the similarity is what having the item alone adds to
        the score of the other or, of models with factors, the cosine of the factors.
        """
        check_is_fitted(self)
        raise ValueError(
            f"{type(self).__name__} looks at every item by itself, so none is more similar than "
            "another. Use ItemKNN, EASE or OneClassMMMF."
        )

    @cached_property
    def taken_(self) -> Ratings:
        """What counts as taken: the ratings at ``level`` or above it, or all of them."""
        data = self.ratings_
        return data if self.level is None else data.subset(data.values >= self.level)

    @abstractmethod
    def _fit(self, taken: Ratings) -> None:
        """Learn everything but the popularity of the items."""

    def _scores(self, items: IntArray | None) -> ItemScores | None:
        """Return the scores of some items, None for all; by default there is only popularity."""
        return None

    def _fold_in(self, taken: Ratings) -> None:
        """Learn what belongs to new users, with what belongs to the items as it is."""

    def _ranked_by(self, items: IntArray | None) -> "_RankedBy":
        popularity = self.popularity_ if items is None else self.popularity_[items]
        return _RankedBy(self._scores(items), self._has, popularity)

    @property
    def _has(self) -> Lists:
        """The items that count as taken, user by user."""
        return Lists.rated(self.taken_)

    def _read(self, pairs: Any, ratings: Any, **columns: Any) -> Ratings:
        """Return what `fit` or `fold_in` was given as ratings; pairs without them are ones."""
        if isinstance(pairs, Ratings):
            return Ratings.of(pairs, ratings)
        duplicates: Any = "raise"
        values: Any
        if sparse.issparse(pairs):
            check_sparse(pairs, "The matrix of ratings")
            if pairs.format != "bsr" and pairs.ndim == 2:
                # Where an entry stands again, SciPy means the sum: one user's plays of one item.
                pairs = pairs.tocsr(copy=True)
                pairs.sum_duplicates()
            values = scales.as_values(pairs.data.reshape(-1))
        elif ratings is not None or tables.has_ratings(pairs, columns.get("rating")):
            pairs = list(pairs) if isinstance(pairs, Iterator) else pairs
            values, _ = scales.read_values(tables.given_ratings(pairs, ratings, **columns))
        elif self.level is not None:
            raise ValueError(
                f"level={self.level!r} is about ratings, which these pairs do not have: give the "
                "ratings too, or leave level out, so that every pair counts."
            )
        else:
            pairs = list(pairs) if isinstance(pairs, Iterator) else pairs
            ratings = values = np.ones(tables.count_rows(pairs))
            duplicates = "last"
        # Any values will do for a scale, even one value alone.
        scale: dict[str, Any] = {"n_levels": scales.MANY_VALUES}
        if len(values) and (values == values[0]).all():
            scale = {"levels": scales.levels_of(values)}
        return Ratings.of(pairs, ratings, duplicates=duplicates, **scale, **columns)

    def _set_data(self, data: Ratings) -> None:
        self.users_, self.items_, self.ratings_ = data.users, data.items, data
        self.__dict__.pop("taken_", None)

    def __sklearn_is_fitted__(self) -> bool:
        # scikit-learn would look through all attributes, while other threads add some.
        return hasattr(self, "ratings_")

    def _learned_from(self) -> PairCounts:
        return PairCounts(len(self.users_), len(self.items_), len(self.taken_))

    def _check_loaded(self) -> None:
        self._check(self.ratings_)

    def _check(self, data: Ratings) -> None:
        """Raise ValueError if the parameters cannot be used, or not for so much data."""
        check_n_jobs(self)
        if self.level is not None:
            check_number(self, "level", float, -MOST)


class _RankedBy:
    """The scores of a method for users who have something; for others, and for ties, popularity."""

    cell_bytes = 4 * 3  # scores, ties, and the scores of those who have something

    def __init__(self, scores: ItemScores | None, has: Lists, popularity: IntArray) -> None:
        self.scores, self.has, self.popularity = scores, has, popularity
        self.tolerance = 0.0 if scores is None else scores.tolerance

    def block(self, users: IntArray, columns: slice) -> tuple[FloatArray, FloatArray]:
        ties = np.tile(self.popularity[columns].astype(np.float32), (len(users), 1))
        known = self.has.lengths(users) > 0
        if self.scores is None or not known.any():
            return ties, ties
        if known.all():
            return self.scores.block(users, columns)[0], ties
        scores = ties.copy()
        scores[known] = self.scores.block(users[known], columns)[0]
        return scores, ties

    def pairs(self, users: IntArray, columns: IntArray) -> tuple[Float64Array, Float64Array]:
        ties = self.popularity[columns].astype(np.float64)
        known, scores = self.has.lengths(users) > 0, ties.copy()
        if self.scores is not None:
            scores[known] = self.scores.pairs(users[known], columns[known])[0]
        return scores, ties


@POSITIVE.register("popular")
@dataclass(eq=False, repr=False)
class MostPopular(PositiveOnly):
    """The same list for everybody: what most users have.

    Examples
    --------
    >>> model = MostPopular(level=4).fit([("ann", "x"), ("bob", "x"), ("bob", "y")], [5, 2, 4])
    >>> model.popularity_.tolist()
    [1, 1]
    """

    level: float | None = None
    _: KW_ONLY
    n_jobs: int | None = None

    def _fit(self, taken: Ratings) -> None:
        pass
