"""``python -m studies label-ensemble``: what its cells measure, and how they are compared."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.stats import ttest_rel
from sklearn.datasets import make_multilabel_classification

from marginmf.datasets import LabelsTable
from studies.__main__ import main
from studies.harness import Store
from studies.harness.cell import measure_cell
from studies.peers import label_ensemble
from studies.peers.environments import Unavailable
from studies.peers.label_ensemble import (
    CONTENDERS,
    ENSEMBLE,
    GOAL,
    LARGE,
    MEASURES,
    TARGETS,
    cells_for,
    compare_folds,
    make_tuned,
)
from studies.thesis.label_trials import LABEL_METHODS


@pytest.fixture(autouse=True)
def made_labels(monkeypatch: pytest.MonkeyPatch) -> LabelsTable:
    X, Y = make_multilabel_classification(90, 8, n_classes=4, random_state=0)
    table = LabelsTable("made", X, csr_array(Y))
    monkeypatch.setattr(label_ensemble, "load_label_table", lambda name: table)
    return table


@pytest.mark.parametrize(
    "name", ["ridge", "OneVsRest(LogisticRegression)", "ClassifierChain(LogisticRegression)"]
)
def test_a_fold_has_all_measures(name: str) -> None:
    found = measure_cell(cells_for("made", name, "macro_f1")[3])
    assert all(0 <= found[one] <= 1 for one in MEASURES)
    assert found["n_test"] == 9
    assert 0 < found["log_loss"] < np.log(4)
    assert found["chosen"].keys() == CONTENDERS[name].grid.keys()


@pytest.mark.parametrize("target", TARGETS)
def test_parameters_and_rule_are_chosen_for_the_target(target: str) -> None:
    model = make_tuned("ExtraTrees", "scikit-learn", {}, {"min_samples_leaf": [1, 3]}, target)
    assert (model.tune_for, model.param_grid) == (target, {"min_samples_leaf": [1, 3]})


def test_every_label_method_takes_part_and_cells_say_what_they_depend_on() -> None:
    ours = {one.method for one in CONTENDERS.values() if one.library == "marginmf"}
    assert ours == set(LABEL_METHODS)
    assert len(cells_for("medical", ENSEMBLE, "accuracy")) == 10
    assert {len(cells_for(one, ENSEMBLE, "accuracy")) for one in LARGE} == {5}
    keys = {
        cell.key
        for name in CONTENDERS
        for target in TARGETS
        for cell in cells_for("medical", name, target)
    }
    assert len(keys) == 10 * len(CONTENDERS) * len(TARGETS)


def test_folds_are_compared_in_pairs() -> None:
    first, second = [0.5, 0.6, 0.7, 0.9], [0.4, 0.6, 0.65, 0.95]
    ensemble: list[Any] = [{"accuracy": one} for one in first]
    other: list[Any] = [{"accuracy": one} for one in second]
    row = compare_folds("ridge", [*ensemble, None], [*other, {"accuracy": 1.0}], "accuracy", 5)
    assert row[:3] == ["ridge", "+0.0250", "2/1/1"]
    # Training sets in common make the difference less certain than independent folds would.
    assert float(row[3]) > ttest_rel(first, second).pvalue
    [wins] = [compare_folds("x", [{"hamming": 0.1}] * 3, [{"hamming": 0.2}] * 3, "hamming", 5)[2]]
    assert wins == "3/0/0"


def test_what_was_measured_is_kept_and_shown(tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)
    words = ["label-ensemble", "--data", "made", "--methods", "ridge,PLST", "--folds", "2"]
    assert main(words) == 0
    assert "## made: chosen for accuracy" in capsys.readouterr().out
    for cell in cells_for("made", ENSEMBLE, "accuracy")[:2]:
        store = Store(tmp_path / "results")
        store.begin("full")
        store.add(cell, {**dict.fromkeys(MEASURES, 0.875), "fit_seconds": 1.0}, seconds=1.0)
    assert main([*words, "--report"]) == 0
    shown = capsys.readouterr().out
    assert "| ensemble | 2 | 0.8750 |" in shown
    assert "minus the method's" in shown


def test_other_methods_are_shown_by_their_distance_from_the_ensemble(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.begin("full")
    for name, values in {ENSEMBLE: [0.8, 0.75, 0.7], "PLST": [0.7, 0.66], "RAkEL": [0.7]}.items():
        for cell, value in zip(cells_for("medical", name, GOAL), values, strict=False):
            store.add(cell, {GOAL: value}, seconds=1.0)
    rows = label_ensemble.others_table(store).splitlines()
    assert rows[0] == "| method | medical |"
    assert rows[2:] == ["| PLST | -0.095* (2) |", "| RAkEL | -0.100 (1) |"]


def test_an_unknown_method_is_refused() -> None:
    with pytest.raises(SystemExit, match="There is no 'rigde': choose of ensemble, kernel"):
        main(["label-ensemble", "--methods", "rigde"])


def test_a_peer_that_does_not_install_is_left_out(tmp_path: Path, capsys, monkeypatch) -> None:
    def fail(name: str) -> str:
        raise Unavailable("does not install: no network")

    monkeypatch.setattr(label_ensemble._environments(), "python", fail)
    words = ["--methods", "scikit-multilearn MLkNN,ridge", "--folds", "1", "--out", str(tmp_path)]
    assert main(["label-ensemble", "--data", "made", *words]) == 0
    shown = capsys.readouterr().out
    assert "scikit-multilearn is left out: does not install: no network." in shown
    assert "| ridge | 1 |" in shown
