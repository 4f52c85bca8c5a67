"""LIFT: every label has features of its own, the distances from typical rows (Zhang and Wu)."""

from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from itertools import pairwise
from typing import Any, ClassVar, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from scipy.sparse import csr_array, issparse, vstack
from sklearn.utils.extmath import row_norms

from marginmf._utils.parameters import check_number
from marginmf._utils.random import as_generator
from marginmf._utils.saved import Optional, Stored, counts, floats, within
from marginmf._utils.types import Float64Array, FloatArray, IntArray
from marginmf.backends.labels import sparse_times
from marginmf.backends.threads import one_blas_thread
from marginmf.labels.algebra.clusters import choose_form, find_centres
from marginmf.labels.algebra.matrices import BLOCK, FAR_OFF, feature_moments
from marginmf.labels.base import method
from marginmf.labels.baselines.binary import (
    PROBES,
    OneEach,
    fit_one,
    linear_weights,
    missing,
    rows_of_each,
)
from marginmf.labels.wrappers import scale_features, score_flaws, scores_of

#: How often the default classifier goes through the rows at most, and how little its intercept is
#: drawn to zero.
PASSES, INTERCEPT_SCALING = 2000, 10.0
#: Squared distances below this share of the squares that they are the difference of are zero.
ROUNDING = 64 * float(np.finfo(np.float64).eps)


@method("lift")
@dataclass(eq=False, repr=False)
class LIFT(OneEach):
    """Label-specific features: distances from clusters with and without a label (Zhang, Wu 2015).

    For each label k-means divides the rows that have it, and those that do not, into as many
    clusters.  The distances of a row from all their centres are its features for this label, on
    which a classifier is learned.  The paper has ``decision="sign"``.

    Parameters
    ----------
    ratio : float
        How many clusters either side has, as a share of the rows on the smaller side; above 0, at
        most 1.
    estimator : classifier, optional
        Any scikit-learn classifier of two classes that has ``decision_function`` or
        ``predict_proba``; by default a `LinearSVC` with the hinge loss and ``C=1``.
    random_state : int, Generator or None
        Seeds k-means; each label has a seed of its own.
    n_jobs : int or None
        How many labels are learned at a time, as in scikit-learn: None is one, -1 is as many as
        there are processors.  The result does not depend on it.

    Attributes
    ----------
    centres_ : array or csr_array of shape (n_centres, n_features)
        The centres of all classifiers one after the other, those of the rows with the label first;
        minus ``origin_``.
    n_centres_ : array of shape (n_classifiers,)
        How many of them each classifier has.
    classifiers_ : array of shape (n_labels,)
        The classifier of each label.  Labels that the same rows have share one.
    origin_ : array of shape (n_features,)
        The means of features whose mean is large against their spread, and zeros: distances are
        computed from there.
    coef_ : array of shape (n_centres,)
        The weights of the distances, if every classifier is linear.
    intercept_ : array of shape (n_classifiers,)
        The intercepts, if every classifier is linear.
    estimators_ : list of classifiers
        The classifiers, if they are not linear.

    Notes
    -----
    Distances are Euclidean: features without a unit in common should be scaled first (`Scaled`).
    Where more than 20,000 rows are to be divided, k-means learns from small batches of them.  The
    cost is that of k-means, which grows with the square of a label's frequency.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=100, n_classes=4, random_state=0)
    >>> model = LIFT(decision="sign", random_state=0).fit(X, Y)
    >>> model.predict(X).shape, model.n_centres_.tolist()
    ((100, 4), [10, 10, 10, 10])
    """

    ratio: float = 0.1
    estimator: Any = None
    _: KW_ONLY
    random_state: Any = None
    n_jobs: int | None = None

    _saved: ClassVar[dict[str, Any]] = {
        "centres_": Stored(("centres", "features")),
        "n_centres_": counts("classifiers"),
        "classifiers_": counts("labels"),
        "origin_": floats("features"),
        "coef_": Optional(floats("centres")),
        "intercept_": Optional(floats("classifiers")),
        "estimators_": Optional(list),
        "_labels": "Varying",
    }
    _separate: ClassVar[frozenset[str]] = frozenset({"estimators_"})

    def _flaws(self, lengths: Mapping[str, int]) -> Iterator[str]:
        yield from super()._flaws(lengths)
        sizes, varying = self.n_centres_, self._labels.varying
        if not within(sizes - 1, lengths["centres"]) or sizes.sum() != lengths["centres"]:
            yield ".n_centres_ are not those of its centres"
        if not within(self.classifiers_[varying], len(sizes)):
            yield ".classifiers_ has numbers of classifiers that do not exist"
        if hasattr(self, "coef_"):
            yield from missing(self, "coef_", "intercept_")
            return
        yield from missing(self, "estimators_")
        if len(self.estimators_) != len(sizes):
            yield ".estimators_ are not one for each classifier"
        for k, (each, size) in enumerate(zip(self.estimators_, sizes, strict=True)):
            yield from score_flaws(each, f".estimators_.{k}", 1, int(size))

    def _check(self) -> None:
        super()._check()
        check_number(self, "ratio", float, 0)
        if not 0 < self.ratio <= 1:
            raise ValueError(
                f"ratio={self.ratio!r} must be above 0 and at most 1: clusters for each row that "
                "is to be divided."
            )
        as_generator(self.random_state)

    def _fit(self, X: Any, Y: csr_array) -> None:
        means, squares = feature_moments(X)
        self.origin_ = np.where(Y.shape[0] * means**2 > FAR_OFF * squares, means, 0.0)
        X = choose_form(self._moved(X))
        # Labels that the same rows have are learned once.
        self.classifiers_ = self._seen.kinds
        firsts = np.unique(self.classifiers_, return_index=True)[1]
        seed = int(self._checkpoint.generator("seed", self.random_state).integers(2**63))
        # A seed for each label that depends neither on the order of the labels nor on processes.
        seeds = [
            np.random.default_rng([seed, k]).integers(2**31, size=2) for k in range(len(firsts))
        ]
        rows = rows_of_each(Y)
        fitted = Parallel(self.n_jobs)(
            delayed(_fit_label)(X, rows[first], float(self.ratio), self.estimator, each)
            for first, each in zip(firsts, seeds, strict=True)
        )
        self.n_centres_ = np.array([len(each.centres) for each in fitted], np.int64)
        centres = [csr_array(each.centres) if issparse(X) else each.centres for each in fitted]
        stack = vstack if issparse(X) else np.vstack
        self.centres_ = stack([X[:0], *centres])
        self._keep_classifiers([each.classifier for each in fitted], X[:PROBES])

    def _keep_classifiers(self, fitted: list[Any], X: Any) -> None:
        """Keep weights, or the classifiers if these do not give the scores of some rows."""
        linear = linear_weights(fitted, self._distances(X))
        if linear is None:
            self.estimators_ = fitted
            return
        weights, self.intercept_ = linear
        self.coef_ = np.concatenate([np.zeros(0), *weights])

    def _moved(self, X: Any) -> Any:
        """Return features in float64, minus the origin."""
        if self.origin_.any():
            return scale_features(X, -self.origin_, np.ones_like(self.origin_))
        return X.astype(np.float64, copy=False)

    def _distances(self, X: Any) -> Iterator[Float64Array]:
        """Yield the features of rows for each classifier; the rows are minus the origin."""
        squares = row_norms(X, squared=True)
        for start, stop in pairwise(np.concatenate([[0], np.cumsum(self.n_centres_)])):
            yield distances(X, squares, self.centres_[start:stop])

    def _scores(self, X: Any) -> FloatArray:
        X = self._moved(X)
        scores = np.empty((X.shape[0], len(self.n_centres_)))
        start = 0
        for k, features in enumerate(self._distances(X)):
            if hasattr(self, "estimators_"):
                scores[:, k] = scores_of(self.estimators_[k], features, 1)[:, 0]
                continue
            stop = start + features.shape[1]
            scores[:, k] = features @ self.coef_[start:stop] + self.intercept_[k]
            start = stop
        return scores[:, self.classifiers_[self._labels.varying]]


class _Fitted(NamedTuple):
    centres: Float64Array
    classifier: Any


def _fit_label(X: Any, rows: IntArray, ratio: float, estimator: Any, seeds: IntArray) -> _Fitted:
    """Find the centres of the rows with a label and without it, and learn from the distances."""
    others = np.setdiff1d(np.arange(X.shape[0]), rows, assume_unique=True)
    size = n_clusters(len(rows), len(others), ratio)
    with one_blas_thread():
        both = zip((rows, others), seeds, strict=True)
        centres = np.vstack([find_centres(X[part], size, int(seed)) for part, seed in both])
        features = distances(X, row_norms(X, squared=True), centres)
        return _Fitted(centres, _fit_classifier(estimator, features, rows))


def _fit_classifier(estimator: Any, features: Float64Array, rows: IntArray) -> Any:
    """Fit a copy of the estimator; the default is fitted to distances minus their means.

    With a free intercept the means change nothing but the time: all distances of a row are alike,
    and coordinate descent on them as they are stops far from the minimum.
    """
    if estimator is not None:
        return fit_one(estimator, features, rows)
    means = features.mean(axis=0)
    options = {"max_iter": PASSES, "intercept_scaling": INTERCEPT_SCALING}
    fitted = fit_one(None, features - means, rows, **options)
    fitted.intercept_ = fitted.intercept_ - fitted.coef_ @ means
    return fitted


def n_clusters(n_with: int, n_without: int, ratio: float) -> int:
    """Return into how many clusters the rows with a label and those without it are divided.

    >>> n_clusters(25, 100, 0.1), n_clusters(1, 100, 0.1), n_clusters(30, 30, 0.7)
    (3, 1, 21)
    """
    # Rounding aside: seven tenths of 30 are 21.
    return int(np.ceil(ratio * min(n_with, n_without) - 1e-9))


def distances(X: Any, squares: Float64Array, centres: Any) -> Float64Array:
    """Return the Euclidean distances of rows, whose squared norms are known, from centres.

    Sparse centres are made dense in blocks, for products along the rows of X.
    """
    found = np.empty((X.shape[0], centres.shape[0]))
    size = max(1, BLOCK // max(1, X.shape[1]))
    for start in range(0, centres.shape[0], size):
        block = centres[start : start + size]
        block = block.toarray() if issparse(block) else block
        sums = squares[:, None] + row_norms(block, squared=True)
        products = sparse_times(X, block.T) if issparse(X) else X @ block.T
        squared = sums - 2.0 * products
        squared[squared < ROUNDING * sums] = 0.0
        np.sqrt(squared, out=found[:, start : start + size])
    return found
