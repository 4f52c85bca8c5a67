import numpy as np
import pandas as pd
import pytest
from sklearn.model_selection import cross_val_score

from contracts import synthetic
from marginmf.protocols import HoldOut, KFold, StrongGeneralisation, WeakGeneralisation, evaluate
from marginmf.ratings import HMF, BiasOnly

PAIRS, RATINGS = synthetic((1, 2, 3, 4, 5), n_users=60, n_items=50, n=2500)
TWO_WAY = [HoldOut(), KFold(n_splits=4), WeakGeneralisation(), WeakGeneralisation(held_out=3)]


@pytest.mark.parametrize("protocol", TWO_WAY, ids=str)
def test_train_and_test_part_the_rows(protocol):
    splits = list(protocol.split(PAIRS, RATINGS))
    assert len(splits) == protocol.get_n_splits()
    for train, test in splits:
        np.testing.assert_array_equal(np.sort(np.r_[train, test]), np.arange(len(PAIRS)))


@pytest.mark.parametrize("protocol", [*TWO_WAY, StrongGeneralisation()], ids=str)
def test_same_seed_same_splits(protocol):
    for first, second in zip(protocol.split(PAIRS), protocol.split(PAIRS), strict=True):
        for a, b in zip(first, second, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("protocol", [*TWO_WAY, StrongGeneralisation()], ids=str)
def test_splits_and_seeds_differ(protocol):
    from dataclasses import replace

    first, second, *_ = (split[-1] for split in protocol.split(PAIRS))
    other = next(replace(protocol, random_state=1).split(PAIRS))[-1]
    assert not np.array_equal(first, second)
    assert not np.array_equal(first, other)


def test_k_fold_tests_every_row_once():
    tests = np.concatenate([test for _, test in KFold(n_splits=5).split(PAIRS)])
    np.testing.assert_array_equal(np.sort(tests), np.arange(len(PAIRS)))


@pytest.mark.parametrize("held_out", [1, 2])
def test_weak_holds_out_so_many_of_every_user(held_out):
    for _, test in WeakGeneralisation(held_out=held_out).split(PAIRS):
        users, counts = np.unique(PAIRS[test, 0], return_counts=True)
        assert len(users) == 60
        assert set(counts) == {held_out}


def test_weak_is_uniform_over_a_users_rows():
    pairs = [("ann", item) for item in range(4)]
    tests = [test[0] for _, test in WeakGeneralisation(n_splits=4000).split(pairs)]
    assert np.bincount(tests).min() > 900


def test_strong_keeps_test_users_out_of_training():
    protocol = StrongGeneralisation(n_train_users=40, held_out=2)
    for train, fold_in, test in protocol.split(PAIRS):
        users = [set(PAIRS[rows, 0]) for rows in (train, fold_in, test)]
        assert users[1] == users[2]
        assert not users[0] & users[1]
        assert [len(group) for group in users] == [40, 20, 20]
        assert len(test) == 40
        assert not set(fold_in) & set(test)


def test_strong_drops_users_with_few_ratings():
    few = np.column_stack([np.full(5, 999), np.arange(5)])
    pairs = np.vstack([PAIRS, few])
    for split in StrongGeneralisation(min_ratings=20).split(pairs):
        assert all(999 not in pairs[rows, 0] for rows in split)


@pytest.mark.parametrize("n_train_users", [0, 60, 1.0])
def test_strong_needs_users_on_both_sides(n_train_users):
    with pytest.raises(ValueError, match="both must be positive"):
        next(StrongGeneralisation(n_train_users).split(PAIRS))


@pytest.mark.parametrize(
    "protocol", [HoldOut(2), WeakGeneralisation(2), StrongGeneralisation(40, n_splits=2)]
)
def test_evaluate_beats_chance_under_every_protocol(protocol):
    model = HMF(n_factors=4, reg=1.0, random_state=0)
    reports = evaluate(model, PAIRS, RATINGS, protocol)
    assert len(reports) == 2
    assert all(report["nmae"] < 0.6 for report in reports)
    assert not hasattr(model, "levels_")


def test_evaluate_takes_frames_and_lists():
    frame = pd.DataFrame(PAIRS, columns=["user", "item"])
    listed = [tuple(pair) for pair in PAIRS.tolist()]
    expected = evaluate(BiasOnly(), PAIRS, RATINGS, HoldOut())
    assert evaluate(BiasOnly(), frame, pd.Series(RATINGS), HoldOut()) == expected
    assert evaluate(BiasOnly(), listed, RATINGS.tolist(), HoldOut()) == expected


def test_two_way_protocols_are_scikit_learn_splitters():
    scores = cross_val_score(BiasOnly(), PAIRS, RATINGS, cv=WeakGeneralisation(n_splits=2))
    assert scores.shape == (2,)


def test_a_level_that_training_misses_is_on_the_scale_all_the_same():
    ratings = np.where(RATINGS == 1, 2, RATINGS)
    ratings[7] = 1  # in one test fold only
    reports = evaluate(BiasOnly(), PAIRS, ratings, KFold(n_splits=3))
    assert all(r["mae"] / r["nmae"] == pytest.approx(1.6) for r in reports)


def test_evaluate_wants_one_rating_for_each_pair():
    with pytest.raises(ValueError, match="There are 2500 pairs but 2499 ratings"):
        evaluate(BiasOnly(), PAIRS, RATINGS[:-1], HoldOut())


def test_messages_name_what_was_asked_for():
    pairs = np.column_stack([np.repeat(np.arange(10), 25), np.tile(np.arange(25), 10)])
    with pytest.raises(ValueError, match="0 users with at least 31 ratings"):
        next(StrongGeneralisation(n_train_users=0.5, held_out=30).split(pairs))
    with pytest.raises(ValueError, match="held_out=0 must be a whole number >= 1"):
        next(WeakGeneralisation(held_out=0).split(pairs))
