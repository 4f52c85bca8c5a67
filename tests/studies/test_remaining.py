from pathlib import Path

import pytest

from studies.harness import Cell, Store
from studies.harness.running import RemainingTime


def cell(
    method: str, split: int, data: str = "small", measure: str = "errors", alone=False
) -> Cell:
    return Cell(measure, {"data": data, "method": method, "split": split}, alone)


def test_nothing_is_known_before_the_first_cell(tmp_path: Path) -> None:
    pending = [cell("HMF", split) for split in range(3)]
    remaining = RemainingTime(Store(tmp_path), pending, 1)
    assert remaining.seconds() is None
    remaining.drop(pending[0])
    assert remaining.seconds() is None
    remaining.finish(pending[1], 4.0)
    assert remaining.seconds() == pytest.approx(4.0)
    remaining.finish(pending[2], 8.0)
    assert remaining.seconds() == 0.0


def test_a_cell_takes_as_long_as_those_most_like_it(tmp_path: Path) -> None:
    pending = [
        cell("HMF", 1),  # as HMF on the same data: 10
        cell("ALS", 1),  # as others on the same data: (10 + 2) / 2
        cell("HMF", 1, data="large"),  # as the same measure: 6
        cell("HMF", 1, measure="times"),  # as all: 6
    ]
    store = Store(tmp_path)
    store.add(cell("HMF", 0), {}, seconds=10.0)
    store.add(cell("MMMF", 0), {}, seconds=2.0)
    assert RemainingTime(store, pending, 1).seconds() == pytest.approx(10 + 6 + 6 + 6)


def test_cells_side_by_side_share_the_time_and_lone_ones_do_not(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.add(cell("HMF", 0), {}, seconds=8.0)
    pending = [cell("HMF", 1), cell("HMF", 2), cell("HMF", 3, alone=True)]
    assert RemainingTime(store, pending, 2).seconds() == pytest.approx(8 * 2 / 2 + 8)


def test_a_failure_teaches_nothing(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.add(cell("HMF", 0), {}, seconds=8.0)
    pending = [cell("HMF", 1), cell("HMF", 2)]
    remaining = RemainingTime(store, pending, 1)
    remaining.drop(pending[0])
    assert remaining.seconds() == pytest.approx(8.0)
