"""Groups of labels: the heat kernel, what may cluster, and labels that are hard to tell apart."""

import time

import numpy as np
import pytest
from hypothesis import settings
from scipy.sparse import csr_array
from sklearn.cluster import DBSCAN, AgglomerativeClustering, KMeans, SpectralClustering

from marginmf.labels import grople
from marginmf.labels.algebra.matrices import LabelGram
from marginmf.labels.grople import (
    affinities,
    check_grouping,
    distinct_labels,
    given_groups,
    group_labels,
)
from marginmf.labels.order import canonical_order

patient = settings(deadline=None, max_examples=15)


def topics(seed: int, sizes=(6, 4, 3), n: int = 300) -> tuple[np.ndarray, np.ndarray]:
    """Return labels that occur with those of their own topic alone, and their topics."""
    generator = np.random.default_rng(seed)
    owners = np.repeat(np.arange(len(sizes)), sizes)
    rows = generator.integers(len(sizes), size=n)
    return ((owners == rows[:, None]) & (generator.random((n, len(owners))) < 0.7)), owners


def gram(Y: np.ndarray) -> LabelGram:
    return LabelGram.of(csr_array(Y.astype(np.float64)))


def same_partition(a: np.ndarray, b: np.ndarray) -> bool:
    return bool(((a[:, None] == a) == (b[:, None] == b)).all())


def test_kernel_is_the_self_tuning_heat_kernel() -> None:
    Y, _ = topics(0)
    columns = Y.astype(np.float64).T
    distances = np.linalg.norm(columns[:, None] - columns, axis=2)
    scales = np.sort(distances, axis=1)[:, 7]
    expected = np.exp(-(distances**2) / np.outer(scales, scales))
    np.testing.assert_allclose(affinities(gram(Y)), expected, atol=1e-12)


@pytest.mark.parametrize("n_equal", [2, 9, 13])
def test_kernel_of_equal_columns_is_finite(n_equal: int) -> None:
    Y, _ = topics(1)
    Y[:, :n_equal] = Y[:, :1]
    kernel = affinities(gram(Y))
    assert np.isfinite(kernel).all()
    assert (kernel[:n_equal, :n_equal] == 1).all()
    assert np.isfinite(affinities(gram(np.zeros((5, 4), bool)))).all()


def test_many_labels_are_connected_with_their_nearest(monkeypatch) -> None:
    Y, _ = topics(2, sizes=(30, 30, 30))
    whole = affinities(gram(Y))
    monkeypatch.setattr(grople, "MOST_CONNECTED", 10)
    kernel = affinities(gram(Y))
    assert kernel.indices.dtype == np.int32
    dense = kernel.toarray()
    np.testing.assert_array_equal(dense, dense.T)
    np.testing.assert_allclose(dense[dense > 0], whole[dense > 0])
    assert ((dense > 0).sum(axis=1) >= grople.N_NEIGHBOURS).all()


@pytest.mark.parametrize("most_connected", [5, 2000])
@pytest.mark.parametrize("seed", range(3))
def test_spectral_finds_the_topics(seed: int, most_connected: int, monkeypatch) -> None:
    monkeypatch.setattr(grople, "MOST_CONNECTED", most_connected)
    monkeypatch.setattr(grople, "N_NEIGHBOURS", 3)
    Y, owners = topics(seed)
    np.testing.assert_array_equal(group_labels(gram(Y), 3, "spectral", seed), owners)


@pytest.mark.parametrize(
    "clusterer",
    [
        KMeans(3, n_init=3, random_state=0),
        AgglomerativeClustering(3),
        AgglomerativeClustering(3, metric="precomputed", linkage="average"),
        SpectralClustering(3, affinity="precomputed", random_state=0),
    ],
    ids=["k-means", "agglomerative", "distances", "affinity"],
)
def test_any_clusterer_groups_and_is_not_changed(clusterer) -> None:
    Y, owners = topics(4, sizes=(6, 5, 4), n=900)
    before = clusterer.get_params()
    groups = group_labels(gram(Y), 99, clusterer, None)
    assert len(set(groups)) == 3
    if not isinstance(clusterer, KMeans | AgglomerativeClustering):
        assert same_partition(groups, owners)
    assert clusterer.get_params() == before
    assert not hasattr(clusterer, "labels_")


def test_a_clusterer_sees_rows_as_far_apart_as_the_labels() -> None:
    class Spy(KMeans):
        def fit_predict(self, X, y=None, sample_weight=None):
            seen.append(X)
            return super().fit_predict(X)

    seen: list[np.ndarray] = []
    Y, _ = topics(5)
    group_labels(gram(Y), 3, Spy(3, n_init=1, random_state=0), None)
    columns = Y.astype(np.float64).T
    np.testing.assert_allclose(
        np.linalg.norm(seen[0][:, None] - seen[0], axis=2),
        np.linalg.norm(columns[:, None] - columns, axis=2),
        atol=1e-6,
    )


def test_noise_of_a_clusterer_is_a_group_of_its_own() -> None:
    Y, _ = topics(6)
    groups = group_labels(gram(Y), 3, DBSCAN(eps=1e-6, min_samples=2), None)
    assert (groups == 0).all()


def test_a_clusterer_that_wants_more_groups_than_labels() -> None:
    Y, _ = topics(7, sizes=(2, 1))
    assert sorted(group_labels(gram(Y), 3, KMeans(8, n_init=1), None)) == [0, 1, 2]


@pytest.mark.parametrize("n_groups", [13, 14, 100])
def test_as_many_groups_as_labels_or_more(n_groups: int) -> None:
    Y, _ = topics(8)
    assert sorted(group_labels(gram(Y), n_groups, "spectral", 0)) == list(range(13))


def test_one_group_and_one_label() -> None:
    Y, _ = topics(9)
    assert (group_labels(gram(Y), 1, "spectral", 0) == 0).all()
    for grouping_ in ("spectral", KMeans(3), AgglomerativeClustering(2)):
        assert group_labels(gram(Y[:, :1]), 10, grouping_, 0).tolist() == [0]


def test_labels_that_no_row_tells_apart_are_together() -> None:
    Y, owners = topics(10)
    Y[:, 1] = Y[:, 8] = Y[:, 0]
    Y[:, [3, 11]] = False
    groups = group_labels(gram(Y), 6, "spectral", 0)
    assert groups[0] == groups[1] == groups[8]
    assert groups[3] == groups[11]
    firsts, place = distinct_labels(gram(Y))
    columns = np.unique(Y, axis=1)
    assert len(firsts) == columns.shape[1]
    np.testing.assert_array_equal(Y[:, firsts[place]], Y)
    assert len(owners) == len(groups)


@pytest.mark.parametrize("seed", range(4))
def test_the_order_of_rows_and_labels_does_not_matter(seed: int) -> None:
    generator = np.random.default_rng(seed)
    # Labels without any structure: a clustering of them depends on every draw.
    Y, X = generator.random((80, 25)) < 0.2, generator.normal(size=(80, 3))
    rows, labels = generator.permutation(80), generator.permutation(25)

    def groups(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
        order = canonical_order(X, csr_array(Y.astype(np.float64))).labels
        found = np.empty(25, np.int64)
        found[order] = group_labels(gram(Y[:, order]), 5, "spectral", 0)
        return found

    np.testing.assert_array_equal(groups(X[rows], Y[rows][:, labels]), groups(X, Y)[labels])


def test_groups_are_numbered_from_the_largest() -> None:
    Y, _ = topics(11, sizes=(3, 7, 5))
    assert np.bincount(group_labels(gram(Y), 3, "spectral", 0)).tolist() == [7, 5, 3]


def test_thousands_of_labels_are_grouped_in_little_time() -> None:
    Y, _ = topics(12, sizes=(300,) * 8, n=2000)
    start = time.perf_counter()
    groups = group_labels(gram(Y), 8, "spectral", 0)
    assert time.perf_counter() - start < 30
    assert len(set(groups)) == 8


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ("kmeans", "grouping='kmeans' is not known"),
        (KMeans, "neither 'spectral', nor a clusterer"),
        (None, "neither 'spectral', nor a clusterer"),
        ([0.5, 1.0], "neither 'spectral', nor a clusterer"),
        ([0, -1], "numbers >= 0: the group of each label"),
        ([[0, 1]], "neither 'spectral', nor a clusterer"),
    ],
)
def test_an_unknown_grouping_is_a_sentence(wrong, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        check_grouping(wrong)


def test_given_groups_are_one_for_each_label() -> None:
    _, owners = topics(13)
    np.testing.assert_array_equal(given_groups(owners + 4, 13), owners + 4)
    with pytest.raises(ValueError, match="the groups of 2 labels, but there are 13"):
        given_groups([0, 1], 13)
