"""Lists of what is left out."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginmf.ratings.ids import IdIndex
from marginmf.ratings.lists.search import Lists, refused_by, refused_pairs


def lists_of(*rows):
    indptr = np.cumsum([0, *map(len, rows)])
    return Lists(indptr, np.concatenate([np.empty(0, np.int32), *map(np.int32, rows)]))


def rows_of(lists):
    return [part.tolist() for part in np.split(lists.columns, lists.indptr[1:-1])]


def test_rows_can_be_picked_repeated_and_unknown():
    lists = lists_of([1, 4], [], [0])
    assert rows_of(lists.of(np.array([2, -1, 0, 1, 0]))) == [[0], [], [1, 4], [], [1, 4]]


def test_where_there_are_no_rows_everyone_is_unknown():
    assert rows_of(lists_of().of(np.array([-1, -1]))) == [[], []]


def test_columns_can_be_numbered_anew():
    place = np.array([-1, 0, 1, -1, 2], np.int32)
    assert rows_of(lists_of([0, 1, 4], [3], [2]).among(place)) == [[0, 2], [], [1]]


random_rows = st.lists(st.lists(st.integers(0, 6), unique=True).map(sorted), min_size=1, max_size=4)


@given(data=st.data(), a=random_rows)
@settings(max_examples=50, deadline=None)
def test_union_holds_what_is_in_any(data, a):
    b = data.draw(st.lists(random_rows.map(lambda rows: rows[0]), min_size=len(a), max_size=len(a)))
    expected = [sorted({*left, *right}) for left, right in zip(a, b, strict=True)]
    assert rows_of(Lists.union([lists_of(*a), lists_of(*b)], len(a), 7)) == expected
    assert rows_of(Lists.union([lists_of(*a)], len(a), 7)) == a
    assert rows_of(Lists.union([], len(a), 7)) == [[] for _ in a]


ITEMS = IdIndex(["x", "y", "z"], "item")


@pytest.mark.parametrize(
    "form", [list, lambda pairs: pd.DataFrame(pairs, columns=["user", "item"])]
)
def test_pairs_are_sorted_into_the_rows_of_those_who_ask(form):
    pairs = form([("bob", "z"), ("bob", "x"), ("bob", "x"), ("eve", "y"), ("ann", "w")])
    users = np.array(["bob", "ann"], object)
    assert rows_of(refused_pairs(pairs, users, ITEMS, None)) == [[0, 2], []]
    only_z = np.array([-1, -1, 0], np.int32)
    assert rows_of(refused_pairs(pairs, users, ITEMS, only_z)) == [[0], []]


@pytest.mark.parametrize("neither", [3, "ann", [("ann",)], np.zeros(3)])
def test_what_is_neither_a_function_nor_pairs_gets_a_sentence(neither):
    with pytest.raises(ValueError, match=r"filter must be a function .* or \(user, item\) pairs"):
        refused_pairs(neither, np.array(["bob"], object), ITEMS, None)


def test_a_function_is_asked_with_plain_ids():
    asked = []

    def keeps(user, items):
        asked.append(user)
        return items != user

    assert rows_of(refused_by(keeps, np.array([2, 9]), np.array([1, 2, 3]))) == [[1], []]
    assert [type(user) for user in asked] == [int, int]


@pytest.mark.parametrize(
    ("answer", "shown"),
    [
        (True, r"bool of shape \(\)"),
        (np.array([True]), r"bool of shape \(1,\)"),
        (np.array([1, 0, 1]), r"int64 of shape \(3,\)"),
        (None, r"object of shape \(\)"),
    ],
)
def test_a_function_that_answers_something_else_gets_a_sentence(answer, shown):
    with pytest.raises(ValueError, match=f"each of the 3 items, but for user 2 .* {shown}"):
        refused_by(lambda user, items: answer, np.array([2]), np.array([1, 2, 3]))
