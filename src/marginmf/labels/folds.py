"""Folds inside the training rows, which do not depend on the order of the rows."""

from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from marginmf._typing import IntArray
from marginmf.labels.order import row_order, sample_order


class Fold(NamedTuple):
    """Places of the rows to learn from, and of the rows held out."""

    train: IntArray
    test: IntArray


def inner_folds(X: Any, n_folds: int, Y: csr_array | None = None) -> list[Fold]:
    """Deal the rows out to folds in an order of their own; as many folds as there are rows at most.

    Rows with the same features are told apart by their labels, if these are given.

    >>> [fold.test.size for fold in inner_folds(np.eye(7), 3)]
    [3, 2, 2]
    """
    order = row_order(X) if Y is None else sample_order(X, Y)
    # Rows held out stay in this order, so that whatever is done batch by batch is the same too.
    parts = [order[k::n_folds] for k in range(min(n_folds, len(order)))]
    everything = np.arange(len(order))
    return [Fold(np.setdiff1d(everything, part, assume_unique=True), part) for part in parts]
