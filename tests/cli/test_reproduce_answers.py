"""``marginmf reproduce list``, ``report`` and ``check``: what they say of what was run."""

import json
from pathlib import Path

import pytest
from reproduce_samples import BROKEN, MISSING, SMALL, install, small_cells

from marginmf.experiments import Cell, Store
from marginmf.experiments import run as run_cells
from marginmf.experiments.exhibit import Scale


@pytest.fixture(autouse=True)
def few_exhibits(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, SMALL, MISSING)


def fill(folder: Path, scale: Scale) -> Store:
    store = Store(folder / "reproduction")
    run_cells([SMALL], store, scale, n_jobs=1)
    return store


def test_list_counts_what_was_run_at_each_scale(run, tmp_path: Path) -> None:
    fill(tmp_path, "quick")
    lines = [" ".join(line.split()) for line in run("reproduce", "list").out.splitlines()]
    assert "nmae 3 table Errors of a few splits 2 of 2 2 of 4" in lines
    assert "ranks 4 table Errors on lost data 0 of 3 0 of 3" in lines
    found = json.loads(run("reproduce", "list", "nmae", "--json").out)
    assert found["exhibits"][0]["full"] == {"cells": 4, "done": 2}
    assert len(found["exhibits"]) == 1


def test_list_shows_the_keys_of_cells(run, tmp_path: Path) -> None:
    fill(tmp_path, "quick")
    outcome = run("reproduce", "list", "nmae", "--cells")
    for cell in small_cells("full"):
        assert f" {cell.key} " in outcome.out
    assert outcome.out.count("not run") == 2
    cells = json.loads(run("reproduce", "list", "nmae", "--cells", "--json").out)
    assert [one["done"] for one in cells["exhibits"][0]["cells"]] == [True, True, False, False]


def test_report_writes_both_forms_and_names_them(run, tmp_path: Path) -> None:
    fill(tmp_path, "full")
    outcome = run("reproduce", "report")
    assert outcome.code == 0
    assert outcome.out.splitlines()[-2:] == ["reproduction/report.html", "reproduction/report.md"]
    assert " nmae    within noise   4        They are near." in outcome.out
    assert " ranks   not run        0 of 3   None of its cells has been run." in outcome.out
    assert (tmp_path / "reproduction" / "report.html").is_file()
    assert "reproduce run nmae`" in (tmp_path / "reproduction" / "report.md").read_text()


@pytest.mark.parametrize(
    ("run_at", "options", "scale"),
    [("quick", [], "quick"), ("full", [], "full"), ("full", ["--quick"], "quick")],
)
def test_report_is_of_the_full_scale_if_there_is_one(
    run, tmp_path: Path, run_at: Scale, options: list[str], scale: str
) -> None:
    fill(tmp_path, run_at)
    found = json.loads(run("reproduce", "report", "--json", *options).out)
    assert found["scale"] == scale
    assert found["exhibits"]["nmae"]["cells"] == len(small_cells(scale))


def test_what_cannot_be_shown_is_said_and_1(run, tmp_path: Path, monkeypatch) -> None:
    install(monkeypatch, SMALL, BROKEN)
    fill(tmp_path, "full")
    outcome = run("reproduce", "report")
    assert outcome.code == 1
    assert "KeyError: 'a column'" in " ".join(outcome.out.split())
    assert (tmp_path / "reproduction" / "report.html").is_file()


@pytest.mark.parametrize("command", [["report"], ["check", "ede2"]])
def test_where_nothing_was_run_the_first_step_is_named(run, command: list[str]) -> None:
    outcome = run("reproduce", *command, "--out", "nowhere")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("marginmf: Nothing has been run in nowhere; begin with marginmf")
    assert not Path("nowhere").exists()


def test_check_agrees_with_what_was_just_run(run, tmp_path: Path) -> None:
    fill(tmp_path, "full")
    outcome = run("reproduce", "check", small_cells("full")[1].key[:5])
    assert outcome.code == 0, outcome.err
    assert outcome.out.endswith("They agree.\n")
    assert "fit_seconds" in outcome.out
    assert "a time" in outcome.out


def test_check_shows_what_differs_and_1(run, tmp_path: Path) -> None:
    store = fill(tmp_path, "full")
    cell = small_cells("full")[0]
    values = store.values(cell)
    assert values is not None
    store.add(cell, {**values, "test": {**values["test"], "mae": 9.0}}, seconds=1.0)
    outcome = run("reproduce", "check", cell.key)
    assert outcome.code == 1
    assert "test.mae 9 0.25 differs" in " ".join(outcome.out.split())
    assert outcome.out.endswith("They differ.\n")
    found = json.loads(run("reproduce", "check", cell.key, "--json").out)
    assert found["agree"] is False
    assert found["values"]["test.mae"]["stored"] == 9.0


@pytest.mark.parametrize(
    ("key", "said"),
    [
        ("zzz", "There is no cell 'zzz' in reproduction/cells.jsonl; marginmf reproduce list"),
        ("e", "2 cells in reproduction/cells.jsonl begin with 'e': eab2de8e4187, ede2180e0e69"),
    ],
)
def test_a_key_must_name_one_cell(run, tmp_path: Path, key: str, said: str) -> None:
    fill(tmp_path, "full")
    outcome = run("reproduce", "check", key)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith(f"marginmf: {said}")


def test_check_runs_nothing_but_measures_of_the_library(run, tmp_path: Path) -> None:
    cell = Cell("os:system", {"command": f"touch {tmp_path}/harm"})
    fill(tmp_path, "quick").add(cell, {}, seconds=0.0)
    outcome = run("reproduce", "check", cell.key)
    assert outcome.code == 2
    assert "is not a measure of this library and is not run" in outcome.err
    assert not (tmp_path / "harm").exists()


def test_a_cell_whose_data_are_gone_cannot_be_checked(run, tmp_path: Path) -> None:
    cell = MISSING.cells("full")[0]
    fill(tmp_path, "quick").add(cell, {"mae": 0.5}, seconds=0.0)
    outcome = run("reproduce", "check", cell.key)
    assert outcome.code == 2
    assert outcome.err.startswith(f"marginmf: The cell {cell.key} could not be run: ")
