import json
import math
import multiprocessing
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from studies.harness import Cell, Store
from studies.harness.store import CHUNK


def cell_of(number: int) -> Cell:
    return Cell("squares", {"number": number})


def filled(folder: Path, n_cells: int = 3) -> Store:
    store = Store(folder)
    store.begin("full")
    for number in range(n_cells):
        store.add(cell_of(number), {"square": number**2}, seconds=0.5)
    return store


def test_what_was_added_comes_back(tmp_path: Path) -> None:
    values = {"mae": 0.1, "name": "HMF", "path": [1, 2.5, None], "test": {"n": 3, "ok": True}}
    store = filled(tmp_path / "new" / "folder")
    store.add(Cell("errors", {"split": 1}), values, seconds=1.23456)
    again = Store(tmp_path / "new" / "folder")
    assert again.records == store.records
    assert again.runs == store.runs
    assert again.values(Cell("errors", {"split": 1})) == values
    assert again.seconds(Cell("errors", {"split": 1})) == 1.235
    assert cell_of(2) in again
    assert cell_of(3) not in again
    assert again.values(cell_of(3)) is None
    assert again.seconds(cell_of(3)) is None


def test_of_a_cell_that_was_run_again_the_last_counts(tmp_path: Path) -> None:
    store = filled(tmp_path)
    store.add(cell_of(1), {"square": -1}, seconds=9.0)
    assert Store(tmp_path).values(cell_of(1)) == {"square": -1}


def test_every_cell_knows_its_run(tmp_path: Path) -> None:
    filled(tmp_path)
    later = Store(tmp_path)
    later.begin("quick")
    later.add(cell_of(7), {}, seconds=0.0)
    again = Store(tmp_path)
    assert again.runs[again.records[cell_of(0).key]["run"]]["scale"] == "full"
    assert again.runs[again.records[cell_of(7).key]["run"]]["scale"] == "quick"


def test_arrays_and_what_is_not_finite_are_as_the_file_has_them(tmp_path: Path) -> None:
    store = filled(tmp_path)
    values = {"a": math.nan, "b": np.array([1.5, math.inf]), "c": (np.int64(3), np.float32(0.5))}
    store.add(cell_of(9), values, seconds=0.0)
    assert store.values(cell_of(9)) == {"a": None, "b": [1.5, None], "c": [3, 0.5]}
    assert Store(tmp_path).values(cell_of(9)) == store.values(cell_of(9))


def test_what_json_does_not_have_is_refused_and_the_file_stays_whole(tmp_path: Path) -> None:
    store = filled(tmp_path)
    with pytest.raises(TypeError, match="which cannot be stored"):
        store.add(cell_of(9), {"path": tmp_path}, seconds=0.0)
    assert len(Store(tmp_path).records) == 3


@settings(deadline=None, max_examples=30)  # a disk may be slow
@given(st.floats(0, 1))
def test_a_file_that_was_cut_anywhere_goes_on(share: float) -> None:
    with TemporaryDirectory() as name:
        folder = Path(name)
        whole = filled(folder).file.read_bytes()
        cut = round(share * len(whole))
        (folder / "cells.jsonl").write_bytes(whole[:cut])
        left = Store(folder)
        # The first line is the run's.
        assert len(left.records) == max(0, whole[:cut].count(b"\n") - 1)
        assert (folder / "cells.jsonl").read_bytes() == whole[:cut], "a reader changes nothing"
        left.begin("full")
        left.add(cell_of(8), {"square": 64}, seconds=0.0)
        again = Store(folder)
        assert again.records == left.records
        assert again.values(cell_of(8)) == {"square": 64}


def test_a_torn_line_may_be_long(tmp_path: Path) -> None:
    store = filled(tmp_path)
    with open(store.file, "ab") as file:
        file.write(b'{"key": "' + b"x" * (2 * CHUNK))
    again = Store(tmp_path)
    again.begin("full")
    assert len(Store(tmp_path).records) == 3


def test_nothing_but_a_torn_line_is_an_empty_store(tmp_path: Path) -> None:
    (tmp_path / "cells.jsonl").write_bytes(b'{"run": "a')
    store = filled(tmp_path)
    assert Store(tmp_path).records == store.records


def test_two_stores_may_add_to_one_folder(tmp_path: Path) -> None:
    first, second = Store(tmp_path), Store(tmp_path)
    first.begin("full")
    second.begin("full")
    for number in range(10):
        store = (first, second)[number % 2]
        store.add(cell_of(number), {"square": number**2}, seconds=0.0)
    again = Store(tmp_path)
    assert len(again.records) == 10
    assert len(again.runs) == 2


def _add_many(folder: Path, begin: int) -> None:
    store = Store(folder)
    store.begin("full")
    for number in range(begin, begin + 50):
        store.add(cell_of(number), {"many": list(range(3000))}, seconds=0.0)


def test_two_processes_do_not_tear_each_others_lines(tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    processes = [spawn.Process(target=_add_many, args=(tmp_path, begin)) for begin in (0, 100)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    assert len(Store(tmp_path).records) == 100


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (b"nonsense", "line 3, is not JSON"),
        (b"", "line 3, is not JSON"),
        (b"\xff\xfe", "line 3, is not JSON"),
        (b"[1, 2]", "line 3, is neither a cell nor a run"),
        (b'{"key": "abc"}', "line 3, is neither a cell nor a run"),
        (b"{}", "line 3, is neither a cell nor a run"),
    ],
)
def test_a_wrong_line_is_named_by_its_number(tmp_path: Path, line: bytes, said: str) -> None:
    lines = filled(tmp_path).file.read_bytes().splitlines()
    lines.insert(2, line)
    (tmp_path / "cells.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    with pytest.raises(ValueError, match=said):
        Store(tmp_path)


def test_a_run_says_where_and_with_what(tmp_path: Path) -> None:
    first = json.loads(filled(tmp_path).file.read_text().splitlines()[0])
    assert {"run", "scale", "date", "code", "processor", "python", "version"} <= first.keys()
    assert first["libraries"]["numpy"] == np.__version__
