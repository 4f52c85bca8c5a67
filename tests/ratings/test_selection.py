"""``reg="auto"``: chosen on held-out ratings, and the fit is the one with that reg given."""

import numpy as np
import pytest

from contracts import synthetic
from marginmf.backends import get_backend
from marginmf.ratings import ALS, BMMMF, HMF, MMMF, PMF, PMMMF, Ratings
from marginmf.ratings.fitting.validation import ValidationSplit, calibrated_on, strength_limit

METHODS = [
    HMF(4, random_state=0),
    HMF(4, random_state=0, schedule="independent"),
    MMMF(4, random_state=0),
    PMMMF(4, random_state=0),
    PMF(4, random_state=0),
    ALS(4, random_state=0, bias=True),
]
ids = lambda model: f"{type(model).__name__}-{getattr(model, 'schedule', '')}"  # noqa: E731


@pytest.fixture(scope="module")
def data():
    return Ratings.of(*synthetic((1, 2, 3, 4, 5), n_users=60, n_items=50, n=1800))


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
