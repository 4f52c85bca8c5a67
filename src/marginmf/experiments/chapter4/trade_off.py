"""Test error against training error on made-up matrices of growing density."""

from collections.abc import Mapping, Sequence
from typing import Any

from marginmf.experiments.blocks import Block, Figure, Table, Text, Verdict
from marginmf.experiments.cell import Cell
from marginmf.experiments.data import cut, made
from marginmf.experiments.exhibit import Exhibit, Scale
from marginmf.experiments.figures import trade_off_figure
from marginmf.experiments.grids import sixteenths
from marginmf.experiments.samples import difference
from marginmf.experiments.store import Store
from marginmf.experiments.trade_offs import TradeOff

OTHERS = ("MMMF", "ALS")
#: For every panel, one for each of the others; None where the curves have no range in common.
Gaps = Mapping[str, Sequence[float | None]]


def panels(scale: Scale) -> dict[str, TradeOff]:
    """Return a panel for every density, by its title."""
    shares = (0.1, 0.3) if scale == "quick" else (0.05, 0.1, 0.15, 0.2, 0.25, 0.3)
    return {
        f"{share:.0%} observed": _panel(made(_size(scale), 10, share, 0), scale) for share in shares
    }


def other_panels(scale: Scale) -> dict[str, TradeOff]:
    """Return panels for matrices of another kind, to tell what depends on how they are made."""
    if scale == "quick":
        return {}
    return {
        f"{share:.0%} observed, noise {noise:g}": _panel(
            cut(_size(scale), 10, share, noise, 0), scale
        )
        for share in (0.1, 0.3)
        for noise in (0.0, 0.5)
    }


def _size(scale: Scale) -> int:
    return 200 if scale == "quick" else 1000


def _panel(data: dict[str, Any], scale: Scale) -> TradeOff:
    quick = scale == "quick"
    margin = {"n_factors": 20 if quick else 100, "tol": 1e-4, "max_iter": 200}
    methods = {"PMMMF": margin, "MMMF": margin, "ALS": {"n_factors": margin["n_factors"]}}
    regs = sixteenths(range(1, 26, 8 if quick else 4))
    return TradeOff(data, methods, regs, 1 if quick else 3, "mae")


def cells(scale: Scale) -> list[Cell]:
    """Return all methods at every weight of the penalty, in every panel."""
    every = [*panels(scale).values(), *other_panels(scale).values()]
    return [cell for panel in every for cell in panel.cells()]


def show(store: Store, scale: Scale) -> list[Block]:
    """Draw the panels, and list who is lower at equal training error."""
    shown, others = panels(scale), other_panels(scale)
    gaps, other_gaps = _gaps(shown, store), _gaps(others, store)
    better, known = _better(gaps)
    if not known:
        return [Verdict("not run", "the curves have no training error in common yet.")]
    others_better, others_known = _better(other_gaps)
    besides = (
        f" On matrices whose scores lie anywhere between the levels it has, in {others_better} of "
        f"{others_known}: see the second table."
        if others_known
        else ""
    )
    verdict = Verdict(
        "reproduced" if better == known else "not reproduced",
        f"at equal training error PMMMF has the smaller test error in {better} of {known} "
        f"comparisons: see the table.{besides}",
    )
    recipe = cells(scale)[0].settings["data"]
    blocks: list[Block] = [
        verdict,
        Text(
            f"Matrices of {recipe['n_users']} x {recipe['n_items']} stars made from "
            f"{recipe['n_factors']} factors, by the thesis's recipe: ratings and factors are "
            "fitted to each other in turn until they agree, so there is no noise and most entries "
            "have three stars. Of the observed entries, 80 % are to learn from. Along a curve the "
            "penalty gets weaker from right to left."
        ),
        *_drawn(shown, gaps, store, "matrices of the thesis's recipe"),
    ]
    if others_known:
        blocks += [
            Text(
                "The same for products of as many normal factors, with normal noise of that many "
                "times their standard deviation, cut where levels become as common as on "
                "MovieLens 100K."
            ),
            *_drawn(others, other_gaps, store, "matrices cut into levels"),
        ]
    return blocks


def _gaps(shown: Mapping[str, TradeOff], store: Store) -> Gaps:
    """Return by how much the test error of the others is larger, in every panel."""
    return {
        title: [panel.gap(store, "PMMMF", other) for other in OTHERS]
        for title, panel in shown.items()
    }


def _better(gaps: Gaps) -> tuple[int, int]:
    """Return in how many comparisons PMMMF has the smaller test error, and how many there are."""
    known = [gap for along in gaps.values() for gap in along if gap is not None]
    return sum(gap > 0 for gap in known), len(known)


def _drawn(shown: Mapping[str, TradeOff], gaps: Gaps, store: Store, kind: str) -> list[Block]:
    return [
        Figure(
            lambda: trade_off_figure(shown, store, "MAE"),
            f"Test error against training error, {kind}",
            "A panel for every density, each with the curves of PMMMF, MMMF and ALS.",
        ),
        Table(
            ["panel", *(f"{other} minus PMMMF" for other in OTHERS)],
            [[title, *map(_gap, along)] for title, along in gaps.items()],
            f"By how much the test MAE of others is larger at equal training error, {kind}",
        ),
    ]


def _gap(gap: float | None) -> str:
    return "no common range" if gap is None else difference(gap, 0.0)


EXHIBIT = Exhibit("trade-off", 4, "figure", "Trade-off at 5 to 30 % observed", cells, show)
