"""Chapter 3 on MovieLens and EachMovie: errors, and how they depend on penalty and factors."""

from functools import partial
from itertools import product

import numpy as np

from studies.harness import Cell, Store, make_splits
from studies.harness.markdown import Block, Entry, Figure, Outcome, Table, Text, Verdict
from studies.thesis.chapter3_systems import NMAE
from studies.thesis.exhibit import Exhibit, Scale
from studies.thesis.figures import curves_figure, trade_off_figure
from studies.thesis.samples import (
    EIGHTY,
    STOPPING,
    Sample,
    TradeOff,
    format_figure,
    format_lead,
    join_words,
    judge_lead,
    make_entry,
    pick,
    sixteenths,
    worst_verdict,
)

#: How HMF's penalty grows and shrinks where a single number decides.
STAGES = (
    'HMF has a strength for each stage, all the same multiple of those that `reg="auto"` chooses '
    "on held-out training ratings."
)


class Validation(Exhibit):
    name, chapter, title = "validation", 3, "Validation error of every stage over its penalty"
    #: How many levels, hence stages, each data set has.
    stages = {"ml-100k": 4, "ml-1m": 4, "eachmovie-sample": 5}
    data = {"quick": ("ml-100k",), "full": ("ml-1m", "eachmovie-sample")}
    #: A few of the thesis's candidates, or every second one.
    regs = {"quick": sixteenths(range(4, 41, 9)), "full": sixteenths(range(4, 41, 2))}
    n_factors = {"quick": 20, "full": 100}

    def points(self, scale: Scale) -> list[tuple[str, int, float]]:
        return [
            (data, stage, reg)
            for data in self.data[scale]
            for stage in range(1, self.stages[data] + 1)
            for reg in self.regs[scale]
        ]

    def cells_at(self, scale: Scale, data: str, stage: int, reg: float) -> list[Cell]:
        fixed = {"data": data, "stage": stage, "n_factors": self.n_factors[scale], "reg": reg}
        return make_splits("stage_error", self.n_splits[scale], **fixed)

    def blocks(self, store: Store, scale: Scale) -> list[Block]:
        regs, blocks = self.regs[scale], []
        outcomes: list[Outcome] = []
        strengths: list[float] = []
        for data in self.data[scale]:
            errors = {
                f"stage {stage}": [
                    self.sample(store, scale, pick("zero_one"), data, stage, reg) for reg in regs
                ]
                for stage in range(1, self.stages[data] + 1)
            }
            rows = []
            for name, along in errors.items():
                means = [one.mean for one in along]
                best = min(range(len(means)), key=means.__getitem__)
                strengths.append(regs[best])
                # At an end it is no minimum; inside, it must be below both ends.
                ends = [judge_lead(along[end].minus(along[best])) for end in (0, -1)]
                outcomes += ends if 0 < best < len(means) - 1 else ["not reproduced"]
                rows.append([name, f"{regs[best]:.2f}", f"{means[best]:.4f}", f"{means[0]:.4f}"])
            labels = ("regularisation strength", "zero-one error")
            blocks += [
                Figure(
                    partial(curves_figure, regs, errors, *labels, log_x=True),
                    f"Validation error of every stage on {data}",
                    "Zero-one error against the regularisation strength, a curve for each stage.",
                ),
                Table(
                    ["stage", "best strength", "error there", f"at the weakest, {regs[0]:.2f}"],
                    rows,
                    f"Where the validation error is smallest, {data}",
                ),
            ]
        at_an_end = "not reproduced" in outcomes
        verdict = worst_verdict(
            outcomes,
            "a stage has its smallest error at an end of the range of candidates."
            if at_an_end
            else "every stage has a smallest error inside the range of candidates, below both ends "
            f"by {'more than' if set(outcomes) == {'reproduced'} else 'no more than'} noise. The "
            f"minima are at strengths from {min(strengths):.3g} to {max(strengths):.3g}, which is "
            "why each stage has its own.",
            "a stage of HMF has its smallest error at an end of the range" if at_an_end else "",
        )
        text = Text(
            "One rating of every user is held out; the stage is learned from the rest with "
            f"{self.n_factors[scale]} factors. The thesis draws stage 3 alone; it tries "
            "all candidates 10^(i/16) for i from 4 to 40, of which this tries every "
            f"{'ninth' if scale == 'quick' else 'second'}. Stages are compared with themselves "
            "alone, so that all stop by HMF's own rule (`tol=2e-3`)."
        )
        return [verdict, text, *blocks]


class Ranks(Exhibit):
    name, chapter, title = "ranks", 3, "Error against the number of factors"
    methods = ("HMF", "MMMF")
    axes = {"quick": ((100, 20, 5), methods), "full": ((100, 70, 50, 30, 20, 10, 5, 2), methods)}
    band = {"measure": "nmae", "low": 0.06, "high": 0.08}

    def cells_at(self, scale: Scale, rank: int, method: str) -> list[Cell]:
        return make_splits(
            "rating_errors",
            self.n_splits[scale],
            data="ml-100k",
            protocol=EIGHTY,
            method=method,
            params={"n_factors": rank, **STOPPING},
            band=self.band,
            **({"base": "auto"} if method == "HMF" else {}),
        )

    def blocks(self, store: Store, scale: Scale) -> list[Block]:
        ranks, methods = self.axes[scale]
        columns = list(product(methods, ("test", "train")))
        errors = {
            (name, part): [
                self.sample(store, scale, pick(part, "nmae"), rank, name) for rank in ranks
            ]
            for name, part in columns
        }
        tests = {name: errors[name, "test"] for name in methods}
        # Elsewhere the methods are not compared at equal training error.
        reached = [0]
        for k in range(1, len(ranks)):
            if max(errors[name, "train"][k].mean for name in methods) <= self.band["high"]:
                reached.append(k)
        # How far the error of each split rises above the one with the most factors.
        growth = {}
        for name, along in tests.items():
            highest = np.max([along[k].values for k in reached], axis=0)
            growth[name] = Sample(tuple(highest.tolist())).minus(along[0])
        lead = growth["MMMF"].minus(growth["HMF"])
        others = [
            f"{rank} ({format_lead(tests['MMMF'][k].minus(tests['HMF'][k]))})"
            for k, rank in enumerate(ranks)
            if k not in reached
        ]
        fewer = (
            " With fewer the training errors differ, and both do better again once they cannot "
            "even learn the noise; MMMF minus HMF, by the number of factors, is then "
            f"{join_words(others)}."
            if others
            else ""
        )
        rows: list[list[Entry | str]] = [
            [str(rank), *(make_entry(errors[column][k]) for column in columns)]
            for k, rank in enumerate(ranks)
        ]
        headings = ["factors", *(f"{name} {part}" for name, part in columns)]
        return [
            worst_verdict(
                [judge_lead(lead)],
                f"from {ranks[0]} factors to {min(ranks[k] for k in reached)}, the fewest with "
                "which both methods reach the training error that is asked, the test NMAE of HMF "
                f"grows by up to {format_figure(growth['HMF'].mean)} and that of MMMF by up to "
                f"{format_figure(growth['MMMF'].mean)}, a difference of {format_lead(lead)}."
                f"{fewer}",
                "HMF's error does not grow less than MMMF's as factors get fewer",
            ),
            Text(
                "MovieLens 100K, 80 % of the ratings to learn from. For every number of factors "
                "the regularisation strength is the one that brings the training NMAE into "
                f"[0.06, 0.08], or as near as it gets; {STAGES}"
            ),
            Figure(
                lambda: curves_figure(
                    ranks,
                    {name: errors[name, "test"] for name in methods},
                    *("factors", "test NMAE"),
                    log_x=True,
                    descending=True,
                ),
                "Test error as factors get fewer",
                "Test NMAE of HMF and of MMMF against the number of factors, from many to few.",
            ),
            Table(headings, rows, "NMAE on test and training ratings"),
        ]


class TrainingError(Exhibit):
    name, chapter, title = "training-error", 3, "Test error against training error"

    def trade_off(self, scale: Scale) -> TradeOff:
        quick = scale == "quick"
        params = {"n_factors": 20 if quick else 100, **STOPPING}
        # Training errors change fast along the penalty: what lies between coarser candidates would
        # be a matter of interpolation.
        regs = sixteenths(range(4, 33, 12 if quick else 2))
        methods = {"HMF": params, "MMMF": params}
        scales = {"HMF": sixteenths(range(-16, 9, 8 if quick else 2))}
        return TradeOff("ml-100k", methods, regs, self.n_splits[scale], "nmae", scales)

    def cells(self, scale: Scale) -> list[Cell]:
        return self.trade_off(scale).cells()

    def blocks(self, store: Store, scale: Scale) -> list[Block]:
        curves = self.trade_off(scale)
        lead = curves.lead(store, "HMF", "MMMF")
        if lead is None:
            return [Verdict("not run", "the curves have no training error in common yet.")]
        return [
            worst_verdict(
                [judge_lead(lead)],
                f"at equal training error the test NMAE of MMMF minus that of HMF is "
                f"{format_lead(lead)}, on average over the range that both reach.",
                f"HMF is {format_figure(abs(lead.mean))} behind MMMF at equal training error",
            ),
            Text(
                "MovieLens 100K, 80 % of the ratings to learn from; along a curve the penalty gets "
                f"weaker from right to left; {STAGES}"
            ),
            Figure(
                lambda: trade_off_figure({"": curves}, store, "NMAE"),
                "Test error against training error",
                "Two curves of test NMAE against training NMAE, for HMF and for MMMF.",
            ),
        ]


EXHIBITS = (Validation(), NMAE, Ranks(), TrainingError())
