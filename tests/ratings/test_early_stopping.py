"""``early_stopping=True``: the hold-out says when to stop, and no interruption changes the end."""

from copy import deepcopy

import numpy as np
import pytest

import marginmf
from contracts import assert_same_fit, synthetic
from marginmf.backends import get_backend
from marginmf.ratings import ALS, BMMMF, HMF, MMMF, PMF, PMMMF, Ratings
from marginmf.ratings.fitting.validation import FINISHING, ValidationSplit

FEW = {"n_factors": 4, "reg": 0.3, "random_state": 0, "tol": 0.0, "max_iter": 20}
FEW["early_stopping"] = True
METHODS = [
    HMF(**FEW),
    HMF(**FEW, schedule="independent"),
    MMMF(**FEW),
    PMMMF(**FEW),
    PMF(**FEW, bias=True),
    ALS(**FEW, bias=True),
]
NO_LONGER_FELL = "the error on held-out data no longer fell"
ids = lambda model: f"{type(model).__name__}-{getattr(model, 'schedule', '')}"  # noqa: E731
methods = pytest.mark.parametrize("model", METHODS, ids=ids)


@pytest.fixture(scope="module")
def data():
    return Ratings.of(*synthetic((1, 2, 3, 4, 5)))


def changed(model, **params):
    return type(model)(**{**model.get_params(), **params})


def stages(model, values):
    return values if isinstance(model, HMF) else [values]


@methods
def test_a_fit_stops_when_the_error_no_longer_falls(model, data):
    fitted = changed(model, n_iter_no_change=3).fit(data)
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


def test_errors_are_those_of_ratings_that_were_not_learned_from(data):
    """MMMF by hand: hold out, fit to the rest, and count the thresholds below each score."""
    points = []
    params = {**FEW, "n_iter_no_change": 4, "validation_fraction": 0.25}
    model = MMMF(**params, callbacks=[lambda p: points.append(p.point.copy())]).fit(data)
    rng = np.random.default_rng(0).spawn(2)[-1]
    held_out = ValidationSplit.at_random(data, rng, 0.25)
    assert len(held_out.train) == len(data) - round(0.25 * len(data))
    errors, n_users, n_items = [], data.n_users, data.n_items
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
    assert model.ratings_ is data


@methods
def test_the_fit_ends_at_the_same_bits_when_it_is_interrupted(model, data, tmp_path):
    whole, path = deepcopy(model).fit(data), tmp_path / "checkpoint"
    n = int(np.sum(np.asarray(whole.n_iter_) + 1 + FINISHING + 1))
    for stop in np.unique(np.linspace(0, n - 1, 6, dtype=int)):
        seen = []

        def interrupt(progress, seen=seen, stop=stop):
            if len(seen) == stop:
                raise KeyboardInterrupt
            seen.append(progress)

        with pytest.raises(KeyboardInterrupt):
            changed(model, callbacks=[interrupt]).fit(data, checkpoint=path)
        assert_same_fit(changed(model).fit(data, checkpoint=path), whole)
        assert not path.exists()


@methods
def test_the_same_ratings_are_held_out_whether_reg_is_chosen_or_given(model, data):
    auto = changed(model, reg="auto", n_factors=3).fit(data)
    given = changed(auto, reg=auto.reg_).fit(data)
    np.testing.assert_array_equal(auto.user_factors_, given.user_factors_)
    assert auto.validation_errors_ == given.validation_errors_


@methods
def test_the_fit_does_not_depend_on_the_threads(model, data):
    one, two = (changed(model, n_jobs=n).fit(data) for n in (1, 2))
    np.testing.assert_array_equal(one.user_factors_, two.user_factors_)
    assert one.validation_errors_ == two.validation_errors_


@methods
def test_probabilities_take_no_second_fit(model, data, monkeypatch):
    fitted = deepcopy(model).fit(data)
    monkeypatch.setattr(type(fitted), "_fit_copy", lambda *args: 1 / 0)
    distribution = fitted.predict_proba(data.pairs[:5] if hasattr(data, "pairs") else [(0, 0)])
    np.testing.assert_allclose(distribution.sum(axis=1), 1)


def test_gradients_of_both_parts_are_counted(data):
    model = MMMF(**FEW).fit(data)
    assert model.n_evaluations_ >= model.history_[-1].n_evaluations + 1 + FINISHING


def test_it_is_off_unless_asked_for(data):
    model = MMMF(4, 0.3, random_state=0).fit(data)
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
    assert early >= 1.04 * late  # errors, below zero: early stopping costs a few per cent at most


def test_two_levels_and_a_few_ratings():
    fitted = BMMMF(**FEW).fit(*synthetic((0, 1)))
    assert len(fitted.validation_errors_) == fitted.n_iter_ + 1
    pairs, ratings = [("a", "x"), ("a", "y"), ("b", "x")], [1, 2, 3]
    for share in (0.1, 0.99):
        for kind in (HMF, MMMF, PMMMF):
            model = kind(2, 1.0, random_state=0, early_stopping=True, validation_fraction=share)
            assert np.isfinite(model.fit(pairs, ratings).predict_proba(pairs)).all()


def test_a_saved_model_keeps_its_errors(data, tmp_path):
    for model in (MMMF(**FEW), HMF(**FEW)):
        model.fit(data).save(tmp_path / "model.marginmf")
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
def test_parameters_that_cannot_be_used(params, message, data):
    with pytest.raises(ValueError, match=message):
        MMMF(**{**FEW, **params}).fit(data)
