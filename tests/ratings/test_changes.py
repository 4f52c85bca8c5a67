"""Ratings that change, against dictionaries."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from marginmf.ratings import Ratings
from marginmf.ratings.data import observed, restricted
from marginmf.ratings.fitting.new_rows import updated
from marginmf.ratings.ids import IdIndex

LEVELS = [1.0, 2.0, 3.0]
NUMBERS, NAMES = st.integers(-3, 6), st.sampled_from(["ann", "bob", "cy", ("d", 1)])


def tables(ids):
    return st.dictionaries(st.tuples(ids, ids), st.sampled_from(LEVELS), min_size=1)


def ratings(table):
    return Ratings.of(list(table), list(table.values()), levels=LEVELS)


def table_of(data):
    """Return a dictionary of the ratings, after checking that the container is as it should be."""
    assert data.indptr.dtype == np.int64
    assert (data.indices.dtype, data.codes.dtype) == (np.int32, np.int16)
    assert len(data.indptr) == data.n_users + 1
    pairs = data.rows.astype(np.int64) * data.n_items + data.indices
    assert (np.diff(pairs) > 0).all()
    users, items = data.users.ids[data.rows].tolist(), data.items.ids[data.indices].tolist()
    return dict(zip(zip(users, items, strict=True), data.values.tolist(), strict=True))


@pytest.mark.filterwarnings("ignore:None of the")
@given(old=st.one_of(tables(NUMBERS), tables(NAMES)), new=st.one_of(tables(NUMBERS), tables(NAMES)))
def test_new_ratings_are_added_and_replace_old_ones(old, new):
    data = updated(ratings(old), ratings(new))
    assert table_of(data) == {**old, **new}
    assert data.users.ids.tolist() == ratings({**old, **new}).users.ids.tolist()


def test_vocabularies_without_news_stay_the_same_objects():
    data = Ratings.of([(1, 10), (2, 20)], [1, 2])
    after = updated(data, Ratings.of([(1, 20), (2, 10)], [2, 1]))
    assert after.users is data.users
    assert after.items is data.items


@given(table=tables(NUMBERS), ids=st.sets(NUMBERS), side=st.sampled_from(["user", "item"]))
def test_restricted_ratings_are_those_of_the_ids(table, ids, side):
    data = ratings(table)
    part = restricted(data, side, IdIndex(sorted(ids)))
    which = 0 if side == "user" else 1
    assert table_of(part) == {pair: value for pair, value in table.items() if pair[which] in ids}
    assert (part.items if side == "user" else part.users) is (
        data.items if side == "user" else data.users
    )


def test_restricted_ratings_keep_to_ids_that_sort_otherwise_among_themselves():
    # All together cannot be compared and are sorted by how they are written; these two can.
    ids = [(1, "a"), (10, 2), (9, 2)]
    data = Ratings.of([(user, "x") for user in ids] + [(ids[1], "y")], [1, 2, 3, 3])
    part = restricted(data, "user", IdIndex(ids[1:]))
    assert table_of(part) == {((10, 2), "x"): 2, ((10, 2), "y"): 3, ((9, 2), "x"): 3}


def test_observed_ratings_know_only_ids_with_ratings():
    items = IdIndex(["a", "b", "c"], "item")
    data = Ratings.of([(1, "a"), (2, "c")], [1, 2], items=items)
    assert data.n_items == 3
    seen = observed(data)
    assert seen.items.ids.tolist() == ["a", "c"]
    assert table_of(seen) == {(1, "a"): 1, (2, "c"): 2}
    assert observed(seen) is seen


def test_union_of_vocabularies():
    index = IdIndex([5, 3], "user")
    assert index.union(IdIndex([3])) is index
    assert index.union(IdIndex([4])).ids.tolist() == [3, 4, 5]
    assert index.union(IdIndex([])) is index
    with pytest.warns(UserWarning, match="ids are of another type"):
        mixed = index.union(IdIndex(["x"]))
    assert mixed.ids.tolist() == [3, 5, "x"]
    assert mixed.encode([5, "x", "5"]).tolist() == [1, 2, -1]
    assert mixed.what == "user"
