"""On real ratings the methods reach the accuracy that a right implementation reaches."""

import numpy as np
import pytest

from marginmf.metrics import mean_absolute_error, zero_one_error
from marginmf.protocols import StrongGeneralisation
from marginmf.ratings import ALS, HMF, MMMF, PMMMF, BiasOnly


@pytest.fixture(scope="module")
def movielens(data_root):
    with np.load(data_root / "ratings" / "ml-100k.npz", allow_pickle=False) as file:
        pairs = np.column_stack([file["user"], file["item"]])
        return pairs, file["rating"].astype(float)


# The errors of careful prototypes on three such splits, and the largest that noise explains.
@pytest.mark.parametrize(
    ("model", "largest_mae", "largest_zero_one"),
    [
        (HMF(reg=[6, 10, 17, 14], random_state=0), 0.679, 0.558),
        (MMMF(reg=15, random_state=0), 0.684, 0.560),
        (PMMMF(reg=40, random_state=0), 0.690, 0.562),
        (ALS(reg=25, random_state=0), 0.705, 0.588),
        (BiasOnly(), 0.713, 0.594),
    ],
    ids=lambda value: type(value).__name__,
)
def test_held_out_errors(movielens_80_20, model, largest_mae, largest_zero_one):
    pairs, ratings, test_pairs, test_ratings = movielens_80_20
    predicted = model.fit(pairs, ratings).predict(test_pairs)
    assert mean_absolute_error(test_ratings, predicted) <= largest_mae
    assert zero_one_error(test_ratings, predicted) <= largest_zero_one


def test_at_equal_training_error_pmmmf_generalises_better_than_mmmf(movielens_80_20):
    # The comparison of the thesis's fourth chapter: training MAE between 0.07 and 0.09.
    pairs, ratings, test_pairs, test_ratings = movielens_80_20
    errors = []
    for kind, reg in ((PMMMF, 21), (MMMF, 8.5)):
        model = kind(100, reg, random_state=0, calibrate=False).fit(pairs, ratings)
        learned = model.predict(pairs, output="rule")
        assert 0.07 <= mean_absolute_error(ratings, learned) <= 0.09
        predicted = model.predict(test_pairs, output="rule")
        errors.append(mean_absolute_error(test_ratings, predicted))
    assert errors[0] < errors[1]


def test_fold_in_is_nearly_as_good_as_a_refit_with_the_new_users(movielens):
    pairs, ratings = movielens
    protocol = StrongGeneralisation(n_train_users=800, held_out=10, n_splits=1)
    train, fold_in, test = next(protocol.split(pairs))
    model = HMF(reg=[6, 10, 17, 14], random_state=0)
    model.fit(pairs[train], ratings[train])
    with pytest.warns(UserWarning, match="24 of 14,916 ratings are of unknown items"):
        folded = model.fold_in(pairs[fold_in], ratings[fold_in])
    error = -folded.score(pairs[test], ratings[test])
    both = np.concatenate([train, fold_in])
    refitted = model.fit(pairs[both], ratings[both])
    assert error <= -refitted.score(pairs[test], ratings[test]) + 0.02


@pytest.mark.parametrize(
    "model",
    [
        HMF(reg=[6, 10, 17, 14], random_state=0),
        MMMF(reg=15, random_state=0),
        ALS(reg=25, bias=True),
    ],
    ids=lambda value: type(value).__name__,
)
def test_held_out_items_that_are_recommended_are_liked(movielens_80_20, model):
    pairs, ratings, test_pairs, test_ratings = movielens_80_20
    best = model.set_params(max_iter=15).fit(pairs, ratings).recommend(n=50, by="expected")
    listed = set(zip(best["user"], best["item"], strict=True))
    hits = np.array([pair in listed for pair in map(tuple, test_pairs)])
    assert hits.sum() > 1000
    assert test_ratings[hits].mean() > test_ratings.mean() + 0.6


def test_new_items_are_learned_nearly_as_well_as_by_a_refit(movielens):
    pairs, ratings = movielens
    rng = np.random.default_rng(1)
    items, counts = np.unique(pairs[:, 1], return_counts=True)
    is_new = np.isin(pairs[:, 1], rng.permutation(items[counts >= 20])[:200])
    is_test = is_new & (rng.random(len(pairs)) < 0.2)
    new, test = is_new & ~is_test, (pairs[is_test], ratings[is_test])
    model = HMF(reg=[6, 10, 17, 14], random_state=0).fit(pairs[~is_new], ratings[~is_new])
    folded = model.fold_in_items(pairs[new], ratings[new])
    error, by_rule = -folded.score(*test), folded.predict(test[0], output="rule")
    updated = model.update_items(pairs[new], ratings[new])
    np.testing.assert_array_equal(updated.predict(test[0], output="rule"), by_rule)
    refitted = model.fit(pairs[~is_test], ratings[~is_test])
    assert error <= -refitted.score(*test) + 0.02
