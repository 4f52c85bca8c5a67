"""``python -m studies thesis list``, ``report`` and ``check``: what they say of what was run."""

from pathlib import Path

import pytest
from thesis_samples import BROKEN, MISSING, SMALL, install, small_cells

from studies.harness import Cell, Store
from studies.harness import run as run_cells
from studies.thesis.commands import compare_values
from studies.thesis.exhibit import Scale


@pytest.fixture(autouse=True)
def few_exhibits(monkeypatch: pytest.MonkeyPatch) -> None:
    install(monkeypatch, SMALL, MISSING)


def fill(folder: Path, scale: Scale) -> Store:
    store = Store(folder / "results")
    run_cells(SMALL.cells(scale), store, scale, n_jobs=1)
    return store


def test_list_counts_what_was_run_at_each_scale(thesis, tmp_path: Path) -> None:
    fill(tmp_path, "quick")
    lines = thesis("list").out.splitlines()
    assert "| nmae | 3 | table | Errors of a few splits | 2 of 2 | 2 of 4 |" in lines
    assert "| ranks | 4 | table | Errors on lost data | 0 of 3 | 0 of 3 |" in lines
    assert "ranks" not in thesis("list", "nmae").out


def test_list_shows_the_keys_of_cells(thesis, tmp_path: Path) -> None:
    fill(tmp_path, "quick")
    outcome = thesis("list", "nmae", "--cells")
    for cell in small_cells("full"):
        assert f" {cell.key} " in outcome.out
    assert outcome.out.count("not run") == 2


def test_report_is_written_where_it_is_asked_for(thesis, tmp_path: Path) -> None:
    fill(tmp_path, "full")
    outcome = thesis("report")
    assert outcome.code == 0
    assert outcome.out.splitlines()[-1] == "results/report.md"
    assert "| nmae | within noise | 4 | They are near. |" in outcome.out
    assert "| ranks | not run | 0 of 3 | None of its cells has been run. |" in outcome.out
    assert "thesis run nmae`" in (tmp_path / "results" / "report.md").read_text()
    thesis("report", "--to", "docs/page.md")
    assert (tmp_path / "docs" / "page.md").is_file()


@pytest.mark.parametrize(
    ("run_at", "options", "scale"),
    [("quick", [], "quick"), ("full", [], "full"), ("full", ["--quick"], "quick")],
)
def test_report_is_of_the_full_scale_if_there_is_one(
    thesis, tmp_path: Path, run_at: Scale, options: list[str], scale: Scale
) -> None:
    fill(tmp_path, run_at)
    printed = thesis("report", *options).out
    assert f"The {scale} version is in\nresults/report.md" in printed
    assert f"| nmae | within noise | {len(small_cells(scale))} |" in printed


def test_what_cannot_be_shown_is_said_and_1(thesis, tmp_path: Path, monkeypatch) -> None:
    install(monkeypatch, SMALL, BROKEN)
    fill(tmp_path, "full")
    outcome = thesis("report")
    assert outcome.code == 1
    assert "KeyError: 'a column'" in outcome.out
    assert (tmp_path / "results" / "report.md").is_file()


@pytest.mark.parametrize("command", [["report"], ["check", "ede2"]])
def test_where_nothing_was_run_the_first_step_is_named(thesis, command: list[str]) -> None:
    outcome = thesis(*command, "--out", "nowhere")
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith("studies: Nothing has been run in nowhere; begin with python -m")
    assert not Path("nowhere").exists()


def test_check_agrees_with_what_was_just_run(thesis, tmp_path: Path) -> None:
    fill(tmp_path, "full")
    outcome = thesis("check", small_cells("full")[1].key[:5])
    assert outcome.code == 0, outcome.err
    assert outcome.out.endswith("They agree.\n")
    assert "fit_seconds" in outcome.out
    assert "| a time |" in outcome.out


def test_check_shows_what_differs_and_1(thesis, tmp_path: Path) -> None:
    store = fill(tmp_path, "full")
    cell = small_cells("full")[0]
    values = store.values(cell)
    assert values is not None
    store.add(cell, {**values, "test": {**values["test"], "mae": 9.0}}, seconds=1.0)
    outcome = thesis("check", cell.key)
    assert outcome.code == 1
    assert "| test.mae | 9 | 0.25 | differs |" in outcome.out
    assert outcome.out.endswith("They differ.\n")


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("zzz", "There is no cell 'zzz' in results/cells.jsonl; python -m studies thesis list"),
        ("e", "2 cells in results/cells.jsonl begin with 'e': eab2de8e4187, ede2180e0e69"),
    ],
)
def test_a_key_must_name_one_cell(thesis, tmp_path: Path, key: str, message: str) -> None:
    fill(tmp_path, "full")
    outcome = thesis("check", key)
    assert (outcome.code, outcome.out) == (2, "")
    assert outcome.err.startswith(f"studies: {message}")


def test_check_runs_nothing_but_measures_of_the_studies(thesis, tmp_path: Path) -> None:
    cell = Cell("os:system", {"command": f"touch {tmp_path}/harm"})
    fill(tmp_path, "quick").add(cell, {}, seconds=0.0)
    outcome = thesis("check", cell.key)
    assert outcome.code == 2
    assert "is not a measure of the studies and is not run" in outcome.err
    assert not (tmp_path / "harm").exists()


def test_a_cell_whose_data_are_gone_cannot_be_checked(thesis, tmp_path: Path) -> None:
    cell = MISSING.cells("full")[0]
    fill(tmp_path, "quick").add(cell, {"mae": 0.5}, seconds=0.0)
    outcome = thesis("check", cell.key)
    assert outcome.code == 2
    assert outcome.err.startswith(f"studies: The cell {cell.key} could not be run: ")


@pytest.mark.parametrize(
    ("stored", "found", "agrees"),
    [
        (0.1, 0.1, True),
        (0.1, 0.1 + 1e-9, True),
        (0.1, 0.1001, False),
        (0.0, 1e-15, True),
        (3, 3.0, True),
        ([1.0, [2.0, None]], [1.0, [2.0, None]], True),
        ([1.0, 2.0], [1.0, 2.1], False),
        ([1.0, 2.0], [1.0], False),
        ("HMF", "HMF", True),
        ("HMF", "ALS", False),
        (None, 0.5, False),
        ({}, {}, True),
        ({"a": {"b": 1}}, {"a": {"b": 2}}, False),
    ],
)
def test_values_agree_but_for_rounding(stored, found, agrees: bool) -> None:
    verdicts = {one.verdict for one in compare_values({"value": stored}, {"value": found})}
    assert verdicts == {"agrees" if agrees else "differs"}


def test_times_may_differ_wherever_they_are() -> None:
    stored = {"fit_seconds": 1.0, "inner": {"cpu_seconds": 2.0}}
    rows = compare_values(stored, {"fit_seconds": 5.0, "inner": {"cpu_seconds": 7.0}})
    assert [one.verdict for one in rows] == ["a time", "a time"]


def test_what_only_one_side_has_differs() -> None:
    for stored, found in (({"a": 1}, {"a": 1, "b": 2}), ({"a": 1, "b": 2}, {"a": 1})):
        verdicts = [one.verdict for one in compare_values(stored, found)]
        assert verdicts == ["agrees", "differs"]
