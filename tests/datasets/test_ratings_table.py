import dataclasses
from pathlib import Path

import numpy as np
import pytest

from marginmf.datasets import RatingsTable
from marginmf.datasets.table import read_npz, write_npz


def test_whole_number_ids_become_int64_pairs() -> None:
    table = RatingsTable("t", np.array([3, 1], dtype=np.int32), [10, 20], [5, 4])
    assert table.users.dtype == table.items.dtype == table.pairs.dtype == np.int64
    assert table.pairs.tolist() == [[3, 10], [1, 20]]
    assert table.ratings.dtype == np.float64
    assert len(table) == 2


def test_other_ids_stay_the_objects_they_are() -> None:
    table = RatingsTable("t", np.array(["a", "b"]), [1, ("x", 2)], [5, 4])
    assert table.pairs.dtype == object
    assert table.pairs.tolist() == [["a", 1], ["b", ("x", 2)]]
    assert all(type(user) is str for user in table.users)


@pytest.mark.parametrize("ids", [[1, "1"], [True, 1], [2**70, 1]])
def test_ids_that_int64_would_change_are_not_changed(ids: list[object]) -> None:
    users = RatingsTable("t", ids, [1, 2], [5, 4]).users
    assert users.dtype == object
    assert [(type(one), one) for one in users] == [(type(one), one) for one in ids]


def test_columns_of_different_lengths_are_refused_with_their_shapes() -> None:
    with pytest.raises(ValueError, match=r"users \(2,\), items \(1,\), ratings \(2,\)"):
        RatingsTable("t", [1, 2], [1], [5, 4])
    with pytest.raises(ValueError, match="one length"):
        RatingsTable("t", [1, 2], [1, 2], [5, 4], timestamps=[0])


def test_repr_says_the_size_the_levels_and_the_source() -> None:
    table = RatingsTable("t", [1, 2], [1, 1], [0.5, 4], source="made up")
    assert repr(table) == (
        "RatingsTable('t': 2 ratings of 1 items by 2 users, levels 0.5 to 4; made up)"
    )
    assert repr(RatingsTable("t", [], [], [])) == (
        "RatingsTable('t': 0 ratings of 0 items by 0 users)"
    )


def test_a_table_is_frozen_but_can_be_replaced() -> None:
    table = RatingsTable("t", [1], [1], [3])
    with pytest.raises(dataclasses.FrozenInstanceError):
        table.name = "other"  # type: ignore[misc]
    assert dataclasses.replace(table, source="here").source == "here"


def test_text_ids_survive_the_npz_form(tmp_path: Path) -> None:
    table = RatingsTable("t", ["ann", "bob"], [7, 8], [1, 2.5], titles={7: "Ä", 8: "B"})
    write_npz(table, tmp_path / "t.npz")
    again = read_npz(tmp_path / "t.npz", "t")
    assert again.pairs.tolist() == [["ann", 7], ["bob", 8]]
    assert (again.titles, again.timestamps, again.ratings.tolist()) == (
        {7: "Ä", 8: "B"},
        None,
        [1, 2.5],
    )
