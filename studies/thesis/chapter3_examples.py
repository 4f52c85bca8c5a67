"""Chapter 3 on small matrices: losses, worked examples, convergence, margins of one user."""

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from marginmf.losses import two_level_loss
from marginmf.ratings.fitting.calibration import first_below
from studies.harness import Cell, Store, Values
from studies.harness.markdown import Block, Details, Figure, Table, Text
from studies.thesis.exhibit import Exhibit, Scale
from studies.thesis.figures import (
    hierarchy_figure,
    losses_figure,
    objectives_figure,
    two_level_figure,
    user_views_figure,
)
from studies.thesis.published import WorkedExample, worked_example
from studies.thesis.samples import make_verdict, require_values

#: How many ratings of each level every user has: a tenth of 1,000 items, as many of each ...
BALANCED = (20, 20, 20, 20, 20)
#: ... or a fifth of them, with few in the middle of the scale.
UNBALANCED = (80, 25, 10, 25, 60)


def view_cell(method: str, counts: Sequence[int]) -> Cell:
    """Return the view of one user of five, of 1,000 items in two dimensions."""
    fixed = {"method": method, "n_users": 5, "n_items": 1000}
    return Cell("user_view", {**fixed, "counts": list(counts), "reg": 1.0, "seed": 2})


class Losses(Exhibit):
    name, chapter, title = "losses", 3, "Loss curves"
    #: Where the thesis gives the values of the smooth hinge.
    values = {-1.0: 1.5, 0.0: 0.5, 0.5: 0.125, 1.0: 0.0, 2.0: 0.0}

    def blocks(self, store: Store, scale: Scale) -> list[Block]:
        smooth = two_level_loss("smooth_hinge")
        right = all(abs(float(smooth.value(z)) - v) < 1e-12 for z, v in self.values.items())
        return [
            make_verdict(
                right,
                "the smooth hinge is 1/2 - z below 0, a parabola between 0 and 1, and 0 from there "
                "on.",
                "the smooth hinge has other values",
            ),
            Text("Chapter 3 draws the hinge and the smooth hinge; the others are chapter 2's."),
            Figure(
                losses_figure,
                "Losses against the margin",
                "The zero-one, hinge, smooth hinge, modified square and logistic losses against z.",
            ),
        ]


class TwoLevels(Exhibit):
    name, chapter, title = "two-levels", 3, "Geometry of the two-level example"
    #: Factors are printed with two digits, so scores of about 2 are known to this.
    rounding = 0.015

    def blocks(self, store: Store, scale: Scale) -> list[Block]:
        example = worked_example("likes", corrected=True)
        scores = example["U"] @ example["V"].T
        off = float(np.abs(scores - example["scores"]).max())
        losses = {name: self._largest_error(example, name) for name in ("hinge", "smooth_hinge")}
        slips = [
            [".".join(map(str, slip.where)), str(slip.printed), str(slip.right), slip.why]
            for slip in example.slips
        ]
        return [
            make_verdict(
                max(off, *losses.values()) < self.rounding,
                f"scores agree to {off:.3f}, hinge losses to {losses['hinge']:.3f} and smooth "
                f"hinge losses to {losses['smooth_hinge']:.4f}, once {len(slips)} slips in print "
                "are corrected.",
                "the printed scores and losses do not follow from the factors",
            ),
            Text(
                "Items are points, users are lines where their score is 0.1; the arrow points to "
                "the side that the user likes."
            ),
            Figure(
                lambda: two_level_figure(example),
                "Items among the users' lines",
                "Seven points and seven lines in the plane, each with an arrow to its positive "
                "side.",
            ),
            Details(
                "What is printed wrong",
                [Table(["where", "printed", "right", "why"], slips, "Slips", words=4)],
            ),
        ]

    @staticmethod
    def _largest_error(example: WorkedExample, name: str) -> float:
        """Return how far the printed losses of observed entries are from ours, at most."""
        Y = example["Y"]
        ours = two_level_loss(name).value(Y * example["scores"])
        return float(np.abs(ours - example[name])[Y != 0].max())


class Convergence(Exhibit):
    name, chapter, title = "convergence", 3, "Convergence of BMMMF and MMMF"
    #: The method, and the thesis's matrix that it learns from.
    examples = {"BMMMF": "likes", "MMMF": "stars"}
    solvers = {"gd": "gradient descent", "lbfgs": "L-BFGS"}
    axes = dict.fromkeys(("quick", "full"), (tuple(examples), tuple(solvers)))
    params: dict[str, Any] = {"n_factors": 2, "reg": 0.5, "max_iter": 200, "tol": 0.0}

    def cells_at(self, scale: Scale, method: str, solver: str) -> list[Cell]:
        settings = {"method": method, "example": self.examples[method], "solver": solver}
        return [
            Cell("convergence", {**settings, "params": self.params, "start": start})
            for start in range(5)
        ]

    def blocks(self, store: Store, scale: Scale) -> list[Block]:
        panels = {
            f"{method}, {self.solvers[solver]}": [
                require_values(store, cell)["objective"]
                for cell in self.cells_at(scale, method, solver)
            ]
            for method, solver in self.points(scale)
        }
        curves = [curve for panel in panels.values() for curve in panel]
        falls = all(b <= a * (1 + 1e-6) for curve in curves for a, b in pairwise(curve))
        settles = all(curve[-1 - len(curve) // 5] - curve[-1] < 0.01 * curve[0] for curve in curves)
        ends = (
            f"{min(c[-1] for c in panel):.2f} to {max(c[-1] for c in panel):.2f} ({name})"
            for name, panel in panels.items()
        )
        return [
            make_verdict(
                falls and settles,
                "the objective never rises and levels off from every start; it ends at "
                f"{', '.join(ends)}. The problems are not convex, so starts may end in different "
                "minima.",
                "the objective rises or does not level off",
            ),
            Text(
                "The matrices of the worked examples, two factors, five random starts, lambda = "
                f"{self.params['reg']} (the thesis does not say which it used)."
            ),
            Figure(
                lambda: objectives_figure(panels),
                "The objective after every iteration",
                "Four panels, BMMMF and MMMF by gradient descent and by L-BFGS, five curves in "
                "each.",
            ),
        ]


class Margins(Exhibit):
    name, chapter, title = "margins", 3, "MMMF's margins on balanced and unbalanced ratings"
    views = {"balanced": BALANCED, "unbalanced": UNBALANCED}
    #: Regions of equal width differ by less than this share.
    even = 0.15

    def cells(self, scale: Scale) -> list[Cell]:
        return [view_cell("MMMF", counts) for counts in self.views.values()]

    def blocks(self, store: Store, scale: Scale) -> list[Block]:
        views = {
            name: require_values(store, cell)
            for name, cell in zip(self.views, self.cells(scale), strict=True)
        }
        uneven = {name: unevenness(view) for name, view in views.items()}
        rows = []
        for name, view in views.items():
            widths = " ".join(f"{width:.2f}" for width in np.diff(view["thresholds"]))
            rows.append([name, "/".join(map(str, view["counts"])), widths, f"{view['right']:.0%}"])
        return [
            make_verdict(
                uneven["balanced"] < self.even < uneven["unbalanced"],
                f"with balanced ratings the narrowest region is {uneven['balanced']:.0%} narrower "
                f"than the widest, with unbalanced ones {uneven['unbalanced']:.0%}: thresholds "
                "move together where a level has few ratings.",
                "thresholds do not move together where a level has few ratings",
            ),
            Text(
                "A matrix of 5 x 1000 stars made from two factors; 100 or about 200 ratings of "
                "each user are observed. MMMF with two factors and lambda = 1; the user with the "
                "most even ratings is shown. Lines are thresholds, dashed lines a margin of 1 "
                "beside them."
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


def unevenness(view: Values) -> float:
    """Return how much narrower the narrowest region between thresholds is than the widest.

    >>> unevenness({"thresholds": [0.0, 1.0, 1.5]})
    0.5
    """
    widths = np.diff(view["thresholds"])
    return float(1 - widths.min() / widths.max())


class Hierarchy(Exhibit):
    name, chapter, title = "worked-example", 3, "The worked example of HMF and its tree"

    def blocks(self, store: Store, scale: Scale) -> list[Block]:
        example = worked_example("hierarchy", corrected=True)
        Y, stages = example["Y"], example["stages"]
        margins = np.stack([stage["U"] @ stage["V"].T for stage in stages], axis=-1)
        steps = [complete(Y, margins, number) for number in range(1, len(stages) + 2)]
        pairs = zip(steps, stages, strict=False)
        same = [bool((step == stage["completed"]).all()) for step, stage in pairs]
        whole = bool((steps[-1] == example["completed"]).all())
        return [
            make_verdict(
                whole and all(same),
                f"the factors that are printed for the {len(stages)} stages, put through the "
                f"library's rule, complete {'the printed matrix' if whole else 'another matrix'}, "
                f"and {sum(same)} of {len(same)} matrices on the way are as printed.",
                "the printed factors complete another matrix",
            ),
            Text(
                "Stage q asks of every entry whether it is above q; an entry is decided by the "
                "first stage that says no, and is 5 if none does. Observed entries stay as they "
                "are."
            ),
            Figure(
                lambda: hierarchy_figure(Y, steps),
                "The matrix after every stage",
                "The observed matrix of 5 x 7 stars, and how it fills up stage by stage.",
            ),
        ]


def complete(Y: np.ndarray, margins: np.ndarray, n_stages: int) -> np.ndarray:
    """Return the matrix as it is after `n_stages` stages; 0 is what is still open.

    Observed entries are themselves from the stage on that decides them.

    >>> complete(np.array([[0, 3]]), np.array([[[-1.0, 1.0], [1.0, 1.0]]]), 1)
    array([[1, 0]])
    """
    last = margins.shape[-1] + 1
    predicted = first_below(margins.reshape(-1, last - 1)).reshape(Y.shape) + 1
    decided = np.where(Y > 0, Y, predicted)
    # After the last stage, what has never been below is at the highest level.
    return np.where((decided <= n_stages) | (n_stages == last), decided, 0)


EXHIBITS = (Losses(), TwoLevels(), Convergence(), Margins(), Hierarchy())
