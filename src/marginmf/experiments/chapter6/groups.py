"""Which factors each group of labels uses."""

from functools import partial

import numpy as np

from marginmf.experiments.blocks import Block, Figure, Text, Verdict
from marginmf.experiments.cell import Cell
from marginmf.experiments.chapter6.contenders import GROPLE
from marginmf.experiments.exhibit import Exhibit, Scale
from marginmf.experiments.figures import groups_figure
from marginmf.experiments.samples import needed, once_run
from marginmf.experiments.store import Store


def cells(scale: Scale) -> list[Cell]:
    """Return one fit to medical, with five groups."""
    return [Cell("group_pattern", {"data": "medical", "params": {**GROPLE, "n_groups": 5}})]


@once_run
def show(store: Store, scale: Scale) -> list[Block]:
    """Draw the factors of all labels, group by group."""
    [cell] = cells(scale)
    found = needed(store, cell)
    factors, groups = np.array(found["factors"]), np.array(found["groups"])
    names = np.unique(groups)
    used = np.array([(factors[:, groups == one] != 0).any(axis=1) for one in names])
    somewhere = used.any(axis=0)
    shared = used[:, somewhere].mean()
    holds = bool(somewhere.any()) and shared < 0.75
    return [
        Verdict(
            "reproduced" if holds else "not reproduced",
            f"of the {int(somewhere.sum())} factors that are in use, a group uses "
            f"{shared:.0%} on average: groups "
            f"{'differ in' if holds else 'hardly differ in'} which factors are zero for all their "
            "labels.",
        ),
        Text("Medical, five groups of labels, lambda1 = 0.001, lambda2 = 1; fitted to all rows."),
        Figure(
            partial(groups_figure, factors, groups),
            "The factors of the labels, by group",
            "A matrix of factors by labels; rows that are white within a group are not used by it.",
        ),
    ]


EXHIBIT = Exhibit("group-sparsity", 6, "figure", "Sparsity of groups of labels", cells, show)
