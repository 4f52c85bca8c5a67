import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from labels_inputs import FEATURES, TAGS, as_csv, as_svmlight, songs

import marginmf
from marginmf.cli.options import LABEL_METHODS
from marginmf.labels import GroPLE, Scaled
from marginmf.labels.decisions import CANDIDATES, EXPECTED
from marginmf.metrics import micro_f1

TABLE = songs()
FIT = ["--labels", "tag_*", "--model", "plst", "--out", "m.marginmf"]


@pytest.fixture(autouse=True)
def files(tmp_path: Path) -> None:
    (tmp_path / "songs.csv").write_text(as_csv(TABLE))
    (tmp_path / "songs.svm").write_text(as_svmlight(TABLE))


@pytest.mark.parametrize("name", LABEL_METHODS)
def test_every_method_is_fitted_saved_and_asked(run, name: str) -> None:
    # More threads would be processes for some methods, which take seconds to start.
    outcome = run("labels", "fit", "songs.csv", *FIT, "--model", name, "--threads", 1)
    assert (outcome.code, outcome.err) == (0, "")
    first, second, third = outcome.out.splitlines()
    assert first.startswith("songs.csv: 80 rows, 5 features, 3 labels, ")
    assert ": features between 0 and 1; " in second
    assert re.search(r"; decision global \(threshold [-.\d]+\), chosen for accuracy; sec", second)
    assert third.startswith("Saved to m.marginmf (")
    model = marginmf.load("m.marginmf")
    assert model.classes_.tolist() == list(TAGS)
    assert model.feature_names_in_.tolist() == list(FEATURES)
    found = run("labels", "predict", "m.marginmf", "songs.csv", "--json")
    assert (found.code, found.err) == (0, "")
    predicted = [
        [tag in row["labels"] for tag in TAGS] for row in json.loads(found.out)["predictions"]
    ]
    # All labels for all rows would reach 0.42, and none 0.
    assert micro_f1(TABLE.Y, predicted) > 0.55


def test_json_says_what_was_fitted(run) -> None:
    outcome = run("labels", "fit", "songs.csv", *FIT, "--decision", "sign", "--json")
    assert (outcome.code, outcome.err) == (0, "")
    result = json.loads(outcome.out)
    assert result["data"]["n_labels"] == 3
    assert result["model"]["class"] == "PLST"
    assert result["model"]["scaled"] is True
    assert result["model"]["lowest_threshold"] == result["model"]["highest_threshold"] == 0
    assert result["bytes"] == Path("m.marginmf").stat().st_size


def test_the_model_is_that_of_the_library(run) -> None:
    run("labels", "fit", "songs.csv", *FIT, "--model", "grople", "--set", "n_factors=2")
    mine = Scaled(GroPLE(n_factors=2, random_state=0)).fit(TABLE.X, TABLE.Y)
    loaded = marginmf.load("m.marginmf")
    del loaded.feature_names_in_  # they are not given here
    np.testing.assert_array_equal(
        loaded.decision_function(TABLE.X), mine.decision_function(TABLE.X)
    )


@pytest.mark.parametrize(
    ("file", "scale", "scaled"),
    [
        ("songs.csv", "auto", True),
        ("songs.csv", "none", False),
        ("songs.svm", "auto", False),
        ("songs.svm", "minmax", True),
    ],
)
def test_features_are_scaled_as_told(run, file: str, scale: str, scaled: bool) -> None:
    labels = ["--labels", "3"]
    run("labels", "fit", file, "--model", "plst", *labels, "--scale", scale, "--out", "m.marginmf")
    model = marginmf.load("m.marginmf")
    assert isinstance(model, Scaled) is scaled
    assert run("labels", "predict", "m.marginmf", file).code == 0


def test_info_knows_a_model_of_labels(run) -> None:
    run("labels", "fit", "songs.csv", *FIT, "--decision", "global", "--top1")
    outcome = run("info", "m.marginmf")
    assert outcome.code == 0
    assert "80 rows, 5 features, 3 labels" in outcome.out
    assert re.search(
        r"global \(threshold [-.\d]+\), chosen for accuracy, the best label where", outcome.out
    )
    assert json.loads(run("info", "m.marginmf", "--json").out)["counts"]["labels"] == 3
    rule = {"decision": "global", "tune_for": "macro_f1"}
    Scaled(GroPLE(2, **rule)).fit(TABLE.X, TABLE.Y).save("inner.marginmf")
    assert re.search(
        r"global \(threshold [-.\d]+\), chosen for macro-f1 ", run("info", "inner.marginmf").out
    )


@pytest.mark.parametrize("rule", ["jaccard", "f1"])
def test_rules_of_expected_overlap_are_told_by_fit_and_by_info(run, rule: str) -> None:
    fit = ["labels", "fit", "songs.csv", *FIT, "--decision", rule, "--tune-for", "example-f1"]
    words = run(*fit, "--top1").out
    model = marginmf.load("m.marginmf")
    assert (model.decision_, model.tune_for) == (rule, "example_f1")
    said = f"{rule} (expected overlap, shift {model.shift_:g}), chosen for example-f1"
    assert f"; decision {said}; seconds" in words
    assert f" {said} " in run("labels", "info", "m.marginmf").out
    learned = json.loads(run("info", "m.marginmf", "--json").out)["learned"]
    assert (learned["decision_"], learned["shift_"]) == (rule, model.shift_)
    told = json.loads(run(*fit, "--force", "--json").out)["model"]
    assert (told["decision"], told["decision_was_chosen"]) == (rule, False)
    assert (told["shift"], told["lowest_threshold"]) == (model.shift_, None)


def test_the_rule_that_auto_chose_is_told(run, monkeypatch) -> None:
    rows = np.flatnonzero(TABLE.Y.sum(axis=1))
    Path("all.csv").write_text(as_csv(replace(TABLE, X=TABLE.X[rows], Y=TABLE.Y[rows])))
    for candidates in (("global",), ("jaccard",), ("per_label",)):
        monkeypatch.setitem(CANDIDATES, "accuracy", candidates)
        told = json.loads(run("labels", "fit", "all.csv", *FIT, "--force", "--json").out)["model"]
        assert (told["decision"], told["decision_was_chosen"]) == (*candidates, True)
        assert (told["shift"] is None) == (told["lowest_threshold"] is not None)
        words = run("labels", "fit", "all.csv", *FIT, "--force").out
        assert f"decision {candidates[0].replace('_', '-')} (" in words
        assert ("the best label where there is none" in words) == (candidates != ("jaccard",))


def test_the_ensemble_is_fitted_by_default_and_tells_its_members(run) -> None:
    fit = ["labels", "fit", "songs.csv", "--labels", "3", "--out", "e.marginmf", "--threads", 1]
    words = run(*fit).out.splitlines()[1]
    model = marginmf.load("e.marginmf").estimator_
    ridge, kernel, _ = model.members_
    chosen = kernel.kernel_
    assert words.startswith(
        f"LabelEnsemble: features between 0 and 1; members ridge (reg {ridge.reg_:.4g}), kernel "
        f"(prepare {chosen['prepare']}, gamma {chosen['gamma']:.4g}, reg {chosen['reg']:.4g}), "
        "forest; decision "
    )
    told = json.loads(run(*fit, "--force", "--json").out)["model"]
    assert (told["name"], told["class"]) == ("ensemble", "LabelEnsemble")
    assert [member["name"] for member in told["members"]] == ["ridge", "kernel", "forest"]
    assert told["members"][1] == {"name": "kernel", "class": "KernelEmbedding", **chosen}


@pytest.mark.parametrize("written", ["mlknn,ridge", '["mlknn", "ridge"]'])
def test_members_are_names_with_commas_or_json(run, written: str) -> None:
    fit = ["labels", "fit", "songs.csv", "--labels", "3", "--out", "e.marginmf"]
    words = run(*fit, "--set", f"members={written}").out
    assert "; members mlknn, ridge (reg " in words
    model = marginmf.load("e.marginmf").estimator_
    assert [type(member).__name__ for member in model.members_] == ["MLkNN", "RidgeEmbedding"]


def test_what_kernel_and_ridge_chose_is_told(run) -> None:
    run("labels", "fit", "songs.csv", *FIT)
    words = run("labels", "fit", "songs.csv", *FIT, "--model", "kernel", "--force").out
    chosen = marginmf.load("m.marginmf").estimator_.kernel_
    assert f"; prepare {chosen['prepare']}; gamma {chosen['gamma']:.4g}; reg " in words
    ridge = ["--model", "ridge-embedding", "--set", "reg=3", "--force"]
    assert "; reg 3; decision " in run("labels", "fit", "songs.csv", *FIT, *ridge).out


def test_models_that_were_saved_before_tell_their_rules(run) -> None:
    folder = Path(__file__).resolve().parents[1] / "fixtures"
    rules = {
        "grople": r"per-label \(thresholds \S+ to \S+\), chosen for accuracy",
        "plst": r"global \(threshold \S+\), chosen for accuracy",
        "cplst": r"sign \(threshold 0\)",
    }
    for name, rule in rules.items():
        outcome = run("labels", "info", folder / f"labels-{name}-v1.marginmf")
        assert (outcome.code, outcome.err) == (0, "")
        assert re.search(rf"  decision +{rule}", outcome.out)


@pytest.mark.parametrize(
    ("given", "filled"),
    [
        ([], True),
        (["--top1"], True),
        (["--no-top1"], False),
        (["--decision", "sign"], False),
        (["--decision", "global"], True),
        (["--decision", "global", "--no-top1"], False),
    ],
)
def test_rows_get_their_best_label_as_told_or_if_all_have_one(run, given, filled) -> None:
    labelled = np.flatnonzero(TABLE.Y.sum(axis=1))
    Path("all.csv").write_text(as_csv(replace(TABLE, X=TABLE.X[labelled], Y=TABLE.Y[labelled])))
    fit = ["labels", "fit", "all.csv", *FIT, *given]
    words = run(*fit).out
    model = marginmf.load("m.marginmf")
    assert model.top1_if_empty_ is filled
    # Expected overlap gives every row a label by itself: there it needs no saying.
    told = filled and model.decision_ not in EXPECTED
    assert ("the best label where there is none" in words) is told
    assert json.loads(run(*fit, "--force", "--json").out)["model"]["top1_if_empty"] is filled


def test_a_file_is_replaced_only_if_told(run) -> None:
    run("labels", "fit", "songs.csv", *FIT)
    before = Path("m.marginmf").read_bytes()
    outcome = run("labels", "fit", "songs.csv", *FIT, "--model", "mlknn")
    assert outcome.code == 2
    assert "replace it with --force" in outcome.err
    assert Path("m.marginmf").read_bytes() == before
    assert run("labels", "fit", "songs.csv", *FIT, "--model", "mlknn", "--force").code == 0
    assert Path("m.marginmf").read_bytes() != before
