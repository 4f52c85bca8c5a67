"""GroPLE: labels embedded so that groups stay together, and features mapped onto them."""

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import KW_ONLY, dataclass
from functools import partial
from typing import Any, ClassVar
from zlib import crc32

import numpy as np
from scipy.sparse import csr_array, issparse

from marginmf._utils import saved as _demands
from marginmf._utils.indicators import counts
from marginmf._utils.parameters import check_callbacks, check_n_jobs, check_number, n_threads
from marginmf._utils.random import as_generator
from marginmf._utils.saved import HISTORY
from marginmf._utils.types import IntArray
from marginmf.checkpoints import Journal
from marginmf.labels.algebra.embedding import Embedding, LabelEmbedding, fit_feature_map
from marginmf.labels.algebra.grams import (
    LabelGram,
    cross_product,
    feature_moments,
    normal_matrix,
    ready_for_products,
)
from marginmf.labels.algebra.grouping import (
    check_grouping,
    given_groups,
    group_labels,
    is_clusterer,
)
from marginmf.labels.base import LabelsEstimator, method
from marginmf.labels.linear import LabelSpaceTransformer
from marginmf.labels.order import Fold
from marginmf.progress import Report, progress_bar
from marginmf.solvers import Callback, Result, Stopping

#: Of sparse features the constant ones are left out where less than this share varies.
FEW = 0.9
#: Sums of squares above this are kept in float64.
LARGE = 1e30


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
        projected on the positive semi-definite ones: without that the problem may
        have no solution.
    reg_sparse : float
        The l1 penalty on the map from the features (beta).  The default comes within
        3 % of the best weight's accuracy on each of 15 benchmark data sets (features from 0 to 1),
        with a threshold chosen by cross-validation.
    grouping : "spectral", clusterer or sequence of int
        How labels are grouped.  Spectral: spectral clustering with a self-tuning heat kernel.  Any
        scikit-learn clusterer: it sees that kernel if its ``affinity`` is "precomputed", the
        distances of the labels if its ``metric`` is, and else a table with a row for each
        label.  Or the number of each label's group.
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
    decision : {"sign", "global", "per_label"}
        The rule that turns scores into label sets; see `marginmf.labels.decisions`.
    tune_for : {"accuracy", "micro_f1", "macro_f1", "hamming"}
        The measure that the rule's thresholds are chosen for.
    top1_if_empty : bool
        Whether a row that would get no label gets its best one.
    cv : int
        How many folds thresholds are chosen on.

    Attributes
    ----------
    label_groups_ : array of shape (n_labels,)
        The group of every label, from the largest group on.
    label_factors_ : array of shape (n_components, n_labels)
        V: the factors of every label.
    feature_map_ : array of shape (n_features, n_components)
        Z: the map from centred features to the embedding.
    feature_means_, label_means_ : array
        What features and labels were centred with.
    history_ : list of list of Record
        For the labels' stage and the features' stage, the objective after every iteration.
    n_iter_ : int
        How many iterations the longer one of the stages took.
    stop_reason_ : list of str
        Why the stages stopped.
    thresholds_ : array of shape (n_labels,)
        A label is predicted where its score is above.
    classes_ : array
        The names of the labels, or their numbers.

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
        # All rows in one thread, the folds of them in the others.
        with ThreadPoolExecutor(1) as pool:
            whole = pool.submit(self._fit_in_order, X, Y)
            thresholds, _ = self._tuned(X, Y)
            whole.result()
        self._take_thresholds(thresholds, Y)

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
            journal = self._journal.scope(f"groups {crc32(groups.tobytes()):08x}")
            labels = self._embed_labels(gram.taken(by_group), starts, report, journal)
            features = self._map_features(X, Y[:, by_group], labels.point, report, journal)
        self.label_groups_ = groups
        self.label_factors_ = np.empty_like(labels.point.factors)
        self.label_factors_[:, by_group] = labels.point.factors
        self.label_means_ = counts(Y, axis=0) / Y.shape[0]
        self.history_ = [labels.history, features.history]
        self.n_iter_ = max(labels.n_iter, features.n_iter)
        self.stop_reason_ = [str(labels.reason), str(features.reason)]

    def _groups(self, gram: LabelGram) -> IntArray:
        if isinstance(self.grouping, str) or is_clusterer(self.grouping):
            seed = self._journal.generator("groups", self.random_state)
            return group_labels(gram, self.n_groups, self.grouping, seed)
        given = given_groups(self.grouping, self._seen.n_labels)
        return given[self._seen.labels].astype(np.int64)

    def _embed_labels(
        self, gram: LabelGram, starts: IntArray, report: Report, journal: Journal
    ) -> Result:
        problem = LabelEmbedding(
            gram, tuple(starts.tolist()), float(self.reg_basis), float(self.reg_group)
        )
        stopping = Stopping(max_iter=self.max_iter, tol=self.tol)
        return problem.minimise(self.n_factors, stopping, report("labels"), journal)

    def _map_features(
        self, X: Any, Y: csr_array, labels: Embedding, report: Report, journal: Journal
    ) -> Result:
        self.feature_means_, squares = feature_moments(X)
        self.feature_map_ = np.zeros((X.shape[1], len(labels.factors)))
        varying = np.arange(X.shape[1])
        if issparse(X) and 0.0 < np.mean(squares > 0) < FEW:
            varying = np.flatnonzero(squares)
            X = X[:, varying]
        X, moments = ready_for_products(X, (self.feature_means_[varying], squares[varying]))
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
            report("features"),
            dtype,
            journal,
        )
        self.feature_map_[np.ix_(varying, live)] = result.point
        return result

    def _check(self) -> None:
        check_number(self, "n_factors", int, 1)
        check_number(self, "n_groups", int, 1)
        check_number(self, "max_iter", int, 1)
        for name in ("reg_basis", "reg_group", "reg_corr", "reg_sparse", "tol"):
            check_number(self, name, float, 0)
        check_n_jobs(self)
        check_callbacks(self)
        check_grouping(self.grouping)
        as_generator(self.random_state)
        if str(self.dtype) not in ("float32", "float64"):
            raise ValueError(f"dtype={self.dtype!r} is not known. Choose 'float32' or 'float64'.")
