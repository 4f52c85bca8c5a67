"""Ratings in compressed rows: some of the rows, and the view of the other side."""

from itertools import chain

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from marginmf.backends.cpu.gradients import RatingBlocks
from marginmf.backends.rows import Rows
from marginmf.ratings import Ratings

PAIRS = st.dictionaries(
    st.tuples(st.integers(0, 5), st.integers(0, 6)), st.sampled_from([1.0, 2.0, 3.5]), min_size=1
)


def ratings(pairs):
    return Ratings.of(list(pairs), list(pairs.values()), levels=[1.0, 2.0, 3.5])


def contents(rows: Rows):
    """Return the (column, rating) pairs of every row, by loops."""
    return [
        [(int(rows.indices[k]), rows.levels[rows.codes[k]]) for k in range(start, stop)]
        for start, stop in zip(rows.indptr[:-1], rows.indptr[1:], strict=True)
    ]


@given(pairs=PAIRS, data=st.data())
def test_taken_rows_have_their_entries_in_order(pairs, data):
    rows = ratings(pairs)
    which = np.array(data.draw(st.lists(st.integers(0, rows.n_rows - 1))), int)
    taken = rows.take(which)
    assert contents(taken) == [contents(rows)[i] for i in which]
    assert len(taken) == len(taken.rows) == len(rows.entries_of(which))
    np.testing.assert_array_equal(taken.values, rows.values[rows.entries_of(which)])


@given(pairs=PAIRS)
def test_the_view_by_item_holds_the_same_ratings(pairs):
    data = ratings(pairs)
    seen = [
        ((data.users.ids[i], data.items.ids[j]), value)
        for j, row in enumerate(contents(data.by_item))
        for i, value in row
    ]
    assert dict(seen) == pairs
    assert data.by_item.n_rows == data.n_items


@given(pairs=PAIRS, n_blocks=st.integers(1, 7))
def test_blocks_of_columns_hold_each_entry_once(pairs, n_blocks):
    rows = ratings(pairs)
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
