"""Chapter 3 on MovieLens and EachMovie: errors, and how they depend on penalty and factors."""

import math
from collections.abc import Sequence
from functools import partial
from itertools import product
from typing import Any

from studies.harness import Cell, Store, Values, make_splits
from studies.harness.markdown import Block, Entry, Figure, Table, Text, Verdict
from studies.thesis.exhibit import Exhibit, Scale
from studies.thesis.figures import curves_figure, trade_off_figure
from studies.thesis.published import published
from studies.thesis.samples import (
    EIGHTY,
    Sample,
    TradeOff,
    are_different,
    compare_entries,
    find_sample,
    format_figure,
    judge,
    make_entry,
    make_verdict,
    paired_claim,
    pick,
    sixteenths,
    worst_verdict,
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
        regs, blocks, inside = self.regs[scale], [], True
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
                inside &= 0 < best < len(means) - 1
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
        verdict = make_verdict(
            inside,
            "every stage has a smallest error inside the range of candidates, and the stages' "
            "minima differ, which is why each has its own strength."
            if inside
            else "a stage has its smallest error at an end of the range of candidates.",
            "a stage of HMF has its smallest error at an end of the range",
        )
        text = Text(
            "One rating of every user is held out; the stage is learned from the rest with "
            f"{self.n_factors[scale]} factors. The thesis draws stage 3 alone; it tries "
            "all candidates 10^(i/16) for i from 4 to 40, of which this tries every "
            f"{'ninth' if scale == 'quick' else 'second'}."
        )
        return [verdict, text, *blocks]


class Nmae(Exhibit):
    name, chapter, kind = "nmae", 3, "table"
    title = "NMAE of all methods, weak and strong generalisation"
    protocols = ("weak", "strong")
    pick = staticmethod(pick("test", "nmae"))
    #: About the share of the ratings that a split tests on: one for each user.
    share = 0.01
    #: Titles of the data, the name of the published column, and how many users are trained on in
    #: the strong protocol: as many as in the literature, or as large a share.
    sources: dict[str, tuple[str, str | None, float]] = {
        "ml-1m": ("MovieLens 1M", "MovieLens", 5000),
        "eachmovie-sample": ("a sample of EachMovie", "EachMovie", 0.82),
        "ml-100k": ("MovieLens 100K (not in the thesis)", None, 0.83),
    }
    ensemble_note = "E-MMMF here: 30 bags of MMMF of up to 32 factors, combined by calibration."
    sample_note = (
        "EachMovie has been withdrawn: this sample has 1,009,402 of its 2,811,983 ratings, by "
        "5,055 users with at least 121 each, so its figures are not those of the whole."
    )
    #: What the library has of the thesis's methods, and what it adds.
    ours: dict[str, dict[str, Any]] = {
        "MMMF": {"n_factors": 100},
        "E-MMMF": {"members": ["mmmf"]},
        "PMF": {"n_factors": 100},
        "HMF": {"n_factors": 100},
    }
    added = {"PMMMF": {"n_factors": 100}, "Margin ensemble": {}, "Biases": {}}

    axes = {
        "quick": (("ml-1m",), protocols, ("MMMF", "HMF", "Biases")),
        "full": (tuple(sources), protocols, (*ours, *added)),
    }

    def cells_at(self, scale: Scale, data: str, protocol: str, method: str) -> list[Cell]:
        settings: dict[str, Any] = {"name": protocol}
        if protocol == "strong":
            settings["n_train_users"] = self.sources[data][2]
        return make_splits(
            "rating_errors",
            self.n_splits[scale],
            data=data,
            protocol=settings,
            method=method,
            params=(self.ours | self.added)[method],
        )

    def blocks(self, store: Store, scale: Scale) -> list[Block]:
        samples = {
            point: find_sample(store, self.cells_at(scale, *point), self.pick)
            for point in self.points(scale)
        }
        return [
            self._verdict(store, samples, scale),
            Text(
                "Weak: one rating of every user is held out. Strong: new users, folded in from all "
                "but one of their ratings. Splits have the seeds 1, 2, 3; ± is the standard "
                "deviation over them. The regularisation strength is chosen on ratings held out of "
                "the training part. Predictions are whole stars by each method's own rule."
            ),
            *(self._table(data, samples, self.axes[scale][2]) for data in self.axes[scale][0]),
        ]

    def _table(self, data: str, samples: dict[Any, Sample | None], run: Sequence[str]) -> Table:
        table, (title, column, _) = published("nmae"), self.sources[data]
        known = [*table.methods] if column else []
        names = known + [name for name in run if name not in known]
        rows = []
        for name in names:
            row = [Entry(name)]
            for protocol in self.protocols:
                found = samples.get((data, protocol, name))
                own = [samples[data, protocol, method] for method in run]
                best = found is not None and found.mean == min(one.mean for one in own if one)
                other = samples.get((data, protocol, "HMF"))
                mark = "*" if are_different(found, other, self.share) else ""
                shown = make_entry(found, best=best, mark=mark)
                if name not in run:
                    shown = Entry("not run" if name in self.ours else "not yet")
                there = table.at(protocol, column, name) if column and name in known else None
                row += compare_entries(shown, found, there) if column else [shown]
            rows.append(row)
        three = ("published", "ours", "difference") if column else ("",)
        headings = [f"{protocol} {what}".strip() for protocol in self.protocols for what in three]
        notes = [
            "Bold: the best of ours. * differs from ours of HMF at 0.05, by the t-test over splits "
            "that allows for training sets in common; with three splits it seldom can.",
            "Not yet: the library does not have this method.",
        ]
        if "E-MMMF" in names:
            notes.append(self.ensemble_note)
        if data == "eachmovie-sample":
            notes.append(self.sample_note)
        return Table(["method", *headings], rows, f"NMAE on {title}", notes=notes)

    def _verdict(self, store: Store, samples: dict[Any, Sample | None], scale: Scale) -> Verdict:
        outcomes, words = [], []
        for data in self.axes[scale][0]:
            title, column, _ = self.sources[data]
            for protocol in self.protocols:
                cells = self.cells_at(scale, data, protocol, "HMF")
                ours = samples[data, protocol, "HMF"]
                scatter = find_sample(store, cells, standard_error)
                if ours is None or scatter is None:
                    return Verdict("not run", f"HMF on {title} has not been run.")
                there = published("nmae").at(protocol, column, "HMF") if column else None
                found = f"{title} {protocol} {format_figure(ours.mean)}"
                # Only what was measured on the same ratings can be compared with the thesis.
                if there is not None and data == "ml-1m":
                    outcome = judge(ours, there, higher_is_better=False, least_spread=scatter.mean)
                    outcomes.append(outcome)
                    found += f" (published {format_figure(there.mean)}, {outcome})"
                others = self.cells_at(scale, data, protocol, "MMMF")
                words += [found, paired_claim(store, cells, others, self.pick, "HMF", "MMMF")]
        cause = "HMF's NMAE on MovieLens 1M is larger than printed"
        return worst_verdict(outcomes, "; ".join(words) + ".", cause)


def standard_error(values: Values) -> float:
    """Return the standard error of a split's NMAE that its finite number of ratings leaves.

    >>> round(standard_error({"test": {"mae": 0.6, "rmse": 1.0, "nmae": 0.375}, "n_test": 100}), 6)
    0.05
    """
    errors = values["test"]
    scatter = math.sqrt(errors["rmse"] ** 2 - errors["mae"] ** 2)
    return float(scatter * errors["nmae"] / errors["mae"] / math.sqrt(values["n_test"]))


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
            params={"n_factors": rank, "tol": 1e-4, "max_iter": 200},
            band=self.band,
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
        # How far the error rises above the one with the most factors.
        growth = {
            name: max(one.mean for one in errors[name, "test"]) - errors[name, "test"][0].mean
            for name in methods
        }
        rows: list[list[Entry | str]] = [
            [str(rank), *(make_entry(errors[column][k]) for column in columns)]
            for k, rank in enumerate(ranks)
        ]
        headings = ["factors", *(f"{name} {part}" for name, part in columns)]
        return [
            make_verdict(
                growth["HMF"] < growth["MMMF"],
                f"as factors get fewer than {ranks[0]}, the test NMAE of HMF grows by up to "
                f"{format_figure(growth['HMF'])} and that of MMMF by up to "
                f"{format_figure(growth['MMMF'])}. With few factors neither can learn the training "
                "ratings so well as the band asks, whatever the penalty; with very few they cannot "
                "even learn the noise, and both do better again.",
                "HMF's error grows more than MMMF's as factors get fewer",
            ),
            Text(
                "MovieLens 100K, 80 % of the ratings to learn from. For every number of factors "
                "the regularisation strength is the one that brings the training NMAE into "
                "[0.06, 0.08], or as near as it gets; HMF has one strength for all its stages."
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
        params = {"n_factors": 20 if quick else 100, "tol": 1e-4, "max_iter": 200}
        regs = sixteenths(range(4, 41, 12 if quick else 4))
        methods = {"HMF": params, "MMMF": params}
        return TradeOff("ml-100k", methods, regs, self.n_splits[scale], "nmae")

    def cells(self, scale: Scale) -> list[Cell]:
        return self.trade_off(scale).cells()

    def blocks(self, store: Store, scale: Scale) -> list[Block]:
        curves = self.trade_off(scale)
        gap = curves.gap(store, "HMF", "MMMF")
        if gap is None:
            return [Verdict("not run", "the curves have no training error in common yet.")]
        return [
            make_verdict(
                gap > 0,
                f"at equal training error the test NMAE of HMF is {format_figure(abs(gap))} "
                f"{'less' if gap > 0 else 'more'} than that of MMMF, on average over the range "
                "that both reach.",
                f"HMF is {format_figure(abs(gap))} behind MMMF at equal training error",
            ),
            Text(
                "MovieLens 100K, 80 % of the ratings to learn from; along a curve the penalty gets "
                "weaker from right to left. HMF has one strength for all its stages here."
            ),
            Figure(
                lambda: trade_off_figure({"": curves}, store, "NMAE"),
                "Test error against training error",
                "Two curves of test NMAE against training NMAE, for HMF and for MMMF.",
            ),
        ]


NMAE = Nmae()
EXHIBITS = (Validation(), NMAE, Ranks(), TrainingError())
