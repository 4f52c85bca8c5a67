"""Methods that learn from who has what."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import marginmf
from marginmf.datasets import make_ratings
from marginmf.persistence import PairCounts, describe
from marginmf.ratings import EASE, POSITIVE, ItemKNN, MostPopular, OneClassMMMF, Ratings

METHODS = {
    "popular": MostPopular(),
    "itemknn": ItemKNN(10, shrinkage=2.0),
    "ease": EASE(reg=20.0),
    "ease of neighbours": EASE(reg=20.0, n_neighbours=7),
    "oneclass": OneClassMMMF(5),
}
every_method = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)


@pytest.fixture(scope="module")
def data():
    """Stars by users of items, with ids that are text."""
    table = make_ratings(60, 40, n_factors=3, observed=0.3, random_state=0)
    pairs = [(f"u{user:02d}", f"i{item:02d}") for user, item in table.pairs]
    return pairs, table.ratings


def checkerboard(n=12):
    """Users have every other item: even ones, or odd ones."""
    return [(user, item) for user in range(n) for item in range(n) if (user + item) % 2 == 0]


def dense(model):
    """Who has what by the model, as a matrix of zeros and ones."""
    has = np.zeros((len(model.users_), len(model.items_)))
    has[model.taken_.rows, model.taken_.indices] = 1
    return has


def all_scores(model, users=None):
    users = model.users_.ids if users is None else users
    pairs = [(user, item) for user in users for item in model.items_.ids]
    return model.decision_function(pairs).reshape(len(users), -1)


# --- what counts -------------------------------------------------------------------------------


def test_every_method_has_a_name_on_the_command_line():
    assert dict(POSITIVE) == {
        "popular": MostPopular,
        "itemknn": ItemKNN,
        "ease": EASE,
        "oneclass": OneClassMMMF,
    }


def test_pairs_frames_and_matrices_without_stars_are_the_same(data):
    pairs, _ = data
    expected = EASE(reg=10.0).fit(pairs)
    users, items = map(list, zip(*pairs, strict=True))
    columns = {"user": users, "item": items, "when": range(len(pairs))}
    matrix = sparse.csr_array(dense(expected))
    for source in (np.array(pairs, object), pd.DataFrame(columns), pl.DataFrame(columns)):
        model = EASE(reg=10.0).fit(source)
        np.testing.assert_array_equal(model.weights_.matrix, expected.weights_.matrix)
        assert model.items_.ids.tolist() == expected.items_.ids.tolist()
    for source in (matrix, matrix.astype(bool).tocoo(), sparse.csc_array(7 * matrix), iter(pairs)):
        model = EASE(reg=10.0).fit(source)
        np.testing.assert_array_equal(model.weights_.matrix, expected.weights_.matrix)


def test_repeats_of_a_pair_count_once():
    plays = [("ann", "x"), ("ann", "x"), ("bob", "x"), ("bob", "y")]
    assert MostPopular().fit(plays).popularity_.tolist() == [2, 1]
    matrix = sparse.coo_array(([1, 1, 1, 1], ([0, 0, 1, 1], [0, 0, 0, 1])))
    model = MostPopular().fit(matrix)
    assert model.popularity_.tolist() == [2, 1]
    assert sorted(model.ratings_.values) == [1, 1, 2]  # the plays


def test_a_frame_keeps_its_ratings():
    frame = pd.DataFrame({"user": [1, 1, 2], "item": [7, 8, 7], "rating": [5, 1, 4]})
    model = MostPopular(level=4).fit(frame)
    assert model.popularity_.tolist() == [2, 0]
    assert sorted(model.ratings_.values) == [1, 4, 5]


def test_a_level_says_which_ratings_count(data):
    pairs, ratings = data
    liked = [pair for pair, rating in zip(pairs, ratings, strict=True) if rating >= 4]
    model, likes = ItemKNN(level=4).fit(pairs, ratings), ItemKNN().fit(liked)
    pairs_liked = [(user, item) for user in likes.users_.ids for item in likes.items_.ids]
    np.testing.assert_array_equal(
        model.decision_function(pairs_liked), likes.decision_function(pairs_liked)
    )
    assert len(model.ratings_) == len(pairs)
    assert len(model.taken_) == len(liked)


def test_plays_can_have_a_level_too():
    rng = np.random.default_rng(0)
    plays = rng.integers(1, 1000, (40, 30)) * (rng.random((40, 30)) < 0.5)
    model = MostPopular(level=500).fit(sparse.csr_array(plays))
    np.testing.assert_array_equal(model.popularity_, (plays >= 500).sum(axis=0))


@every_method
def test_ids_without_a_rating_stay_unknown(method, data):
    ratings = Ratings.of(*data)
    kept = np.ones(len(ratings), bool)
    kept[: ratings.indptr[1]] = False
    model = clone(method).fit(ratings.subset(kept))
    assert model.users_.ids[0] == "u01"


# --- what they learn ---------------------------------------------------------------------------


@pytest.mark.parametrize("reg", [0.5, 30.0])
def test_ease_is_the_closed_form(data, reg):
    model = EASE(reg=reg).fit(data[0])
    has = dense(model)
    inverse = np.linalg.inv(has.T @ has + reg * np.eye(has.shape[1]))
    weights = -inverse / np.diag(inverse)
    np.fill_diagonal(weights, 0)
    np.testing.assert_allclose(all_scores(model), has @ weights, atol=1e-5)
    assert model.reg_ == reg


def test_the_closed_form_is_found_in_parts(data, monkeypatch):
    whole = EASE(reg=5.0).fit(data[0]).weights_.matrix
    monkeypatch.setattr("marginmf.ratings.lists.neighbours.ITEMS_AT_A_TIME", 7)
    np.testing.assert_allclose(EASE(reg=5.0).fit(data[0]).weights_.matrix, whole, rtol=1e-6)


def test_all_others_as_neighbours_give_the_closed_form():
    # So many that any two items have a user in common: those that have none are no neighbours.
    pairs = np.argwhere(np.random.default_rng(0).random((60, 40)) < 0.6)
    exact = EASE(reg=5.0, n_neighbours=None).fit(pairs)
    near = EASE(reg=5.0, n_neighbours=len(exact.items_) - 1).fit(pairs)
    assert sparse.issparse(near.weights_.matrix)
    np.testing.assert_allclose(near.weights_.matrix.toarray(), exact.weights_.matrix, atol=1e-6)
    np.testing.assert_allclose(all_scores(near), all_scores(exact), atol=1e-5)


def test_many_items_have_neighbours(data, monkeypatch):
    monkeypatch.setattr("marginmf.ratings.item_based.MOST_ITEMS", 39)
    assert sparse.issparse(EASE(reg=5.0).fit(data[0]).weights_.matrix)


def test_a_strength_is_chosen_the_same_way_for_both_forms():
    pairs = np.argwhere(np.random.default_rng(0).random((60, 40)) < 0.6)
    exact = EASE(n_neighbours=None).fit(pairs)
    near = EASE(n_neighbours=39).fit(pairs)
    assert exact.reg_ == near.reg_
    assert exact.reg_ in (10.0, 30.0, 100.0, 300.0, 1000.0, 3000.0)


def test_similarities_are_shrunk_cosines(data):
    model = ItemKNN(39, shrinkage=3.0).fit(data[0])
    has = dense(model)
    gram, counts = has.T @ has, has.sum(axis=0) + 3.0
    expected = gram / np.sqrt(np.outer(counts, counts))
    np.fill_diagonal(expected, 0)
    np.testing.assert_allclose(model.weights_.matrix.toarray(), expected, atol=1e-6)


def test_only_the_nearest_neighbours_count(data):
    model = ItemKNN(3, shrinkage=0).fit(data[0])
    full = ItemKNN(39, shrinkage=0).fit(data[0]).weights_.matrix.toarray()
    few = model.weights_.matrix.toarray()
    assert (np.count_nonzero(few, axis=1) == 3).all()
    np.testing.assert_allclose(few.sum(axis=1), np.sort(full)[:, -3:].sum(axis=1), rtol=1e-6)


@pytest.mark.parametrize(
    "method",
    [ItemKNN(5, shrinkage=0), EASE(reg=1.0), EASE(reg=1.0, n_neighbours=4), OneClassMMMF(2)],
    ids=repr,
)
def test_a_checkerboard_is_completed(method):
    pairs = checkerboard()
    left_out = [(user, user) for user in range(12)]
    model = method.fit([pair for pair in pairs if pair not in left_out])
    best = model.recommend(n=1)
    assert best["item"].tolist() == best["user"].tolist()


def test_similar_items_are_those_that_the_same_users_have(data):
    for method in (ItemKNN(5, shrinkage=0), EASE(reg=1.0), OneClassMMMF(2)):
        found = method.fit(checkerboard()).similar_items([0, 3], n=4)
        assert set(found["similar"][:4] % 2) == {0}
        assert set(found["similar"][4:] % 2) == {1}
        assert found["rank"].tolist() == [1, 2, 3, 4] * 2
        assert (found["similarity"] > 0).all()
    with pytest.raises(ValueError, match="MostPopular looks at every item by itself"):
        MostPopular().fit(data[0]).similar_items("i00")


def test_the_similarity_is_what_having_the_item_adds(data):
    model = EASE(reg=5.0).fit(data[0])
    found = model.similar_items("i03", n=39).sort_values("similar")
    others = np.delete(np.arange(40), 3)
    np.testing.assert_array_equal(found["similarity"], model.weights_.matrix[others, 3])


# --- lists -------------------------------------------------------------------------------------


@every_method
def test_lists_hold_the_best_scores_of_what_is_new(method, data):
    model = clone(method).fit(*data)
    lists = model.recommend(n=5)
    assert list(lists.columns) == ["user", "item", "rank", "score", "known"]
    scores = all_scores(model)
    scores[dense(model) > 0] = -np.inf
    np.testing.assert_array_equal(
        lists["score"].to_numpy().reshape(-1, 5), -np.sort(-scores, axis=1)[:, :5]
    )
    pairs = list(zip(lists["user"], lists["item"], strict=True))
    np.testing.assert_array_equal(model.decision_function(pairs), lists["score"])


@every_method
def test_lists_leave_out_what_was_disliked_too(method, data):
    pairs, ratings = data
    model = clone(method).set_params(level=4).fit(pairs, ratings)
    lists = model.recommend(n=40)
    assert not set(zip(lists["user"], lists["item"], strict=True)) & set(pairs)
    assert len(model.recommend("u00", n=40, exclude_seen=False)) == 40


@every_method
def test_candidates_and_filters_change_no_scores(method, data):
    model = clone(method).fit(*data)
    whole = model.recommend("u05", n=40, exclude_seen=False).set_index("item")["score"]
    some = ["i03", "i30", "i11"]
    chosen = model.recommend("u05", candidates=some, exclude_seen=False)
    assert sorted(chosen["item"]) == sorted(some)
    np.testing.assert_array_equal(chosen["score"], whole[chosen["item"]])
    kept = model.recommend("u05", n=40, exclude_seen=False, filter=lambda _, items: items > "i30")
    assert sorted(kept["item"]) == [f"i{k}" for k in range(31, 40)]


@every_method
def test_users_who_have_nothing_get_what_most_users_have(method, data):
    pairs, ratings = data
    table = Ratings.of([*pairs, ("grump", "i00")], [*ratings, 1.0])
    model = clone(method).set_params(level=4).fit(table)
    popular = MostPopular(level=4).fit(table)
    among = {"n": 5, "candidates": model.items_.ids[1:], "unknown": "fallback"}
    expected = popular.recommend("nobody", **among)
    for user in ("nobody", "grump"):
        found = model.recommend(user, **among)
        assert found["item"].tolist() == expected["item"].tolist()
        np.testing.assert_array_equal(found["score"], expected["score"])
    asked = [("nobody", "i01"), ("grump", "i01"), ("u00", "never")]
    count = popular.popularity_[1]
    np.testing.assert_array_equal(model.decision_function(asked), [count, count, 0.0])


def test_unknown_users_can_be_refused_or_left_out(data):
    model = MostPopular().fit(data[0])
    with pytest.raises(ValueError, match="1 of 2 users were not seen in training"):
        model.recommend(["u00", "nobody"], unknown="raise")
    assert set(model.recommend(["u00", "nobody"], unknown="skip")["user"]) == {"u00"}


# --- new users ---------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["popular", "itemknn", "ease", "ease of neighbours"])
def test_folding_a_user_in_again_gives_their_own_scores(name, data):
    pairs, _ = data
    model = clone(METHODS[name]).fit(pairs)
    own = [("again", item) for user, item in pairs if user == "u07"]
    folded = model.fold_in(own)
    np.testing.assert_array_equal(all_scores(folded)[0], all_scores(model)[7])
    found, expected = folded.recommend("again"), model.recommend("u07")
    assert found.drop(columns="user").equals(expected.drop(columns="user"))
    assert "again" not in model.users_.ids


@every_method
def test_new_users_do_not_depend_on_one_another(method, data):
    pairs, ratings = data
    model = clone(method).set_params(level=3).fit(pairs, ratings)
    alone = model.fold_in([("a", "i01"), ("a", "i02"), ("a", "i09")], [5, 5, 1])
    given = [("a", "i01"), ("b", "i01"), ("a", "i02"), ("a", "i09"), ("c", "never")]
    with pytest.warns(UserWarning, match="1 of 5 ratings are of unknown items and left out"):
        crowd = model.fold_in(given, [5, 2, 5, 1, 5])
    assert crowd.users_.ids.tolist() == ["a", "b"]
    np.testing.assert_array_equal(all_scores(crowd)[0], all_scores(alone)[0])
    assert "i09" not in crowd.recommend("a", n=40)["item"].tolist()


def test_new_users_with_stars_of_one_kind(data):
    model = EASE(reg=5.0, level=4).fit(*data)
    assert len(model.fold_in([("a", "i01")], [5]).taken_) == 1
    assert len(model.fold_in([("a", "i01")], [2]).taken_) == 0


# --- the same answer ---------------------------------------------------------------------------


@every_method
def test_seeds_and_threads(method, data):
    model = clone(method).fit(*data)
    same = clone(method).set_params(n_jobs=3).fit(*data)
    np.testing.assert_array_equal(all_scores(model), all_scores(same))
    assert model.recommend(n=3).equals(same.recommend(n=3))


@every_method
def test_saved_models_say_the_same(method, data, tmp_path):
    model = clone(method).set_params(level=3).fit(*data)
    folded = model.fold_in([("a", "i01"), ("a", "i02"), ("b", "i03")], [1, 1, 1])
    for one in (model, folded):
        one.save(tmp_path / "m.marginmf")
        loaded = marginmf.load(tmp_path / "m.marginmf")
        assert repr(loaded) == repr(model)
        np.testing.assert_array_equal(all_scores(loaded), all_scores(one))
        assert loaded.recommend(n=4).equals(one.recommend(n=4))
        again = loaded.fold_in([("c", "i05")], [4])
        np.testing.assert_array_equal(
            all_scores(again), all_scores(model.fold_in([("c", "i05")], [4]))
        )
    about = describe(tmp_path / "m.marginmf")
    assert about.counts == PairCounts(users=2, items=40, pairs=0)


def test_a_fit_that_fails_changes_nothing(data):
    model = EASE(reg=5.0).fit(data[0])
    before = all_scores(model)
    with pytest.raises(ValueError, match="reg=-1"):
        model.set_params(reg=-1.0).fit([("ann", "x"), ("bob", "y")])
    np.testing.assert_array_equal(all_scores(model), before)


# --- bad input ---------------------------------------------------------------------------------


@every_method
def test_nothing_is_said_before_the_fit(method):
    model = clone(method)
    for ask in (
        lambda: model.recommend(),
        lambda: model.decision_function([(0, 0)]),
        lambda: model.fold_in([(0, 0)]),
        lambda: model.similar_items(0),
    ):
        with pytest.raises(NotFittedError):
            ask()


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (EASE(reg="much"), "reg='much' must be a number > 0, or 'auto'"),
        (EASE(reg=0), "reg=0 must be a number"),
        (EASE(n_neighbours=0), "n_neighbours=0 must be a whole number >= 1"),
        (EASE(n_neighbours="all"), "n_neighbours='all' must be a whole number"),
        (EASE(n_jobs="all"), "n_jobs='all' must be a whole number"),
        (EASE(n_jobs=0), "n_jobs=0 must be a number of threads, -1 for all cores, or None"),
        (ItemKNN(0), "n_neighbours=0"),
        (ItemKNN(shrinkage=-1), "shrinkage=-1 must be a number >= 0"),
        (MostPopular(level="high"), "level='high' must be a number"),
        (MostPopular(level=6), "level=6 is outside the scale of the ratings, 1 to 5"),
        (MostPopular(level=0.5), "level=0.5 is outside the scale"),
    ],
    ids=lambda value: repr(value)[:40],
)
def test_parameters_that_cannot_be_used_get_a_sentence(model, sentence, data):
    with pytest.raises(ValueError, match=sentence) as caught:
        model.fit(*data)
    assert "\n" not in str(caught.value)


def test_a_level_needs_ratings(data):
    pairs, ratings = data
    sentence = "level=4 is about ratings, which these pairs do not have"
    with pytest.raises(ValueError, match=sentence):
        EASE(level=4).fit(pairs)
    with pytest.raises(ValueError, match=sentence):
        MostPopular(level=4).fit(pairs, ratings).fold_in([("a", "i01")])


def test_a_matrix_that_is_too_large_is_refused_with_its_size(data, monkeypatch):
    monkeypatch.setattr("marginmf.ratings.item_based.MOST_BYTES", 8 * 39**2)
    with pytest.raises(ValueError, match=r"all 40 items, which takes 0\.0 GiB: use n_neighbours"):
        EASE(n_neighbours=None).fit(data[0])
    assert EASE(reg=1.0).fit(data[0]).reg_ == 1.0


def test_faulty_pairs_get_a_sentence(data):
    with pytest.raises(ValueError, match="There are no ratings at all"):
        EASE().fit([])
    with pytest.raises(ValueError, match=r"which is not a \(user, item\) pair"):
        EASE().fit([1, 2, 3])
    with pytest.raises(ValueError, match="occur more than once"):
        EASE().fit([("a", "x"), ("a", "x")], [1, 2])
    with pytest.raises(ValueError, match="holds its own ratings"):
        EASE().fit(Ratings.of(*data), [1])


@pytest.mark.parametrize("kind", [sparse.coo_array, sparse.csr_array, sparse.csc_array])
def test_entries_of_a_matrix_that_occur_twice_are_one(kind):
    rng = np.random.default_rng(0)
    rows, columns = np.nonzero(rng.random((30, 20)) < 0.3)
    coo = sparse.coo_array((np.ones(len(rows)), (rows, columns)), (30, 20))
    plain = kind(coo)
    twice = kind(coo)
    if kind is sparse.coo_array:
        twice = kind((np.ones(2 * len(rows)), (np.tile(rows, 2), np.tile(columns, 2))), (30, 20))
    else:
        twice.data, twice.indices = np.repeat(plain.data, 2), np.repeat(plain.indices, 2)
        twice.indptr = 2 * plain.indptr
    n_entries = twice.nnz
    a, b = EASE().fit(plain), EASE().fit(twice)
    assert a.recommend([0, 1], n=3)["item"].tolist() == b.recommend([0, 1], n=3)["item"].tolist()
    assert twice.nnz == n_entries  # the caller's matrix is left as it was
