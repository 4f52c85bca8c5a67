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
    find_lead,
    find_sample,
    format_lead,
    judge,
    judge_cost,
    judge_lead,
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


@pytest.mark.parametrize(
    ("leads", "outcome"),
    [
        ((0.02, 0.03, 0.04), "reproduced"),
        ((-0.02, -0.03, -0.04), "not reproduced"),
        # 1.2 standard errors, as the cost of one penalty for all sizes of chapter 5.
        ((0.0233, 0.0, -0.0071), "within noise"),
        ((0.01, 0.01), "reproduced"),
        ((0.0, 0.0), "within noise"),
        ((0.5,), "within noise"),
    ],
)
def test_a_lead_is_one_beyond_two_standard_errors(leads: tuple[float, ...], outcome: str) -> None:
    assert judge_lead(Sample(leads)) == outcome


@pytest.mark.parametrize(
    ("costs", "negligible", "outcome"),
    [
        ((-0.02, -0.03), 0.0, "reproduced"),
        ((0.01, -0.01, 0.01), 0.0, "reproduced"),
        ((0.02, 0.0, 0.01), 0.0, "within noise"),
        ((0.02, 0.03, 0.04), 0.0, "not reproduced"),
        ((0.02, 0.03, 0.04), 0.03, "reproduced"),
    ],
)
def test_a_cost_may_be_negligible_or_noise(
    costs: tuple[float, ...], negligible: float, outcome: str
) -> None:
    assert judge_cost(Sample(costs), negligible) == outcome


def test_a_lead_is_written_with_its_standard_error() -> None:
    assert format_lead(Sample((0.02, 0.03, 0.04))) == "+.0300 ± .0058"
    assert format_lead(Sample((0.02,))) == "+.0200"


def test_a_slip_in_the_thesis_is_worse_than_noise_and_better_than_a_miss() -> None:
    outcomes = ["within noise", "slip in the thesis"]
    assert worst_verdict(outcomes, "x.").outcome == "slip in the thesis"
    assert worst_verdict([*outcomes, "not reproduced"], "x.").outcome == "not reproduced"


def test_methods_are_compared_on_the_splits_that_both_have(tmp_path: Path) -> None:
    store, cells = kept(tmp_path, a=[0.1, 0.4, 0.2], b=[0.2, 0.2])
    second = [*cells["b"], Cell("errors", {"method": "b", "split": 2})]
    said = paired_claim(store, cells["a"], second, pick("error"), "A", "B")
    assert said == (
        "A is worse than B by .0500 ± .1500 on average, within noise, better on 1 of 2 splits"
    )
    assert find_lead(store, cells["a"], second, pick("error")).values == pytest.approx((0.1, -0.2))
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
    assert curves.lead(store, "A", "B").values == pytest.approx((0.05,))
    assert curves.lead(store, "B", "A").values == pytest.approx((-0.05,))
    assert curves.worst(store, "B").values == pytest.approx((0.4,))
    unknown = TradeOff("other", {"A": {}, "B": {}}, [1.0, 2.0], 1, "mae")
    assert unknown.lead(store, "A", "B") is None
    assert unknown.worst(store, "A") is None


def test_curves_of_splits_are_compared_one_by_one(tmp_path: Path) -> None:
    curves = TradeOff("any", {"A": {}, "B": {}}, [1.0, 2.0], 2, "mae", {"B": [0.5, 1.0, 2.0]})
    store = Store(tmp_path)
    store.begin("full")
    for method, by_split in (("A", (0.0, 0.0)), ("B", (0.05, 0.07))):
        for strength in curves.points(method):
            for cell, more in zip(curves.cells_at(method, strength), by_split, strict=True):
                error = strength / 10
                store.add(cell, {"train": {"mae": error}, "test": {"mae": error + more}}, 1.0)
    assert len(curves.cells()) == 10
    assert curves.lead(store, "A", "B").values == pytest.approx((0.05, 0.07))


def test_stages_may_have_multiples_of_what_was_chosen_for_them() -> None:
    curves = TradeOff("any", {"A": {"tol": 1}, "B": {}}, [7.0], 1, "mae", {"A": [0.5]})
    [scaled, plain] = curves.cells()
    assert scaled.settings["params"] == {"tol": 1}
    assert (scaled.settings["base"], scaled.settings["scale"]) == ("auto", 0.5)
    assert plain.settings["params"] == {"reg": 7.0}
    assert "scale" not in plain.settings
