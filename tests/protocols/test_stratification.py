"""Iterative stratification: folds in which every label is equally frequent."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from scipy import sparse
from sklearn.linear_model import RidgeClassifier
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score

from marginmf.metrics import label_scorer
from marginmf.protocols import IterativeStratifiedKFold


def imbalanced(n=600, n_labels=25, seed=0):
    """Label sets from half of the samples down to one in a hundred; some rows have none."""
    rng = np.random.default_rng(seed)
    frequency = np.geomspace(0.5, 0.01, n_labels)
    tendency = rng.gamma(2.0, 0.5, size=(n, 1))
    return (rng.random((n, n_labels)) < frequency * tendency).astype(int)


def held_out(splitter, Y):
    return [test for _, test in splitter.split(np.empty(Y.shape[0]), Y)]


def label_distribution(Y, tests):
    """The measure LD of Sechidis et al.: how far the odds of labels in folds are from those in all.

    Averaged over labels and folds.
    """
    Y = np.asarray(Y, float)
    Y = Y[:, (Y.sum(axis=0) > 0) & (Y.sum(axis=0) < len(Y))]
    odds = np.array([Y[test].sum(axis=0) / (1 - Y[test]).sum(axis=0) for test in tests])
    return np.abs(odds - Y.sum(axis=0) / (1 - Y).sum(axis=0)).mean()


def literally(Y, n_folds, rng):
    """The algorithm of the paper, sample by sample, with the folds kept to their sizes."""
    n = len(Y)
    room = [n // n_folds + (fold < n % n_folds) for fold in range(n_folds)]
    wanted = np.tile(Y.sum(axis=0) / n_folds, (n_folds, 1))
    left, folds = set(range(n)), np.full(n, -1)

    def put(row, wishes):
        open_folds = [fold for fold in range(n_folds) if room[fold] > 0]
        fold = max(open_folds, key=lambda f: (wishes[f], room[f], rng.random()))
        folds[row] = fold
        left.remove(row)
        room[fold] -= 1
        wanted[fold] -= Y[row]

    while any(Y[row].any() for row in left):
        sizes = Y[sorted(left)].sum(axis=0)
        label = min(np.flatnonzero(sizes), key=lambda k: (sizes[k], rng.random()))
        for row in [row for row in sorted(left) if Y[row, label]]:
            put(row, wanted[:, label])
    for row in sorted(left):
        put(row, np.zeros(n_folds))
    return [np.flatnonzero(folds == fold) for fold in range(n_folds)]


SMALL = array_shapes(min_dims=2, max_dims=2, min_side=1, max_side=24).flatmap(
    lambda shape: arrays(np.int8, shape, elements=st.integers(0, 1))
)


@given(SMALL, st.integers(2, 6), st.integers(0, 3))
def test_every_sample_is_tested_once_and_folds_have_one_size(Y, n_splits, seed):
    if len(Y) < n_splits:
        return
    splits = list(IterativeStratifiedKFold(n_splits, seed).split(Y, Y))
    assert len(splits) == n_splits
    for train, test in splits:
        np.testing.assert_array_equal(np.sort(np.r_[train, test]), np.arange(len(Y)))
        assert len(test) in (len(Y) // n_splits, -(-len(Y) // n_splits))
    tested = np.concatenate([test for _, test in splits])
    np.testing.assert_array_equal(np.sort(tested), np.arange(len(Y)))


@given(SMALL, st.randoms(use_true_random=False))
def test_the_order_of_labels_does_not_matter(Y, random):
    if len(Y) < 3:
        return
    columns = random.sample(range(Y.shape[1]), Y.shape[1])
    splitter = IterativeStratifiedKFold(3)
    for one, other in zip(held_out(splitter, Y), held_out(splitter, Y[:, columns]), strict=True):
        np.testing.assert_array_equal(one, other)


def test_folds_are_as_good_as_those_of_the_literal_algorithm_and_better_than_random_ones():
    n_splits = 10
    ours, literal, random = [], [], []
    for seed in range(30):  # the measure has heavy tails
        Y = imbalanced(n=400, seed=seed)
        ours.append(label_distribution(Y, held_out(IterativeStratifiedKFold(n_splits, seed), Y)))
        literal.append(label_distribution(Y, literally(Y, n_splits, np.random.default_rng(seed))))
        plain = KFold(n_splits, shuffle=True, random_state=seed)
        random.append(label_distribution(Y, held_out(plain, Y)))
    assert np.mean(ours) < 1.25 * np.mean(literal)
    assert np.mean(ours) < 0.4 * np.mean(random)
    assert max(ours) < min(random)


def test_the_only_label_is_dealt_out_evenly():
    Y = np.r_[np.ones((23, 1)), np.zeros((30, 1))]
    counts = [Y[test].sum() for test in held_out(IterativeStratifiedKFold(5), Y)]
    assert sorted(counts) == [4, 4, 5, 5, 5]


def test_rare_labels_and_rows_without_labels_are_spread():
    Y = np.zeros((100, 3), int)
    Y[:2, 0] = Y[10:15, 1] = Y[20:70, 2] = 1  # twice, five times, fifty times; 43 rows have none
    for test in held_out(IterativeStratifiedKFold(5), Y):
        assert Y[test, 0].sum() <= 1
        assert Y[test, 1].sum() == 1
        assert Y[test, 2].sum() == 10
        assert (~Y[test].any(axis=1)).sum() in (8, 9)


@pytest.mark.parametrize("seed", range(10))
def test_of_folds_that_want_a_label_equally_the_one_with_more_room_gets_it(seed):
    Y = np.array([[1, 0], [0, 1], [0, 0], [0, 0]])
    assert all(Y[test].sum() == 1 for test in held_out(IterativeStratifiedKFold(2, seed), Y))


@pytest.mark.parametrize("n", [100, 101, 104])
def test_folds_keep_their_sizes_though_labels_would_have_it_otherwise(n):
    Y = imbalanced(n, n_labels=30)
    sizes = [len(test) for test in held_out(IterativeStratifiedKFold(5), Y)]
    assert max(sizes) - min(sizes) == (n % 5 > 0)


def test_real_label_sets_are_spread_better_than_by_chance(data_root):
    with np.load(data_root / "labels" / "medical.npz") as file:
        parts = file["Y_data"], file["Y_indices"], file["Y_indptr"]
        Y = sparse.csr_array(parts, shape=tuple(file["Y_shape"]))
    dense = Y.toarray()
    for n_splits in (5, 10):
        ours = held_out(IterativeStratifiedKFold(n_splits), Y)
        random = held_out(KFold(n_splits, shuffle=True, random_state=0), Y)
        assert label_distribution(dense, ours) < 0.5 * label_distribution(dense, random)
        assert max(map(len, ours)) - min(map(len, ours)) <= 1
        # A label with as many positives as there are folds is in each of them.
        often = dense.sum(axis=0) >= n_splits
        assert all(dense[test][:, often].any(axis=0).all() for test in ours)
        assert not all(dense[test][:, often].any(axis=0).all() for test in random)


def test_same_seed_same_folds_and_other_seeds_others():
    Y, splitter = imbalanced(), IterativeStratifiedKFold(4, random_state=7)
    first, again = held_out(splitter, Y), held_out(splitter, Y)
    assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
    other = held_out(replace(splitter, random_state=8), Y)
    assert not any(np.array_equal(a, b) for a, b in zip(first, other, strict=True))


@pytest.mark.parametrize(
    "form", [pd.DataFrame, sparse.csr_array, sparse.csc_matrix, np.ndarray.tolist, np.float32]
)
def test_every_form_of_label_sets_gives_the_same_folds(form):
    Y, splitter = imbalanced(n=60), IterativeStratifiedKFold(3)
    given = form(Y)
    for (_, one), expected in zip(splitter.split(Y, given), held_out(splitter, Y), strict=True):
        np.testing.assert_array_equal(one, expected)


def test_it_is_a_scikit_learn_splitter():
    rng = np.random.default_rng(0)
    Y = imbalanced(120, 4)
    X = Y @ rng.normal(size=(4, 6)) + rng.normal(size=(120, 6))
    model, splitter = RidgeClassifier(), IterativeStratifiedKFold(3)
    scoring = label_scorer("accuracy")
    scores = cross_val_score(model, X, Y, cv=splitter, scoring=scoring)
    search = GridSearchCV(model, {"alpha": [1.0]}, cv=splitter, scoring=scoring).fit(X, Y)
    assert splitter.get_n_splits(X, Y) == search.n_splits_ == 3
    assert search.best_score_ == pytest.approx(scores.mean())


@pytest.mark.parametrize(
    ("n_splits", "Y", "sentence"),
    [
        (2, [0, 1, 1], "y has 1 dimension, .*for one class a sample .* StratifiedKFold"),
        (2, None, "y has 0 dimensions"),
        (2, [[0], [1], [2]], "y has the value 2 in row 2, column 0"),
        (4, np.eye(3), "n_splits=4 folds need as many samples, but there are 3"),
        (1, np.eye(3), "n_splits=1 must be a whole number >= 2"),
        (2.0, np.eye(3), "n_splits=2.0 must be a whole number >= 2"),
        (True, np.eye(3), "n_splits=True must be a whole number"),
        (2, np.eye(4), "X has 3 rows but y has 4"),
    ],
)
def test_what_cannot_be_stratified_gets_a_sentence(n_splits, Y, sentence):
    with pytest.raises(ValueError, match=sentence):
        next(IterativeStratifiedKFold(n_splits).split([[0.0]] * 3, Y))
