"""Splitters: which rows a model learns from, and which it is judged on."""

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from sklearn.model_selection import KFold as _KFold
from sklearn.model_selection import ShuffleSplit

from marginmf._utils.indicators import as_indicator, counts
from marginmf._utils.parameters import check_whole
from marginmf._utils.random import as_generator
from marginmf._utils.types import Array, Float64Array, IntArray
from marginmf.datasets import RatingsTable
from marginmf.datasets.files.columns import find_time_column, listed
from marginmf.datasets.files.convert import as_times
from marginmf.ratings.ids import IdIndex
from marginmf.ratings.tables import (
    column_labels,
    count_rows,
    is_table,
    split_pairs,
    table_columns,
)

#: The row numbers to learn from and to be judged on, split by split.
TrainTest = Iterator[tuple[IntArray, IntArray]]


class SplitProtocol(Protocol):
    """What `evaluate` and `compare` need of a protocol."""

    def split(self, pairs: Any, ratings: Any = None) -> Iterator[tuple[IntArray, ...]]:
        """Yield arrays of row numbers: (train, test) or (train, fold_in, test)."""


@dataclass(frozen=True)
class TwoWay:
    """A protocol that yields (train, test), as scikit-learn's splitters do."""

    n_splits: int = 3
    random_state: Any = 0

    def get_n_splits(self, X: Any = None, y: Any = None, groups: Any = None) -> int:
        """Return how many splits there are (for scikit-learn)."""
        return self.n_splits

    def _split_by(self, splitter: type[Any], data: Any, **options: Any) -> TrainTest:
        """Yield the splits of one of scikit-learn's splitters."""
        seed = int(as_generator(self.random_state).integers(2**31))
        splits = splitter(self.n_splits, random_state=seed, **options)
        yield from splits.split(np.empty(n_rows(data)))


@dataclass(frozen=True)
class HoldOut(TwoWay):
    """A random share of all rows is held out.

    >>> train, test = next(HoldOut(test_size=0.25).split([("a", "x")] * 8))
    >>> len(train), len(test)
    (6, 2)
    """

    test_size: float = 0.2

    def split(self, pairs: Any, ratings: Any = None, groups: Any = None) -> TrainTest:
        """Yield (train, test) row numbers."""
        return self._split_by(ShuffleSplit, pairs, test_size=self.test_size)


@dataclass(frozen=True)
class KFold(TwoWay):
    """Every row is held out once, in one of ``n_splits`` random folds."""

    def split(self, pairs: Any, ratings: Any = None, groups: Any = None) -> TrainTest:
        """Yield (train, test) row numbers."""
        return self._split_by(_KFold, pairs, shuffle=True)


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

    def split(self, pairs: Any, ratings: Any = None, groups: Any = None) -> TrainTest:
        """Yield (train, test) row numbers."""
        rng, users = as_generator(self.random_state), _user_codes(pairs)
        for _ in range(self.n_splits):
            test = _random_rows_of_each(users, self.held_out, rng)
            yield np.setdiff1d(np.arange(len(users)), test), test


@dataclass(frozen=True)
class TimeSplit(TwoWay):
    """The latest ratings are held out: the model learns from the past and predicts the future.

    Ratings are cut at one moment, and all ratings of a moment are on the same side, so the share is
    only about ``test_size``.  Users and items that occur after the cut alone are unknown to the
    model.  Their ratings are tested all the same, on what ``predict`` falls back on for them: how
    often each level was used by the user or for the item that is known, or by all.

    With ``per_user`` the latest ratings of each user are held out instead.  All users are known
    then, but a model may learn what others thought later.  Users with no more ratings than are held
    out stay in training whole; which of several ratings at one time are held out is random, and the
    order of the rows does not matter.

    Parameters
    ----------
    n_splits : int
        How many windows are held out, one after the other: the last one ends with the latest
        rating, and each is predicted from everything before it (expanding windows).
    random_state : int, Generator, RandomState or None
        The seed for ratings at the same time; without ``per_user`` nothing is random.
    test_size : float or int
        The length of a window: a share of all ratings, or how many.  With ``per_user``, a share of
        the ratings of each user, or how many, such as 1 for the last one.
    per_user : bool
        Hold out the latest ratings of each user.

    Examples
    --------
    >>> pairs = [("ann", "x"), ("bob", "x"), ("ann", "y"), ("bob", "z"), ("cy", "x")]
    >>> days = ["2021-03-05", "2021-03-01", "2021-03-02", "2021-03-09", "2021-03-11"]
    >>> for train, test in TimeSplit(test_size=0.4).split(pairs, groups=days):
    ...     print(train, test)
    [0 1 2] [3 4]
    >>> for train, test in TimeSplit(test_size=1, per_user=True).split(pairs, groups=days):
    ...     print(train, test)
    [1 2 4] [0 3]
    """

    n_splits: int = 1
    test_size: float | int = 0.2
    per_user: bool = False

    #: `evaluate` and `compare` give times to protocols that need them.
    needs_times: ClassVar[bool] = True

    def split(self, pairs: Any, ratings: Any = None, groups: Any = None) -> TrainTest:
        """Yield (train, test) row numbers.

        Parameters
        ----------
        pairs : pairs
            (user, item) pairs; a frame may have a column of times too, such as ``timestamp``.
        ratings
            Not used.
        groups : array-like, optional
            The time of each row: numbers, dates or texts such as ``2021-03-05 12:30:00``.  The
            name is scikit-learn's, whose functions pass it on to splitters.
        """
        if groups is None:
            groups, names = time_column(pairs)
            if groups is None:
                raise no_times(names)
        times, n = as_times(groups), n_rows(pairs)
        if len(times) != n:
            raise ValueError(f"There are {n} pairs but {len(times)} times.")
        n_splits, size = check_whole("n_splits", self.n_splits), self.test_size
        if not isinstance(size, float):
            size = check_whole("test_size", size)
        elif not 0 < size < 1:
            raise ValueError(
                f"test_size={size} must be a share between 0 and 1, or a whole number of ratings."
            )
        if n_splits * size >= (1 if isinstance(size, float) else n):
            raise ValueError(
                f"n_splits={n_splits} windows of test_size={size} leave no ratings to train on: "
                "give fewer or shorter ones."
            )
        windows = self._windows_of_users(pairs, times) if self.per_user else self._windows(times)
        for train, test in windows:
            yield np.sort(train), np.sort(test)

    def _windows(self, times: Array) -> TrainTest:
        """Yield rows before a moment, and those from it to the next cut."""
        n, order = len(times), np.argsort(times, kind="stable")
        # Where another moment begins: a cut anywhere else would part ratings of the same time.
        moments = np.flatnonzero(np.diff(times[order])) + 1
        if len(moments) == 0:
            raise ValueError(f"All {n} ratings have the same time: none of them is the latest.")
        share = isinstance(self.test_size, float | np.floating)
        length = self.test_size * n if share else self.test_size
        wanted = n - length * np.arange(self.n_splits, 0, -1)
        nearest = np.abs(moments[:, None] - wanted).argmin(axis=0)
        cuts = [*moments[nearest].tolist(), n]
        if len(set(cuts)) < len(cuts):
            raise ValueError(
                f"The ratings have {len(moments) + 1} different times, too few for "
                f"n_splits={self.n_splits} windows of test_size={self.test_size}."
            )
        for first, last in itertools.pairwise(cuts):
            yield order[:first], order[first:last]

    def _windows_of_users(self, pairs: Any, times: Array) -> TrainTest:
        """Yield the same for each user's own ratings."""
        users, items = (IdIndex(ids).encode(ids) for ids in split_pairs(pairs))
        # Of ratings at one time, those of any item may be last, but each time the same ones.
        rng, n_items = as_generator(self.random_state), int(items.max(initial=0)) + 1
        shifts = rng.integers(n_items, size=int(users.max(initial=0)) + 1)
        tickets = (rng.permutation(n_items)[items] + shifts[users]) % n_items
        order = np.lexsort((tickets, times, users))
        rank, sizes = _ranks_in_groups(users[order])
        length = self.test_size
        held: Any = np.rint(length * sizes) if isinstance(length, float) else length
        for later in range(self.n_splits - 1, -1, -1):
            kept = np.maximum(sizes - later * held, 1)
            known = rank < kept
            tested = known & (kept > held) & (rank >= kept - held)
            yield order[known & ~tested], order[tested]


@dataclass(frozen=True)
class StrongGeneralisation:
    """Some users are held out whole, then folded in: the users are new to the model.

    The model is trained on ``n_train_users`` random users.  Of each of the others, ``held_out``
    ratings are for testing, and the rest fold the user in while the items stay as they are.

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
        sizes = np.bincount(users)
        fewest = max(self.min_ratings, self.held_out + 1)
        eligible = np.flatnonzero(sizes >= fewest)
        n_train = self.n_train_users
        if isinstance(n_train, float):
            n_train = round(n_train * len(eligible))
        if not 0 < n_train < len(eligible):
            raise ValueError(
                f"n_train_users={self.n_train_users!r} leaves {n_train} users to train on and "
                f"{len(eligible) - n_train} to test on, of {len(eligible)} users with at least "
                f"{fewest} ratings: both must be positive."
            )
        for _ in range(self.n_splits):
            is_trained = np.zeros(len(sizes), bool)
            is_trained[rng.permutation(eligible)[:n_train]] = True
            is_new = np.zeros(len(sizes), bool)
            is_new[eligible] = ~is_trained[eligible]
            new_rows = np.flatnonzero(is_new[users])
            test = new_rows[_random_rows_of_each(users[new_rows], self.held_out, rng)]
            yield np.flatnonzero(is_trained[users]), np.setdiff1d(new_rows, test), test


@dataclass(frozen=True)
class IterativeStratifiedKFold(TwoWay):
    """Every sample is held out once, and every label is equally frequent in all folds.

    Random folds may miss a label with few positives.  Here the samples of the rarest label are
    dealt out first, each to the fold that wants that label most, then those of the rarest that
    remains, and so on (Sechidis et al., 2011).  Fold sizes differ by one at most: unlike in the
    paper, a fold that is full takes no more.  The order of the labels does not matter.

    Parameters
    ----------
    n_splits : int
        How many folds.
    random_state : int, Generator, RandomState or None
        The seed; the same int always gives the same folds.

    Examples
    --------
    >>> Y = np.array([[1, 0]] * 3 + [[1, 1]] * 3 + [[0, 0]] * 6)
    >>> splitter = IterativeStratifiedKFold(n_splits=3)
    >>> [Y[test].sum(axis=0).tolist() for train, test in splitter.split(Y, Y)]
    [[2, 1], [2, 1], [2, 1]]
    """

    n_splits: int = 5

    def split(self, X: Any, y: Any, groups: Any = None) -> TrainTest:
        """Yield (train, test) row numbers.

        Parameters
        ----------
        X : array, sparse matrix, data frame or list
            The samples; only their number matters.
        y : indicator table of shape (n_samples, n_labels)
            Their label sets, dense or sparse.
        groups
            Not used.
        """
        hint = "for one class a sample there is scikit-learn's StratifiedKFold."
        labels = as_indicator(y, "y", hint)
        n, n_samples = check_whole("n_splits", self.n_splits, 2), labels.shape[0]
        if n > n_samples:
            raise ValueError(f"n_splits={n} folds need as many samples, but there are {n_samples}.")
        if n_rows(X) != n_samples:
            raise ValueError(f"X has {n_rows(X)} rows but y has {n_samples}.")
        folds = _stratified(labels, self.n_splits, as_generator(self.random_state))
        for fold in range(self.n_splits):
            yield np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)


def _stratified(labels: Any, n_folds: int, rng: np.random.Generator) -> IntArray:
    """Return the fold of every row."""
    n_samples, by_label = labels.shape[0], labels.tocsc()
    folds = np.full(n_samples, -1)
    room = n_samples // n_folds + (rng.permutation(n_folds) < n_samples % n_folds)
    remaining = counts(labels, 0)
    wanted = np.tile(remaining / n_folds, (n_folds, 1))
    # Of labels that are equally rare, one is taken at random, by a number that depends on who has
    # it, so that the order of the labels does not matter.  The sums wrap around, and stay uniform.
    tickets = labels.T @ rng.integers(2**64, size=n_samples, dtype=np.uint64)
    while remaining.any():
        rarest = np.flatnonzero(remaining == remaining[remaining > 0].min())
        label = rarest[np.argmin(tickets[rarest])]
        rows = by_label.indices[by_label.indptr[label] : by_label.indptr[label + 1]]
        rows = rng.permutation(rows[folds[rows] < 0])
        folds[rows] = _deal(len(rows), wanted[:, label], room, rng)
        dealt = labels[rows]
        np.subtract.at(wanted, (np.repeat(folds[rows], counts(dealt, 1)), dealt.indices), 1.0)
        remaining -= counts(dealt, 0)
    rows = np.flatnonzero(folds < 0)
    folds[rows] = _deal(len(rows), np.zeros(n_folds), room, rng)
    return folds


def _deal(n: int, wanted: Float64Array, room: IntArray, rng: np.random.Generator) -> IntArray:
    """Return folds for n samples of one label: always the fold that wants the label most.

    Of several, it is the one with the most room, and of these, one at random.  Which samples they
    are does not matter: their other labels are counted afterwards.  ``room`` is updated in place.
    """
    wishes, rooms, dealt = wanted.tolist(), room.tolist(), []
    for tickets in rng.random((n, len(rooms))).tolist():
        open_folds = (fold for fold, left in enumerate(rooms) if left > 0)
        chosen = max(open_folds, key=lambda j: (wishes[j], rooms[j], tickets[j]))
        wishes[chosen] -= 1
        rooms[chosen] -= 1
        dealt.append(chosen)
    room[:] = rooms
    return np.array(dealt, np.int64)


def n_rows(data: Any) -> int:
    """Return how many rows pairs, features or labels have."""
    if isinstance(data, Mapping):
        return count_rows(data)
    return int(data.shape[0]) if hasattr(data, "shape") else len(data)


def _user_codes(pairs: Any) -> IntArray:
    users = split_pairs(pairs)[0]
    return IdIndex(users, "user").encode(users)


def _random_rows_of_each(users: IntArray, n: int, rng: np.random.Generator) -> IntArray:
    """Return ``n`` random rows of every user who has more than that, in ascending order."""
    n = check_whole("held_out", n)
    order = np.lexsort((rng.random(len(users)), users))
    rank, sizes = _ranks_in_groups(users[order])
    return np.sort(order[(rank < n) & (sizes > n)])


def _ranks_in_groups(codes: IntArray) -> tuple[IntArray, IntArray]:
    """Return, for codes in order, each one's rank among its equals, and how many they are."""
    starts = np.flatnonzero(np.diff(codes, prepend=-1))
    sizes = np.diff(starts, append=len(codes))
    return np.arange(len(codes)) - np.repeat(starts, sizes), np.repeat(sizes, sizes)


def time_column(data: Any) -> tuple[Any, list[str]]:
    """Return the times in a table or frame, None if there are none, and a frame's columns."""
    if isinstance(data, RatingsTable):
        return data.timestamps, []
    if not is_table(data):
        return None, []
    labels = column_labels(data)
    name = find_time_column(list(map(str, labels)))
    return None if name is None else table_columns(data, name)[0], list(map(str, labels))


def no_times(names: Iterable[str]) -> ValueError:
    """Return the error where there are no times; the names are those of a frame's columns."""
    found = f" among the columns {listed(names)}" if names else ""
    return ValueError(
        f"TimeSplit needs the time of every rating, and there is none{found}: give times= (groups= "
        "in scikit-learn), or a frame with a column such as 'timestamp' or 'date'."
    )
