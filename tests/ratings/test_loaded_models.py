"""A model that was loaded from a file learns nothing unless it is told to."""

import pickle
import re
from collections.abc import Callable
from copy import copy, deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import marginmf
from contracts import synthetic
from marginmf._utils.parameters import unfitted
from marginmf.ratings import ALS, BPMF, METHODS, MMMF
from marginmf.ratings.base import RatingsPredictor
from marginmf.ratings.fitting.calibration import Calibrator
from marginmf.ratings.lists.relevance import Exposure

PAIRS, STARS = synthetic((1, 2))
NEW, NEW_ITEMS = PAIRS[:60] + np.array([1000, 0]), PAIRS[:60] + np.array([0, 1000])
QUICK = {"n_factors": 2, "reg": 1.0, "max_iter": 3, "n_burn": 1, "n_samples": 2}
QUICK |= {"n_estimators": 2, "calibrate": False, "random_state": 0, "n_topics": 2}
LACKS = r"loaded from a file that does not hold .*: call fit_(calibrator|exposure)\(\).* save it"
#: What is wrong with a call for other reasons.
OTHERS = "cannot learn new", "not sums over", "by factors", "no attribute", "made by fold"

CALLS: dict[str, Callable[[Any], Any]] = {
    "predict": lambda m: m.predict(PAIRS),
    "rule": lambda m: m.predict(PAIRS, output="rule"),
    "predict_proba": lambda m: m.predict_proba(PAIRS),
    "decision_function": lambda m: m.decision_function(PAIRS),
    "score": lambda m: m.score(PAIRS, STARS),
    "recommend": lambda m: m.recommend([0, 1], n=2),
    "expected": lambda m: m.recommend([0, 1], n=2, by="expected"),
    "explain": lambda m: m.explain(0, 7),
    "similar_items": lambda m: m.similar_items(3),
    "credible_interval": lambda m: m.credible_interval(PAIRS[:3]),
    "fold_in": lambda m: m.fold_in(NEW, STARS[:60]).recommend(n=2),
    "fold_in, then save": lambda m: m.fold_in(NEW, STARS[:60]).save("folded.marginmf"),
    "fold_in_items": lambda m: m.fold_in_items(NEW_ITEMS, STARS[:60]).predict(PAIRS),
    "update_users": lambda m: m.update_users(NEW, STARS[:60]).recommend(n=2),
    "update_items": lambda m: m.update_items(NEW_ITEMS, STARS[:60]).predict(PAIRS),
    "fold_in, then update": lambda m: m.fold_in(NEW, STARS[:60]).update_items(
        NEW[:20] + np.array([0, 1000]), STARS[:20]
    ),
}


def quick(kind: type[Any]) -> Any:
    model = kind()
    known = model.get_params(deep=False)
    return model.set_params(**{name: QUICK[name] for name in QUICK if name in known})


@pytest.fixture
def _no_training(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Fail wherever something is fitted."""

    def refuse(*arguments: Any, **named: Any) -> None:
        pytest.fail("this learns")

    monkeypatch.chdir(tmp_path)
    for kind in (Exposure, Calibrator):
        monkeypatch.setattr(kind, "fit", refuse)
    monkeypatch.setattr(RatingsPredictor, "_fit_copy", refuse)


def loaded(model: Any, path: Path) -> Any:
    model.save(path)
    return marginmf.load(path)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("models")
    for name, kind in METHODS.items():
        quick(kind).fit(PAIRS, STARS).save(folder / name)
    return {name: folder / name for name in METHODS}


@pytest.mark.usefixtures("_no_training")
@pytest.mark.parametrize("name", METHODS)
def test_no_call_learns_and_the_sentence_says_what_would(name: str, files: dict[str, Path]) -> None:
    for call in CALLS.values():
        model = marginmf.load(files[name])
        try:
            call(model)
        except (ValueError, AttributeError) as error:
            said = str(error)
            known = re.search(LACKS, said) or any(words in said for words in OTHERS)
            assert known, said


@pytest.mark.usefixtures("_no_training")
@pytest.mark.parametrize("name", ["predict", "recommend", "explain", "fold_in", "score"])
def test_copies_of_a_loaded_model_learn_nothing_either(name: str, files: dict[str, Path]) -> None:
    model = marginmf.load(files["mmmf"])
    for again in (copy(model), deepcopy(model), pickle.loads(pickle.dumps(model))):
        with pytest.raises(ValueError, match=LACKS):
            CALLS[name](again)


def test_what_it_is_told_to_learn_is_what_the_fitted_model_learns(tmp_path: Path) -> None:
    fitted = quick(MMMF).fit(PAIRS, STARS)
    model = loaded(fitted, tmp_path / "without")
    with pytest.raises(ValueError, match=r"which predictions are made of.*output='rule'"):
        model.predict(PAIRS)
    with pytest.raises(ValueError, match=r"call fit_exposure\(\), and save it again; or rank by"):
        model.fit_calibrator().recommend(3)
    again = loaded(model.fit_exposure(), tmp_path / "with")
    for one in (model, again):
        np.testing.assert_array_equal(one.predict_proba(PAIRS), fitted.predict_proba(PAIRS))
        assert one.recommend(n=3).equals(fitted.recommend(n=3))
        assert one.explain(0, 7).equals(fitted.explain(0, 7))


def test_a_loaded_model_that_is_fitted_again_learns_on_demand(tmp_path: Path) -> None:
    model = loaded(quick(ALS).fit(PAIRS, STARS), tmp_path / "m").fit(PAIRS, STARS)
    assert len(model.recommend(3, n=2)) == 2
    assert not hasattr(unfitted(model, ("_from_file",)), "ratings_")


def test_new_users_of_a_loaded_model_are_calibrated_when_told(tmp_path: Path) -> None:
    fitted = quick(MMMF).fit(PAIRS, STARS)
    folded = loaded(fitted, tmp_path / "m").fold_in(NEW, STARS[:60])
    with pytest.raises(ValueError, match=LACKS):
        folded.predict_proba(NEW)
    expected = fitted.fold_in(NEW, STARS[:60])
    found = folded.fit_calibrator().fit_exposure()
    np.testing.assert_array_equal(found.predict_proba(NEW), expected.predict_proba(NEW))
    assert loaded(found, tmp_path / "folded").recommend(n=2).equals(expected.recommend(n=2))


def test_distributions_are_the_files_own(tmp_path: Path) -> None:
    fitted = quick(BPMF).fit(PAIRS, STARS)
    model = loaded(fitted, tmp_path / "m")
    np.testing.assert_array_equal(model.predict_proba(PAIRS), fitted.predict_proba(PAIRS))
    with pytest.raises(ValueError, match=r"who takes what.*fit_exposure"):
        model.recommend(3)
