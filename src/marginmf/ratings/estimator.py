"""The public face of every ratings estimator, and the bases that a new method builds on.

A method that finds margins subclasses `RatingsEstimator`; one that estimates a number,
`RealValued`; one that gives a distribution over the levels itself, `Distributional`.
"""

from abc import abstractmethod
from typing import Any, Self

from scipy.special import logit
from sklearn.utils.validation import check_is_fitted

from marginmf._utils.types import Float64Array, FloatArray, IntArray
from marginmf.ratings.base import RatingsPredictor
from marginmf.ratings.data import Ratings
from marginmf.ratings.fitting import new_rows
from marginmf.ratings.fitting.calibration import make_possible
from marginmf.ratings.lists.explain import explain
from marginmf.ratings.lists.recommend import Request, SimilarByFactors, UnknownUsers, recommend
from marginmf.ratings.lists.relevance import RankedBy
from marginmf.ratings.scales import MANY_VALUES


class RatingsEstimator(SimilarByFactors, RatingsPredictor):
    """A supervised estimator over (user, item) pairs, with lists, neighbours and new users."""

    def fold_in(self, pairs: Any = None, ratings: Any = None, *, user_features: Any = None) -> Self:
        """Return a model for new users: their rows are learned, the items stay as they are.

        Parameters
        ----------
        pairs, ratings
            Ratings by the new users, as in `fit`.  Those of unknown items are left out with a
            warning, and a user who has no others stays unknown.  It is an error if none of the
            items is known, or a rating is not at a level of the model.
        user_features : optional
            Features of the users, for models fitted with some; users need no ratings then.

        Returns
        -------
        estimator
            A fitted estimator of the same kind whose users are the new ones; this one is not
            changed.  What it says of a user does not depend on the others folded in with them.

        Examples
        --------
        >>> from marginmf.ratings import BiasOnly
        >>> pairs = [("ann", "x"), ("ann", "y"), ("bob", "x"), ("bob", "y")]
        >>> model = BiasOnly(reg=0.1).fit(pairs, [5, 3, 4, 2])
        >>> model.fold_in([("cy", "x")], [3]).predict([("cy", "x"), ("cy", "y")], output="rule")
        array([3., 2.])
        """
        return new_rows.fold_in(self, "user", pairs, ratings, user_features)

    def fold_in_items(
        self, pairs: Any = None, ratings: Any = None, *, item_features: Any = None
    ) -> Self:
        """Return a model for new items: as `fold_in`, with items for users and users for items."""
        return new_rows.fold_in(self, "item", pairs, ratings, item_features)

    def update_users(
        self, pairs: Any = None, ratings: Any = None, *, user_features: Any = None
    ) -> Self:
        """Take in new ratings, by users known or new, and learn those users' rows again.

        Each of these users is learned from all of their ratings, old and new; the items and
        everyone else stay as they are, and so do everyone else's `decision_function` and rule, to
        the last bit.  Calibrated probabilities of others may move a little: they also depend on
        how often each level was used, for an item and in all, and the new ratings count there.
        An update that fails or is interrupted changes nothing.

        Parameters
        ----------
        pairs, ratings, user_features
            As in `fold_in`.  A new rating of an item that the user has rated replaces the old one.

        Examples
        --------
        >>> from marginmf.ratings import BiasOnly
        >>> pairs = [("ann", "x"), ("ann", "y"), ("bob", "x"), ("bob", "y")]
        >>> model = BiasOnly(reg=0.1).fit(pairs, [5, 3, 4, 2])
        >>> model = model.update_users([("bob", "y"), ("cy", "x")], [4, 3])
        >>> model.predict([("bob", "y")], output="rule")
        array([3.])
        >>> model.users_.ids.tolist()
        ['ann', 'bob', 'cy']
        """
        new_rows.update(self, "user", pairs, ratings, user_features)
        return self

    def update_items(
        self, pairs: Any = None, ratings: Any = None, *, item_features: Any = None
    ) -> Self:
        """Take in new ratings: as `update_users`, with items for users and users for items."""
        new_rows.update(self, "item", pairs, ratings, item_features)
        return self

    def recommend(
        self,
        users: Any = None,
        n: int = 10,
        *,
        by: RankedBy = "relevance",
        level: float | None = None,
        exclude_seen: bool = True,
        candidates: Any = None,
        filter: Any = None,  # noqa: A002
        unknown: UnknownUsers = "warn",
    ) -> Any:
        """Return the n items that are most relevant for each user.

        Relevance is the chance that the user would take an item times the chance that they would
        like it then.  The first comes from who rated what (see `fit_exposure`), the second from the
        probabilities of the levels.  The first call learns who takes what, unless the model was
        loaded from a file: call `fit_exposure` before it is saved.

        Parameters
        ----------
        users : id, sequence of ids, column of a frame, or None
            Whom to make lists for; None is every user seen in training.  Repeats count once.
        n : int
            The length of the lists.  They are shorter where fewer items are left.
        by : {"relevance", "expected", "chance"}
            What to rank by: relevance, the expected rating, or the chance that the user likes the
            item.  The latter two suit a choice among items that the user has to take anyway.
        level : float, optional
            The lowest rating of an item that is liked; by default, the lowest level above the mean
            rating in training.
        exclude_seen : bool
            Whether to leave out what the user rated in training.
        candidates : ids, optional
            The items to choose from; all of them must have been seen in training.
        filter : callable or pairs, optional
            What else to leave out: (user, item) pairs as `predict` takes them; or a function of a
            user's id and the array of the candidates' ids that returns an array of bool, True for
            items that may stay.  It may be called for a user more than once.
        unknown : {"warn", "fallback", "raise", "skip"}
            What to do with unknown users: recommend what most people take and like, with a warning
            or without one; raise an error; or leave them out.

        Returns
        -------
        frame
            A row for each item of a list, by user in the order asked, then by rank.  Equal scores
            are ranked by the sum of the margins, then by ``items_``.  The columns are

            - ``user``, ``item`` and ``rank``, of which 1 is the best;
            - ``score``, what items are ranked by: the product of ``take`` and ``like``,
              ``expected``, or the chance that the user likes the item;
            - ``take`` and ``like``, by relevance alone: the chance that the user takes the item
              (which may exceed 1 a little), and that they like it then;
            - ``expected``, the mean of the predicted distribution over the levels, and
              ``rating``, its median: what `predict` answers with ``output="mean"`` and without;
            - ``chance_of_top``, the probability of the highest level;
            - ``known``, whether the model knows the user.

            The frame is of the library that ``users`` come from, or else of the first of pandas,
            polars and pyarrow that is installed, or else a dictionary of arrays.

        Examples
        --------
        >>> from marginmf.datasets import make_ratings
        >>> from marginmf.ratings import MMMF
        >>> data = make_ratings(50, 40, n_factors=2, observed=0.5, random_state=0)
        >>> model = MMMF(n_factors=5, reg=1.0, random_state=0).fit(data.pairs, data.ratings)
        >>> best = model.recommend([3, 17], n=2)
        >>> best["user"].tolist(), best["rank"].tolist()
        ([3, 3, 17, 17], [1, 2, 1, 2])
        >>> best[["expected", "rating", "chance_of_top"]].round(2).iloc[0].to_dict()
        {'expected': 1.68, 'rating': 2.0, 'chance_of_top': 0.0}
        """
        check_is_fitted(self)
        self._with_calibrator()
        request = Request(self, users, n, exclude_seen, candidates, filter, unknown)
        return recommend(self, request, by, level, users)

    def explain(self, user: Any, item: Any, n: int = 5) -> Any:
        """Return which of the user's own ratings speak for an item, and which against it.

        Given the items' factors, the score of an item is a sum over the user's ratings, and so is
        the chance that the user takes the item at all; see
        `marginmf.ratings.lists.explain.contributions` for the whole sums and for what is left over.

        Parameters
        ----------
        user, item : id
            Both seen in training; the user need not have rated the item.
        n : int
            How many ratings to return, at most, of those that speak most for the item, of those
            that speak most against it, and of those that make it most likely to be taken.

        Returns
        -------
        frame
            Columns ``item`` (that the user rated), ``rating`` (the user's), ``contribution`` to
            the score (HMF: to the mean of the stages' scores) and ``to_take`` (to the chance that
            the user takes the item), from most for to most against.  Where factors are built from
            raters or features, ``from_ratings``, ``from_raters`` and ``from_features`` divide the
            contributions by their sources.

        Examples
        --------
        >>> from marginmf.datasets import make_ratings
        >>> from marginmf.ratings import MMMF
        >>> data = make_ratings(50, 40, n_factors=2, observed=0.5, random_state=0)
        >>> model = MMMF(n_factors=5, reg=1.0, random_state=0).fit(data.pairs, data.ratings)
        >>> list(model.explain(3, 7, n=2).columns)
        ['item', 'rating', 'contribution', 'to_take']
        """
        return explain(self, user, item, n)


class Numbers(RatingsEstimator):
    """A method that learns from ratings as numbers: continuous ones are as good as levels."""

    def _read(self, pairs: Any, ratings: Any, **reading: Any) -> Ratings:
        if isinstance(pairs, Ratings) or reading.get("levels") is not None:
            return Ratings.of(pairs, ratings, **reading)
        return Ratings.of(pairs, ratings, n_levels=MANY_VALUES, **reading)


class RealValued(Numbers):
    """A method that estimates a number: the nearest level is its rule.

    Subclasses say how to learn (`_fit`) and what they estimate (`_estimates`).
    """

    @abstractmethod
    def _estimates(self, users: IntArray, items: IntArray) -> FloatArray:
        """Return a number for known users and items, given as codes."""

    def _margins(self, users: IntArray, items: IntArray) -> FloatArray:
        return above_midpoints(self._estimates(users, items), self.levels_)


class Distributional(RatingsEstimator):
    """A method that gives a distribution over the levels itself: nothing is calibrated.

    Subclasses say how to learn (`_fit`) and what the distribution is (`_distribution`).
    """

    @abstractmethod
    def _distribution(self, users: IntArray, items: IntArray) -> Float64Array:
        """Return the probability of every level for known users and items, given as codes."""

    def fit_calibrator(self) -> Self:
        """Do nothing: the probabilities are the method's own."""
        check_is_fitted(self)
        return self

    def _lacks(self, name: str) -> bool:
        return name != "_calibrator" and super()._lacks(name)

    def _above(self, users: IntArray, items: IntArray) -> Float64Array:
        distribution = make_possible(self._distribution(users, items))
        above: Float64Array = distribution[:, ::-1].cumsum(axis=1)[:, -2::-1]
        return above

    def _margins(self, users: IntArray, items: IntArray) -> FloatArray:
        return logit(self._above(users, items))


def above_midpoints(estimates: FloatArray, levels: Float64Array) -> FloatArray:
    """Return how far estimates are above the midpoints of neighbouring levels.

    >>> import numpy as np
    >>> above_midpoints(np.array([2.25]), np.array([1.0, 2.0, 4.0]))
    array([[ 0.75, -0.75]])
    """
    return estimates[:, None] - (levels[:-1] + levels[1:]) / 2.0
