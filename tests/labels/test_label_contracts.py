"""Every label estimator keeps the contract that they all have in common."""

from sklearn.linear_model import RidgeClassifier

from label_contracts import LabelsEstimatorContract
from marginmf.labels import DecisionTuned


class TestDecisionTuned(LabelsEstimatorContract):
    grid = {"estimator__alpha": (0.1, 10.0)}  # noqa: RUF012

    def make(self, **params):
        return DecisionTuned(RidgeClassifier(0.1, solver="sparse_cg", tol=1e-12), **params)
