"""A method tuned for another measure differs in that alone, and is shown beside the first."""

from pathlib import Path

from studies.harness import Store
from studies.harness.markdown import Entry, Table
from studies.thesis.chapter6 import TABLE
from studies.thesis.label_tables import Retuned

RETUNED = Retuned(TABLE, "macro_f1", ["genbase", "medical"])


def test_cells_differ_from_those_of_the_table_in_what_is_tuned_for() -> None:
    own = [
        cell for title in ("genbase", "medical") for cell in TABLE.cells_at("full", title, "GroPLE")
    ]
    again = RETUNED.cells("full")
    assert len(own) == len(again) == 10
    for first, second in zip(own, again, strict=True):
        rule = {**first.settings["rule"], "tune_for": "macro_f1"}
        assert second.settings == {**first.settings, "rule": rule}


def test_quick_version_tunes_nothing(tmp_path: Path) -> None:
    assert RETUNED.cells("quick") == []
    assert RETUNED.blocks(Store(tmp_path), "quick") == []
    assert RETUNED.describe(Store(tmp_path), "quick") == ""


def test_both_choices_stand_beside_the_published_figure(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for cell in TABLE.cells_at("full", "medical", "GroPLE"):
        store.add(cell, {"macro_f1": 0.25, "accuracy": 0.75}, seconds=1.0)
    for cell in RETUNED.cells("full"):
        if cell.settings["data"] == "medical":
            store.add(cell, {"macro_f1": 0.5, "accuracy": 0.625}, seconds=1.0)
    [table] = RETUNED.blocks(store, "full")
    assert isinstance(table, Table)
    genbase, medical = ([e.text for e in row if isinstance(e, Entry)] for row in table.rows)
    there = TABLE.published.at("macro_f1", "medical", "GroPLE")
    assert there is not None
    assert medical[2] == ".250 ± .000"
    assert medical[4] == ".500 ± .000"
    assert abs(float(medical[3]) - (0.25 - there.mean)) < 5e-4
    assert abs(float(medical[5]) - (0.5 - there.mean)) < 5e-4
    assert medical[6:] == [".750 ± .000", ".625 ± .000"]
    assert genbase.count("not run") == 4
    # .5 is more than was published for medical; genbase has not been run.
    assert there.mean < 0.5
    assert "no more than noise on 1 of 1 sets" in RETUNED.describe(store, "full")


def test_nothing_run_is_nothing_found(tmp_path: Path) -> None:
    assert RETUNED.describe(Store(tmp_path), "full") == ""
