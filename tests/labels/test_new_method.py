"""A new label method is one class: the base gives it all that methods have in common."""

from dataclasses import dataclass

import numpy as np
import pytest

import marginmf
from label_contracts import LabelsEstimatorContract, labelled
from marginmf._utils import saved as _demands
from marginmf._utils.saved import SAVED, floats
from marginmf.labels import METHODS, base
from marginmf.labels.base import LabelsEstimator, method
from marginmf.persistence import ModelFileError


@dataclass(eq=False, repr=False)
class Centroids(LabelsEstimator):
    """The nearer of two centroids decides for every label."""

    shrinkage: float = 0.0
    _saved = {"centres_": floats("labels", "sides", "features")}  # noqa: RUF012

    def _check(self):
        assert self.shrinkage >= 0

    def _fit(self, X, Y):
        dense, has = np.asarray(X @ np.eye(X.shape[1])), Y.toarray()
        sides = np.stack([has.T, 1.0 - has.T], axis=1)  # would divide by zero for constant labels
        self.centres_ = sides @ dense / sides.sum(axis=2, keepdims=True)

    def _scores(self, X):
        # The difference of the squared distances from the two centroids.
        of, without = self.centres_[:, 0], self.centres_[:, 1]
        squares = (of**2).sum(axis=1) - (without**2).sum(axis=1)
        return X @ (2.0 * (of - without)).T - squares


@pytest.fixture(autouse=True)
def registered(monkeypatch):
    """Register the method for one test."""
    monkeypatch.setattr(base, "METHODS", METHODS)
    monkeypatch.setitem(METHODS, "centroids", Centroids)
    monkeypatch.setitem(_demands.SAVED, "Centroids", Centroids)
    method("centroids")(Centroids)


class TestCentroids(LabelsEstimatorContract):
    grid = {"shrinkage": (0.0, 1.0)}  # noqa: RUF012
    least_accuracy = 0.4

    def make(self, **params):
        return Centroids(**params)


def test_files_and_the_command_line_know_it(tmp_path, monkeypatch):
    assert METHODS["centroids"] is Centroids
    assert Centroids.summary == "The nearer of two centroids decides for every label."
    X, Y = labelled()
    Y[:, 2] = 1
    model = Centroids().fit(X, Y)
    # Labels that do not vary were not seen, and have zeros.
    assert model.centres_.shape == (5, 2, 8)
    assert not model.centres_[2].any()
    assert model.predict(X)[:, 2].all()
    path = tmp_path / "model.marginmf"
    model.save(path)
    scores = marginmf.load(path).decision_function(X)
    np.testing.assert_array_equal(scores, model.decision_function(X))
    monkeypatch.delitem(SAVED, "Centroids")
    with pytest.raises(ModelFileError, match="'Centroids' is not an estimator"):
        marginmf.load(path)


def test_rows_and_labels_come_in_an_order_of_their_own(monkeypatch):
    seen = []
    fit = Centroids._fit
    monkeypatch.setattr(
        Centroids, "_fit", lambda self, X, Y: (seen.append((X, Y.toarray())), fit(self, X, Y))[1]
    )
    X, Y = labelled()
    rows, labels = (np.random.default_rng(4).permutation(n) for n in Y.shape)
    Centroids(decision="sign").fit(X, Y)
    Centroids(decision="sign").fit(X[rows], Y[rows][:, labels])
    for one, other in zip(*seen, strict=True):
        np.testing.assert_array_equal(one, other)
