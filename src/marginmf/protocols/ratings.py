"""Protocols for ratings: at random, user by user, or with new users."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import KFold as _KFold
from sklearn.model_selection import ShuffleSplit

from marginmf._utils.random import as_generator
from marginmf._utils.types import IntArray
from marginmf.metrics import ratings_report
from marginmf.protocols.base import TwoWay
from marginmf.protocols.lists import ListRule, judge_lists
from marginmf.protocols.splits import SplitProtocol, fit_split, n_rows, split_ratings
from marginmf.ratings.ids import IdIndex
from marginmf.ratings.positive import PositiveOnly
from marginmf.ratings.tables import split_pairs


@dataclass(frozen=True)
class HoldOut(TwoWay):
    """A random share of all ratings is held out.

    >>> train, test = next(HoldOut(test_size=0.25).split([("a", "x")] * 8))
    >>> len(train), len(test)
    (6, 2)
    """

    test_size: float = 0.2

    def split(
        self, pairs: Any, ratings: Any = None, groups: Any = None
    ) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield (train, test) row numbers."""
        seed = int(as_generator(self.random_state).integers(2**31))
        splitter = ShuffleSplit(self.n_splits, test_size=self.test_size, random_state=seed)
        yield from splitter.split(np.empty(n_rows(pairs)))


@dataclass(frozen=True)
class KFold(TwoWay):
    """Every rating is held out once, in one of ``n_splits`` random parts."""

    def split(
        self, pairs: Any, ratings: Any = None, groups: Any = None
    ) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield (train, test) row numbers."""
        seed = int(as_generator(self.random_state).integers(2**31))
        splitter = _KFold(self.n_splits, shuffle=True, random_state=seed)
        yield from splitter.split(np.empty(n_rows(pairs)))


@dataclass(frozen=True)
class WeakGeneralisation(TwoWay):
    """Some random ratings of every user are held out: the users are known to the model.

    Users with no more ratings than are held out stay in training whole.

    >>> pairs = [("ann", 1), ("ann", 2), ("bob", 1), ("bob", 3), ("cy", 1)]
    >>> train, test = next(WeakGeneralisation(n_splits=1).split(pairs))
    >>> len(train), [pairs[k][0] for k in test]
    (3, ['ann', 'bob'])
    """

    held_out: int = 1

    def split(
        self, pairs: Any, ratings: Any = None, groups: Any = None
    ) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield (train, test) row numbers."""
        rng, users = as_generator(self.random_state), _user_codes(pairs)
        for _ in range(self.n_splits):
            test = _random_rows_of_each(users, self.held_out, rng)
            yield np.setdiff1d(np.arange(len(users)), test), test


@dataclass(frozen=True)
class StrongGeneralisation:
    """Some users are held out whole, then folded in: the users are new to the model.

    The model is trained on ``n_train_users`` random users.  Of each of the others, ``held_out``
    ratings are for testing and the rest place the user while the items stay as they are.

    Parameters
    ----------
    n_train_users : int or float
        How many users to train on, or which share of them.
    held_out : int
        How many ratings of each new user to test on.
    min_ratings : int
        Users with fewer ratings are dropped.
    n_splits, random_state
        How many random splits, and their seed.

    Examples
    --------
    >>> pairs = [(user, item) for user in range(10) for item in range(20)]
    >>> train, fold_in, test = next(StrongGeneralisation(n_train_users=8).split(pairs))
    >>> len(train), len(fold_in), len(test)
    (160, 38, 2)
    """

    n_train_users: int | float = 0.8
    held_out: int = 1
    min_ratings: int = 20
    n_splits: int = 3
    random_state: Any = 0

    def split(
        self, pairs: Any, ratings: Any = None
    ) -> Iterator[tuple[IntArray, IntArray, IntArray]]:
        """Yield (train, fold_in, test) row numbers."""
        rng, users = as_generator(self.random_state), _user_codes(pairs)
        counts = np.bincount(users)
        eligible = np.flatnonzero(counts >= max(self.min_ratings, self.held_out + 1))
        n_train = self.n_train_users
        if isinstance(n_train, float):
            n_train = round(n_train * len(eligible))
        if not 0 < n_train < len(eligible):
            raise ValueError(
                f"n_train_users={self.n_train_users!r} leaves {n_train} users to train on and "
                f"{len(eligible) - n_train} to test on, of {len(eligible)} users with at least "
                f"{self.min_ratings} ratings: both must be positive."
            )
        for _ in range(self.n_splits):
            is_trained = np.zeros(len(counts), bool)
            is_trained[rng.permutation(eligible)[:n_train]] = True
            is_new = np.zeros(len(counts), bool)
            is_new[eligible] = ~is_trained[eligible]
            new_rows = np.flatnonzero(is_new[users])
            test = new_rows[_random_rows_of_each(users[new_rows], self.held_out, rng)]
            yield np.flatnonzero(is_trained[users]), np.setdiff1d(new_rows, test), test


def evaluate(
    model: Any,
    pairs: Any,
    ratings: Any,
    protocol: SplitProtocol,
    *,
    lists: ListRule | None = None,
    user_features: Any = None,
    item_features: Any = None,
) -> list[dict[str, float]]:
    """Fit a fresh copy of a model on every split and return its errors there.

    Parameters
    ----------
    model : estimator
        What to judge; it is cloned, not changed.
    pairs, ratings
        All the data.  Ratings may be None where there are none, for methods that make lists from
        who has what.
    protocol : HoldOut, KFold, WeakGeneralisation or StrongGeneralisation
        How to split it.
    lists : ListRule, optional
        Judge the lists of `recommend` by this rule instead of the predicted ratings.
    user_features, item_features : optional
        Side information of all of them, as in ``fit``.

    Returns
    -------
    list of dict
        One `ratings_report` for each split; with ``lists``, one `ListScores.report`.

    Examples
    --------
    >>> from marginmf.datasets import make_ratings
    >>> from marginmf.ratings import BiasOnly
    >>> data = make_ratings(30, 30, random_state=0)
    >>> len(evaluate(BiasOnly(), data.pairs, data.ratings, WeakGeneralisation()))
    3
    """
    if lists is None and isinstance(model, PositiveOnly):
        raise ValueError(
            f"{type(model).__name__} makes lists and predicts no ratings: judge it with "
            "lists=ListRule()."
        )
    reports = []
    for split in split_ratings(pairs, ratings, protocol, user_features, item_features):
        if lists is not None:
            lists.threshold(split.train)  # a fault is found before a fit
        fitted, _ = fit_split(model, split)
        test = split.test_pairs, split.test_ratings
        if lists is not None:
            reports.append(judge_lists(fitted, *test, lists, training=split.train).report())
        else:
            predicted = fitted.predict(split.test_pairs)
            reports.append(ratings_report(split.test_ratings, predicted, split.train.levels))
    return reports


def _user_codes(pairs: Any) -> IntArray:
    users = split_pairs(pairs)[0]
    return IdIndex(users, "user").encode(users)


def _random_rows_of_each(users: IntArray, n: int, rng: np.random.Generator) -> IntArray:
    """Return ``n`` random rows of every user who has more than that, in ascending order."""
    order = np.lexsort((rng.random(len(users)), users))
    starts = np.flatnonzero(np.diff(users[order], prepend=-1))
    counts = np.diff(starts, append=len(users))
    place = np.arange(len(users)) - np.repeat(starts, counts)
    chosen = (place < n) & (np.repeat(counts, counts) > n)
    return np.sort(order[chosen])
