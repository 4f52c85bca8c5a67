"""Accuracy of every ratings method on MovieLens, beside the thesis and, on request, peers.

Run by hand, for example::

    python -m benchmarks.accuracy                    # everything, a few minutes
    python -m benchmarks.accuracy ml-100k --peers    # one section, with the peers installed here

Each section prints a Markdown table.
"""

import argparse
import time
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from benchmarks import peers
from marginmf.datasets import load_ratings
from marginmf.metrics import (
    expected_calibration_error,
    log_loss,
    mean_absolute_error,
    normalised_mean_absolute_error,
    ratings_report,
    root_mean_squared_error,
    zero_one_error,
)
from marginmf.protocols import StrongGeneralisation, WeakGeneralisation, evaluate
from marginmf.ratings import ALS, HMF, MMMF, PMMMF, BiasOnly, MarginEnsemble

SEEDS = (1, 2, 3)
REG_1M = (10, 15, 24, 24)


def splits_100k() -> Iterable[tuple[Any, Any, Any, Any]]:
    """Yield the three 80/20 splits of MovieLens 100K: train pairs, ratings, test pairs, ratings."""
    table = load_ratings("ml-100k")
    for seed in SEEDS:
        order = np.random.default_rng(seed).permutation(len(table))
        train, test = order[:80_000], order[80_000:]
        yield table.pairs[train], table.ratings[train], table.pairs[test], table.ratings[test]


def measure(make: Callable[[], Any]) -> dict[str, float]:
    """Return test errors, the training MAE and the seconds to fit, averaged over the splits."""
    runs = []
    for pairs, ratings, test_pairs, test_ratings in splits_100k():
        if not runs:  # nobody is charged for imports and compilation
            make().fit(pairs[:5000], ratings[:5000]).predict(test_pairs[:1])
        begin = time.perf_counter()
        model = make().fit(pairs, ratings)
        seconds = time.perf_counter() - begin
        report = ratings_report(test_ratings, model.predict(test_pairs))
        if hasattr(model, "estimate"):
            estimates = model.estimate(test_pairs)
            report["estimate"] = root_mean_squared_error(test_ratings, estimates)
        report["train"] = float(np.abs(model.predict(pairs) - ratings).mean())
        runs.append({**report, "seconds": seconds})
    return {key: float(np.mean([run[key] for run in runs])) for key in runs[0]}


def measure_probabilities(make: Callable[[], Any]) -> dict[str, Any]:
    """Return the errors of every answer that probabilities allow, averaged over the splits."""
    runs = []
    for pairs, ratings, test_pairs, test_ratings in splits_100k():
        wall, cpu = time.perf_counter(), time.process_time()
        model = make().fit(pairs, ratings)
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        distribution, levels = model.predict_proba(test_pairs), model.levels_
        answers = {
            name: model.predict(test_pairs, output=name)
            for name in ("rule", "median", "mode", "mean")
        }
        runs.append(
            {
                "rule": mean_absolute_error(test_ratings, answers["rule"]),
                "mae": mean_absolute_error(test_ratings, answers["median"]),
                "zero_one": zero_one_error(test_ratings, answers["mode"]),
                "rmse": root_mean_squared_error(test_ratings, answers["mean"]),
                "log_loss": log_loss(test_ratings, distribution, levels),
                "ece": expected_calibration_error(test_ratings, distribution, levels),
                "seconds": wall,
                "cpu": cpu,
            }
        )
    means = {key: float(np.mean([run[key] for run in runs])) for key in runs[0]}
    return {**means, "worst_ece": max(run["ece"] for run in runs), "first": runs[0]}


def print_row(*cells: object) -> None:
    """Print one row of a Markdown table, numbers with four digits."""
    shown = (f"{cell:.4f}" if isinstance(cell, float) else str(cell) for cell in cells)
    print("|", " | ".join(shown), "|", flush=True)


def print_header(*names: str) -> None:
    """Print the head of a Markdown table."""
    print_row(*names)
    print_row(*["---"] * len(names))


def section_100k(args: argparse.Namespace) -> None:
    """80/20, three splits, 100 factors; integer predictions."""
    methods: dict[str, Callable[[], Any]] = {
        "HMF(reg=[6, 10, 17, 14])": lambda: HMF(reg=[6, 10, 17, 14], random_state=0),
        "MMMF(reg=15)": lambda: MMMF(reg=15, random_state=0),
        "PMMMF(reg=40)": lambda: PMMMF(reg=40, random_state=0),
        "ALS(reg=25, bias=True)": lambda: ALS(reg=25, bias=True, random_state=0),
        "ALS(reg=25)": lambda: ALS(reg=25, random_state=0),
        "BiasOnly()": BiasOnly,
    }
    if args.peers:
        methods |= peers.available()
    print_header("method", "MAE", "zero-one error", "RMSE", "RMSE of estimates", "seconds")
    for name, make in methods.items():
        r = measure(make)
        estimate = r.get("estimate", "")
        print_row(name, r["mae"], r["zero_one"], r["rmse"], estimate, f"{r['seconds']:.2f}")


def section_defaults(args: argparse.Namespace) -> None:
    """No argument but the seed: reg="auto"; integer predictions; against a fit with that reg."""
    print_header("method", "MAE", "zero-one error", "reg", "seconds", "times one fit")
    for method in (HMF, MMMF, PMMMF, ALS):
        name, options = method.__name__, {"bias": True} if method is ALS else {}
        r = measure(lambda method=method, options=options: method(random_state=0, **options))
        pairs, ratings, *_ = next(iter(splits_100k()))
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


def section_probabilities(args: argparse.Namespace) -> None:
    """Median, mode and mean of the predicted distributions; MarginEnsemble."""
    methods: dict[str, Callable[[], Any]] = {
        "MarginEnsemble()": lambda: MarginEnsemble(random_state=0, n_jobs=args.threads),
        'MarginEnsemble(["mmmf"], ensemble="seeds")': lambda: MarginEnsemble(
            ["mmmf"], ensemble="seeds", random_state=0, n_jobs=args.threads
        ),
        "HMF()": lambda: HMF(random_state=0),
        "MMMF()": lambda: MMMF(random_state=0),
        "PMMMF()": lambda: PMMMF(random_state=0),
        "ALS(bias=True)": lambda: ALS(bias=True, random_state=0),
        "BiasOnly()": BiasOnly,
    }
    if args.peers:
        methods |= peers.with_probabilities()
    names = ("rule", "mae", "zero_one", "rmse", "log_loss", "ece", "worst_ece")
    print_header(
        "method",
        "MAE (rule)",
        "MAE (median)",
        "zero-one error (mode)",
        "RMSE (mean)",
        "log loss",
        "ECE",
        "worst ECE",
        "seconds",
        "CPU seconds",
    )
    for name, make in methods.items():
        r = measure_probabilities(make)
        print_row(name, *(r[key] for key in names), f"{r['seconds']:.1f}", f"{r['cpu']:.1f}")
        first: Any = r["first"]
        print_row(
            "- its first split",
            *(first[key] for key in names[:-1]),
            "",
            f"{first['seconds']:.1f}",
            f"{first['cpu']:.1f}",
        )


def section_ensemble_1m(args: argparse.Namespace) -> None:
    """Weak generalisation on MovieLens 1M with MarginEnsemble, no argument but the seed."""
    table = load_ratings("ml-1m")
    print_header("split", "NMAE (median)", "zero-one error (mode)", "seconds", "CPU seconds")
    found = []
    for seed in range(1, args.splits + 1):
        train, test = next(WeakGeneralisation(n_splits=1, random_state=seed).split(table.pairs))
        wall, cpu = time.perf_counter(), time.process_time()
        model = MarginEnsemble(random_state=0, n_jobs=args.threads)
        model.fit(table.pairs[train], table.ratings[train])
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
        true, pairs = table.ratings[test], table.pairs[test]
        nmae = normalised_mean_absolute_error(true, model.predict(pairs), model.levels_)
        zero_one = zero_one_error(true, model.predict(pairs, output="mode"))
        found.append((nmae, zero_one))
        print_row(seed, nmae, zero_one, f"{wall:.0f}", f"{cpu:.0f}")
    print_row("mean", *map(float, np.mean(found, axis=0)), "", "")


def section_matched(args: argparse.Namespace) -> None:
    """The thesis's comparison: reg chosen so that the training MAE is in [0.07, 0.09]."""
    print_header("method", "reg", "train MAE", "test MAE", "test RMSE", "thesis MAE")
    for method, reg, published in (
        (PMMMF, 21.0, 0.7138),
        (MMMF, 8.5, 0.7355),
        (ALS, 8.0, 0.7899),
    ):
        r = measure(lambda method=method, reg=reg: method(reg=reg, random_state=0))
        print_row(method.__name__, f"{reg:g}", r["train"], r["mae"], r["rmse"], published)


def section_1m(args: argparse.Namespace) -> None:
    """Weak and strong generalisation on MovieLens 1M; HMF's warm schedule against long runs."""
    table = load_ratings("ml-1m")
    hmf = HMF(reg=REG_1M, random_state=0, n_jobs=args.threads)
    long = HMF(reg=REG_1M, random_state=0, n_jobs=args.threads, schedule="independent", tol=0.0)
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
    "matched": section_matched,
    "ml-1m": section_1m,
    "ensemble-1m": section_ensemble_1m,
}


def main() -> None:
    """Run the sections that were asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("sections", nargs="*", choices=[*SECTIONS, []], default=[])
    parser.add_argument("--peers", action="store_true", help="also run the peers installed here")
    parser.add_argument("--splits", type=int, default=3, help="splits of MovieLens 1M")
    parser.add_argument("--threads", type=int, default=1)
    args = parser.parse_args()
    for name in args.sections or SECTIONS:
        section = SECTIONS[name]
        print(f"\n## {name}: {(section.__doc__ or '').splitlines()[0]}\n", flush=True)
        section(args)


if __name__ == "__main__":
    main()
