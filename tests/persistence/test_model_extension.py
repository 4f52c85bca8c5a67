"""A new class that declares what is saved of it can be in model files, with nothing else to do."""

import pickle
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar, NamedTuple

import numpy as np
import pytest

import marginmf
from marginmf._utils.saved import SAVED, ListOf, Optional, floats
from marginmf.persistence import ModelFileError
from marginmf.ratings import BMMMF, HMF, BiasOnly
from marginmf.ratings.estimator import RatingsEstimator
from tampering import ModelParts


class Curve(NamedTuple):
    regs: list[float]
    errors: Any


@dataclass(frozen=True, eq=False)
class Calibration:
    slopes: Any
    prior: float = 0.5

    _saved: ClassVar = {"slopes": floats("stages"), "prior": float}


@dataclass(eq=False, repr=False)
class Committee(RatingsEstimator):
    """The mean margin of some estimators."""

    estimator: Any = None
    n_members: int = 3
    _: KW_ONLY
    n_jobs: int | None = None

    _saved: ClassVar = {
        "members_": ListOf(RatingsEstimator),
        "curve_": "Curve",
        "calibration_": Optional("Calibration"),
    }

    def _fit(self, data):
        model = HMF(2) if self.estimator is None else self.estimator
        kinds = (type(model)(**model.get_params()) for _ in range(self.n_members))
        self.members_ = [each.set_params(random_state=k).fit(data) for k, each in enumerate(kinds)]
        self.curve_ = Curve([1.0, 2.0], np.array([0.5, 0.25]))
        self.calibration_ = Calibration(np.ones(data.n_levels - 1))

    def _fold_in(self, side, data):
        self.members_ = [member._folded(side, data) for member in self.members_]

    def _margins(self, users, items):
        return np.mean([member._margins(users, items) for member in self.members_], axis=0)


@pytest.fixture(autouse=True)
def declared(monkeypatch):
    """Make the three classes known for one test, as the decorator `saved` does."""
    for kind in (Curve, Calibration, Committee):
        monkeypatch.setitem(SAVED, kind.__name__, kind)


@pytest.fixture(scope="module")
def fitted(data):
    return Committee(HMF(2, max_iter=3)).fit(*data)


@pytest.fixture
def model(fitted):
    return pickle.loads(pickle.dumps(fitted))


def test_everything_comes_back(model, data, path):
    model.save(path)
    copy = marginmf.load(path)
    assert copy.decision_function(data[0]).tobytes() == model.decision_function(data[0]).tobytes()
    assert repr(copy) == repr(model)
    assert isinstance(copy.curve_, Curve)
    assert copy.curve_.regs == [1.0, 2.0]
    assert isinstance(copy.calibration_, Calibration)
    assert all(member.ratings_ is copy.ratings_ for member in copy.members_)


def test_common_ratings_are_in_the_file_once(model, path):
    model.save(path)
    names = list(ModelParts(path).tensors)
    assert sum(name.endswith("indices") for name in names) == 1
    assert {"members_.0.user_factors_", "members_.2.user_factors_"} <= set(names)


def test_an_optional_attribute_may_be_absent(model, data, path):
    del model.calibration_
    model.save(path)
    assert not hasattr(marginmf.load(path), "calibration_")


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda model: delattr(model, "curve_"), r"Committee\.curve_ is missing"),
        (lambda model: model.members_.clear(), r"members_ is not a list, or is empty"),
        (
            lambda model: model.members_.append(7),
            r"members_\.3 is of the type int, which it cannot be",
        ),
        (lambda model: model.members_.append(HMF()), r"members_\.3\.users_ is missing"),
        (
            lambda model: setattr(model, "curve_", [1]),
            r"curve_ is of the type list, which it cannot be",
        ),
        (
            lambda model: setattr(model, "calibration_", Calibration(np.ones(9))),
            r"calibration_\.slopes has the shape \(9,\), which does not fit \(stages\)",
        ),
        (
            lambda model: model.members_.append(BiasOnly().fit([("a", 1), ("b", 1)], [1, 2])),
            r"members_\.3\.users_ has the shape \(2,\), which does not fit \(users\)",
        ),
    ],
)
def test_parts_that_do_not_fit_are_refused(model, path, change, sentence):
    change(model)
    with pytest.raises(ValueError, match=sentence):
        model.save(path)


def test_an_estimator_among_the_parameters_may_be_fitted_on_anything(model, path):
    other = BMMMF(2, random_state=0).fit([("a", 1), ("b", 1), ("a", 2)], [0, 1, 1])
    model.estimator = other
    model.save(path)
    restored = marginmf.load(path).estimator
    np.testing.assert_array_equal(restored.predict([("a", 1)]), other.predict([("a", 1)]))


def test_a_class_that_is_no_longer_declared_is_refused(model, path, monkeypatch):
    model.save(path)
    monkeypatch.delitem(SAVED, "Committee")
    with pytest.raises(ModelFileError, match="'Committee' is not an estimator that this marginmf"):
        marginmf.load(path)
