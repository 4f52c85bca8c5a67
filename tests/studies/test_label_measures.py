import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.datasets import make_multilabel_classification
from sklearn.model_selection import KFold
from sklearn.preprocessing import MinMaxScaler

from marginmf.datasets import LabelsTable
from marginmf.labels import PLST, DecisionTuned, RidgeEmbedding
from marginmf.metrics import labels_report
from studies.thesis import measures
from studies.thesis.label_trials import LABEL_METHODS, LabelTrial, has_label_method
from studies.thesis.measures import group_pattern, label_measures, split_label_rows

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


def test_all_pairs_are_searched_with_a_threshold(made_labels: LabelsTable) -> None:
    grid = {"reg": [0.1, 100.0], "n_factors": [1, 4]}
    found = label_measures("made", {"folds": 4}, 0, "PLST", {}, GLOBAL, [grid])
    train, test = split_label_rows(120, {"folds": 4}, 0)
    scaler = MinMaxScaler().fit(made_labels.X[train])
    rule = {**GLOBAL, "top1_if_empty": False}
    model = DecisionTuned(PLST(), grid, **rule)
    model.fit(scaler.transform(made_labels.X[train]), made_labels.Y[train])
    assert found["chosen"] == model.best_params_
    predicted = model.predict(scaler.transform(made_labels.X[test]))
    assert found["accuracy"] == labels_report(made_labels.Y[test], predicted)["accuracy"]


def search_slowly(table: LabelsTable, regs: list[float], target: str) -> float:
    """Return the strength with the best predictions of rows held out, in the plainest way."""
    train, _ = split_label_rows(120, {"folds": 4}, 0)
    X, Y = MinMaxScaler().fit_transform(table.X[train]), table.Y[train].toarray()
    values = []
    for reg in regs:
        predicted = np.zeros_like(Y)
        for fit, held in KFold(3, shuffle=True, random_state=0).split(X):
            model = RidgeEmbedding(reg=reg, decision="sign").fit(X[fit], Y[fit])
            predicted[held] = model.predict(X[held])
        values.append(labels_report(Y, predicted)[target])
    return regs[int(np.argmin(values) if target == "hamming" else np.argmax(values))]


def test_under_the_sign_rule_one_search_serves_all_targets(made_labels: LabelsTable) -> None:
    regs, targets = [0.01, 3.0, 300.0], ["accuracy", "hamming", "macro_f1"]
    search = [{"reg": regs}]
    found = label_measures("made", {"folds": 4}, 0, "Ridge", {}, SIGN, search, targets)
    chosen = [found["chosen"], *(found["for"][one]["chosen"] for one in targets[1:])]
    expected = [{"reg": search_slowly(made_labels, regs, target)} for target in targets]
    assert chosen == expected
    alone = label_measures("made", {"folds": 4}, 0, "Ridge", chosen[1], SIGN)
    assert found["for"]["hamming"]["hamming"] == alone["hamming"]


def test_of_many_candidates_only_the_best_see_all_folds(monkeypatch) -> None:
    made: list[float] = []
    make = LabelTrial.make
    monkeypatch.setattr(
        LabelTrial, "make", lambda self, one: (made.append(one["reg"]), make(self, one))[1]
    )
    regs = [10.0**k for k in range(-3, 6)]
    found = label_measures("made", {"folds": 4}, 0, "Ridge", {}, SIGN, [{"reg": regs}])
    # All on the first fold, the best three on the others, and the best on all rows.
    assert made[:9] == regs
    assert len(made) == 9 + 3 + 3 + 1
    assert made[-1] == found["chosen"]["reg"]


@pytest.mark.parametrize("rule", [SIGN, GLOBAL])
def test_the_form_of_dense_features_is_a_candidate(made_labels: LabelsTable, rule) -> None:
    # One feature in other units drowns the others, unless they are scaled.
    made_labels.X[:, 0] *= 1e4
    search = [{"features": ["raw", "scaled"]}]
    found = label_measures("made", {"folds": 4}, 0, "ML-kNN", {}, rule, search)
    plain = label_measures("made", {"folds": 4}, 0, "ML-kNN", {}, rule)
    assert found["chosen"] == {"features": "scaled"}
    assert found["accuracy"] == plain["accuracy"]


@pytest.mark.parametrize("method", sorted(LABEL_METHODS))
def test_every_method_is_measured(method: str) -> None:
    if not has_label_method(method):
        with pytest.raises(ValueError, match=rf"marginmf.labels has no .*, so {method} cannot"):
            label_measures("made", {"folds": 4}, 0, method, {}, SIGN)
        return
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
