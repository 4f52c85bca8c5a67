"""Models that earlier versions saved still load, and predict what they did then."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import issparse

import marginmf
from marginmf.labels.base import LabelsEstimator
from marginmf.persistence import describe
from marginmf.ratings.estimator import Distributional, RatingsEstimator
from marginmf.ratings.positive import PositiveOnly

FOLDER = Path(__file__).resolve().parents[1] / "fixtures"
ALL_FILES = sorted(FOLDER.glob("*.marginmf"))
LABEL_FILES = sorted(FOLDER.glob("labels-*.marginmf"))
POSITIVE_FILES = sorted(FOLDER.glob("positive-*.marginmf"))
FILES = [path for path in ALL_FILES if path not in LABEL_FILES + POSITIVE_FILES]


@pytest.mark.parametrize(
    ("module", "base"),
    [
        (marginmf.ratings, RatingsEstimator),
        (marginmf.ratings, PositiveOnly),
        (marginmf.labels, LabelsEstimator),
    ],
    ids=["ratings", "positive", "labels"],
)
def test_there_are_kept_models_of_every_estimator(module, base):
    kept = {describe(path).class_name for path in ALL_FILES}
    exported = (getattr(module, name) for name in module.__all__)
    kinds = {kind for kind in exported if isinstance(kind, type)}
    assert kept >= {kind.__name__ for kind in kinds if issubclass(kind, base)}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_kept_models_predict_as_they_did(path):
    model = marginmf.load(path)
    expected = json.loads(path.with_suffix(".json").read_text())
    assert type(model).__name__ == expected["class"]
    pairs = [tuple(pair) for pair in expected["pairs"]]
    # The sums behind margins may be rounded otherwise on another processor.
    np.testing.assert_allclose(
        model.decision_function(pairs), expected["margins"], rtol=1e-4, atol=1e-5
    )
    # Of models that were saved before there was a calibration, no probabilities are kept.
    own = isinstance(model, Distributional)
    assert ("probabilities" in expected) == (own or model._calibrator is not None)
    if "probabilities" in expected:
        np.testing.assert_allclose(
            model.predict_proba(pairs), expected["probabilities"], rtol=1e-4, atol=1e-5
        )
    np.testing.assert_array_equal(model.predict(pairs, output="rule"), expected["predictions"])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_kept_models_can_be_saved_and_used_further(path, tmp_path):
    model = marginmf.load(path)
    model.save(tmp_path / "again.marginmf")
    pairs = [("new", item) for item in model.items_.ids[:3]]
    folded = marginmf.load(tmp_path / "again.marginmf").fold_in(pairs, model.levels_[[0, 1, 1]])
    assert set(folded.fit_calibrator().predict(pairs)) <= set(model.levels_)


@pytest.mark.parametrize("path", POSITIVE_FILES, ids=lambda path: path.stem)
def test_kept_models_of_who_has_what_make_their_lists(path, tmp_path):
    model = marginmf.load(path)
    expected = json.loads(path.with_suffix(".json").read_text())
    assert type(model).__name__ == expected["class"]
    pairs = [tuple(pair) for pair in expected["pairs"]]
    np.testing.assert_allclose(
        model.decision_function(pairs), expected["scores"], rtol=1e-4, atol=1e-5
    )
    assert model.recommend(n=3)["item"].tolist() == expected["lists"]
    model.save(tmp_path / "again.marginmf")
    folded = marginmf.load(tmp_path / "again.marginmf").fold_in([("new", "item-03")], [4])
    assert "item-03" not in folded.recommend("new")["item"].tolist()


@pytest.mark.parametrize("path", LABEL_FILES, ids=lambda path: path.stem)
def test_kept_label_models_predict_as_they_did(path):
    model = marginmf.load(path)
    expected = json.loads(path.with_suffix(".json").read_text())
    assert type(model).__name__ == expected["class"]
    rows = np.array(expected["rows"])
    np.testing.assert_allclose(
        model.decision_function(rows), expected["decisions"], rtol=1e-6, atol=1e-9
    )
    predicted = model.predict(rows)
    assert issparse(predicted) == model.targets_.sparse
    found = predicted.toarray() if issparse(predicted) else predicted
    np.testing.assert_array_equal(found, expected["predictions"])
    if "probabilities" in expected:
        np.testing.assert_allclose(
            model.predict_proba(rows), expected["probabilities"], rtol=1e-6, atol=1e-9
        )
        return
    # Of models that were saved before there were probabilities, none are kept.
    with pytest.raises(AttributeError, match="set calibrate=True and fit it again"):
        model.predict_proba(rows)


@pytest.mark.parametrize("path", LABEL_FILES, ids=lambda path: path.stem)
def test_kept_label_models_can_be_saved_again(path, tmp_path):
    model = marginmf.load(path)
    model.save(tmp_path / "again.marginmf")
    rows = np.array(json.loads(path.with_suffix(".json").read_text())["rows"])
    again = marginmf.load(tmp_path / "again.marginmf")
    np.testing.assert_array_equal(again.decision_function(rows), model.decision_function(rows))


@pytest.fixture
def script(monkeypatch):
    """Return the script that makes the kept models."""
    monkeypatch.syspath_prepend(FOLDER)
    import make_models

    monkeypatch.delitem(sys.modules, "make_models")
    return make_models


def test_the_script_has_all_kept_models(script):
    made = [*script.models(), *(f"positive-{name}" for name in script.positive_models())]
    made += [f"labels-{name}" for name in script.label_models()]
    assert {path.name for path in ALL_FILES} == {f"{name}-v1.marginmf" for name in made}


def test_the_script_writes_what_is_missing_and_nothing_else(script, tmp_path, monkeypatch):
    some = {"models": ("bias", "pmf"), "positive_models": ("ease",), "label_models": ("ridge",)}
    for kind, names in some.items():
        made = {name: getattr(script, kind)()[name] for name in names}
        monkeypatch.setattr(script, kind, lambda made=made: made)
    (tmp_path / "bias-v1.marginmf").write_text("as it was")
    script.main(tmp_path)
    assert (tmp_path / "bias-v1.marginmf").read_text() == "as it was"
    for name in ("pmf-v1", "positive-ease-v1", "labels-ridge-v1"):
        marginmf.load(tmp_path / f"{name}.marginmf")
        assert (tmp_path / f"{name}.json").exists()


FRESH = """
import sys
from marginmf.persistence import describe, load
assert not {"marginmf.ratings", "marginmf.labels"} & sys.modules.keys()
print(type(load(sys.argv[1])).__name__, describe(sys.argv[2]).class_name)
"""


def test_a_fresh_process_finds_the_classes():
    files = [str(FOLDER / f"{name}-v1.marginmf") for name in ("bias", "labels-ridge")]
    command = [sys.executable, "-c", FRESH, *files]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["BiasOnly", "RidgeEmbedding"]
