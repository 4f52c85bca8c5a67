"""What the report says, and that it says it every time in the same words."""

import json
from pathlib import Path

import pytest
from report_samples import EVERYTHING, EXHIBITS, MISSING, NEAR, fill

from studies.harness import Store
from studies.harness.markdown import Text, Verdict
from studies.thesis.exhibit import Exhibit
from studies.thesis.report import (
    describe_origins,
    describe_settings,
    make_section,
    summarise,
    write_report,
)


def test_every_exhibit_has_a_verdict_or_says_what_there_is_instead(report) -> None:
    assert {one.name: one.outcome for one in report.sections} == {
        "nmae": "reproduced",
        "ranks": "within noise",
        "trade-off": "not reproduced",
        "errors": "not run",
        "groups": "not shown",
    }


def test_missing_cells_are_counted(report) -> None:
    whole = report.sections[0]
    assert (whole.done, len(whole.cells), whole.count) == (60, 72, "60 of 72")
    assert whole.why.endswith("Of its 72 cells, 12 have not been run.")
    assert report.sections[3].why == "None of its cells has been run."


def test_what_goes_wrong_in_one_is_said_there(report) -> None:
    said = "RuntimeError: the data <b>are</b> not `there` | today"
    assert report.sections[4].why == f"It could not be shown. {said}"
    assert "A figure that cannot be drawn” could not be drawn." in report.text


def test_it_opens_with_what_was_reproduced_what_was_not_and_why(report) -> None:
    opening = summarise(report.sections)
    assert opening in report.text
    assert opening == (
        "Of 5 tables and figures of Kumar's thesis, 1 is reproduced and 1 more within noise; 2 "
        "cannot be judged yet. Not reproduced is [Margins against errors](#trade-off). The "
        "reasons: the protocol gives another figure."
    )
    assert summarise(report.sections[:2]).endswith("None of the others contradicts it.")


def test_slips_in_the_thesis_are_counted_apart(report) -> None:
    slip = Verdict("slip in the thesis", "Its own table gives others.", "2 of 6 F do not follow")
    sections = [*report.sections[:3], report.sections[0]._replace(verdict=slip)]
    title = "[Errors of all methods on three sets of ratings](#nmae)"
    assert summarise(sections).startswith(
        "Of 4 tables and figures of Kumar's thesis, 1 is reproduced and 1 more within noise. A "
        f"slip in the thesis is {title}: 2 of 6 F do not follow. Not reproduced is"
    )


def test_cells_that_cannot_be_listed_do_not_lose_the_page(tmp_path: Path) -> None:
    class Broken(Exhibit):
        name, chapter, title = "broken", 3, "Broken"

        def cells(self, scale):
            raise OSError("no list")

    found = write_report([Broken(), NEAR], Store(tmp_path), "full", tmp_path / "report.md")
    assert [one.outcome for one in found] == ["not shown", "within noise"]


@pytest.mark.parametrize(("n_cells", "outcome"), [(0, "not run"), (5, "in part"), (72, "shown")])
def test_without_a_verdict_the_cells_decide(tmp_path: Path, n_cells: int, outcome: str) -> None:
    class Plain(Exhibit):
        cells = staticmethod(EVERYTHING.cells)

        def blocks(self, store, scale):
            return [Text("a")]

    store = Store(tmp_path)
    fill(store, EVERYTHING.cells("full")[:n_cells])
    assert make_section(Plain(), store, "full").outcome == outcome


def test_the_same_store_gives_the_same_bytes(report, tmp_path: Path) -> None:
    folder = report.file.parent
    write_report(EXHIBITS, Store(folder), "full", tmp_path / "report.md")
    names = sorted(path.name for path in (folder / "figures").iterdir())
    assert names == ["nmae-1.svg", "nmae-2.svg", "ranks-1.svg"]
    for name in ("report.md", *(f"figures/{name}" for name in names)):
        assert (folder / name).read_bytes() == (tmp_path / name).read_bytes(), name


def test_a_quick_report_says_so_and_names_quick_commands(report, tmp_path: Path) -> None:
    file = tmp_path / "report.md"
    write_report([MISSING], Store(tmp_path), "quick", file)
    assert "This is the quick version" in file.read_text()
    assert "python -m studies thesis run errors --quick" in file.read_text()
    assert "quick version" not in report.text


def test_the_colophon_tells_the_runs_and_that_they_differ(tmp_path: Path) -> None:
    cells = EVERYTHING.cells("full")
    store = Store(tmp_path)
    fill(store, cells[:10])
    said, table = describe_origins(cells, store)
    assert said.words.startswith("10 of 72 cells have been run. They all come from one version")
    assert table.rows[0][-1] == "10"
    run = dict(next(iter(store.runs.values())))
    other = {**run, "run": "other", "version": "9.9", "date": "2031-02-03T00:00:00+00:00"}
    with open(store.file, "a") as file:
        file.write(json.dumps(other) + "\n")
    later = Store(tmp_path)
    later._run = "other"
    later.add(cells[11], {}, seconds=0.0)
    said, table = describe_origins(cells, Store(tmp_path))
    assert "They come from 2 versions:" in said.words
    assert [row[1] for row in table.rows] == [run["version"], "9.9"]
    assert table.rows[1][0] == "2031-02-03"


def test_the_colophon_of_nothing(tmp_path: Path) -> None:
    assert describe_origins(EVERYTHING.cells("full"), Store(tmp_path)) == [
        Text("No cell has been run yet.")
    ]


def test_what_was_measured_is_told_by_setting() -> None:
    assert [row[1:] for row in describe_settings(EVERYTHING.cells("full")).rows] == [
        ("data", "ml-100k, ml-1m, made up"),
        ("method", "HMF, PMMMF, MMMF, BMMMF, E-MMMF, PMF, ALS, Biases"),
        ("split", "0 to 2"),
    ]
