"""Comparisons of label sets, of the scores that rank labels, and of probabilities."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator
from sklearn.datasets import make_multilabel_classification
from sklearn.dummy import DummyClassifier
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import KFold as PlainKFold
from sklearn.neighbors import KNeighborsClassifier

from marginmf.datasets import LabelsTable
from marginmf.labels import PLST, MLkNN, Scaled
from marginmf.metrics import labels_report
from marginmf.protocols import IterativeStratifiedKFold, KFold, compare_labels
from marginmf.protocols.splits import AllSamples

X, Y = make_multilabel_classification(n_samples=90, n_classes=4, random_state=0)


class RidgeLabels(BaseEstimator):
    """Label sets without scores."""

    def fit(self, X, Y):
        self.model_ = RidgeClassifier().fit(X, Y)
        return self

    def predict(self, X):
        return self.model_.predict(X)


def test_label_sets_are_compared_by_the_same_engine(tmp_path) -> None:
    models = {"plst": PLST(), "mlknn": MLkNN(), "most": DummyClassifier()}
    path = tmp_path / "labels.jsonl"
    compared = compare_labels((X, Y), models, IterativeStratifiedKFold(3), checkpoint=path)
    assert compared.metrics[:2] == ("accuracy", "hamming")
    for number, (train, test) in enumerate(IterativeStratifiedKFold(3).split(X, Y)):
        model = PLST().fit(X[train], Y[train])
        scores = model.decision_function(X[test])
        likely = model.predict_proba(X[test])
        report = labels_report(Y[test], model.predict(X[test]), scores, (1, 3), likely)
        for name, value in report.items():
            assert compared.values["plst"][name][number] == value
    assert compared.best("hamming") in models
    assert compared.test_size == pytest.approx(1 / 3)
    assert "precision_at_5" not in compared.values["plst"]  # there are four labels
    again = compare_labels((X, Y), models, IterativeStratifiedKFold(3), checkpoint=path)
    assert again.values == compared.values


def test_labels_in_any_form_and_splitter() -> None:
    table = LabelsTable("songs", X, Y)
    rows = np.arange(60), np.arange(60, 90)
    published = compare_labels(table, ["plst"], [rows], ["micro_f1", "ndcg_at_2"])
    assert published.n_splits == 1
    assert 0 < published.mean("plst", "ndcg_at_2") <= 1
    plain = compare_labels((X, Y), ["plst"], PlainKFold(2, shuffle=True, random_state=0))
    assert plain.n_splits == 2
    assert compare_labels((X, Y), ["plst"], KFold(2)).n_splits == 2
    beyond = compare_labels((X, Y), {"near": KNeighborsClassifier(30)}, KFold(2))
    assert np.isfinite(beyond.values["near"]["ndcg_at_1"]).all()


def test_a_model_without_scores_has_no_metrics_of_scores() -> None:
    models = {"plst": PLST(), "ridge": RidgeLabels()}
    compared = compare_labels((X, Y), models, KFold(2))
    assert "coverage" not in compared.values["ridge"]
    assert np.isnan(compared.mean("ridge", "coverage"))
    assert compared.best("coverage") == "plst"


def test_probabilities_are_judged_where_there_are_any() -> None:
    models = {"plst": PLST(), "sign": PLST(decision="sign")}
    compared = compare_labels((X, Y), models, KFold(2))
    assert compared.metrics[-3:] == ("log_loss", "calibration_error", "seconds")
    assert "log_loss" not in compared.values["sign"]
    assert compared.best("log_loss") == "plst"
    headings, plst, sign = compared.rows()
    cells = dict(zip(headings, zip(plst, sign, strict=True), strict=True))
    assert cells["calibration error"][0].startswith("*0.")
    assert cells["log loss"][1] == cells["calibration error"][1] == ""
    assert np.isnan(compared.frame(["log_loss"])["p_value"]).all()
    alone = compare_labels((X, Y), {"sign": models["sign"]}, KFold(2))
    assert "log_loss" not in alone.metrics
    assert "log loss" not in str(alone)


def test_probabilities_that_are_asked_for_must_be_there() -> None:
    models = {"plst": PLST(), "ridge": RidgeLabels()}
    with pytest.raises(ValueError, match=r"log_loss judges probabilities, but RidgeLabels has no"):
        compare_labels((X, Y), models, KFold(2), iter(["log_loss", "seconds"]))
    with pytest.warns(UserWarning, match="ridge is left out: log_loss judges probabilities"):
        found = compare_labels((X, Y), models, KFold(2), ["log_loss"], unsuitable="skip")
    assert found.methods == ["plst"]
    report = labels_report(Y, Y, probabilities=np.tile(Y.mean(axis=0), (len(Y), 1)))
    assert found.mean("plst", "log_loss") < report["log_loss"]


def test_one_label_may_have_the_probabilities_of_two_classes() -> None:
    class Nearest(KNeighborsClassifier):
        def fit(self, rows, labels):
            return super().fit(rows, labels.ravel())

        def predict(self, rows):
            return super().predict(rows).reshape(-1, 1)

        def decision_function(self, rows):
            return self.predict_proba(rows)[:, 1:]

    found = compare_labels((X, Y[:, :1]), {"near": Nearest(3)}, KFold(2))
    assert "log_loss" not in found.metrics


@pytest.mark.parametrize("decision", ["global", "per_label", "jaccard"])
def test_kernels_are_compiled_under_every_rule(decision) -> None:
    fitted = []

    class Watched(PLST):
        def _fit(self, X, Y):
            fitted.append(X.shape[0])
            super()._fit(X, Y)

    model = Scaled(Watched(decision=decision), decision=decision)
    AllSamples((X, Y), []).split((np.arange(60), np.arange(60, 90))).warm_up(model)
    assert fitted == [20]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: compare_labels(X, ["plst"]), r"LabelsTable or a pair \(X, Y\), not ndarray"),
        (lambda: compare_labels((X[:5], Y), ["plst"]), "a row for each sample"),
        (
            lambda: compare_labels((X, Y), {"r": RidgeLabels()}, metrics=["ndcg_at_2"]),
            "ndcg_at_2 ranks labels by their scores, but RidgeLabels has neither",
        ),
    ],
)
def test_what_cannot_be_compared(call, message) -> None:
    with pytest.raises(ValueError, match=message):
        call()
