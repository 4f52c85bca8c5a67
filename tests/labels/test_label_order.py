"""The order of rows and labels by what they hold."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.sparse import csr_array

from marginmf._utils.saved import Optional, Stored, floats, indices
from marginmf.labels.order import (
    Seen,
    Varying,
    canonical_order,
    inner_folds,
    row_keys,
)

MATRICES = arrays(np.float64, (6, 4), elements=st.sampled_from([0.0, -0.0, 1.0, -1.0, 0.5, 3e9]))


@given(MATRICES, st.permutations(range(6)))
def test_keys_follow_rows_wherever_they_stand(X, order) -> None:
    assert (row_keys(X)[order] == row_keys(X[order])).all()


@given(MATRICES)
def test_sparse_dense_and_single_precision_give_the_same_keys(X) -> None:
    stored_zeros = csr_array((X.ravel(), np.tile(range(4), 6), range(0, 25, 4)), X.shape)
    for same in (csr_array(X), stored_zeros, X.astype(np.float32), np.asfortranarray(X)):
        assert (row_keys(X) == row_keys(same)).all()


def test_rows_that_differ_in_a_place_or_a_bit_have_different_keys() -> None:
    X = np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 0], [np.nextafter(1, 2), 0, 0]])
    assert len(set(row_keys(X).tolist())) == 5


def test_blocks_of_rows_do_not_matter(monkeypatch) -> None:
    X = np.random.default_rng(0).normal(size=(50, 3))
    whole = row_keys(X)
    monkeypatch.setattr("marginmf.labels.order.BLOCK", 7)
    assert (row_keys(X) == whole).all()


def test_labels_come_in_the_order_of_what_they_hold() -> None:
    rng = np.random.default_rng(0)
    X, Y = rng.normal(size=(30, 3)), rng.random((30, 8)) < 0.4
    rows, labels = rng.permutation(30), rng.permutation(8)
    first = canonical_order(X, csr_array(Y.astype(float))).labels
    second = canonical_order(X[rows], csr_array(Y[np.ix_(rows, labels)].astype(float))).labels
    assert (labels[second] == first).all()


@given(st.integers(0, 9), st.integers(2, 5))
def test_every_row_is_held_out_once(n, n_folds) -> None:
    X = np.random.default_rng(n).normal(size=(n, 2))
    folds = inner_folds(X, csr_array((n, 1)), n_folds)
    assert len(folds) == min(n, n_folds)
    assert sorted(np.concatenate([f.test for f in folds]).tolist() if n else []) == list(range(n))
    for fold in folds:
        assert not set(fold.train.tolist()) & set(fold.test.tolist())
        assert len(fold.train) + len(fold.test) == n


def test_folds_do_not_depend_on_the_order_of_the_rows() -> None:
    rng = np.random.default_rng(3)
    X, shuffled = rng.normal(size=(20, 2)), rng.permutation(20)
    Y = csr_array((20, 1))
    for fold, other in zip(inner_folds(X, Y, 3), inner_folds(X[shuffled], Y, 3), strict=True):
        assert fold.test.tolist() == shuffled[other.test].tolist()


def test_rows_that_are_alike_come_in_the_order_of_their_labels() -> None:
    rng = np.random.default_rng(0)
    X, Y = np.repeat(rng.normal(size=(6, 3)), 5, axis=0), rng.random((30, 8)) < 0.4
    rows, labels = rng.permutation(30), rng.permutation(8)
    first, moved = csr_array(Y.astype(float)), csr_array(Y[np.ix_(rows, labels)].astype(float))
    order = canonical_order(X, first).rows
    other = rows[canonical_order(X[rows], moved).rows]
    assert (X[order] == X[other]).all()
    assert (Y[order] == Y[other]).all()
    for fold, same in zip(inner_folds(X, first, 3), inner_folds(X[rows], moved, 3), strict=True):
        assert (Y[fold.test] == Y[rows[same.test]]).all()


def test_what_was_learned_goes_back_to_the_labels_that_were_seen() -> None:
    X, Y = np.array([[3.0], [1.0], [2.0]]), csr_array([[0.0, 1, 1], [1, 1, 0], [0, 1, 0]])
    seen = Seen.of(canonical_order(X, Y), Varying.of(Y))
    features, labels = seen.take(X, Y)
    assert labels.shape == (3, 2)  # the second label, which all rows have, is left out
    back = np.argsort(seen.order.rows)
    without = Y.toarray() * [1, 0, 1]
    found = seen.restore(labels, Stored(("rows", "labels")))
    np.testing.assert_array_equal(found.toarray()[back], without)
    np.testing.assert_array_equal(features[back], X)
    table = seen.restore(labels.toarray(), floats("rows", "labels"))
    np.testing.assert_array_equal(table[back], without)
    assert seen.restore(np.arange(2), indices("links", along="labels")).tolist() == [*seen.labels]
    assert seen.restore(None, Optional(floats("labels"))) is None
