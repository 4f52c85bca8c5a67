"""Cells, their measures, the store that keeps them, and the machine they were measured on."""

import json
import math
import multiprocessing
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import marginmf
from studies.harness import Cell, Store, machine
from studies.harness.cell import MEASURES, find_measure

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text() | st.floats(allow_nan=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
SETTINGS = st.dictionaries(st.text(), VALUES, max_size=4)


def test_a_key_is_the_same_for_ever() -> None:
    # Stores of earlier versions are found again by it.
    assert Cell("errors", {"data": "ml-100k", "split": 0}).key == "b6e9ef84417e"
    assert Cell("errors", {}).key == "067151ab757d"


@settings(max_examples=15)
@given(SETTINGS)
def test_a_key_survives_the_file(given) -> None:
    again = json.loads(json.dumps(given))
    assert Cell("m", given).key == Cell("m", again).key
    backwards = dict(reversed(given.items()))
    assert Cell("m", given).key == Cell("m", backwards).key


@settings(max_examples=15)
@given(SETTINGS, SETTINGS)
def test_other_settings_have_other_keys(first, second) -> None:
    same = json.dumps(first, sort_keys=True) == json.dumps(second, sort_keys=True)
    assert (Cell("m", first).key == Cell("m", second).key) == same
    assert Cell("m", first).key != Cell("n", first).key


def test_a_key_does_not_depend_on_the_process() -> None:
    cell = Cell("errors", {"letters": "äß", "numbers": [1, 0.1, None]})
    code = (
        "import sys, json; from studies.harness import Cell\n"
        "print(Cell(*json.loads(sys.argv[1])).key)"
    )
    command = [sys.executable, "-c", code, json.dumps([cell.measure, cell.settings])]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == cell.key


def test_whether_it_runs_alone_is_not_part_of_what_it_measures() -> None:
    assert Cell("m", {}, alone=True).key == Cell("m", {}).key


def test_cells_of_the_same_data_and_method_are_of_a_kind() -> None:
    data = {"n_users": 10, "seed": 0}
    cells = [Cell("m", {"data": data, "method": "HMF", "split": split}) for split in (1, 2)]
    assert cells[0].kind == cells[1].kind
    assert Cell("m", {"data": data, "method": "ALS"}).kind != cells[0].kind


def test_words_name_what_is_measured() -> None:
    assert str(Cell("errors", {"data": "ml-100k", "split": 3, "params": {}})) == "errors ml-100k 3"


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


@settings(deadline=None, max_examples=12)  # a disk may be slow
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
        file.write(b'{"key": "' + b"x" * (1 << 17))
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
    for number in range(begin, begin + 20):
        store.add(cell_of(number), {"many": list(range(3000))}, seconds=0.0)


def test_two_processes_do_not_tear_each_others_lines(tmp_path: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    processes = [spawn.Process(target=_add_many, args=(tmp_path, begin)) for begin in (0, 100)]
    for process in processes:
        process.start()
    for process in processes:
        process.join()
        assert process.exitcode == 0
    assert len(Store(tmp_path).records) == 40


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


@pytest.mark.parametrize("name", sorted(MEASURES))
def test_every_measure_is_where_it_is_said_to_be(name: str) -> None:
    assert find_measure(name).__name__ == name


def test_measures_of_others_are_found_by_module_and_name() -> None:
    assert find_measure("sample_measures:square")(number=3) == {"square": 9}


def test_an_unknown_measure_is_a_sentence() -> None:
    with pytest.raises(ValueError, match="There is no measure 'mae'; there are candidate_error, "):
        find_measure("mae")


def test_a_run_is_described_by_machine_and_versions() -> None:
    found = machine.describe_run()
    assert found["version"] == marginmf.__version__
    assert found["libraries"].keys() == set(machine.LIBRARIES)
    assert found["cores"] >= 1
    assert found["date"][4] == "-"


def test_without_a_repository_there_is_no_commit(tmp_path: Path) -> None:
    assert machine.find_commit(tmp_path) is None


def test_without_git_there_is_no_commit(monkeypatch, tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path))
    assert machine.find_commit(tmp_path) is None
