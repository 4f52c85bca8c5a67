"""What lists are ranked by: expected ratings, and who takes what."""

import threading
from copy import copy
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import marginmf
from contracts import synthetic
from marginmf.datasets import make_ratings
from marginmf.ratings import HMF, MMMF, PMMMF, BiasOnly, MarginEnsemble, Ratings
from marginmf.ratings.lists.neighbours import STRENGTHS, USUAL_STRENGTH
from marginmf.ratings.lists.relevance import Exposure, item_scores, sum_of_margins
from marginmf.ratings.lists.search import Lists

UNEVEN_SCALE = (0.5, 1.0, 2.0, 4.0)
MODELS = [
    MMMF(3, 0.5, random_state=0),
    HMF(3, 0.5, random_state=0),
    PMMMF(3, 0.5, random_state=0),
    BiasOnly(),
    MarginEnsemble(["mmmf", "hmf", "pmmmf"], n_estimators=2, random_state=0),
]


@pytest.fixture(scope="module", params=MODELS, ids=lambda model: type(model).__name__)
def calibrated(request):
    return clone(request.param).fit(*synthetic(UNEVEN_SCALE)).fit_calibrator()


def test_ties_leave_infinite_margins_out():
    margins = np.array([[np.inf, 1.0, -np.inf], [1.0, 2.0, 3.0]])
    np.testing.assert_array_equal(sum_of_margins(margins), [1.0, 6.0])


@pytest.mark.parametrize("by", ["expected", "chance", "relevance"])
@pytest.mark.parametrize("items", [None, np.array([2, 8, 29])], ids=["all", "candidates"])
def test_blocks_agree_with_pairs(calibrated, items, by):
    scores = item_scores(calibrated, by, None, items)
    users, columns = np.array([0, -1, 17, 39]), slice(0, 3) if items is not None else slice(4, 19)
    numbers = np.arange(30)[columns]
    block, ties = scores.block(users, columns)
    rows = np.repeat(users, len(numbers)), np.tile(numbers, len(users))
    exact, exact_ties = scores.pairs(*rows)
    assert block.dtype == ties.dtype == np.float32
    np.testing.assert_allclose(block.ravel(), exact, rtol=1e-5, atol=2e-5)
    if not isinstance(calibrated, MarginEnsemble):  # whose ties are its members' margins in blocks
        np.testing.assert_allclose(ties.ravel(), exact_ties, rtol=1e-5, atol=2e-5)


@pytest.mark.parametrize("by", ["expected", "chance"])
@pytest.mark.parametrize("unimodal", [False, True])
def test_lists_are_those_of_all_probabilities(calibrated, by, unimodal):
    model, rng = copy(calibrated), np.random.default_rng(0)
    # Weights that give most distributions dips.
    weights = rng.normal(size=model._calibrator.weights.shape)
    model._calibrator = replace(model._calibrator, weights=weights, unimodal=unimodal)
    frame = model.recommend(np.arange(40), n=4, by=by, exclude_seen=False)
    pairs = np.argwhere(np.ones((40, 30)))
    values = UNEVEN_SCALE if by == "expected" else np.array(UNEVEN_SCALE) >= 2.0
    every = (model.predict_proba(pairs) @ values).reshape(40, 30)
    found = frame["score"].to_numpy().reshape(40, 4)
    np.testing.assert_allclose(found, -np.sort(-every, axis=1)[:, :4], rtol=1e-12)


def test_pairs_have_the_mean_of_their_distribution(calibrated):
    users, items = np.arange(30), np.arange(30)
    expected, _ = item_scores(calibrated, "expected", None, None).pairs(users, items)
    pairs = np.column_stack([users, items])
    mean = calibrated.predict(pairs, output="mean")
    np.testing.assert_allclose(UNEVEN_SCALE[0] + expected, mean, rtol=1e-12)


def test_the_chance_is_that_of_the_level_and_those_above(calibrated):
    users, items = np.arange(30), np.arange(30)
    chance, _ = item_scores(calibrated, "chance", 2.0, None).pairs(users, items)
    wanted = calibrated.predict_proba(np.column_stack([users, items]))[:, 2:].sum(axis=1)
    np.testing.assert_allclose(chance, wanted, rtol=1e-12)


SCALE = (1, 2, 3, 4, 5)


@pytest.fixture(scope="module")
def data():
    return synthetic(SCALE)


@pytest.fixture
def model(data):
    return MMMF(n_factors=4, reg=0.5, random_state=0).fit(*data)


@pytest.fixture(scope="module")
def clubs():
    """Users of two clubs, who take what their own club likes, and little else."""
    rng = np.random.default_rng(0)
    own = rng.random((200, 60)) < 0.5
    club = np.arange(200) % 2 == 0
    of_club = np.arange(60) < 30
    taken = own & np.where(club[:, None] == of_club, True, rng.random((200, 60)) < 0.05)
    users, items = np.nonzero(taken)
    return Ratings.of(np.column_stack([users, items]), rng.integers(1, 6, len(users)))


def fitted(data, seed=0, **options):
    return Exposure.fit(data, np.random.default_rng(seed), **options)


def has(data):
    return Lists(data.indptr, data.indices)


# --- what is learned -----------------------------------------------------------------------------


def test_people_take_what_their_own_kind_takes(clubs):
    chances = fitted(clubs).block(has(clubs), np.arange(200), slice(None))
    own = (np.arange(200) % 2 == 0)[:, None] == (np.arange(60) < 30)
    unseen = np.ones_like(own)
    unseen[clubs.rows, clubs.indices] = False
    assert chances[own & unseen].mean() > 5 * chances[~own & unseen].mean()


def test_how_high_ratings_are_says_nothing_of_what_is_taken(clubs):
    flipped = Ratings.of(
        np.column_stack([clubs.rows, clubs.indices]), 6 - clubs.values, levels=clubs.levels
    )
    ours, theirs = fitted(clubs), fitted(flipped)
    np.testing.assert_array_equal(ours.weights.matrix.data, theirs.weights.matrix.data)


def test_the_answer_is_the_same_for_any_number_of_threads(clubs, monkeypatch):
    monkeypatch.setattr("marginmf.ratings.lists.neighbours.ITEMS_AT_A_TIME", 7)
    one, two = fitted(clubs), fitted(clubs, n_threads=2)
    assert one.strength == two.strength
    np.testing.assert_array_equal(one.weights.matrix.toarray(), two.weights.matrix.toarray())


def test_large_catalogues_are_counted_piece_by_piece_to_the_same_answer(clubs, monkeypatch):
    ours = fitted(clubs, strength=10.0)
    monkeypatch.setattr("marginmf.ratings.lists.neighbours.MOST_TABLED", 10)
    theirs = fitted(clubs, strength=10.0)
    np.testing.assert_array_equal(ours.weights.matrix.toarray(), theirs.weights.matrix.toarray())


def test_chances_are_never_negative_and_those_of_strangers_are_shares(clubs):
    exposure = fitted(clubs)
    chances = exposure.block(has(clubs), np.array([-1, 3, 8]), slice(10, 50))
    assert (chances >= 0).all()
    np.testing.assert_allclose(chances[0], exposure.shares[10:50], rtol=1e-6)
    taken = np.bincount(clubs.indices, minlength=60) / 200
    np.testing.assert_array_equal(exposure.shares, taken)


def test_the_strength_is_one_of_several_or_the_usual_one(clubs):
    assert fitted(clubs).strength in STRENGTHS
    assert fitted(clubs, strength=17.0).strength == 17.0
    lonely = Ratings.of([(user, user) for user in range(5)], [1, 2, 1, 2, 1])
    assert fitted(lonely).strength == USUAL_STRENGTH
    assert fitted(lonely).weights.matrix.nnz == 0


# --- models that change --------------------------------------------------------------------------


def test_it_is_learned_once_and_by_whoever_asks_first(model, monkeypatch):
    calls = []
    learn = Exposure.fit.__func__
    monkeypatch.setattr(
        Exposure, "fit", classmethod(lambda cls, *a: (calls.append(1), learn(cls, *a))[1])
    )
    askers = [threading.Thread(target=model.recommend, kwargs={"n": 2}) for _ in range(4)]
    for asker in askers:
        asker.start()
    for asker in askers:
        asker.join()
    model.explain(3, 7)
    assert len(calls) == 1
    assert model.fit_exposure() is model
    model.fit(*synthetic(SCALE, seed=1))
    assert model._exposure is None


@pytest.mark.parametrize("first", ["before", "after"])
def test_a_user_folded_in_takes_what_the_same_user_took_in_training(model, data, first, tmp_path):
    pairs, ratings = data
    mine = pairs[:, 0] == 4
    if first == "before":
        model.fit_exposure()
    folded = model.fold_in(pairs[mine] + np.array([1000, 0]), ratings[mine])
    ours, theirs = model.recommend(4, n=30), folded.recommend(1004, n=30)
    takes = [frame.set_index("item")["take"].sort_index() for frame in (ours, theirs)]
    pd.testing.assert_series_equal(*takes)
    folded.save(tmp_path / "folded.marginmf")
    loaded = marginmf.load(tmp_path / "folded.marginmf")
    pd.testing.assert_frame_equal(loaded.recommend(1004, n=30), theirs)


def test_saving_a_model_of_new_users_learns_what_it_could_not_learn_later(model, data, tmp_path):
    pairs, ratings = data
    mine = pairs[:, 0] == 4
    folded = model.fold_in(pairs[mine] + np.array([1000, 0]), ratings[mine])
    folded.save(tmp_path / "folded.marginmf")
    loaded = marginmf.load(tmp_path / "folded.marginmf")
    assert loaded.recommend()["take"].tolist() == folded.recommend()["take"].tolist()


def test_new_ratings_of_users_change_what_they_have_and_nothing_else(model):
    before = model.fit_exposure()._exposure
    was = model.recommend([3, 5], n=30)
    model.update_users([(5, item) for item in range(12)], [4.0] * 12)
    assert model._exposure is before
    now = model.recommend([3, 5], n=30)
    takes = [frame[frame["user"] == 3].set_index("item")["take"] for frame in (was, now)]
    pd.testing.assert_series_equal(*(take.sort_index() for take in takes), check_exact=True)
    assert not set(now.loc[now["user"] == 5, "item"]) & set(range(12))


def test_new_items_are_taken_by_those_who_take_their_like(clubs):
    model = BiasOnly().fit(clubs)
    before = model.fit_exposure()._exposure
    fans = np.arange(0, 80, 2)
    model.update_items([(user, 1000) for user in fans], [5.0] * len(fans))
    after = model._exposure
    old, new = after.weights.matrix.toarray(), before.weights.matrix.toarray()
    np.testing.assert_array_equal(old[:60, :60], new)
    assert not old[:60, 60].any()
    best = model.recommend(by="relevance", candidates=[1000])
    takes = best.set_index("user")["take"]
    club, others = takes[takes.index % 2 == 0], takes[takes.index % 2 == 1]
    assert club.mean() > 5 * others.mean()


def test_new_items_alone_have_no_chances_without_what_users_have(model):
    folded = model.fold_in_items([(user, 99) for user in range(10)], [4.0] * 10)
    with pytest.raises(ValueError, match=r"made by fold_in_items .* rank by='expected'"):
        folded.recommend(33)
    for by in ("expected", "chance"):
        assert folded.recommend(33, by=by)["item"].tolist() == [99]


# --- files ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("learned", [True, False])
def test_loaded_models_make_the_same_lists(data, tmp_path, learned):
    model = MarginEnsemble(n_estimators=2, random_state=0).fit(*data)
    if learned:
        model.fit_exposure()
    model.save(tmp_path / "model.marginmf")
    loaded = marginmf.load(tmp_path / "model.marginmf")
    assert (loaded._exposure is not None) == learned
    loaded.fit_exposure()
    pd.testing.assert_frame_equal(loaded.recommend(), model.recommend())


def test_files_keep_it_compactly(tmp_path):
    data = make_ratings(300, 400, observed=0.2, random_state=0)
    model = BiasOnly().fit(data.pairs, data.ratings)
    model.save(tmp_path / "without")
    model.fit_exposure().save(tmp_path / "with")
    more = (tmp_path / "with").stat().st_size - (tmp_path / "without").stat().st_size
    assert more < 400 * 100 * 8 + 400 * 8 + 20_000


# --- bad input -----------------------------------------------------------------------------------


def test_what_cannot_be_ranked_by_gets_a_sentence(model):
    with pytest.raises(ValueError, match="by='taste' is not known"):
        model.recommend(by="taste")
    for level in (1, 6, 3.5, float("nan")):
        with pytest.raises(ValueError, match="must be a level above the lowest: 2, 3, 4, 5"):
            model.recommend(level=level)
    with pytest.raises(ValueError, match="expected ratings do not ask"):
        model.recommend(by="expected", level=4)


def test_what_is_liked_is_above_the_mean_unless_told(model, data):
    best = model.recommend(3)
    least = min(level for level in SCALE if level > data[1].mean())
    pd.testing.assert_frame_equal(best, model.recommend(3, level=least))
    assert (
        best["like"] <= model.recommend(3, level=2, candidates=best["item"])["like"].max()
    ).all()


def test_lists_longer_than_the_catalogue_are_shorter(model):
    assert len(model.recommend(3, n=1000, exclude_seen=False)) == 30
