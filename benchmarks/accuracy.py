"""Accuracy of every ratings method on MovieLens, beside the thesis and peers.

Run by hand, for example::

    python -m benchmarks accuracy                        # everything, a few minutes
    python -m benchmarks accuracy ml-100k --peers none   # one section, ours alone

Each section prints a Markdown table.  The sections ``ml-100k`` and ``probabilities`` measure in
processes of their own, as the command ``ratings`` does.
"""

import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from benchmarks.cells import interleaved
from benchmarks.methods import HMF_REG, RATINGS, Method
from benchmarks.options import add_harness_arguments, chosen_methods, harness_of
from benchmarks.rating_problems import rating_problem, split_rows, table_of
from benchmarks.summaries import LEARNING, Row, seconds, summarised
from benchmarks.tables import brief, method_table, number, print_header, print_row
from marginmf.datasets import load_ratings
from marginmf.metrics import normalised_mean_absolute_error, ratings_report, zero_one_error
from marginmf.protocols import StrongGeneralisation, WeakGeneralisation, evaluate
from marginmf.ratings import ALS, HMF, MMMF, PMMMF, MarginEnsemble

SEEDS = (1, 2, 3)
REG_1M = HMF_REG["ml-1m"]["reg"]


def measure(make: Callable[[], Any]) -> dict[str, float]:
    """Return errors, the training MAE and the seconds to fit, averaged over three 80/20 splits."""
    table, runs = table_of("ml-100k"), []
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
PEERS = tuple(method for method in RATINGS if not method.ours)
PEERS_WITH_PROBABILITIES = tuple(m for m in PEERS if m.kind == "OrderedProbit")


def measured(methods: Sequence[Method], args: Namespace, section: str) -> list[Row]:
    """Return a row for each method on 80/20 splits of MovieLens 100K."""
    cells = interleaved(
        chosen_methods(methods, args), [("ml-100k", "80/20")], args.threads[:1], args.repeats
    )
    harness = harness_of(args, f"accuracy-{section}")
    return summarised(harness.run(cells, rating_problem))


def section_100k(args: Namespace) -> None:
    """80/20, three splits, 100 factors; integer predictions."""
    columns = [
        ("MAE", lambda r: number(r.error("rule_mae"))),
        ("zero-one error", lambda r: number(r.error("rule_zero_one"))),
        ("RMSE", lambda r: number(r.error("rule_rmse"))),
        ("RMSE of estimates", lambda r: number(r.error("rmse_real"))),
        ("prepare + fit, s", lambda r: brief(r.cost(seconds("wall", *LEARNING)))),
    ]
    print(method_table(measured(FIXED + PEERS, args, "ml-100k"), columns))


def section_probabilities(args: Namespace) -> None:
    """Median, mode and mean of the predicted distributions; MarginEnsemble."""
    methods = WITH_PROBABILITIES + PEERS_WITH_PROBABILITIES
    columns = [
        ("MAE (rule)", lambda r: number(r.error("rule_mae"))),
        ("MAE (median)", lambda r: number(r.error("mae"))),
        ("zero-one error (mode)", lambda r: number(r.error("zero_one"))),
        ("RMSE (mean)", lambda r: number(r.error("rmse_real"))),
        ("log loss", lambda r: number(r.error("log_loss"))),
        ("ECE", lambda r: number(r.error("ece"))),
        ("worst ECE", lambda r: number(max(one["errors"]["ece"] for one in r.records))),
        ("seconds", lambda r: brief(r.cost(seconds("wall", *LEARNING)))),
        ("CPU seconds", lambda r: brief(r.cost(seconds("cpu", *LEARNING)))),
    ]
    print(method_table(measured(methods, args, "probabilities"), columns))


def section_defaults(args: Namespace) -> None:
    """No argument but the seed: reg="auto"; integer predictions; against a fit with that reg."""
    print_header("method", "MAE", "zero-one error", "reg", "seconds", "times one fit")
    table = table_of("ml-100k")
    for method in (HMF, MMMF, PMMMF, ALS):
        name, options = method.__name__, {"bias": True} if method is ALS else {}
        r = measure(lambda method=method, options=options: method(random_state=0, **options))
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
    parser.add_argument("sections", nargs="*", metavar="SECTION", help=", ".join(SECTIONS))
    add_harness_arguments(parser, RATINGS, repeats=len(SEEDS))
    parser.add_argument("--splits", type=int, default=3, help="splits of MovieLens 1M")


def main(args: Namespace) -> None:
    if args.quick:
        args.repeats = args.splits = 1
    for name in args.sections or SECTIONS:
        if name not in SECTIONS:
            raise SystemExit(f"There is no section {name!r}: {', '.join(SECTIONS)}.")
        section = SECTIONS[name]
        print(f"\n## {name}: {(section.__doc__ or '').splitlines()[0]}\n", flush=True)
        section(args)
