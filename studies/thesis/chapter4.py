"""Chapter 4: PMMMF's prototypes, its trade-off between training and test error, its errors."""

from collections.abc import Mapping
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from marginmf.metrics import metric
from studies.harness import Cell, Store, make_splits
from studies.harness.markdown import Block, Entry, Figure, Outcome, Table, Text, Verdict
from studies.thesis.chapter3_errors import STAGES
from studies.thesis.chapter3_examples import BALANCED, view_cell
from studies.thesis.exhibit import Exhibit, Scale
from studies.thesis.figures import trade_off_figure, user_views_figure
from studies.thesis.measures import make_recipe
from studies.thesis.published import published
from studies.thesis.samples import (
    EIGHTY,
    STOPPING,
    TradeOff,
    compare_entries,
    count_outcomes,
    find_lead,
    find_sample,
    format_figure,
    format_lead,
    judge,
    judge_lead,
    make_entry,
    make_verdict,
    paired_claim,
    pick,
    require_values,
    sixteenths,
    worst_verdict,
)


class Proximity(Exhibit):
    name, chapter, title = "proximity", 4, "PMMMF's prototypes for one user"

    def cells(self, scale: Scale) -> list[Cell]:
        return [view_cell("PMMMF", BALANCED)]

    def blocks(self, store: Store, scale: Scale) -> list[Block]:
        [cell] = self.cells(scale)
        view = require_values(store, cell)
        scores = np.array(view["points"]) @ np.array(view["direction"])
        lines = np.array(view["prototypes"])
        own = lines[np.array(view["ratings"], int) - 1]
        near, apart = float(np.abs(scores - own).mean()), float(np.diff(lines).min())
        return [
            make_verdict(
                view["right"] == 1.0 and near < apart / 2,
                f"items are {near:.2f} from the line of their rating on average, and neighbouring "
                f"lines are at least {apart:.2f} apart; {view['right']:.0%} of the ratings are "
                "predicted right.",
                "items do not gather around the line of their rating",
            ),
            Text(
                "The balanced matrix of 5 x 1000 stars, PMMMF with two factors and lambda = 1. "
                "Lines are the prototypes, each the mean score of the items with its rating; "
                "dashed lines are the boundaries between predictions."
            ),
            Figure(
                lambda: user_views_figure({"": view}),
                "One user's prototypes among the items",
                "Points coloured by rating, gathered around five parallel lines.",
            ),
        ]


class SyntheticTradeOff(Exhibit):
    name, chapter, title = "trade-off", 4, "Trade-off at 5 to 30 % observed"
    others = ("MMMF", "ALS")
    shares = {"quick": (0.1, 0.3), "full": (0.05, 0.1, 0.15, 0.2, 0.25, 0.3)}
    #: Matrices of another kind, to tell what depends on how they are made: shares and noises.
    quantised = {"quick": (), "full": tuple(product((0.1, 0.3), (0.0, 0.5)))}

    def panels(self, scale: Scale) -> tuple[dict[str, TradeOff], dict[str, TradeOff]]:
        """Return a panel for every density of both kinds of matrices, by its title."""
        return (
            {f"{share:.0%} observed": self._panel(scale, share) for share in self.shares[scale]},
            {
                f"{share:.0%} observed, noise {noise:g}": self._panel(scale, share, noise)
                for share, noise in self.quantised[scale]
            },
        )

    def _panel(self, scale: Scale, share: float, noise: float | None = None) -> TradeOff:
        quick = scale == "quick"
        margin = {"n_factors": 20 if quick else 100, **STOPPING}
        methods = {"PMMMF": margin, "MMMF": margin, "ALS": {"n_factors": margin["n_factors"]}}
        recipe = make_recipe(200 if quick else 1000, 10, share, 0, noise)
        regs = sixteenths(range(1, 26, 8 if quick else 4))
        return TradeOff(recipe, methods, regs, self.n_splits[scale], "mae")

    def cells(self, scale: Scale) -> list[Cell]:
        every = [panel for kind in self.panels(scale) for panel in kind.values()]
        return [cell for panel in every for cell in panel.cells()]

    def blocks(self, store: Store, scale: Scale) -> list[Block]:
        panels, quantised = self.panels(scale)
        found, shown = self._compare(panels, store, "matrices of the thesis's recipe")
        if not found.equal:
            return [Verdict("not run", "the curves have no training error in common yet.")]
        other_found, others = self._compare(quantised, store, "quantised matrices")
        besides = (
            " On matrices whose scores lie anywhere between the levels it is "
            f"{count_outcomes(other_found.equal)} at equal training error, and "
            f"{count_outcomes(other_found.worst)} by the worst test error."
            if other_found.equal
            else ""
        )
        recipe = self.cells(scale)[0].settings["data"]
        blocks: list[Block] = [
            worst_verdict(
                found.equal,
                "by test error at equal training error PMMMF is "
                f"{count_outcomes(found.equal)} comparisons with MMMF and ALS; by the worst test "
                "error over the candidates for the penalty, by which a trade-off may be judged "
                f"too, {count_outcomes(found.worst)}.{besides}",
                f"PMMMF is {count_outcomes(found.equal)} comparisons on matrices of the "
                "thesis's recipe",
            ),
            Text(
                f"Matrices of {recipe['n_users']} x {recipe['n_items']} stars made from "
                f"{recipe['n_factors']} factors, by the thesis's recipe: ratings and factors are "
                "fitted to each other in turn until they agree, so there is no noise and most "
                "entries have three stars. Of the observed entries, 80 % are to learn from. Along "
                "a curve the penalty gets weaker from right to left. Differences are means over "
                "the splits, ± their standard error; more than two of those are more than noise. "
                "The candidates are the same numbers for losses of different sizes, so that the "
                "worst test error over them also tells how far a number is from too strong."
            ),
            *shown,
        ]
        if other_found.equal:
            text = (
                "The same for products of as many normal factors, with normal noise of that many "
                "times their standard deviation, quantised to levels as common as on MovieLens "
                "100K."
            )
            blocks += [Text(text), *others]
        return blocks

    def _compare(
        self, panels: Mapping[str, TradeOff], store: Store, kind: str
    ) -> tuple["Compared", list[Block]]:
        """Return how PMMMF compares with the others in every panel, and that as blocks."""
        equal, worst, rows = [], [], []
        for title, panel in panels.items():
            leads = [panel.lead(store, "PMMMF", other) for other in self.others]
            equal += [judge_lead(lead) for lead in leads if lead is not None]
            words = ["no common range" if lead is None else format_lead(lead) for lead in leads]
            ends = {method: panel.worst(store, method) for method in ("PMMMF", *self.others)}
            own = ends["PMMMF"]
            for other in self.others:
                theirs = ends[other]
                if own is not None and theirs is not None:
                    worst.append(judge_lead(theirs.minus(own)))
            shown = [make_entry(one) for one in ends.values()]
            rows.append([Entry(title), *map(Entry, words), *shown])
        headings = [f"{other} minus PMMMF" for other in self.others]
        headings += [f"worst of {method}" for method in ("PMMMF", *self.others)]
        blocks = [
            Figure(
                lambda: trade_off_figure(panels, store, "MAE"),
                f"Test error against training error, {kind}",
                "A panel for every density, each with the curves of PMMMF, MMMF and ALS.",
            ),
            Table(
                ["panel", *headings],
                rows,
                "By how much the test MAE of others is larger at equal training error, and the "
                f"largest test MAE over all candidates for the penalty, {kind}",
            ),
        ]
        return Compared(equal, worst), blocks


class Compared(NamedTuple):
    """How PMMMF compares with others, one by one: at equal training error, and at its worst."""

    equal: list[Outcome]
    worst: list[Outcome]


class EqualTrainingError(Exhibit):
    name, chapter, kind = "mae-rmse", 4, "table"
    title = "MAE and RMSE at equal training error"
    band = {"measure": "mae", "low": 0.07, "high": 0.09}
    methods = {"MMMF": STOPPING, "ALS": {}, "PMMMF": STOPPING, "HMF": STOPPING}
    measures = ("mae", "rmse")
    data = "MovieLens 100K"
    axes = dict.fromkeys(("quick", "full"), (tuple(methods),))

    def cells_at(self, scale: Scale, method: str) -> list[Cell]:
        return make_splits(
            "rating_errors",
            self.n_splits[scale],
            data="ml-100k",
            protocol=EIGHTY,
            method=method,
            params={"n_factors": 100, **self.methods[method]},
            band=self.band,
            **({"base": "auto"} if method == "HMF" else {}),
        )

    def blocks(self, store: Store, scale: Scale) -> list[Block]:
        table = published("mae-rmse")
        samples = {
            (method, name): find_sample(store, self.cells_at(scale, method), pick("test", name))
            for method in self.methods
            for name in self.measures
        }
        rows = []
        for method in self.methods:
            row = [Entry(method)]
            for name in self.measures:
                there = table.at(name, self.data, method) if method in table.methods else None
                found = samples[method, name]
                row += compare_entries(make_entry(found), found, there)
            training = find_sample(store, self.cells_at(scale, method), pick("train", "mae"))
            rows.append([*row, make_entry(training)])
        three = ("published", "ours", "diff.")
        headings = [f"{metric(name).heading} {what}" for name in self.measures for what in three]
        return [
            self._verdict(store, samples, scale),
            Text(
                "MovieLens 100K, 80 % of the ratings to learn from, 100 factors. The "
                "regularisation strength is the one that brings the training MAE into "
                "[0.07, 0.09], which is far weaker than the best one. The thesis's table has no "
                f"HMF; {STAGES}"
            ),
            Table(["method", *headings, "training MAE"], rows, "Errors at equal training error"),
        ]

    def _verdict(self, store: Store, samples: dict[Any, Any], scale: Scale) -> Verdict:
        if samples["PMMMF", "mae"] is None or samples["MMMF", "mae"] is None:
            return Verdict("not run", "PMMMF and MMMF have not both been run.")
        outcomes: list[Outcome] = []
        words = []
        for name in self.measures:
            there = published("mae-rmse").at(name, self.data, "PMMMF")
            assert there is not None
            outcomes.append(judge(samples["PMMMF", name], there, higher_is_better=False))
            found = format_figure(samples["PMMMF", name].mean)
            words.append(f"{metric(name).heading} {found} (published {format_figure(there.mean)})")
        for other in ("MMMF", "ALS"):
            cells = [self.cells_at(scale, method) for method in ("PMMMF", other)]
            lead = find_lead(store, *cells, pick("test", "mae"))
            if lead is not None:
                outcomes.append(judge_lead(lead))
                words.append(paired_claim(store, *cells, pick("test", "mae"), "PMMMF", other))
        cause = "PMMMF's errors are larger than printed, or than those of others"
        return worst_verdict(outcomes, f"PMMMF: {'; '.join(words)}.", cause)


MAE_RMSE = EqualTrainingError()
EXHIBITS = (Proximity(), SyntheticTradeOff(), MAE_RMSE)
