"""Every exhibit: what it asks for can be kept, and it can be shown at any stage of a run."""

import json
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from marginmf.metrics import LABEL_METRICS
from studies.harness import Cell, Store
from studies.harness.cell import MEASURES
from studies.harness.markdown import Block, Details, Entry, Figure, Table, Verdict
from studies.thesis import chapter5
from studies.thesis.chapter6 import TABLE
from studies.thesis.exhibit import Exhibit, exhibits
from studies.thesis.label_tables import Retuned
from studies.thesis.label_trials import LABEL_METHODS

ALL = {one.name: one for one in exhibits()}
SCALES = ("quick", "full")


class Imagined(Store):
    """A store that has every cell, with figures that are made up but possible."""

    def __init__(self) -> None:
        self.records: dict[str, dict[str, Any]] = {}
        self.runs: dict[str, dict[str, Any]] = {}

    def __contains__(self, cell: object) -> bool:
        return True

    def values(self, cell: Cell) -> dict[str, Any]:
        rng = np.random.default_rng(int(cell.key, 16))
        errors = {name: rng.uniform(0.2, 0.8) for name in ("mae", "nmae", "zero_one", "fre")}
        errors["rmse"] = errors["mae"] + 0.2
        train = {name: value / 3 for name, value in errors.items()}
        return {
            "rating_errors": {"test": errors, "train": train, "n_test": 100},
            "system_errors": {
                "test": errors | ({"log_loss": 1.2} if "draws" in cell.settings else {}),
                "standard_error": 0.006,
                "n_test": 1000,
                "fit_cpu_seconds": rng.uniform(1, 5),
                "fold_in_cpu_seconds": 0.5,
            },
            "fit_time": {
                "fit_seconds": rng.uniform(1, 5),
                "gradient_seconds": rng.uniform(0.5, 1),
                "gradients": rng.integers(20, 90),
            },
            "recovery": {
                one: {"validated": rng.uniform(0.1, 0.2), "tuned": rng.uniform(0.1, 0.2)}
                for one in ("held_out", "all")
            },
            "stage_error": {"zero_one": rng.uniform(0.1, 0.4)},
            "convergence": {"objective": sorted(rng.uniform(0, 9, 30), reverse=True)},
            "user_view": {
                "points": rng.normal(size=(10, 2)).tolist(),
                "ratings": [1.0, 2, 3, 4, 5] * 2,
                "direction": [1.0, 0.5],
                "counts": [2] * 5,
                "right": 1.0,
                "thresholds": [-1.0, 0.0, 0.5, 2.0],
                **(
                    {"prototypes": [-1.0, 0, 1, 2, 3], "boundaries": [-0.5, 0.5, 1.5, 2.5]}
                    if cell.settings.get("method") == "PMMMF"
                    else {}
                ),
            },
            "label_measures": {
                **{name: rng.uniform(0.1, 0.9) for name in LABEL_METRICS},
                "for": {
                    target: {name: rng.uniform(0.1, 0.9) for name in LABEL_METRICS}
                    for target in cell.settings.get("targets", ())
                },
            },
            "group_pattern": {
                "factors": rng.integers(0, 2, (6, 9)).astype(float).tolist(),
                "groups": [0, 0, 1, 1, 2, 2, 3, 4, 4],
            },
        }[cell.measure]


def flat(blocks: Any) -> Iterator[Block]:
    for block in blocks:
        yield block
        if isinstance(block, Details):
            yield from flat(block.blocks)


def checked(exhibit: Exhibit, store: Store, scale: Any) -> Verdict:
    """Show an exhibit, draw its figures, and return its verdict."""
    blocks = list(flat(exhibit.show(store, scale)))
    [verdict] = [block for block in blocks if isinstance(block, Verdict)]
    assert blocks[0] is verdict
    assert verdict.why.endswith(".")
    for block in blocks:
        if isinstance(block, Table):
            assert {len(row) for row in block.rows} == {len(block.headings)}
        if isinstance(block, Figure):
            block.draw().canvas.draw()
            assert block.caption
            assert block.description
    return verdict


def test_every_table_and_figure_has_a_name_of_its_own() -> None:
    assert len(ALL) == len(exhibits()) == 25
    assert [one.chapter for one in ALL.values()] == sorted(one.chapter for one in ALL.values())
    assert [one.name for one in exhibits(["nmae", "losses"])] == ["losses", "nmae"]
    with pytest.raises(ValueError, match="no table or figure 'nmea'; the known ones are losses,"):
        exhibits(["nmea"])


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", ALL)
def test_cells_say_all_that_they_depend_on_in_json(name: str, scale: Any) -> None:
    cells = ALL[name].cells(scale)
    assert len({cell.key for cell in cells}) == len(cells)
    for cell in cells:
        assert cell.measure in MEASURES
        assert json.loads(json.dumps(cell.settings)) == cell.settings


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", ALL)
def test_it_is_shown_before_anything_has_been_run(name: str, scale: Any, tmp_path: Path) -> None:
    verdict = checked(ALL[name], Store(tmp_path), scale)
    needs_none = not ALL[name].cells(scale)
    recomputed = name.endswith(("friedman", "critical-difference"))
    assert (verdict.outcome == "not run") == (not needs_none and not recomputed)


@pytest.mark.parametrize("scale", SCALES)
@pytest.mark.parametrize("name", ALL)
def test_it_is_shown_with_all_cells(name: str, scale: Any) -> None:
    assert checked(ALL[name], Imagined(), scale).outcome != "not run"


def test_examples_that_need_no_run_are_reproduced(tmp_path: Path) -> None:
    for name in ("losses", "two-levels", "worked-example"):
        assert checked(ALL[name], Store(tmp_path), "full").outcome == "reproduced"


def test_the_printed_statistics_of_chapter_6_follow_from_its_table_and_of_5_do_not(
    tmp_path: Path,
) -> None:
    store = Store(tmp_path)
    assert checked(ALL["grople-friedman"], store, "full").outcome == "reproduced"
    verdict = checked(ALL["mlc-hmf-friedman"], store, "full")
    assert verdict.outcome == "slip in the thesis"
    assert "6 of the 6 printed F do not follow" in verdict.why
    table = next(b for b in ALL["mlc-hmf-friedman"].show(store, "full") if isinstance(b, Table))
    again = [row[2].text for row in table.rows]  # type: ignore[union-attr]
    assert again == ["8.393", "7.384", "6.938", "9.064", "6.039", "7.422"]


RETUNED = Retuned(TABLE, "macro_f1", ["genbase", "medical"])


def test_both_targets_are_chosen_in_the_same_cells() -> None:
    for cell in TABLE.cells_at("full", "medical", "GroPLE"):
        assert cell.settings["targets"] == ["accuracy", "macro_f1"]
    for cell in TABLE.cells_at("quick", "medical", "GroPLE"):
        assert "targets" not in cell.settings


def test_quick_version_tunes_nothing(tmp_path: Path) -> None:
    assert RETUNED.blocks(Store(tmp_path), "quick") == []
    assert RETUNED.describe(Store(tmp_path), "quick") == ""


def test_both_choices_stand_beside_the_published_figure(tmp_path: Path) -> None:
    store = Store(tmp_path)
    other = {"macro_f1": {"macro_f1": 0.5, "accuracy": 0.625}}
    for cell in TABLE.cells_at("full", "medical", "GroPLE"):
        store.add(cell, {"macro_f1": 0.25, "accuracy": 0.75, "for": other}, seconds=1.0)
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


def test_methods_that_were_never_run_do_not_hide_the_others(tmp_path: Path) -> None:
    store, measures = Store(tmp_path), {"macro_f1": 0.25, "accuracy": 0.5}
    for title, name in product(("medical", "genbase"), ("PLST", "BSVM")):
        for cell in TABLE.cells_at("full", title, name):
            store.add(cell, measures | {"accuracy": 0.75 if name == "PLST" else 0.5}, seconds=1.0)
    scores = TABLE.scores(store, "full", "accuracy")
    assert scores == {
        "PLST": {"genbase": 0.75, "medical": 0.75},
        "BSVM": {"genbase": 0.5, "medical": 0.5},
    }
    found = TABLE.describe_lead(store, "full", "PLST", "BSVM")
    assert found == "PLST against BSVM: +0.250 as published (2 sets)"
    assert TABLE.describe_lead(store, "full", "FAiE", "PLST") == ""


def test_forms_of_features_are_searched_where_they_are_dense_and_slow_methods_save_folds() -> None:
    table = chapter5.TABLE
    [grid] = table.cells_at("full", "plant", "MLC-HMF")[0].settings["search"]
    assert grid["features"] == ["scaled", "raw"]
    assert "features" not in table.cells_at("full", "medical", "MLC-HMF")[0].settings["search"][0]
    assert [len(table.cells_at("full", one, "LIFT")) for one in ("ohsumed", "medical")] == [3, 10]


@pytest.mark.parametrize("table", [chapter5.TABLE, TABLE])
def test_every_published_method_has_columns_under_both_rules(table: Any) -> None:
    assert set(table.published.methods) <= set(table.candidates)
    assert set(table.published.methods) <= set(table.shared)
    for one in (*table.candidates.values(), *table.shared.values()):
        assert one.method in LABEL_METHODS
