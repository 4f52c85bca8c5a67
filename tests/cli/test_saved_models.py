"""Commands are given models of the other kind: one sentence, and where to go instead."""

import json
from pathlib import Path

import numpy as np
import pytest
from sklearn.linear_model import RidgeClassifier

from marginmf.cli.saved import load_labels_model, load_ratings_model
from marginmf.labels import DecisionTuned, GroPLE
from marginmf.ratings import MMMF


@pytest.fixture
def label_file(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 4))
    model = DecisionTuned(RidgeClassifier(alpha=2.0), decision="per_label")
    path = tmp_path / "labels.marginmf"
    model.fit(X, X[:, :3] > 0).save(path)
    return path


def test_facts_of_a_label_model_in_words(run, label_file: Path) -> None:
    outcome = run("info", label_file)
    assert (outcome.code, outcome.err) == (0, "")
    lines = [" ".join(line.split()) for line in outcome.out.splitlines()]
    assert "method DecisionTuned" in lines
    assert "learned from 30 rows, 4 features, 3 labels" in lines
    assert "estimator RidgeClassifier(alpha=2.0)" in lines
    (decision,) = (line for line in lines if line.startswith("decision per_label, chosen for"))
    assert decision.startswith("decision per_label, chosen for accuracy; thresholds from ")


def test_facts_of_a_label_model_as_json(run, label_file: Path) -> None:
    result = json.loads(run("info", label_file, "--json").out)
    assert (result["kind"], result["class_name"]) == ("model", "DecisionTuned")
    counts = result["counts"]
    assert (counts["labels"], counts["features"], counts["rows"]) == (3, 4, 30)
    assert counts["lowest_threshold"] < counts["highest_threshold"]
    assert result["params"]["estimator"] == "RidgeClassifier(alpha=2.0)"


def test_facts_of_classes_have_no_decision_rule(run, tmp_path: Path) -> None:
    X = np.random.default_rng(0).normal(size=(20, 3))
    GroPLE(2).fit(X, X[:, 0] > 0).save(tmp_path / "m.marginmf")
    words = run("info", tmp_path / "m.marginmf").out
    assert "20 rows, 3 features, 2 labels" in words
    assert "thresholds" not in words


@pytest.mark.parametrize(
    "arguments",
    [
        ("predict", "{model}", "pairs.csv"),
        ("recommend", "{model}", "--user", "ann"),
        ("similar", "{model}", "--item", "film"),
    ],
    ids=lambda arguments: arguments[0],
)
def test_commands_for_ratings_refuse_label_models(run, label_file: Path, arguments) -> None:
    Path("pairs.csv").write_text("ann,film\n")
    outcome = run(*(word.format(model=label_file) for word in arguments))
    assert outcome.code != 0
    assert "labels.marginmf holds a DecisionTuned, which predicts labels" in " ".join(
        outcome.err.split()
    )


def test_each_kind_is_loaded_by_its_own_function(label_file: Path, model_file: Path) -> None:
    assert isinstance(load_labels_model(label_file), DecisionTuned)
    assert isinstance(load_ratings_model(model_file), MMMF)
    with pytest.raises(ValueError, match=r"holds a MMMF, which predicts ratings and not labels"):
        load_labels_model(model_file)


def test_commands_for_labels_refuse_ratings_models(run, model_file: Path) -> None:
    Path("rows.csv").write_text("a,b\n1,2\n")
    outcome = run("labels", "predict", model_file, "rows.csv")
    assert outcome.code != 0
    assert "holds a MMMF, which predicts ratings and not labels" in " ".join(outcome.err.split())
