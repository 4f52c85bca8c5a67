"""Every label estimator keeps the contract that they all have in common.

A method of the registry that has no class of its own here runs the contract with its defaults.
"""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import coo_array, csr_array, csr_matrix
from sklearn.linear_model import RidgeClassifier
from sklearn.svm import LinearSVC

from label_contracts import NAMES, LabelsEstimatorContract
from marginmf._utils.saved import saved
from marginmf.labels import (
    BPMLL,
    CLR,
    CPLST,
    CSSP,
    LEML,
    LIFT,
    LLSF,
    METHODS,
    MLCHMF,
    MLDT,
    MLSF,
    PLST,
    SSJDR,
    AdaBoostMH,
    AdaBoostMR,
    BinaryRelevance,
    ClassifierChains,
    DecisionTuned,
    FaIE,
    GroPLE,
    KernelEmbedding,
    LabelEnsemble,
    LabelPowerset,
    MLkNN,
    RAkEL,
    RidgeEmbedding,
)
from marginmf.labels.base import method


class TestMLCHMF(LabelsEstimatorContract):
    grid = {"reg": (1.0, 3.0)}  # noqa: RUF012
    # After few iterations the way still depends on rounding.
    float32_tolerance = 0.1
    least_accuracy = 0.4

    def make(self, **params):
        return MLCHMF(max_depth=2, max_iter=15, **{"random_state": 0, "cv": 2} | params)

    def make_for_many_labels(self):
        return MLCHMF(6, 0.1, max_depth=0, max_iter=40, decision="sign", random_state=0)


class TestGroPLE(LabelsEstimatorContract):
    grid = {"reg_sparse": (0.1, 1.0)}  # noqa: RUF012

    def make(self, **params):
        settings = {"n_groups": 2, "reg_sparse": 0.1, "dtype": "float64", "random_state": 0}
        return GroPLE(4, **settings | {"max_iter": 50, "cv": 2} | params)

    def make_for_many_labels(self):
        return GroPLE(4, max_iter=5, decision="sign", random_state=0)


class TestKernelEmbedding(LabelsEstimatorContract):
    grid = {"reg": (0.1, 1.0)}  # noqa: RUF012

    def make(self, **params):
        return KernelEmbedding(0.1, 1.0, "none", **params)


class TestLabelEnsemble(LabelsEstimatorContract):
    grid = {"members": (("ridge",), ("ridge", "kernel"))}  # noqa: RUF012
    # Where members know nothing of rows held out, they are not trusted with those of training.
    least_wide_accuracy = 0.0

    def make(self, **params):
        members = (RidgeEmbedding(0.1), KernelEmbedding(0.1, 1.0, "none"), MLkNN(5))
        return LabelEnsemble(members, **{"random_state": 0} | params)


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


class TestRAkEL(LabelsEstimatorContract):
    grid = {"k": (1, 2)}  # noqa: RUF012

    def make(self, **params):
        return RAkEL(**{"k": 2, "n_sets": 4, "random_state": 0, "cv": 2} | params)

    def make_for_many_labels(self):
        return RAkEL(20, 1, decision="sign", random_state=0)


class TestLabelPowerset(LabelsEstimatorContract):
    grid = {"soft": (False, True)}  # noqa: RUF012
    # The logistic function of rare combinations' scores says little on few rows.
    least_accuracy = 0.5

    def make(self, **params):
        return LabelPowerset(**{"cv": 2} | params)

    def make_for_many_labels(self):
        return LabelPowerset(soft=False, decision="sign")


class TestCLR(LabelsEstimatorContract):
    grid = {"soft": (False, True)}  # noqa: RUF012

    def make(self, **params):
        return CLR(**{"cv": 2} | params)

    def test_ten_thousand_labels(self):
        Y = np.eye(40, 10_000, dtype=int)
        with pytest.raises(ValueError, match="10000 labels are too many for: take at most 500"):
            self.make().fit(np.eye(40), Y)


class TestMLDT(LabelsEstimatorContract):
    grid = {"min_samples_leaf": (2, 5)}  # noqa: RUF012

    def make(self, **params):
        return MLDT(**{"random_state": 0} | params)


class TestForest(LabelsEstimatorContract):
    grid = {"max_features": (3, 0.9)}  # noqa: RUF012

    def make(self, **params):
        return MLDT(12, **{"bootstrap": True, "random_state": 0} | params)


class TestLIFT(LabelsEstimatorContract):
    grid = {"ratio": (0.1, 0.3)}  # noqa: RUF012

    def make(self, **params):
        return LIFT(0.2, **{"random_state": 0, "cv": 2} | params)


class TestMLkNN(LabelsEstimatorContract):
    grid = {"n_neighbors": (3, 5)}  # noqa: RUF012
    least_accuracy = 0.4

    def make(self, **params):
        return MLkNN(5, **params)


class TestBPMLL(LabelsEstimatorContract):
    grid = {"hidden": (3, 0.5)}  # noqa: RUF012

    def make(self, **params):
        return BPMLL(
            **{"hidden": 6, "max_epochs": 40, "learning_rate": 0.03, "random_state": 0, "cv": 2}
            | params
        )


class TestAdaBoostMH(LabelsEstimatorContract):
    grid = {"n_rounds": (5, 10)}  # noqa: RUF012

    def make(self, **params):
        return AdaBoostMH(**{"n_rounds": 15, "n_bins": 8} | params)


class TestAdaBoostMR(TestAdaBoostMH):
    def make(self, **params):
        return AdaBoostMR(**{"n_rounds": 15, "n_bins": 8} | params)


class TestMLSF(LabelsEstimatorContract):
    grid = {"gamma": (0.1, 1.0)}  # noqa: RUF012

    def make(self, **params):
        return MLSF(3, gamma=0.1, **{"random_state": 0, "cv": 2} | params)

    def make_for_many_labels(self):
        return MLSF(10, gamma=0.1, decision="sign", random_state=0)


class TestSSJDR(LabelsEstimatorContract):
    grid = {"reg": (0.01, 0.1)}  # noqa: RUF012

    def make(self, **params):
        settings = {"max_iter": 30, "random_state": 0, "cv": 2}
        return SSJDR(4, reg=0.01, n_neighbors=3, **settings | params)

    def make_for_many_labels(self):
        return SSJDR(6, reg=0.001, max_iter=60, decision="sign", random_state=0)


class TestPLST(LabelsEstimatorContract):
    grid = {"n_factors": (1, 3)}  # noqa: RUF012

    def make(self, **params):
        return PLST(4, 0.1, **params)


class TestCPLST(LabelsEstimatorContract):
    grid = {"reg": (0.1, 1.0)}  # noqa: RUF012

    def make(self, **params):
        return CPLST(4, 0.1, **params)


class TestCSSP(LabelsEstimatorContract):
    grid = {"n_labels_kept": (2, 1.0)}  # noqa: RUF012

    def make(self, **params):
        return CSSP(0.8, 0.1, **{"random_state": 0} | params)


class TestFaIE(LabelsEstimatorContract):
    grid = {"alpha": (0.1, 10.0)}  # noqa: RUF012

    def make(self, **params):
        return FaIE(0.8, 1.0, 0.1, **params)


class TestLEML(LabelsEstimatorContract):
    grid = {"n_factors": (1, 0.8)}  # noqa: RUF012
    least_accuracy = 0.5  # it has no intercept

    def make(self, **params):
        return LEML(0.8, 0.1, **{"random_state": 0} | params)


class TestLLSF(LabelsEstimatorContract):
    grid = {"beta": (0.01, 0.1)}  # noqa: RUF012
    least_accuracy = 0.5  # it has no intercept

    def make(self, **params):
        return LLSF(**params)


class TestRidgeEmbedding(LabelsEstimatorContract):
    grid = {"reg": (0.1, 1.0)}  # noqa: RUF012

    def make(self, **params):
        return RidgeEmbedding(0.1, **params)

    # What is done before any method sees the data is tested with one of them.

    @pytest.mark.parametrize("form", [coo_array, csr_matrix])
    def test_other_sparse_features_give_the_same_answers(self, model, data, form):
        X, Y = data
        other = self.make().fit(form(X), Y)
        self.assert_same_scores(other.decision_function(form(X)), model.decision_function(X))
        np.testing.assert_array_equal(other.predict(form(X)), model.predict(X))

    @pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
    def test_names_of_either_kind_of_data_frame(self, model, data, frame):
        X, Y = data
        columns = [f"feature {k}" for k in range(X.shape[1])]
        features = frame(dict(zip(columns, X.T, strict=True)))
        other = self.make().fit(features, frame(dict(zip(NAMES, Y.T, strict=True))))
        assert other.classes_.tolist() == NAMES
        assert other.feature_names_in_.tolist() == columns
        np.testing.assert_array_equal(other.predict(features), model.predict(X))

    def test_sparse_labels_keep_their_type(self, model, data):
        X, Y = data
        predicted = self.make().fit(X, csr_array(Y.astype(np.float64))).predict(X)
        assert predicted.dtype == np.float64
        np.testing.assert_array_equal(predicted.toarray(), model.predict(X))


def _with_defaults(kind):
    settings = {"random_state": 0} if "random_state" in kind().get_params() else {}
    make = lambda self, **params: kind(**settings | params)  # noqa: E731
    return type(f"Test{kind.__name__}", (LabelsEstimatorContract,), {"make": make})


for _kind in METHODS.values():
    globals().setdefault(f"Test{_kind.__name__}", _with_defaults(_kind))


def test_every_method_has_a_name_and_a_line_about_it():
    for name, kind in METHODS.items():
        assert (kind.command_name, kind.summary[-1]) == (name, ".")
        assert name == name.lower()


def test_two_methods_or_parts_cannot_have_one_name():
    other = type("GroPLE", (GroPLE,), {})
    with pytest.raises(ValueError, match="another label method that is called 'grople'"):
        method("grople")(other)
    with pytest.raises(ValueError, match="another class that is called 'GroPLE'"):
        saved(other)
