"""Users and items that come after training: their rows are learned, all others stay."""

from abc import ABC, abstractmethod
from copy import copy
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from marginmf._ids import shown
from marginmf._typing import Array, Float64Array, IntArray
from marginmf.ratings.calibration import Calibrator
from marginmf.ratings.changes import restricted, updated
from marginmf.ratings.data import Ratings
from marginmf.ratings.fallback import LevelFrequencies
from marginmf.ratings.ids import IdIndex
from marginmf.ratings.rows import Side


class Newcomers(ABC):
    """The part of an estimator that takes in new users, new items and new ratings.

    Given the items, every user's problem is one of its own, and the other way round.  `_place`
    solves one side's problems; everything here follows from it, for users and items alike.
    """

    users_: IdIndex
    items_: IdIndex
    levels_: Float64Array
    ratings_: Ratings
    _frequencies: LevelFrequencies
    _calibrator: Calibrator | None
    _origin: Any

    #: The fitted arrays that have a row for each user, and those that have one for each item.
    _user_arrays: ClassVar[tuple[str, ...]]
    _item_arrays: ClassVar[tuple[str, ...]]

    def fold_in(self, pairs: Any, ratings: Any = None) -> Self:
        """Return a model for new users: their rows are learned, the items stay as they are.

        Parameters
        ----------
        pairs, ratings
            Ratings by the new users, as in `fit`.  Ratings of items that training did not see
            are left out, and a user who has no others stays unknown; levels that training did
            not see are an error.

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
        >>> model.fold_in([("cy", "x")], [3]).predict([("cy", "x"), ("cy", "y")])
        array([3., 2.])
        """
        return self._folded("user", self._read("user", pairs, ratings))

    def fold_in_items(self, pairs: Any, ratings: Any = None) -> Self:
        """Return a model for new items: their rows are learned, the users stay as they are.

        Parameters
        ----------
        pairs, ratings
            Ratings of the new items, as in `fit`.  Ratings by users that training did not see
            are left out, and an item that has no others stays unknown; levels that training did
            not see are an error.

        Returns
        -------
        estimator
            A fitted estimator of the same kind whose items are the new ones; this one is not
            changed.  What it says of an item does not depend on the others folded in with it.

        Examples
        --------
        >>> from marginmf.ratings import BiasOnly
        >>> pairs = [("ann", "x"), ("ann", "y"), ("bob", "x"), ("bob", "y")]
        >>> model = BiasOnly(reg=0.1).fit(pairs, [5, 3, 4, 2])
        >>> model.fold_in_items([("ann", "new")], [4]).predict([("ann", "new"), ("bob", "new")])
        array([4., 3.])
        """
        return self._folded("item", self._read("item", pairs, ratings))

    def update_users(self, pairs: Any, ratings: Any = None) -> Self:
        """Take in new ratings, by users known or new, and learn those users' rows again.

        Each of these users is learned from all of their ratings, old and new; the items and
        everyone else stay as they are, to the last bit.

        Parameters
        ----------
        pairs, ratings
            New ratings, as in `fit`.  A new rating of an item that the user has rated replaces
            the old one.  Ratings of unknown items are left out (`update_items` takes new items
            in), and a new user who has no others stays unknown; levels that training did not see
            are an error.

        Returns
        -------
        self
            As it was before, if the update fails or is interrupted.

        Examples
        --------
        >>> from marginmf.ratings import BiasOnly
        >>> pairs = [("ann", "x"), ("ann", "y"), ("bob", "x"), ("bob", "y")]
        >>> model = BiasOnly(reg=0.1).fit(pairs, [5, 3, 4, 2])
        >>> model.update_users([("bob", "y"), ("cy", "x")], [4, 3]).predict([("bob", "y")])
        array([3.])
        >>> model.users_.ids.tolist()
        ['ann', 'bob', 'cy']
        """
        return self._update("user", self._read("user", pairs, ratings))

    def update_items(self, pairs: Any, ratings: Any = None) -> Self:
        """Take in new ratings, of items known or new, and learn those items' rows again.

        Each of these items is learned from all of its ratings, old and new; the users and
        all other items stay as they are, to the last bit.

        Parameters
        ----------
        pairs, ratings
            New ratings, as in `fit`.  A new rating by a user who has rated the item replaces
            the old one.  Ratings by unknown users are left out (`update_users` takes new users
            in), and a new item that has no others stays unknown; levels that training did not
            see are an error.

        Returns
        -------
        self
            As it was before, if the update fails or is interrupted.

        Examples
        --------
        >>> from marginmf.ratings import BiasOnly
        >>> pairs = [("ann", "x"), ("ann", "y"), ("bob", "x"), ("bob", "y")]
        >>> model = BiasOnly(reg=0.1).fit(pairs, [5, 3, 4, 2])
        >>> model.update_items([("ann", "new")], [4]).predict([("bob", "new"), ("bob", "y")])
        array([3., 2.])
        """
        return self._update("item", self._read("item", pairs, ratings))

    @abstractmethod
    def _place(self, side: Side, data: Ratings) -> None:
        """Learn one side's part alone, with the other side's part as it is."""

    @abstractmethod
    def _check(self, data: Ratings) -> None:
        """Raise ValueError if the parameters or the data cannot be used."""

    @abstractmethod
    def _set_data(self, data: Ratings) -> None:
        """Keep the ratings and what follows from them."""

    def _index(self, side: Side) -> IdIndex:
        return self.users_ if side == "user" else self.items_

    def _read(self, side: Side, pairs: Any, ratings: Any) -> Ratings:
        """Return ratings on our scale, of our items (or by our users) alone."""
        check_is_fitted(self)
        if side == "user":
            return Ratings.of(pairs, ratings, levels=self.levels_, items=self.items_)
        return Ratings.of(pairs, ratings, levels=self.levels_, users=self.users_)

    def _folded(self, side: Side, data: Ratings) -> Self:
        """Return a model for newcomers, which knows whom to ask what its margins mean."""
        folded = self._placed(side, data)
        if self._calibrator is None:
            # A copy: this estimator may be fitted to something else in the meantime.
            folded._origin = self._origin or copy(self)
        return folded

    def _placed(self, side: Side, data: Ratings) -> Self:
        """Return a model for the users (or items) of some ratings, whose other side is ours."""
        placed = copy(self)
        placed._check(data)
        placed._set_data(data)
        placed._frequencies = self._frequencies.placing(side, data)
        placed._place(side, data)
        return placed

    def _update(self, side: Side, new: Ratings) -> Self:
        ids = new.users if side == "user" else new.items
        self._refuse_unless_at_hand(side, ids)
        data = updated(self.ratings_, new)
        # Learned and joined aside, so that an update that fails leaves this model as it was.
        placed = self._placed(side, restricted(data, side, ids))
        self.__dict__.update(self._joined(placed, side, data).__dict__)
        return self

    def _joined(self, placed: Self, side: Side, data: Ratings) -> Self:
        """Return a model of all the data, with the rows of another where that has them."""
        joined = copy(self)
        joined._set_data(data)
        joined._frequencies = self._frequencies.changed(self.ratings_, data)
        index = joined._index(side)
        ours, theirs = (index.encode(part._index(side).ids) for part in (self, placed))
        for name in self._user_arrays if side == "user" else self._item_arrays:
            rows = _spread(getattr(self, name), ours, len(index))
            _rows_first(rows)[theirs] = _rows_first(getattr(placed, name))
            setattr(joined, name, rows)
        return joined

    def _refuse_unless_at_hand(self, side: Side, ids: IdIndex) -> None:
        """Raise ValueError if known ids have ratings that this model does not hold."""
        if self._frequencies.placed in (None, side):
            return
        known = self._index(side).encode(ids.ids) >= 0
        if known.any():
            made_by = {"user": "fold_in_items", "item": "fold_in"}[side]
            raise ValueError(
                f"{side.capitalize()} {shown(ids.ids[np.argmax(known)])} was learned from ratings "
                f"that this model does not hold, because it was made by {made_by}: update the "
                "model that it was made from."
            )


def _rows_first(array: Array) -> Array:
    """Return a view with the ids' axis first; stages, where there are any, come before it."""
    return np.moveaxis(array, max(array.ndim - 2, 0), 0)


def _spread(array: Array, places: IntArray, n: int) -> Array:
    """Return an array for n ids with the given rows at those places."""
    axis = max(array.ndim - 2, 0)
    spread = np.zeros((*array.shape[:axis], n, *array.shape[axis + 1 :]), array.dtype)
    _rows_first(spread)[places] = _rows_first(array)
    return spread
