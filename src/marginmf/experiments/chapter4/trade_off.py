"""Test error against training error on made-up matrices of growing density."""

from marginmf.experiments.blocks import Block, Figure, Table, Text, Verdict
from marginmf.experiments.cell import Cell
from marginmf.experiments.data import made
from marginmf.experiments.exhibit import Exhibit, Scale
from marginmf.experiments.figures import trade_off_figure
from marginmf.experiments.grids import sixteenths
from marginmf.experiments.samples import difference
from marginmf.experiments.store import Store
from marginmf.experiments.trade_offs import TradeOff

OTHERS = ("MMMF", "ALS")


def panels(scale: Scale) -> dict[str, TradeOff]:
    """Return a panel for every density, by its title."""
    quick = scale == "quick"
    margin = {"n_factors": 20 if quick else 100, "tol": 1e-4, "max_iter": 200}
    methods = {"PMMMF": margin, "MMMF": margin, "ALS": {"n_factors": margin["n_factors"]}}
    regs = sixteenths(range(1, 26, 8 if quick else 4))
    return {
        f"{share:.0%} observed": TradeOff(
            made(200 if quick else 1000, 10, share, 0), methods, regs, 1 if quick else 3, "mae"
        )
        for share in ((0.1, 0.3) if quick else (0.05, 0.1, 0.15, 0.2, 0.25, 0.3))
    }


def cells(scale: Scale) -> list[Cell]:
    """Return all methods at every weight of the penalty, in every panel."""
    return [cell for panel in panels(scale).values() for cell in panel.cells()]


def show(store: Store, scale: Scale) -> list[Block]:
    """Draw the panels, and list who is lower at equal training error."""
    found = {
        (title, other): panel.gap(store, "PMMMF", other)
        for title, panel in panels(scale).items()
        for other in OTHERS
    }
    known = {place: gap for place, gap in found.items() if gap is not None}
    if not known:
        return [Verdict("not run", "the curves have no training error in common yet.")]
    better = sum(gap > 0 for gap in known.values())
    verdict = Verdict(
        "reproduced" if better == len(known) else "not reproduced",
        f"at equal training error PMMMF has the smaller test error in {better} of {len(known)} "
        "comparisons: see the table.",
    )
    rows = [[title, *(_gap(found[title, other]) for other in OTHERS)] for title in panels(scale)]
    recipe = cells(scale)[0].settings["data"]
    return [
        verdict,
        Text(
            f"Matrices of {recipe['n_users']} x {recipe['n_items']} stars made from "
            f"{recipe['n_factors']} factors without noise, as ALS and MMMF assume; of the observed "
            "entries, 80 % to learn from. Along a curve the penalty gets weaker from right to left."
        ),
        Figure(
            lambda: trade_off_figure(panels(scale), store, "MAE"),
            "Test error against training error",
            "A panel for every density, each with the curves of PMMMF, MMMF and ALS.",
        ),
        Table(
            ["panel", *(f"{other} minus PMMMF" for other in OTHERS)],
            rows,
            "By how much the test MAE of others is larger, on average, at equal training error",
        ),
    ]


def _gap(gap: float | None) -> str:
    return "no common range" if gap is None else difference(gap, 0.0)


EXHIBIT = Exhibit("trade-off", 4, "figure", "Trade-off at 5 to 30 % observed", cells, show)
