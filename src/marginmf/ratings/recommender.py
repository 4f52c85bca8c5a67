"""What follows from any ratings estimator's margins and factors: lists, neighbours, reasons."""

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from marginmf._typing import Array, Float64Array, FloatArray, IntArray
from marginmf.backends import Kernels
from marginmf.ratings.blocks import Columns
from marginmf.ratings.calibration import Calibrator
from marginmf.ratings.data import Ratings
from marginmf.ratings.expected import MarginBlock, expected_block, sum_of_margins
from marginmf.ratings.explain import explain
from marginmf.ratings.fallback import LevelFrequencies
from marginmf.ratings.ids import IdIndex
from marginmf.ratings.similar import similar
from marginmf.ratings.topn import UnknownUsers, recommend


class Recommender:
    """The part of `RatingsEstimator` that makes lists.

    It needs the margins of blocks (`_margin_block`) and of pairs (`_code_margins`), and what
    turns margins into probabilities (`calibrate`).
    """

    users_: IdIndex
    items_: IdIndex
    levels_: Float64Array
    ratings_: Ratings
    n_jobs: int | None
    _calibrator: Calibrator | None
    _frequencies: LevelFrequencies
    _decode: Callable[[FloatArray], IntArray]

    def recommend(
        self,
        users: Any = None,
        n: int = 10,
        *,
        exclude_seen: bool = True,
        candidates: Any = None,
        filter: Any = None,  # noqa: A002
        unknown: UnknownUsers = "fallback",
    ) -> Any:
        """Return the n items that each user is expected to rate highest.

        Users and items are worked on in blocks of bounded size, ``n_jobs`` of them at a time; the
        answer does not depend on that.

        Parameters
        ----------
        users : id, sequence of ids, column of a frame, or None
            Whom to make lists for; None is every user seen in training.  Repeats count once.
        n : int
            The length of the lists.  They are shorter where fewer items are left.
        exclude_seen : bool
            Whether to leave out what the user rated in training.
        candidates : ids, optional
            The items to choose from; all of them must have been seen in training.
        filter : callable or pairs, optional
            What else to leave out.  A function is called with a user's id and the array of the
            candidates' ids, and returns an array of bool: True for items that may stay.  It
            should depend on nothing else, because a user may come up again.  Pairs of (user,
            item), in any form that `predict` takes, are left out; those with ids that nobody asks
            about change nothing.
        unknown : {"fallback", "raise", "skip"}
            What to do with users that training did not see: recommend the items that are liked
            most by all (expected rating from the item's level frequencies), raise an error, or
            leave them out.

        Returns
        -------
        frame
            Columns ``user``, ``item``, ``rank`` (1 is the best), ``score`` (the expected rating)
            and ``rating`` (what `predict` says), by user in the order asked, then by rank.  Equal
            scores are ranked by the sum of the margins, then by the order of ``items_``.  The
            frame is of the library that ``users`` come from; else, of the first of pandas,
            polars and pyarrow that is installed; else, a dictionary of arrays.

        Examples
        --------
        >>> from marginmf.datasets import make_ratings
        >>> from marginmf.ratings import MMMF
        >>> data = make_ratings(50, 40, n_factors=2, observed=0.5, random_state=0)
        >>> model = MMMF(n_factors=5, reg=1.0, random_state=0).fit(data.pairs, data.ratings)
        >>> best = model.recommend([3, 17], n=2)
        >>> list(best.columns), best["user"].tolist(), best["rank"].tolist()
        (['user', 'item', 'rank', 'score', 'rating'], [3, 3, 17, 17], [1, 2, 1, 2])
        """
        check_is_fitted(self)
        self.calibrate()
        return recommend(self, users, n, exclude_seen, candidates, filter, unknown)

    def similar_items(self, items: Any, n: int = 10) -> Any:
        """Return the n items most similar to each of some items, by the cosine of their factors.

        Parameters
        ----------
        items : id, sequence of ids, or column of a frame
            Items seen in training.  Repeats count once.
        n : int
            How many; fewer where there are no more.

        Returns
        -------
        frame
            Columns ``item``, ``similar`` (the other item's id), ``rank`` and ``similarity``, by
            item in the order asked, then by rank; the kind of frame is chosen as in `recommend`.
            Where a model has several stages, their factors are taken together.

        Examples
        --------
        >>> from marginmf.datasets import make_ratings
        >>> from marginmf.ratings import HMF
        >>> data = make_ratings(50, 40, n_factors=2, observed=0.5, random_state=0)
        >>> model = HMF(n_factors=5, reg=1.0, random_state=0).fit(data.pairs, data.ratings)
        >>> model.similar_items(7, n=3)["rank"].tolist()
        [1, 2, 3]
        """
        check_is_fitted(self)
        return similar(self, items, n, self.items_, "item_factors_")

    def similar_users(self, users: Any, n: int = 10) -> Any:
        """Return the n users most similar to each of some users, by the cosine of their factors.

        As `similar_items`, with the columns ``user``, ``similar``, ``rank`` and ``similarity``.
        """
        check_is_fitted(self)
        return similar(self, users, n, self.users_, "user_factors_")

    def explain(self, user: Any, item: Any, n: int = 5) -> Any:
        """Return which of the user's own ratings speak for an item, and which against it.

        Given the items' factors, a user's factors are a weighted sum of the factors of the items
        that the user rated, so the score of any item is a sum over those ratings; see
        `marginmf.ratings.explain.contributions` for the whole sum and for what is left over.

        Parameters
        ----------
        user, item : id
            Both seen in training; the user need not have rated the item.
        n : int
            How many ratings to return of each side, at most.

        Returns
        -------
        frame
            Columns ``item`` (that the user rated), ``rating`` (the user's) and ``contribution``
            to the score (HMF: to the mean of the stages' scores), from most for to most against.
            Its library is the first of pandas, polars and pyarrow that is installed.

        Examples
        --------
        >>> from marginmf.datasets import make_ratings
        >>> from marginmf.ratings import MMMF
        >>> data = make_ratings(50, 40, n_factors=2, observed=0.5, random_state=0)
        >>> model = MMMF(n_factors=5, reg=1.0, random_state=0).fit(data.pairs, data.ratings)
        >>> list(model.explain(3, 7, n=2).columns)
        ['item', 'rating', 'contribution']
        """
        return explain(self, user, item, n)

    @abstractmethod
    def _kernels(self) -> Kernels:
        """Return the kernels that heavy work is done with."""

    @abstractmethod
    def _code_margins(self, users: IntArray, items: IntArray) -> FloatArray:
        """Return the margins of codes; unknown ones have log-odds from level frequencies."""

    @abstractmethod
    def _code_distribution(self, users: IntArray, items: IntArray) -> Float64Array:
        """Return the distributions of codes; unknown ones have those of level frequencies."""

    @abstractmethod
    def _margin_block(self, users: IntArray, items: Columns) -> MarginBlock:
        """Return the margins of all of some users and items; several threads call this at once."""

    @abstractmethod
    def calibrate(self) -> Any:
        """Learn how margins become probabilities, unless that is known."""

    def _expected_block(self, users: IntArray, items: Columns) -> tuple[FloatArray, FloatArray]:
        """Return expected ratings above the lowest level, and ties, of codes; -1 is unknown."""
        if (users >= 0).all():
            return self._expected_known(users, items)
        numbers = np.arange(len(self.items_))[items]
        strangers = self._expected_pairs(np.full(len(numbers), -1), numbers)
        known = users >= 0
        expected, ties = (np.tile(row.astype(np.float32), (len(users), 1)) for row in strangers)
        if known.any():
            expected[known], ties[known] = self._expected_known(users[known], items)
        return expected, ties

    def _expected_known(self, users: IntArray, items: Columns) -> tuple[FloatArray, FloatArray]:
        assert self._calibrator is not None
        numbers = np.arange(len(self.items_))[items]
        block = self._margin_block(users, items)
        return expected_block(
            block, self._calibrator, self._frequencies, users, numbers, self.levels_
        )

    def _expected_pairs(
        self, users: IntArray, items: IntArray
    ) -> tuple[Float64Array, Float64Array]:
        """Return the same for pairs, in float64 and free of what else is asked for."""
        heights = self.levels_ - self.levels_[0]
        expected = np.einsum("nq,q->n", self._code_distribution(users, items), heights)
        return expected, sum_of_margins(self._code_margins(users, items))

    def _predict_codes(self, users: IntArray, items: IntArray) -> Array:
        """Return what `predict` says of codes; unknown ones fall back."""
        return self.levels_[self._decode(self._code_margins(users, items))]
