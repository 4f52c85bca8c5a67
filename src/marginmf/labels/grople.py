"""GroPLE: labels embedded so that groups stay together, and features mapped onto them."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar
from zlib import crc32

import numpy as np
from scipy.sparse import coo_array, csr_array, issparse
from sklearn.base import clone
from sklearn.cluster import SpectralClustering

from marginmf._utils import saved as _demands
from marginmf._utils.parameters import check_callbacks, check_n_jobs, check_number, n_threads
from marginmf._utils.random import as_generator
from marginmf._utils.saved import HISTORY
from marginmf._utils.types import Float64Array, IntArray
from marginmf.checkpoints import OpenCheckpoint
from marginmf.labels.algebra.clusters import quietly
from marginmf.labels.algebra.embedding import Factorisation, LabelEmbedding, fit_feature_map
from marginmf.labels.algebra.matrices import (
    BLOCK,
    LabelGram,
    cross_product,
    feature_moments,
    normal_matrix,
    prepare_products,
)
from marginmf.labels.base import LabelsEstimator, method
from marginmf.labels.linear import LabelSpaceTransformer
from marginmf.labels.order import Fold
from marginmf.progress import progress_bar
from marginmf.solvers import Callback, Result, Stopping

#: Of sparse features the constant ones are left out where less than this share varies.
FEW = 0.9
#: Sums of squares above this are kept in float64.
LARGE = 1e30
#: The neighbour whose distance is a label's own scale (Zelnik-Manor and Perona, 2004).
SCALE_NEIGHBOUR = 7
#: More different labels than this are connected with their nearest ones alone.
MOST_CONNECTED = 2000
N_NEIGHBOURS = 20


@method("grople")
@dataclass(eq=False, repr=False)
class GroPLE(LabelSpaceTransformer):
    """Group preserving label embedding (Kumar's thesis, chapter 6).

    Labels are put into groups that occur together.  Then the label matrix is factorised, such
    that the labels of a group use the same few factors; and a sparse linear map from the features
    to the factors is learned.  Scores are the product of the two.

    Everything follows from the products ``X^T X``, ``X^T Y`` and ``Y^T Y``: once these are known,
    more rows cost nothing.  Features and labels are centred inside; sparse features are never
    made dense.

    Parameters
    ----------
    n_factors : int
        The dimension of the embedding; no more than the rank of the label matrix is used.
    n_groups : int
        How many groups of labels a spectral clustering makes.
    reg_basis : float
        The penalty on the squared norm of the embedded rows (lambda_1 of the thesis).
    reg_group : float
        The group penalty on the labels' factors (lambda_2).
    reg_corr : float
        The penalty that keeps the maps to related factors alike (alpha).  The matrix behind it is
        projected on the positive semi-definite ones: else the problem may have no solution.
    reg_sparse : float
        The l1 penalty on the map from the features (beta).  The default comes within 3 % of the
        best strength's accuracy on each of 15 benchmark data sets (features from 0 to 1), with a
        threshold chosen by cross-validation.
    grouping : "spectral", clusterer or sequence of int
        How labels are grouped: by spectral clustering with a self-tuning heat kernel; by any
        scikit-learn clusterer, which sees that kernel if its ``affinity`` is "precomputed", the
        distances of the labels if its ``metric`` is, and else a row for each label; or by the
        number of each label's group.
    max_iter : int
        The most iterations of each of the two stages.
    tol : float
        The first stage stops when a turn lowers its objective by less than this share of what it
        would be without any factors, the second when a step is shorter than this share of the map.
    dtype : {"float32", "float64"}
        The precision in which the map from the features is found.
    random_state : int, Generator or None
        Seeds the spectral clustering; everything else is deterministic.
    n_jobs : int or None
        Threads, as in scikit-learn: None is one, -1 is all.  Thresholds are chosen on folds, whose
        models are learned side by side with the final one; the result does not depend on it.
    verbose : bool
        Show a progress bar.
    callbacks : sequence of callable
        Called with a `marginmf.solvers.Progress` after every iteration of both stages, also on the
        folds; returning True stops that stage.

    Attributes
    ----------
    label_groups_ : array of shape (n_labels,)
        The group of every label, from the largest group on.
    history_ : list of list of Record
        For the labels' stage and the features' stage, the objective after every iteration.
    n_iter_ : int
        How many iterations the longer one of the stages took.
    stop_reason_ : list of str
        Why the stages stopped.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=200, n_classes=6, random_state=0)
    >>> model = GroPLE(n_factors=5, n_groups=3, random_state=0).fit(X, Y)
    >>> model.predict(X).shape, model.transform(X).shape, model.label_groups_.shape
    ((200, 6), (200, 5), (6,))
    """

    n_factors: int = 100
    n_groups: int = 10
    reg_basis: float = 1e-3
    reg_group: float = 1.0
    reg_corr: float = 0.0
    reg_sparse: float = 3.0
    grouping: Any = "spectral"
    _: KW_ONLY
    max_iter: int = 100
    tol: float = 1e-3
    dtype: str = "float32"
    random_state: Any = None
    n_jobs: int | None = None
    verbose: bool = False
    callbacks: Sequence[Callback] = ()

    _saved: ClassVar[dict[str, Any]] = {**HISTORY, "label_groups_": _demands.counts("labels")}

    def _learn(self, X: Any, Y: csr_array, tuned: bool) -> None:
        if not tuned or self._n_threads() == 1:
            super()._learn(X, Y, tuned)
            return
        # A copy for the folds, made before the final fit draws from a generator that they share.
        tuner = clone(self)
        tuner._checkpoint, tuner.targets_ = self._checkpoint, self.targets_
        # All rows in one thread, the folds of them in the others.
        with ThreadPoolExecutor(1) as pool:
            whole = pool.submit(self._fit_in_order, X, Y)
            tuning = tuner._tune(tuner._hold_out(X, Y), Y)
            whole.result()
        self._set_rule(tuning, Y)

    def _fit_each(self, X: Any, Y: csr_array, folds: list[Fold]) -> Iterator[LabelsEstimator]:
        if self._n_threads() <= 2:
            yield from super()._fit_each(X, Y, folds)
            return
        with ThreadPoolExecutor(min(self._n_threads() - 1, len(folds))) as pool:
            yield from pool.map(partial(self._fit_fold, X, Y, folds), range(len(folds)))

    def _n_threads(self) -> int:
        """How many fits are made side by side: one, if each of them shows a progress bar."""
        return 1 if self.verbose else n_threads(self.n_jobs)

    def _fit(self, X: Any, Y: csr_array) -> None:
        with progress_bar("GroPLE", 2, self.verbose) as progress:

            def report(stage: str) -> list[Callback]:
                return [*self.callbacks, *progress(stage)]

            gram = LabelGram.of(Y)
            groups = self._groups(gram)
            by_group = np.argsort(groups, kind="stable")
            starts = np.flatnonzero(np.diff(groups[by_group], prepend=groups.min() - 1))
            # Other groups, which a clusterer without a seed may find, are another problem.
            checkpoint = self._checkpoint.scope(f"groups {crc32(groups.tobytes()):08x}")
            problem = LabelEmbedding(
                gram.take(by_group), starts.tolist(), float(self.reg_basis), float(self.reg_group)
            )
            stopping = Stopping(max_iter=self.max_iter, tol=self.tol)
            labels = problem.minimise(self.n_factors, stopping, report("labels"), checkpoint)
            features = self._map_features(
                X, Y[:, by_group], labels.point, report("features"), checkpoint
            )
        self.label_groups_ = groups
        self.label_factors_ = np.empty_like(labels.point.factors)
        self.label_factors_[:, by_group] = labels.point.factors
        self.label_means_ = gram.means
        self.history_ = [labels.history, features.history]
        self.n_iter_ = max(labels.n_iter, features.n_iter)
        self.stop_reason_ = [str(labels.reason), str(features.reason)]

    def _groups(self, gram: LabelGram) -> IntArray:
        if isinstance(self.grouping, str) or is_clusterer(self.grouping):
            seed = self._checkpoint.generator("groups", self.random_state)
            return group_labels(gram, self.n_groups, self.grouping, seed)
        given = given_groups(self.grouping, self._seen.n_labels)
        return given[self._seen.labels].astype(np.int64)

    def _map_features(
        self,
        X: Any,
        Y: csr_array,
        labels: Factorisation,
        callbacks: Sequence[Callback],
        checkpoint: OpenCheckpoint,
    ) -> Result:
        self.feature_means_, squares = feature_moments(X)
        self.feature_map_ = np.zeros((X.shape[1], len(labels.factors)))
        varying = np.arange(X.shape[1])
        if issparse(X) and 0.0 < np.mean(squares > 0) < FEW:
            varying = np.flatnonzero(squares)
            X = X[:, varying]
        X, moments = prepare_products(X, (self.feature_means_[varying], squares[varying]))
        # Squares of very large numbers are beyond float32.
        dtype = np.dtype(self.dtype if squares.max() < LARGE else "float64")
        # Factors that no label uses are mapped to zero, and cost nothing.
        live = np.flatnonzero(labels.factors.any(axis=1))
        result = fit_feature_map(
            normal_matrix(X, moments, dtype, len(live)),
            cross_product(X, moments[0], Y, labels.mixing[:, live]),
            labels.inner[np.ix_(live, live)],
            float(self.reg_corr),
            float(self.reg_sparse),
            Stopping(self.max_iter, -np.inf, 0.0, step_tol=self.tol),
            callbacks,
            dtype,
            checkpoint,
        )
        self.feature_map_[np.ix_(varying, live)] = result.point
        return result

    def _check(self) -> None:
        for name in ("n_factors", "n_groups", "max_iter"):
            check_number(self, name, int, 1)
        for name in ("reg_basis", "reg_group", "reg_corr", "reg_sparse", "tol"):
            check_number(self, name, float, 0)
        check_n_jobs(self)
        check_callbacks(self)
        check_grouping(self.grouping)
        as_generator(self.random_state)
        if str(self.dtype) not in ("float32", "float64"):
            raise ValueError(f"dtype={self.dtype!r} is not known. Choose 'float32' or 'float64'.")


def group_labels(gram: LabelGram, n_groups: int, grouping: Any, random_state: Any) -> IntArray:
    """Return the group of every label.

    Groups of a clustering are numbered from the largest to the smallest, and among equals by their
    first label; labels that no row tells apart are in one group.
    """
    firsts, index = distinct_labels(gram)
    distinct = gram.take(firsts)
    if isinstance(grouping, str):
        found = spectral_groups(distinct, min(n_groups, len(firsts)), random_state)
    else:
        found = cluster_labels(distinct, grouping)
    return number_groups(found[index])


def number_groups(found: IntArray) -> IntArray:
    """Return groups numbered from the largest to the smallest, among equals by their first label.

    >>> number_groups(np.array([7, 3, 9, 3])).tolist()
    [1, 0, 2, 0]
    """
    _, first_labels, codes, sizes = np.unique(
        found, return_index=True, return_inverse=True, return_counts=True
    )
    return np.argsort(np.lexsort((first_labels, -sizes)))[codes]


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
    """Return the first of the labels that the same rows have, and where each label is in there."""
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
        return np.exp(-squares / np.outer(scales, scales))
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
    if n_groups >= n_labels:
        return np.arange(n_labels)
    if n_groups <= 1:
        return np.zeros(n_labels, np.int64)
    seed = int(as_generator(random_state).integers(2**31))
    clusterer = SpectralClustering(n_groups, affinity="precomputed", random_state=seed)
    return _clusters(clusterer, affinities(gram))


def cluster_labels(gram: LabelGram, clusterer: Any) -> IntArray:
    """Cluster labels with a copy of the clusterer that was given; see ``grouping`` of `GroPLE`.

    The rows that it sees are as far from each other as the columns of the labels.
    """
    fresh = clone(clusterer)
    params = fresh.get_params()
    n_labels = len(gram.counts)
    if isinstance(params.get("n_clusters"), int) and params["n_clusters"] > n_labels:
        fresh.set_params(n_clusters=n_labels)
    if n_labels == 1:
        return np.zeros(1, np.int64)
    if params.get("affinity") == "precomputed":
        return _clusters(fresh, affinities(gram))
    if params.get("metric") == "precomputed":
        (_, squares), *_ = _distances(gram, n_labels)
        return _clusters(fresh, np.sqrt(squares))
    values, vectors = np.linalg.eigh(gram.together.toarray())
    return _clusters(fresh, vectors * np.sqrt(np.maximum(values, 0.0)))


def _clusters(clusterer: Any, table: Any) -> IntArray:
    with quietly():
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
