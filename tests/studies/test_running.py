"""Runs of cells: what is run, on which workers, what is shown, and how long the rest takes."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from studies.harness import Cell, Finding, Store, run, running
from studies.harness.running import DEBUG, RemainingTime


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
cells = squares(20, log=folder / "log", pause=0.1)
run(cells, Store(folder), n_jobs=2, backend="loky")
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system cannot kill so")
def test_a_run_that_is_killed_goes_on_where_it_was(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    path = os.pathsep.join([str(Path(__file__).parent), *filter(None, sys.path)])
    process = subprocess.Popen(
        [sys.executable, str(tmp_path / "program.py"), str(tmp_path)],
        env={**os.environ, "PYTHONPATH": path},
        stderr=subprocess.DEVNULL,
    )
    while process.poll() is None and len(Store(tmp_path).records) < 5:
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    time.sleep(0.5)  # a worker may be at its last cell
    kept = {record["settings"]["number"] for record in Store(tmp_path).records.values()}
    assert 5 <= len(kept) < 20
    before = (tmp_path / "log").read_text().split()
    summary = in_process(Store(tmp_path), *squares(20, log=tmp_path / "log", pause=0.1))
    assert (summary.kept, summary.done) == (len(kept), 20 - len(kept))
    after = (tmp_path / "log").read_text().split()[len(before) :]
    assert {int(number) for number in after} == set(range(20)) - kept
    assert len(Store(tmp_path).records) == 20


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


CELL = Cell("errors", {"data": "[bold]ml-100k[/bold]", "split": 1})


def tell_of(n_cells: int, watcher, remaining: float | None = 90.0) -> None:
    with watcher(n_cells) as tell:
        for _ in range(n_cells):
            tell(Finding(CELL, {}, 1.0), remaining)


def test_without_a_terminal_there_is_a_line_now_and_then(capsys, monkeypatch) -> None:
    clock = iter(range(0, 1000, 12))
    monkeypatch.setattr(running.time, "monotonic", lambda: float(next(clock)))
    tell_of(6, running.show_progress)
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["3 of 6 cells, about 2 min left", "6 of 6 cells, about 2 min left"]


def test_a_time_that_is_not_known_is_not_said(capsys, monkeypatch) -> None:
    monkeypatch.setattr(running, "PAUSE", 0.0)
    tell_of(1, running.show_progress, remaining=None)
    assert capsys.readouterr().err == "1 of 1 cells\n"


def test_a_short_run_says_nothing(capsys) -> None:
    tell_of(20, running.show_progress)
    tell_of(20, running.show_nothing)
    assert capsys.readouterr() == ("", "")


def test_on_a_terminal_there_is_a_bar(capsys, monkeypatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    tell_of(3, running.show_progress)
    shown = capsys.readouterr().err
    assert "3/3" in shown
    assert "about 2 min left" in shown
    assert "[bold]ml-100k[/bold]" in shown, "names are not markup"


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "0 s"), (59.4, "59 s"), (59.9, "1 min"), (3599, "1 h 0 min"), (7260, "2 h 1 min")],
)
def test_durations(seconds: float, said: str) -> None:
    assert running.format_duration(seconds) == said
