import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import make_multilabel_classification
from sklearn.model_selection import KFold
from sklearn.preprocessing import MinMaxScaler

from marginmf.datasets import LabelsTable
from marginmf.labels import DecisionTuned, RidgeEmbedding
from marginmf.metrics import labels_report
from studies.thesis import measures
from studies.thesis.measures import (
    LABEL_METHODS,
    group_pattern,
    label_measures,
    split_label_rows,
)

SIGN, GLOBAL = {"decision": "sign"}, {"decision": "global"}


@pytest.fixture(autouse=True)
def made_labels(monkeypatch: pytest.MonkeyPatch) -> LabelsTable:
    X, Y = make_multilabel_classification(120, 10, n_classes=6, random_state=0)
    table = LabelsTable("made", X, csr_array(Y))
    monkeypatch.setattr(measures, "load_label_table", lambda name: table)
    return table


def test_measures_are_those_of_a_fit_by_hand(made_labels: LabelsTable) -> None:
    found = label_measures("made", {"folds": 4}, 2, "Ridge", {"reg": 2.0}, SIGN)
    folds = KFold(4, shuffle=True, random_state=0).split(np.arange(120))
    train, test = list(folds)[2]
    scaler = MinMaxScaler().fit(made_labels.X[train])
    model = RidgeEmbedding(reg=2.0, decision="sign")
    model.fit(scaler.transform(made_labels.X[train]), made_labels.Y[train])
    predicted = model.predict(scaler.transform(made_labels.X[test]))
    report = labels_report(made_labels.Y[test], predicted)
    assert {name: found[name] for name in report} == report
    assert found["n_test"] == 30


def test_grids_are_searched_one_after_the_other(made_labels: LabelsTable) -> None:
    grids = [{"reg": [0.1, 100.0]}, {"n_factors": [1, 4]}]
    found = label_measures("made", {"folds": 4}, 0, "PLST", {}, GLOBAL, grids)
    assert set(found["chosen"]) == {"reg", "n_factors"}
    train, _ = split_label_rows(120, {"folds": 4}, 0)
    X = MinMaxScaler().fit_transform(made_labels.X[train])
    first = DecisionTuned(LABEL_METHODS["PLST"](), grids[0], **GLOBAL).fit(X, made_labels.Y[train])
    assert found["chosen"]["reg"] == first.best_params_["reg"]


@pytest.mark.parametrize("method", sorted(LABEL_METHODS))
def test_every_method_is_measured(method: str) -> None:
    found = label_measures("made", {"folds": 4}, 0, method, {}, SIGN)
    assert 0 < found["accuracy"] <= 1


def test_larger_shares_hold_the_rows_of_smaller_ones_and_never_the_test() -> None:
    few, test = split_label_rows(100, {"test": 0.1, "train": 0.4}, 3)
    more, same = split_label_rows(100, {"test": 0.1, "train": 1.0}, 3)
    assert np.array_equal(test, same)
    assert (len(test), len(few), len(more)) == (10, 36, 90)
    assert set(few) < set(more)
    assert not set(more) & set(test)


def test_the_pattern_of_groups_has_a_column_for_every_label() -> None:
    found = group_pattern("made", {"n_factors": 4, "n_groups": 2, "reg_group": 2.0})
    assert np.array(found["factors"]).shape[1] == len(found["groups"]) == 6
