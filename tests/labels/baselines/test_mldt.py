"""ML-DT and its forests: scikit-learn's trees as the oracle, splits by hand, rows held out."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.model_selection import KFold
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

import marginmf
from label_contracts import labelled
from marginmf.datasets import load_labels
from marginmf.labels import MLDT, RidgeEmbedding, Scaled
from marginmf.labels.baselines import trees
from marginmf.labels.baselines.trees import draw_bag
from marginmf.labels.order import canonical_order
from marginmf.metrics import jaccard_accuracy

X, Y = labelled()
NEW = labelled(seed=9)[0]  # trees know their training rows by heart
INDICATOR = csr_array(Y.astype(float))
ORDER = canonical_order(X, INDICATOR)
FOREST = {"n_trees": 7, "random_state": 0}
#: Among few rows many splits are equally good, and rounding chooses.
LEAST = 6


def shares_of(tree, seed, weights=None, rows=X):
    """Return the shares of labels in the leaves of one tree of scikit-learn."""
    labels = Y[ORDER.rows][:, ORDER.labels]
    tree.set_params(random_state=seed).fit(X[ORDER.rows], labels, sample_weight=weights)
    shares = np.empty(Y.shape)
    shares[:, ORDER.labels] = np.column_stack([each[:, 1] for each in tree.predict_proba(rows)])
    return shares


def binary_entropy(labels):
    p = labels.mean(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        terms = p * np.log(p) + (1 - p) * np.log(1 - p)
    return -np.nansum(terms)


@pytest.mark.parametrize("form", [np.asarray, csr_array])
@pytest.mark.parametrize("least", [1, 5])
def test_one_tree_is_scikit_learns_with_the_entropy_of_all_labels(form, least) -> None:
    model = MLDT(min_samples_leaf=least, decision="sign", random_state=3).fit(form(X), Y)
    oracle = DecisionTreeClassifier(criterion="entropy", min_samples_leaf=least)
    expected = shares_of(oracle, int(model.seeds_[0]), rows=NEW) - 0.5
    np.testing.assert_allclose(model.decision_function(form(NEW)), expected, atol=1e-12)


def test_the_first_split_has_the_least_sum_of_entropies() -> None:
    model = MLDT(decision="sign", random_state=0).fit(X, Y)
    costs = {}
    for feature in range(X.shape[1]):
        for value in np.unique(X[:, feature])[:-1]:
            left = X[:, feature] <= value
            sides = (Y[left], Y[~left])
            if min(map(len, sides)) >= 5:
                costs[feature, value] = sum(len(side) * binary_entropy(side) for side in sides)
    root = int(model.roots_[0])
    feature, cut = int(model.split_features_[root]), model.split_values_[root]
    chosen = sum(
        mask.sum() * binary_entropy(Y[mask]) for mask in (X[:, feature] <= cut, X[:, feature] > cut)
    )
    assert chosen == pytest.approx(min(costs.values()))


@pytest.mark.parametrize("form", [np.asarray, csr_array])
@pytest.mark.parametrize("bootstrap", [False, True])
def test_a_forest_averages_randomised_trees_by_the_gini_index(form, bootstrap) -> None:
    settings = {"max_features": 3, "min_samples_leaf": LEAST}
    model = MLDT(**FOREST, **settings, bootstrap=bootstrap, decision="sign").fit(form(X), Y)
    oracle = ExtraTreeClassifier(criterion="gini", **settings)
    bags = [draw_bag(seed, len(X)) if bootstrap else None for seed in model.seeds_.tolist()]
    found = [
        shares_of(oracle, int(seed), bag, NEW) for seed, bag in zip(model.seeds_, bags, strict=True)
    ]
    expected = np.mean(found, axis=0) - 0.5
    np.testing.assert_allclose(model.decision_function(form(NEW)), expected, atol=1e-12)


def test_by_default_a_forest_looks_at_the_root_of_the_number_of_features() -> None:
    wide, new = np.tile(X, (1, 3)), np.tile(NEW, (1, 3))  # 24 features
    default = MLDT(**FOREST, decision="sign").fit(wide, Y)
    given = MLDT(**FOREST, max_features=4, min_samples_leaf=1, decision="sign").fit(wide, Y)
    share = MLDT(**FOREST, max_features=0.17, decision="sign").fit(wide, Y)
    scores = default.decision_function(new)
    np.testing.assert_array_equal(given.decision_function(new), scores)
    np.testing.assert_array_equal(share.decision_function(new), scores)
    more = MLDT(**FOREST, max_features=99, decision="sign").fit(wide, Y)
    assert not np.allclose(more.decision_function(new), scores)


def held_out(model):
    """Return the rows held out in their order, and their scores."""
    rows, scores = map(np.concatenate, zip(*model._cross_fit(X, INDICATOR), strict=True))
    return rows, scores


def test_rows_are_held_out_of_the_bag() -> None:
    model = MLDT(**FOREST, min_samples_leaf=LEAST, bootstrap=True, cv=4)
    oracle = ExtraTreeClassifier(criterion="gini", max_features=2, min_samples_leaf=LEAST)
    rows, scores = held_out(model)
    np.testing.assert_array_equal(np.sort(rows), np.arange(len(Y)))
    total, times = np.zeros(Y.shape), np.zeros((len(Y), 1))
    for seed in model.seeds_.tolist():
        bag = draw_bag(seed, len(X))
        unseen = np.zeros((len(Y), 1))
        unseen[ORDER.rows, 0] = bag == 0
        found = shares_of(oracle, seed, bag)
        total, times = total + unseen * found, times + unseen
    expected = np.where(times > 0, total / np.maximum(times, 1), Y.mean(axis=0))
    np.testing.assert_allclose(scores, expected[rows] - 0.5, atol=1e-12)


def test_rows_in_all_bags_get_the_frequencies_of_labels() -> None:
    model = MLDT(2, bootstrap=True, random_state=0)
    rows, scores = held_out(model)
    seen = np.min([draw_bag(seed, len(X)) for seed in model.seeds_.tolist()], axis=0) > 0
    always = np.isin(rows, ORDER.rows[seen])
    assert always.any()
    np.testing.assert_allclose(scores[always], np.tile(Y.mean(axis=0) - 0.5, (always.sum(), 1)))


@pytest.mark.parametrize(("bootstrap", "n_fits"), [(True, 1), (False, 4)])
@pytest.mark.parametrize("wrap", [lambda model: model, Scaled])
def test_a_forest_with_a_bootstrap_is_grown_once(bootstrap, n_fits, wrap, monkeypatch) -> None:
    grown = []
    grow = trees._grow
    monkeypatch.setattr(trees, "_grow", lambda *args: grown.append(1) or grow(*args))
    model = wrap(MLDT(**FOREST, bootstrap=bootstrap, decision="global")).fit(X, Y)
    assert len(grown) == 7 * n_fits
    # The forest is that of a fit without thresholds.
    plain = wrap(MLDT(**FOREST, bootstrap=bootstrap, decision="sign")).fit(X, Y)
    scores = model.decision_function(NEW) + model.thresholds_
    np.testing.assert_allclose(scores, plain.decision_function(NEW), atol=1e-12)


def test_scores_out_of_the_bag_are_honest() -> None:
    # Labels that have nothing to do with the features cannot be predicted, but can be remembered.
    noise = (np.random.default_rng(0).random((200, 3)) < 0.5).astype(int)
    features = np.random.default_rng(1).normal(size=(200, 4))
    model = MLDT(30, bootstrap=True, random_state=0)
    found = model._cross_fit(features, csr_array(noise.astype(float)))
    rows, scores = map(np.concatenate, zip(*found, strict=True))
    assert np.mean((scores > 0) == noise[rows]) < 0.6
    assert np.mean((model._label_scores(features) > 0) == noise) > 0.9


def test_numbers_beyond_single_precision() -> None:
    model = MLDT(decision="sign", random_state=0).fit(X * 1e100, Y)
    assert np.isfinite(model.decision_function(X * 1e100)).all()


def test_files_hold_arrays_alone(tmp_path) -> None:
    model = MLDT(**FOREST, bootstrap=True).fit(X, Y)
    model.save(tmp_path / "forest.marginmf")
    copy = marginmf.load(tmp_path / "forest.marginmf")
    assert copy.decision_function(X).tobytes() == model.decision_function(X).tobytes()
    # A sign that nothing of scikit-learn's is needed: rows out of the bag can be scored again.
    np.testing.assert_array_equal(copy.seeds_, model.seeds_)


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"n_trees": 0}, "n_trees=0 must be a whole number >= 1"),
        ({"min_samples_leaf": 0}, "min_samples_leaf=0 must be a whole number >= 1"),
        ({"max_features": 0}, "max_features=0 must be a whole number >= 1"),
        ({"max_features": 1.5}, "max_features=1.5 must be a whole number of features, or a share"),
        ({"max_features": "sqrt"}, "max_features='sqrt' must be a number"),
        ({"bootstrap": "yes"}, "bootstrap='yes' must be True or False"),
        ({"bootstrap": True}, "bootstrap=True leaves rows out .* n_trees above 1"),
        ({"random_state": "x"}, "random_state='x' cannot seed"),
    ],
)
def test_bad_parameters_get_a_sentence(params, said) -> None:
    with pytest.raises(ValueError, match=said):
        MLDT(**params).fit(X, Y)


def test_accuracy_on_emotions(data_root, monkeypatch) -> None:
    monkeypatch.setenv("MARGINMF_DATA", str(data_root))
    data = load_labels("emotions")
    methods = {
        "tree": MLDT(random_state=0, decision="sign"),
        "forest": MLDT(60, bootstrap=True, random_state=0, decision="global"),
        "ridge": RidgeEmbedding(decision="global"),
    }
    reached = {name: [] for name in methods}
    for train, test in KFold(5, shuffle=True, random_state=0).split(data.X):
        for name, method in methods.items():
            predicted = Scaled(method).fit(data.X[train], data.Y[train]).predict(data.X[test])
            reached[name].append(jaccard_accuracy(data.Y[test], predicted))
    mean = {name: np.mean(values) for name, values in reached.items()}
    assert abs(mean["tree"] - 0.473) < 0.015
    assert mean["forest"] > mean["ridge"] + 0.01
