"""Features together: new users, probabilities, files, ensembles and odd data."""

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import marginmf
from contracts import synthetic
from marginmf.metrics import log_loss
from marginmf.ratings import ALS, HMF, MMMF, PMF, PMMMF, MarginEnsemble

SCALE = (1, 2, 3, 4, 5)


@pytest.fixture(scope="module")
def data():
    return synthetic(SCALE)


@pytest.mark.parametrize("model", [ALS(5, 40.0), PMF(5, 60.0), HMF(5, 16.0, threshold=0.3)])
def test_margins_that_hardly_vary_do_not_mislead(data, model):
    pairs, ratings = data
    distribution = model.set_params(random_state=0).fit(pairs, ratings).predict_proba(pairs)
    frequencies = np.bincount(ratings.astype(int))[1:] / len(ratings)
    plain = np.tile(frequencies, (len(pairs), 1))
    assert log_loss(ratings, distribution, SCALE) < log_loss(ratings, plain, SCALE)


def test_new_ratings_of_new_users_do_not_count_twice(data):
    model = MMMF(5, 1.0, random_state=0).fit(*data).fit_calibrator()
    new = [(f"n{k}", 0) for k in range(8)]
    folded = model.fold_in(new, [1.0] * 8)
    by_item = folded._frequencies.by_item.copy()
    folded.update_users(new, [3.0] * 8)
    np.testing.assert_array_equal(folded._frequencies.by_item, by_item)
    np.testing.assert_array_equal(folded._frequencies.by_user.sum(axis=0), [0, 0, 8, 0, 0])
    assert np.isfinite(folded.predict_proba(new)).all()


def test_new_users_keep_to_the_model_that_they_came_to(data):
    pairs, ratings = data
    model = MMMF(5, 1.0, random_state=0).fit(pairs, ratings)
    folded = model.fold_in([("q", 1), ("q", 2)], [1, 1])
    expected = model.fold_in([("q", 1), ("q", 2)], [1, 1]).predict_proba([("q", 3)])
    model.fit(pairs, 6 - ratings)
    np.testing.assert_array_equal(folded.predict_proba([("q", 3)]), expected)


def test_an_ensemble_is_no_member_of_an_ensemble(data):
    with pytest.raises(ValueError, match="cannot be a member of an ensemble"):
        MarginEnsemble([MarginEnsemble()]).fit(*data)


@pytest.mark.parametrize("model", [PMMMF(5), MMMF(5), HMF(5), ALS(5), PMF(5)], ids=repr)
@pytest.mark.parametrize(
    ("pairs", "ratings"),
    [
        ([(k, j) for k in range(10) for j in range(6)], [1 + k % 3 for k in range(10)] * 6),
        ([(k, k) for k in range(24)], [1, 2, 3] * 8),
        ([(k // 5, k % 5) for k in range(20)], [5.0] * 19 + [3.0]),
        ([("a", "x"), ("b", "y")], [1, 2]),
        ([("a", k) for k in range(12)], [1, 2, 3] * 4),
        ([(k, "x") for k in range(12)], [1, 2, 3] * 4),
    ],
    ids=["one level a user", "diagonal", "one other", "two ratings", "one user", "one item"],
)
def test_odd_data_have_a_reg_and_probabilities(model, pairs, ratings):
    for seed in (0, 13):
        model.set_params(random_state=seed).fit(pairs, sorted(ratings))
        assert (np.atleast_1d(model.reg_) > 1e-4).all()
        assert np.isfinite(model.predict_proba(pairs)).all()
        assert np.isfinite(model.recommend(n=3, exclude_seen=False)["score"]).all()


def test_probabilities_without_a_seed_are_the_same_after_loading(data, tmp_path):
    pairs, ratings = data
    model = MMMF(3, 1.0).fit(pairs, ratings)
    model.save(tmp_path / "model.marginmf")
    loaded = marginmf.load(tmp_path / "model.marginmf")
    np.testing.assert_array_equal(loaded.predict_proba(pairs), model.predict_proba(pairs))


def test_threads_that_ask_first_get_the_same_probabilities(data):
    model = MMMF(3, 1.0).fit(*data)
    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda _: model.predict_proba(data[0]), range(4)))
    for answer in answers[1:]:
        np.testing.assert_array_equal(answer, answers[0])


def test_new_items_cannot_be_explained_by_ratings_that_are_not_there(data):
    model = ALS(5, 1.0, random_state=0).fit(*data)
    folded = model.fold_in_items([(0, "new"), (1, "new")], [5, 1])
    with pytest.raises(ValueError, match="made by fold_in_items"):
        folded.explain(0, "new")


def test_members_hold_no_ratings_of_their_own(data):
    model = MarginEnsemble(["als", "mmmf"], n_estimators=2, random_state=0).fit(*data)
    for member in [member for kind in model.members_ for member in kind]:
        assert member.ratings_ is model.ratings_
        assert getattr(member, "offsets_", member).ratings_ is model.ratings_


def test_the_mean_of_a_pair_does_not_depend_on_the_others(data):
    pairs, _ = data
    model = MMMF(3, 1.0, random_state=0).fit(*data)
    together = model.predict(pairs[:50], output="mean")
    alone = [model.predict(pairs[k : k + 1], output="mean")[0] for k in range(50)]
    np.testing.assert_array_equal(together, alone)
