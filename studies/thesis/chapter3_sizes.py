"""Chapter 3 against size: running time over factors, recovery over factors and observed entries."""

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from studies.harness import Cell, Store
from studies.harness.cell import make_splits
from studies.harness.markdown import Block, Figure, Text
from studies.thesis.exhibit import Exhibit, Scale
from studies.thesis.figures import curves_figure, heat_maps_figure
from studies.thesis.rating_measures import make_recipe
from studies.thesis.samples import make_verdict, pick


class RunningTime(Exhibit):
    """How long HMF, its parallel form and MMMF take, against the number of factors."""

    name, chapter, title = "running-time", 3, "Running time against the factors"
    methods = ("HMF", "PHMF", "MMMF")
    #: About the regularisation strengths that are chosen at 100 factors, and one stopping rule.
    regs: dict[str, dict[str, Any]] = {
        "ml-100k": {"HMF": [6.0, 10.0, 17.0, 14.0], "MMMF": 15.0},
        "ml-1m": {"HMF": [10.0, 15.0, 24.0, 24.0], "MMMF": 20.0},
        "eachmovie-sample": {"HMF": [15.0, 20.0, 24.0, 24.0, 24.0], "MMMF": 20.0},
    }
    stopping = {"tol": 2e-3, "max_iter": 100}

    def data(self, scale: Scale) -> tuple[str, ...]:
        return ("ml-100k",) if scale == "quick" else ("ml-1m", "eachmovie-sample")

    def ranks(self, scale: Scale) -> tuple[int, ...]:
        return (10, 50) if scale == "quick" else (10, 20, 40, 60, 80, 100)

    def points(self, scale: Scale) -> Iterator[tuple[str, str, int]]:
        for data in self.data(scale):
            for rank in self.ranks(scale):
                for method in self.methods:
                    yield data, method, rank

    def cells_at(self, scale: Scale, data: str, method: str, rank: int) -> list[Cell]:
        settings: dict[str, Any] = {"data": data, "method": method}
        reg = self.regs[data][method.lstrip("P")]
        params: dict[str, Any] = {"n_factors": rank, "reg": reg, **self.stopping}
        if method == "PHMF":
            params["schedule"] = "independent"
            settings["n_jobs"] = -1
        return [
            Cell("fit_time", {**settings, "params": params, "repetition": repetition}, alone=True)
            for repetition in range(1 if scale == "quick" else 3)
        ]

    def blocks(self, store: Store, scale: Scale) -> list[Block]:
        ranks, find = self.ranks(scale), partial(self.sample, store, scale, pick("fit_seconds"))
        times = {
            (data, method): [find(data, method, rank) for rank in ranks]
            for data in self.data(scale)
            for method in self.methods
        }
        shares = {
            data: [
                hmf.mean / mmmf.mean
                for hmf, mmmf in zip(times[data, "HMF"], times[data, "MMMF"], strict=True)
            ]
            for data in self.data(scale)
        }
        ranges = {data: f"{min(one):.2f} to {max(one):.2f}" for data, one in shares.items()}
        words = "; ".join(f"{data}: {one}" for data, one in ranges.items())
        figures = [
            Figure(
                partial(
                    curves_figure,
                    [float(rank) for rank in ranks],
                    {method: times[data, method] for method in self.methods},
                    "factors",
                    "seconds to fit",
                    from_zero=True,
                ),
                f"Seconds to fit {data}",
                f"Seconds against the number of factors on {data}, for HMF, PHMF and MMMF.",
            )
            for data in self.data(scale)
        ]
        return [
            make_verdict(
                all(max(one) < 1 for one in shares.values()),
                f"all stages of HMF together take this share of the time of MMMF: {words}.",
                f"HMF takes up to {max(map(max, shares.values())):.2f} times as long as MMMF",
            ),
            Text(
                "Wall-clock seconds of a fit to all ratings, with fixed regularisation strengths "
                "and one stopping rule for all (`tol=2e-3`). HMF and MMMF use one thread, and each "
                "stage of HMF starts from its neighbour's solution; PHMF trains the stages from "
                "random starts, side by side on all cores of the machine."
            ),
            *figures,
        ]


class Recovery(Exhibit):
    """How well a matrix is recovered from a share of its entries."""

    name, chapter, title = "recovery", 3, "Recovery of a matrix from a part of it"
    methods = ("MMMF", "HMF")
    #: From this share on, the thesis says, HMF is ahead.
    claimed_from = 0.4

    def shares(self, scale: Scale) -> tuple[float, ...]:
        if scale == "quick":
            return (0.2, 0.5, 0.8)
        return (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9)

    def ranks(self, scale: Scale) -> tuple[int, ...]:
        return (2, 5, 10) if scale == "quick" else (2, 5, 10, 15, 20, 30)

    def points(self, scale: Scale) -> Iterator[tuple[str, float, int]]:
        for share in self.shares(scale):
            for rank in self.ranks(scale):
                for method in self.methods:
                    yield method, share, rank

    def cells_at(self, scale: Scale, method: str, share: float, rank: int) -> list[Cell]:
        quick = scale == "quick"
        return make_splits(
            "rating_errors",
            1 if quick else 3,
            data=make_recipe(150 if quick else 500, 5 if quick else 10, 1.0, 0),
            protocol={"name": "share", "train": share},
            method=method,
            params={"n_factors": rank},
        )

    def blocks(self, store: Store, scale: Scale) -> list[Block]:
        shares, ranks, error = self.shares(scale), self.ranks(scale), pick("test", "fre")
        maps = {
            method: np.array(
                [
                    [self.sample(store, scale, error, method, share, rank).mean for share in shares]
                    for rank in ranks
                ]
            )
            for method in self.methods
        }
        ahead, much = maps["HMF"] < maps["MMMF"], np.array(shares) >= self.claimed_from
        means = {
            (method, where): maps[method][:, much if where == "much" else ~much].mean()
            for method in self.methods
            for where in ("much", "little")
        }
        recipe = self.cells(scale)[0].settings["data"]
        return [
            make_verdict(
                ahead[:, much].mean() > 0.5,
                f"with at least {self.claimed_from:.0%} of the entries, HMF has the smaller error "
                f"in {ahead[:, much].sum()} of {ahead[:, much].size} comparisons (mean FRE "
                f"{means['HMF', 'much']:.3f} against {means['MMMF', 'much']:.3f}); with fewer, in "
                f"{ahead[:, ~much].sum()} of {ahead[:, ~much].size} "
                f"({means['HMF', 'little']:.3f} against {means['MMMF', 'little']:.3f}).",
                "matrices made from one set of factors suit MMMF better than HMF",
            ),
            Text(
                f"A matrix of {recipe['n_users']} x {recipe['n_items']} stars made from "
                f"{recipe['n_factors']} factors without noise (the thesis does not say how many it "
                "used): all levels follow from one set of factors, as MMMF assumes, where HMF "
                "learns a set for each stage. The error is the Frobenius-norm relative error on "
                "the entries that were not learned from; the regularisation strength is chosen on "
                "ratings held out of those that were."
            ),
            Figure(
                lambda: heat_maps_figure(
                    maps,
                    [f"{share:.0%}" for share in shares],
                    [str(rank) for rank in ranks],
                    "observed entries",
                    "factors",
                    "FRE",
                ),
                "Error of recovery",
                "Two heat maps, for MMMF and for HMF, of the error against the share of observed "
                "entries and the number of factors.",
            ),
        ]


EXHIBITS = (RunningTime(), Recovery())
