import sys

import pytest

from studies.harness import Cell, Finding, progress

CELL = Cell("errors", {"data": "[bold]ml-100k[/bold]", "split": 1})


def tell_of(n_cells: int, watcher, remaining: float | None = 90.0) -> None:
    with watcher(n_cells) as tell:
        for _ in range(n_cells):
            tell(Finding(CELL, {}, 1.0), remaining)


def test_without_a_terminal_there_is_a_line_now_and_then(capsys, monkeypatch) -> None:
    clock = iter(range(0, 1000, 12))
    monkeypatch.setattr(progress.time, "monotonic", lambda: float(next(clock)))
    tell_of(6, progress.show_progress)
    lines = capsys.readouterr().err.splitlines()
    assert lines == ["3 of 6 cells, about 2 min left", "6 of 6 cells, about 2 min left"]


def test_a_time_that_is_not_known_is_not_said(capsys, monkeypatch) -> None:
    monkeypatch.setattr(progress, "PAUSE", 0.0)
    tell_of(1, progress.show_progress, remaining=None)
    assert capsys.readouterr().err == "1 of 1 cells\n"


def test_a_short_run_says_nothing(capsys) -> None:
    tell_of(20, progress.show_progress)
    tell_of(20, progress.show_nothing)
    assert capsys.readouterr() == ("", "")


def test_on_a_terminal_there_is_a_bar(capsys, monkeypatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    tell_of(3, progress.show_progress)
    shown = capsys.readouterr().err
    assert "3/3" in shown
    assert "about 2 min left" in shown
    assert "[bold]ml-100k[/bold]" in shown, "names are not markup"


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(0, "0 s"), (59.4, "59 s"), (59.9, "1 min"), (3599, "1 h 0 min"), (7260, "2 h 1 min")],
)
def test_durations(seconds: float, said: str) -> None:
    assert progress.format_duration(seconds) == said
