"""Accuracy of GroPLE over the two penalties of its label embedding."""

import numpy as np

from marginmf.experiments.blocks import Block, Figure, Text, Verdict
from marginmf.experiments.cell import Cell, splits
from marginmf.experiments.chapter6.contenders import SPARSE_REGS
from marginmf.experiments.exhibit import Exhibit, Scale
from marginmf.experiments.figures import heat_maps_figure
from marginmf.experiments.label_tables import GLOBAL
from marginmf.experiments.samples import at, measured, once_run
from marginmf.experiments.store import Store

DATA = ("medical", "genbase")


def regs_at(scale: Scale) -> list[float]:
    """Return the weights of both penalties."""
    return [1e-3, 1.0, 1e2] if scale == "quick" else [1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2]


def cells_for(data: str, basis: float, group: float, scale: Scale) -> list[Cell]:
    """Return the folds of one point."""
    params = {"n_factors": 100, "n_groups": 5, "reg_basis": basis, "reg_group": group}
    searched = {} if scale == "quick" else {"search": [{"reg_sparse": SPARSE_REGS}]}
    return splits(
        "label_measures",
        1 if scale == "quick" else 5,
        data=data,
        protocol={"folds": 5},
        method="GroPLE",
        params=params,
        rule=GLOBAL,
        **searched,
    )


def cells(scale: Scale) -> list[Cell]:
    """Return every pair of penalties on both data sets."""
    regs = regs_at(scale)
    return [
        cell
        for data in DATA
        for basis in regs
        for group in regs
        for cell in cells_for(data, basis, group, scale)
    ]


@once_run
def show(store: Store, scale: Scale) -> list[Block]:
    """Draw a map for each data set, and say what large penalties do."""
    regs = regs_at(scale)
    maps = {
        data: np.array(
            [
                [
                    measured(store, cells_for(data, basis, group, scale), at("accuracy")).mean
                    for group in regs
                ]
                for basis in regs
            ]
        )
        for data in DATA
    }
    worse_basis = all(one[-1].mean() < one[0].mean() - 0.01 for one in maps.values())
    worse_group = all(one[0, -1] < one[0, 0] - 0.01 for one in maps.values())
    words = "; ".join(
        f"{data}: from {one[0].mean():.3f} at lambda1 = {regs[0]:g} to {one[-1].mean():.3f} at "
        f"{regs[-1]:g}, and with the smallest lambda1 "
        + ", ".join(f"{value:.3f}" for value in one[0])
        for data, one in maps.items()
    )
    return [
        Verdict(
            "reproduced" if worse_basis and worse_group else "not reproduced",
            f"mean accuracy, {words} as lambda2 grows from {regs[0]:g} to {regs[-1]:g}. The "
            "thesis: large lambda1 is worse; lambda2 matters little, but 1 and more often harms.",
        ),
        Text(
            "Five folds, five groups, 100 factors, alpha = 0; beta from {0.1, 1, 10} and one "
            "threshold for all labels are chosen inside the training folds."
        ),
        Figure(
            lambda: heat_maps_figure(
                maps,
                [f"{one:g}" for one in regs],
                [f"{one:g}" for one in regs],
                "lambda2",
                "lambda1",
                "accuracy",
                shared=False,
            ),
            "Accuracy over both penalties",
            "Two heat maps of accuracy against lambda1 and lambda2, for medical and genbase.",
        ),
    ]


EXHIBIT = Exhibit("sensitivity", 6, "figure", "Sensitivity to lambda1 and lambda2", cells, show)
