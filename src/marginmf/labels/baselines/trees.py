"""A decision tree for all labels at once (ML-DT), and a forest of extremely randomised ones."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import isqrt
from numbers import Integral
from typing import Any, ClassVar, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from scipy.sparse import csr_array, issparse, vstack
from sklearn.tree import DecisionTreeClassifier, ExtraTreeRegressor

from marginmf._utils.indicators import counts as count_labels
from marginmf._utils.parameters import check_flag, check_n_jobs, check_number
from marginmf._utils.random import as_generator
from marginmf._utils.saved import Stored, counts, floats, indices
from marginmf._utils.types import Float64Array, FloatArray, IntArray
from marginmf.labels.algebra.matrices import row_blocks
from marginmf.labels.base import LabelsEstimator, batches, method
from marginmf.labels.order import Varying, canonical_order

#: The least rows of a leaf: in a single tree, and in the trees of a forest.
LEAST_ALONE, LEAST_TOGETHER = 5, 1
#: scikit-learn's trees compare features in single precision, where larger numbers are infinite.
LARGEST = float(np.finfo(np.float32).max)


@method("mldt")
@dataclass(eq=False, repr=False)
class MLDT(LabelsEstimator):
    """A decision tree whose splits tell all labels apart, or a forest of random ones.

    One tree is that of Clare and King (2001): each split makes the sum of the labels' entropies as
    low as possible.  More are extremely randomised trees (Geurts and others, 2006): each split is
    the best of random ones, one for each of a few random features, by the Gini index.  The score of
    a label is its share in the row's leaf, averaged over trees, minus one half.

    Parameters
    ----------
    n_trees : int
        How many trees: 1 for the published method; a forest of 100 or more predicts far better.
    min_samples_leaf : int, optional
        The least number of training rows in a leaf; by default 5, or 1 in a forest.
    max_features : int or float, optional
        How many features, or which share of them, each split looks at; by default all, or the
        square root of their number in a forest.
    bootstrap : bool
        Whether each tree of a forest learns from as many rows drawn with replacement.  Thresholds
        and probabilities are then learned from the scores of the trees that have not seen a row, so
        that the forest is grown once instead of ``cv + 1`` times.
    random_state : int, Generator or None
        Seeds the trees; in a single one, it chooses between equal splits.
    n_jobs : int or None
        How many trees are grown at a time, as in scikit-learn: None is one, -1 is as many as there
        are processors.  The result does not depend on it.

    Attributes
    ----------
    roots_ : array of shape (n_trees,)
        The node where each tree begins.
    left_, right_ : array of shape (n_nodes,)
        Where to go from each node; a leaf has itself.
    split_features_, split_values_ : array of shape (n_nodes,)
        Rows whose feature is at most the value go left.
    leaf_shares_ : csr_array of shape (n_leaves, n_labels)
        The share of the rows in each leaf that have the labels, in the order of the nodes.
    seeds_ : array of shape (n_trees,)
        What each tree was grown from.

    Notes
    -----
    Trees are grown by scikit-learn, which needs the labels as a dense matrix meanwhile, and a few
    numbers for each node and label of one tree.  Features are compared in single precision.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=100, n_classes=4, random_state=0)
    >>> MLDT(random_state=0, decision="sign").fit(X, Y).predict(X).shape
    (100, 4)
    >>> forest = MLDT(n_trees=20, bootstrap=True, random_state=0).fit(X, Y)
    >>> forest.roots_.shape, forest.predict_proba(X).shape
    ((20,), (100, 4))
    """

    n_trees: int = 1
    min_samples_leaf: int | None = None
    max_features: int | float | None = None
    bootstrap: bool = False
    random_state: Any = None
    n_jobs: int | None = None

    # Of a label that does not vary, the shares are 0 or 1 in all leaves.
    _varying_only: ClassVar[bool] = False
    _saved: ClassVar[dict[str, Any]] = {
        "left_": indices("nodes", along="nodes"),
        "right_": indices("nodes", along="nodes"),
        "split_features_": indices("nodes", along="features"),
        "split_values_": floats("nodes"),
        "roots_": indices("trees", along="nodes"),
        "leaf_shares_": Stored(("leaves", "labels")),
        "seeds_": counts("trees"),
    }

    def _flaws(self, lengths: Mapping[str, int]) -> Iterator[str]:
        yield from super()._flaws(lengths)
        nodes = np.arange(len(self.left_))
        to_self = self.left_ == nodes
        if (self.left_ < nodes).any() or (self.right_ < nodes).any():
            yield ".left_ or .right_ leads back"
        if not np.array_equal(to_self, self.right_ == nodes):
            yield ".left_ and .right_ do not agree about the leaves"
        if np.count_nonzero(to_self) != self.leaf_shares_.shape[0]:
            yield ".leaf_shares_ are not one row for each leaf"
        if type(self.leaf_shares_) is not csr_array or len(self.roots_) == 0:
            yield " has no trees, or not their shares"

    def _check(self) -> None:
        check_number(self, "n_trees", int, 1)
        if self.min_samples_leaf is not None:
            check_number(self, "min_samples_leaf", int, 1)
        if isinstance(self.max_features, Integral):
            check_number(self, "max_features", int, 1)
        elif self.max_features is not None:
            check_number(self, "max_features", float, 0)
            if not 0 < self.max_features <= 1:
                raise ValueError(
                    f"max_features={self.max_features!r} must be a whole number of features, or a "
                    "share of them above 0 and up to 1."
                )
        check_flag(self, "bootstrap")
        if self.bootstrap and self.n_trees == 1:
            raise ValueError(
                "bootstrap=True leaves rows out of every tree, which others must score: take "
                "n_trees above 1."
            )
        as_generator(self.random_state)
        check_n_jobs(self)

    @property
    def _probability_scores(self) -> bool:
        return True

    def _fit(self, X: Any, Y: csr_array) -> None:
        generator = as_generator(self.random_state)
        self.seeds_: IntArray = generator.integers(2**31, size=self.n_trees)
        rows = _in_single_precision(X)
        columns = rows.tocsc() if issparse(rows) else rows
        if issparse(columns):
            columns.sort_indices()
        indicator = Y[:, Varying.of(Y).varying].toarray().astype(np.float64)
        grower = self._make_grower(X.shape[1])
        trees = Parallel(self.n_jobs, prefer="threads")(
            delayed(_grow)(grower, seed, rows, columns, indicator, Y, self.bootstrap)
            for seed in self.seeds_.tolist()
        )
        starts = np.cumsum([0, *(len(tree.left) for tree in trees)])
        self.roots_ = starts[:-1].astype(np.int32)
        self.left_ = np.concatenate([t.left + k for t, k in zip(trees, self.roots_, strict=True)])
        self.right_ = np.concatenate([t.right + k for t, k in zip(trees, self.roots_, strict=True)])
        self.split_features_ = np.concatenate([tree.features for tree in trees])
        self.split_values_ = np.concatenate([tree.values for tree in trees])
        self.leaf_shares_ = csr_array(vstack([tree.shares for tree in trees], format="csr"))

    def _make_grower(self, n_features: int) -> Any:
        """Return an estimator of scikit-learn that grows such trees, without a seed."""
        alone, wanted = self.n_trees == 1, self.max_features
        if wanted is None:
            n_candidates = n_features if alone else max(1, isqrt(n_features))
        elif isinstance(wanted, Integral):
            n_candidates = min(int(wanted), n_features)
        else:
            n_candidates = max(1, int(wanted * n_features))
        least = self.min_samples_leaf or (LEAST_ALONE if alone else LEAST_TOGETHER)
        settings = {"min_samples_leaf": least, "max_features": n_candidates}
        if alone:
            return DecisionTreeClassifier(criterion="entropy", **settings)
        # The variance of a label of 0 and 1 is half its Gini index, and takes less time.
        return ExtraTreeRegressor(criterion="squared_error", **settings)

    def _scores(self, X: Any) -> FloatArray:
        weights = np.full((X.shape[0], len(self.roots_)), 1.0 / len(self.roots_))
        return self._average(X, weights) - 0.5

    def _average(self, X: Any, weights: Float64Array) -> Float64Array:
        """Return the shares of labels in the leaves of each row, one for each tree, weighted."""
        leaf_of = np.cumsum(self.left_ == np.arange(len(self.left_))) - 1
        shares, start = np.empty((X.shape[0], self.leaf_shares_.shape[1])), 0
        # A walk takes a few numbers for every row and tree.
        for block in row_blocks(X, max(X.shape[1], 4 * len(self.roots_))):
            end = start + block.shape[0]
            leaves = leaf_of[self._find_leaves(_in_single_precision(block))]
            bounds = np.arange(0, leaves.size + 1, leaves.shape[1])
            chosen = csr_array(
                (weights[start:end].ravel(), leaves.ravel(), bounds),
                (block.shape[0], self.leaf_shares_.shape[0]),
            )
            shares[start:end] = (chosen @ self.leaf_shares_).toarray()
            start = end
        return shares

    def _find_leaves(self, X: Any) -> IntArray:
        """Return the node where each row ends in each tree."""
        features = X.toarray() if issparse(X) else X
        nodes = np.tile(self.roots_, len(features))
        rows = np.repeat(np.arange(len(features)), len(self.roots_))
        moving = np.arange(len(nodes))
        while len(moving):
            here = nodes[moving]
            values = features[rows[moving], self.split_features_[here]]
            goes_left = values <= self.split_values_[here]
            there = np.where(goes_left, self.left_[here], self.right_[here])
            nodes[moving] = there
            moving = moving[there != here]
        return nodes.reshape(len(features), -1)

    def _cross_fit(self, X: Any, Y: csr_array) -> Iterator[tuple[IntArray, FloatArray]]:
        """Score rows held out: with a bootstrap, by the trees that have not seen them."""
        if not self.bootstrap:
            yield from super()._cross_fit(X, Y)
            return
        self._fit_in_order(X, Y)
        order = canonical_order(X, Y).rows
        unseen = np.empty((len(order), len(self.seeds_)))
        for tree, seed in enumerate(self.seeds_.tolist()):
            unseen[order, tree] = draw_bag(seed, len(order)) == 0
        n_unseen = unseen.sum(axis=1, keepdims=True)
        frequencies = count_labels(Y, axis=0) / Y.shape[0]
        # In an order of their own, as other methods yield them.
        for rows in batches(order, Y.shape[1]):
            found = self._average(X[rows], unseen[rows] / np.maximum(n_unseen[rows], 1))
            # A row that all trees have seen: nothing is known of it.
            yield rows, np.where(n_unseen[rows] > 0, found, frequencies) - 0.5


class _Tree(NamedTuple):
    left: IntArray
    right: IntArray
    features: IntArray
    values: Float64Array
    shares: csr_array


def draw_bag(seed: int, n_rows: int) -> IntArray:
    """Return how often each row is drawn for a tree."""
    return np.bincount(np.random.default_rng(seed).integers(n_rows, size=n_rows), minlength=n_rows)


def _grow(
    grower: Any,
    seed: int,
    rows: Any,
    columns: Any,
    indicator: Float64Array,
    Y: csr_array,
    bootstrap: bool,
) -> _Tree:
    """Grow a tree, and keep what predictions need of it."""
    n_rows = rows.shape[0]
    weights = draw_bag(seed, n_rows).astype(np.float64) if bootstrap else np.ones(n_rows)
    if indicator.shape[1]:
        grown = type(grower)(**grower.get_params() | {"random_state": seed})
        grown.fit(columns, indicator, sample_weight=weights)
        tree, ends = grown.tree_, grown.apply(rows)
        is_leaf = tree.children_left < 0
        nodes = np.arange(len(is_leaf))
        left = np.where(is_leaf, nodes, tree.children_left)
        right = np.where(is_leaf, nodes, tree.children_right)
        features = np.where(is_leaf, 0, tree.feature)
        values = np.where(is_leaf, 0.0, tree.threshold)
    else:  # nothing to tell apart: a single leaf
        left = right = features = np.zeros(1, np.int64)
        is_leaf, values, ends = np.ones(1, bool), np.zeros(1), np.zeros(n_rows, np.int64)
    leaves, kept = (np.cumsum(is_leaf) - 1)[ends], np.flatnonzero(weights)
    shares = weights / np.bincount(leaves, weights, np.count_nonzero(is_leaf))[leaves]
    members = csr_array((shares[kept], (leaves[kept], kept)), (np.count_nonzero(is_leaf), n_rows))
    left, right, features = (each.astype(np.int32) for each in (left, right, features))
    return _Tree(left, right, features, values, csr_array(members @ Y))


def _in_single_precision(X: Any) -> Any:
    """Return features as scikit-learn's trees compare them."""
    if X.dtype == np.float32:
        return X
    if issparse(X):
        return csr_array((_narrow(X.data), X.indices, X.indptr), X.shape)
    return _narrow(X)


def _narrow(values: FloatArray) -> FloatArray:
    return np.clip(values, -LARGEST, LARGEST).astype(np.float32)
