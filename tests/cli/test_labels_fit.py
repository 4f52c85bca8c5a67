import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from labels_inputs import FEATURES, TAGS, as_csv, as_svmlight, songs

import marginmf
from marginmf.cli.options import LABEL_METHODS
from marginmf.labels import GroPLE, Scaled

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
    assert "features between 0 and 1; decision global, chosen for accuracy" in second
    assert third.startswith("Saved to m.marginmf (")
    model = marginmf.load("m.marginmf")
    assert model.classes_.tolist() == list(TAGS)
    assert model.feature_names_in_.tolist() == list(FEATURES)
    found = run("labels", "predict", "m.marginmf", "songs.csv", "--json")
    assert (found.code, found.err) == (0, "")
    named = [row["labels"] for row in json.loads(found.out)["predictions"]]
    true = [[TAGS[k] for k in np.flatnonzero(row)] for row in TABLE.Y.toarray()]
    assert np.mean([one == other for one, other in zip(named, true, strict=True)]) > 0.35


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
    run("labels", "fit", "songs.csv", *FIT, "--top1")
    outcome = run("info", "m.marginmf")
    assert outcome.code == 0
    assert "80 rows, 5 features, 3 labels" in outcome.out
    assert "global, chosen for accuracy; threshold " in outcome.out
    assert json.loads(run("info", "m.marginmf", "--json").out)["counts"]["labels"] == 3
    Scaled(GroPLE(2, tune_for="macro_f1")).fit(TABLE.X, TABLE.Y).save("inner.marginmf")
    assert "global, chosen for macro_f1; threshold " in run("info", "inner.marginmf").out


@pytest.mark.parametrize(
    ("given", "filled"),
    [([], True), (["--top1"], True), (["--no-top1"], False), (["--decision", "sign"], False)],
)
def test_rows_get_their_best_label_as_told_or_if_all_have_one(run, given, filled) -> None:
    labelled = np.flatnonzero(TABLE.Y.sum(axis=1))
    Path("all.csv").write_text(as_csv(replace(TABLE, X=TABLE.X[labelled], Y=TABLE.Y[labelled])))
    fit = ["labels", "fit", "all.csv", *FIT, *given]
    words = run(*fit).out
    assert ("the best label where there is none" in words) is filled
    assert json.loads(run(*fit, "--force", "--json").out)["model"]["top1_if_empty"] is filled
    assert marginmf.load("m.marginmf").top1_if_empty_ is filled


def test_a_file_is_replaced_only_if_told(run) -> None:
    run("labels", "fit", "songs.csv", *FIT)
    before = Path("m.marginmf").read_bytes()
    outcome = run("labels", "fit", "songs.csv", *FIT, "--model", "mlknn")
    assert outcome.code == 2
    assert "replace it with --force" in outcome.err
    assert Path("m.marginmf").read_bytes() == before
    assert run("labels", "fit", "songs.csv", *FIT, "--model", "mlknn", "--force").code == 0
    assert Path("m.marginmf").read_bytes() != before
