"""The NMAE of every ratings method, on users it knows and on users it does not."""

import math
from collections.abc import Sequence
from typing import Any

from marginmf.experiments.blocks import Block, Entry, Table, Text, Verdict
from marginmf.experiments.cell import Cell, Values, splits
from marginmf.experiments.claims import paired_claim, verdict_on
from marginmf.experiments.exhibit import Exhibit, Scale
from marginmf.experiments.published import published
from marginmf.experiments.samples import (
    Sample,
    at,
    beside,
    differ,
    entry,
    figure,
    judged,
    sampled,
)
from marginmf.experiments.store import Store

PROTOCOLS = ("weak", "strong")
NMAE = at("test", "nmae")
#: About the share of the ratings that a split tests on: one for each user.
SHARE = 0.01
#: Titles of the data, the name of the published column, and how many users are trained on in the
#: strong protocol: as many as in the literature, or as large a share.
DATA: dict[str, tuple[str, str | None, int | float]] = {
    "ml-1m": ("MovieLens 1M", "MovieLens", 5000),
    "eachmovie-sample": ("a sample of EachMovie", "EachMovie", 0.82),
    "ml-100k": ("MovieLens 100K (not in the thesis)", None, 0.83),
}
#: What the library has of the thesis's methods, and what it adds.
OURS: dict[str, dict[str, Any]] = {
    "MMMF": {"n_factors": 100},
    "E-MMMF": {"members": ["mmmf"]},
    "PMF": {"n_factors": 100},
    "HMF": {"n_factors": 100},
}
ADDED: dict[str, dict[str, Any]] = {
    "PMMMF": {"n_factors": 100},
    "Margin ensemble": {},
    "Biases": {},
}
QUICK = {name: (OURS | ADDED)[name] for name in ("MMMF", "HMF", "Biases")}


def methods_at(scale: Scale) -> dict[str, dict[str, Any]]:
    """Return the methods that are run, and their parameters."""
    return QUICK if scale == "quick" else OURS | ADDED


def cells_for(data: str, protocol: str, method: str, scale: Scale) -> list[Cell]:
    """Return the splits of one place in the table."""
    settings: dict[str, Any] = {"name": protocol}
    if protocol == "strong":
        settings["n_train_users"] = DATA[data][2]
    return splits(
        "rating_errors",
        1 if scale == "quick" else 3,
        data=data,
        protocol=settings,
        method=method,
        params=methods_at(scale)[method],
    )


def data_at(scale: Scale) -> Sequence[str]:
    """Return the data that are used."""
    return ("ml-1m",) if scale == "quick" else tuple(DATA)


def cells(scale: Scale) -> list[Cell]:
    """Return every method on every split of all the data."""
    return [
        cell
        for data in data_at(scale)
        for protocol in PROTOCOLS
        for method in methods_at(scale)
        for cell in cells_for(data, protocol, method, scale)
    ]


def show(store: Store, scale: Scale) -> list[Block]:
    """Show one table for each data set, the thesis's figures beside ours."""
    samples = {
        (data, protocol, method): sampled(store, cells_for(data, protocol, method, scale), NMAE)
        for data in data_at(scale)
        for protocol in PROTOCOLS
        for method in methods_at(scale)
    }
    blocks: list[Block] = [_verdict(store, samples, scale)]
    blocks.append(
        Text(
            "Weak: one rating of every user is held out. Strong: new users, placed by all but one "
            "of their ratings. Splits have the seeds 1, 2, 3; ± is the standard deviation over "
            "them. The weight of the penalty is chosen on ratings held out of the training part. "
            "Predictions are whole stars by each method's own rule."
        )
    )
    for data in data_at(scale):
        blocks.append(_table(data, samples, scale))
    return blocks


def _table(data: str, samples: dict[Any, Sample | None], scale: Scale) -> Table:
    table, (title, column, _) = published("nmae"), DATA[data]
    known = [*table.methods] if column else []
    names = known + [name for name in methods_at(scale) if name not in known]
    rows = []
    for name in names:
        row = [Entry(name)]
        for protocol in PROTOCOLS:
            found = samples.get((data, protocol, name))
            best = found is not None and found.mean == _smallest(samples, data, protocol)
            mark = "*" if differ(found, samples.get((data, protocol, "HMF")), SHARE) else ""
            shown = entry(found, best=best, mark=mark)
            if name not in methods_at(scale):
                shown = Entry("not yet" if name not in OURS else "not run", faint=True)
            there = table.at(protocol, column, name) if column and name in known else None
            row += beside(shown, found, there) if column else [shown]
        rows.append(row)
    three = ("published", "ours", "difference") if column else ("",)
    headings = [f"{protocol} {what}".strip() for protocol in PROTOCOLS for what in three]
    notes = [
        "Bold: the best of ours. * differs from ours of HMF at 0.05, by the t-test over splits "
        "that allows for training sets in common; with three splits it seldom can.",
        "Not yet: the library does not have this method.",
    ]
    if "E-MMMF" in names:
        notes.append("E-MMMF here: 30 bags of MMMF of up to 32 factors, combined by calibration.")
    if data == "eachmovie-sample":
        notes.append(
            "EachMovie has been withdrawn: this sample has 1,009,402 of its 2,811,983 ratings, by "
            "5,055 users with at least 121 each, so its figures are not those of the whole."
        )
    return Table(["method", *headings], rows, f"NMAE on {title}", notes=notes)


def _smallest(samples: dict[Any, Sample | None], data: str, protocol: str) -> float:
    found = [
        one.mean
        for (where, how, _), one in samples.items()
        if one is not None and (where, how) == (data, protocol)
    ]
    return min(found)


def _verdict(store: Store, samples: dict[Any, Sample | None], scale: Scale) -> Verdict:
    outcomes, words = [], []
    for data in data_at(scale):
        title, column, _ = DATA[data]
        for protocol in PROTOCOLS:
            cells = cells_for(data, protocol, "HMF", scale)
            ours, scatter = samples[data, protocol, "HMF"], sampled(store, cells, by_chance)
            if ours is None or scatter is None:
                return Verdict("not run", f"HMF on {title} has not been run.")
            there = published("nmae").at(protocol, column, "HMF") if column else None
            said = f"{title} {protocol} {figure(ours.mean)}"
            # Only what was measured on the same ratings can be held against the thesis.
            if there is not None and data == "ml-1m":
                outcome = judged(ours, there, higher_is_better=False, least_spread=scatter.mean)
                outcomes.append(outcome)
                said += f" (published {figure(there.mean)}, {outcome})"
            others = cells_for(data, protocol, "MMMF", scale)
            words += [said, paired_claim(store, cells, others, NMAE, "HMF", "MMMF")]
    return verdict_on(outcomes, "; ".join(words) + ".")


def by_chance(values: Values) -> float:
    """Return the standard error of a split's NMAE for want of test ratings.

    >>> round(by_chance({"test": {"mae": 0.6, "rmse": 1.0, "nmae": 0.375}, "n_test": 100}), 6)
    0.05
    """
    errors = values["test"]
    scatter = math.sqrt(errors["rmse"] ** 2 - errors["mae"] ** 2)
    return float(scatter * errors["nmae"] / errors["mae"] / math.sqrt(values["n_test"]))


EXHIBIT = Exhibit(
    "nmae", 3, "table", "NMAE of all methods, weak and strong generalisation", cells, show
)
