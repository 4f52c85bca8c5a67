"""Ratings set aside: they choose the strength, stop early and calibrate."""

from copy import deepcopy

import numpy as np
import pytest

import marginmf
from contracts import assert_same_fit, synthetic
from marginmf.backends import get_backend
from marginmf.ratings import ALS, BMMMF, HMF, MMMF, PMF, PMMMF, Ratings
from marginmf.ratings.fitting import validation
from marginmf.ratings.fitting.stages import Training
from marginmf.ratings.fitting.validation import (
    FINISHING,
    ValidationSplit,
    calibrated_on,
    strength_limit,
)


@pytest.fixture(scope="module")
def data():
    return Ratings.of(*synthetic((1, 2, 3, 4, 5), n_users=60, n_items=50, n=1800))


@pytest.mark.parametrize(("enough", "n_parts"), [(100, 1), (500, 3), (1_000_000, 10)])
def test_tenths_are_set_aside_until_it_is_enough(data, monkeypatch, enough, n_parts):
    monkeypatch.setattr(validation, "ENOUGH", enough)
    parts = ValidationSplit.to_calibrate(data, np.random.default_rng(0))
    assert len(parts) == n_parts
    entries = np.concatenate([part.entries for part in parts])
    assert len(np.unique(entries)) == len(entries) >= min(enough, len(data)) - 10


def test_entries_say_where_the_ratings_are(data):
    held_out = ValidationSplit.at_random(data, np.random.default_rng(0))
    np.testing.assert_array_equal(data.rows[held_out.entries], held_out.users)
    np.testing.assert_array_equal(data.indices[held_out.entries], held_out.items)
    np.testing.assert_array_equal(data.codes[held_out.entries], held_out.codes)


def test_a_single_rating_can_be_set_aside():
    data = Ratings.of([("ann", "x")], [3], levels=[1, 3])
    (held_out,) = ValidationSplit.to_calibrate(data, np.random.default_rng(0))
    assert held_out.entries.tolist() == [0]


@pytest.mark.parametrize("model", [HMF, MMMF, PMMMF])
def test_the_model_that_is_calibrated_has_the_final_values(data, monkeypatch, model):
    seen, train = [], Training.train

    def recorded(self, regs, *args, **kwargs):
        seen.append((list(regs), self.n_factors, self.stopping, len(self.data)))
        return train(self, regs, *args, **kwargs)

    monkeypatch.setattr(Training, "train", recorded)
    model(5, random_state=0).fit(data)
    *calibrated, final = seen
    assert len(calibrated) == 10
    assert final[3] == len(data) > max(n for *_, n in calibrated)
    assert all(values[:3] == final[:3] for values in calibrated)


METHODS = [
    HMF(4, random_state=0),
    HMF(4, random_state=0, schedule="independent"),
    MMMF(4, random_state=0),
    PMMMF(4, random_state=0),
    PMF(4, random_state=0),
    ALS(4, random_state=0, bias=True),
]
ids = lambda model: f"{type(model).__name__}-{getattr(model, 'schedule', '')}"  # noqa: E731


@pytest.mark.parametrize("model", METHODS, ids=ids)
def test_auto_is_the_fit_with_the_chosen_reg(model, data):
    auto = model.fit(data)
    given = type(model)(**{**model.get_params(), "reg": auto.reg_}).fit(data)
    np.testing.assert_array_equal(auto.user_factors_, given.user_factors_)
    np.testing.assert_array_equal(auto.item_factors_, given.item_factors_)
    assert auto.reg == "auto"
    assert not hasattr(given, "reg_path_")


@pytest.mark.parametrize("model", METHODS, ids=ids)
def test_the_path_has_a_curve_for_every_stage(model, data):
    model.fit(data)
    paths = model.reg_path_ if isinstance(model, HMF) else [model.reg_path_]
    assert len(paths) == (4 if isinstance(model, HMF) else 1)
    for path, reg in zip(paths, np.atleast_1d(model.reg_), strict=True):
        assert path.best == reg
        assert len(path.regs) >= 3
        assert path.metric == ("zero-one error" if isinstance(model, HMF) else path.metric)


def test_two_levels():
    data = Ratings.of(*synthetic((0, 1)))
    model = BMMMF(4, random_state=0).fit(data)
    assert model.reg_ > 0
    assert model.predict_proba([(0, 0)]).shape == (1, 2)


def test_more_hold_outs_are_averaged(data):
    model = MMMF(4, random_state=0, holdouts=3).fit(data)
    assert model.reg_path_.errors.shape[1] == 3
    with pytest.raises(ValueError, match="holdouts=0 must be a whole number >= 1"):
        MMMF(holdouts=0).fit(data)


def test_the_choice_does_not_depend_on_the_threads(data):
    regs = [HMF(4, random_state=0, n_jobs=n).fit(data).reg_ for n in (1, 2)]
    assert regs[0] == regs[1]


def test_held_out_ratings_are_not_learned_from(data):
    held_out = ValidationSplit.at_random(data, np.random.default_rng(0))
    assert len(held_out.train) == len(data) - round(0.1 * len(data))
    learned = set(zip(held_out.train.rows, held_out.train.indices, strict=True))
    assert not learned & set(zip(held_out.users, held_out.items, strict=True))
    assert held_out.train.users is data.users


def test_a_few_ratings_are_enough():
    pairs, ratings = [("a", "x"), ("a", "y"), ("b", "x")], [1, 2, 3]
    for model in (HMF(2, random_state=0), MMMF(2, random_state=0), PMMMF(2, random_state=0)):
        assert np.isfinite(model.fit(pairs, ratings).predict_proba(pairs)).all()


@pytest.mark.parametrize("model", [HMF(3), MMMF(3), PMF(3)], ids=ids)
def test_at_the_limit_zero_is_a_minimum_and_below_it_is_not(model, data):
    model._set_data(data)
    model._prepare(data)
    training, backend = model._training(data), get_backend("reference")
    spec = training.stages[0].spec
    thresholds = training.random_start(0, np.random.default_rng(0)).thresholds
    limit = strength_limit(training, 0)

    def value(reg, scale):
        resident = backend.place(data, spec, reg, (data.n_items, 3), np.float64)
        # Along the leading singular vectors, where zero gives way first.
        dense = np.zeros((data.n_users, data.n_items))
        rows = backend.row_losses(data, spec, np.zeros(len(data)), thresholds)
        dense[data.rows, data.indices] = -rows.by_score
        left, _, right = np.linalg.svd(dense)
        users, items = np.zeros((data.n_users, 3)), np.zeros((data.n_items, 3))
        users[:, 0], items[:, 0] = scale * left[:, 0], scale * right[0]
        return backend.gradient(resident, resident.layout.join((users, items, thresholds)))[0]

    assert value(0.9 * limit, 0.01) < value(0.9 * limit, 0.0)
    assert value(1.1 * limit, 0.01) > value(1.1 * limit, 0.0)


@pytest.mark.parametrize("model", METHODS, ids=ids)
def test_calibration_does_not_change_the_fit(model, data):
    given = {**model.get_params(), "reg": 0.7}
    with_it, without = (type(model)(**{**given, "calibrate": c}).fit(data) for c in (True, False))
    np.testing.assert_array_equal(with_it.user_factors_, without.user_factors_)
    assert with_it._calibrator is not None
    assert without._calibrator is None


@pytest.mark.parametrize("model", METHODS[:4], ids=ids)
def test_the_calibrator_is_that_of_the_final_parameters(model, data):
    """By hand: hold out, fit to the rest with the chosen reg, calibrate on the hold-out."""
    fitted = model.fit(data)
    rng = np.random.default_rng(0).spawn(len(np.atleast_1d(fitted.reg_)) + 1)[-1]
    splits = ValidationSplit.to_calibrate(data, rng)
    assert len(splits) == 10
    bare = {**model.get_params(), "reg": fitted.reg_, "calibrate": False}
    margins = []
    for split in splits:
        rest = type(model)(**bare).fit(split.train)
        users = rest.users_.encode(data.users.ids[split.users])
        items = rest.items_.encode(data.items.ids[split.items])
        margins.append(rest._margins(users, items))
    expected = calibrated_on(splits, margins)
    np.testing.assert_allclose(fitted._calibrator.weights, expected.weights, rtol=1e-6, atol=1e-9)


FEW = {"n_factors": 4, "reg": 0.3, "random_state": 0, "tol": 0.0, "max_iter": 20}
FEW["early_stopping"] = True
STOPPED_EARLY = [
    HMF(**FEW),
    HMF(**FEW, schedule="independent"),
    MMMF(**FEW),
    PMMMF(**FEW),
    PMF(**FEW, bias=True),
    ALS(**FEW, bias=True),
]
NO_LONGER_FELL = "the error on held-out data no longer fell"
methods = pytest.mark.parametrize("model", STOPPED_EARLY, ids=ids)


@pytest.fixture(scope="module")
def small():
    return Ratings.of(*synthetic((1, 2, 3, 4, 5)))


def changed(model, **params):
    return type(model)(**{**model.get_params(), **params})


def stages(model, values):
    return values if isinstance(model, HMF) else [values]


@methods
def test_a_fit_stops_when_the_error_no_longer_falls(model, small):
    fitted = changed(model, n_iter_no_change=3).fit(small)
    reasons = stages(model, fitted.stop_reason_)
    assert NO_LONGER_FELL in reasons
    for errors, n_iter, reason in zip(
        stages(model, fitted.validation_errors_),
        np.atleast_1d(fitted.n_iter_),
        reasons,
        strict=True,
    ):
        assert len(errors) == n_iter + 1
        if reason == NO_LONGER_FELL:
            assert n_iter - int(np.argmin(errors)) == 3


def test_errors_are_those_of_ratings_that_were_not_learned_from(small):
    """MMMF by hand: hold out, fit to the rest, and count the thresholds below each score."""
    points = []
    params = {**FEW, "n_iter_no_change": 4, "validation_fraction": 0.25}
    model = MMMF(**params, callbacks=[lambda p: points.append(p.point.copy())]).fit(small)
    rng = np.random.default_rng(0).spawn(2)[-1]
    held_out = ValidationSplit.at_random(small, rng, 0.25)
    assert len(held_out.train) == len(small) - round(0.25 * len(small))
    errors, n_users, n_items = [], small.n_users, small.n_items
    split = get_backend().layout([(n_users, 4), (n_items, 4), (n_users, 4)], np.float32).split
    for point in points[: model.n_iter_ + 1]:
        users, items, thresholds = split(point)
        scores = users[held_out.users] * items[held_out.items]
        margins = scores.sum(axis=1)[:, None] - thresholds[held_out.users]
        errors.append(np.abs((margins >= 0).sum(axis=1) - held_out.codes).mean())
    np.testing.assert_allclose(model.validation_errors_, errors, atol=1e-12)
    # Then a few iterations with all ratings, from the best of these points.
    assert len(points) == model.n_iter_ + 1 + FINISHING + 1
    np.testing.assert_array_equal(points[model.n_iter_ + 1], points[int(np.argmin(errors))])
    np.testing.assert_array_equal(model.user_factors_, split(points[-1])[0])
    assert model.ratings_ is small


@methods
def test_the_fit_ends_at_the_same_bits_when_it_is_interrupted(model, small, tmp_path):
    whole, path = deepcopy(model).fit(small), tmp_path / "checkpoint"
    n = int(np.sum(np.asarray(whole.n_iter_) + 1 + FINISHING + 1))
    for stop in np.unique(np.linspace(0, n - 1, 6, dtype=int)):
        seen = []

        def interrupt(progress, seen=seen, stop=stop):
            if len(seen) == stop:
                raise KeyboardInterrupt
            seen.append(progress)

        with pytest.raises(KeyboardInterrupt):
            changed(model, callbacks=[interrupt]).fit(small, checkpoint=path)
        assert_same_fit(changed(model).fit(small, checkpoint=path), whole)
        assert not path.exists()


@methods
def test_the_same_ratings_are_held_out_whether_reg_is_chosen_or_given(model, small):
    auto = changed(model, reg="auto", n_factors=3).fit(small)
    given = changed(auto, reg=auto.reg_).fit(small)
    np.testing.assert_array_equal(auto.user_factors_, given.user_factors_)
    assert auto.validation_errors_ == given.validation_errors_


@methods
def test_the_fit_does_not_depend_on_the_threads(model, small):
    one, two = (changed(model, n_jobs=n).fit(small) for n in (1, 2))
    np.testing.assert_array_equal(one.user_factors_, two.user_factors_)
    assert one.validation_errors_ == two.validation_errors_


@methods
def test_probabilities_take_no_second_fit(model, small, monkeypatch):
    fitted = deepcopy(model).fit(small)
    monkeypatch.setattr(type(fitted), "_fit_copy", lambda *args: 1 / 0)
    distribution = fitted.predict_proba(small.pairs[:5] if hasattr(small, "pairs") else [(0, 0)])
    np.testing.assert_allclose(distribution.sum(axis=1), 1)


def test_gradients_of_both_parts_are_counted(small):
    model = MMMF(**FEW).fit(small)
    assert model.n_evaluations_ >= model.history_[-1].n_evaluations + 1 + FINISHING


def test_it_is_off_unless_asked_for(small):
    model = MMMF(4, 0.3, random_state=0).fit(small)
    assert not model.early_stopping
    assert not hasattr(model, "validation_errors_")


def test_weakly_regularised_models_predict_as_well_for_far_fewer_gradients():
    pairs, ratings = synthetic((1, 2, 3, 4, 5), n_users=150, n_items=120, n=5400)
    noisy = np.clip(ratings + np.random.default_rng(0).integers(-1, 2, len(ratings)), 1, 5)
    train, test = slice(None, 4500), slice(4500, None)

    def fitted(early):
        models = [MMMF(20, 0.1, tol=0.0, random_state=k, early_stopping=early) for k in range(4)]
        models = [model.fit(pairs[train], noisy[train]) for model in models]
        scores = [model.score(pairs[test], noisy[test]) for model in models]
        return np.mean(scores), sum(model.n_evaluations_ for model in models)

    (early, n_early), (late, n_late) = fitted(True), fitted(False)
    assert n_early < 0.5 * n_late
    assert early >= 1.05 * late  # errors, below zero: early stopping costs a few per cent at most


def test_two_levels_and_a_few_ratings():
    fitted = BMMMF(**FEW).fit(*synthetic((0, 1)))
    assert len(fitted.validation_errors_) == fitted.n_iter_ + 1
    pairs, ratings = [("a", "x"), ("a", "y"), ("b", "x")], [1, 2, 3]
    for share in (0.1, 0.99):
        for kind in (HMF, MMMF, PMMMF):
            model = kind(2, 1.0, random_state=0, early_stopping=True, validation_fraction=share)
            assert np.isfinite(model.fit(pairs, ratings).predict_proba(pairs)).all()


def test_a_saved_model_keeps_its_errors(small, tmp_path):
    for model in (MMMF(**FEW), HMF(**FEW)):
        model.fit(small).save(tmp_path / "model.marginmf")
        assert_same_fit(marginmf.load(tmp_path / "model.marginmf"), model)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"early_stopping": "yes"}, "early_stopping='yes' must be True or False"),
        ({"validation_fraction": 0.0}, "validation_fraction=0.0 must be between 0 and 1"),
        ({"validation_fraction": 1}, "validation_fraction=1 must be between 0 and 1"),
        ({"validation_fraction": "all"}, "validation_fraction='all' must be a number"),
        ({"n_iter_no_change": 0}, "n_iter_no_change=0 must be a whole number >= 1"),
    ],
)
def test_parameters_that_cannot_be_used(params, message, small):
    with pytest.raises(ValueError, match=message):
        MMMF(**{**FEW, **params}).fit(small)
