"""MLSF: groups of labels with features of their own, and a chain in each (Sun and others, 2016)."""

import warnings
from collections.abc import Iterator, Mapping
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.linalg import eigh
from scipy.sparse import csc_array, csr_array, issparse, vstack
from scipy.sparse.linalg import eigsh
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso
from sklearn.metrics.pairwise import euclidean_distances

from marginmf._utils import indicators
from marginmf._utils.parameters import check_number
from marginmf._utils.random import as_generator
from marginmf._utils.saved import Stored, counts, within
from marginmf._utils.types import Float64Array, FloatArray, IntArray
from marginmf.labels.algebra.clusters import choose_form, find_clusters
from marginmf.labels.algebra.matrices import LabelGram, with_small_indices
from marginmf.labels.base import method
from marginmf.labels.baselines.binary import ClassifierChains, OneEach
from marginmf.labels.grople import number_groups
from marginmf.labels.order import content_order
from marginmf.labels.wrappers import score_flaws

#: All eigenvectors of more labels than this take longer than the few that are wanted.
MOST_DENSE = 2048
#: Above this many different labels, the affinities of all pairs take too much memory.
MOST_LABELS = 10_000
#: Stands for the sum of a label's affinities where that is zero.
TINY = 1e-12
#: Above 0.
LEAST = 5e-324


@method("mlsf")
@dataclass(eq=False, repr=False)
class MLSF(OneEach):
    """Meta-labels with specific features: a chain for each group of labels (Sun and others, 2016).

    Labels that go together, or whose rows look alike, are put into groups ("meta-labels") by
    spectral clustering.  A sparse regression chooses the features of each group, on which its
    labels are learned by a classifier chain.  The paper has ``decision="sign"``.

    Parameters
    ----------
    meta_label_size : int
        How many labels a group has on the average: of L labels, L over this, rounded up, groups are
        made.
    alpha : float
        How much the affinity of two labels depends on the rows that have both, from 0 to 1; the
        rest is the nearness of the means of their rows.
    epsilon : float
        Smaller affinities are zero.
    gamma : float
        The l1 penalty of the regression that chooses features, above 0; it is for the sum over all
        rows.  A group for which nothing is left has all features.
    rho : float
        The step of the authors' solver of that regression.  Here coordinate descent finds the same
        optimum, so that it has no effect; it is accepted for the sake of published settings.
    estimator : classifier, optional
        Any scikit-learn classifier of two classes that has ``decision_function`` or
        ``predict_proba``; by default a `LinearSVC` with the hinge loss and ``C=1``.
    random_state : int, Generator or None
        Seeds the clustering and the orders of the chains.
    n_jobs : int or None
        How many labels of a group are learned at a time, as in scikit-learn: None is one, -1 is as
        many as there are processors.  The result does not depend on it.

    Attributes
    ----------
    label_groups_ : array of shape (n_labels,)
        The group of every label, from the largest group on.
    feature_weights_ : csr_array of shape (n_groups, n_features)
        What the sparse regression of each group gives the features.
    chains_ : list of ClassifierChains
        The chain of each group, on the features that have a weight.
    links_ : array of shape (n_labels,)
        Which of the labels of its group's chain each label is.  Labels that the same rows have
        share one.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=100, n_classes=6, random_state=0)
    >>> model = MLSF(meta_label_size=3, decision="sign", random_state=0).fit(X, Y)
    >>> model.predict(X).shape, model.feature_weights_.shape
    ((100, 6), (2, 20))
    """

    meta_label_size: int = 10
    alpha: float = 0.8
    epsilon: float = 0.01
    gamma: float = 1.0
    rho: float = 1.0
    estimator: Any = None
    _: KW_ONLY
    random_state: Any = None
    n_jobs: int | None = None

    # Labels of one kind must be told apart from those that only have rows with equal features: in
    # a chain they are different.
    _order = staticmethod(content_order)
    _saved: ClassVar[dict[str, Any]] = {
        "label_groups_": counts("labels"),
        "links_": counts("labels"),
        "feature_weights_": Stored(("groups", "features")),
        "chains_": list,
        "_labels": "Varying",
    }
    _separate: ClassVar[frozenset[str]] = frozenset({"chains_"})

    def _flaws(self, lengths: Mapping[str, int]) -> Iterator[str]:
        yield from super()._flaws(lengths)
        varying = self._labels.varying
        groups, links = self.label_groups_[varying], self.links_[varying]
        if type(self.feature_weights_) is not csr_array:
            yield ".feature_weights_ are not sparse"
        if len(self.chains_) != lengths["groups"] or not within(groups, lengths["groups"]):
            yield ".chains_ are not one for each group"
        if not within(links, lengths["labels"]):
            yield ".links_ has labels that no chain has"
        n_links = np.zeros(len(self.chains_), np.int64)
        np.maximum.at(n_links, groups, links + 1)
        n_weights = np.diff(self.feature_weights_.indptr)
        n_features = np.where(n_weights > 0, n_weights, lengths["features"])
        for group, chain in enumerate(self.chains_):
            name = f".chains_.{group}"
            if type(chain) is not ClassifierChains or n_links[group] == 0:
                yield f"{name} is not the chain of a group"
            yield from score_flaws(chain, name, int(n_links[group]), int(n_features[group]))

    def _check(self) -> None:
        super()._check()
        check_number(self, "meta_label_size", int, 1)
        for name in ("alpha", "epsilon"):
            check_number(self, name, float, 0)
        if self.alpha > 1:
            raise ValueError(f"alpha={self.alpha!r} must be at most 1: it is a share.")
        for name in ("gamma", "rho"):
            check_number(self, name, float, LEAST)
        as_generator(self.random_state)

    def _fit(self, X: Any, Y: csr_array) -> None:
        X = choose_form(X)
        kinds = self._seen.kinds
        Y = Y[:, np.unique(kinds, return_index=True)[1]]
        if Y.shape[1] > MOST_LABELS:
            raise ValueError(
                f"MLSF compares all pairs of labels, and {Y.shape[1]} different labels are more "
                f"than {MOST_LABELS}: leave out rare ones, or choose PLST or GroPLE."
            )
        seed = int(self._checkpoint.generator("seed", self.random_state).integers(2**63))
        groups = self._group(X, Y, seed)
        n_groups = int(groups.max(initial=-1)) + 1
        links = np.zeros_like(groups)
        members = [np.flatnonzero(groups == group) for group in range(n_groups)]
        for each in members:
            links[each] = np.arange(len(each))
        targets = (rank_combinations(Y[:, each]) for each in members)
        self.feature_weights_ = sparse_regressions(X, targets, float(self.gamma))
        self.chains_ = []
        for group, each in enumerate(members):
            own = int(np.random.default_rng([seed, 1, group]).integers(2**31))
            chain = ClassifierChains(self.estimator, "random", random_state=own, n_jobs=self.n_jobs)
            features = self._features_of(X, group)
            self.chains_.append(self._learn_inside(chain, features, Y[:, each], False))
        self.label_groups_, self.links_ = groups[kinds], links[kinds]

    def _group(self, X: Any, Y: csr_array, seed: int) -> IntArray:
        """Return the group of every label, from the largest group on."""
        n_groups = -(-Y.shape[1] // self.meta_label_size)
        if n_groups <= 1:
            return np.zeros(Y.shape[1], np.int64)
        table = label_affinities(X, Y, float(self.alpha), float(self.epsilon))
        own = int(np.random.default_rng([seed, 0]).integers(2**31))
        return number_groups(spectral_clusters(table, n_groups, own))

    def _selected(self, group: int) -> IntArray:
        """Return the features of a group: those with a weight, or all if there are none."""
        weights = self.feature_weights_
        start, stop = weights.indptr[group : group + 2]
        if start == stop:
            return np.arange(weights.shape[1])
        return weights.indices[start:stop]

    def _features_of(self, X: Any, group: int) -> Any:
        selected = self._selected(group)
        if len(selected) == X.shape[1]:
            return X
        return with_small_indices(X[:, selected]) if issparse(X) else X[:, selected]

    def _scores(self, X: Any) -> FloatArray:
        varying = self._labels.varying
        scores = np.zeros((X.shape[0], len(varying)))
        for group, chain in enumerate(self.chains_):
            mine = np.flatnonzero(varying & (self.label_groups_ == group))
            found = chain._label_scores(self._features_of(X, group))
            scores[:, mine] = found[:, self.links_[mine]]
        return scores


def label_affinities(X: Any, Y: csr_array, alpha: float, epsilon: float) -> Float64Array:
    """Return how near labels are to each other: ``alpha J + (1 - alpha) exp(-d)``.

    J is the Jaccard index of the rows that have them, d the distance between the means of these.
    Nothing is near itself, and what is below epsilon is zero.
    """
    gram = LabelGram.of(Y)
    sizes = gram.counts
    both = gram.together.toarray()
    means = Y.T @ X
    if issparse(means):
        means = csr_array(means)
        means.data /= np.repeat(sizes, np.diff(means.indptr))
    else:
        means /= sizes[:, None]
        means -= means.mean(axis=0)  # only differences count, and large means would hide them
    table = alpha * both / (sizes[:, None] + sizes - both)
    table += (1.0 - alpha) * np.exp(-euclidean_distances(means))
    table[table < epsilon] = 0.0
    np.fill_diagonal(table, 0.0)
    return np.maximum(table, table.T)  # rounding aside, it is symmetric


def spectral_clusters(table: Float64Array, n_clusters: int, seed: int) -> IntArray:
    """Cluster by the eigenvectors of the largest absolute eigenvalues, rows of length one."""
    n = len(table)
    if n_clusters >= n:
        return np.arange(n)
    sums = table.sum(axis=1)
    roots = np.sqrt(np.where(sums > 0, sums, TINY))
    scaled = table / np.outer(roots, roots)
    if n <= MOST_DENSE or n_clusters >= n - 1:
        values, vectors = eigh(scaled)
    else:
        # A start of its own, because by default it is another one every time.
        start = np.random.default_rng(0).normal(size=n)
        values, vectors = eigsh(scaled, n_clusters, which="LM", v0=start)
    vectors = vectors[:, np.argsort(-np.abs(values), kind="stable")[:n_clusters]]
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return find_clusters(vectors / np.where(lengths > 0, lengths, 1.0), n_clusters, seed)


def rank_combinations(Y: csr_array) -> Float64Array:
    """Return a number from 0 to 1 for the labels of every row.

    Combinations that occur are ordered as binary numbers; a row's number is the rank of its own,
    as a share of the largest.  The most frequent label is the first digit: the order of the digits
    is arbitrary, but it must not be that of the columns, and leading labels are learned best.

    >>> rank_combinations(csr_array([[1, 1], [0, 0], [0, 1], [1, 1], [1, 0], [1, 0]])).tolist()
    [1.0, 0.0, 0.3333333333333333, 1.0, 0.6666666666666666, 0.6666666666666666]
    """
    frequent_first = np.argsort(-indicators.counts(Y, axis=0), kind="stable")
    digits = Y[:, frequent_first].astype(np.int8).toarray()
    ranks = np.unique(digits, axis=0, return_inverse=True)[1].ravel()
    return ranks / max(1, int(ranks.max()))


def sparse_regressions(X: Any, targets: Iterator[Float64Array], gamma: float) -> csr_array:
    """Return the weights v that make ``1/2 |X v - z|^2 + gamma |v|_1`` smallest, for each z."""
    columns = csc_array(X) if issparse(X) else np.asfortranarray(X)
    model = Lasso(gamma / X.shape[0], fit_intercept=False)
    weights = [csr_array((0, X.shape[1]))]
    with warnings.catch_warnings():
        # Which features have a weight is all that is asked, not its last digits.
        warnings.simplefilter("ignore", ConvergenceWarning)
        weights += [csr_array(model.fit(columns, each).coef_[None]) for each in targets]
    return with_small_indices(csr_array(vstack(weights)))
