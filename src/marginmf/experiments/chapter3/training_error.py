"""Test error against training error of HMF and MMMF."""

from marginmf.experiments.blocks import Block, Figure, Text, Verdict
from marginmf.experiments.cell import Cell
from marginmf.experiments.exhibit import Exhibit, Scale
from marginmf.experiments.figures import trade_off_figure
from marginmf.experiments.grids import sixteenths
from marginmf.experiments.samples import figure
from marginmf.experiments.store import Store
from marginmf.experiments.trade_offs import TradeOff


def trade_off(scale: Scale) -> TradeOff:
    """Return the two curves."""
    quick = scale == "quick"
    params = {"n_factors": 20 if quick else 100, "tol": 1e-4, "max_iter": 200}
    regs = sixteenths(range(4, 41, 12 if quick else 4))
    return TradeOff("ml-100k", {"HMF": params, "MMMF": params}, regs, 1 if quick else 3, "nmae")


def cells(scale: Scale) -> list[Cell]:
    """Return both methods at every weight of the penalty."""
    return trade_off(scale).cells()


def show(store: Store, scale: Scale) -> list[Block]:
    """Draw the curves, and say which is lower at equal training error."""
    curves = trade_off(scale)
    gap = curves.gap(store, "HMF", "MMMF")
    if gap is None:
        return [Verdict("not run", "the curves have no training error in common yet.")]
    verdict = Verdict(
        "reproduced" if gap > 0 else "not reproduced",
        f"at equal training error the test NMAE of HMF is {figure(abs(gap))} "
        f"{'less' if gap > 0 else 'more'} than that of MMMF, on average over the range that both "
        "reach.",
    )
    return [
        verdict,
        Text(
            "MovieLens 100K, 80 % of the ratings to learn from; along a curve the penalty gets "
            "weaker from right to left. HMF has one weight for all its stages here."
        ),
        Figure(
            lambda: trade_off_figure({"": curves}, store, "NMAE"),
            "Test error against training error",
            "Two curves of test NMAE against training NMAE, for HMF and for MMMF.",
        ),
    ]


EXHIBIT = Exhibit("training-error", 3, "figure", "Test error against training error", cells, show)
