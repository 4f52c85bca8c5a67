"""How the objectives of BMMMF and MMMF fall, from several random starts."""

from itertools import pairwise
from typing import Any

from marginmf.experiments.blocks import Block, Figure, Text, Verdict
from marginmf.experiments.cell import Cell
from marginmf.experiments.exhibit import Exhibit, Scale
from marginmf.experiments.figures import objectives_figure
from marginmf.experiments.samples import needed, once_run
from marginmf.experiments.store import Store

#: The method, and the thesis's matrix that it learns from.
EXAMPLES = {"BMMMF": "likes", "MMMF": "stars"}
SOLVERS = {"gd": "gradient descent", "lbfgs": "L-BFGS"}
STARTS = range(5)
PARAMS: dict[str, Any] = {"n_factors": 2, "reg": 0.5, "max_iter": 200, "tol": 0.0}


def cells_for(method: str, solver: str) -> list[Cell]:
    """Return the starts of one panel."""
    settings = {"method": method, "example": EXAMPLES[method], "solver": solver, "params": PARAMS}
    return [Cell("convergence", {**settings, "start": start}) for start in STARTS]


def cells(scale: Scale) -> list[Cell]:
    """Return both methods by both solvers from every start."""
    return [c for method in EXAMPLES for solver in SOLVERS for c in cells_for(method, solver)]


@once_run
def show(store: Store, scale: Scale) -> list[Block]:
    """Draw the objectives, and say whether they always fall and settle."""
    panels = {
        f"{method}, {words}": [
            needed(store, cell)["objective"] for cell in cells_for(method, solver)
        ]
        for method in EXAMPLES
        for solver, words in SOLVERS.items()
    }
    curves = [curve for panel in panels.values() for curve in panel]
    falls = all(b <= a * (1 + 1e-6) for curve in curves for a, b in pairwise(curve))
    settles = all(curve[-1 - len(curve) // 5] - curve[-1] < 0.01 * curve[0] for curve in curves)
    ends = {
        name: f"{min(c[-1] for c in panel):.2f} to {max(c[-1] for c in panel):.2f}"
        for name, panel in panels.items()
    }
    return [
        Verdict(
            "reproduced" if falls and settles else "not reproduced",
            "the objective never rises and levels off from every start; it ends at "
            + ", ".join(f"{words} ({name})" for name, words in ends.items())
            + ". The problems are not convex, so starts may end in different minima.",
        ),
        Text(
            "The matrices of the worked examples, two factors, five random starts, lambda = "
            f"{PARAMS['reg']} (the thesis does not say which it used)."
        ),
        Figure(
            lambda: objectives_figure(panels),
            "The objective after every iteration",
            "Four panels, BMMMF and MMMF by gradient descent and by L-BFGS, five curves in each.",
        ),
    ]


EXHIBIT = Exhibit("convergence", 3, "figure", "Convergence of BMMMF and MMMF", cells, show)
