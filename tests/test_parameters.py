"""Parameters of every estimator: NumPy's numbers are as good as Python's, and threads are few."""

import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import marginmf
from contracts import synthetic
from label_contracts import labelled
from marginmf import labels, ratings
from marginmf._utils.parameters import MOST_THREADS, n_threads
from marginmf.protocols import compare
from marginmf.ratings.positive import POSITIVE

RATED, LABELLED = synthetic((1, 2)), labelled()
SMALL = {"n_factors": 2, "max_iter": 3, "n_burn": 1, "n_samples": 2, "n_estimators": 2}
SMALL |= {"reg": 1.0, "calibrate": False, "random_state": 0}
OF_LABELS = {kind.__name__ for kind in labels.METHODS.values()}
METHODS = (*ratings.METHODS.values(), *POSITIVE.values(), *labels.METHODS.values())
EVERYTHING: dict[str, Any] = {kind.__name__: kind for kind in METHODS}
THREADED = [name for name, kind in EVERYTHING.items() if "n_jobs" in kind().get_params()]


def make(name: str, **params: Any) -> tuple[Any, Any]:
    """Return an estimator that is quick to fit, and data for it."""
    model = EVERYTHING[name]()
    of_labels = name in OF_LABELS
    given = {"random_state": 0, "max_iter": 20} if of_labels else SMALL
    known = model.get_params(deep=False)
    own = {key: value for key, value in {**given, **params}.items() if key in known}
    return model.set_params(**own), LABELLED if of_labels else RATED


def narrow(value: Any) -> Any:
    """Return a number as NumPy has it, in as few bits as a user's data may have."""
    if isinstance(value, bool):
        return np.bool_(value)
    if isinstance(value, int):
        return np.uint8(value) if 0 <= value < 256 else np.int64(value)
    return np.float32(value) if isinstance(value, float) else value


def warnings_of(model: Any, data: Any) -> set[type[Warning]]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        model.fit(*data)
    return {each.category for each in found}


@pytest.mark.parametrize("name", EVERYTHING)
def test_numbers_of_numpy_are_as_good_as_those_of_python(name: str, tmp_path: Path) -> None:
    plain, data = make(name)
    expected = warnings_of(plain, data)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model, _ = make(name)
        params = model.get_params(deep=False)
        model = clone(model.set_params(**{key: narrow(value) for key, value in params.items()}))
        repr(model)
    assert warnings_of(model, data) == expected
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kept = {type(value) for value in model.get_params(deep=False).values()}
        assert not any(issubclass(kind, np.generic) for kind in kept)
        model.save(tmp_path / "model")
        assert repr(marginmf.load(tmp_path / "model")) == repr(model)


@pytest.mark.parametrize("name", THREADED)
def test_a_million_threads_are_refused(name: str) -> None:
    model, data = make(name, n_jobs=10**6)
    with pytest.raises(ValueError, match="n_jobs=1000000 must be a whole number <= 1024"):
        model.fit(*data)


def test_a_model_file_cannot_ask_for_a_million_threads(tmp_path: Path) -> None:
    model, data = make("MMMF")
    model.fit(*data).set_params(n_jobs=10**6)
    with pytest.raises(ValueError, match=r"could not be loaded again.*n_jobs=1000000 must be"):
        model.save(tmp_path / "model")
    assert n_threads(10**6) == MOST_THREADS


def test_a_comparison_cannot_start_a_million_processes() -> None:
    for n_jobs, words in ((10**6, "<= 1024"), (0, "-1 for all cores")):
        with pytest.raises(ValueError, match=f"n_jobs={n_jobs} must be .*{words}"):
            compare(RATED, ["bias"], n_jobs=n_jobs)
