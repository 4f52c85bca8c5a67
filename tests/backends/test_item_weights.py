"""The kernels behind item-item weights, beside slow NumPy oracles."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from marginmf.backends.cpu import neighbours


def random_pairs(n_users, n_items, share, seed):
    """Who has what as a dense matrix of zeros and ones."""
    rng = np.random.default_rng(seed)
    return (rng.random((n_users, n_items)) < share).astype(np.int64)


def by_user(has):
    matrix = csr_array(has)
    return matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32)


def by_item(has):
    return by_user(has.T)


def nearest(has, targets, scales, k):
    near = np.full((len(targets), k), -9, np.int32)
    shared = np.full((len(targets), k), -9, np.int32)
    arguments = (*by_user(has), *by_item(has), np.asarray(scales, float))
    table = np.zeros((0, 0), np.int32)
    neighbours.nearest(0, len(targets), np.asarray(targets), *arguments, near, shared, table)
    return near, shared


def nearest_oracle(has, targets, scales, k):
    gram = has.T @ has
    near = np.full((len(targets), k), -1)
    shared = np.zeros((len(targets), k), int)
    for row, target in enumerate(targets):
        others = [j for j in range(len(gram)) if j != target and gram[target, j] > 0]
        # Of equal ones the lower number is nearer: sorted is stable.
        best = sorted(others, key=lambda j: -gram[target, j] * scales[j])[:k]
        near[row, : len(best)] = sorted(best)
        shared[row, : len(best)] = gram[target, sorted(best)]
    return near, shared


def ridge(has, near, shared, strength, tabled):
    out = np.full(near.shape, np.nan)
    table = (has.T @ has if tabled else np.zeros((0, 0))).astype(np.int32)
    arguments = (near, shared, table, len(has), *by_item(has), strength)
    neighbours.ridge_weights(0, len(near), *arguments, out)
    return out


def compressed(dense):
    matrix = csr_array(dense.astype(np.float32))
    return matrix.indptr, matrix.indices, matrix.data


@settings(deadline=None)  # the first call compiles
@given(
    n_users=st.integers(1, 12),
    n_items=st.integers(2, 12),
    share=st.sampled_from([0.0, 0.2, 0.6, 1.0]),
    k=st.integers(1, 6),
    seed=st.integers(0, 999),
)
def test_nearest_are_those_of_the_oracle(n_users, n_items, share, k, seed):
    has = random_pairs(n_users, n_items, share, seed)
    # Few different scales, so that there are ties.
    scales = np.random.default_rng(seed).choice([0.25, 0.5, 1.0], n_items)
    targets = np.arange(n_items)[::-1].copy()
    found, expected = nearest(has, targets, scales, k), nearest_oracle(has, targets, scales, k)
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_array_equal(found[1], expected[1])


def test_of_equal_neighbours_the_lower_number_is_nearer():
    has = np.ones((3, 6), np.int64)
    near, shared = nearest(has, [3], np.ones(6), 2)
    np.testing.assert_array_equal(near, [[0, 1]])
    np.testing.assert_array_equal(shared, [[3, 3]])


def test_an_item_that_nobody_has_is_no_neighbour_and_has_none():
    has = np.array([[1, 0, 1], [1, 0, 1]])
    near, shared = nearest(has, [0, 1, 2], np.ones(3), 2)
    np.testing.assert_array_equal(near, [[2, -1], [-1, -1], [0, -1]])
    np.testing.assert_array_equal(shared, [[2, 0], [0, 0], [2, 0]])


def test_neighbours_do_not_depend_on_how_rows_are_shared():
    has = random_pairs(30, 20, 0.3, 1)
    targets, scales = np.arange(20), np.ones(20)
    whole, _ = nearest(has, targets, scales, 5)
    near, shared = np.empty((2, 20, 5), np.int32)
    table = np.zeros((20, 20), np.int32)
    arguments = (targets, *by_user(has), *by_item(has), scales, near, shared, table)
    for start, stop in ((7, 20), (0, 3), (3, 7)):
        neighbours.nearest(start, stop, *arguments)
    np.testing.assert_array_equal(near, whole)
    np.testing.assert_array_equal(table, has.T @ has)


@settings(deadline=None)  # the first call compiles
@given(
    n_users=st.integers(1, 12),
    n_items=st.integers(2, 10),
    share=st.sampled_from([0.0, 0.2, 0.6, 1.0]),
    k=st.integers(1, 9),
    seed=st.integers(0, 999),
    tabled=st.booleans(),
)
def test_ridge_weights_solve_the_normal_equations(n_users, n_items, share, k, seed, tabled):
    has = random_pairs(n_users, n_items, share, seed)
    near, shared = nearest(has, np.arange(n_items), np.ones(n_items), k)
    for strength in (0.5, 30.0):
        found = ridge(has, near, shared, strength, tabled)
        for target in range(n_items):
            own = near[target][near[target] >= 0]
            X = has[:, own].astype(float)
            solution = np.linalg.solve(X.T @ X + strength * np.eye(len(own)), X.T @ has[:, target])
            np.testing.assert_allclose(found[target, : len(own)], solution, atol=1e-10)
            assert (found[target, len(own) :] == 0).all()


@pytest.mark.parametrize("columns", [(0, 9), (0, 4), (4, 9), (8, 9), (3, 3)])
@pytest.mark.parametrize("dense", [True, False])
def test_added_weights_are_those_of_the_columns_asked_for(columns, dense):
    rng = np.random.default_rng(0)
    has = random_pairs(6, 9, 0.4, 2)
    weights = np.where(rng.random((9, 9)) < 0.5, rng.normal(size=(9, 9)), 0).astype(np.float32)
    users, (first, stop) = np.array([5, -1, 0, 0]), columns
    out = np.zeros((4, stop - first), np.float32)
    rows = (0, 4, users, *by_user(has))
    if dense:
        neighbours.add_dense_weights(*rows, weights, first, out)
    else:
        neighbours.add_weights(*rows, *compressed(weights), first, out)
    expected = (has @ weights)[users, first:stop]
    expected[1] = 0  # user -1 has nothing
    np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dense", [True, False])
def test_pair_scores_are_sums_over_what_the_user_has(dense):
    rng = np.random.default_rng(1)
    has = random_pairs(6, 9, 0.4, 3)
    # Weights of some targets only, as for the candidates of a list: fewer rows than columns.
    weights = np.where(rng.random((4, 9)) < 0.5, rng.normal(size=(4, 9)), 0).astype(np.float32)
    users, items = np.array([2, 2, -1, 5, 0, 2]), np.array([0, 3, 1, 2, 2, 1])
    out = np.empty(len(users))
    if dense:
        neighbours.dense_pair_scores(users, items, *by_user(has), weights, out)
    else:
        neighbours.pair_scores(users, items, *by_user(has), 9, *compressed(weights), out)
    expected = (has @ weights.T.astype(float))[users, items]
    expected[2] = 0
    np.testing.assert_allclose(out, expected, atol=1e-12)
