"""Ratings: built from whatever holds them, their views, and their changes."""

from itertools import chain
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from marginmf.backends.cpu.gradients import RatingBlocks
from marginmf.backends.rows import Rows
from marginmf.ratings import Ratings
from marginmf.ratings.data import observed, restricted
from marginmf.ratings.fitting.new_rows import updated
from marginmf.ratings.ids import IdIndex

USERS, ITEMS, STARS = ["bob", "ann", "bob", "cy"], [10, 20, 30, 10], [4, 2, 5, 2]
PAIRS = list(zip(USERS, ITEMS, strict=True))
EXPECTED = {("bob", 10, 4.0), ("ann", 20, 2.0), ("bob", 30, 5.0), ("cy", 10, 2.0)}
COLUMNS = {"user": USERS, "item": ITEMS, "rating": STARS}


def triples(data: Ratings) -> set[tuple[Any, Any, float]]:
    """Return (user, item, rating) of every entry, by the view by user."""
    users, items = data.users.ids.tolist(), data.items.ids.tolist()
    return {
        (users[i], items[data.indices[k]], float(data.levels[data.codes[k]]))
        for i in range(data.n_users)
        for k in range(data.indptr[i], data.indptr[i + 1])
    }


SOURCES = {
    "list": lambda: Ratings.of(PAIRS, STARS),
    "tuples and an array": lambda: Ratings.of(tuple(PAIRS), np.array(STARS)),
    "array of objects": lambda: Ratings.of(np.array(PAIRS, dtype=object), STARS),
    "pandas": lambda: Ratings.of(pd.DataFrame(COLUMNS)),
    "pandas, odd index": lambda: Ratings.of(pd.DataFrame(COLUMNS, index=[7, 7, 1, 0])),
    "polars": lambda: Ratings.of(pl.DataFrame(COLUMNS)),
    "pyarrow": lambda: Ratings.of(pa.table(COLUMNS)),
    "categories": lambda: Ratings.of(pd.DataFrame(COLUMNS).astype({"user": "category"})),
    "pandas pairs": lambda: Ratings.of(
        pd.DataFrame(COLUMNS)[["user", "item"]], pd.Series(STARS, index=[3, 1, 2, 0])
    ),
    "polars pairs": lambda: Ratings.of(pl.DataFrame(COLUMNS)[["user", "item"]], pl.Series(STARS)),
    "pyarrow pairs": lambda: Ratings.of(
        pa.table(COLUMNS).select(["user", "item"]), pa.chunked_array([STARS[:1], STARS[1:]])
    ),
    "pairs among other columns": lambda: Ratings.of(
        pd.DataFrame({"when": [1, 2, 3, 4], **COLUMNS}), STARS
    ),
    "two columns of any name": lambda: Ratings.of(pd.DataFrame({"u": USERS, "m": ITEMS}), STARS),
    "columns by name": lambda: Ratings.of(
        pd.DataFrame({"stars": STARS, "who": USERS, "what": ITEMS}),
        user="who",
        item="what",
        rating="stars",
    ),
    "Ratings": lambda: Ratings.of(Ratings.of(PAIRS, STARS)),
}


@pytest.mark.parametrize("source", SOURCES)
def test_every_source_gives_the_same_entries(source: str) -> None:
    data = SOURCES[source]()
    assert triples(data) == EXPECTED
    assert (len(data), data.n_users, data.n_items, data.n_levels) == (4, 3, 3, 3)
    assert data.users.ids.tolist() == ["ann", "bob", "cy"]
    assert data.items.ids.tolist() == [10, 20, 30]
    assert data.levels.tolist() == [2.0, 4.0, 5.0]


@pytest.mark.parametrize("kind", ["csr", "csc", "coo"])
@pytest.mark.parametrize("form", ["matrix", "array"])
def test_stored_entries_of_sparse_matrices_are_ratings_also_zeros(kind: str, form: str) -> None:
    make = getattr(sparse, f"coo_{form}")
    matrix = make(([0.0, 3.0, 1.0], ([0, 2, 2], [1, 0, 4])), shape=(3, 5)).asformat(kind)
    assert triples(Ratings.of(matrix)) == {(0, 1, 0.0), (2, 0, 3.0), (2, 4, 1.0)}


@given(
    cells=st.sets(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=2, max_size=40),
    seed=st.integers(0, 1000),
)
@settings(deadline=None)
def test_both_views_hold_the_same_entries(cells: set[tuple[int, int]], seed: int) -> None:
    pairs = list(cells)
    stars = np.random.default_rng(seed).integers(1, 6, size=len(pairs)).astype(float)
    stars[:2] = 1, 5
    data = Ratings.of(pairs, stars)
    expected = {(i, j, y) for (i, j), y in zip(pairs, stars.tolist(), strict=True)}
    assert triples(data) == expected
    by_item = {
        (
            data.users.ids[data.item_indices[k]],
            data.items.ids[j],
            data.values[data.item_order[k]],
        )
        for j in range(data.n_items)
        for k in range(data.item_indptr[j], data.item_indptr[j + 1])
    }
    assert by_item == expected
    np.testing.assert_array_equal(data.rows[data.item_order], data.item_indices)
    for i in range(data.n_users):
        assert (np.diff(data.indices[data.indptr[i] : data.indptr[i + 1]]) > 0).all()
    counts = data.level_counts("user"), data.level_counts("item")
    assert counts[0].sum() == counts[1].sum() == len(pairs)


@pytest.mark.parametrize("levels", [np.arange(0.5, 5.5, 0.5), np.arange(11.0), [-1.0, 1.0]])
def test_any_ordered_scale(levels: Any) -> None:
    data = Ratings.of([(0, j) for j in range(len(levels))], list(levels)[::-1])
    np.testing.assert_array_equal(data.levels, levels)
    np.testing.assert_array_equal(data.values, list(levels)[::-1])


def test_vocabularies_of_both_sides_leave_others_out() -> None:
    users, items = IdIndex(["ann", "zoe"], "user"), IdIndex(["x", "y"], "item")
    pairs = [("ann", "x"), ("ann", "other"), ("bob", "x"), ("ann", "y")]
    data = Ratings.of(pairs, [1, 2, 3, 2], users=users, items=items)
    assert data.users is users
    assert data.items is items
    assert triples(data) == {("ann", "x", 1), ("ann", "y", 2)}
    np.testing.assert_array_equal(data.indptr, [0, 2, 2])
    nothing = Ratings.of(pairs, [1, 2, 3, 2], users=IdIndex(["zoe"], "user"))
    assert (len(nothing), nothing.n_users, nothing.n_items) == (0, 1, 0)


def test_order_of_the_rows_does_not_matter() -> None:
    shuffled = [2, 0, 3, 1]
    one = Ratings.of(PAIRS, STARS)
    two = Ratings.of([PAIRS[k] for k in shuffled], [STARS[k] for k in shuffled])
    for name in ("indptr", "indices", "codes", "item_order", "item_indptr", "levels"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))


@pytest.mark.parametrize("as_ratings", [False, True])
def test_levels_and_items_of_another_set_are_kept_to(as_ratings: bool) -> None:
    known = Ratings.of([("a", "x"), ("a", "y"), ("a", "z")], [1, 3, 5])
    new = ([("n", "z"), ("n", "new"), ("m", "y")], [5, 1, 3])
    source = (Ratings.of(*new),) if as_ratings else new
    data = Ratings.of(*source, levels=known.levels, items=known.items)
    assert data.items.ids.tolist() == ["x", "y", "z"]
    assert data.levels.tolist() == [1.0, 3.0, 5.0]
    assert triples(data) == {("n", "z", 5.0), ("m", "y", 3.0)}


REPEATED = [("a", "x"), ("b", "x"), ("a", "x"), ("b", "y"), ("a", "x")]


def test_duplicates_keep_the_last() -> None:
    data = Ratings.of(REPEATED, [1, 2, 3, 4, 5], duplicates="last")
    assert triples(data) == {("a", "x", 5.0), ("b", "x", 2.0), ("b", "y", 4.0)}


def test_duplicates_give_the_level_nearest_to_their_mean() -> None:
    data = Ratings.of(REPEATED, [1, 2, 5, 4, 5], duplicates="mean")
    assert triples(data) == {("a", "x", 4.0), ("b", "x", 2.0), ("b", "y", 4.0)}


def test_duplicates_are_refused_and_the_first_three_shown() -> None:
    pairs = [(i, "x") for i in range(5)] * 2
    with pytest.raises(ValueError, match=r"5 .* occur more than once") as no:
        Ratings.of(pairs, [1, 2] * 5)
    assert "(0, 'x'), (1, 'x'), (2, 'x'), ..." in str(no.value)
    assert "duplicates='last') or duplicates='mean'" in str(no.value)


TWO = [("a", "x"), ("b", "y")]
MATRIX = sparse.coo_array(np.eye(2))
REFUSED: dict[str, tuple[tuple[Any, ...], dict[str, Any], str]] = {
    "NaN": ((TWO, [1, np.nan]), {}, r"rating in row 1 is nan; 1 of 2 .* not finite. Leave unobs"),
    "infinite": ((TWO, [-np.inf, 1]), {}, r"rating in row 0 is -inf; 1 of 2 ratings"),
    "null in polars": ((pl.DataFrame({**COLUMNS, "rating": [1, 2, None, 3]}),), {}, "row 2 is nan"),
    "not a number": (
        (TWO, ["1", "good"]),
        {},
        r"rating in row 1, 'good', is not a number, or a word",
    ),
    "None": ((TWO, [1, None]), {}, r"rating in row 1 is nan; 1 of 2 ratings"),
    "empty": (([], []), {}, "There are no ratings at all"),
    "one level": ((TWO, [3, 3]), {}, "Every rating is 3: with one level there is nothing"),
    "lengths": ((TWO, [1, 2, 3]), {}, "There are 2 pairs but 3 ratings"),
    "column of columns": ((TWO, np.array([[1], [2]])), {}, r"one column.* shape is \(2, 1\)"),
    "list of columns": ((TWO, [[1], [2]]), {}, r"rating in row 0, \[1\], is not a number"),
    "measurements": (
        ([(0, j) for j in range(40_000)], np.arange(40_000) / 7),
        {},
        r"40000 distinct values, 0 to 5714.14: that is a measurement",
    ),
    "no ratings given": ((TWO,), {}, "The ratings are missing: give the pairs and, second"),
    "missing user": (([("a", "x"), (None, "y")], [1, 2]), {}, "The user id in row 1 is missing"),
    "missing item": (([("a", np.nan), ("b", 2.0)], [1, 2]), {}, "The item id in row 0 is missing"),
    "missing in pandas": (
        (pd.DataFrame({**COLUMNS, "user": ["a", None, "b", "c"]}),),
        {},
        "The user id in row 1 is missing",
    ),
    "NA in pandas": (
        (pd.DataFrame({**COLUMNS, "user": pd.array(["a", None, "b", "c"], dtype="string")}),),
        {},
        "The user id in row 1 is missing",
    ),
    "missing number in pandas": (
        (pd.DataFrame({**COLUMNS, "item": pd.array([1, 2, None, 4], dtype="Int64")}),),
        {},
        "The item id in row 2 is missing",
    ),
    "no column": (
        (pd.DataFrame({"user": [1], "movie": [2]}),),
        {},
        "none of the columns .*the rating",
    ),
    "three columns": (
        (pd.DataFrame({"a": [1], "b": [1], "c": [1]}), [1]),
        {},
        "Pairs need a user's and an item's column",
    ),
    "shape of pairs": ((np.ones((2, 3)), [1, 2]), {}, r"two columns, user and item.*\(2, 3\)"),
    "row of three": (([("a", "x"), ("b", "y", 1)], [1, 2]), {}, r"Row 1 of the pairs is \('b'"),
    "row of text": ((["ab", "cd"], [1, 2]), {}, "Row 0 of the pairs is 'ab', which is not a"),
    "off the scale": (
        (TWO, [1, 2]),
        {"levels": [1, 3]},
        "rating 2 in row 1 is not on the scale 1, 3",
    ),
    "matrix and values": ((MATRIX, [1]), {}, "A sparse matrix holds its own ratings"),
    "Ratings and values": ((Ratings.of(PAIRS, STARS), [1]), {}, "A Ratings object holds its own"),
    "rule for duplicates": ((TWO, [1, 2]), {"duplicates": "first"}, "duplicates='first' is not kn"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_used_is_refused_in_a_sentence(case: str) -> None:
    arguments, options, sentence = REFUSED[case]
    with pytest.raises(ValueError, match=sentence):
        Ratings.of(*arguments, **options)


def test_repr_says_what_there_is() -> None:
    assert repr(Ratings.of(PAIRS, STARS)) == (
        "Ratings(4 ratings of 3 items by 3 users, levels 2, 4, 5)"
    )


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


ROW_PAIRS = st.dictionaries(
    st.tuples(st.integers(0, 5), st.integers(0, 6)), st.sampled_from([1.0, 2.0, 3.5]), min_size=1
)


def rows_of(pairs):
    return Ratings.of(list(pairs), list(pairs.values()), levels=[1.0, 2.0, 3.5])


def contents(rows: Rows):
    """Return the (column, rating) pairs of every row, by loops."""
    return [
        [(int(rows.indices[k]), rows.levels[rows.codes[k]]) for k in range(start, stop)]
        for start, stop in zip(rows.indptr[:-1], rows.indptr[1:], strict=True)
    ]


@given(pairs=ROW_PAIRS, data=st.data())
def test_taken_rows_have_their_entries_in_order(pairs, data):
    rows = rows_of(pairs)
    which = np.array(data.draw(st.lists(st.integers(0, rows.n_rows - 1))), int)
    taken = rows.take(which)
    assert contents(taken) == [contents(rows)[i] for i in which]
    assert len(taken) == len(taken.rows) == len(rows.entries_of(which))
    np.testing.assert_array_equal(taken.values, rows.values[rows.entries_of(which)])


@given(pairs=ROW_PAIRS)
def test_the_view_by_item_holds_the_same_ratings(pairs):
    data = rows_of(pairs)
    seen = [
        ((data.users.ids[i], data.items.ids[j]), value)
        for j, row in enumerate(contents(data.by_item))
        for i, value in row
    ]
    assert dict(seen) == pairs
    assert data.by_item.n_rows == data.n_items


@given(pairs=ROW_PAIRS, n_blocks=st.integers(1, 7))
def test_blocks_of_columns_hold_each_entry_once(pairs, n_blocks):
    rows = rows_of(pairs)
    dealt = RatingBlocks.of(rows, rows.n_items, n_blocks)
    codes = dealt.deal(rows, rows.codes)
    blocks = [contents(Rows(rows.levels, indptr, dealt.indices, codes)) for indptr in dealt.indptr]
    last = -1
    for block in blocks:
        columns = [column for row in block for column, _ in row]
        assert all(column > last for column in columns)
        last = max(columns, default=last)
    joined = [list(chain(*parts)) for parts in zip(*blocks, strict=True)]
    assert joined == contents(rows)
    np.testing.assert_array_equal(np.diff(dealt.row_ends), np.diff(rows.indptr))


def test_the_mean_of_repeats_is_that_of_the_numbers_themselves() -> None:
    rng = np.random.default_rng(0)
    pairs = np.tile(np.argwhere(np.ones((30, 10))), (3, 1))
    exact = rng.uniform(0, 10, len(pairs))
    data = Ratings.of(pairs, exact, n_levels=5, duplicates="mean")
    nearest = np.abs(data.values[:, None] - data.levels).argmin(axis=1)
    np.testing.assert_array_equal(data.codes, nearest)


def test_the_number_of_levels_is_whole() -> None:
    with pytest.raises(ValueError, match=r"n_levels=2\.5 must be a whole number >= 2"):
        Ratings.of(PAIRS, STARS, n_levels=2.5)
