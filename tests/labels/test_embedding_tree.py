"""The tree of embeddings: what is kept where, and that nothing but the content decides."""

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import BaseEstimator
from sklearn.cluster import DBSCAN, AgglomerativeClustering, KMeans
from sklearn.datasets import make_multilabel_classification
from sklearn.mixture import GaussianMixture

from marginmf.backends.threads import one_blas_thread
from marginmf.labels import tree as module
from marginmf.labels.order import Seen, content_order
from marginmf.labels.tree import N_STARTS, Growth, check_splitter, divide
from marginmf.losses import smooth_hinge
from marginmf.solvers import LBFGS, Stopping

RAW, LABELS = make_multilabel_classification(120, 12, n_classes=7, n_labels=3, random_state=3)
X = RAW / RAW.max(axis=0)
Y = csr_array(LABELS.astype(float))


def growth(**changes):
    settings = {
        "n_factors": 4,
        "reg": 1.0,
        "tolerance": 0.0,
        "max_depth": 4,
        "min_samples": 5,
        "splitter": None,
        "loss": smooth_hinge,
        "solver": LBFGS(),
        "stopping": Stopping(max_iter=25),
    }
    return Growth(**(settings | changes))


def grow(X, Y, growth, seed, n_threads=1):
    """Grow a tree of instances and labels in any order."""
    seen = Seen.of(content_order(X, Y), None)
    with one_blas_thread():
        tree = module.grow(*seen.take(X, Y), seen.order.kinds, growth, seed, n_threads)
    return tree.restore(seen)


TREE = grow(X, Y, growth(), seed=0)


def same(one, other) -> None:
    """Check that two trees are the same, bit by bit."""
    assert str(one) == str(other)
    for a, b in zip(one, other, strict=True):
        assert (a.kept == b.kept).all()
        assert (a.U == b.U).all()
        assert (a.V == b.V).all()


def test_every_instance_is_kept_once_or_residue() -> None:
    assert len(TREE) > 10
    everything = np.concatenate([TREE.kept, TREE.residue])
    assert (np.sort(everything) == np.arange(120)).all()
    assert all(len(node.kept) + node.residue == node.size for node in TREE)


def test_children_divide_the_residue_of_their_parent() -> None:
    for parent, available in [(-1, 120), *((node.index, node.residue) for node in TREE)]:
        children = TREE.children(parent)
        assert len(children) <= 2
        missing = available - sum(child.size for child in children)
        assert missing >= 0
        # What has no node of its own is too small, or too deep.
        if parent >= 0 and TREE[parent].depth == 4:
            assert not children
        else:
            assert missing < 2 * 5 or not children


def test_depths_and_indices_count_from_the_top() -> None:
    assert [node.index for node in TREE] == list(range(len(TREE)))
    for node in TREE:
        assert node.depth == (TREE[node.parent].depth + 1 if node.parent >= 0 else 1)
        assert node.parent < node.index
    assert TREE.depth <= 4
    assert min(node.size for node in TREE) >= 5


@pytest.mark.parametrize("tolerance", [0.0, 1 / 7, 0.3])
def test_kept_instances_are_right_up_to_the_tolerance_at_their_node(tolerance) -> None:
    tree = grow(X, Y, growth(tolerance=tolerance, reg=3.0), seed=0)
    for node in tree:
        wrong = (node.scores(X[node.kept]) > 0) != LABELS[node.kept]
        assert (wrong.mean(axis=1) <= tolerance + 1e-12).all()
    # And those at the last depth that are not kept are wrong there.
    assert len(tree.residue)


def test_a_larger_tolerance_keeps_more_at_the_top() -> None:
    kept = [
        sum(len(node.kept) for node in grow(X, Y, growth(tolerance=t, max_depth=1), 0))
        for t in (0.0, 1 / 7, 2 / 7, 1.0)
    ]
    assert kept == sorted(kept)
    assert kept[0] < kept[-1] == 120


def test_objectives_are_those_of_the_embeddings() -> None:
    for node in TREE:
        assert node.U.shape == (len(node.features) + 1, 4)
        assert node.V.shape == (4, 7)
        assert node.n_iter <= 25
    (root,) = grow(X, Y, growth(max_depth=0), seed=0)
    margins = (2 * LABELS - 1) * root.scores(X)
    penalty = 0.5 * ((root.U**2).sum() + (root.V**2).sum())
    assert root.objective == pytest.approx(smooth_hinge.value(margins).sum() + penalty)


def test_depth_zero_is_one_embedding_of_all() -> None:
    (root,) = tree = grow(X, Y, growth(max_depth=0), seed=0)
    assert (root.depth, root.parent, root.size, root.residue) == (0, -1, 120, 0)
    assert len(tree.residue) == 0


def test_if_nothing_is_kept_there_is_one_embedding_of_all() -> None:
    # Two places, and at each of them label sets whose majority, all three labels, nobody has.
    features = np.repeat([[0.0, 1.0], [5.0, 0.0]], 9, axis=0)
    labels = np.tile([[1.0, 1, 0], [1, 0, 1], [0, 1, 1]], (6, 1))
    (root,) = grow(features, csr_array(labels), growth(), seed=0)
    assert (root.depth, root.size, root.residue) == (0, 18, 0)
    assert (root.scores(features) > 0).all()
    # With a larger tolerance the same instances are kept below.
    assert len(grow(features, csr_array(labels), growth(tolerance=0.4), seed=0)) == 2


def test_too_few_instances_for_any_node_give_one_embedding_of_all() -> None:
    (root,) = grow(X[:4], Y[:4], growth(), seed=0)
    assert (root.depth, root.size) == (0, 4)


@pytest.mark.parametrize("form", [np.asarray, csr_array], ids=["dense", "sparse"])
def test_the_order_of_instances_and_labels_does_not_matter(form) -> None:
    # Equal instances with other labels, equal labels, and labels of nobody.
    features = np.vstack([X, X[:30]])
    labels = np.vstack([LABELS, LABELS[30:60]])
    labels = np.column_stack([labels, labels[:, :2], np.zeros((150, 2))])
    rng = np.random.default_rng(0)
    rows, columns = rng.permutation(150), rng.permutation(11)
    ours = grow(form(features), csr_array(labels), growth(), seed=0)
    other = grow(form(features[rows]), csr_array(labels[rows][:, columns]), growth(), seed=0)
    assert str(ours) == str(other)
    for a, b in zip(ours, other, strict=True):
        # Of equal instances either may come first.
        assert (features[a.kept] == features[rows[b.kept]]).all()
        assert (labels[a.kept] == labels[rows[b.kept]]).all()
        assert (a.U == b.U).all()
        np.testing.assert_allclose(a.V[:, columns], b.V, rtol=1e-9, atol=1e-12)


def test_labels_of_the_same_instances_get_the_same_scores() -> None:
    twice = csr_array(np.column_stack([LABELS, LABELS]).astype(float))
    for node in grow(X, twice, growth(max_depth=2), seed=0):
        np.testing.assert_allclose(node.V[:, :7], node.V[:, 7:], rtol=1e-9, atol=1e-12)


def test_the_number_of_threads_does_not_matter() -> None:
    for n_threads in (2, 5):
        same(TREE, grow(X, Y, growth(), 0, n_threads))


def test_the_same_seed_gives_the_same_tree_and_another_another() -> None:
    same(TREE, grow(X, Y, growth(), seed=0))
    other = grow(X, Y, growth(), seed=1)
    assert TREE[0].U.shape != other[0].U.shape or (TREE[0].U != other[0].U).any()


def test_what_is_random_depends_on_the_place_in_the_tree_alone() -> None:
    shallow = grow(X, Y, growth(max_depth=2), seed=0)
    for a, b in zip(shallow, TREE, strict=False):
        assert (a.U == b.U).all()


def test_sparse_and_dense_features_grow_the_same_tree() -> None:
    sparse = grow(csr_array(X), Y, growth(), seed=0)
    for a, b in zip(TREE, sparse, strict=True):
        assert (a.kept == b.kept).all()
        assert a.objective == pytest.approx(b.objective, rel=1e-6)


def test_features_that_no_instance_of_a_node_has_are_left_out() -> None:
    wide = np.zeros((120, 30))
    wide[:, 5:17] = X
    for form in (np.asarray, csr_array):
        tree = grow(form(wide), Y, growth(max_depth=1), seed=0)
        narrow = grow(form(X), Y, growth(max_depth=1), seed=0)
        for a, b in zip(tree, narrow, strict=True):
            assert (a.features == b.features + 5).all()
        scores = tree[0].scores(form(wide))
        full = np.zeros((31, 4))
        full[[*tree[0].features, 30]] = tree[0].U
        expected = np.column_stack([wide, np.ones(120)]) @ full @ tree[0].V
        np.testing.assert_allclose(scores, expected, rtol=1e-9, atol=1e-12)


def test_stored_zeros_are_not_there() -> None:
    stored = csr_array(X)
    with_zeros = stored.copy()
    with_zeros.data[::3] = 0
    without = with_zeros.copy()
    without.eliminate_zeros()
    same(grow(with_zeros, Y, growth(), 0), grow(without, Y, growth(), 0))


def test_instances_that_are_all_alike_are_not_divided_for_ever() -> None:
    alike = np.ones((40, 3))
    tree = grow(alike, Y[:40], growth(max_depth=50), seed=0)
    # One embedding of the whole says the same of all; once it keeps nothing more, there is no
    # sense in another of the same.
    assert len(tree) <= 3
    assert all(len(tree.children(node.index)) <= 1 for node in tree)


def test_it_prints_as_an_indented_tree() -> None:
    lines = str(TREE).split("\n")
    assert lines[0] == (
        f"120 instances: {len(TREE.kept)} kept by {len(TREE)} nodes, {len(TREE.residue)} residue"
    )
    assert len(lines) == 1 + len(TREE)
    top = TREE.children()
    assert lines[1].startswith(f"├─ node 0: {top[0].size} instances, {len(top[0].kept)} kept, ")
    assert any(line.startswith("│  ") for line in lines)
    assert f"objective {top[1].objective:.1f}" in str(TREE)
    assert repr(TREE) == f"EmbeddingTree({lines[0]})"
    assert repr(TREE[0]).startswith("Node(node 0: ")


class Thirds(BaseEstimator):
    def fit_predict(self, X, y=None):
        return np.arange(X.shape[0]) % 3


@pytest.mark.parametrize(
    "splitter",
    [KMeans(), KMeans(2), AgglomerativeClustering(), GaussianMixture(), DBSCAN(eps=0.3)],
    ids=lambda splitter: type(splitter).__name__,
)
def test_other_clusterers_can_divide(splitter) -> None:
    before = repr(splitter)
    check_splitter(splitter)
    parts = divide(X, splitter, 0)
    assert (np.sort(np.concatenate(parts)) == np.arange(120)).all()
    assert len(parts) == (1 if isinstance(splitter, DBSCAN) else 2)
    assert repr(splitter) == before
    tree = grow(X, Y, growth(splitter=splitter, max_depth=2), seed=0)
    same(tree, grow(X, Y, growth(splitter=splitter, max_depth=2), seed=0))


@pytest.mark.parametrize(
    ("splitter", "said"),
    [
        ("kmeans", "splitter='kmeans' cannot divide instances: give a clusterer"),
        (KMeans, "cannot divide instances"),
        (KMeans(3), "has n_clusters=3, but instances are divided in two"),
        (GaussianMixture(4), "has n_components=4"),
    ],
)
def test_what_cannot_divide_in_two_is_refused(splitter, said) -> None:
    with pytest.raises(ValueError, match=said):
        check_splitter(splitter)


def test_a_clusterer_that_cannot_be_copied_is_refused() -> None:
    class Bare:
        def fit_predict(self, X):
            return np.zeros(len(X))

    with pytest.raises(ValueError, match="cannot be copied for every node"):
        check_splitter(Bare())


def test_more_clusters_than_two_are_an_error() -> None:
    check_splitter(Thirds())
    with pytest.raises(ValueError, match="has divided 120 instances into 3 clusters"):
        divide(X, Thirds(), 0)


def instances(n: int = 60) -> np.ndarray:
    rng = np.random.default_rng(0)
    X = rng.random((n, 12)) * (rng.random((n, 12)) < 0.4)
    X[::3] += 0.5 * (rng.random(12) < 0.5)
    return X.astype(np.float32)


@pytest.mark.parametrize("few", [0, 2**16])
@pytest.mark.parametrize("kind", [csr_array, np.asarray])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_default_is_k_means_whatever_the_form_of_the_instances(
    few, kind, dtype, monkeypatch
) -> None:
    monkeypatch.setattr(module, "FEW", few)
    X = instances().astype(dtype)
    given = kind(X)
    found = divide(given, None, 3)
    labels = KMeans(2, n_init=N_STARTS, random_state=3).fit_predict(X.astype(np.float64))
    assert found[0].tolist() == np.flatnonzero(labels == labels[0]).tolist()
    assert found[1].tolist() == np.flatnonzero(labels != labels[0]).tolist()
    assert given.dtype == dtype
    np.testing.assert_array_equal(given.toarray() if kind is csr_array else given, X)


def test_a_splitter_of_somebodys_own_sees_the_instances_as_they_are() -> None:
    class Checking(KMeans):
        def fit_predict(self, X, y=None):
            assert isinstance(X, csr_array)
            assert X.dtype == np.float32
            return super().fit_predict(X)

    parts = divide(csr_array(instances()), Checking(2, n_init=1), 0)
    assert sorted(np.concatenate(parts)) == list(range(60))
