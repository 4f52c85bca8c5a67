from pathlib import Path

import pytest

from studies.harness import Cell, Store
from studies.harness.markdown import Text, Verdict
from studies.thesis.exhibit import Exhibit
from studies.thesis.published import PublishedFigure
from studies.thesis.samples import (
    NotRunError,
    Sample,
    TradeOff,
    compare_entries,
    find_sample,
    judge,
    make_entry,
    paired_claim,
    pick,
    require_sample,
    worst_verdict,
)


def kept(folder: Path, **found: list[float]) -> tuple[Store, dict[str, list[Cell]]]:
    """Return a store with the errors of methods on splits 0, 1, ..."""
    store = Store(folder)
    store.begin("full")
    cells = {}
    for name, values in found.items():
        cells[name] = [Cell("errors", {"method": name, "split": k}) for k in range(len(values))]
        for cell, value in zip(cells[name], values, strict=True):
            store.add(cell, {"error": value}, 1.0)
    return store, cells


def test_a_sample_has_the_cells_that_were_run(tmp_path: Path) -> None:
    store, cells = kept(tmp_path, a=[0.1, 0.3])
    more = [*cells["a"], Cell("errors", {"method": "a", "split": 2})]
    error = pick("error")
    assert (
        find_sample(store, more, error)
        == require_sample(store, cells["a"], error)
        == Sample((0.1, 0.3))
    )
    assert find_sample(store, more[2:], error) is None
    with pytest.raises(NotRunError, match="errors a 2 has not been run"):
        require_sample(store, more, error)
    assert make_entry(None).text == "not run"
    assert make_entry(Sample((0.5,))).text == ".5000"


def test_an_exhibit_that_needs_all_its_cells_says_which_is_missing(tmp_path: Path) -> None:
    store, cells = kept(tmp_path, a=[0.1])

    class Means(Exhibit):
        def cells_at(self, scale, name: str) -> list[Cell]:
            return cells.get(name, [Cell("errors", {"method": name})])

        def blocks(self, store, scale) -> list[Text]:
            means = [self.sample(store, scale, pick("error"), name).mean for name in scale]
            return [Text(str(mean)) for mean in means]

    assert Means().show(store, "a") == [Text("0.1")]
    assert Means().show(store, "ab") == [Verdict("not run", "errors b has not been run.")]


def test_ours_stands_beside_what_was_published() -> None:
    ours, there = Sample((0.5,)), PublishedFigure(0.52, 0.01)
    assert [one.text for one in compare_entries(make_entry(ours), ours, there)] == [
        ".5200 ± .0100",
        ".5000",
        "-.0200",
    ]
    assert [one.text for one in compare_entries(make_entry(None), None, None)] == [
        "",
        "not run",
        "",
    ]


@pytest.mark.parametrize(
    ("values", "higher", "outcome"),
    [
        ((0.40, 0.40), False, "reproduced"),
        ((0.404, 0.404), False, "within noise"),
        ((0.42, 0.42), False, "not reproduced"),
        ((0.42, 0.42), True, "reproduced"),
        ((0.38, 0.42), True, "reproduced"),
        ((0.38, 0.38), True, "not reproduced"),
    ],
)
def test_a_published_figure_is_judged_by_both_spreads(
    values: tuple[float, ...], higher: bool, outcome: str
) -> None:
    there = PublishedFigure(0.401, 0.003)
    assert judge(Sample(values), there, higher_is_better=higher) == outcome


def test_repetitions_that_agree_by_luck_have_the_spread_of_their_test_sets() -> None:
    ours, there = Sample((0.42, 0.42, 0.42)), PublishedFigure(0.403, 0.002)
    assert judge(ours, there, higher_is_better=False) == "not reproduced"
    assert judge(ours, there, higher_is_better=False, least_spread=0.013) == "within noise"


def test_half_of_the_last_printed_place_is_no_difference() -> None:
    ours, there = Sample((0.0234, 0.0234)), PublishedFigure(0.023, 0.0)
    assert judge(ours, there, higher_is_better=False, digits=3) == "reproduced"
    assert judge(ours, there, higher_is_better=False) == "not reproduced"


def test_the_verdict_on_a_whole_is_the_worst_of_its_parts() -> None:
    assert worst_verdict(["reproduced", "within noise"], "x.").outcome == "within noise"
    assert worst_verdict([], "x.").outcome == "not run"


def test_methods_are_compared_on_the_splits_that_both_have(tmp_path: Path) -> None:
    store, cells = kept(tmp_path, a=[0.1, 0.4, 0.2], b=[0.2, 0.2])
    second = [*cells["b"], Cell("errors", {"method": "b", "split": 2})]
    said = paired_claim(store, cells["a"], second, pick("error"), "A", "B")
    assert said == "A is worse than B by .0500 on average, better on 1 of 2 splits"
    none = paired_claim(store, cells["a"][2:], second[2:], pick("error"), "A", "B")
    assert none == "A and B have no split in common yet"


def test_curves_are_compared_at_equal_training_error(tmp_path: Path) -> None:
    curves = TradeOff("any", {"A": {}, "B": {}}, [1.0, 2.0, 3.0], 1, "mae")
    store = Store(tmp_path)
    store.begin("full")
    for method, shift in (("A", 0.0), ("B", 0.05)):
        for reg in curves.regs:
            values = {"train": {"mae": reg / 10 + shift}, "test": {"mae": reg / 10 + 2 * shift}}
            for cell in curves.cells_at(method, reg):
                store.add(cell, values, 1.0)
    assert curves.curve(store, "A")[0] == [0.1, 0.2, 0.3]
    # On the same training error B's test error is larger by 0.05.
    assert curves.gap(store, "A", "B") == pytest.approx(0.05)
    assert curves.gap(store, "B", "A") == pytest.approx(-0.05)
    assert TradeOff("other", {"A": {}, "B": {}}, [1.0, 2.0], 1, "mae").gap(store, "A", "B") is None
