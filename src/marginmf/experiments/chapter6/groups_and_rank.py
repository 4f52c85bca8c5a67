"""Accuracy and macro F1 of GroPLE over the number of groups and of factors."""

from functools import partial

from marginmf.experiments.blocks import Block, Figure, Table, Text, Verdict
from marginmf.experiments.cell import Cell, splits
from marginmf.experiments.chapter6.contenders import GROPLE
from marginmf.experiments.exhibit import Exhibit, Scale
from marginmf.experiments.figures import curves_figure
from marginmf.experiments.label_tables import GLOBAL, MEASURES
from marginmf.experiments.samples import Sample, at, entry, measured, once_run
from marginmf.experiments.store import Store

SHOWN = ("accuracy", "macro_f1")


def groups_at(scale: Scale) -> tuple[int, ...]:
    """Return the numbers of groups."""
    return (1, 10) if scale == "quick" else (1, 10, 20, 30, 40)


def ranks_at(scale: Scale) -> tuple[int, ...]:
    """Return the numbers of factors."""
    return (20, 100) if scale == "quick" else (20, 40, 60, 80, 100)


def cells_for(n_groups: int, rank: int, scale: Scale) -> list[Cell]:
    """Return the folds of one point."""
    return splits(
        "label_measures",
        1 if scale == "quick" else 5,
        data="rcv1subset1-944",
        protocol={"folds": 5},
        method="GroPLE",
        params={**GROPLE, "n_groups": n_groups, "n_factors": rank},
        rule=GLOBAL,
    )


def cells(scale: Scale) -> list[Cell]:
    """Return every number of groups with every number of factors."""
    return [
        cell
        for n_groups in groups_at(scale)
        for rank in ranks_at(scale)
        for cell in cells_for(n_groups, rank, scale)
    ]


@once_run
def show(store: Store, scale: Scale) -> list[Block]:
    """Draw a curve for every number of groups, and say whether groups help."""
    ranks = ranks_at(scale)
    found: dict[str, dict[str, list[Sample]]] = {
        measure: {
            f"K = {n_groups}": [
                measured(store, cells_for(n_groups, rank, scale), at(measure)) for rank in ranks
            ]
            for n_groups in groups_at(scale)
        }
        for measure in SHOWN
    }
    last = {name: along[-1] for name, along in found["accuracy"].items()}
    alone = last.pop("K = 1")
    name, most = max(last.items(), key=lambda pair: pair[1].mean)
    gain, spread = most.mean - alone.mean, max(most.spread, alone.spread)
    return [
        Verdict(
            "reproduced" if gain > spread > 0 else "not reproduced",
            f"with {ranks[-1]} factors, accuracy is {alone.mean:.3f} without groups and at most "
            f"{most.mean:.3f} with them ({name}): a gain of {gain:+z.3f}, beside a standard "
            f"deviation over folds of {spread:.3f}.",
        ),
        Text(
            "Subset 1 of rcv1, five folds, lambda1 = 0.001, lambda2 = 1, alpha = 0, beta = 3, one "
            "threshold for all labels chosen inside the training folds."
        ),
        *(
            Figure(
                partial(
                    curves_figure,
                    [float(rank) for rank in ranks],
                    found[measure],
                    "factors",
                    MEASURES[measure],
                    spreads=False,
                ),
                f"{MEASURES[measure]} over factors, for several numbers of groups",
                f"{MEASURES[measure]} against the number of factors, a curve for each number of "
                "groups.",
            )
            for measure in SHOWN
        ),
        *(
            Table(
                ["groups", *(f"{rank} factors" for rank in ranks)],
                [[name, *(entry(one, 3) for one in along)] for name, along in lines.items()],
                MEASURES[measure],
            )
            for measure, lines in found.items()
        ),
    ]


EXHIBIT = Exhibit(
    "groups-and-rank", 6, "figure", "Accuracy over the numbers of groups and factors", cells, show
)
