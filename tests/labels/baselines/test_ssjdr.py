"""SSJDR: the reduction to one embedding against the objective as it is printed, the graph, data."""

import numpy as np
import pytest
from scipy.linalg import cholesky
from scipy.sparse import csr_array
from sklearn.model_selection import KFold

from label_contracts import labelled
from marginmf.datasets import load_labels
from marginmf.labels import SSJDR, Scaled
from marginmf.labels.baselines import ssjdr
from marginmf.labels.objective import LabelObjective, label_loss
from marginmf.labels.order import content_order
from marginmf.metrics import jaccard_accuracy

X, Y = labelled(40, 6, 5)
SIGN = {"decision": "sign", "random_state": 0}
LOSSES = {
    "hinge": lambda z: np.maximum(0.0, 1.0 - z),
    "smooth_hinge": lambda z: np.where(
        z < 0, 0.5 - z, np.where(z < 1, 0.5 * (1.0 - np.minimum(z, 1.0)) ** 2, 0.0)
    ),
}


def slow_graph(X, k):
    """Return similarities of mutual neighbours, pair by pair."""
    n = len(X)
    distances = np.array([[np.linalg.norm(a - b) for b in X] for a in X])
    near = [[j for j in np.argsort(distances[i], kind="stable") if j != i][:k] for i in range(n)]
    scale = np.median([distances[i, j] for i in range(n) for j in near[i]])
    graph = np.zeros((n, n))
    for i in range(n):
        for j in near[i]:
            if i in near[j]:
                graph[i, j] = np.exp(-((distances[i, j] / scale) ** 2))
    return graph


def slow_objective(U, b, V, X, Y, graph, alpha, reg, delta, loss):
    """Return the objective as it is printed, term by term, in the original variables."""
    value = 0.0
    for i in range(len(X)):
        for label in range(Y.shape[1]):
            sign = 2 * Y[i, label] - 1
            value += LOSSES[loss](sign * ((X[i] @ U + b) @ V[:, label]))
        for j in range(len(X)):
            value += 0.5 * alpha * graph[i, j] * np.sum((X[i] @ U - X[j] @ U) ** 2)
    return value + 0.5 * (delta * np.sum(U**2) + np.sum(b**2) + reg * np.sum(V**2))


def problem(form, loss, alpha=0.7, reg=0.3, delta=0.05, n_factors=3):
    graph = slow_graph(X, 4)
    gram = ssjdr.neighbour_gram(form(X), csr_array(graph))
    inner = LabelObjective(form(X), csr_array(Y.astype(float)), 0.0, n_factors, label_loss(loss))
    matrix = 2 * alpha * gram + delta * np.eye(X.shape[1])
    return ssjdr.NeighbourObjective(inner, cholesky(matrix), reg), graph, matrix


@pytest.mark.parametrize("form", [np.asarray, csr_array])
@pytest.mark.parametrize("loss", LOSSES)
def test_the_reduced_objective_is_the_printed_one(form, loss) -> None:
    objective, graph, _ = problem(form, loss)
    rng = np.random.default_rng(0)
    for _ in range(3):
        point = rng.normal(size=7 * 3 + 3 * 5)
        U, V = objective.original(point)
        expected = slow_objective(U[:-1], U[-1], V, X, Y, graph, 0.7, 0.3, 0.05, loss)
        assert objective(point)[0] == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_the_gradient_is_that_of_differences(form) -> None:
    objective, *_ = problem(form, "smooth_hinge")
    rng = np.random.default_rng(1)
    point = rng.normal(size=7 * 3 + 3 * 5)
    gradient = objective(point)[1]
    step = 1e-6
    for k in range(len(point)):
        there, back = point.copy(), point.copy()
        there[k] += step
        back[k] -= step
        slope = (objective(there)[0] - objective(back)[0]) / (2 * step)
        assert gradient[k] == pytest.approx(slope, rel=1e-5, abs=1e-5)


def test_it_is_one_embedding_of_other_features() -> None:
    """The rows x R^-1 and a penalty of sqrt(reg) on both factors: the library's own objective."""
    reg = 0.3
    objective, _, matrix = problem(np.asarray, "smooth_hinge", reg=reg)
    balance, root = reg**0.25, np.linalg.inv(cholesky(matrix))
    other = LabelObjective(
        X @ root, csr_array(Y.astype(float)), np.sqrt(reg), 3, label_loss("smooth_hinge")
    )
    point = np.random.default_rng(2).normal(size=7 * 3 + 3 * 5)
    value, gradient = objective(point)
    expected, slopes = other(point)
    assert value == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(gradient, slopes, atol=1e-10)
    U, V = objective.original(point)
    reduced = objective.inner.split(point)
    np.testing.assert_allclose(U[:-1], balance * root @ reduced[0][:-1], atol=1e-12)
    np.testing.assert_allclose(V, reduced[1] / balance)


@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_the_graph_is_that_of_mutual_neighbours(form) -> None:
    graph = ssjdr.neighbour_graph(form(X), 4).toarray()
    np.testing.assert_allclose(graph, slow_graph(X, 4), atol=1e-9)
    np.testing.assert_array_equal(graph, graph.T)


@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_sums_over_pairs_do_not_depend_on_blocks(form, monkeypatch) -> None:
    graph = csr_array(slow_graph(X, 4))
    laplacian = np.diag(graph.sum(axis=1)) - graph.toarray()
    expected = X.T @ laplacian @ X
    np.testing.assert_allclose(ssjdr.neighbour_gram(form(X), graph), expected, atol=1e-12)
    monkeypatch.setattr(ssjdr, "BLOCK", 20)
    np.testing.assert_allclose(ssjdr.neighbour_gram(form(X), graph), expected, atol=1e-12)


def test_a_fit_ends_at_the_objective_it_says_and_where_it_is_flat() -> None:
    model = SSJDR(3, n_neighbors=4, alpha=0.7, reg=0.3, tol=1e-9, max_iter=2000, **SIGN).fit(X, Y)
    rows = content_order(X, csr_array(Y.astype(float))).rows
    graph = ssjdr.neighbour_graph(X[rows], 4)
    diagonal = 2 * 0.7 * np.diagonal(ssjdr.neighbour_gram(X[rows], graph))
    parts = [model.feature_map_, model.factor_intercept_, model.label_factors_]
    rest = (X[rows], Y[rows], graph.toarray(), 0.7, 0.3, 0.1 * diagonal.mean(), "smooth_hinge")
    value = slow_objective(*parts, *rest)
    assert model.objective_ == pytest.approx(value, rel=1e-8)
    rng = np.random.default_rng(0)
    for _ in range(5):
        moved = [part + 1e-3 * rng.normal(size=part.shape) for part in parts]
        assert slow_objective(*moved, *rest) > value - 1e-6
    np.testing.assert_allclose(
        model.transform(X) @ model.label_factors_, model.decision_function(X), atol=1e-12
    )


def test_neighbours_are_drawn_together() -> None:
    """The stronger alpha is, the smaller are differences of neighbours among all differences."""
    graph = ssjdr.neighbour_graph(X, 4)
    shares = []
    for alpha in (0.0, 100.0):
        factors = SSJDR(3, alpha, n_neighbors=4, **SIGN).fit(X, Y).transform(X)
        centred = factors - factors.mean(axis=0)
        gram = ssjdr.neighbour_gram(centred, graph)
        shares.append(np.trace(gram) / np.sum(centred**2))
    assert shares[1] < 0.9 * shares[0]


def test_there_are_no_more_factors_than_labels_or_features() -> None:
    assert SSJDR(100, **SIGN).fit(X, Y[:, :2]).transform(X).shape == (40, 2)
    assert SSJDR(100, **SIGN).fit(X[:, :3], Y).transform(X[:, :3]).shape == (40, 3)
    assert SSJDR(2, **SIGN).fit(X, Y).get_feature_names_out().tolist() == ["ssjdr0", "ssjdr1"]


def test_features_that_are_always_zero_do_not_count(monkeypatch) -> None:
    monkeypatch.setattr(ssjdr, "MOST_FEATURES", 6)
    wide = np.hstack([X, np.zeros((len(X), 4))])
    model, plain = SSJDR(3, **SIGN).fit(wide, Y), SSJDR(3, **SIGN).fit(X, Y)
    assert not model.feature_map_[6:].any()
    assert model.objective_ == pytest.approx(plain.objective_, rel=1e-3)
    monkeypatch.setattr(ssjdr, "MOST_FEATURES", 5)
    with pytest.raises(ValueError, match="6 features are more than 5: choose some of them, or MLC"):
        SSJDR(3, **SIGN).fit(wide, Y)


@pytest.mark.parametrize("solver", ["cg", "gd"])
def test_other_solvers_and_losses(solver) -> None:
    model = SSJDR(3, solver=solver, loss="logistic", max_iter=20, **SIGN).fit(X, Y)
    assert np.isfinite(model.objective_)


def test_a_checkpoint_does_not_change_the_answer(tmp_path) -> None:
    folder = tmp_path / "fit"
    model = SSJDR(3, **SIGN).fit(X, Y, checkpoint=folder)
    assert not folder.exists()
    np.testing.assert_array_equal(
        model.decision_function(X), SSJDR(3, **SIGN).fit(X, Y).decision_function(X)
    )


@pytest.mark.parametrize(
    ("params", "said"),
    [
        ({"n_factors": 0}, "n_factors=0 must be a whole number >= 1"),
        ({"n_neighbors": 0}, "n_neighbors=0 must be a whole number >= 1"),
        ({"alpha": -1.0}, "alpha=-1.0 must be a number >= 0"),
        ({"reg": 0.0}, "reg=0.0 must be a number > 0"),
        ({"epsilon": 0.0}, "epsilon=0.0 must be a number > 0"),
        ({"loss": "absolute"}, "loss='absolute'|absolute"),
        ({"solver": "newton"}, "newton"),
        ({"random_state": "x"}, "random_state='x' cannot seed"),
    ],
)
def test_bad_parameters_are_refused(params, said) -> None:
    with pytest.raises(ValueError, match=said):
        SSJDR(**params).fit(X, Y)


def test_accuracy_is_near_that_of_the_thesis(data_root, monkeypatch) -> None:
    """Table of chapter 5: .512 on emotions (ten folds there, five here)."""
    monkeypatch.setenv("MARGINMF_DATA", str(data_root))
    data = load_labels("emotions")
    reached = []
    for train, test in KFold(5, shuffle=True, random_state=0).split(np.arange(data.X.shape[0])):
        model = Scaled(SSJDR(**SIGN)).fit(data.X[train], data.Y[train])
        reached.append(jaccard_accuracy(data.Y[test], model.predict(data.X[test])))
    assert abs(np.mean(reached) - 0.512) < 0.05
