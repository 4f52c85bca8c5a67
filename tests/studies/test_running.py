import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from studies.harness import Cell, Finding, Store, run
from studies.harness.running import DEBUG


def squares(n_cells: int, **settings) -> list[Cell]:
    fixed = {key: str(value) if key == "log" else value for key, value in settings.items()}
    return [Cell("sample_measures:square", {"number": n, **fixed}) for n in range(n_cells)]


def in_process(store: Store, *cells: Cell, **options):
    return run(cells, store, n_jobs=1, backend="sequential", **options)


def test_only_what_is_missing_is_run(tmp_path: Path) -> None:
    cells, log = squares(5, log=tmp_path / "log"), tmp_path / "log"
    first = in_process(Store(tmp_path), *cells[:3])
    second = in_process(Store(tmp_path), *cells)
    assert (first.done, first.kept) == (3, 0)
    assert (second.done, second.kept) == (2, 3)
    assert log.read_text().split() == ["0", "1", "2", "3", "4"]
    third = in_process(Store(tmp_path), *cells, again=True)
    assert (third.done, third.kept) == (5, 0)


def test_nothing_missing_is_no_run(tmp_path: Path) -> None:
    in_process(Store(tmp_path), *squares(2))
    content = (tmp_path / "cells.jsonl").read_bytes()
    assert in_process(Store(tmp_path), *squares(2)).seconds == 0.0
    assert (tmp_path / "cells.jsonl").read_bytes() == content


def test_cells_that_are_wanted_twice_are_run_once(tmp_path: Path) -> None:
    cells = squares(3, log=tmp_path / "log")
    assert run([*cells, *reversed(cells)], Store(tmp_path), n_jobs=1).done == 3
    assert len((tmp_path / "log").read_text().split()) == 3


def test_a_failure_is_a_reason_and_others_go_on(tmp_path: Path, capsys) -> None:
    cells = [Cell("sample_measures:odd_fails", {"number": number}) for number in range(5)]
    cells.append(Cell("sample_measures:strange", {"number": 0}))
    cells.append(Cell("nonsense", {}))
    store = Store(tmp_path)
    summary = in_process(store, *cells)
    assert summary.done == 3
    assert summary.failures["LookupError: no data for odd numbers"] == 2
    assert sum("which cannot be stored" in reason for reason in summary.failures) == 1
    assert sum("There is no measure 'nonsense'" in reason for reason in summary.failures) == 1
    assert len(Store(tmp_path).records) == 3
    assert "Traceback" not in capsys.readouterr().err


def test_failures_are_tried_again(tmp_path: Path) -> None:
    cell = Cell("sample_measures:odd_fails", {"number": 1})
    assert in_process(Store(tmp_path), cell).failures
    assert in_process(Store(tmp_path), cell).failures


def test_a_traceback_is_there_for_who_asks(tmp_path: Path, capsys, monkeypatch) -> None:
    monkeypatch.setenv(DEBUG, "1")
    in_process(Store(tmp_path), Cell("sample_measures:odd_fails", {"number": 1}))
    assert "LookupError: no data for odd numbers" in capsys.readouterr().err


@pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing", "sequential"])
def test_all_backends_find_the_same(tmp_path: Path, backend: str) -> None:
    store = Store(tmp_path)
    summary = run(squares(7), store, n_jobs=2, backend=backend)
    assert summary.done == 7
    assert [store.values(cell) for cell in squares(7)] == [{"square": n**2} for n in range(7)]
    assert Store(tmp_path).records == store.records


@pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing"])
def test_cells_side_by_side_have_one_core_each(tmp_path: Path, backend: str) -> None:
    store = Store(tmp_path)
    cells = [
        Cell("sample_measures:cores", {"number": number}, alone=number == 2) for number in range(3)
    ]
    run(cells, store, n_jobs=2, backend=backend)
    assert [store.values(cell) for cell in cells] == [{"cores": n} for n in (1, 1, 7)]


@pytest.mark.parametrize("backend", ["loky", "multiprocessing"])
def test_cells_that_measure_time_run_last_and_here(tmp_path: Path, backend: str) -> None:
    name = "sample_measures:process"
    cells = [Cell(name, {"number": number}, alone=number < 2) for number in range(6)]
    store = Store(tmp_path)
    run(cells, store, n_jobs=2, backend=backend)
    found = [store.values(cell) for cell in cells]
    assert {one["process"] for one in found[:2]} == {os.getpid()}
    assert os.getpid() not in {one["process"] for one in found[2:]}
    assert min(one["time"] for one in found[:2]) > max(one["time"] for one in found[2:])


def test_a_killed_worker_is_a_sentence(tmp_path: Path) -> None:
    crash = Cell("sample_measures:crash", {"number": 0})
    with pytest.raises(ChildProcessError, match="What was done is kept"):
        run([crash], Store(tmp_path), n_jobs=2, backend="loky")


def test_an_interruption_keeps_what_was_done(tmp_path: Path) -> None:
    def interrupt(total: int):
        from contextlib import contextmanager

        @contextmanager
        def watching():
            def tell(finding: Finding, remaining: float | None) -> None:
                if finding.cell.settings["number"] == 2:
                    raise KeyboardInterrupt

            yield tell

        return watching()

    with pytest.raises(KeyboardInterrupt):
        in_process(Store(tmp_path), *squares(5), watcher=interrupt)
    assert len(Store(tmp_path).records) == 3
    assert in_process(Store(tmp_path), *squares(5)).kept == 3


PROGRAM = """
import sys
from pathlib import Path
from test_running import squares
from studies.harness import Store, run

folder = Path(sys.argv[1])
cells = squares(30, log=folder / "log", pause=0.1)
run(cells, Store(folder), n_jobs=2, backend=sys.argv[2])
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system cannot kill so")
@pytest.mark.parametrize("backend", ["loky", "threading"])
def test_a_run_that_is_killed_goes_on_where_it_was(tmp_path: Path, backend: str) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    path = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    process = subprocess.Popen(
        [sys.executable, str(tmp_path / "program.py"), str(tmp_path), backend],
        env={**os.environ, "PYTHONPATH": path},
        stderr=subprocess.DEVNULL,
    )
    while process.poll() is None and len(Store(tmp_path).records) < 5:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    time.sleep(0.5)  # a worker may be at its last cell
    kept = {record["settings"]["number"] for record in Store(tmp_path).records.values()}
    assert 5 <= len(kept) < 30
    before = (tmp_path / "log").read_text().split()
    summary = in_process(Store(tmp_path), *squares(30, log=tmp_path / "log", pause=0.1))
    assert (summary.kept, summary.done) == (len(kept), 30 - len(kept))
    after = (tmp_path / "log").read_text().split()[len(before) :]
    assert {int(number) for number in after} == set(range(30)) - kept
    assert len(Store(tmp_path).records) == 30
