"""Accuracy of every ratings method on MovieLens 100K, beside peers.

Run by hand, for example::

    python -m studies accuracy                        # everything, a few minutes
    python -m studies accuracy ml-100k --peers none   # one section, ours alone

Each section prints a Markdown table.  The sections ``ml-100k`` and ``probabilities`` measure in
processes of their own, as the command ``ratings`` does.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import clone

from marginmf.metrics import metric, ratings_report
from marginmf.ratings import ALS, HMF, MMMF, PMMMF
from studies.harness.commands import run_sections, timed
from studies.harness.markdown import print_header, print_row
from studies.peers import comparison
from studies.peers.bench import Task, interleave
from studies.peers.comparison import FIT_WALL, LEARNING, Column, error_column
from studies.peers.methods import RATINGS, Method, ours
from studies.peers.problems import load_table, split_rows

SEEDS = (1, 2, 3)


def measure_fits(model: Any) -> dict[str, float]:
    """Return errors by a model's own rule and the seconds to fit, over three 80/20 splits."""
    table, runs = load_table("ml-100k"), []
    for seed in SEEDS:
        train, test = split_rows(table, "80/20", seed)
        pairs, ratings = table.pairs[train], table.ratings[train]
        if not runs:  # nobody is charged for imports and compilation
            clone(model).fit(pairs[:5000], ratings[:5000]).predict(pairs[:1])
        fitted, seconds = timed(partial(clone(model).fit, pairs, ratings))
        predicted = fitted.predict(table.pairs[test], output="rule")
        runs.append({**ratings_report(table.ratings[test], predicted), "seconds": seconds})
    return {key: float(np.mean([run[key] for run in runs])) for key in runs[0]}


FIXED = (
    ours("HMF(reg=[6, 10, 17, 14])", "HMF", reg=[6, 10, 17, 14]),
    ours("MMMF(reg=15)", "MMMF", reg=15),
    ours("PMMMF(reg=40)", "PMMMF", reg=40),
    ours("ALS(reg=25, bias=True)", "ALS", reg=25, bias=True),
    ours("ALS(reg=25)", "ALS", reg=25),
    ours("BiasOnly()", "BiasOnly"),
)
MMMF_ENSEMBLE = {"members": ["mmmf"], "ensemble": "seeds"}
WITH_PROBABILITIES = tuple(
    ours(name, name.partition("(")[0], calibrated=True, **options)
    for name, options in {
        "MarginEnsemble()": {},
        'MarginEnsemble(["mmmf"], ensemble="seeds")': MMMF_ENSEMBLE,
        "HMF()": {},
        "MMMF()": {},
        "PMMMF()": {},
        "ALS(bias=True)": {"bias": True},
        "BiasOnly()": {},
    }.items()
)
PEERS = tuple(method for method in RATINGS if not method.is_ours)
PEERS_WITH_PROBABILITIES = tuple(m for m in PEERS if m.kind == "OrderedProbit")


def print_table(methods: Sequence[Method], args: Namespace, columns: Sequence[Column]) -> None:
    """Print a row for each method on 80/20 splits of MovieLens 100K."""
    chosen, task = comparison.choose_methods(methods, args), Task("ratings", "ml-100k", "80/20")
    cells = interleave(chosen, [task], args.threads[:1], args.repeats)
    rows, _ = comparison.compare(args, task.problem, cells)
    names, where = {method.name for method in chosen}, (task.data, task.split)
    own = [row for row in rows if row.method in names and (row.data, row.split) == where]
    print(comparison.method_table(own, columns))


def section_100k(args: Namespace) -> None:
    """80/20, three splits, 100 factors; integer predictions."""
    rules = [
        error_column(metric(name).heading, f"rule_{name}") for name in ("mae", "zero_one", "rmse")
    ]
    columns = [*rules, error_column("RMSE of estimates", "rmse_real"), FIT_WALL]
    print_table(FIXED + PEERS, args, columns)


def section_probabilities(args: Namespace) -> None:
    """Median, mode and mean of the predicted distributions; MarginEnsemble."""
    methods = WITH_PROBABILITIES + PEERS_WITH_PROBABILITIES
    columns = [
        error_column("MAE (rule)", "rule_mae"),
        error_column("MAE (median)", "mae"),
        error_column("zero-one error (mode)", "zero_one"),
        error_column("RMSE (mean)", "rmse_real"),
        error_column("log loss", "log_loss"),
        error_column("ECE", "ece"),
        ("worst ECE", lambda row: f"{max(one['errors']['ece'] for one in row.records):.4f}"),
        ("seconds", lambda row: row.seconds("wall", *LEARNING)),
        ("CPU seconds", lambda row: row.seconds("cpu", *LEARNING)),
    ]
    print_table(methods, args, columns)


def section_defaults(args: Namespace) -> None:
    """No argument but the seed: reg="auto"; integer predictions; against a fit with that reg."""
    if args.markdown:
        print("Measured in this process: run it without --markdown.")
        return
    print_header("method", "MAE", "zero-one error", "reg", "seconds", "times one fit")
    table = load_table("ml-100k")
    rows, _ = split_rows(table, "80/20", SEEDS[0])
    data = table.pairs[rows], table.ratings[rows]
    for model in (HMF(), MMMF(), PMMMF(), ALS(bias=True)):
        r, auto, given = measure_fits(model.set_params(random_state=0)), [], []
        for _ in range(3):
            fitted, seconds = timed(partial(clone(model).fit, *data))
            auto.append(seconds)
            again = clone(model).set_params(reg=fitted.reg_)
            given.append(timed(partial(again.fit, *data))[1])
        regs = ", ".join(f"{reg:.3g}" for reg in np.atleast_1d(fitted.reg_))
        figures = r["mae"], r["zero_one"], regs, f"{r['seconds']:.2f}"
        times = f"{np.median(auto) / np.median(given):.1f}"
        print_row(f"{type(model).__name__}()", *figures, times)


SECTIONS = {
    "ml-100k": section_100k,
    "defaults": section_defaults,
    "probabilities": section_probabilities,
}


def add_arguments(parser: ArgumentParser) -> None:
    comparison.add_peer_arguments(parser, RATINGS, repeats=len(SEEDS))


def main(args: Namespace) -> None:
    if args.quick:
        args.repeats = 1
    run_sections(SECTIONS, args)
