"""MMMF's margins for one user, where ratings are balanced and where they are not."""

import numpy as np

from marginmf.experiments.blocks import Block, Figure, Table, Text, Verdict
from marginmf.experiments.cell import Cell, Values
from marginmf.experiments.exhibit import Exhibit, Scale
from marginmf.experiments.figures import user_views_figure
from marginmf.experiments.samples import needed, once_run
from marginmf.experiments.store import Store
from marginmf.experiments.user_views import BALANCED, UNBALANCED, view_cell

VIEWS = {"balanced": BALANCED, "unbalanced": UNBALANCED}
#: Regions of equal width differ by less than this share.
EVEN = 0.15


def cells(scale: Scale) -> list[Cell]:
    """Return both views."""
    return [view_cell("MMMF", counts) for counts in VIEWS.values()]


def unevenness(view: Values) -> float:
    """Return how much narrower the narrowest region between thresholds is than the widest.

    >>> unevenness({"thresholds": [0.0, 1.0, 1.5]})
    0.5
    """
    widths = np.diff(view["thresholds"])
    return float(1 - widths.min() / widths.max())


@once_run
def show(store: Store, scale: Scale) -> list[Block]:
    """Draw both views, and compare the widths of the regions."""
    views = {name: needed(store, view_cell("MMMF", counts)) for name, counts in VIEWS.items()}
    uneven = {name: unevenness(view) for name, view in views.items()}
    holds = uneven["balanced"] < EVEN < uneven["unbalanced"]
    rows = [
        [
            name,
            "/".join(map(str, view["counts"])),
            " ".join(f"{width:.2f}" for width in np.diff(view["thresholds"])),
            f"{view['right']:.0%}",
        ]
        for name, view in views.items()
    ]
    return [
        Verdict(
            "reproduced" if holds else "not reproduced",
            f"with balanced ratings the narrowest region is {uneven['balanced']:.0%} narrower than "
            f"the widest, with unbalanced ones {uneven['unbalanced']:.0%}: thresholds move "
            "together where a level has few ratings.",
        ),
        Text(
            "A matrix of 5 x 1000 stars made from two factors; 100 or about 200 ratings of each "
            "user are observed. MMMF with two factors and lambda = 1; the user with the most even "
            "ratings is shown. Lines are thresholds, dashed lines a margin of 1 beside them."
        ),
        Figure(
            lambda: user_views_figure(views),
            "One user's thresholds among the items",
            "Two panels of points coloured by rating, with four parallel lines between them.",
        ),
        Table(
            ["ratings", "of each level", "widths of the inner regions", "predicted right"],
            rows,
            "Widths of the regions",
            words=3,
        ),
    ]


EXHIBIT = Exhibit(
    "margins", 3, "figure", "MMMF's margins on balanced and unbalanced ratings", cells, show
)
