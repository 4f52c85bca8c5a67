"""Gibbs MMMF: its conditionals in the long run, EM, resumed chains, new rows, odd data."""

import numpy as np
import pytest

from contracts import RatingsEstimatorContract, assert_same_fit
from marginmf.backends import get_backend
from marginmf.datasets import make_ratings
from marginmf.ratings import Ratings
from marginmf.ratings.baselines.gibbs_mmmf import GibbsMMMF, MarginSampler
from marginmf.ratings.fitting.chains import Sweep
from marginmf.ratings.fitting.mixtures import Hinge
from sampled_contracts import SampledContract

TABLE = make_ratings(60, 40, n_factors=2, observed=0.3, random_state=3)
DATA = Ratings.of(TABLE.pairs, TABLE.ratings)
QUICK = {"n_factors": 4, "n_burn": 10, "n_samples": 12, "thin": 1, "random_state": 0}


class TestGibbsMMMF(SampledContract):
    parameter, usual, refused = "n_factors", 5, (0, 2.5, None)

    def make(self, **params):
        return GibbsMMMF(**QUICK | params)


class TestFixedPrior(RatingsEstimatorContract):
    parameter, usual, refused = "cost", 0.2, (0, "high", None)

    def make(self, **params):
        return GibbsMMMF.published(**QUICK | {"n_factors": 6, "cost": 0.15} | params)


class TestEM(RatingsEstimatorContract):
    parameter, usual, refused = "precision", 5.0, (0, "high", None)

    def make(self, **params):
        return GibbsMMMF(**QUICK | {"solver": "em", "cost": 0.5} | params)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        ({"margin": 0}, r"margin=0 must be a number >= 1e-09 and <= 1e\+09"),
        ({"margin": 1e200}, r"margin=1e\+200 must be a number >= 1e-09 and <= 1e\+09"),
        ({"prior": "flat"}, "prior='flat' is not known. Choose one of 'learned', 'fixed'"),
        ({"solver": "sgd"}, "solver='sgd' is not known"),
        ({"solver": np.array(["em", "gibbs"])}, r"solver=array\(.*\) is not known"),
        ({"prior": np.array(["learned", "fixed"])}, r"prior=array\(.*\) is not known"),
        ({"precision": np.ones(2)}, r"precision=array\(.*\) must be a number"),
        ({"precision": 1e-100}, "precision=1e-100 must be a number >= 1e-06 and <= 1e"),
        ({"precision": 1e308}, "precision=1e.308 must be a number >= 1e-06 and <= 1e"),
        ({"n_samples": 0}, "n_samples=0 must be a whole number >= 1"),
    ],
)
def test_wrong_parameters_get_a_sentence(wrong, sentence):
    with pytest.raises(ValueError, match=sentence):
        GibbsMMMF(**wrong).fit(DATA)


@pytest.mark.parametrize("precision", [1e-6, 1e6])
@pytest.mark.parametrize("changes", [{}, {"solver": "em"}, {"prior": "fixed"}])
def test_the_least_and_the_largest_precision_give_finite_answers(precision, changes):
    model = GibbsMMMF(**QUICK | changes, precision=precision).fit(DATA)
    assert np.isfinite(model.predict_proba(TABLE.pairs)).all()
    moved = TABLE.pairs + np.array([1000, 0])
    folded = model.fold_in(moved, TABLE.ratings)
    assert np.isfinite(folded.predict_proba(moved)).all()


def sampler(data, learned=True, noiseless=False, **changes):
    settings = {"n_factors": 3, "hinge": Hinge(0.7, 1.0), "precision": 6.0} | changes
    return MarginSampler(
        data, **settings, learned=learned, noiseless=noiseless, backend=get_backend(), n_threads=1
    )


def long_run(chain, n_burn, n_sweeps, measure, seed=0):
    current, _ = chain.start(Sweep(seed, 0))
    found = []
    for number in range(1, n_burn + n_sweeps + 1):
        current, _ = chain.sweep(current, Sweep(seed, number))
        if number > n_burn:
            found.append(measure(current))
    return np.array(found)


def test_long_run_moments_are_those_of_numerical_integration():
    # Users who each rate an item of their own are as many chains with one user and one item.
    n, hinge, precision = 400, Hinge(1.3, 0.8), 0.9
    data = Ratings.of([(i, i) for i in range(n)], np.full(n, 2.0), levels=[1, 2])
    chain = sampler(data, learned=False, n_factors=1, hinge=hinge, precision=precision)
    u, v = np.linspace(-5, 5, 161)[:, None, None], np.linspace(-5, 5, 161)[:, None]
    theta, spread = np.linspace(-6, 6, 193), 1.5 * hinge.margin
    log = -precision * (u**2 + v**2) / 2 - theta**2 / (2 * spread**2)
    log = log - hinge.cost * np.maximum(0.0, hinge.margin + theta - u * v)
    density = np.exp(log)
    density /= density.sum()

    def moments(u, v, theta, mean):
        x = u * v
        values = [x, theta, x * theta, theta**2, u**2, x > theta, hinge.margin + theta > x]
        return [mean(value + 0.0 * x) for value in values]

    expected = moments(u, v, theta, lambda value: (value * density).sum())

    def measure(current):
        parts = (current["user_factors_"], current["item_factors_"], current["thresholds_"])
        return moments(*(part[:, 0] for part in parts), mean=np.mean)

    found = long_run(chain, 30, 500, measure)
    # Batches of sweeps, which are nearly independent, tell the error of the mean.
    batches = found.reshape(20, 25, -1).mean(axis=1)
    errors = batches.std(axis=0, ddof=1) / np.sqrt(len(batches))
    assert (errors < 0.02).all()
    assert (np.abs(found.mean(axis=0) - expected) < 4 * errors + 1e-3).all()


def test_means_of_factors_are_drawn_around_those_of_the_rows():
    chain = sampler(DATA, n_factors=400, precision=5.0)
    current, _ = chain.start(Sweep(0, 0))
    drawn, _ = chain.sweep(current, Sweep(0, 1))
    for side, n in (("user", DATA.n_users), ("item", DATA.n_items)):
        left = drawn[f"{side}_means_"] - current[f"{side}_factors_"].mean(axis=0)
        assert np.std(left * np.sqrt(n * 5.0)) == pytest.approx(1.0, abs=0.15)
        assert abs(left.mean() * np.sqrt(n * 5.0)) < 0.2


def test_the_prior_of_thresholds_is_drawn_from_its_posterior():
    chain, rng = sampler(DATA), np.random.default_rng(0)
    thresholds = rng.normal([0.0, 1.0, 3.0, 3.5], [0.5, 1.0, 2.0, 0.1], (DATA.n_users, 4))
    drawn = {"thresholds_": thresholds, "threshold_precisions_": np.ones(4)}
    found = []
    for number in range(4000):
        chain._draw_threshold_prior(drawn, Sweep(0, number))
        found.append([drawn["threshold_means_"], drawn["threshold_precisions_"]])
    means, precisions = np.array(found)[50:].mean(axis=0)
    # With the mean integrated out, the precision has a gamma distribution.
    n = DATA.n_users
    rates = 0.1 + np.square(thresholds - thresholds.mean(axis=0)).sum(axis=0) / 2
    np.testing.assert_allclose(precisions, (1 + (n - 1) / 2) / rates, rtol=0.02)
    deviations = np.sqrt(1 / (n * precisions))
    assert (np.abs(means - thresholds.mean(axis=0)) < 0.1 * deviations).all()


@pytest.mark.parametrize("learned", [True, False])
def test_the_objective_of_em_never_rises(learned):
    chain = sampler(DATA, learned, noiseless=True, hinge=Hinge(0.5, 1.0))
    current, value = chain.start(Sweep(0, 0))
    values = [value]
    for number in range(1, 120):
        current, value = chain.sweep(current, Sweep(0, number))
        values.append(value)
    assert (np.diff(values) <= 1e-9 * np.abs(values[1:])).all()
    assert values[-1] < 0.9 * values[1]


def test_em_ends_where_no_direction_lowers_the_objective():
    chain = sampler(DATA, noiseless=True, hinge=Hinge(0.5, 1.0))
    current, _ = chain.start(Sweep(0, 0))
    for number in range(1, 3000):
        current, value = chain.sweep(current, Sweep(0, number))
    rng = np.random.default_rng(0)
    for name in ("user_factors_", "item_factors_", "thresholds_", "threshold_means_"):
        for size in (1e-2, 1e-1):
            step = size * rng.normal(size=current[name].shape)
            assert chain.objective({**current, name: current[name] + step}) > value


def test_em_has_one_sample_and_a_falling_history():
    model = GibbsMMMF(4, solver="em", n_burn=10, n_samples=40, thin=1, random_state=0).fit(DATA)
    assert model.user_factors_.shape == (1, DATA.n_users, 4)
    objectives = [record.objective for record in model.history_]
    assert (np.diff(objectives) <= 0).all()
    assert model.n_iter_ == len(objectives) - 1 <= 50
    with pytest.raises(ValueError, match="There is one sample, so no interval"):
        model.credible_interval(TABLE.pairs[:5])


@pytest.mark.parametrize("side", ["user", "item"])
def test_new_rows_of_em_are_followed_until_they_hardly_move(side, monkeypatch):
    model = GibbsMMMF(4, solver="em", n_burn=50, random_state=0).fit(DATA)
    fold_in = model.fold_in if side == "user" else model.fold_in_items
    moved = TABLE.pairs + (np.array([1000, 0]) if side == "user" else np.array([0, 1000]))
    found = fold_in(moved, TABLE.ratings).predict(moved, output="mean")
    monkeypatch.setattr("marginmf.ratings.baselines.gibbs_mmmf.EM_NEW_ROW_SWEEPS", 1000)
    further = fold_in(moved, TABLE.ratings).predict(moved, output="mean")
    assert np.abs(found - further).max() < 0.03


def test_published_settings_can_be_had_by_name():
    model = GibbsMMMF.published(n_factors=4, random_state=0).fit(DATA)
    assert model.thresholds_.shape == (40, DATA.n_users, 4)
    np.testing.assert_allclose(model.threshold_means_[0], 27.0 * np.array([-1.5, -0.5, 0.5, 1.5]))
    np.testing.assert_allclose(model.threshold_precisions_, 1 / 13.5**2, rtol=1e-6)
    assert not model.user_means_.any()
    # Its rule: the product of mean factors against mean thresholds.
    users, items = (model.users_.encode(TABLE.pairs[:, 0]), model.items_.encode(TABLE.pairs[:, 1]))
    U, V = (
        f.mean(axis=0)[codes]
        for f, codes in ((model.user_factors_, users), (model.item_factors_, items))
    )
    above = (U * V).sum(axis=1)[:, None] > model.thresholds_.mean(axis=0)[users]
    predicted = model.predict(TABLE.pairs, output="rule")
    assert (predicted == 1 + above.sum(axis=1)).mean() > 0.999


def test_threads_do_not_change_a_bit(monkeypatch):
    # Small blocks, so that there are several of them.
    monkeypatch.setattr("marginmf.ratings.fitting.mixtures.NUMBERS_AT_A_TIME", 300)
    one, two = (GibbsMMMF(**QUICK, n_jobs=n).fit(DATA) for n in (1, 2))
    assert_same_fit(one, two)


def test_em_that_was_interrupted_goes_on_to_the_same_end(tmp_path):
    settings, path = QUICK | {"solver": "em"}, tmp_path / "em"

    def interrupt(progress):
        if progress.record.iteration == 15:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        GibbsMMMF(**settings, callbacks=[interrupt]).fit(DATA, checkpoint=path)
    seen = []
    resumed = GibbsMMMF(**settings, callbacks=[seen.append]).fit(DATA, checkpoint=path)
    assert seen[0].record.iteration >= 15
    assert_same_fit(resumed, GibbsMMMF(**settings).fit(DATA))


@pytest.mark.parametrize("changes", [{}, {"solver": "em"}, {"prior": "fixed"}])
@pytest.mark.parametrize("levels", [[1, 2, 3, 4, 5], [0, 1]])
def test_odd_data_gives_finite_answers(changes, levels):
    low, high = levels[0], levels[-1]
    rated = {(0, j): low for j in range(6)} | {(1, j): high for j in range(6)} | {(2, 3): high}
    rated |= {(i, j): levels[(i * j) % len(levels)] for i in range(3, 9) for j in range(1, 7)}
    data = Ratings.of(list(rated), list(rated.values()), levels=levels)
    # As in a hold-out: an item, and a user, that have no ratings left.
    data = data.subset((data.indices != 5) & (data.rows != 8))
    model = GibbsMMMF(**QUICK | changes)._fit_copy(data)
    everyone = [(i, j) for i in range(9) for j in range(7)]
    chances = model.predict_proba(everyone)
    assert (chances > 0).all()
    assert np.isfinite(chances).all()
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    assert (model.predict([(0, 0), (1, 0)]) == [low, high]).all()
    assert np.isfinite(model.decision_function(everyone)).all()
    for folded in (model.fold_in([(77, 3)], [high]), model.fold_in_items([(2, 77)], [high])):
        assert np.isfinite(folded.predict_proba([(77, 3), (2, 77)])).all()


#: Two samples of a model with one factor and two thresholds; each has the users' and the items'.
SAMPLES = {
    "user_means_": [[0.5], [-1.0]],
    "item_means_": [[-0.7], [1.2]],
    "threshold_means_": [[-1.0, 0.8], [0.3, 2.5]],
    "threshold_precisions_": [[1.5, 0.4], [3.0, 1.0]],
}


def model_of_two_samples(n_samples):
    """Return a model whose samples are two, in turn, as if they came from a chain."""
    rng = np.random.default_rng(0)
    pairs = [(i, j) for i in range(6) for j in range(6)]
    settings = {"n_burn": 0, "n_samples": 2, "thin": 1, "cost": 1.3, "precision": 0.9}
    model = GibbsMMMF(1, **settings, random_state=0).fit(pairs, rng.integers(1, 4, 36))
    arrays = {name: np.array(values) for name, values in SAMPLES.items()}
    for name in ("user_factors_", "item_factors_"):
        arrays[name] = rng.normal(size=(2, 6, 1))
    arrays["thresholds_"] = np.sort(rng.normal(size=(2, 6, 2)), axis=2)
    for name, values in arrays.items():
        assert getattr(model, name).shape == values.shape
        setattr(model, name, np.tile(values, (n_samples // 2, *[1] * (values.ndim - 1))))
    return model


RATINGS_OF_A_NEW_ROW = np.array([3, 3, 1, 2, 3, 1])
GRID = np.linspace(-6, 6, 301)


def hinges(model, x, thresholds, rating):
    """Return the loss of a rating for every threshold, an axis of its own at the end."""
    sign = np.where(rating <= np.array([1, 2]), 1.0, -1.0)
    return np.maximum(0.0, model.margin - sign * (thresholds - x))


def moments_of_a_new_user(model, k):
    """Return moments of a factor and two thresholds under sample k, by numerical integration."""
    means, precisions = (model.threshold_means_[k], model.threshold_precisions_[k])
    theta = GRID[:, None]
    # Given the factor (the first axis) thresholds (the last) are independent.
    log = -precisions * np.square(theta - means) / 2 + np.zeros((len(GRID), 1, 1))
    for item, rating in enumerate(RATINGS_OF_A_NEW_ROW):
        x = (GRID * model.item_factors_[k, item, 0])[:, None, None]
        log = log - model.cost * hinges(model, x, theta, rating)
    density = np.exp(log)
    of_u = np.exp(-model.precision * np.square(GRID - model.user_means_[k, 0]) / 2)
    of_u *= density.sum(axis=1).prod(axis=1)
    of_u /= of_u.sum()
    given = (density * theta).sum(axis=1) / density.sum(axis=1)
    squares = (density * theta**2).sum(axis=1) / density.sum(axis=1)
    values = np.column_stack([GRID, GRID**2, given, squares, GRID[:, None] * given])
    return of_u @ values


def moments_of_a_new_item(model, k):
    """Return moments of an item's factor under sample k, by numerical integration."""
    log = -model.precision * np.square(GRID - model.item_means_[k, 0]) / 2
    for user, rating in enumerate(RATINGS_OF_A_NEW_ROW):
        x = (GRID * model.user_factors_[k, user, 0])[:, None]
        log -= model.cost * hinges(model, x, model.thresholds_[k, user], rating).sum(axis=1)
    density = np.exp(log) / np.exp(log).sum()
    return density @ np.column_stack([GRID, GRID**2])


def test_new_rows_have_the_moments_of_numerical_integration():
    model = model_of_two_samples(600)
    new = [(77, j) for j in range(6)]
    folded = model.fold_in(new, RATINGS_OF_A_NEW_ROW)
    u, theta = folded.user_factors_[:, 0].astype(float), folded.thresholds_[:, 0].astype(float)
    of_user = np.hstack([u, u**2, theta, theta**2, u * theta])
    folded = model.fold_in_items([(i, 77) for i in range(6)], RATINGS_OF_A_NEW_ROW)
    v = folded.item_factors_[:, 0].astype(float)
    of_item = np.hstack([v, v**2])
    for k in range(2):
        for found, expected in (
            (of_user[k::2], moments_of_a_new_user(model, k)),
            (of_item[k::2], moments_of_a_new_item(model, k)),
        ):
            z = (found.mean(axis=0) - expected) / (found.std(axis=0) / np.sqrt(len(found)))
            assert np.abs(z).max() < 4, (k, z)


def test_new_users_without_much_to_say_are_like_the_prior():
    model = GibbsMMMF(**QUICK | {"n_samples": 60}).fit(DATA)
    some = model.fold_in([(1000, TABLE.pairs[0, 1])], [3.0])
    left = some.user_factors_[:, 0] - model.user_means_
    assert np.square(left).mean() == pytest.approx(1 / model.precision, rel=0.6)
    left = (some.thresholds_[:, 0] - model.threshold_means_) * np.sqrt(model.threshold_precisions_)
    assert np.square(left).mean() < 3


def test_movielens(movielens_100k):
    pairs, ratings = movielens_100k.pairs, movielens_100k.ratings
    order = np.random.default_rng(0).permutation(len(ratings))
    train, test = order[:40_000], order[90_000:]
    model = GibbsMMMF(8, n_burn=15, n_samples=20, thin=1, random_state=0)
    model.fit(pairs[train], ratings[train])
    assert -model.score(pairs[test], ratings[test]) < 0.72
    codes = np.searchsorted(model.levels_, ratings[test])
    assert -np.log(model.predict_proba(pairs[test])[np.arange(len(test)), codes]).mean() < 1.33
