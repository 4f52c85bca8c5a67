"""One user's hyperplanes among the items, as chapters 3 and 4 draw them."""

from collections.abc import Sequence

from marginmf.experiments.cell import Cell

#: How many ratings of each level every user has: a tenth of 1,000 items, as many of each ...
BALANCED = (20, 20, 20, 20, 20)
#: ... or a fifth of them, with few in the middle of the scale.
UNBALANCED = (80, 25, 10, 25, 60)


def view_cell(method: str, counts: Sequence[int]) -> Cell:
    """Return the view of one user of five, of 1,000 items in two dimensions."""
    return Cell(
        "user_view",
        {
            "method": method,
            "n_users": 5,
            "n_items": 1000,
            "counts": list(counts),
            "reg": 1.0,
            "seed": 2,
        },
    )
