"""Models that earlier versions saved still load, and predict what they did then."""

import json
import sys
from pathlib import Path

import numpy as np
import pytest

import marginmf
from marginmf.persistence import describe
from marginmf.ratings.base import RatingsEstimator

FOLDER = Path(__file__).resolve().parents[1] / "fixtures"
FILES = sorted(FOLDER.glob("*.marginmf"))


def test_there_are_kept_models_of_every_estimator():
    kept = {describe(path).class_name for path in FILES}
    exported = (getattr(marginmf.ratings, name) for name in marginmf.ratings.__all__)
    kinds = {kind for kind in exported if isinstance(kind, type)}
    assert kept >= {kind.__name__ for kind in kinds if issubclass(kind, RatingsEstimator)}


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
    if "calibrated" in path.stem or hasattr(model, "reg_path_"):
        np.testing.assert_allclose(
            model.predict_proba(pairs), expected["probabilities"], rtol=1e-4, atol=1e-5
        )
    np.testing.assert_array_equal(model.predict(pairs), expected["predictions"])


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_kept_models_can_be_saved_and_used_further(path, tmp_path):
    model = marginmf.load(path)
    model.save(tmp_path / "again.marginmf")
    pairs = [("new", item) for item in model.items_.ids[:3]]
    folded = marginmf.load(tmp_path / "again.marginmf").fold_in(pairs, model.levels_[[0, 1, 1]])
    assert set(folded.predict(pairs)) <= set(model.levels_)


def test_the_script_that_makes_them_still_runs(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    import make_models

    monkeypatch.delitem(sys.modules, "make_models")
    make_models.main(tmp_path)
    made = sorted(path.name for path in tmp_path.glob("*.marginmf"))
    assert {path.name for path in FILES} >= set(made)
    assert all((tmp_path / name).with_suffix(".json").exists() for name in made)
