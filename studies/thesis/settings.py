"""Choose the settings of chapter 3's systems, on ratings that no split tests on.

    python -m studies thesis-settings              # measure what is missing, and write the choice
    python -m studies thesis-settings --show       # measure nothing: print what was found
    python -m studies thesis-settings --methods URP NMF --data ml-1m

The ratings that are in the training parts of all splits of a protocol are divided again: five of
each user's are held out, every candidate learns from the others, and the one with the smallest mean
absolute error is chosen for all splits.  Where a search takes long there is one for both protocols,
on ratings that are in the training parts of all splits of both.  Systems that choose for themselves
(``reg="auto"``) are not here.
"""

import json
from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Mapping
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

from marginmf._utils.files import atomic_write
from studies.harness import Cell, Store, run
from studies.harness.markdown import make_table
from studies.harness.running import show_progress

FILE = Path(__file__).with_suffix(".json")
#: How many users are trained on where others are new: as in the literature, or as large a share.
STRONG_USERS: Mapping[str, float] = {"ml-1m": 5000, "eachmovie-sample": 0.82, "ml-100k": 0.83}
DATA = (*STRONG_USERS,)
PROTOCOLS = ("weak", "strong")
#: The search on ratings that no split of either protocol tests on: for these systems, where there
#: are a million ratings.
BOTH = "both"
LARGE = ("ml-1m", "eachmovie-sample")
SEARCHED_ONCE = (
    *("Attitude", "E-MMMF votes", "GP-LVM", "Gibbs MMMF", "Gibbs MMMF published", "Gibbs iPMMMF"),
    *("iPMMMF", "iBPMMMF", "iBPMMMF published"),
)
N_SPLITS = 3
#: How many ratings of every user candidates are tested on: with one, chance would choose.
HELD_OUT = 5

Params = Mapping[str, Any]
#: Errors of candidates that were measured, with their settings.
Found = list[tuple[float, Params]]
#: Data, protocol (or `BOTH`) and system of a search.
Point = tuple[str, str, str]


def grid(**values: list[Any]) -> list[dict[str, Any]]:
    """Return all combinations.

    >>> grid(n_factors=[2, 5], reg=[1.0])
    [{'n_factors': 2, 'reg': 1.0}, {'n_factors': 5, 'reg': 1.0}]
    """
    return [dict(zip(values, each, strict=True)) for each in product(*values.values())]


def powers(*exponents: float) -> list[float]:
    """Return powers of ten, as the programs of iPMMMF have them.

    >>> powers(-1.5, -1)
    [0.0316, 0.1]
    """
    return [round(10**exponent, 4) for exponent in exponents]


#: Good pairs of strengths lie on a line: one alone would move the margins, not the fit.
GIBBS_PAIRS = ((0.4, 3.0), (0.7, 6.0), (1.0, 12.0), (1.5, 18.0))
#: What each system is tried with.
CANDIDATES: Mapping[str, list[dict[str, Any]]] = {
    "Imputed SVD": grid(n_factors=[7, 14, 28, 56]),
    "NMF": grid(n_factors=[3, 5, 10], reg=[1.0, 3.0, 10.0]),
    "SVD": grid(n_factors=[25, 50, 100], reg=[0.03, 0.05, 0.1]),
    "URP": grid(n_factors=[3, 5, 10, 20]),
    "Attitude": grid(n_factors=[4, 8, 16], reg=[3.0, 10.0]),
    "BPMF": grid(n_factors=[10, 20, 32]),
    "Gibbs MMMF": [{"cost": cost, "precision": precision} for cost, precision in GIBBS_PAIRS],
    "Gibbs MMMF published": grid(cost=powers(-1.5, -1.375, -1.25, -1.125, -1, -0.875, -0.75)),
    "E-MMMF votes": [
        *grid(share=[1.0, 0.5, 0.25], vote=["median", "mean"]),
        *grid(bagging=[True], share=[1.0, 0.5, 0.25], vote=["median", "mean"]),
    ],
    "GP-LVM": [*grid(n_factors=[5], max_iter=[3, 6]), *grid(n_factors=[10], max_iter=[3])],
    "Gibbs iPMMMF": grid(cost=powers(-1.5, -1.25, -1, -0.75)),
    "iPMMMF": grid(cost=powers(-1.625, -1.375, -1.125, -0.875, -0.625)),
    "iBPMMMF": grid(cost=powers(-1.625, -1.375, -1.125, -0.875)),
    # The prior of the published model gives way as rounds go on: few of them regularise too.
    "iBPMMMF published": grid(cost=powers(-1.875, -1.5, -1.125, -0.75), max_iter=[12, 50]),
}
#: Shorter chains and smaller ensembles suffice to choose.
WHILE_CHOOSING: Mapping[str, Params] = {
    "BPMF": {"n_burn": 15, "n_samples": 15, "thin": 2},
    "Gibbs MMMF": {"n_burn": 15, "n_samples": 15, "thin": 2},
    "Gibbs MMMF published": {"n_burn": 10, "n_samples": 15, "thin": 1},
    "Gibbs iPMMMF": {"n_burn": 10, "n_samples": 10},
    "E-MMMF votes": {"n_estimators": 7},
}


def protocol_of(data: str, name: str) -> dict[str, Any]:
    """Return a protocol of the table as `split_rows` takes it."""
    return {"name": name} | ({"n_train_users": STRONG_USERS[data]} if name == "strong" else {})


def find_search(data: str, name: str, method: str) -> str:
    """Return the protocol whose training parts a system's settings are chosen on, or `BOTH`."""
    return BOTH if data in LARGE and method in SEARCHED_ONCE else name


def list_searches(data: Iterable[str], methods: Iterable[str]) -> list[Point]:
    """Return data, protocol and system of all searches, each once."""
    points = product(data, PROTOCOLS, methods)
    return list(dict.fromkeys((point[0], find_search(*point), point[2]) for point in points))


def candidate_cells(data: str, name: str, method: str) -> list[Cell]:
    """Return the cells of a system's candidates."""
    every = [protocol_of(data, one) for one in (PROTOCOLS if name == BOTH else (name,))]
    protocol = {"protocol": every[0]} if len(every) == 1 else {"protocols": every}
    fixed = {"data": data, **protocol, "n_splits": N_SPLITS, "held_out": HELD_OUT, "method": method}
    short = WHILE_CHOOSING.get(method, {})
    return [
        Cell("candidate_error", {**fixed, "params": {**params, **short}})
        for params in CANDIDATES[method]
    ]


def chosen_params(data: str, name: str, method: str) -> dict[str, Any]:
    """Return the settings that were chosen; none, hence the defaults, where nothing was."""
    search = find_search(data, name, method)
    return dict(_chosen().get(data, {}).get(search, {}).get(method, {}))


@cache
def _chosen() -> dict[str, Any]:
    chosen: dict[str, Any] = json.loads(FILE.read_text()) if FILE.is_file() else {}
    return chosen


def find_errors(store: Store, data: str, name: str, method: str) -> Found:
    """Return the candidates that were measured, the best first."""
    cells = zip(candidate_cells(data, name, method), CANDIDATES[method], strict=True)
    measured = [(store.values(cell), params) for cell, params in cells]
    found = [(values["test"]["mae"], params) for values, params in measured if values is not None]
    return sorted(found, key=lambda one: one[0])


def add_arguments(parser: ArgumentParser) -> None:
    add, methods, data = parser.add_argument, list(CANDIDATES), list(DATA)
    add("--out", type=Path, default=Path("results"), help="where cells are stored")
    names = {"choices": methods, "metavar": "NAME", "help": f"among {', '.join(methods)}"}
    add("--methods", nargs="+", default=methods, **names)
    add("--data", nargs="+", default=data, choices=data, metavar="NAME", help=", ".join(data))
    add("--jobs", type=int, default=-1, help="cells side by side; -1: all cores")
    add("--to", type=Path, default=FILE, help="where the choice is kept")
    add("--show", action="store_true", help="measure nothing: print the errors")


def main(args: Namespace) -> int:
    """Measure the candidates, print their errors, and keep the best of each system.

    Ends with exit code 1 if some could not be measured, and says why.
    """
    store, points, failures = Store(args.out), list_searches(args.data, args.methods), 0
    if not args.show:
        cells = [cell for point in points for cell in candidate_cells(*point)]
        summary = run(cells, store, n_jobs=args.jobs, watcher=show_progress)
        for reason, number in summary.failures.most_common():
            print(f"{number} of the cells could not be run: {' '.join(reason.split())}")
        failures = summary.failures.total()
    found = {point: find_errors(store, *point) for point in points}
    headings = ("data", "protocol", "method", "settings", "MAE")
    print(make_table(headings, error_rows(found), words=4))
    if not args.show:
        write_choice(found, args.to)
    return int(failures > 0)


def error_rows(found: Mapping[Point, Found]) -> Iterable[list[str]]:
    """Yield a row for each candidate."""
    for point, candidates in found.items():
        for error, params in candidates:
            yield [*point, json.dumps(params), f"{error:.4f}"]


def write_choice(found: Mapping[Point, Found], file: Path) -> None:
    """Keep the best candidates beside those that were chosen before.

    A system of which a candidate has not been measured keeps what it had.
    """
    chosen = json.loads(file.read_text()) if file.is_file() else {}
    for (data, name, method), candidates in found.items():
        if len(candidates) == len(CANDIDATES[method]):
            chosen.setdefault(data, {}).setdefault(name, {})[method] = candidates[0][1]
    with atomic_write(file) as opened:
        opened.write(json.dumps(chosen, indent=1, sort_keys=True).encode() + b"\n")
