"""Accuracy of every ratings method on MovieLens, beside the thesis and peers.

Run by hand, for example::

    python -m studies accuracy                        # everything, a few minutes
    python -m studies accuracy ml-100k --peers none   # one section, ours alone

Each section prints a Markdown table.  The sections ``ml-100k`` and ``probabilities`` measure in
processes of their own, as the command ``ratings`` does.
"""

import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from marginmf.datasets import load_ratings
from marginmf.metrics import normalised_mean_absolute_error, ratings_report, zero_one_error
from marginmf.protocols import StrongGeneralisation, WeakGeneralisation, evaluate
from marginmf.ratings import ALS, HMF, MMMF, PMMMF, MarginEnsemble
from studies.harness.commands import add_sections, run_sections
from studies.harness.markdown import print_header, print_row
from studies.harness.metrics import heading
from studies.peers.bench import Task, interleave
from studies.peers.comparison import (
    FIT_WALL,
    LEARNING,
    Column,
    add_peer_arguments,
    choose_methods,
    error_column,
    measure,
    method_table,
    open_store,
    summarise,
)
from studies.peers.methods import HMF_REG, RATINGS, Method
from studies.peers.problems import load_table, split_rows

SEEDS = (1, 2, 3)
REG_1M = HMF_REG["ml-1m"]["reg"]


def measure_fits(make: Callable[[], Any]) -> dict[str, float]:
    """Return errors, the training MAE and the seconds to fit, averaged over three 80/20 splits."""
    table, runs = load_table("ml-100k"), []
    for seed in SEEDS:
        train, test = split_rows(table, "80/20", seed)
        pairs, ratings = table.pairs[train], table.ratings[train]
        if not runs:  # nobody is charged for imports and compilation
            make().fit(pairs[:5000], ratings[:5000]).predict(pairs[:1])
        begin = time.perf_counter()
        model = make().fit(pairs, ratings)
        elapsed = time.perf_counter() - begin
        report = ratings_report(
            table.ratings[test], model.predict(table.pairs[test], output="rule")
        )
        report["train"] = float(np.abs(model.predict(pairs, output="rule") - ratings).mean())
        runs.append({**report, "seconds": elapsed})
    return {key: float(np.mean([run[key] for run in runs])) for key in runs[0]}


def _ours(name: str, estimator: str, **options: Any) -> Method:
    return Method(name, "", "marginmf", "Estimator", {"estimator": estimator, **options})


FIXED = (
    _ours("HMF(reg=[6, 10, 17, 14])", "HMF", reg=[6, 10, 17, 14]),
    _ours("MMMF(reg=15)", "MMMF", reg=15),
    _ours("PMMMF(reg=40)", "PMMMF", reg=40),
    _ours("ALS(reg=25, bias=True)", "ALS", reg=25, bias=True),
    _ours("ALS(reg=25)", "ALS", reg=25),
    _ours("BiasOnly()", "BiasOnly"),
)
WITH_PROBABILITIES = (
    _ours("MarginEnsemble()", "MarginEnsemble", calibrated=True),
    _ours(
        'MarginEnsemble(["mmmf"], ensemble="seeds")',
        "MarginEnsemble",
        members=["mmmf"],
        ensemble="seeds",
        calibrated=True,
    ),
    _ours("HMF()", "HMF", calibrated=True),
    _ours("MMMF()", "MMMF", calibrated=True),
    _ours("PMMMF()", "PMMMF", calibrated=True),
    _ours("ALS(bias=True)", "ALS", bias=True, calibrated=True),
    _ours("BiasOnly()", "BiasOnly", calibrated=True),
)
PEERS = tuple(method for method in RATINGS if not method.is_ours)
PEERS_WITH_PROBABILITIES = tuple(m for m in PEERS if m.kind == "OrderedProbit")


def print_table(methods: Sequence[Method], args: Namespace, columns: Sequence[Column]) -> None:
    """Print a row for each method on 80/20 splits of MovieLens 100K."""
    task, store = Task("ratings", "ml-100k", "80/20"), open_store(args, "ratings", methods)
    cells = interleave(choose_methods(methods, args), [task], args.threads[:1], args.repeats)
    print(method_table(summarise(measure(args, store, cells)), columns))


def section_100k(args: Namespace) -> None:
    """80/20, three splits, 100 factors; integer predictions."""
    rules = [error_column(heading(name), f"rule_{name}") for name in ("mae", "zero_one", "rmse")]
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
    print_header("method", "MAE", "zero-one error", "reg", "seconds", "times one fit")
    table = load_table("ml-100k")
    for method in (HMF, MMMF, PMMMF, ALS):
        name, options = method.__name__, {"bias": True} if method is ALS else {}
        r = measure_fits(lambda method=method, options=options: method(random_state=0, **options))
        rows, _ = split_rows(table, "80/20", SEEDS[0])
        pairs, ratings = table.pairs[rows], table.ratings[rows]
        auto, given, regs = [], [], None
        for _ in range(3):
            begin = time.perf_counter()
            regs = method(random_state=0, **options).fit(pairs, ratings).reg_
            auto.append(time.perf_counter() - begin)
            begin = time.perf_counter()
            method(random_state=0, reg=regs, **options).fit(pairs, ratings)
            given.append(time.perf_counter() - begin)
        shown = ", ".join(f"{reg:.3g}" for reg in np.atleast_1d(regs))
        times = f"{np.median(auto) / np.median(given):.1f}"
        print_row(f"{name}()", r["mae"], r["zero_one"], shown, f"{r['seconds']:.2f}", times)


def section_ensemble_1m(args: Namespace) -> None:
    """Weak generalisation on MovieLens 1M with MarginEnsemble, no argument but the seed."""
    table = load_ratings("ml-1m")
    print_header("split", "NMAE (median)", "zero-one error (mode)", "seconds", "CPU seconds")
    found = []
    for seed in range(1, args.splits + 1):
        train, test = next(WeakGeneralisation(n_splits=1, random_state=seed).split(table.pairs))
        wall, cpu = time.perf_counter(), time.process_time()
        model = MarginEnsemble(random_state=0, n_jobs=args.threads[0])
        model.fit(table.pairs[train], table.ratings[train])
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        true, pairs = table.ratings[test], table.pairs[test]
        nmae = normalised_mean_absolute_error(true, model.predict(pairs), model.levels_)
        zero_one = zero_one_error(true, model.predict(pairs, output="mode"))
        found.append((nmae, zero_one))
        print_row(seed, nmae, zero_one, f"{wall:.0f}", f"{cpu:.0f}")
    print_row("mean", *map(float, np.mean(found, axis=0)), "", "")


def section_1m(args: Namespace) -> None:
    """Weak and strong generalisation on MovieLens 1M; HMF's warm schedule against long runs."""
    table = load_ratings("ml-1m")
    hmf = HMF(reg=REG_1M, random_state=0, n_jobs=args.threads[0])
    long = HMF(reg=REG_1M, random_state=0, n_jobs=args.threads[0], schedule="independent", tol=0.0)
    seeds = range(1, args.splits + 1)
    weak = [WeakGeneralisation(n_splits=1, random_state=seed) for seed in seeds]
    strong = [StrongGeneralisation(5000, n_splits=1, random_state=seed) for seed in seeds]
    strong5 = [
        StrongGeneralisation(5000, held_out=5, n_splits=1, random_state=seed) for seed in seeds
    ]
    cases = [
        ("weak, warm schedule", hmf, weak, "0.4019 ± 0.0044"),
        ("weak, 100 iterations a stage", long, weak, ""),
        ("strong, one rating held out", hmf, strong, "0.4032 ± 0.0022"),
        ("strong, five ratings held out", hmf, strong5, ""),
    ]
    print_header("HMF, d=100", "NMAE", "spread", "zero-one error", "thesis", "seconds")
    for name, model, protocols, published in cases:
        begin = time.perf_counter()
        reports = [evaluate(model, table.pairs, table.ratings, p)[0] for p in protocols]
        seconds = (time.perf_counter() - begin) / len(reports)
        nmae, zero_one = ([r[key] for r in reports] for key in ("nmae", "zero_one"))
        means = float(np.mean(nmae)), float(np.std(nmae)), float(np.mean(zero_one))
        print_row(name, *means, published, f"{seconds:.1f}")
    train, _ = next(weak[0].split(table.pairs))
    hmf.fit(table.pairs[train], table.ratings[train])
    print(f"\nGradient evaluations of the warm schedule, all stages: {hmf.n_evaluations_}")


SECTIONS = {
    "ml-100k": section_100k,
    "defaults": section_defaults,
    "probabilities": section_probabilities,
    "ml-1m": section_1m,
    "ensemble-1m": section_ensemble_1m,
}


def add_arguments(parser: ArgumentParser) -> None:
    add_sections(parser, SECTIONS)
    add_peer_arguments(parser, RATINGS, repeats=len(SEEDS))
    parser.add_argument("--splits", type=int, default=3, help="splits of MovieLens 1M")


def main(args: Namespace) -> None:
    if args.quick:
        args.repeats = args.splits = 1
    run_sections(SECTIONS, args)
