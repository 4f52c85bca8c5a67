"""Test error against the number of factors, at equal training error."""

from collections.abc import Sequence

from marginmf.experiments.blocks import Block, Entry, Figure, Table, Text, Verdict
from marginmf.experiments.cell import Cell, splits
from marginmf.experiments.exhibit import Exhibit, Scale
from marginmf.experiments.figures import curves_figure
from marginmf.experiments.samples import Sample, at, entry, figure, measured, once_run
from marginmf.experiments.store import Store
from marginmf.experiments.trade_offs import EIGHTY

METHODS = ("HMF", "MMMF")
BAND = {"measure": "nmae", "low": 0.06, "high": 0.08}


def ranks_at(scale: Scale) -> tuple[int, ...]:
    """Return the numbers of factors, descending."""
    return (100, 20, 5) if scale == "quick" else (100, 70, 50, 30, 20, 10, 5, 2)


def cells_for(method: str, rank: int, scale: Scale) -> list[Cell]:
    """Return the splits of one point."""
    return splits(
        "rating_errors",
        1 if scale == "quick" else 3,
        data="ml-100k",
        protocol=EIGHTY,
        method=method,
        params={"n_factors": rank, "tol": 1e-4, "max_iter": 200},
        band=BAND,
    )


def cells(scale: Scale) -> list[Cell]:
    """Return both methods with every number of factors."""
    ranks = ranks_at(scale)
    return [cell for rank in ranks for name in METHODS for cell in cells_for(name, rank, scale)]


@once_run
def show(store: Store, scale: Scale) -> list[Block]:
    """Draw the test errors, and say whose grow more as factors get fewer."""
    ranks, errors = ranks_at(scale), {}
    for part in ("test", "train"):
        for name in METHODS:
            errors[name, part] = [
                measured(store, cells_for(name, rank, scale), at(part, "nmae")) for rank in ranks
            ]
    growth = {name: _growth(errors[name, "test"]) for name in METHODS}
    holds = growth["HMF"] < growth["MMMF"]
    verdict = Verdict(
        "reproduced" if holds else "not reproduced",
        f"as factors get fewer than {ranks[0]}, the test NMAE of HMF grows by up to "
        f"{figure(growth['HMF'])} and that of MMMF by up to {figure(growth['MMMF'])}. With few "
        "factors neither can learn the training ratings so well as the band asks, whatever the "
        "penalty; with very few they cannot even learn the noise, and both do better again.",
    )
    rows: list[list[Entry | str]] = [
        [
            str(rank),
            *(entry(errors[name, part][k]) for name in METHODS for part in ("test", "train")),
        ]
        for k, rank in enumerate(ranks)
    ]
    headings = ["factors", *(f"{name} {part}" for name in METHODS for part in ("test", "train"))]
    return [
        verdict,
        Text(
            "MovieLens 100K, 80 % of the ratings to learn from. For every number of factors the "
            "weight of the penalty is the one that brings the training NMAE into [0.06, 0.08], or "
            "as near as it gets; HMF has one weight for all its stages."
        ),
        Figure(
            lambda: curves_figure(
                [float(rank) for rank in ranks],
                {name: errors[name, "test"] for name in METHODS},
                "factors",
                "test NMAE",
                log_x=True,
                descending=True,
            ),
            "Test error as factors get fewer",
            "Test NMAE of HMF and of MMMF against the number of factors, from many to few.",
        ),
        Table(headings, rows, "NMAE on test and training ratings"),
    ]


def _growth(along: Sequence[Sample]) -> float:
    """Return how far the error rises above the one with the most factors."""
    return max(one.mean for one in along) - along[0].mean


EXHIBIT = Exhibit("ranks", 3, "figure", "Error against the number of factors", cells, show)
