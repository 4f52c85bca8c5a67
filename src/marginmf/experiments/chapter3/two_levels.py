"""The example of two levels: scores, losses, and its picture."""

import numpy as np

from marginmf.experiments.blocks import Block, Details, Figure, Table, Text, Verdict
from marginmf.experiments.exhibit import Exhibit, Scale
from marginmf.experiments.figures import two_level_figure
from marginmf.experiments.published import WorkedExample, worked_example
from marginmf.experiments.store import Store
from marginmf.losses import two_level_loss

#: Factors are printed with two places, so scores of about 2 are known to this.
ROUNDING = 0.015


def agreement(example: WorkedExample, name: str) -> float:
    """Return how far the printed losses of observed entries are from ours, at the most."""
    Y = example["Y"]
    ours = two_level_loss(name).value(Y * example["scores"])
    return float(np.abs(ours - example[name])[Y != 0].max())


def show(store: Store, scale: Scale) -> list[Block]:
    """Compare scores and losses with what is printed, and draw the items among the users' lines."""
    example = worked_example("likes", corrected=True)
    scores = example["U"] @ example["V"].T
    off = float(np.abs(scores - example["scores"]).max())
    losses = {name: agreement(example, name) for name in ("hinge", "smooth_hinge")}
    holds = off < ROUNDING and max(losses.values()) < ROUNDING
    slips = [
        [".".join(map(str, slip.where)), str(slip.printed), str(slip.right), slip.why]
        for slip in example.slips
    ]
    return [
        Verdict(
            "reproduced" if holds else "not reproduced",
            f"scores agree to {off:.3f}, hinge losses to {losses['hinge']:.3f} and smooth hinge "
            f"losses to {losses['smooth_hinge']:.4f}, once {len(slips)} slips in print are "
            "corrected.",
        ),
        Text(
            "Items are points, users are lines where their score is 0.1; the arrow points to "
            "the side that the user likes."
        ),
        Figure(
            lambda: two_level_figure(example),
            "Items among the users' lines",
            "Seven points and seven lines in the plane, each with an arrow to its positive side.",
        ),
        Details(
            "What is printed wrong",
            [Table(["where", "printed", "right", "why"], slips, "Slips", words=4)],
        ),
    ]


EXHIBIT = Exhibit(
    "two-levels", 3, "figure", "Geometry of the two-level example", lambda scale: [], show
)
