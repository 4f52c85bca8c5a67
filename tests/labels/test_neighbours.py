"""Neighbours: the right ones, whatever the form, the batch and the ties."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from marginmf.labels import neighbours as module
from marginmf.labels.neighbours import Neighbours


def oracle(stored, queries, n):
    """Sort by distance and then by place, in exact arithmetic for whole numbers."""
    squared = ((queries[:, None, :] - stored[None, :, :]) ** 2).sum(axis=2)
    return np.argsort(squared, axis=1, kind="stable")[:, :n]


@given(
    seed=st.integers(0, 10_000),
    n_stored=st.integers(1, 40),
    n_neighbors=st.integers(1, 8),
    levels=st.integers(2, 5),
)
@settings(max_examples=60, deadline=None)
def test_of_equal_distances_the_first_stored_are_taken(seed, n_stored, n_neighbors, levels) -> None:
    rng = np.random.default_rng(seed)
    stored = rng.integers(levels, size=(n_stored, 3)).astype(float)
    queries = rng.integers(levels, size=(7, 3)).astype(float)
    expected = oracle(stored, queries, n_neighbors)
    for kind in (np.asarray, csr_array):
        found = Neighbours(n_neighbors).fit(kind(stored)).kneighbors(kind(queries))
        assert (found == expected).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_ties_are_the_same_in_every_batch_and_form(monkeypatch, dtype) -> None:
    rng = np.random.default_rng(0)
    # Every instance is stored eight times, in numbers that sums of squares round.
    stored = np.tile(rng.normal(size=(30, 5)), (8, 1)).astype(dtype)
    queries = np.vstack([stored[:20], rng.normal(size=(20, 5))]).astype(dtype)
    found = Neighbours(5).fit(stored).kneighbors(queries)
    assert (np.sort(found % 30) == (found % 30)[:, :1]).all()
    assert (np.sort(found) == (found % 30)[:, :1] + 30 * np.arange(5)).all()
    sparse = Neighbours(5).fit(csr_array(stored))
    assert (np.sort(sparse.kneighbors(csr_array(queries))) == np.sort(found)).all()
    monkeypatch.setattr(module, "MEMORY", 0.005)
    assert (np.sort(Neighbours(5).fit(stored).kneighbors(queries)) == np.sort(found)).all()
    single = [sparse.kneighbors(csr_array(queries[k : k + 1]))[0] for k in range(len(queries))]
    assert (np.sort(single) == np.sort(found)).all()


def test_fewer_stored_than_wanted_gives_all_of_them() -> None:
    search = Neighbours(5).fit(np.array([[0.0], [2.0]]))
    assert search.kneighbors(np.array([[1.5]])).tolist() == [[1, 0]]
    assert search.kneighbors().tolist() == [[1], [0]]
    assert Neighbours(5).fit(np.array([[0.0]])).kneighbors().shape == (1, 0)


def test_stored_instances_are_not_their_own_neighbours_but_copies_are() -> None:
    stored = np.array([[0.0], [0.0], [5.0], [6.0]])
    assert Neighbours(1).fit(stored).kneighbors()[:, 0].tolist() == [1, 0, 3, 2]
    assert Neighbours(1).fit(stored).kneighbors(stored)[:, 0].tolist() == [0, 0, 2, 3]


def test_no_instances_have_no_neighbours() -> None:
    assert Neighbours(2).fit(np.eye(3)).kneighbors(np.empty((0, 3))).shape == (0, 2)


def test_memory_is_bounded_and_sparse_instances_stay_sparse() -> None:
    # By hand: SciPy would draw from all 600 million cells, in a minute and 5 GB.
    rng, n_each = np.random.default_rng(0), 20
    parts = rng.random(3000 * n_each), rng.integers(200_000, size=3000 * n_each)
    X = csr_array((*parts, n_each * np.arange(3001)), shape=(3000, 200_000))
    X.sum_duplicates()
    search = Neighbours(3).fit(X)
    tracemalloc.start()
    found = search.kneighbors(X[:1500])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (found[:, 0] == np.arange(1500)).all()
    assert peak < 300e6  # dense, the instances alone would take 2.4 GB


def test_its_state_is_the_stored_matrix() -> None:
    X = np.eye(3)
    search = Neighbours(2).fit(X)
    assert vars(search) == {"n_neighbors": 2, "stored_": X}


@pytest.mark.parametrize("spoil", ["a row", "a column", "all"])
def test_large_numbers_elsewhere_do_not_blur_distances(spoil) -> None:
    X = np.random.default_rng(0).random((300, 5))
    nearest = Neighbours(3).fit(X).kneighbors()
    if spoil == "a row":
        X = np.vstack([X, np.full(5, 1e7)])
    elif spoil == "a column":
        X = np.column_stack([X, np.full(300, 1e7)])
    else:
        X = X + 1e6
    found = Neighbours(3).fit(X).kneighbors()[:300]
    assert (found == nearest).mean() > 0.999
