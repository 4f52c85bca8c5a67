"""ML-kNN: how many neighbours have a label says how likely it is (Zhang and Zhou, 2007)."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_array

from marginmf._utils import indicators as _indicators
from marginmf._utils.parameters import check_number
from marginmf._utils.saved import Stored, floats
from marginmf._utils.types import Float64Array, FloatArray, IntArray
from marginmf.labels.algebra.features import Neighbours
from marginmf.labels.base import LabelsEstimator, method


@method("mlknn")
@dataclass(eq=False, repr=False)
class MLkNN(LabelsEstimator):
    """Multi-label k nearest neighbours (Zhang and Zhou, 2007).

    For every label the training rows say how often it goes with 0, 1, ... k neighbours that have
    it, where a row is not its own neighbour.  Bayes' rule makes of that the probability of the
    label, given how many neighbours of a new row have it.

    Parameters
    ----------
    n_neighbors : int
        How many neighbours are asked; if there are fewer other rows, all of them.
    smoothing : float
        How many rows of each kind are thought to have been seen beforehand; above 0.
    decision, tune_for, top1_if_empty, cv
        How scores become label sets; see `LabelsEstimator`.  The paper has ``decision="sign"``: a
        score is the probability minus one half.

    Attributes
    ----------
    neighbours_ : Neighbours
        The training rows, in an order of their own.
    stored_labels_ : csr_array of shape (n_samples, n_labels)
        Their labels.
    prior_ : array of shape (n_labels,)
        How likely each label is.
    posterior_ : array of shape (n_labels, n_neighbors + 1)
        How likely, given how many of the neighbours have it.

    Notes
    -----
    Distances are Euclidean: features without a unit in common should be scaled first
    (`MinMaxScaler` suits).

    Examples
    --------
    >>> from sklearn.datasets import make_multilabel_classification
    >>> X, Y = make_multilabel_classification(n_samples=100, n_classes=4, random_state=0)
    >>> model = MLkNN(n_neighbors=5).fit(X, Y)
    >>> model.predict(X).shape, model.posterior_.shape
    ((100, 4), (4, 6))
    """

    n_neighbors: int = 10
    smoothing: float = 1.0

    # Of a label that does not vary, the priors say how surely.
    _varying_only: ClassVar[bool] = False
    _saved: ClassVar[dict[str, Any]] = {
        "neighbours_": "Neighbours",
        "stored_labels_": Stored(("rows", "labels")),
        "prior_": floats("labels"),
        "posterior_": floats("labels", "numbers"),
    }

    def _flaws(self, lengths: Mapping[str, int]) -> Iterator[str]:
        yield from super()._flaws(lengths)
        labels = self.stored_labels_
        if labels.shape[0] != self.neighbours_.stored_.shape[0]:
            yield ".stored_labels_ are not those of its neighbours"
        if type(labels) is not csr_array or not (labels.data == 1).all():
            yield ".stored_labels_ has something else than ones"
        if self.posterior_.shape[1] != self.neighbours_.n_neighbors + 1:
            yield ".posterior_ is for another number of neighbours"

    def _check(self) -> None:
        check_number(self, "n_neighbors", int, 1)
        check_number(self, "smoothing", float, 0)
        if self.smoothing == 0:
            raise ValueError("smoothing=0 must be above 0: nothing seen is not impossible.")

    def _fit(self, X: Any, Y: csr_array) -> None:
        n_neighbors = min(self.n_neighbors, Y.shape[0] - 1)
        self.neighbours_ = Neighbours(n_neighbors).fit(X)
        self.stored_labels_ = Y
        counts = self._counts(self.neighbours_.kneighbors())
        self.prior_, self.posterior_ = _probabilities(
            self.stored_labels_, counts, n_neighbors, float(self.smoothing)
        )

    def _scores(self, X: Any) -> FloatArray:
        counts = self._counts(self.neighbours_.kneighbors(X)).tocoo()
        scores = np.tile(self.posterior_[:, 0], (X.shape[0], 1))
        scores[counts.row, counts.col] = self.posterior_[counts.col, counts.data.astype(np.int64)]
        scores -= 0.5
        return scores

    def _counts(self, neighbours: IntArray) -> csr_array:
        """Return how many of the neighbours have each label."""
        n, k = neighbours.shape
        shape = (n, self.stored_labels_.shape[0])
        chosen = csr_array((np.ones(n * k), neighbours.ravel(), k * np.arange(n + 1)), shape)
        return csr_array(chosen @ self.stored_labels_)


def _probabilities(
    Y: csr_array, counts: csr_array, n_neighbors: int, smoothing: float
) -> tuple[Float64Array, Float64Array]:
    """Return how likely labels are, and how likely given the number of neighbours with them."""
    having = _indicators.counts(Y, axis=0)
    lacking = Y.shape[0] - having
    # Rows by label and number of neighbours: those that have the label, and all.
    with_label = _histograms(counts.multiply(Y).tocsr(), having, n_neighbors)
    without = _histograms(counts, having + lacking, n_neighbors) - with_label
    prior = (smoothing + having) / (2.0 * smoothing + Y.shape[0])
    total = smoothing * (n_neighbors + 1)
    for_label = prior[:, None] * (smoothing + with_label) / (total + having)[:, None]
    against = (1.0 - prior)[:, None] * (smoothing + without) / (total + lacking)[:, None]
    return prior, for_label / (for_label + against)


def _histograms(counts: csr_array, totals: IntArray, largest: int) -> IntArray:
    """Return how often each number occurs in a column; zeros, not stored, are what is missing."""
    n_columns = counts.shape[1]
    cells = counts.indices.astype(np.int64) * (largest + 1) + counts.data.astype(np.int64)
    found = np.bincount(cells, minlength=n_columns * (largest + 1)).reshape(n_columns, -1)
    found[:, 0] = totals - found[:, 1:].sum(axis=1)
    return found
