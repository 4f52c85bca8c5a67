"""Folds in which every label is equally frequent: iterative stratification.

Sechidis, Tsoumakas and Vlahavas, "On the stratification of multi-label data", ECML PKDD 2011.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from marginmf._utils.indicators import as_indicator, counts
from marginmf._utils.random import as_generator
from marginmf._utils.types import Float64Array, IntArray
from marginmf.protocols.base import TwoWay


@dataclass(frozen=True)
class IterativeStratifiedKFold(TwoWay):
    """Every sample is held out once, and every label is equally frequent in all folds.

    With folds at random, a label with few positives is missing from some of them: nothing to learn
    from, or nothing to be judged on.  Here the rarest label is dealt out first, each of its samples
    to the fold that wants that label most, then the rarest of what remains, and so on (Sechidis et
    al., 2011).  Fold sizes differ by one at most: unlike in the paper, a fold that is full takes no
    more.  The order of the labels does not matter.

    It is a scikit-learn splitter, good for ``cross_val_score(..., cv=...)`` and ``GridSearchCV``.

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

    def split(self, X: Any, y: Any, groups: Any = None) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield (train, test) row numbers.

        Parameters
        ----------
        X : array, sparse matrix, data frame or list
            The samples; only their number matters.
        y : indicator table of shape (n_samples, n_labels)
            Their label sets, dense or sparse.
        groups : object
            Not used.
        """
        hint = "for one class a sample there is scikit-learn's StratifiedKFold."
        labels = as_indicator(y, "y", hint)
        self._check(X, labels.shape[0])
        folds = _stratified(labels, self.n_splits, as_generator(self.random_state))
        for fold in range(self.n_splits):
            yield np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)

    def _check(self, X: Any, n_rows: int) -> None:
        n = self.n_splits
        if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 2:
            raise ValueError(f"n_splits={n!r} is not a number of folds. Give a whole number >= 2.")
        if n > n_rows:
            raise ValueError(f"n_splits={n} folds need as many samples, but there are {n_rows}.")
        n_samples = X.shape[0] if hasattr(X, "shape") else len(X)
        if n_samples != n_rows:
            raise ValueError(f"X has {n_samples} rows but y has {n_rows}.")


def _stratified(labels: Any, n_folds: int, rng: np.random.Generator) -> IntArray:
    """Return the fold of every row."""
    n_rows, by_label = labels.shape[0], labels.tocsc()
    folds = np.full(n_rows, -1)
    room = n_rows // n_folds + (rng.permutation(n_folds) < n_rows % n_folds)
    remaining = counts(labels, 0)
    wanted = np.tile(remaining / n_folds, (n_folds, 1))
    # Of labels that are equally rare, one is taken at random, by a number that depends on who has
    # it and not on its place: so the order of the labels does not matter.  The sums wrap around,
    # which keeps them uniform: else labels that are frequent in all would have larger ones.
    lots = labels.T @ rng.integers(2**64, size=n_rows, dtype=np.uint64)
    while remaining.any():
        rarest = np.flatnonzero(remaining == remaining[remaining > 0].min())
        label = rarest[np.argmin(lots[rarest])]
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

    Of several, it is the one with the most room, and of several of these, one at random.  Which
    samples they are plays no part, so their other labels can be counted afterwards, all at once.
    ``room`` is brought up to date.
    """
    wishes, rooms, dealt = wanted.tolist(), room.tolist(), []
    for lots in rng.random((n, len(rooms))).tolist():
        open_folds = (fold for fold, left in enumerate(rooms) if left > 0)
        chosen = max(open_folds, key=lambda j: (wishes[j], rooms[j], lots[j]))
        wishes[chosen] -= 1
        rooms[chosen] -= 1
        dealt.append(chosen)
    room[:] = rooms
    return np.array(dealt, np.int64)
