"""Chapter 3 against size: running time over factors, recovery over factors and observed entries."""

from functools import partial
from typing import Any

import numpy as np

from studies.harness import Cell, Store, make_splits
from studies.harness.markdown import Block, Figure, Text
from studies.thesis.exhibit import Exhibit, Scale
from studies.thesis.figures import curves_figure, heat_maps_figure
from studies.thesis.measures import make_recipe
from studies.thesis.samples import make_verdict, pick


class RunningTime(Exhibit):
    name, chapter, title = "running-time", 3, "Running time against the factors"
    methods = ("HMF", "PHMF", "MMMF")
    axes = {
        "quick": (("ml-100k",), (10, 50), methods),
        "full": (("ml-1m", "eachmovie-sample"), (10, 20, 40, 60, 80, 100), methods),
    }
    #: About the regularisation strengths that are chosen at 100 factors, and one stopping rule.
    regs: dict[str, dict[str, Any]] = {
        "ml-100k": {"HMF": [6.0, 10.0, 17.0, 14.0], "MMMF": 15.0},
        "ml-1m": {"HMF": [10.0, 15.0, 24.0, 24.0], "MMMF": 20.0},
        "eachmovie-sample": {"HMF": [15.0, 20.0, 24.0, 24.0, 24.0], "MMMF": 20.0},
    }
    stopping = {"tol": 2e-3, "max_iter": 100}

    def cells_at(self, scale: Scale, data: str, rank: int, method: str) -> list[Cell]:
        settings: dict[str, Any] = {"data": data, "method": method}
        reg = self.regs[data][method.lstrip("P")]
        params: dict[str, Any] = {"n_factors": rank, "reg": reg, **self.stopping}
        if method == "PHMF":
            params["schedule"] = "independent"
            settings["n_jobs"] = -1
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
    name, chapter, title = "recovery", 3, "Recovery of a matrix from a part of it"
    methods = ("MMMF", "HMF")
    axes = {
        "quick": ((0.2, 0.5, 0.8), (2, 5, 10), methods),
        "full": ((0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9), (2, 5, 10, 15, 20, 30), methods),
    }
    #: From this share on, the thesis says, HMF is ahead.
    claimed_from = 0.4

    def cells_at(self, scale: Scale, share: float, rank: int, method: str) -> list[Cell]:
        size, n_factors = (150, 5) if scale == "quick" else (500, 10)
        return make_splits(
            "rating_errors",
            self.n_splits[scale],
            data=make_recipe(size, n_factors, 1.0, 0),
            protocol={"name": "share", "train": share},
            method=method,
            params={"n_factors": rank},
        )

    def blocks(self, store: Store, scale: Scale) -> list[Block]:
        (shares, ranks, methods), error = self.axes[scale], pick("test", "fre")
        maps = {
            method: np.array(
                [
                    [self.sample(store, scale, error, share, rank, method).mean for share in shares]
                    for rank in ranks
                ]
            )
            for method in methods
        }
        ahead, much = maps["HMF"] < maps["MMMF"], np.array(shares) >= self.claimed_from
        means = {
            (method, where): maps[method][:, much if where == "much" else ~much].mean()
            for method in methods
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
                    *([f"{share:.0%}" for share in shares], list(map(str, ranks))),
                    *("observed entries", "factors", "FRE"),
                ),
                "Error of recovery",
                "Two heat maps, for MMMF and for HMF, of the error against the share of observed "
                "entries and the number of factors.",
            ),
        ]


EXHIBITS = (RunningTime(), Recovery())
