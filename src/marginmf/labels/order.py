"""An order of rows and labels that depends on what they hold, not on where they stand.

Methods that draw random numbers, cluster or make folds do so in this order, so that shuffling
the rows or the labels of a data set changes nothing but the order of the answers.  Sparse and
dense matrices, float32 and float64, give the same order for the same numbers.
"""

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array, issparse

from marginmf._typing import IntArray

Keys = NDArray[np.uint64]

#: Dense rows are hashed in blocks of about this many entries.
BLOCK = 2**20


def row_keys(X: Any) -> Keys:
    """Return a hash of every row: the sum, modulo 2^64, of the hashes of its nonzero entries.

    >>> X = np.array([[0.0, 2.0], [1.0, 0.0], [0.0, 2.0]])
    >>> keys = row_keys(X)
    >>> bool(keys[0] == keys[2]), bool((keys == row_keys(csr_array(X))).all())
    (True, True)
    """
    if issparse(X):
        return _sums(_hashes(X.data, X.indices), X.indptr)
    columns = np.arange(X.shape[1])
    step = max(1, BLOCK // max(1, X.shape[1]))
    blocks = (X[start : start + step] for start in range(0, X.shape[0], step))
    keys = [_hashes(block, columns).sum(axis=1, dtype=np.uint64) for block in blocks]
    return np.concatenate(keys) if keys else np.zeros(0, np.uint64)


def row_order(X: Any) -> IntArray:
    """Return the places of the rows in the order of their keys.

    >>> X = np.random.default_rng(0).normal(size=(5, 3))
    >>> bool((X[row_order(X)] == X[::-1][row_order(X[::-1])]).all())
    True
    """
    return np.argsort(row_keys(X), kind="stable")


def label_order(Y: csr_array, keys: Keys) -> IntArray:
    """Return the places of the labels in an order given by the rows that have them.

    Parameters
    ----------
    Y : csr_array
        The indicator of the labels.
    keys : array
        The keys of the rows.
    """
    return np.argsort(_label_keys(Y, keys), kind="stable")


def sample_order(X: Any, Y: csr_array) -> IntArray:
    """Return the places of the rows in the order of their keys, of equal rows by their labels.

    Data sets hold rows with the same features and other labels.  The order of the labels does not
    matter, as these are told apart by the rows that have them.

    >>> X, Y = np.array([[1.0], [1.0], [2.0]]), csr_array([[0.0, 1.0], [1.0, 1.0], [1.0, 0.0]])
    >>> order, other = sample_order(X, Y), sample_order(X[::-1], csr_array(Y[::-1, ::-1]))
    >>> bool((Y.toarray()[order] == Y.toarray()[::-1][other]).all())
    True
    """
    keys = row_keys(X)
    of_labels = _mixed(_label_keys(Y, keys))
    return np.lexsort((_sums(of_labels[Y.indices], Y.indptr), keys))


def _label_keys(Y: csr_array, keys: Keys) -> Keys:
    columns = Y.tocsc()
    return _sums(_mixed(keys)[columns.indices], columns.indptr)


class ContentOrder(NamedTuple):
    """Where to take rows and labels from; labels of one kind belong to the same rows."""

    rows: IntArray
    labels: IntArray
    kinds: IntArray


def content_order(X: Any, Y: csr_array) -> ContentOrder:
    """Return the order of rows and labels together: equal rows of X come in that of their labels.

    Parameters
    ----------
    X : array or csr_array of shape (n_samples, n_features)
        The features.
    Y : csr_array of shape (n_samples, n_labels)
        The indicator of the labels.

    Returns
    -------
    ContentOrder
        ``X[rows]`` and ``Y[rows][:, labels]`` are the same however rows and labels were shuffled;
        only what is equal may change places.  ``kinds`` numbers the different labels in this
        order.

    Examples
    --------
    >>> X, Y = np.ones((3, 1)), csr_array([[1.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    >>> ours, shuffled = content_order(X, Y), content_order(X[::-1], Y[::-1][:, [2, 0, 1]])
    >>> one, other = Y[ours.rows][:, ours.labels], Y[::-1][shuffled.rows][:, [2, 0, 1]]
    >>> bool((one != other[:, shuffled.labels]).nnz)
    False
    """
    features, columns = row_keys(X), Y.tocsc()
    rows = features
    # Equal rows are told apart by their labels, and labels by their rows: each round carries a
    # difference one step further.
    for _ in range(3):
        labels = _mixed(_sums(_mixed(rows)[columns.indices], columns.indptr))
        rows = _mixed(features ^ _mixed(_sums(labels[Y.indices], Y.indptr)))
    order = np.argsort(labels, kind="stable")
    kinds = np.unique(labels[order], return_inverse=True)[1]
    return ContentOrder(np.argsort(rows, kind="stable"), order, kinds)


def _hashes(values: Any, columns: IntArray) -> Keys:
    """Return a hash of every entry and its column; nothing for zeros, which may not be stored."""
    bits = np.ascontiguousarray(values, np.float64).view(np.uint64)
    hashes = _mixed(bits ^ _mixed(columns.astype(np.uint64) + np.uint64(1)))
    hashes[values == 0] = 0
    return hashes


def _mixed(x: Keys) -> Keys:
    """Scatter 64-bit numbers: the finaliser of SplitMix64 (Steele, Lea and Flood, 2014)."""
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    mixed: Keys = x ^ (x >> np.uint64(31))
    return mixed


def _sums(hashes: Keys, indptr: IntArray) -> Keys:
    """Add up the hashes of each row; unsigned sums wrap round, so differences of them are exact."""
    running = np.concatenate([np.zeros(1, np.uint64), np.cumsum(hashes, dtype=np.uint64)])
    sums: Keys = running[indptr[1:]] - running[indptr[:-1]]
    return sums
