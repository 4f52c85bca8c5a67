import csv
import json
from pathlib import Path
from statistics import fmean, stdev

import numpy as np
import pytest
from labels_inputs import as_csv, songs
from sklearn.model_selection import KFold

from marginmf.cli.evaluate import LABELLED
from marginmf.cli.options import LABEL_METHODS
from marginmf.datasets.labels.arrays import write_labels_npz
from marginmf.labels import PLST, Scaled
from marginmf.metrics import PROBABILITY_METRICS, labels_report

TABLE = songs()
PLST_CV = ["--labels", "3", "--model", "plst", "--cv", "3"]


@pytest.fixture(autouse=True)
def files(tmp_path: Path) -> None:
    (tmp_path / "songs.csv").write_text(as_csv(TABLE))


def test_a_table_of_mean_and_deviation(run) -> None:
    outcome = run("labels", "evaluate", "songs.csv", *PLST_CV)
    assert (outcome.code, outcome.err) == (0, "")
    lines = outcome.out.splitlines()
    assert lines[0].startswith("songs.csv: 80 rows, 5 features, 3 labels, ")
    assert lines[1] == "Held out: 3 folds. Decision: auto, chosen for accuracy."
    (accuracy,) = (line.split() for line in lines if line.startswith(" accuracy"))
    mean, sign, deviation, *each = accuracy[1:]
    assert sign == "±"
    assert float(mean) == pytest.approx(fmean(map(float, each)), abs=2e-3)
    assert float(deviation) == pytest.approx(stdev(map(float, each)), abs=2e-3)
    assert any(line.startswith(" precision@3") for line in lines)
    assert not any(line.startswith(" precision@5") for line in lines)  # there are three labels
    assert any(line.startswith(" calibration error") for line in lines)


def test_the_measures_are_those_of_the_library(run) -> None:
    rule = ["--decision", "sign", "--seed", "5", "--json"]
    outcome = run("labels", "evaluate", "songs.csv", *PLST_CV, *rule)
    result = json.loads(outcome.out)
    assert result["folds"] == {"name": "cv", "folds": 3, "stratified": False}
    Y = TABLE.Y.toarray()
    reports = []
    for train, test in KFold(3, shuffle=True, random_state=5).split(TABLE.X):
        model = Scaled(PLST(), decision="sign").fit(TABLE.X[train], Y[train])
        rows = TABLE.X[test]
        reports.append(
            labels_report(Y[test], model.predict(rows), model.decision_function(rows), (1, 3))
        )
    assert result["metrics"].keys() == {*reports[0], "seconds"}
    for name, values in result["metrics"].items():
        if name != "seconds":
            np.testing.assert_allclose(values["splits"], [report[name] for report in reports])
            assert values["mean"] == pytest.approx(fmean(values["splits"]))


def test_probabilities_are_judged_unless_there_are_none(run) -> None:
    outcome = run("labels", "evaluate", "songs.csv", *PLST_CV, "--json")
    measured = json.loads(outcome.out)["metrics"]
    likely = []
    for train, test in KFold(3, shuffle=True, random_state=0).split(TABLE.X):
        model = Scaled(PLST()).fit(TABLE.X[train], TABLE.Y[train])
        likely.append((TABLE.Y[test], model.predict_proba(TABLE.X[test])))
    for name, one in PROBABILITY_METRICS.items():
        np.testing.assert_allclose(measured[name]["splits"], [one(*both) for both in likely])
    without = run("labels", "evaluate", "songs.csv", *PLST_CV, "--decision", "sign").out
    assert "log loss" not in without


def test_the_ensemble_is_evaluated_by_default(run) -> None:
    quick = ["--labels", 3, "--cv", 2, "--set", "members=ridge,mlknn", "--threads", 1, "--json"]
    result = json.loads(run("labels", "evaluate", "songs.csv", *quick).out)
    assert result["model"] == "ensemble"
    assert result["decision"]["decision"] == "auto"
    assert set(LABELLED.split(",")) <= set(LABEL_METHODS)


def test_folds_may_be_stratified(run) -> None:
    outcome = run("labels", "evaluate", "songs.csv", *PLST_CV, "--stratified", "--json")
    plain = run("labels", "evaluate", "songs.csv", *PLST_CV, "--json")
    stratified = json.loads(outcome.out)
    assert stratified["folds"]["stratified"] is True
    assert stratified["metrics"]["accuracy"] != json.loads(plain.out)["metrics"]["accuracy"]


def test_the_split_of_the_owner_is_one_fold(run) -> None:
    from dataclasses import replace

    split = replace(TABLE, train_idx=np.arange(60), test_idx=np.arange(60, 80))
    write_labels_npz(split, Path("songs.npz"))
    outcome = run("labels", "evaluate", "songs.npz", "--model", "plst", "--split", "--json")
    result = json.loads(outcome.out)
    assert result["folds"] == {"name": "split", "folds": 1}
    model = Scaled(PLST()).fit(TABLE.X[:60], TABLE.Y[:60])
    report = labels_report(TABLE.Y[60:], model.predict(TABLE.X[60:]))
    assert result["metrics"]["accuracy"]["mean"] == pytest.approx(report["accuracy"])
    assert result["metrics"]["accuracy"]["sd"] is None
    words = run("labels", "evaluate", "songs.npz", "--model", "plst", "--split").out
    assert "Held out: the file's own training and test rows." in words


def test_one_rule_for_all_methods_in_one_table(run) -> None:
    models = ["--models", "plst,mlknn", "--labels", "3", "--cv", "3"]
    outcome = run("labels", "compare", "songs.csv", *models, "--top1")
    assert (outcome.code, outcome.err) == (0, "")
    assert "the best label where there is none" in outcome.out
    assert "the best label" not in run("labels", "compare", "songs.csv", *models).out
    rows = [line.split() for line in outcome.out.splitlines()]
    both = [next(row for row in rows if row[:1] == [name]) for name in ("plst", "mlknn")]
    assert any(cell.startswith("*") for row in both for cell in row)


def test_every_method_sees_the_same_folds(run) -> None:
    alone = json.loads(run("labels", "evaluate", "songs.csv", *PLST_CV, "--json").out)
    models = ["--models", "mlknn,plst", "--labels", "3", "--cv", "3", "--json"]
    beside = json.loads(run("labels", "compare", "songs.csv", *models).out)
    assert beside["models"]["plst"]["accuracy"] == alone["metrics"]["accuracy"]
    best = beside["best"]["accuracy"]
    means = {name: own["accuracy"]["mean"] for name, own in beside["models"].items()}
    assert means[best] == max(means.values())
    losses = {name: own["hamming"]["mean"] for name, own in beside["models"].items()}
    assert losses[beside["best"]["hamming"]] == min(losses.values())


@pytest.mark.parametrize("name", ["table.csv", "table.md", "table.json", "table.png"])
def test_the_table_is_kept_by_its_ending(run, name: str) -> None:
    models = ["--models", "plst,mlknn", "--labels", "3", "--cv", "2", "--out", name]
    outcome = run("labels", "compare", "songs.csv", *models)
    assert outcome.code == 0
    assert outcome.out.endswith(f"The table is in {name}.\n")
    content = Path(name).read_bytes()
    if name.endswith("csv"):
        rows = list(csv.DictReader(content.decode().splitlines()))
        assert [row["method"] for row in rows] == ["plst", "mlknn"]
        assert 0 <= float(rows[0]["subset_accuracy"]) <= 1
    elif name.endswith("md"):
        assert content.startswith(b"| method | accuracy | Hamming | micro F1 |")
    elif name.endswith("json"):
        assert list(json.loads(content)["models"]) == ["plst", "mlknn"]
    else:
        assert content.startswith(b"\x89PNG")


def test_a_wide_terminal_has_more_columns(run, monkeypatch) -> None:
    models = ["--models", "plst", "--labels", "3", "--cv", "2"]
    narrow = run("labels", "compare", "songs.csv", *models).out
    monkeypatch.setenv("COLUMNS", "160")
    wide = run("labels", "compare", "songs.csv", *models).out
    assert "subset accuracy" in wide
    assert "subset accuracy" not in narrow
    monkeypatch.setenv("COLUMNS", "200")
    assert "calibration error" in run("labels", "compare", "songs.csv", *models).out


def test_a_dataset_is_known_by_name(run, data_root: Path, monkeypatch) -> None:
    monkeypatch.setenv("MARGINMF_DATA", str(data_root))
    models = ["--model", "ridge-embedding", "--split", "--json"]
    result = json.loads(run("labels", "evaluate", "emotions", *models).out)
    assert result["data"]["n_rows"] == 593
    assert 0.5 < result["metrics"]["accuracy"]["mean"] < 0.65
