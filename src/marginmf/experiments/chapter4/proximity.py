"""PMMMF's prototypes for one user: items of a rating gather around the rating's own line."""

import numpy as np

from marginmf.experiments.blocks import Block, Figure, Text, Verdict
from marginmf.experiments.cell import Cell
from marginmf.experiments.exhibit import Exhibit, Scale
from marginmf.experiments.figures import user_views_figure
from marginmf.experiments.samples import needed, once_run
from marginmf.experiments.store import Store
from marginmf.experiments.user_views import BALANCED, view_cell


def cells(scale: Scale) -> list[Cell]:
    """Return the view of one user."""
    return [view_cell("PMMMF", BALANCED)]


@once_run
def show(store: Store, scale: Scale) -> list[Block]:
    """Draw the view, and compare distances to the own line and between lines."""
    [cell] = cells(scale)
    view = needed(store, cell)
    scores = np.array(view["points"]) @ np.array(view["direction"])
    lines = np.array(view["prototypes"])
    own = lines[np.array(view["ratings"], int) - 1]
    near, apart = float(np.abs(scores - own).mean()), float(np.diff(lines).min())
    holds = view["right"] == 1.0 and near < apart / 2
    return [
        Verdict(
            "reproduced" if holds else "not reproduced",
            f"items are {near:.2f} from the line of their rating on average, and neighbouring "
            f"lines are at least {apart:.2f} apart; {view['right']:.0%} of the ratings are "
            "predicted right.",
        ),
        Text(
            "The balanced matrix of 5 x 1000 stars, PMMMF with two factors and lambda = 1. Lines "
            "are the prototypes, each the mean score of the items with its rating; dashed lines "
            "are the boundaries between predictions."
        ),
        Figure(
            lambda: user_views_figure({"": view}),
            "One user's prototypes among the items",
            "Points coloured by rating, gathered around five parallel lines.",
        ),
    ]


EXHIBIT = Exhibit("proximity", 4, "figure", "PMMMF's prototypes for one user", cells, show)
