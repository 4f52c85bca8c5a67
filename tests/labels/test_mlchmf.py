"""MLCHMF as users meet it."""

import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.cluster import KMeans
from sklearn.datasets import make_multilabel_classification
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import minmax_scale

from marginmf.labels import MLCHMF, DecisionTuned
from marginmf.labels.neighbours import Neighbours
from marginmf.labels.tree import vote
from marginmf.losses import TWO_LEVEL
from marginmf.solvers import LBFGS, SOLVERS

RAW, Y = make_multilabel_classification(150, 12, n_classes=6, n_labels=2, random_state=0)
# Numbers that float32 has too, so that both precisions are shown the same.
X = minmax_scale(RAW).astype(np.float32).astype(np.float64)
MODEL = MLCHMF(reg=1.0, max_depth=3, max_iter=40, decision="sign", random_state=0)
FITTED = MODEL.__sklearn_clone__().fit(X, Y)


def fresh(**params):
    return MODEL.__sklearn_clone__().set_params(**params)


def accuracy(true, predicted) -> float:
    both, either = (true & predicted).sum(axis=1), (true | predicted).sum(axis=1)
    return float(np.mean(both / np.maximum(either, 1)))


def votes(queries):
    """Ask the five nearest kept instances one by one, straight from the thesis."""
    kept = np.concatenate([node.kept for node in FITTED.tree_])
    keepers = [node for node in FITTED.tree_ for _ in node.kept]
    answers = []
    for query in queries:
        nearest = np.argsort(((X[kept] - query) ** 2).sum(axis=1))[:5]
        scores = [keepers[k].scores(query[None])[0] for k in nearest]
        answers.append(np.array(scores))
    return np.array(answers)


def test_under_the_sign_rule_the_majority_of_the_neighbours_nodes_decides() -> None:
    queries = np.random.default_rng(0).random((60, 12))
    majority = (votes(queries) > 0).sum(axis=1) >= 3
    assert (FITTED.predict(queries) == majority).all()
    assert 0.05 < majority.mean() < 0.95


def test_among_equal_votes_the_mean_clipped_score_decides() -> None:
    queries = np.random.default_rng(1).random((40, 12))
    answers, scores = votes(queries), FITTED.decision_function(queries)
    n_votes, means = (answers > 0).sum(axis=1).ravel(), np.clip(answers, -1, 1).mean(axis=1).ravel()
    order = np.lexsort([means, n_votes])
    assert (np.diff(scores.ravel()[order]) >= -1e-12).all()
    assert np.abs(scores).max() <= 1


def test_a_soft_vote_is_the_mean_clipped_score() -> None:
    queries = np.random.default_rng(2).random((20, 12))
    soft = fresh(vote="soft").fit(X, Y)
    np.testing.assert_allclose(
        soft.decision_function(queries), np.clip(votes(queries), -1, 1).mean(axis=1), atol=1e-12
    )


def test_the_vote_suits_the_decision_rule_that_was_fitted() -> None:
    kinds = {
        rule: fresh(decision=rule, max_depth=1, max_iter=2).fit(X, Y).vote_
        for rule in ("sign", "global", "per_label")
    }
    assert kinds == {"sign": "hard", "global": "soft", "per_label": "soft"}
    soft = fresh(vote="soft", max_depth=1, max_iter=2).fit(X, Y)
    assert soft.vote_ == "soft"
    before = soft.decision_function(X)
    assert (soft.set_params(vote="hard").decision_function(X) == before).all()


def test_around_it_decision_tuned_leaves_the_vote_as_it_is() -> None:
    alone = fresh(decision="global", max_iter=5).fit(X, Y)
    tuned = DecisionTuned(fresh(decision="global", max_iter=5)).fit(X, Y)
    assert tuned.estimator_.vote_ == "soft"
    np.testing.assert_allclose(tuned.decision_function(X), alone.decision_function(X))


def test_an_even_vote_falls_to_the_larger_scores() -> None:
    tree = FITTED.tree_
    voters = np.tile([0, 1], (30, 1))
    found = vote(X[:30], voters, tree, "hard")
    scores = np.stack([tree[0].scores(X[:30]), tree[1].scores(X[:30])])
    even = (scores > 0).sum(axis=0) == 1
    assert even.any()
    assert ((found > 0) == (np.clip(scores, -1, 1).mean(axis=0) > 0))[even].all()


def test_it_learns_what_it_is_shown() -> None:
    empty = accuracy(Y, np.zeros_like(Y))
    assert accuracy(Y, FITTED.predict(X)) > 0.55 > empty + 0.3
    # Kept instances have four other neighbours who may outvote their own node; alone it decides.
    alone = fresh(n_neighbors=1).fit(X, Y)
    assert (alone.predict(X)[alone.tree_.kept] == Y[alone.tree_.kept]).all()


@pytest.mark.parametrize("decision", ["sign", "global", "per_label"])
def test_every_decision_rule_works(decision) -> None:
    model = fresh(decision=decision, max_depth=1, max_iter=20).fit(X, Y)
    assert ((model.decision_function(X) > 0) == model.predict(X)).all()


def test_depth_zero_is_one_embedding_without_neighbours() -> None:
    model = fresh(max_depth=0, top1_if_empty=True).fit(X, Y)
    (root,) = model.tree_
    assert model.neighbours_ is None
    np.testing.assert_array_equal(model.decision_function(X), root.scores(X))
    assert model.predict(X).any(axis=1).all()


def test_rank_and_tolerance_follow_the_labels() -> None:
    assert FITTED.tree_[0].V.shape == (3, 6)
    assert fresh(n_factors=2).fit(X, Y).tree_[0].V.shape == (2, 6)
    assert FITTED.tolerance_ == 0.02
    relative = fresh(tolerance=0.5, tolerance_unit="density", max_depth=1).fit(X, Y)
    assert relative.tolerance_ == pytest.approx(0.5 * Y.mean())


@pytest.mark.parametrize("form", [np.asarray, csr_array], ids=["dense", "sparse"])
def test_the_order_of_rows_and_labels_does_not_matter(form) -> None:
    rng = np.random.default_rng(0)
    rows, labels = rng.permutation(150), rng.permutation(6)
    # Few different features, so that many neighbours are equally near.
    features = (X > 0.4).astype(float)
    model = fresh().fit(form(features), Y)
    other = fresh().fit(form(features[rows]), Y[rows][:, labels])
    assert len(model.tree_) > 1
    np.testing.assert_allclose(
        model.decision_function(form(features))[:, labels],
        other.decision_function(form(features)),
        atol=1e-9,
    )


def test_sparse_and_dense_features_give_the_same() -> None:
    sparse = fresh().fit(csr_array(X), Y)
    expected = FITTED.decision_function(X)
    np.testing.assert_allclose(sparse.decision_function(csr_array(X)), expected, atol=1e-4)
    np.testing.assert_allclose(sparse.decision_function(X), expected, atol=1e-4)
    np.testing.assert_allclose(
        FITTED.decision_function(csr_array(X)), FITTED.decision_function(X), atol=1e-9
    )


def test_float32_features_make_float32_embeddings() -> None:
    model = fresh().fit(X.astype(np.float32), Y)
    assert {node.U.dtype for node in model.tree_} == {np.dtype(np.float32)}
    assert np.mean(model.predict(X.astype(np.float32)) == FITTED.predict(X)) > 0.9
    root, exact = (fresh(max_depth=0).fit(X.astype(t), Y).tree_[0] for t in (np.float32, float))
    assert root.objective == pytest.approx(exact.objective, rel=1e-3)


@pytest.mark.parametrize("n_jobs", [2, 3])
def test_the_number_of_jobs_does_not_matter(n_jobs) -> None:
    model = fresh(n_jobs=n_jobs).fit(X, Y)
    np.testing.assert_array_equal(model.decision_function(X), FITTED.decision_function(X))


def test_the_same_seed_gives_the_same_and_another_another() -> None:
    scores = fresh().fit(X, Y).decision_function(X)
    np.testing.assert_array_equal(scores, FITTED.decision_function(X))
    assert (fresh(random_state=1).fit(X, Y).decision_function(X) != scores).any()


def test_a_fitted_model_can_be_pickled() -> None:
    again = pickle.loads(pickle.dumps(FITTED))
    np.testing.assert_array_equal(again.decision_function(X), FITTED.decision_function(X))


def test_callbacks_see_every_node_and_can_stop_it() -> None:
    seen = []

    def stop(progress) -> bool:
        seen.append(progress.record.iteration)
        return progress.record.iteration >= 2

    model = fresh(callbacks=[stop], max_depth=1).fit(X, Y)
    assert seen == [0, 1, 2] * len(model.tree_)
    assert model.n_iter_ == 2 * len(model.tree_)


def test_verbose_shows_a_bar(capsys) -> None:
    fresh(verbose=1, max_depth=1, max_iter=3).fit(X, Y)
    assert "MLCHMF" in capsys.readouterr().err


@pytest.mark.parametrize("loss", [name for name, loss in TWO_LEVEL.items() if loss.convex])
@pytest.mark.parametrize("solver", SOLVERS)
def test_every_convex_loss_and_every_solver_works(loss, solver) -> None:
    (root,) = fresh(loss=loss, solver=solver, max_depth=0).fit(X, Y).tree_
    without_an_embedding = Y.size * TWO_LEVEL[loss].value(0.0)
    assert root.objective < 0.8 * without_an_embedding


def test_the_default_solver_is_lbfgs_as_it_comes() -> None:
    one, other = (
        fresh(solver=solver, max_depth=0, max_iter=20).fit(X, Y).tree_
        for solver in ("lbfgs", LBFGS())
    )
    assert one[0].objective == other[0].objective


def test_splitters_are_used() -> None:
    model = fresh(splitter=KMeans(2, n_init=1, random_state=5)).fit(X, Y)
    assert len(model.tree_) > 1
    with pytest.raises(ValueError, match="has n_clusters=4"):
        fresh(splitter=KMeans(4)).fit(X, Y)


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"n_factors": 0}, "n_factors=0 must be a whole number >= 1"),
        ({"reg": -1.0}, "reg=-1.0 must be a number >= 0"),
        ({"tolerance": "few"}, "tolerance='few' must be a number >= 0"),
        ({"tolerance_unit": "absolute"}, "tolerance_unit='absolute' is not known"),
        ({"max_depth": -1}, "max_depth=-1 must be a whole number >= 0"),
        ({"max_depth": "deep"}, "max_depth='deep' is not known. Choose one of 'auto'"),
        ({"min_samples": 0}, "min_samples=0 must be a whole number >= 1"),
        ({"n_neighbors": 0}, "n_neighbors=0 must be a whole number >= 1"),
        ({"vote": "loud"}, "vote='loud' is not known. Choose one of"),
        ({"splitter": "halves"}, "splitter='halves' cannot divide"),
        ({"loss": "zero_one"}, "cannot be minimised"),
        ({"solver": "newton"}, "solver='newton' is not known"),
        ({"max_iter": 0}, "max_iter=0 must be"),
        ({"tol": -1.0}, "tol=-1.0 must be"),
        ({"random_state": "lucky"}, "random_state='lucky' cannot seed"),
        ({"callbacks": [3]}, "must be a list of functions"),
    ],
)
def test_bad_parameters_are_refused_in_a_sentence(params, said) -> None:
    with pytest.raises(ValueError, match=said):
        fresh(**params).fit(X, Y)


def test_labels_of_nobody_and_rows_without_labels() -> None:
    odd = np.column_stack([Y, np.zeros(150, int), np.ones(150, int)])
    odd[:10] = 0
    model = fresh().fit(X, odd)
    assert not model.predict(X)[:, 6].any()
    assert model.predict(X[20:])[:, 7].all()


def test_few_instances_are_enough() -> None:
    assert fresh().fit(X[:1], Y[:1]).predict(X[:3]).shape == (3, 6)
    # Fewer kept instances than neighbours are asked for.
    model = fresh(min_samples=2, n_neighbors=50).fit(X[:12], Y[:12])
    assert model.predict(X[:5]).shape == (5, 6)


def test_what_is_kept_of_the_training_set_is_what_some_node_keeps() -> None:
    assert isinstance(FITTED.neighbours_, Neighbours)
    assert len(FITTED.keepers_) == len(FITTED.tree_.kept) == FITTED.neighbours_.stored_.shape[0]
    for node in FITTED.tree_:
        stored = FITTED.neighbours_.stored_[FITTED.keepers_ == node.index]
        assert (stored == X[node.kept]).all()


def load(root, name):
    with np.load(root / "labels" / f"{name}.npz", allow_pickle=False) as file:
        parts = dict(file)
    targets = (np.ones(len(parts["Y_indices"])), parts["Y_indices"], parts["Y_indptr"])
    labels = csr_array(targets, shape=tuple(parts["Y_shape"])).toarray().astype(int)
    if "X" in parts:
        return minmax_scale(parts["X"].astype(float)), labels
    features = (parts["X_data"].astype(float), parts["X_indices"], parts["X_indptr"])
    return csr_array(features, shape=tuple(parts["X_shape"])), labels


@pytest.mark.parametrize(
    ("name", "reg", "least"), [("emotions", 10.0, 0.47), ("genbase", 1.26, 0.96)]
)
def test_real_data_are_predicted_as_well_as_in_the_thesis(data_root, name, reg, least) -> None:
    features, labels = load(data_root, name)
    train, test = train_test_split(np.arange(len(labels)), test_size=0.2, random_state=0)
    model = MLCHMF(reg=reg, max_depth=5, decision="sign", random_state=0)
    model.fit(features[train], labels[train])
    assert accuracy(labels[test], model.predict(features[test])) > least


def test_squared_loss_is_least_squares_of_signs() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(80, 4))
    Y = (X @ rng.normal(size=(4, 3)) > 0.2).astype(int)
    model = MLCHMF(3, 1e-6, max_depth=0, loss="squared", decision="sign", max_iter=500, tol=1e-12)
    scores = model.set_params(random_state=0).fit(X, Y).decision_function(X)
    wide = np.column_stack([X, np.ones(80)])
    expected = wide @ np.linalg.lstsq(wide, 2.0 * Y - 1.0, rcond=None)[0]
    np.testing.assert_allclose(scores, expected, atol=1e-3)


def with_rules(n_rules: int):
    """Rows in clusters, each of which has a linear rule of its own for its labels."""
    rng = np.random.default_rng(0)
    n, width = (240, 3) if n_rules > 1 else (240, 30)
    cluster = np.arange(n) % n_rules
    rows = rng.normal(size=(n, width))
    scores = np.einsum("nf,nfl->nl", rows, rng.normal(size=(n_rules, width, 8))[cluster])
    return np.column_stack([rows, 20.0 * (cluster[:, None] == np.arange(n_rules))]), scores > 0


CHOSEN = {"reg": 0.1, "tolerance": 1.0, "n_neighbors": 1, "random_state": 0}
# Quick, and a tree that overfits is plainly behind.
CHOSEN |= {"max_iter": 100, "tol": 1e-4}


@pytest.mark.parametrize("decision", ["sign", "global"])
@pytest.mark.parametrize(("n_rules", "depth"), [(1, 0), (2, 5)])
def test_a_tree_is_grown_where_it_is_better_on_rows_held_out(decision, n_rules, depth) -> None:
    features, labels = with_rules(n_rules)
    model = MLCHMF(**CHOSEN, decision=decision).fit(features, labels)
    assert model.max_depth_ == depth
    fixed = MLCHMF(**CHOSEN, decision=decision, max_depth=depth).fit(features, labels)
    assert fixed.max_depth_ == depth
    np.testing.assert_array_equal(model.thresholds_, fixed.thresholds_)
    np.testing.assert_array_equal(model.predict(features), fixed.predict(features))


def test_classes_have_the_depth_that_gets_more_of_them_right() -> None:
    for n_rules, depth in ((1, 0), (2, 5)):
        features, labels = with_rules(n_rules)
        assert MLCHMF(**CHOSEN).fit(features, labels[:, 0]).max_depth_ == depth
    assert MLCHMF(**CHOSEN).fit(features[:1], labels[:1]).max_depth_ == 0


def test_a_tree_that_falls_behind_is_given_up(monkeypatch) -> None:
    depths, fit = [], MLCHMF._fit
    monkeypatch.setattr(
        MLCHMF, "_fit", lambda self, *data: (depths.append(self.max_depth), fit(self, *data))
    )
    MLCHMF(**CHOSEN).fit(*with_rules(1))
    assert depths == [0, 5, 0, 0, "auto"]


def test_the_choice_depends_on_neither_order_nor_threads() -> None:
    features, labels = with_rules(2)
    model = MLCHMF(**CHOSEN).fit(features, labels)
    rng = np.random.default_rng(1)
    rows, columns = (rng.permutation(n) for n in labels.shape)
    other = MLCHMF(**CHOSEN, n_jobs=2).fit(features[rows], labels[rows][:, columns])
    assert other.max_depth_ == model.max_depth_
    np.testing.assert_array_equal(other.predict(features), model.predict(features)[:, columns])


def test_few_scores_are_enough_to_compare_depths(monkeypatch) -> None:
    monkeypatch.setattr("marginmf.labels.mlchmf.MOST_COMPARED", 1)
    features, labels = with_rules(2)
    model = MLCHMF(**CHOSEN).fit(features, labels)
    fixed = MLCHMF(**CHOSEN, max_depth=5).fit(features, labels)
    assert model.max_depth_ == 5
    np.testing.assert_array_equal(model.thresholds_, fixed.thresholds_)


def test_one_warning_says_how_many_nodes_were_not_done() -> None:
    # The folds of the decision rule are capped too, and have no warning of their own.
    with pytest.warns(ConvergenceWarning, match=r"2 of 2 nodes after max_iter=3") as found:
        fresh(decision="global", max_depth=1, max_iter=3).fit(X, Y)
    assert [Path(one.filename).name for one in found] == [Path(__file__).name]


def test_with_defaults_nodes_settle_and_do_not_warn() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = MLCHMF(max_depth=2, decision="sign", random_state=0).fit(X, Y)
        settled = MLCHMF(max_depth=2, decision="sign", random_state=0, tol=0.0).fit(X, Y)
    # The first node is learned from the same rows in both.
    assert model.tree_[0].objective < 1.01 * settled.tree_[0].objective
