"""Estimators from names and options, and from files; each command takes its own kind of model."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from labels_inputs import songs
from sklearn.linear_model import RidgeClassifier

from marginmf import labels, ratings
from marginmf.cli.estimators import make_label_models, make_model, make_models, scale_features
from marginmf.cli.options import (
    LABEL_METHODS,
    METHODS,
    POSITIVE,
    DecisionOptions,
    LabelModelOptions,
    ModelOptions,
)
from marginmf.labels import DecisionTuned, GroPLE, Scaled
from marginmf.ratings import ALS, EASE, HMF, BiasOnly, ItemKNN


def test_help_lists_every_method_of_the_library() -> None:
    listed = {"METHODS": METHODS, "POSITIVE": POSITIVE, "LABEL_METHODS": LABEL_METHODS}
    known = {
        "METHODS": ratings.METHODS,
        "POSITIVE": ratings.POSITIVE,
        "LABEL_METHODS": labels.METHODS,
    }
    for name, methods in known.items():
        missing, gone = set(methods) - set(listed[name]), set(listed[name]) - set(methods)
        assert not missing, f"marginmf.cli.options.{name} needs {', '.join(sorted(missing))}"
        assert not gone, f"marginmf.cli.options.{name} has {', '.join(sorted(gone))}"
        assert len(set(listed[name])) == len(listed[name])


def test_the_page_of_the_command_line_names_every_method() -> None:
    page = Path(__file__).parents[2] / "docs" / "command-line.md"
    found = re.search(r"The methods\s+are (.*?)\.\n\n", page.read_text(), re.S)
    assert found is not None
    assert re.findall(r"`([a-z]+)`", found[1]) == [*METHODS, *POSITIVE]


def test_options_that_were_not_given_leave_the_defaults() -> None:
    model = make_model("als", ModelOptions())
    assert (model.n_factors, model.reg, model.max_iter) == (ALS.n_factors, ALS.reg, ALS.max_iter)
    assert (model.random_state, model.n_jobs) == (0, -1)


def test_options_reach_their_parameters() -> None:
    settings = ["loss=logistic", "tol=0.1"]
    given = ModelOptions(factors=7, reg="6,10", max_iter=9, settings=settings, seed=3, threads=2)
    model = make_model("hmf", given, progress=True)
    assert (model.n_factors, model.reg, model.max_iter) == (7, [6, 10], 9)
    assert (model.loss, model.tol, model.random_state, model.n_jobs) == ("logistic", 0.1, 3, 2)
    assert model.verbose == 1


def test_a_method_gets_those_of_the_options_that_it_has() -> None:
    models = make_models(["bias", "mmmf"], ModelOptions(factors=7, reg="2"))
    assert models["mmmf"].n_factors == 7
    assert models["bias"].reg == models["mmmf"].reg == 2


def test_a_setting_may_be_for_one_method_only() -> None:
    models = make_models(["als", "pmf"], ModelOptions(settings=["als.bias=true", "reg=4"]))
    assert (models["als"].bias, models["pmf"].bias) == (True, False)
    assert models["als"].reg == models["pmf"].reg == 4


def test_a_setting_wins_over_the_option() -> None:
    given = ModelOptions(factors=7, settings=["n_factors=8", "random_state=5"], seed=1)
    model = make_model("hmf", given)
    assert (model.n_factors, model.random_state) == (8, 5)


def test_the_short_name_of_a_long_class() -> None:
    assert isinstance(make_model("bias", ModelOptions()), BiasOnly)


@pytest.mark.parametrize(
    ("names", "options", "message"),
    [
        (["hfm"], {}, "There is no model 'hfm'; .* Did you mean hmf?"),
        (["als", "als"], {}, "named twice"),
        (["bias"], {"factors": 3}, "--factors: bias has no parameter 'n_factors'; there are"),
        (["bpmf"], {"max_iter": 3}, r"'max_iter'; there are .* n_burn \+ n_samples \* thin sweeps"),
        (["hmf"], {"reg": "much"}, "'much' is not a number >= 0"),
        (["hmf"], {"reg": "1,,2"}, "'' is not a number >= 0"),
        (["hmf"], {"reg": "nan"}, "'nan' is not a number >= 0"),
        (["hmf"], {"settings": ["loss"]}, "write it as name=value"),
        (["hmf"], {"settings": ["=3"]}, "write it as name=value"),
        (["hmf"], {"settings": [".loss=3"]}, "write it as name=value"),
        (["hmf"], {"settings": ["lost=3"]}, "--set lost: hmf has no parameter 'lost'; there are"),
        (["hmf", "als"], {"settings": ["pmf.reg=3"]}, "pmf is not one of the models here"),
    ],
)
def test_what_cannot_be_made_is_a_sentence(names, options, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make_models(names, ModelOptions(**options))


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ("3", "--set members=3: give auto, or names with commas between them, such as ridge,kern"),
        ("", "--set members=: give auto, or names with commas"),
        ("[]", r"--set members=\[\]: give auto, or names with commas"),
    ],
)
def test_members_that_are_no_names_get_a_sentence(members: str, message: str) -> None:
    options = LabelModelOptions(settings=[f"members={members}"])
    with pytest.raises(ValueError, match=message):
        make_label_models(["ensemble"], options, DecisionOptions())


def test_members_may_be_left_to_the_ensemble() -> None:
    options = LabelModelOptions(settings=["members=auto"])
    assert make_label_models(["ensemble"], options, DecisionOptions())["ensemble"].members == "auto"


def test_a_name_says_what_a_method_learns_from() -> None:
    assert type(make_model(None, ModelOptions(), positive_only=True, lists=True)) is EASE
    assert type(make_model(None, ModelOptions(), lists=True)) is HMF
    assert type(make_model("itemknn", ModelOptions(), lists=True)) is ItemKNN
    with pytest.raises(ValueError, match="--model hmf learns from ratings; with --positive-only"):
        make_model("hmf", ModelOptions(), positive_only=True, lists=True)
    with pytest.raises(ValueError, match=r"There is no model 'eas'.*Did you mean ease"):
        make_model("eas", ModelOptions(), positive_only=True, lists=True)


def test_options_reach_label_methods() -> None:
    rule = DecisionOptions("per-label", "macro-f1", top1=True)
    given = LabelModelOptions(
        settings=["n_factors=4", "mlchmf.cv=4"], scale="none", seed=7, threads=1
    )
    models = make_label_models(["grople", "mlchmf"], given, rule)
    grople, mlchmf = models.values()
    assert (grople.n_factors, grople.random_state, grople.decision) == (4, 7, "per_label")
    assert (mlchmf.n_jobs, mlchmf.cv, mlchmf.tune_for) == (1, 4, "macro_f1")
    assert grople.top1_if_empty is True


def test_the_rule_of_a_scaled_estimator_is_that_of_the_options() -> None:
    options = LabelModelOptions()
    models = make_label_models(["plst"], options, DecisionOptions("sign"))
    made = scale_features(models, options, songs())["plst"]
    assert isinstance(made, Scaled)
    assert (made.decision, made.estimator.decision) == ("sign", "sign")


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
    (decision,) = (line for line in lines if line.startswith("decision per-label ("))
    assert re.fullmatch(
        r"decision per-label \(thresholds \S+ to \S+\), chosen for accuracy", decision
    )


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


def test_commands_for_labels_refuse_ratings_models(run, model_file: Path) -> None:
    Path("rows.csv").write_text("a,b\n1,2\n")
    outcome = run("labels", "predict", model_file, "rows.csv")
    assert outcome.code != 0
    assert "holds a MMMF, which predicts ratings and not labels" in " ".join(outcome.err.split())
