"""Chapter 3 against size: running time over factors, recovery over factors and observed entries."""

from functools import partial
from itertools import product
from typing import Any

import numpy as np

from studies.harness import Cell, Store, make_splits
from studies.harness.markdown import Block, Entry, Figure, Outcome, Table, Text
from studies.thesis.exhibit import Exhibit, Scale
from studies.thesis.figures import curves_figure, heat_maps_figure
from studies.thesis.measures import make_recipe
from studies.thesis.samples import (
    STOPPING,
    Sample,
    count_outcomes,
    format_figure,
    format_lead,
    judge_lead,
    make_entry,
    pick,
    sixteenths,
    worst_verdict,
)


class RunningTime(Exhibit):
    name, chapter, title = "running-time", 3, "Running time against the factors"
    methods = ("HMF", "PHMF", "MMMF")
    axes = {
        "quick": (("ml-100k",), (10, 50), methods),
        "full": (("ml-1m", "eachmovie-sample"), (10, 20, 40, 60, 80, 100), methods),
    }
    #: About the regularisation strengths that are chosen at 100 factors.
    regs: dict[str, dict[str, Any]] = {
        "ml-100k": {"HMF": [6.0, 10.0, 17.0, 14.0], "MMMF": 15.0},
        "ml-1m": {"HMF": [10.0, 15.0, 24.0, 24.0], "MMMF": 20.0},
        "eachmovie-sample": {"HMF": [15.0, 20.0, 24.0, 24.0, 24.0], "MMMF": 20.0},
    }

    def cells_at(self, scale: Scale, data: str, rank: int, method: str) -> list[Cell]:
        settings: dict[str, Any] = {"data": data, "method": method}
        reg = self.regs[data][method.lstrip("P")]
        params: dict[str, Any] = {"n_factors": rank, "reg": reg, **STOPPING}
        if method == "PHMF":
            params["schedule"] = "independent"
            settings["n_jobs"] = -1
        else:
            settings["gradients"] = True
        return [
            Cell("fit_time", {**settings, "params": params, "repetition": repetition}, alone=True)
            for repetition in range(self.n_splits[scale])
        ]

    def blocks(self, store: Store, scale: Scale) -> list[Block]:
        (names, ranks, methods), seconds = self.axes[scale], pick("fit_seconds")
        times = {
            data: {
                method: [self.sample(store, scale, seconds, data, rank, method) for rank in ranks]
                for method in methods
            }
            for data in names
        }
        outcomes = [
            judge_lead(slow.minus(fast))
            for one in times.values()
            for fast, slow in zip(one["HMF"], one["MMMF"], strict=True)
        ]
        shares = {
            data: [a.mean / b.mean for a, b in zip(one["HMF"], one["MMMF"], strict=True)]
            for data, one in times.items()
        }
        words = "; ".join(
            f"{data}: {min(one):.2f} to {max(one):.2f}" for data, one in shares.items()
        )
        labels = ("factors", "seconds to fit")
        figures = [
            Figure(
                partial(curves_figure, ranks, along, *labels, from_zero=True),
                f"Seconds to fit {data}",
                f"Seconds against the number of factors on {data}, for HMF, PHMF and MMMF.",
            )
            for data, along in times.items()
        ]
        gradients, costs, like_thesis = self._gradients(store, scale)
        return [
            worst_verdict(
                outcomes,
                f"all stages of HMF together take this share of the time of MMMF: {words}. A "
                f"gradient of MMMF costs {min(costs):.2f} to {max(costs):.2f} times one of a stage "
                "of HMF here, where all thresholds share the products of the factors; if it cost "
                "as much as all stages together, as where each threshold repeats them, the shares "
                f"would be {min(like_thesis):.2f} to {max(like_thesis):.2f}.",
                f"HMF takes up to {max(map(max, shares.values())):.2f} times as long as MMMF, "
                f"whose gradient costs at most {max(costs):.2f} times that of a stage",
            ),
            Text(
                "Wall-clock seconds of a fit to all ratings, with fixed regularisation strengths "
                f"and one stopping rule for all (`tol={STOPPING['tol']:g}`, at most "
                f"{STOPPING['max_iter']} iterations). HMF and MMMF use one thread, and each "
                "stage of HMF starts from its neighbour's solution; PHMF trains the stages from "
                "random starts, side by side on all cores of the machine."
            ),
            *figures,
            gradients,
        ]

    def _gradients(self, store: Store, scale: Scale) -> tuple[Table, list[float], list[float]]:
        """Return what gradients cost, how much more those of MMMF do, and what the thesis has.

        The last are the shares of MMMF's time if one of its gradients cost as much as one of every
        stage, as it does where each threshold is a pass of its own over the ratings.
        """
        rows, costs, shares = [], [], []
        names, ranks, _ = self.axes[scale]
        for data, rank in product(names, ranks):
            each, numbers = [], []
            for method in ("HMF", "MMMF"):
                sampled = {
                    name: self.sample(store, scale, pick(name), data, rank, method).mean
                    for name in ("gradient_seconds", "gradients")
                }
                numbers.append(sampled["gradients"])
                each.append(sampled["gradient_seconds"] / sampled["gradients"])
            costs.append(each[1] / each[0])
            shares.append(numbers[0] / (numbers[1] * len(self.regs[data]["HMF"])))
            milliseconds = [f"{1000 * one:.1f}" for one in each]
            counts = [f"{number:.0f}" for number in numbers]
            rows.append([data, str(rank), *milliseconds, f"{costs[-1]:.2f}", *counts])
        headings = ["data", "factors", "HMF, a stage", "MMMF", "ratio"]
        headings += ["gradients of HMF, all stages", "gradients of MMMF"]
        caption = "Milliseconds for the objective and its gradient, and how many a fit takes"
        return Table(headings, rows, caption), costs, shares


class Recovery(Exhibit):
    name, chapter, title = "recovery", 3, "Recovery of a matrix from a part of it"
    methods = ("MMMF", "HMF")
    #: The factors that matrices are made from, shares of observed entries, factors learned.
    axes = {
        "quick": ((5, 30), (0.4, 0.8), (5,), methods),
        "full": ((10, 20, 100), (0.2, 0.4, 0.6, 0.8), (5, 20), methods),
    }
    size = {"quick": 150, "full": 500}
    #: Every fourth of the thesis's candidates, up to where matrices of this size are left nothing
    #: but zeros.
    regs = {"quick": sixteenths((4, 16)), "full": sixteenths(range(4, 25, 4))}
    #: From this share on, the thesis says, HMF is ahead.
    claimed_from = 0.4
    scorings = {
        ("held_out", "validated"): "held-out entries, strengths chosen on others",
        ("held_out", "tuned"): "held-out entries, strengths tuned on them",
        ("all", "validated"): "all entries, strengths chosen on held-out ones",
        ("all", "tuned"): "all entries, strengths tuned on them",
    }
    #: The two that are drawn.
    drawn = (("held_out", "validated"), ("all", "tuned"))

    def cells_at(
        self, scale: Scale, n_factors: int, share: float, rank: int, method: str
    ) -> list[Cell]:
        # Stages that do not start from each other can be put together at any strengths.
        own = {"schedule": "independent"} if method == "HMF" else {}
        return make_splits(
            "recovery",
            self.n_splits[scale],
            data=make_recipe(self.size[scale], n_factors, 1.0, 0),
            share=share,
            method=method,
            params={"n_factors": rank, **STOPPING, **own},
            regs=self.regs[scale],
        )

    def blocks(self, store: Store, scale: Scale) -> list[Block]:
        rows, outcomes = self._compare(store, scale)
        ahead = [key for key, outcome in outcomes.items() if outcome == "reproduced"]
        held_out = [key for key in outcomes if key[1][0] == "held_out"]
        ahead_held_out = [key for key in held_out if key in ahead]
        example = self._example(store, scale, self.axes[scale][0][-1], ("all", "tuned"))
        return [
            worst_verdict(
                outcomes.values(),
                f"with at least {self.claimed_from:.0%} of the entries, HMF has the smaller error "
                f"by more than noise in {len(ahead)} of {len(outcomes)} combinations of the "
                "factors that matrices are made from and of what is scored, and on held-out "
                f"entries in {len(ahead_held_out)} of {len(held_out)}: see the table. {example} "
                "With many entries the weakest candidates are the best then: HMF's pairs of "
                "factors, one for each stage, fit the entries that were learned from more closely "
                "than MMMF's single one, and those are among the entries that are scored.",
                f"HMF recovers more than MMMF in {len(ahead)} of {len(outcomes)} readings of the "
                f"protocol, and in {len(ahead_held_out)} of {len(held_out)} on held-out entries",
            ),
            Text(
                f"Matrices of {self.size[scale]} x {self.size[scale]} stars made without noise "
                "from as many factors as said (the thesis does not say how many it used), by its "
                "recipe. The error is the Frobenius-norm relative error. The thesis speaks of the "
                "recovery of the original matrix, which includes the entries that were learned "
                "from, and tunes the penalties, but does not say on which entries: all four "
                "readings are here. One stopping rule for both methods "
                f"(`tol={STOPPING['tol']:g}`). Candidates are the strengths "
                f"{', '.join(format(reg, '.3g') for reg in self.regs[scale])}; the one with the "
                "smallest zero-one error is taken, for each stage of HMF the one with the smallest "
                "error of that stage. A stage with less than 1 % of the training entries on one "
                "side takes the strength of its neighbour, because one chosen on a handful of "
                "entries is noise."
            ),
            Table(
                [
                    *("made from", "scored on", "MMMF minus HMF", "HMF is ahead"),
                    *("comparisons", f"below {self.claimed_from:.0%}"),
                ],
                rows,
                "By how much the error of MMMF is larger, from "
                f"{self.claimed_from:.0%} of the entries on",
                words=2,
                notes=[
                    "Means over shares and factors, ± the standard error over splits. A single "
                    "comparison is ahead or behind if by more than two standard errors.",
                ],
            ),
            *self._errors(store, scale),
            *self._figures(store, scale),
        ]

    def _compare(
        self, store: Store, scale: Scale
    ) -> tuple[list[list[str]], dict[tuple[int, tuple[str, str]], Outcome]]:
        """Return the rows of the table, and whether HMF is ahead in each."""
        made_from, shares, ranks, _ = self.axes[scale]
        rows, outcomes = [], {}
        for n_factors, scoring in product(made_from, self.scorings):
            lead = self._lead(store, scale, n_factors, scoring, much=True)
            outcome = outcomes[n_factors, scoring] = judge_lead(lead)
            points = [
                judge_lead(self._lead_at(store, scale, scoring, n_factors, share, rank))
                for share, rank in product(shares, ranks)
                if share >= self.claimed_from
            ]
            little = self._lead(store, scale, n_factors, scoring, much=False)
            few = "" if little is None else format_lead(little)
            where = [str(n_factors), self.scorings[scoring]]
            rows.append([*where, format_lead(lead), outcome, count_outcomes(points), few])
        return rows, outcomes

    def _figures(self, store: Store, scale: Scale) -> list[Block]:
        """Return heat maps of the errors under the two scorings that are drawn."""
        made_from, shares, ranks, _ = self.axes[scale]
        columns, rows = [f"{share:.0%}" for share in shares], list(map(str, ranks))
        figures: list[Block] = []
        for n_factors in made_from:
            maps = {}
            for scoring, method in product(self.drawn, self.methods):
                errors = [
                    self.sample(store, scale, pick(*scoring), n_factors, share, rank, method).mean
                    for rank, share in product(ranks, shares)
                ]
                title = f"{method}, {self.scorings[scoring]}"
                maps[title] = np.reshape(errors, (len(ranks), len(shares)))
            labels = ("observed entries", "factors", "FRE")
            figures.append(
                Figure(
                    partial(heat_maps_figure, maps, columns, rows, *labels),
                    f"Error of recovery, matrices made from {n_factors} factors",
                    "Four heat maps, for MMMF and for HMF under two scorings, of the error against "
                    "the share of observed entries and the number of factors.",
                )
            )
        return figures

    def _lead_at(self, store: Store, scale: Scale, scoring: tuple[str, str], *point: Any) -> Sample:
        mmmf, hmf = (
            self.sample(store, scale, pick(*scoring), *point, method) for method in self.methods
        )
        return mmmf.minus(hmf)

    def _lead(
        self, store: Store, scale: Scale, n_factors: int, scoring: tuple[str, str], much: bool
    ) -> Any:
        """Return the mean lead of HMF on every split, with many or with few entries."""
        _, shares, ranks, _ = self.axes[scale]
        leads = [
            self._lead_at(store, scale, scoring, n_factors, share, rank).values
            for share, rank in product(shares, ranks)
            if (share >= self.claimed_from) == much
        ]
        return Sample(tuple(np.mean(leads, axis=0).tolist())) if leads else None

    def _example(self, store: Store, scale: Scale, n_factors: int, scoring: tuple[str, str]) -> str:
        """Say what both reach with the most factors, at every share of the entries."""
        _, shares, ranks, _ = self.axes[scale]
        words = []
        for share in shares:
            mmmf, hmf = (
                self.sample(store, scale, pick(*scoring), n_factors, share, ranks[-1], method)
                for method in self.methods
            )
            figures = f"{format_figure(hmf.mean)} against {format_figure(mmmf.mean)}"
            words.append(f"{figures} at {share:.0%}")
        return (
            f"Made from {n_factors} factors, learned with {ranks[-1]}, over all entries with "
            f"strengths tuned on them, HMF has {', '.join(words)}."
        )

    def _errors(self, store: Store, scale: Scale) -> list[Block]:
        """Return a table of both methods' errors under the two scorings that are drawn."""
        made_from, shares, ranks, _ = self.axes[scale]
        rows: list[list[Entry | str]] = []
        for point in product(made_from, ranks, shares):
            n_factors, rank, share = point
            entries = [
                make_entry(self.sample(store, scale, pick(*one), n_factors, share, rank, method))
                for one, method in product(self.drawn, self.methods)
            ]
            rows.append([str(n_factors), str(rank), f"{share:.0%}", *entries])
        headings = [f"{method}, {what}" for what in ("held out", "all") for method in self.methods]
        caption = (
            "Error on held-out entries, strengths chosen on others, and on all entries, strengths "
            "tuned on them"
        )
        return [Table(["made from", "factors", "observed", *headings], rows, caption)]


EXHIBITS = (RunningTime(), Recovery())
