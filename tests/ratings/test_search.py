"""The search for the best: right whatever the rounding of the first look, in bounded memory."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marginmf.ratings.ids import IdIndex
from marginmf.ratings.lists import search
from marginmf.ratings.lists.search import (
    Lists,
    ScoreMatrix,
    best,
    block_shape,
    refused_by,
    refused_pairs,
)


class Matrix:
    """A score matrix whose blocks are wrong by up to the tolerance, differently every time."""

    cell_bytes = 8

    def __init__(self, scores, ties=None, noise=0.0, excluded=None, rows_at_a_time=10**9):
        self.scores = np.asarray(scores, float)
        self.ties = np.zeros_like(self.scores) if ties is None else np.asarray(ties, float)
        self.n_rows, self.n_columns = self.scores.shape
        self.lists = excluded or [[] for _ in range(self.n_rows)]
        self.tolerance = noise * 2.0 + 1e-6
        self.rows_at_a_time = rows_at_a_time
        self.noise, self.rng = noise, np.random.default_rng(0)
        self.block_shapes, self.asked = [], []

    def block(self, rows, columns):
        block = self.scores[rows, columns]
        self.block_shapes.append(block.shape)
        block = block + self.rng.uniform(-self.noise, self.noise, block.shape)
        return block.astype(np.float32), self.ties[rows, columns].astype(np.float32)

    def pairs(self, rows, columns):
        return self.scores[rows, columns], self.ties[rows, columns]

    def excluded(self, rows):
        self.asked.append(len(rows))
        lists = [np.array(self.lists[row], np.int32) for row in rows]
        indptr = np.cumsum([0, *map(len, lists)])
        return Lists(indptr, np.concatenate([np.empty(0, np.int32), *lists]))

    def best(self, n, n_threads=1):
        about = np.arange(self.n_rows), self.n_columns, self.excluded, self.rows_at_a_time
        return best(ScoreMatrix(self, *about), n, n_threads)

    def brute_force(self, n):
        for row in range(self.n_rows):
            columns = np.setdiff1d(np.arange(self.n_columns), self.lists[row])
            scores, ties = self.scores[row, columns], self.ties[row, columns]
            for rank, k in enumerate(np.lexsort((columns, -ties, -scores))[:n]):
                yield row, columns[k], rank + 1, scores[k]


def assert_best(matrix, n, n_threads=1):
    found = matrix.best(n, n_threads)
    assert list(zip(*found, strict=True)) == list(matrix.brute_force(n))


@given(
    seed=st.integers(0, 2**32 - 1),
    shape=st.tuples(st.integers(0, 5), st.integers(0, 90)),
    n=st.integers(1, 100),
    noise=st.sampled_from([0.0, 0.02, 0.5]),
    n_values=st.sampled_from([1, 4, 10_000]),
    n_threads=st.sampled_from([1, 2]),
)
@settings(max_examples=100, deadline=None)
def test_best_is_what_brute_force_finds(seed, shape, n, noise, n_values, n_threads):
    rng = np.random.default_rng(seed)
    scores = rng.integers(n_values, size=shape) / n_values
    ties = rng.integers(2, size=shape)
    excluded = [np.flatnonzero(rng.random(shape[1]) < 0.3) for _ in range(shape[0])]
    assert_best(Matrix(scores, ties, noise, excluded), n, n_threads)


@pytest.mark.parametrize(("block_rows", "block_bytes"), [(1, 8), (3, 200), (64, 10**6)])
def test_the_cut_into_blocks_does_not_matter(monkeypatch, block_rows, block_bytes):
    monkeypatch.setattr(search, "BLOCK_ROWS", block_rows)
    monkeypatch.setattr(search, "BLOCK_BYTES", block_bytes)
    monkeypatch.setattr(search, "PAIRS_AT_A_TIME", 40)
    scores = np.random.default_rng(1).normal(size=(20, 50))
    matrix = Matrix(scores, noise=0.1, excluded=[[row] for row in range(20)])
    assert_best(matrix, 5)
    assert max(rows * columns for rows, columns in matrix.block_shapes) * 8 <= block_bytes


def test_rows_whose_best_are_too_close_are_looked_at_again():
    scores = np.zeros((3, 1000))
    scores[1] = np.arange(1000)
    matrix = Matrix(scores, noise=0.1)
    assert_best(matrix, 10)
    # All rows, then those with ties, until everything that ties has been seen.
    assert matrix.asked[0] == 3
    assert set(matrix.asked[1:]) == {2}


def test_rows_are_asked_for_in_portions():
    matrix = Matrix(np.random.default_rng(2).normal(size=(10, 30)), rows_at_a_time=4)
    assert_best(matrix, 3)
    assert matrix.asked == [4, 4, 2]


def test_blocks_are_bounded_and_every_thread_has_one():
    sizes = ([8, 24, 4000], [1, 300, 1_000_000], [1, 100, 3_706, 1_000_000, 10**9], [1, 2, 64])
    for cell_bytes, n_rows, n_columns, n_threads in product(*sizes):
        rows, columns = block_shape(cell_bytes, n_rows, n_columns, n_threads)
        assert 1 <= columns <= n_columns
        assert rows * columns * cell_bytes <= search.BLOCK_BYTES
        assert -(-n_rows // rows) >= min(n_rows, n_threads) / 2


def test_scores_that_are_not_numbers_are_left_out():
    matrix = Matrix([[1.0, np.nan, 3.0, -np.inf]])
    assert matrix.best(4).columns.tolist() == [2, 0]


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
