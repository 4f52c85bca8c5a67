"""Classifier chains: each label knows the labels before it (Read and others, 2009)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array, hstack, issparse

from marginmf._utils.indicators import counts
from marginmf._utils.parameters import check_number
from marginmf._utils.random import as_generator
from marginmf._utils.saved import ListOf, Optional, floats, indices
from marginmf._utils.types import Float64Array, FloatArray, IntArray
from marginmf.labels.algebra.features import take_rows
from marginmf.labels.base import method
from marginmf.labels.baselines.binary_relevance import (
    PROBES,
    OneEach,
    fit_each,
    linear_weights,
    missing,
    rows_of_each,
)
from marginmf.labels.linear import affine
from marginmf.labels.wrappers import score_flaws, scores_of

ORDERS = ("frequency", "random")


@method("classifier-chains")
@dataclass(eq=False, repr=False)
class ClassifierChains(OneEach):
    """Binary classifiers in a chain: each has the labels before it among its features.

    In training these are the true labels, so that all classifiers of a chain can be learned side
    by side; in prediction they are what the classifiers before it said.  Several chains with
    random orders are an ensemble, whose scores are averaged.

    Parameters
    ----------
    estimator : classifier, optional
        Any scikit-learn classifier of two classes that has ``decision_function`` or
        ``predict_proba``; by default a `LinearSVC` with the hinge loss and
        ``C=1``.
    order : {"frequency", "random"} or sequence of int
        The order of the labels in the chain.  Frequency: frequent labels, which are learned best,
        come first.  Or the numbers of the labels, each once.
    n_chains : int
        How many chains; more than one need ``order="random"``.
    random_state : int, Generator or None
        Seeds random orders.
    n_jobs : int or None
        How many labels are learned at a time, as in scikit-learn: None is one, -1 is as many as
        there are processors.  The result does not depend on it.
    decision, tune_for, top1_if_empty, cv
        How scores become label sets; see `DecisionTuned`.

    Attributes
    ----------
    orders_ : array of shape (n_chains, n_links)
        The labels of every chain in their order.  Labels that all training rows have, or none,
        are in no chain.
    coef_ : array of shape (n_chains, n_links, n_features)
        The weights of the features, if every classifier is linear.
    link_coef_ : array of shape (n_chains, n_links, n_links)
        The weights of the labels that come before.
    intercept_ : array of shape (n_chains, n_links)
        The intercepts.
    estimators_ : list of list of classifiers
        For every chain its classifiers, if they are not linear.
    thresholds_ : array of shape (n_labels,)
        A label is predicted where its score is above.
    classes_ : array
        The names of the labels, or their numbers.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=100, n_classes=4, random_state=0)
    >>> model = ClassifierChains(order=[2, 0, 3, 1], decision="sign").fit(X, Y)
    >>> model.predict(X).shape, model.orders_
    ((100, 4), array([[2, 0, 3, 1]]))
    """

    estimator: Any = None
    order: Any = "frequency"
    n_chains: int = 1
    random_state: Any = None
    n_jobs: int | None = None

    _saved: ClassVar[dict[str, Any]] = {
        "orders_": indices("chains", "links", along="labels"),
        "coef_": Optional(floats("chains", "links", "features")),
        "link_coef_": Optional(floats("chains", "links", "links")),
        "intercept_": Optional(floats("chains", "links")),
        "estimators_": Optional(ListOf(list)),
        "_labels": "Varying",
    }
    _separate: ClassVar[frozenset[str]] = frozenset({"estimators_"})

    def _flaws(self, lengths: Mapping[str, int]) -> Iterator[str]:
        yield from super()._flaws(lengths)
        assert self._labels is not None
        expected = np.flatnonzero(self._labels.varying)
        orders = np.sort(self.orders_, axis=1)
        if len(orders) == 0 or orders.shape[1] != len(expected) or (orders != expected).any():
            yield ".orders_ are not orders of the labels that vary"
        if not hasattr(self, "estimators_"):
            yield from missing(self, "coef_", "link_coef_", "intercept_")
            return
        yield from missing(self, "estimators_")
        if [len(chain) for chain in self.estimators_] != [len(expected)] * len(orders):
            yield ".estimators_ are not one for each link"
        for number, chain in enumerate(self.estimators_):
            for k, each in enumerate(chain):
                name = f".estimators_.{number}.{k}"
                yield from score_flaws(each, name, 1, lengths["features"] + k)

    def _check(self) -> None:
        super()._check()
        check_number(self, "n_chains", int, 1)
        as_generator(self.random_state)
        if isinstance(self.order, str):
            if self.order not in ORDERS:
                raise ValueError(
                    f"order={self.order!r} is not known. Choose 'frequency', 'random' or a "
                    "sequence of the labels' numbers."
                )
        elif not (np.iterable(self.order) and all(isinstance(k, Integral) for k in self.order)):
            raise ValueError(
                f"order={self.order!r} must be 'frequency', 'random' or a sequence of whole "
                "numbers: the columns of the labels."
            )
        if self.n_chains > 1 and not (isinstance(self.order, str) and self.order == "random"):
            raise ValueError(
                f"n_chains={self.n_chains} chains in the same order would be the same: take "
                "order='random'."
            )

    def _fit(self, X: Any, Y: csr_array) -> None:
        # A chain has no use for labels that are always the same.
        self.orders_: IntArray = np.stack([self._seen.positions(each) for each in self._orders(Y)])
        chains = [_Chain.fit(X, Y[:, each], self.estimator, self.n_jobs) for each in self.orders_]
        linear = [chain.linear for chain in chains if chain.linear is not None]
        if len(linear) < len(chains):
            self.estimators_ = [chain.estimators for chain in chains]
            return
        weights = np.stack([weights for weights, _ in linear])
        self.coef_, self.link_coef_ = np.split(weights, [X.shape[1]], axis=2)
        self.intercept_ = np.stack([intercepts for _, intercepts in linear])

    def _orders(self, Y: csr_array) -> list[IntArray]:
        """Return the labels of every chain, those that do not vary included."""
        n_labels = self._seen.n_labels
        if not isinstance(self.order, str):
            order = np.asarray(self.order, np.int64)
            if not np.array_equal(np.sort(order), np.arange(n_labels)):
                raise ValueError(
                    f"order={self.order!r} must name each of the {n_labels} labels once, by the "
                    f"numbers 0 to {n_labels - 1}."
                )
            return [order]
        if self.order == "random":
            generator = as_generator(self.random_state)
            return [generator.permutation(self._seen.order.labels) for _ in range(self.n_chains)]
        return [self._seen.labels[np.argsort(-counts(Y, axis=0), kind="stable")]]

    def _scores(self, X: Any) -> FloatArray:
        total = np.zeros((X.shape[0], self.orders_.shape[1]))
        assert self._labels is not None
        varying = np.cumsum(self._labels.varying) - 1
        for number, order in enumerate(self.orders_):
            total[:, varying[order]] += self._scores_of_chain(X, number)
        return total / len(self.orders_)

    def _scores_of_chain(self, X: Any, number: int) -> FloatArray:
        if hasattr(self, "estimators_"):
            return _follow(X, self.estimators_[number])
        links = self.link_coef_[number]
        scores = affine(X, self.coef_[number].T, self.intercept_[number])
        said = np.zeros_like(scores)
        for k in range(scores.shape[1]):
            scores[:, k] += said[:, :k] @ links[k, :k]
            said[:, k] = scores[:, k] > 0
        return scores


@dataclass(frozen=True)
class _Chain:
    """The classifiers of a chain, and their weights and intercepts if they are linear."""

    estimators: list[Any]
    linear: tuple[Float64Array, Float64Array] | None

    @classmethod
    def fit(cls, X: Any, Y: csr_array, estimator: Any, n_jobs: int | None) -> "_Chain":
        """Learn the labels, whose columns are in the order of the chain."""
        width, n_links = X.shape[1], Y.shape[1]
        wide = _beside(X, Y if issparse(X) else Y.toarray())

        def features(rows: Any) -> Iterator[Any]:
            return (rows[:, : width + k] for k in range(n_links))

        fitted = fit_each(estimator, zip(features(wide), rows_of_each(Y), strict=True), n_jobs)
        linear = linear_weights(fitted, features(wide[:PROBES]))
        if linear is None:
            return cls(fitted, None)
        weights = np.zeros((n_links, width + n_links))
        for k, coef in enumerate(linear[0]):
            weights[k, : len(coef)] = coef
        return cls(fitted, (weights, linear[1]))


def _follow(X: Any, estimators: list[Any]) -> Float64Array:
    """Return the scores of classifiers that are not linear, each told what came before."""
    scores = np.zeros((X.shape[0], len(estimators)))
    for k, estimator in enumerate(estimators):
        said = (scores[:, :k] > 0).astype(np.float64)
        scores[:, k] = scores_of(estimator, _beside(X, said), 1)[:, 0]
    return scores


def _beside(X: Any, labels: Any) -> Any:
    """Return features with labels as further features."""
    if not issparse(X):
        return np.hstack([X, labels])
    wide = hstack([X, csr_array(labels)], format="csr")
    return take_rows(wide, np.arange(X.shape[0]))
