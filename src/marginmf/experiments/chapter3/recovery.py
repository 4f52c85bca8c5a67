"""How well a matrix is recovered from a share of its entries, with so many factors."""

import numpy as np

from marginmf.experiments.blocks import Block, Figure, Text, Verdict
from marginmf.experiments.cell import Cell, splits
from marginmf.experiments.data import made
from marginmf.experiments.exhibit import Exhibit, Scale
from marginmf.experiments.figures import heat_maps_figure
from marginmf.experiments.samples import at, measured, once_run
from marginmf.experiments.store import Store

METHODS = ("MMMF", "HMF")
#: From this share on, the thesis says, HMF is ahead.
CLAIMED_FROM = 0.4


def shares_at(scale: Scale) -> tuple[float, ...]:
    """Return the shares of the entries that are learned from."""
    return (0.2, 0.5, 0.8) if scale == "quick" else (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)


def ranks_at(scale: Scale) -> tuple[int, ...]:
    """Return the numbers of factors."""
    return (2, 5, 10) if scale == "quick" else (2, 5, 10, 15, 20, 30)


def cells_for(method: str, share: float, rank: int, scale: Scale) -> list[Cell]:
    """Return the splits of one point."""
    quick = scale == "quick"
    return splits(
        "rating_errors",
        1 if quick else 3,
        data=made(150 if quick else 500, 5 if quick else 10, 1.0, 0),
        protocol={"name": "share", "train": share},
        method=method,
        params={"n_factors": rank},
    )


def cells(scale: Scale) -> list[Cell]:
    """Return both methods with every share and every number of factors."""
    return [
        cell
        for share in shares_at(scale)
        for rank in ranks_at(scale)
        for method in METHODS
        for cell in cells_for(method, share, rank, scale)
    ]


@once_run
def show(store: Store, scale: Scale) -> list[Block]:
    """Draw a map for each method, and say where HMF is ahead."""
    shares, ranks = shares_at(scale), ranks_at(scale)
    maps = {
        method: np.array(
            [
                [
                    measured(store, cells_for(method, share, rank, scale), at("test", "fre")).mean
                    for share in shares
                ]
                for rank in ranks
            ]
        )
        for method in METHODS
    }
    ahead = maps["HMF"] < maps["MMMF"]
    much = np.array(shares) >= CLAIMED_FROM
    holds = ahead[:, much].mean()
    verdict = Verdict(
        "reproduced" if holds > 0.5 else "not reproduced",
        f"with at least {CLAIMED_FROM:.0%} of the entries, HMF has the smaller error in "
        f"{ahead[:, much].sum()} of {ahead[:, much].size} places (mean FRE "
        f"{maps['HMF'][:, much].mean():.3f} against {maps['MMMF'][:, much].mean():.3f}); with "
        f"fewer, in {ahead[:, ~much].sum()} of {ahead[:, ~much].size} "
        f"({maps['HMF'][:, ~much].mean():.3f} against {maps['MMMF'][:, ~much].mean():.3f}).",
    )
    recipe = cells(scale)[0].settings["data"]
    return [
        verdict,
        Text(
            f"A matrix of {recipe['n_users']} x {recipe['n_items']} stars made from "
            f"{recipe['n_factors']} factors without noise (the thesis does not say how many it "
            "used): all levels follow from one set of factors, as MMMF assumes, where HMF learns a "
            "set for each stage. The error is the Frobenius-norm relative error on the entries "
            "that were not learned from; the weight of the penalty is chosen on ratings held out "
            "of those that were."
        ),
        Figure(
            lambda: heat_maps_figure(
                maps,
                [f"{share:.0%}" for share in shares],
                [str(rank) for rank in ranks],
                "observed entries",
                "factors",
                "FRE",
            ),
            "Error of recovery",
            "Two heat maps, for MMMF and for HMF, of the error against the share of observed "
            "entries and the number of factors.",
        ),
    ]


EXHIBIT = Exhibit("recovery", 3, "figure", "Recovery of a matrix from a part of it", cells, show)
