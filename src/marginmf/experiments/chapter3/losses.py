"""The loss functions, drawn."""

from marginmf.experiments.blocks import Block, Figure, Text, Verdict
from marginmf.experiments.exhibit import Exhibit, Scale
from marginmf.experiments.figures import losses_figure
from marginmf.experiments.store import Store
from marginmf.losses import two_level_loss

#: Where the thesis gives the values of the smooth hinge.
PLACES = {-1.0: 1.5, 0.0: 0.5, 0.5: 0.125, 1.0: 0.0, 2.0: 0.0}


def show(store: Store, scale: Scale) -> list[Block]:
    """Draw the losses, and check the smooth hinge where it is easy to compute by hand."""
    smooth = two_level_loss("smooth_hinge")
    right = all(abs(float(smooth.value(z)) - value) < 1e-12 for z, value in PLACES.items())
    return [
        Verdict(
            "reproduced" if right else "not reproduced",
            "the smooth hinge is 1/2 - z below 0, a parabola between 0 and 1, and 0 from there on.",
        ),
        Text("Chapter 3 draws the hinge and the smooth hinge; the others are those of chapter 2."),
        Figure(
            losses_figure,
            "Losses against the margin",
            "The zero-one, hinge, smooth hinge, modified square and logistic losses against z.",
        ),
    ]


EXHIBIT = Exhibit("losses", 3, "figure", "Loss curves", lambda scale: [], show)
