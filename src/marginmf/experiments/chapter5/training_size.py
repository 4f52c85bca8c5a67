"""Hamming loss over the weight of the penalty, for training sets of several sizes."""

import numpy as np

from marginmf.experiments.blocks import Block, Entry, Figure, Table, Text, Verdict
from marginmf.experiments.cell import Cell, splits
from marginmf.experiments.chapter5.contenders import REGS, TREE
from marginmf.experiments.exhibit import Exhibit, Scale
from marginmf.experiments.figures import curves_figure
from marginmf.experiments.label_tables import SIGN
from marginmf.experiments.samples import Sample, at, entry, measured, once_run
from marginmf.experiments.store import Store

#: A difference in Hamming loss that does not matter: a tenth of what folds of emotions differ by.
NEGLIGIBLE = 0.003


def sizes_at(scale: Scale) -> tuple[float, ...]:
    """Return the shares of the rows that are learned from."""
    return (0.4, 1.0) if scale == "quick" else (0.2, 0.4, 0.6, 0.8, 1.0)


def cells_for(size: float, reg: float, scale: Scale) -> list[Cell]:
    """Return the repetitions of one point."""
    return splits(
        "label_measures",
        1 if scale == "quick" else 10,
        data="emotions",
        protocol={"test": 0.1, "train": size},
        method="MLC-HMF",
        params={**TREE, "reg": reg},
        rule=SIGN,
    )


def cells(scale: Scale) -> list[Cell]:
    """Return every size at every weight of the penalty."""
    return [c for size in sizes_at(scale) for reg in REGS for c in cells_for(size, reg, scale)]


@once_run
def show(store: Store, scale: Scale) -> list[Block]:
    """Draw a curve for every size, and list where each is lowest."""
    losses: dict[str, list[Sample]] = {
        f"{size:.0%}": [measured(store, cells_for(size, reg, scale), at("hamming")) for reg in REGS]
        for size in sizes_at(scale)
    }
    means = np.array([[one.mean for one in along] for along in losses.values()])
    best = dict(zip(losses, means.argmin(axis=1).tolist(), strict=True))
    # What one weight for all sizes costs each of them, beside the best weight of its own.
    costs = (means - means.min(axis=1, keepdims=True)).max(axis=0)
    shared = int(costs.argmin())
    verdict = Verdict(
        "reproduced" if costs[shared] <= NEGLIGIBLE else "not reproduced",
        "the best weight is "
        + ", ".join(f"{REGS[place]:g} with {name}" for name, place in best.items())
        + f"; {REGS[shared]:g} for all sizes costs at most {costs[shared]:.4f} of Hamming loss.",
    )
    rows: list[list[Entry | str]] = [
        [name, *(entry(one, 3, best=k == best[name]) for k, one in enumerate(along))]
        for name, along in losses.items()
    ]
    n_splits = len(cells_for(1.0, REGS[0], scale))
    return [
        verdict,
        Text(
            "Emotions: a random tenth of the rows for the test, and a share of the others to learn "
            f"from, {n_splits} times (seeds from 0; the thesis: 3 times), tolerance 0.02."
        ),
        Figure(
            lambda: curves_figure(
                REGS, losses, "weight of the penalty", "Hamming loss", log_x=True, spreads=False
            ),
            "Hamming loss over the weight of the penalty",
            "Hamming loss against the weight of the penalty, a curve for each training size.",
        ),
        Table(["training rows", *(f"{reg:g}" for reg in REGS)], rows, "Hamming loss"),
    ]


EXHIBIT = Exhibit(
    "training-size", 5, "figure", "Hamming loss over the penalty and the training size", cells, show
)
