"""Scores as sums over the user's own ratings."""

import numpy as np
import pytest
from sklearn.exceptions import NotFittedError

from contracts import synthetic
from marginmf.ratings import ALS, HMF, MMMF, PMF, PMMMF, BiasOnly
from marginmf.ratings.lists.explain import contributions

PARAMS = {"n_factors": 4, "reg": 0.5, "random_state": 0}


@pytest.fixture(scope="module")
def data():
    return synthetic((1, 2, 3, 4, 5))


@pytest.fixture(scope="module")
def model(data):
    return MMMF(**PARAMS).fit(*data)


def score(model, user, item):
    """Return the product of factors, the mean over stages."""
    U, V = (np.asarray(f, float) for f in (model.user_factors_, model.item_factors_))
    U, V = (f if f.ndim == 3 else f[None] for f in (U, V))
    return float((U[:, user] * V[:, item]).sum()) / len(U)


@pytest.mark.parametrize(
    "make",
    [
        MMMF,
        lambda **params: MMMF(threshold="immediate", **params),
        lambda **params: MMMF(loss="logistic", **params),
        lambda **params: HMF(**{**params, "reg": [0.5, 1.0, 2.0, 0.7]}),
        PMMMF,
        PMF,
        ALS,
        lambda **params: ALS(bias=True, **params),
    ],
)
def test_contributions_add_up_to_the_score_of_a_model_that_has_converged(make, data):
    params = {**PARAMS, "dtype": "float64", "max_iter": 3000, "tol": 1e-13, "calibrate": False}
    model = make(**params).fit(*data)
    model.set_params(max_iter=3)  # of the fits that calibrate, which have no part in the sums
    for user, item in ((3, 7), (20, 0), (39, 29)):
        parts = contributions(model, user, item)
        assert parts.score == pytest.approx(score(model, user, item))
        assert parts.contributions.sum() + parts.remainder == pytest.approx(parts.score)
        assert abs(parts.remainder) < 0.02 * np.abs(parts.contributions).sum()


@pytest.mark.parametrize("make", [MMMF, HMF, PMMMF, PMF, ALS])
def test_contributions_of_new_users_leave_nothing_over(make, data):
    # Fold-in solves the user's own problem, which is what contributions come from.
    model = make(**PARAMS, dtype="float64", max_iter=20).fit(*data)
    pairs, ratings = data
    # With so many ratings that nothing holds the thresholds of MMMF.
    (most,) = np.flatnonzero(np.bincount(pairs[:, 0]) >= 20)[:1]
    own = pairs[:, 0] == most
    folded = model.fold_in(pairs[own] + np.array([1000, 0]), ratings[own])
    user = folded.users_.ids[0]
    parts = contributions(folded, user, 5)
    assert parts.score == pytest.approx(score(folded, 0, 5))
    assert parts.remainder == pytest.approx(0.0, abs=0.01 * np.abs(parts.contributions).sum())


def test_what_training_left_over_is_the_remainder(data):
    early = MMMF(**PARAMS, max_iter=3).fit(*data)
    parts = contributions(early, 3, 7)
    assert parts.contributions.sum() + parts.remainder == pytest.approx(score(early, 3, 7))
    assert abs(parts.remainder) > 1e-3


def test_every_rating_of_the_user_has_its_part(model, data):
    pairs, ratings = data
    of_user = pairs[:, 0] == 3
    parts = contributions(model, 3, 7)
    expected = sorted(zip(pairs[of_user, 1].tolist(), ratings[of_user].tolist(), strict=True))
    assert list(zip(parts.items.tolist(), parts.ratings.tolist(), strict=True)) == expected


def test_the_frame_runs_from_most_for_to_most_against(model):
    parts, frame = contributions(model, 3, 7), model.explain(3, 7, n=2)
    assert list(frame.columns) == ["item", "rating", "contribution", "to_take"]
    order = np.argsort(-parts.contributions)
    by_weight = np.argsort(-parts.to_take)[:2]
    shown = {*order[:2], *order[-2:], *by_weight}
    wanted = parts.contributions[[k for k in order if k in shown]]
    np.testing.assert_array_equal(frame["contribution"], wanted)
    assert frame["contribution"].iloc[1] > 0 > frame["contribution"].iloc[-2]
    by_item = dict(zip(parts.items.tolist(), parts.ratings.tolist(), strict=True))
    assert frame["rating"].tolist() == [by_item[item] for item in frame["item"]]


def test_a_large_n_returns_every_rating_that_says_something(model):
    parts, frame = contributions(model, 3, 7), model.explain(3, 7, n=1000)
    assert len(frame) == np.count_nonzero((parts.contributions != 0) | (parts.to_take > 0))
    assert frame["contribution"].is_monotonic_decreasing
    assert frame["contribution"].sum() == pytest.approx(parts.contributions.sum())


def test_both_chances_are_those_of_the_lists(model):
    best = model.recommend(3, n=5)
    for item, take, like in zip(best["item"], best["take"], best["like"], strict=True):
        parts = contributions(model, 3, item)
        assert (parts.take, parts.like) == (pytest.approx(take), pytest.approx(like))
        share = model._exposure.shares[item]
        assert max(parts.to_take.sum(), 0) + 0.01 * share == pytest.approx(take)


def test_items_like_those_that_the_user_likes_are_explained_by_them():
    # Two camps of items, two camps of users: what a user likes speaks for the rest of its camp.
    pairs = [(user, item) for user in range(20) for item in range(20) if (user, item) != (0, 0)]
    ratings = [5.0 if user % 2 == item % 2 else 1.0 for user, item in pairs]
    model = MMMF(n_factors=2, reg=1.0, random_state=0).fit(pairs, ratings)
    frame = model.explain(0, 0, n=100)
    assert (frame["contribution"] > 0).all()
    # Liked items of the same camp, and disliked ones of the other, all speak for it.
    assert set(frame["rating"]) <= {1.0, 5.0}
    assert model.explain(0, 1, n=100)["contribution"].max() < 0


def test_string_ids(data):
    pairs, ratings = data
    named = [(f"u{user:02d}", f"i{item:02d}") for user, item in pairs]
    model = MMMF(**PARAMS).fit(named, ratings)
    assert set(model.explain("u03", "i07")["item"]) <= {item for _, item in named}


def test_bad_input_gets_a_sentence(model, data):
    with pytest.raises(ValueError, match=r"The user 999 was not seen .* numbers from 0 to 39"):
        model.explain(999, 7)
    with pytest.raises(ValueError, match="The item 999 was not seen in training"):
        model.explain(3, 999)
    with pytest.raises(ValueError, match="One user is explained at a time, but 2 were given"):
        model.explain([3, 4], 7)
    with pytest.raises(ValueError, match="n=0 must be a whole number >= 1"):
        model.explain(3, 7, n=0)
    with pytest.raises(ValueError, match="The predictions of BiasOnly are not sums over ratings"):
        BiasOnly().fit(*data).explain(3, 7)
    with pytest.raises(ValueError, match="reg=0 leaves the user's factors undetermined"):
        MMMF(n_factors=4, reg=0.0, max_iter=3, random_state=0).fit(*data).explain(3, 7)
    with pytest.raises(NotFittedError):
        MMMF().explain(3, 7)


def test_ratings_that_are_no_levels_are_shown_as_they_are(data):
    pairs, levels = data
    exact = levels + np.random.default_rng(0).uniform(-0.4, 0.4, len(levels))
    model = ALS(**PARAMS).fit(pairs, exact)
    own = dict(zip(pairs[pairs[:, 0] == 4, 1].tolist(), exact[pairs[:, 0] == 4], strict=True))
    table = model.explain(4, 9, n=3)
    assert table["rating"].tolist() == pytest.approx([own[item] for item in table["item"]])
