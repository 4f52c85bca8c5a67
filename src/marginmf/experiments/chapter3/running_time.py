"""How long HMF, its parallel form and MMMF take, against the number of factors."""

from functools import partial
from typing import Any

from marginmf.experiments.blocks import Block, Figure, Text, Verdict
from marginmf.experiments.cell import Cell
from marginmf.experiments.exhibit import Exhibit, Scale
from marginmf.experiments.figures import curves_figure
from marginmf.experiments.samples import Sample, at, measured, once_run
from marginmf.experiments.store import Store

#: The weights of the penalty, about those that are chosen at 100 factors.  One stopping rule.
SAME = {"tol": 2e-3, "max_iter": 100}
REGS = {
    "ml-100k": {"HMF": [6.0, 10.0, 17.0, 14.0], "MMMF": 15.0},
    "ml-1m": {"HMF": [10.0, 15.0, 24.0, 24.0], "MMMF": 20.0},
    "eachmovie-sample": {"HMF": [15.0, 20.0, 24.0, 24.0, 24.0], "MMMF": 20.0},
}
METHODS = ("HMF", "PHMF", "MMMF")


def data_at(scale: Scale) -> tuple[str, ...]:
    """Return the data that are used."""
    return ("ml-100k",) if scale == "quick" else ("ml-1m", "eachmovie-sample")


def ranks_at(scale: Scale) -> tuple[int, ...]:
    """Return the numbers of factors."""
    return (10, 50) if scale == "quick" else (10, 20, 40, 60, 80, 100)


def cells_for(data: str, method: str, rank: int, scale: Scale) -> list[Cell]:
    """Return the repetitions of one point; nothing else runs while they do."""
    settings: dict[str, Any] = {"data": data, "method": method}
    params: dict[str, Any] = {"n_factors": rank, "reg": REGS[data][method.lstrip("P")], **SAME}
    if method == "PHMF":
        params["schedule"] = "independent"
        settings["n_jobs"] = -1
    return [
        Cell("fit_time", {**settings, "params": params, "repetition": repetition}, alone=True)
        for repetition in range(1 if scale == "quick" else 3)
    ]


def cells(scale: Scale) -> list[Cell]:
    """Return every method with every number of factors on all the data."""
    return [
        cell
        for data in data_at(scale)
        for rank in ranks_at(scale)
        for method in METHODS
        for cell in cells_for(data, method, rank, scale)
    ]


@once_run
def show(store: Store, scale: Scale) -> list[Block]:
    """Draw the seconds, and say whether the hierarchy takes less than one MMMF."""
    ranks = ranks_at(scale)
    times: dict[tuple[str, str], list[Sample]] = {
        (data, method): [
            measured(store, cells_for(data, method, rank, scale), at("fit_seconds"))
            for rank in ranks
        ]
        for data in data_at(scale)
        for method in METHODS
    }
    shares = {
        data: [
            hmf.mean / mmmf.mean
            for hmf, mmmf in zip(times[data, "HMF"], times[data, "MMMF"], strict=True)
        ]
        for data in data_at(scale)
    }
    holds = all(max(one) < 1 for one in shares.values())
    words = "; ".join(f"{data}: {min(one):.2f} to {max(one):.2f}" for data, one in shares.items())
    figures: list[Block] = [
        Figure(
            partial(
                curves_figure,
                [float(rank) for rank in ranks],
                {method: times[data, method] for method in METHODS},
                "factors",
                "seconds to fit",
                from_zero=True,
            ),
            f"Seconds to fit {data}",
            f"Seconds against the number of factors on {data}, for HMF, PHMF and MMMF.",
        )
        for data in data_at(scale)
    ]
    return [
        Verdict(
            "reproduced" if holds else "not reproduced",
            f"all stages of HMF together take this share of the time of MMMF: {words}.",
        ),
        Text(
            "Wall-clock seconds of a fit to all ratings, with fixed weights of the penalty and "
            "one stopping rule for all (`tol=2e-3`). HMF and MMMF use one thread, and each stage "
            "of HMF starts from its neighbour's solution; PHMF trains the stages from random "
            "starts, side by side on all cores of the machine."
        ),
        *figures,
    ]


EXHIBIT = Exhibit("running-time", 3, "figure", "Running time against the factors", cells, show)
