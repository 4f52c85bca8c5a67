"""Every label estimator keeps the contract that they all have in common."""

from sklearn.linear_model import RidgeClassifier
from sklearn.svm import LinearSVC

from label_contracts import LabelsEstimatorContract
from marginmf.labels import (
    CPLST,
    PLST,
    BinaryRelevance,
    ClassifierChains,
    DecisionTuned,
    MLkNN,
    RidgeEmbedding,
)


class TestDecisionTuned(LabelsEstimatorContract):
    grid = {"estimator__alpha": (0.1, 10.0)}  # noqa: RUF012

    def make(self, **params):
        return DecisionTuned(RidgeClassifier(0.1, solver="sparse_cg", tol=1e-12), **params)


class TestBinaryRelevance(LabelsEstimatorContract):
    grid = {"estimator": (LinearSVC(C=0.1), LinearSVC())}  # noqa: RUF012

    def make(self, **params):
        return BinaryRelevance(**params)


class TestClassifierChains(LabelsEstimatorContract):
    grid = {"order": ("frequency", [4, 3, 2, 1, 0])}  # noqa: RUF012

    def make(self, **params):
        return ClassifierChains(**params)


class TestMLkNN(LabelsEstimatorContract):
    grid = {"n_neighbors": (3, 5)}  # noqa: RUF012
    least_accuracy = 0.4

    def make(self, **params):
        return MLkNN(5, **params)


class TestPLST(LabelsEstimatorContract):
    grid = {"n_factors": (1, 3)}  # noqa: RUF012

    def make(self, **params):
        return PLST(4, 0.1, **params)


class TestCPLST(LabelsEstimatorContract):
    grid = {"reg": (0.1, 1.0)}  # noqa: RUF012

    def make(self, **params):
        return CPLST(4, 0.1, **params)


class TestRidgeEmbedding(LabelsEstimatorContract):
    grid = {"reg": (0.1, 1.0)}  # noqa: RUF012

    def make(self, **params):
        return RidgeEmbedding(0.1, **params)
