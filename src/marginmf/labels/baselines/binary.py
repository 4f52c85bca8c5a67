"""A binary classifier for every label: binary relevance, and classifier chains."""

import os
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from joblib import Parallel, delayed
from scipy.sparse import csr_array, hstack, issparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.svm import LinearSVC

from marginmf._utils.indicators import counts
from marginmf._utils.parameters import check_n_jobs, check_number
from marginmf._utils.random import as_generator
from marginmf._utils.saved import ListOf, Optional, floats, indices
from marginmf._utils.types import Float64Array, FloatArray, IntArray
from marginmf.labels.algebra.matrices import take_rows
from marginmf.labels.base import LabelsEstimator, method
from marginmf.labels.linear import LinearScores, affine
from marginmf.labels.order import Seen, Varying
from marginmf.labels.wrappers import (
    check_classifier,
    score_flaws,
    scores_are_probabilities,
    scores_of,
    takes_sparse,
)

#: How often the default classifier goes through the rows at most.
PASSES = 300
#: How many rows tell whether a classifier is what its weights say.
PROBES = 8


class OneEach(LabelsEstimator):
    """An estimator with a binary classifier for each label.

    Parameters
    ----------
    estimator : classifier, optional
        Any scikit-learn classifier of two classes that has ``decision_function`` or
        ``predict_proba``; by default a `LinearSVC` with the hinge loss and ``C=1``.
    n_jobs : int or None
        How many labels are learned at a time, as in scikit-learn: None is one, -1 is as many as
        there are processors.  The result does not depend on it.
    """

    estimator: Any
    n_jobs: int | None
    _labels: Varying

    def _check(self) -> None:
        if self.estimator is not None:
            check_classifier(self.estimator, "LinearSVC()")
        check_n_jobs(self)

    @property
    def _probability_scores(self) -> bool:
        return self.estimator is not None and scores_are_probabilities(self.estimator)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.estimator is None or takes_sparse(self.estimator)
        return tags


def missing(model: Any, *attributes: str) -> Iterator[str]:
    """Yield those of the attributes that a loaded model lacks."""
    for attribute in attributes:
        if getattr(model, attribute, None) is None:
            yield f".{attribute} is missing"


def fit_each(
    estimator: Any, problems: Iterable[tuple[Any, IntArray]], n_jobs: int | None
) -> list[Any]:
    """Fit a copy of the estimator to each problem: features, and which rows have the label."""
    # In processes, because liblinear's random numbers are the same ones for all threads.
    work, here = delayed(_fit_and_listen), os.getpid()
    found = Parallel(n_jobs)(work(here, estimator, X, rows) for X, rows in problems)
    for category, text in dict.fromkeys(warning for _, said in found for warning in said):
        warnings.warn(text, category, stacklevel=2)
    return [fitted for fitted, _ in found]


def _fit_and_listen(
    caller: int, estimator: Any, X: Any, rows: IntArray
) -> tuple[Any, list[tuple[type[Warning], str]]]:
    """Fit a copy of the estimator; in another process, return its warnings instead of them.

    Many processes would write the same to standard error, where no filter of the caller is.
    """
    if os.getpid() == caller:
        return fit_one(estimator, X, rows), []
    with warnings.catch_warnings(record=True) as said:
        fitted = fit_one(estimator, X, rows)
    return fitted, [(each.category, str(each.message)) for each in said]


def rows_of_each(Y: csr_array) -> list[IntArray]:
    """Return which rows have each label."""
    columns = Y.tocsc()
    return [columns.indices[a:b] for a, b in pairwise(columns.indptr)]


def linear_weights(
    estimators: list[Any], features: Iterable[Any]
) -> tuple[list[Float64Array], Float64Array] | None:
    """Return weights and intercepts, or None unless they give all classifiers' scores of rows."""
    weights: list[Float64Array] = []
    intercepts = np.zeros(len(estimators))
    for k, (estimator, X) in enumerate(zip(estimators, features, strict=True)):
        coef = getattr(estimator, "coef_", None)
        if coef is None or not hasattr(estimator, "decision_function"):
            return None
        flat = np.ravel(coef.toarray() if issparse(coef) else coef).astype(np.float64)
        intercept = np.ravel(getattr(estimator, "intercept_", 0.0))
        if len(flat) != X.shape[1] or len(intercept) != 1:
            return None
        scores = scores_of(estimator, X, 1)[:, 0]
        if not np.allclose(X @ flat + intercept, scores, atol=1e-6 * np.abs(scores).max()):
            return None
        weights.append(flat)
        intercepts[k] = intercept[0]
    return weights, intercepts


def fit_one(estimator: Any, X: Any, rows: IntArray, **options: Any) -> Any:
    """Fit a copy of the estimator, by default a linear SVM, to which rows have a label."""
    # int64, as in DecisionTuned.
    has_label = np.zeros(X.shape[0], np.int64)
    has_label[rows] = 1
    if estimator is not None:
        return clone(estimator).fit(X, has_label)
    with warnings.catch_warnings():
        # Where features are few and dense the last digits of the weights take very long.  They do
        # not matter: from 300 passes on to 10,000, accuracy moves by less than 0.001 on emotions,
        # yeast and CAL500, up or down.
        warnings.simplefilter("ignore", ConvergenceWarning)
        options = {"C": 1.0, "loss": "hinge", "max_iter": PASSES, "random_state": 0, **options}
        return LinearSVC(dual=True, **options).fit(X, has_label)


@method("binary-relevance")
@dataclass(eq=False, repr=False)
class BinaryRelevance(OneEach, LinearScores):
    """One binary classifier for each label, by default a linear support vector machine.

    Attributes
    ----------
    coef_ : array of shape (n_labels, n_features)
        The weights of the features, if every classifier is linear.
    intercept_ : array of shape (n_labels,)
        The intercepts, if every classifier is linear.  A label that all rows have, or none, has
        1 or -1 here, and no weights.
    estimators_ : list of classifiers
        The classifier of each label, if they are not linear; None for labels that all rows have,
        or none.

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=100, n_classes=4, random_state=0)
    >>> model = BinaryRelevance(decision="sign").fit(X, Y)
    >>> model.predict(X).shape, model.coef_.shape
    ((100, 4), (4, 20))
    """

    estimator: Any = None
    n_jobs: int | None = None

    _saved: ClassVar[dict[str, Any]] = {
        "coef_": Optional(floats("labels", "features")),
        "intercept_": Optional(floats("labels")),
        "estimators_": Optional(list),
        "_labels": "Varying",
    }

    def _flaws(self, lengths: Mapping[str, int]) -> Iterator[str]:
        yield from super()._flaws(lengths)
        if hasattr(self, "coef_"):
            yield from missing(self, "coef_", "intercept_")
            return
        yield from missing(self, "estimators_")
        varying = self._labels.varying
        if len(self.estimators_) != len(varying) or not varying.any():
            yield ".estimators_ are not one for each label"
        for label, each in enumerate(self.estimators_):
            if varying[label]:
                yield from score_flaws(each, f".estimators_.{label}", 1, lengths["features"])
            elif each is not None:
                yield f".estimators_.{label} has nothing to predict"

    def _fit(self, X: Any, Y: csr_array) -> None:
        fitted = fit_each(self.estimator, ((X, rows) for rows in rows_of_each(Y)), self.n_jobs)
        linear = linear_weights(fitted, (X[:PROBES] for _ in fitted))
        if linear is None:
            self.estimators_: list[Any] = fitted
            return
        weights, self.intercept_ = linear
        self.coef_ = np.array(weights).reshape(Y.shape[1], X.shape[1])

    def _restore(self, seen: Seen, learned: Collection[str]) -> None:
        super()._restore(seen, learned)
        if hasattr(self, "coef_"):
            self.intercept_ = self._labels.fill(self.intercept_[None])[0]
            return
        found = dict(zip(seen.labels, self.estimators_, strict=True))
        self.estimators_ = [found.get(label) for label in range(seen.n_labels)]

    def _scores(self, X: Any) -> FloatArray:
        if hasattr(self, "coef_"):
            return LinearScores._scores(self, X)
        fitted = [each for each in self.estimators_ if each is not None]
        return np.hstack([scores_of(each, X, 1) for each in fitted])


@method("classifier-chains")
@dataclass(eq=False, repr=False)
class ClassifierChains(OneEach):
    """Binary classifiers in a chain: each has the labels before it among its features.

    In training these are the true labels, so that all classifiers of a chain can be learned side
    by side; in prediction they are what the classifiers before it said.  Several chains with
    random orders are an ensemble, whose scores are averaged.

    Parameters
    ----------
    order : {"frequency", "random"} or sequence of int
        The order of the labels in the chain.  Frequency: frequent labels, which are learned best,
        come first.  Or the numbers of the labels, each once.
    n_chains : int
        How many chains; more than one need ``order="random"``.
    random_state : int, Generator or None
        Seeds random orders.

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
        named = isinstance(self.order, str)
        if named:
            known = self.order in ("frequency", "random")
        else:
            known = np.iterable(self.order) and all(isinstance(k, Integral) for k in self.order)
        if not known:
            raise ValueError(
                f"order={self.order!r} must be 'frequency', 'random' or a sequence of whole "
                "numbers: the columns of the labels."
            )
        if self.n_chains > 1 and not (named and self.order == "random"):
            raise ValueError(
                f"n_chains={self.n_chains} chains in the same order would be the same: take "
                "order='random'."
            )

    def _fit(self, X: Any, Y: csr_array) -> None:
        # A chain has no use for labels that are always the same.
        self.orders_: IntArray = np.stack([self._seen.positions(each) for each in self._orders(Y)])
        chains = [_fit_chain(X, Y[:, each], self.estimator, self.n_jobs) for each in self.orders_]
        linear = [weights for _, weights in chains if weights is not None]
        if len(linear) < len(chains):
            self.estimators_ = [estimators for estimators, _ in chains]
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
        varying = np.cumsum(self._labels.varying) - 1
        for number, order in enumerate(self.orders_):
            total[:, varying[order]] += self._scores_of_chain(X, number)
        return total / len(self.orders_)

    def _scores_of_chain(self, X: Any, number: int) -> FloatArray:
        if hasattr(self, "estimators_"):
            return _follow(X, self.estimators_[number])
        links = self.link_coef_[number]
        scores = affine(X, self.coef_[number].T, self.intercept_[number])
        predicted = np.zeros_like(scores)
        for k in range(scores.shape[1]):
            scores[:, k] += predicted[:, :k] @ links[k, :k]
            predicted[:, k] = scores[:, k] > 0
        return scores


def _fit_chain(
    X: Any, Y: csr_array, estimator: Any, n_jobs: int | None
) -> tuple[list[Any], tuple[Float64Array, Float64Array] | None]:
    """Return the classifiers of a chain, and their weights and intercepts if they are linear."""
    width, n_links = X.shape[1], Y.shape[1]
    wide = _beside(X, Y if issparse(X) else Y.toarray())

    def features(rows: Any) -> Iterator[Any]:
        return (rows[:, : width + k] for k in range(n_links))

    fitted = fit_each(estimator, zip(features(wide), rows_of_each(Y), strict=True), n_jobs)
    linear = linear_weights(fitted, features(wide[:PROBES]))
    if linear is None:
        return fitted, None
    weights = np.zeros((n_links, width + n_links))
    for k, coef in enumerate(linear[0]):
        weights[k, : len(coef)] = coef
    return fitted, (weights, linear[1])


def _follow(X: Any, estimators: list[Any]) -> Float64Array:
    """Return the scores of classifiers that are not linear, each told what came before."""
    scores = np.zeros((X.shape[0], len(estimators)))
    for k, estimator in enumerate(estimators):
        predicted = (scores[:, :k] > 0).astype(np.float64)
        scores[:, k] = scores_of(estimator, _beside(X, predicted), 1)[:, 0]
    return scores


def _beside(X: Any, labels: Any) -> Any:
    """Return features with labels as further features."""
    if not issparse(X):
        return np.hstack([X, labels])
    wide = hstack([X, csr_array(labels)], format="csr")
    return take_rows(wide, np.arange(X.shape[0]))
