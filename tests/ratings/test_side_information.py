"""Side information: what it is good for, cold users and items, files, threads and faulty input."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold

import marginmf
from contracts import assert_same_fit
from marginmf.datasets import load_ratings
from marginmf.ratings import ALS, HMF, MMMF, PMF, PMMMF, BiasOnly, MarginEnsemble, Ratings

SIDES = pytest.mark.parametrize("side", ["item", "user"])
N_OTHERS, N_DESCRIBED, N_COLD = 60, 90, 15


class Planted:
    """Ratings of things whose factors depend on their category; the last of them are cold.

    The things are items, rated by users, or users, who rate items.
    """

    def __init__(self, side="item", n_ratings=6, seed=0):
        rng = np.random.default_rng(seed)
        self.side = side
        self.kinds = rng.integers(4, size=N_DESCRIBED)
        described = (1.2 * rng.normal(size=(4, 3)))[self.kinds]
        described += 0.3 * rng.normal(size=described.shape)
        scores = rng.normal(size=(N_OTHERS, 3)) @ described.T
        cuts = np.quantile(scores, [0.2, 0.4, 0.6, 0.8])
        noisy = scores + 0.3 * rng.normal(size=scores.shape)
        levels = 1.0 + np.searchsorted(cuts, noisy)
        rated = np.zeros(levels.shape, bool)
        for column in range(N_DESCRIBED - N_COLD):
            rated[rng.permutation(N_OTHERS)[:n_ratings], column] = True
        is_cold = np.arange(N_DESCRIBED) >= N_DESCRIBED - N_COLD
        self.train = self._of(rated, levels)
        self.test = self._of(~rated & ~is_cold, levels)
        self.cold = self._of(~rated & is_cold, levels)

    def _of(self, cells, levels):
        pairs = np.argwhere(cells)
        values = levels[cells]
        return (pairs if self.side == "item" else pairs[:, ::-1]), values

    @property
    def keyword(self):
        return f"{self.side}_features"

    def features(self, which=slice(None), kinds=None):
        """Return the argument of `fit` that says which categories the things have."""
        ids, kinds = np.arange(N_DESCRIBED)[which], (self.kinds if kinds is None else kinds)[which]
        return {self.keyword: {self.side: ids, "kind": [f"k{kind}" for kind in kinds]}}

    def error(self, model, pairs, values):
        return np.abs(model.predict(pairs, output="rule") - values).mean()


WARM, COLD = slice(N_DESCRIBED - N_COLD), slice(N_DESCRIBED - N_COLD, None)
PLANTED = {side: Planted(side) for side in ("item", "user")}
DATA = PLANTED["item"]


def quick(kind=MMMF, **params):
    return kind(**{"n_factors": 4, "reg": 3.0, "random_state": 0, "calibrate": False, **params})


def both_features():
    """Return features of both sides; those of users are by chance."""
    rng = np.random.default_rng(3)
    users = {"user": np.arange(N_OTHERS), "age": rng.integers(20, 60, size=N_OTHERS)}
    return {**DATA.features(), "user_features": users}


# What it is good for


@SIDES
@pytest.mark.parametrize("kind", [MMMF, HMF, PMMMF, PMF, ALS])
def test_a_planted_feature_helps_and_a_random_one_does_not(kind, side):
    data = PLANTED[side]
    by_chance = np.random.default_rng(9).permutation(data.kinds)

    def error(features):
        """Return the error on held-out ratings with the best of a few penalties."""
        models = [quick(kind, reg=reg).fit(*data.train, **features) for reg in (1.0, 3.0, 9.0)]
        return min(data.error(model, *data.test) for model in models)

    without = error({})
    assert error(data.features()) < 0.85 * without
    assert error(data.features(kinds=by_chance)) > 0.93 * without


# Cold users and items


@SIDES
@pytest.mark.parametrize("implicit", [None, "both"])
@pytest.mark.parametrize("kind", [MMMF, HMF, PMF, ALS])
def test_cold_rows_are_predicted_from_their_features(kind, implicit, side):
    data = PLANTED[side]
    pairs, values = data.cold
    fallback = data.error(quick(kind, implicit=implicit).fit(*data.train), pairs, values)
    described = quick(kind, implicit=implicit).fit(*data.train, **data.features())
    assert data.error(described, pairs, values) < 0.75 * fallback
    assert not np.isnan(described.predict(pairs, unknown="nan", output="rule")).any()
    described.predict(pairs, unknown="raise", output="rule")


@SIDES
@pytest.mark.parametrize("implicit", [None, "both"])
@pytest.mark.parametrize("kind", [MMMF, HMF, PMF])
def test_new_rows_with_features_alone(kind, implicit, side):
    data = PLANTED[side]
    pairs, values = data.cold
    model = quick(kind, implicit=implicit).fit(*data.train, **data.features(WARM))
    fallback = data.error(model, pairs, values)
    before = model.decision_function(data.train[0])
    fold, update = (
        ("fold_in_items", "update_items") if side == "item" else ("fold_in", "update_users")
    )
    folded = getattr(model, fold)(**data.features(COLD))
    assert data.error(folded, pairs, values) < 0.75 * fallback
    np.testing.assert_array_equal(model.decision_function(data.train[0]), before)
    assert getattr(model, update)(**data.features(COLD)) is model
    np.testing.assert_allclose(
        model.decision_function(pairs), folded.decision_function(pairs), atol=1e-5
    )
    # All others are as before, to the last bit.
    np.testing.assert_array_equal(model.decision_function(data.train[0]), before)


@SIDES
def test_features_help_new_rows_with_a_few_ratings(side):
    data = PLANTED[side]
    pairs, values = data.cold
    fold = {"item": "fold_in_items", "user": "fold_in"}[side]
    mine = np.random.default_rng(0).permutation(len(pairs))
    few, rest = mine[:60], mine[60:]

    def error(features, *arguments, **more):
        model = quick(implicit="both").fit(*data.train, **features)
        folded = getattr(model, fold)(*arguments, **more)
        return data.error(folded, pairs[rest], values[rest])

    warm, cold, rated = data.features(WARM), data.features(COLD), (pairs[few], values[few])
    assert error(warm, *rated, **cold) < 0.8 * error({}, *rated)


def test_cold_items_are_in_lists_and_among_neighbours():
    model = quick(calibrate=True).fit(*DATA.train, **DATA.features())
    best = model.recommend(n=20, by="chance")
    cold = best["item"].to_numpy() >= N_DESCRIBED - N_COLD
    assert cold.any()
    assert np.isfinite(best["score"]).all()
    near = model.similar_items(N_DESCRIBED - 1, n=10)["similar"].to_numpy()
    assert (DATA.kinds[near] == DATA.kinds[-1]).mean() > 0.7
    model.update_items(DATA.cold[0][-3:], DATA.cold[1][-3:])
    assert model.ratings_.n_items == N_DESCRIBED


@pytest.mark.filterwarnings("ignore:Features of items have cells that are missing")
def test_whole_movies_held_out_on_movielens(data_root):
    data = load_ratings("ml-100k", data_dir=data_root, offline=True)
    if data.item_features is None:
        pytest.skip("no features of ml-100k: its original files are not in the data folder")
    items = np.unique(data.items)
    held = np.isin(data.items, np.random.default_rng(1).permutation(items)[: len(items) // 10])
    train, pairs, values = (
        (data.pairs[~held], data.ratings[~held]),
        data.pairs[held],
        data.ratings[held],
    )

    def error(model, **features):
        predicted = model.fit(*train, **features).predict(pairs, output="mean")
        return np.sqrt(np.mean((predicted - values) ** 2))

    fallback = error(BiasOnly())
    for model in (
        MMMF(8, 15.0, implicit="both", tol=1e-3, random_state=0),
        MarginEnsemble(n_estimators=2, n_factors=8, random_state=0),
    ):
        assert error(model, item_features=data.item_features) < fallback - 0.015


# Files, checkpoints, threads


MODELS = [
    lambda **params: quick(**params),
    lambda **params: quick(HMF, **params),
    lambda **params: quick(ALS, **params),
    lambda **params: MarginEnsemble(
        ["mmmf", "als"], n_estimators=2, n_factors=3, random_state=0, **params
    ),
]
IDS = ["MMMF", "HMF", "ALS", "MarginEnsemble"]


@pytest.mark.parametrize("make", MODELS, ids=IDS)
def test_saved_and_loaded(make, tmp_path):
    features = both_features() | DATA.features(WARM)
    model = make(implicit="both").fit(*DATA.train, **features)
    model.save(tmp_path / "model.marginmf")
    copy = marginmf.load(tmp_path / "model.marginmf")
    pairs, _ = DATA.test
    for one, other in (
        (model, copy),
        *(
            (
                model.fold_in_items(*new, **DATA.features(COLD)),
                copy.fold_in_items(*new, **DATA.features(COLD)),
            )
            for new in ((), (DATA.cold[0][:40], DATA.cold[1][:40]))
        ),
    ):
        asked = np.vstack([pairs, DATA.cold[0]])
        np.testing.assert_array_equal(other.decision_function(asked), one.decision_function(asked))
        predicted = [each.predict(asked, output="rule") for each in (one, other)]
        np.testing.assert_array_equal(*predicted)
    assert copy.ratings_.item_features.names == model.ratings_.item_features.names


@pytest.mark.parametrize("kind", [MMMF, HMF, ALS])
def test_an_interrupted_fit_goes_on(kind, tmp_path):
    def make(**params):
        return quick(kind, implicit="both", max_iter=8, tol=0.0, **params)

    def interrupt_at(n):
        seen = []

        def callback(progress):
            seen.append(progress)
            if len(seen) == n:
                raise KeyboardInterrupt

        return callback

    path, features = tmp_path / "checkpoint", both_features()
    whole = make().fit(*DATA.train, **features)
    for n in (1, 3, 8):
        with pytest.raises(KeyboardInterrupt):
            make(callbacks=[interrupt_at(n)]).fit(*DATA.train, **features, checkpoint=path)
        assert_same_fit(make().fit(*DATA.train, **features, checkpoint=path), whole)
        assert not path.exists()


def test_a_checkpoint_of_other_features_is_refused(tmp_path):
    def stop(progress):
        if progress.record.iteration == 4:
            raise KeyboardInterrupt

    path = tmp_path / "checkpoint"
    with pytest.raises(KeyboardInterrupt):
        quick(callbacks=[stop]).fit(*DATA.train, **DATA.features(), checkpoint=path)
    others = DATA.features(kinds=DATA.kinds[::-1])
    with pytest.raises(ValueError, match=r"fit with other data \(item's columns\)"):
        quick().fit(*DATA.train, **others, checkpoint=path)


@pytest.mark.parametrize("make", MODELS, ids=IDS)
def test_same_seed_same_answer_whatever_the_threads(make, monkeypatch):
    # So small that work this small is shared out too.
    monkeypatch.setattr("marginmf.backends.threads.SMALLEST_TASK", 200)
    first, *others = (
        make(implicit="both", n_jobs=n).fit(*DATA.train, **both_features()) for n in (1, 2, 1)
    )
    for other in others:
        np.testing.assert_array_equal(other.item_factors_, first.item_factors_)
        np.testing.assert_array_equal(other.user_factors_, first.user_factors_)
        folded = [
            model.fold_in(*DATA.test).decision_function(DATA.test[0]) for model in (first, other)
        ]
        np.testing.assert_array_equal(*folded)


# Faulty input


@pytest.mark.parametrize("kind", [MMMF, HMF, PMMMF, PMF, ALS])
@pytest.mark.parametrize(
    ("params", "said"),
    [
        (
            {"implicit": "x"},
            "implicit='x' is not known. Choose one of None, 'items', 'users', 'both'",
        ),
        ({"implicit": True}, "implicit=True is not known"),
        ({"reg_implicit": 0}, "reg_implicit=0 leaves the weights of features undetermined"),
        ({"reg_implicit": -1.0}, "reg_implicit=-1.0 must be"),
        ({"reg_implicit": "x"}, "reg_implicit='x' must be a number > 0, or 'auto'"),
        ({"reg_implicit": np.nan}, "reg_implicit=nan must be"),
        ({"reg_features": 0.0}, "reg_features=0 leaves the weights of features undetermined"),
        ({"reg_features": None}, "reg_features=None must be"),
    ],
)
def test_faulty_parameters(kind, params, said):
    with pytest.raises(ValueError, match=said) as caught:
        quick(kind, **params).fit(*DATA.train)
    assert "\n" not in str(caught.value)


def test_faulty_parameters_of_an_ensemble():
    with pytest.raises(ValueError, match=r"implicit='x' is not known\. Choose one of"):
        MarginEnsemble(implicit="x").fit(*DATA.train)


@SIDES
def test_features_for_a_model_fitted_without(side):
    data = PLANTED[side]
    model = quick().fit(*data.train)
    names = ("fold_in_items", "update_items") if side == "item" else ("fold_in", "update_users")
    for name in names:
        with pytest.raises(ValueError, match=f"was fitted without {side}_features, so it has not"):
            getattr(model, name)(**data.features(COLD))
        with pytest.raises(ValueError, match=f"Give ratings of new {side}s, or {side}_features"):
            getattr(model, name)()


@SIDES
def test_ids_that_do_not_fit(side):
    data = PLANTED[side]
    strangers = {data.keyword: {side: [f"x{k}" for k in range(4)], "kind": ["a", "a", "b", "b"]}}
    with pytest.raises(ValueError, match=f"None of the {N_DESCRIBED - N_COLD} {side}s that have"):
        quick().fit(*data.train, **strangers)
    with pytest.warns(UserWarning, match=f"25 of {N_DESCRIBED - N_COLD} {side}s have no features"):
        quick().fit(*data.train, **data.features(slice(50)))


def test_methods_without_factors_refuse_features():
    for given in (DATA.train, (Ratings.of(*DATA.train, **DATA.features()),)):
        more = DATA.features() if len(given) == 2 else {}
        with pytest.raises(ValueError, match="BiasOnly learns from ratings alone: leave the feat"):
            BiasOnly().fit(*given, **more)


def test_unknown_categories_of_new_items_are_counted():
    model = quick(implicit="items").fit(*DATA.train, **DATA.features(WARM))
    table = {"item": [900, 901, 902], "kind": ["k0", "new", "newer"]}
    with pytest.warns(UserWarning, match=r"not known in training, .* \(2\): 'new', 'newer'"):
        folded = model.fold_in_items(item_features=table)
    assert np.isfinite(folded.decision_function([(0, 900), (0, 901), (0, 902)])).all()


def test_new_items_without_features_are_counted():
    model = quick().fit(*DATA.train, **DATA.features(WARM))
    pairs = [(0, 900), (1, 900), (2, 901)]
    with pytest.warns(UserWarning, match="1 of 2 items have no features: they are learned"):
        model.fold_in_items(pairs, [1, 2, 3], item_features={"item": [900], "kind": ["k0"]})


# scikit-learn


@pytest.mark.parametrize("kind", [MMMF, HMF, PMMMF, PMF, ALS])
def test_parameters_can_be_cloned_and_searched(kind):
    params = {"implicit": "items", "reg_implicit": 2.5, "reg_features": 7.0}
    model = clone(quick(kind, **params))
    assert {name: model.get_params()[name] for name in params} == params
    grid = {"implicit": [None, "both"], "reg_implicit": [1.0, 30.0]}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        search = GridSearchCV(
            quick(kind, max_iter=8), grid, cv=KFold(2, shuffle=True, random_state=0)
        )
        search.fit(*DATA.train)
    assert search.best_params_.keys() == grid.keys()
    scores = search.cv_results_["mean_test_score"]
    assert np.isfinite(scores).all()
    assert len(set(scores[:2])) == 1  # without raters their penalty changes nothing
    assert len(set(scores)) > 1


def test_features_go_through_a_search():
    halves, grid = KFold(2, shuffle=True, random_state=0), {"reg": [1.0, 3.0]}
    scores = []
    for features in ({}, DATA.features()):
        search = GridSearchCV(quick(), grid, cv=halves).fit(*DATA.train, **features)
        scores.append(search.best_score_)
    assert scores[1] > scores[0]
    assert search.best_estimator_.ratings_.n_items == N_DESCRIBED
