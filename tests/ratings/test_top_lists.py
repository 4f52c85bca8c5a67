"""Lists of recommended items, and of similar users and items."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from sklearn.exceptions import NotFittedError

from contracts import synthetic
from marginmf.backends.rows import SIDES
from marginmf.ratings import ALS, GPLVM, HMF, MMMF, PMMMF, URP, Attitude, BiasOnly
from marginmf.ratings.lists import search
from marginmf.ratings.lists.relevance import MarginBlock

SCALE = (1, 2, 3, 4, 5)
N_ITEMS = 30


@pytest.fixture(scope="module")
def data():
    return synthetic(SCALE)


@pytest.fixture(scope="module")
def model(data):
    return MMMF(n_factors=4, reg=0.5, random_state=0).fit(*data)


@pytest.fixture(scope="module")
def named(data):
    pairs = [(f"u{user:02d}", f"i{item:02d}") for user, item in data[0]]
    return MMMF(n_factors=4, reg=0.5, random_state=0).fit(pairs, data[1])


def seen_by(data, user):
    return set(data[0][data[0][:, 0] == user, 1].tolist())


def rows_of(frame):
    columns = frame.to_pydict() if isinstance(frame, pa.Table) else frame
    names = ("user", "item", "rank", "score", "rating")
    return list(zip(*(list(columns[name]) for name in names), strict=True))


# --- whom to ask for -----------------------------------------------------------------------------


def test_none_is_every_user_in_training(model):
    best = model.recommend(n=2)
    assert best["user"].tolist() == np.repeat(model.users_.ids, 2).tolist()
    assert best["rank"].tolist() == [1, 2] * 40


def test_rows_follow_the_order_asked(model):
    best = model.recommend([7, 3, 7, 20], n=3)
    assert best["user"].tolist() == [7] * 3 + [3] * 3 + [20] * 3
    whole = rows_of(model.recommend(n=3))
    assert rows_of(best) == [row for user in (7, 3, 20) for row in whole if row[0] == user]


def test_one_user_may_be_asked_for_without_a_list(model, named):
    assert rows_of(model.recommend(7)) == rows_of(model.recommend([7]))
    assert rows_of(named.recommend("u07")) == rows_of(named.recommend(["u07"]))


def test_string_ids_give_the_same_lists(model, named):
    expected = [(f"u{u:02d}", f"i{i:02d}", *rest) for u, i, *rest in rows_of(model.recommend(n=4))]
    assert rows_of(named.recommend(n=4)) == expected


@pytest.mark.parametrize(
    ("ask", "kind"),
    [
        (pd.Series, pd.DataFrame),
        (pl.Series, pl.DataFrame),
        (pa.array, pa.Table),
        (np.array, pd.DataFrame),
    ],
)
def test_the_frame_is_of_the_kind_that_came_in(model, named, ask, kind):
    best = model.recommend(ask([7, 3]), n=3)
    assert isinstance(best, kind)
    assert rows_of(best) == rows_of(model.recommend([7, 3], n=3))
    assert rows_of(named.recommend(ask(["u07"]), n=3)) == rows_of(named.recommend(["u07"], n=3))


def test_no_users_give_an_empty_frame(model):
    best = model.recommend([])
    chances = ["take", "like", "expected", "rating", "chance_of_top"]
    assert list(best.columns) == ["user", "item", "rank", "score", *chances, "known"]
    assert len(best) == 0


# --- unknown users -------------------------------------------------------------------------------


def test_unknown_users_get_what_all_like_best(model):
    items = np.arange(N_ITEMS)
    margins = model.decision_function(np.column_stack([np.full(N_ITEMS, 999), items]))
    liked = (1.0 / (1.0 + np.exp(-margins))).sum(axis=1)
    best = model.recommend([999, 3, "zed"], n=5, by="expected", unknown="fallback")
    for user in (999, "zed"):
        of_user = best[best["user"] == user]
        assert of_user["item"].tolist() == np.argsort(-liked, kind="stable")[:5].tolist()
        np.testing.assert_allclose(of_user["score"], 1.0 + np.sort(liked)[::-1][:5])
    known = best[best["user"] == 3]
    assert known["item"].tolist() == model.recommend(3, n=5, by="expected")["item"].tolist()


def test_unknown_users_get_what_most_people_take_and_like(model, data):
    best = model.recommend(999, n=5, unknown="fallback")
    taken = np.bincount(data[0][:, 1], minlength=N_ITEMS) / len(model.users_)
    above = model.levels_ > data[1].mean()
    liked = model.predict_proba([(999, item) for item in range(N_ITEMS)])[:, above].sum(axis=1)
    order = np.argsort(-taken * liked, kind="stable")[:5]
    assert best["item"].tolist() == order.tolist()
    np.testing.assert_allclose(best["take"], taken[order])
    np.testing.assert_allclose(best["like"], liked[order])


def test_unknown_users_may_be_skipped_or_refused(model):
    best = model.recommend([999, 3, 1000], n=2, unknown="skip")
    assert best["user"].tolist() == [3, 3]
    assert len(model.recommend([999], unknown="skip")) == 0
    with pytest.raises(ValueError, match=r"2 of 3 users were not seen in training; .* is 999"):
        model.recommend([999, 3, 1000], unknown="raise")


def test_new_users_get_lists_without_their_own_items(model, data):
    own = [(500, item) for item in range(12)]
    folded = model.fold_in(own, [5.0, 1.0] * 6)
    best = folded.recommend(n=N_ITEMS)
    assert set(best["item"]) == set(range(12, N_ITEMS))


# --- what to choose from -------------------------------------------------------------------------


def test_seen_items_are_left_out_unless_wanted(model, data):
    seen = seen_by(data, 7)
    best = model.recommend(7, n=N_ITEMS)
    assert set(best["item"]) == set(range(N_ITEMS)) - seen
    whole = model.recommend(7, n=N_ITEMS, exclude_seen=False)
    assert set(whole["item"]) == set(range(N_ITEMS))
    # What remains stays in the same order.
    assert [item for item in whole["item"] if item not in seen] == best["item"].tolist()


def test_a_user_who_has_seen_everything_gets_nothing(data):
    pairs, ratings = data
    rest = [(7, item) for item in sorted(set(range(N_ITEMS)) - seen_by(data, 7))]
    model = BiasOnly().fit(np.vstack([pairs, rest]), np.append(ratings, [3.0] * len(rest)))
    best = model.recommend([7, 8], n=2)
    assert best["user"].tolist() == [8, 8]


@pytest.mark.parametrize("form", [list, tuple, np.array, pd.Series, pl.Series, pa.array])
def test_candidates_are_what_is_chosen_from(model, data, form):
    some = [20, 3, 11, 3, 29]
    best = model.recommend(n=10, candidates=form(some))
    assert set(best["item"]) <= set(some)
    whole = model.recommend(n=N_ITEMS)
    expected = [row for row in rows_of(whole) if row[1] in some]
    assert [row[:2] for row in rows_of(best)] == [row[:2] for row in expected]
    assert best["score"].tolist() == [row[3] for row in expected]


def test_one_candidate_and_none(model):
    assert model.recommend([7, 8], candidates=4, exclude_seen=False)["item"].tolist() == [4, 4]
    assert len(model.recommend(candidates=[])) == 0


def test_a_filter_function_says_what_stays(model):
    asked = []

    def even_for_even_users(user, items):
        asked.append(user)
        return items % 2 == user % 2

    others = {"n": N_ITEMS, "unknown": "fallback"}
    best = model.recommend([8, 7, 999], filter=even_for_even_users, **others)
    assert asked == [8, 7, 999]
    assert (best["item"] % 2 == best["user"] % 2).all()
    whole = model.recommend([8, 7, 999], **others)
    kept = whole[whole["item"] % 2 == whole["user"] % 2]
    assert best["item"].tolist() == kept["item"].tolist()


def test_a_filter_function_sees_the_candidates(model):
    def only_first(user, items):
        assert items.tolist() == [3, 11, 20]
        return items == items[0]

    best = model.recommend([1, 2], candidates=[20, 3, 11], exclude_seen=False, filter=only_first)
    assert best["item"].tolist() == [3, 3]


@pytest.mark.parametrize(
    "form",
    [
        list,
        np.array,
        lambda pairs: pd.DataFrame(pairs, columns=["user", "item"]),
        lambda pairs: pl.DataFrame(pairs, schema=["user", "item"], orient="row"),
    ],
    ids=["list", "array", "pandas", "polars"],
)
@pytest.mark.parametrize("exclude_seen", [False, True])
def test_filter_pairs_are_left_out(model, form, exclude_seen):
    others = {"exclude_seen": exclude_seen, "unknown": "fallback"}
    whole = model.recommend([7, 999, 8], n=4, **others)
    refused = [row[:2] for row in rows_of(whole) if row[2] in (1, 3)]
    pairs = form([*refused, (5, 5), (7, 12_345)])
    best = model.recommend([7, 999, 8], n=2, filter=pairs, **others)
    expected = [row[:2] for row in rows_of(whole) if row[2] in (2, 4)]
    assert [row[:2] for row in rows_of(best)] == expected


# --- the ranking ---------------------------------------------------------------------------------


@pytest.mark.parametrize("by", ["relevance", "expected", "chance"])
def test_ratings_are_predictions_and_scores_fall(model, by):
    best = model.recommend(n=8, by=by)
    pairs = best[["user", "item"]]
    np.testing.assert_array_equal(best["rating"], model.predict(pairs))
    np.testing.assert_allclose(best["expected"], model.predict(pairs, output="mean"))
    np.testing.assert_array_equal(best["chance_of_top"], model.predict_proba(pairs)[:, -1])
    if by == "expected":
        np.testing.assert_array_equal(best["score"], best["expected"])
    for _, of_user in best.groupby("user"):
        assert (np.diff(of_user["score"]) <= 0).all()
        assert of_user["rank"].tolist() == list(range(1, len(of_user) + 1))


def test_n_beyond_the_items_gives_what_there_is(model, data):
    best = model.recommend(7, n=10**9)
    assert len(best) == N_ITEMS - len(seen_by(data, 7))


def test_equal_items_rank_by_their_order():
    # Every item has the same ratings, so nothing but the order of items can tell them apart.
    pairs = [(user, item) for user in range(6) for item in range(200)]
    model = BiasOnly().fit(pairs, [float(user % 2) for user, _ in pairs])
    best = model.recommend(n=5, exclude_seen=False)
    assert best["item"].tolist() == list(range(5)) * 6


def test_equal_scores_rank_by_the_sum_of_margins():
    # The margins are all beyond what calibration tells apart, and the items' levels are the same.
    pairs = [(user, item) for user in range(4) for item in range(40)]
    ratings = [1.0 if user == 3 else 2.0 for user, _ in pairs]
    model = BiasOnly(reg=0.0).fit(pairs, ratings)
    model.item_biases_ = 1e3 + np.random.default_rng(0).permutation(40).astype(float)
    best = model.recommend(0, n=40, exclude_seen=False)
    assert len(set(best["score"])) == 1
    assert best["item"].tolist() == np.argsort(-model.item_biases_).tolist()


def test_users_of_one_level_have_infinite_margins_and_still_get_lists(data):
    pairs, ratings = data
    extra = [(200, item) for item in range(5)]
    model = PMMMF(n_factors=4, reg=0.5, random_state=0)
    model.fit(np.vstack([pairs, extra]), np.append(ratings, [5.0] * 5))
    best = model.recommend(200, n=4)
    assert not set(best["item"]) & set(range(5))
    assert set(best["rating"]) == {5.0}
    assert np.isfinite(best["score"]).all()


def test_a_scale_far_from_zero_keeps_its_digits(data):
    pairs, ratings = data
    near = ALS(n_factors=3, reg=0.5, random_state=0, dtype="float64").fit(pairs, ratings)
    far = ALS(n_factors=3, reg=0.5, random_state=0, dtype="float64").fit(pairs, ratings + 1e7)
    a, b = near.recommend(n=5, by="expected"), far.recommend(n=5, by="expected")
    np.testing.assert_array_equal(a["item"], b["item"])
    np.testing.assert_allclose(b["score"] - 1e7, a["score"], atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_cut_into_blocks_does_not_matter(monkeypatch, data, dtype):
    model = HMF(n_factors=4, reg=0.5, random_state=0, dtype=dtype).fit(*data)
    expected = rows_of(model.recommend(n=6))
    for block_rows, block_bytes in ((1, 64), (7, 2000)):
        monkeypatch.setattr(search, "BLOCK_ROWS", block_rows)
        monkeypatch.setattr(search, "BLOCK_BYTES", block_bytes)
        assert rows_of(model.recommend(n=6)) == expected


def test_no_block_is_larger_than_allowed(monkeypatch, data):
    model = HMF(n_factors=4, reg=0.5, random_state=0).fit(*data)
    monkeypatch.setattr(search, "BLOCK_ROWS", 4)
    monkeypatch.setattr(search, "BLOCK_BYTES", 1000)
    sizes, margin_block = [], model._margin_block

    def watched(users, items):
        scores, offsets = margin_block(users, items)
        # Margins, and the expected ratings and ties that are made of them.
        sizes.append(scores.nbytes + 2 * scores[0].nbytes)
        return MarginBlock(scores, offsets)

    monkeypatch.setattr(model, "_margin_block", watched)
    model.recommend(n=6)
    assert max(sizes) <= 1000
    assert len(sizes) >= 40 * N_ITEMS * 24 / 1000


# --- bad input -----------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [0, -3, 1.5, "5", None, True])
def test_bad_n_gets_a_sentence(model, n):
    with pytest.raises(ValueError, match=r"n=.* must be a whole number >= 1"):
        model.recommend(n=n)


@pytest.mark.parametrize(
    ("params", "sentence"),
    [
        ({"candidates": [3, 777, 888]}, "2 of 3 candidates were not seen .* the first is 777"),
        ({"candidates": "Alien"}, "The item 'Alien' was not seen .* numbers from 0 to 29"),
        ({"candidates": np.zeros((2, 2))}, "items must be one id or one column of ids"),
        ({"filter": 3}, "filter must be a function"),
        ({"filter": [(1, 2, 3)]}, "filter must be a function.*Row 0"),
        ({"filter": lambda user, items: items}, "filter must return one True or False"),
        ({"unknown": "maybe"}, "unknown='maybe' is not known. Choose one of 'warn', 'fall"),
        ({"users": [1, None]}, "user id in row 1 is missing"),
        ({"users": np.zeros((2, 2))}, "users must be one id or one column of ids"),
    ],
)
def test_bad_input_gets_a_sentence(model, params, sentence):
    with pytest.raises(ValueError, match=sentence):
        model.recommend(**params)


def test_a_filter_that_fails_is_not_hidden(model):
    def broken(user, items):
        raise KeyError(user)

    with pytest.raises(KeyError):
        model.recommend(3, filter=broken)


def test_before_the_fit_there_is_nothing_to_recommend():
    with pytest.raises(NotFittedError):
        MMMF().recommend()


def test_the_columns_say_what_is_compared(model):
    items, users = model.similar_items([3, 7], n=2), model.similar_users(5, n=3)
    assert list(items.columns) == ["item", "similar", "rank", "similarity"]
    assert items["item"].tolist() == [3, 3, 7, 7]
    assert items["rank"].tolist() == [1, 2, 1, 2]
    assert list(users.columns) == ["user", "similar", "rank", "similarity"]
    assert users["user"].tolist() == [5, 5, 5]


def test_nobody_is_similar_to_themselves(model):
    similar = model.similar_items(model.items_.ids, n=1000)
    assert (similar["item"] != similar["similar"]).all()
    assert len(similar) == 30 * 29


def test_similarity_goes_both_ways(model):
    similar = model.similar_items(model.items_.ids, n=1000)
    table = similar.pivot(index="item", columns="similar", values="similarity").to_numpy()
    np.testing.assert_array_equal(table, table.T)


def test_equal_factors_are_as_similar_as_can_be_whatever_their_length(model):
    factors = model.item_factors_.copy()
    factors[9], factors[12] = 3.0 * factors[3], -0.5 * factors[3]
    changed = MMMF(n_factors=4)
    changed.__dict__.update(model.__dict__, item_factors_=factors)
    similar = changed.similar_items(3, n=29)
    assert similar["similar"].iloc[0] == 9
    assert similar["similar"].iloc[-1] == 12
    assert similar["similarity"].iloc[0] == pytest.approx(1.0)
    assert similar["similarity"].iloc[-1] == pytest.approx(-1.0)
    assert similar["similarity"].between(-1.0, 1.0).all()


def test_what_has_no_length_is_similar_to_nothing(model):
    factors = model.item_factors_.copy()
    factors[[4, 5]] = 0.0
    changed = MMMF(n_factors=4)
    changed.__dict__.update(model.__dict__, item_factors_=factors)
    similar = changed.similar_items(4, n=3)
    assert similar["similarity"].tolist() == [0.0, 0.0, 0.0]
    assert similar["similar"].tolist() == [0, 1, 2]
    others = changed.similar_items(3, n=29)
    assert set(others.loc[others["similar"].isin([4, 5]), "similarity"]) == {0.0}
    assert not others["similarity"].isna().any()


@pytest.mark.parametrize(
    ("ask", "kind"),
    [(pd.Series, pd.DataFrame), (pl.Series, pl.DataFrame), (pa.array, pa.Table)],
)
def test_similar_ids_come_in_the_kind_of_frame_that_came_in(model, ask, kind):
    similar = model.similar_items(ask([3, 7]), n=2)
    assert isinstance(similar, kind)
    expected = model.similar_items([3, 7], n=2)
    for name in expected.columns:
        column = similar[name].to_pylist() if kind is pa.Table else similar[name].to_list()
        assert column == expected[name].tolist()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_neither_threads_nor_blocks_matter(monkeypatch, data, dtype):
    model = HMF(n_factors=4, reg=0.5, random_state=0, dtype=dtype).fit(*data)
    expected = model.similar_users(model.users_.ids, n=5)
    pd.testing.assert_frame_equal(
        model.set_params(n_jobs=2).similar_users(model.users_.ids, n=5), expected
    )
    monkeypatch.setattr(search, "BLOCK_ROWS", 3)
    monkeypatch.setattr(search, "BLOCK_BYTES", 100)
    pd.testing.assert_frame_equal(model.similar_users(model.users_.ids, n=5), expected)


def test_bad_questions_for_similar_ids_get_a_sentence(model, data):
    with pytest.raises(ValueError, match=r"2 of 3 items were not seen .* the first is 777"):
        model.similar_items([3, 777, 888])
    with pytest.raises(ValueError, match=r"The user 777 was not seen in training"):
        model.similar_users(777)
    with pytest.raises(ValueError, match="n=0 must be a whole number >= 1"):
        model.similar_items(3, n=0)
    with pytest.raises(ValueError, match="item id in row 0 is missing"):
        model.similar_items(None)
    with pytest.raises(NotFittedError):
        MMMF().similar_items(3)


@pytest.mark.parametrize(
    "method",
    [BiasOnly(), URP(2, max_iter=1), Attitude(2, max_iter=1), GPLVM(2, max_iter=1)],
    ids=lambda method: type(method).__name__,
)
def test_methods_without_factors_that_can_be_compared_say_so(method, data):
    method.fit(*data)
    for side in SIDES:
        wanted = f"{type(method).__name__} does not describe {side}s by factors that could be"
        with pytest.raises(ValueError, match=f"{wanted} compared, so similar {side}s cannot"):
            getattr(method, f"similar_{side}s")(3)
