"""Which labels belong together?  Groups from the counts of how often labels occur together."""

import threading
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.sparse import coo_array, csr_array
from sklearn.base import clone
from sklearn.cluster import SpectralClustering
from sklearn.exceptions import ConvergenceWarning

from marginmf._utils.random import as_generator
from marginmf._utils.types import Float64Array, IntArray
from marginmf.labels.algebra.grams import BLOCK, LabelGram

#: The neighbour whose distance is a label's own scale (Zelnik-Manor and Perona, 2004).
SCALE_NEIGHBOUR = 7
#: More different labels than this are connected with their nearest ones alone.
MOST_CONNECTED = 2000
N_NEIGHBOURS = 20

_quiet = threading.Lock()


def group_labels(gram: LabelGram, n_groups: int, grouping: Any, random_state: Any) -> IntArray:
    """Return the group of every label.

    Groups of a clustering are numbered from the largest to the smallest, and among equals by their
    first label; labels that no row tells apart are in one group.

    Parameters
    ----------
    gram : LabelGram
        How often labels occur together.
    n_groups : int
        How many groups a spectral clustering makes; no more than there are different labels.
    grouping : "spectral", clusterer or array of int
        See `marginmf.labels.GroPLE`.
    random_state : int, Generator or None
        Seeds a spectral clustering.

    Examples
    --------
    >>> Y = csr_array(np.repeat(np.eye(2), 3, axis=1))  # labels 0-2, and 3-5, always go together
    >>> group_labels(LabelGram.of(Y), 2, "spectral", 0)
    array([0, 0, 0, 1, 1, 1])
    """
    n_labels = len(gram.counts)
    if not is_clusterer(grouping) and not isinstance(grouping, str):
        return given_groups(grouping, n_labels)
    firsts, index = distinct_labels(gram)
    distinct = gram.taken(firsts)
    if isinstance(grouping, str):
        found = spectral_groups(distinct, min(n_groups, len(firsts)), random_state)
    else:
        found = clustered(distinct, grouping)
    return _numbered(found[index])


def check_grouping(grouping: Any) -> None:
    """Raise a sentence unless a grouping is known, a clusterer, or one number for each label."""
    if isinstance(grouping, str):
        if grouping != "spectral":
            raise ValueError(
                f"grouping={grouping!r} is not known. Choose 'spectral', give a scikit-learn "
                "clusterer such as AgglomerativeClustering(10), or each label's group as a number."
            )
    elif not is_clusterer(grouping):
        given_groups(grouping, None)


def is_clusterer(grouping: Any) -> bool:
    """Return whether something clusters as scikit-learn's clusterers do."""
    return hasattr(grouping, "fit_predict") and not isinstance(grouping, type)


def given_groups(grouping: Any, n_labels: int | None) -> IntArray:
    """Return groups that were given as whole numbers, one for each label."""
    groups = np.asarray(grouping)
    if groups.dtype.kind not in "iu" or groups.ndim != 1 or (groups < 0).any():
        raise ValueError(
            f"grouping={grouping!r} is neither 'spectral', nor a clusterer, nor a list of whole "
            "numbers >= 0: the group of each label."
        )
    if n_labels is not None and len(groups) != n_labels:
        raise ValueError(
            f"grouping gives the groups of {len(groups)} labels, but there are {n_labels}."
        )
    return groups


def distinct_labels(gram: LabelGram) -> tuple[IntArray, IntArray]:
    """Return the first of all labels that the same rows have, and for each label its index there.

    >>> distinct_labels(LabelGram.of(csr_array([[1.0, 1.0, 0.0], [0.0, 0.0, 1.0]])))
    (array([0, 2]), array([0, 0, 1]))
    """
    counts, entries = gram.counts, gram.together.tocoo()
    # Columns are equal where as many rows have both as have either.
    same = (entries.data == counts[entries.row]) & (entries.data == counts[entries.col])
    first = np.arange(len(counts))
    np.minimum.at(first, entries.row[same], entries.col[same])
    empty = np.flatnonzero(counts == 0)
    first[empty] = empty[:1]
    return np.unique(first, return_inverse=True)


def affinities(gram: LabelGram) -> Float64Array | csr_array:
    """Return the self-tuning heat kernel ``exp(-|y_i - y_j|^2 / (s_i s_j))`` of label columns.

    ``s_i`` is the distance of label i from its seventh neighbour.  Of more than 2,000 labels only
    the nearest neighbours are connected, in a sparse matrix.
    """
    n_labels = len(gram.counts)
    scales = np.concatenate([_scales(squares) for _, squares in _distances(gram)])
    if n_labels <= MOST_CONNECTED:
        (_, squares), *_ = _distances(gram, n_labels)
        kernel: Float64Array = np.exp(-squares / np.outer(scales, scales))
        return kernel
    rows, columns, values = [], [], []
    for labels, squares in _distances(gram):
        near = np.argpartition(squares, N_NEIGHBOURS, axis=1)[:, : N_NEIGHBOURS + 1]
        own = np.take_along_axis(squares, near, axis=1)
        rows.append(np.repeat(labels, near.shape[1]))
        columns.append(near.ravel())
        values.append(np.exp(-own / (scales[labels][:, None] * scales[near])).ravel())
    # scikit-learn takes indices of 32 bits alone.
    cells = tuple(np.concatenate(part).astype(np.int32) for part in (rows, columns))
    nearest = csr_array(coo_array((np.concatenate(values), cells), shape=(n_labels, n_labels)))
    # Near is near both ways.
    return csr_array(nearest.maximum(nearest.T))


def spectral_groups(gram: LabelGram, n_groups: int, random_state: Any) -> IntArray:
    """Cluster labels that are all different, given how often they occur together."""
    n_labels = len(gram.counts)
    if n_groups <= 1 or n_groups >= n_labels:
        return np.arange(n_labels) if n_groups >= n_labels else np.zeros(n_labels, np.int64)
    seed = int(as_generator(random_state).integers(2**31))
    clusterer = SpectralClustering(n_groups, affinity="precomputed", random_state=seed)
    return _quietly(clusterer, affinities(gram))


def clustered(gram: LabelGram, clusterer: Any) -> IntArray:
    """Cluster labels with a clusterer that was given, which is not changed.

    One whose ``affinity`` is "precomputed" sees the heat kernel, one whose ``metric`` is, the
    distances of the label columns.  Others see a table with a row for each label whose rows are as
    far from each other as the label columns are, whatever the number of samples.
    """
    fresh = clone(clusterer)
    params = fresh.get_params()
    n_labels = len(gram.counts)
    if isinstance(params.get("n_clusters"), int) and params["n_clusters"] > n_labels:
        fresh.set_params(n_clusters=n_labels)
    if n_labels == 1:
        return np.zeros(1, np.int64)
    if params.get("affinity") == "precomputed":
        return _quietly(fresh, affinities(gram))
    if params.get("metric") == "precomputed":
        (_, squares), *_ = _distances(gram, n_labels)
        return _quietly(fresh, np.sqrt(squares))
    values, vectors = np.linalg.eigh(gram.together.toarray())
    return _quietly(fresh, vectors * np.sqrt(np.maximum(values, 0.0)))


def _quietly(clusterer: Any, table: Any) -> IntArray:
    """Cluster; that labels fall apart into unconnected parts is nothing to warn of."""
    # What is to be ignored is the same for all threads: one after the other.
    with _quiet, warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Graph is not fully connected")
        warnings.simplefilter("ignore", ConvergenceWarning)
        return np.asarray(clusterer.fit_predict(table), np.int64)


def _distances(gram: LabelGram, size: int = 0) -> Iterator[tuple[IntArray, Float64Array]]:
    """Return some labels and their squared distances from all labels, part by part."""
    counts, n_labels = gram.counts, len(gram.counts)
    size = size or max(1, BLOCK // n_labels)
    for start in range(0, n_labels, size):
        labels = np.arange(start, min(start + size, n_labels))
        together = gram.together[labels].toarray()
        yield labels, counts[labels][:, None] + counts - 2.0 * together


def _scales(squares: Float64Array) -> Float64Array:
    """Return the distances from the seventh neighbour, or the first at all where that is zero."""
    neighbour = min(SCALE_NEIGHBOUR, squares.shape[1] - 1)
    scales = np.partition(squares, neighbour, axis=1)[:, neighbour]
    equal = scales == 0
    if equal.any():
        others = np.where(squares[equal] > 0, squares[equal], np.inf).min(axis=1)
        scales[equal] = np.where(np.isfinite(others), others, 1.0)
    return np.sqrt(scales)


def _numbered(groups: IntArray) -> IntArray:
    """Give groups numbers from the largest to the smallest, and among equals by first label."""
    _, firsts, codes, sizes = np.unique(
        groups, return_index=True, return_inverse=True, return_counts=True
    )
    rank = np.empty(len(sizes), np.int64)
    rank[np.lexsort((firsts, -sizes))] = np.arange(len(sizes))
    return rank[codes]
