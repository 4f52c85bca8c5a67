"""What both forms of the report say, and that they say it every time in the same words."""

import json
from pathlib import Path

import pytest
from samples import EVERYTHING, EXHIBITS, MISSING, NEAR, fill

from marginmf.experiments import Exhibit, Store
from marginmf.experiments.blocks import Text
from marginmf.experiments.report import Report, sections_of, write_report
from marginmf.experiments.report.contents import contents_of
from marginmf.experiments.report.coverage import coverage
from marginmf.experiments.report.origins import origins


def outcomes(report: Report) -> dict[str, str]:
    return {one.name: one.outcome for one in report.sections}


def test_every_exhibit_has_a_verdict_or_says_what_there_is_instead(report: Report) -> None:
    assert outcomes(report) == {
        "nmae": "reproduced",
        "ranks": "within noise",
        "trade-off": "not reproduced",
        "errors": "not run",
        "groups": "not shown",
    }


def test_missing_cells_are_counted(report: Report) -> None:
    whole = report.sections[0]
    assert (whole.done, len(whole.cells), whole.count) == (60, 72, "60 of 72")
    assert whole.why.endswith("Of its 72 cells, 12 have not been run.")
    assert report.sections[3].why == "None of its cells has been run."


def test_what_goes_wrong_in_one_is_said_there(report: Report) -> None:
    said = "RuntimeError: the data <b>are</b> not `there` | today"
    assert report.sections[4].why == f"It could not be shown. {said}"
    for file in (report.page, report.markdown):
        assert "A figure that cannot be drawn” could not be drawn." in file.read_text()


def test_cells_that_cannot_be_listed_do_not_lose_the_page(tmp_path: Path) -> None:
    def fail(scale):
        raise OSError("no list")

    broken = Exhibit("broken", 3, "table", "Broken", fail, lambda store, scale: [])
    found = sections_of([broken, NEAR], Store(tmp_path), "full")
    assert [one.outcome for one in found] == ["not shown", "within noise"]


@pytest.mark.parametrize(("n_cells", "outcome"), [(0, "not run"), (5, "in part"), (72, "shown")])
def test_without_a_verdict_the_cells_decide(tmp_path: Path, n_cells: int, outcome: str) -> None:
    plain = Exhibit("p", 3, "table", "Plain", EVERYTHING.cells, lambda store, scale: [Text("a")])
    store = Store(tmp_path)
    fill(store, EVERYTHING.cells("full")[:n_cells])
    assert sections_of([plain], store, "full")[0].outcome == outcome


def test_the_same_store_gives_the_same_bytes(report: Report, tmp_path: Path) -> None:
    folder = report.page.parent
    again = write_report(EXHIBITS, Store(folder), "full", tmp_path)
    names = sorted(path.name for path in (folder / "figures").iterdir())
    assert names == ["nmae-1.svg", "nmae-2.svg", "ranks-1.svg"]
    for name in ("report.html", "report.md", *(f"figures/{name}" for name in names)):
        assert (folder / name).read_bytes() == (tmp_path / name).read_bytes(), name
    assert again.page == tmp_path / "report.html"


def test_a_quick_report_says_so_and_names_quick_commands(tmp_path: Path) -> None:
    write_report([MISSING], Store(tmp_path), "quick", tmp_path)
    for name in ("report.html", "report.md"):
        text = (tmp_path / name).read_text()
        assert "This is the quick version" in text
        assert "marginmf reproduce run errors --quick" in text
    assert "quick version" not in " ".join(contents_of([], Store(tmp_path), "full").introduction)


def test_the_colophon_tells_the_runs_and_that_they_differ(tmp_path: Path) -> None:
    cells = EVERYTHING.cells("full")
    store = Store(tmp_path)
    fill(store, cells[:10])
    said, table = origins(cells, store)
    assert said.words.startswith("10 of 72 cells have been run. They all come from one version")
    assert table.rows[0][-1] == "10"
    run = dict(next(iter(store.runs.values())))
    other = {**run, "run": "other", "version": "9.9", "date": "2031-02-03T00:00:00+00:00"}
    with open(store.file, "a") as file:
        file.write(json.dumps(other) + "\n")
    later = Store(tmp_path)
    later._run = "other"
    later.add(cells[11], {}, seconds=0.0)
    said, table = origins(cells, Store(tmp_path))
    assert "They come from 2 versions:" in said.words
    assert [row[1] for row in table.rows] == [run["version"], "9.9"]
    assert table.rows[1][0] == "2031-02-03"


def test_the_colophon_of_nothing(tmp_path: Path) -> None:
    assert origins(EVERYTHING.cells("full"), Store(tmp_path)) == [Text("No cell has been run yet.")]


def test_what_was_measured_is_told_by_setting() -> None:
    assert [row[1:] for row in coverage(EVERYTHING.cells("full")).rows] == [
        ("data", "ml-100k, ml-1m, made up"),
        ("method", "HMF, PMMMF, MMMF, BMMMF, E-MMMF, PMF, ALS, Biases"),
        ("split", "0 to 2"),
    ]
