"""Every rating system that the thesis compares with, and samplers beside those of peers.

Run by hand, for example::

    python -m studies systems accuracy   # all systems with their defaults
    python -m studies systems kept       # samplers that keep few samples, and many
    python -m studies systems sweeps     # Gibbs samplers beside myFM and SMURFF, in one run
    python -m studies systems --page     # write the tables of earlier runs into the documentation

Each section prints Markdown tables.  Every measurement is a process of its own.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from functools import wraps
from pathlib import Path

from studies.harness.commands import run_sections
from studies.harness.markdown import fill_page
from studies.peers import comparison
from studies.peers.accuracy import SEEDS
from studies.peers.bench import Task, interleave
from studies.peers.comparison import LEARNING, PREDICT, Column, Row, error_column
from studies.peers.methods import ENSEMBLES, Method, ours, peer

PAGE = Path("docs/mathematics/samplers.md")
#: With their defaults, but for the seed; all with probabilities.
NAMES = (
    *("BPMF", "GibbsMMMF", "GibbsIPMMMF", "IPMMMF", "GPLVM", "URP", "Attitude", "SVD", "NMF"),
    *("ImputedSVD", "PMF", "ALS", "BiasOnly", "HMF", "MMMF", "PMMMF", "MarginEnsemble"),
)
SYSTEMS = (
    *(ours(name, name, calibrated=True) for name in NAMES),
    ours("IPMMMF(bayesian=True)", "IPMMMF", calibrated=True, bayesian=True),
    ours("MarginEnsemble, levels alone", "MarginEnsemble", **ENSEMBLES[", levels alone"]),
)
#: Sweeps after the first ones, and how many samples of them are kept.
AFTER, KEPT = 200, (5, 10, 20, 50, 200)
KEEPING = tuple(
    ours(f"{name}, {n} kept", name, calibrated=True, n_samples=n, thin=AFTER // n)
    for name in ("BPMF", "GibbsMMMF")
    for n in KEPT
)
#: Sweeps of a chain: as many for all, so that seconds can be compared.  Peers that keep every
#: sweep have as many in all.
CHAIN = {"n_burn": 20, "n_samples": 20, "thin": 4}
SWEEPS = CHAIN["n_burn"] + CHAIN["n_samples"] * CHAIN["thin"]
RANKS = (16, 32)
BASELINE = "SMURFF BPMF"


def samplers(rank: int) -> tuple[Method, ...]:
    """Return all samplers with a number of factors."""
    own = {"calibrated": True, "n_factors": rank, **CHAIN}
    mine, theirs = {"rank": rank, **CHAIN}, {"rank": rank, "n_iter": SWEEPS}
    return (
        ours(f"BPMF d={rank}", "BPMF", **own),
        ours(f"GibbsMMMF d={rank}", "GibbsMMMF", **own),
        peer(f"{BASELINE} d={rank}", "smurff", "BPMF", **mine),
        peer(f"myFM d={rank}", "myfm", "Regressor", **theirs),
        peer(f"myFM ordered probit d={rank}", "myfm", "OrderedProbit", **theirs),
    )


SAMPLERS = tuple(method for rank in RANKS for method in samplers(rank))

ERRORS: tuple[Column, ...] = (
    error_column("MAE", "mae"),
    error_column("NMAE", "nmae"),
    error_column("zero-one error", "zero_one"),
    error_column("RMSE (mean)", "rmse_real"),
    error_column("log loss", "log_loss"),
)
FIT: Column = ("fit, CPU s", lambda row: row.seconds("cpu", *LEARNING))


def find_rows(methods: Sequence[Method], args: Namespace, tasks: Sequence[Task]) -> list[Row]:
    """Return a row for each method and task, of measurements new or old."""
    chosen = comparison.choose_methods(methods, args)
    cells = interleave(chosen, tasks, args.threads[:1], args.repeats)
    rows, _ = comparison.compare(args, tasks[0].problem, cells)
    names, where = {method.name for method in chosen}, {(one.data, one.split) for one in tasks}
    return [row for row in rows if row.method in names and (row.data, row.split) in where]


def accuracy_tables(args: Namespace) -> list[str]:
    """Every system with its defaults, three splits of MovieLens 100K.

    MAE and NMAE are of the median of the probabilities, the zero-one error of their mode.  A fit
    includes learning probabilities where a system has none of its own.
    """
    rows = find_rows(SYSTEMS, args, [Task("ratings", "ml-100k", "80/20")])
    return [comparison.method_table(rows, [*ERRORS, FIT, PREDICT])]


def kept_tables(args: Namespace) -> list[str]:
    """Samplers that keep few samples or many of 200 sweeps: three splits of MovieLens 100K."""
    rows = find_rows(KEEPING, args, [Task("ratings", "ml-100k", "80/20")])
    return [comparison.method_table(rows, [*ERRORS, PREDICT])]


def sweep_tables(args: Namespace) -> list[str]:
    """Gibbs samplers with the same ranks and number of sweeps, one split of each data set.

    Predictions of peers without probabilities are the levels nearest to their estimates.
    """
    tasks = [Task("ratings", "ml-100k", "80/20")]
    if not args.quick:
        tasks.append(Task("ratings", "ml-1m", "weak"))
    rows = find_rows(SAMPLERS, Namespace(**{**vars(args), "repeats": 1}), tasks)
    return list(comparison.split_tables(rows, sweep_columns))


def sweep_columns(rows: list[Row]) -> list[Column]:
    """Return errors, and seconds beside those of the baseline with as many factors."""
    base = {rank_of(row): sweep_seconds(row) for row in rows if is_baseline(row) and row.n}

    def times(row: Row) -> str:
        there = base.get(rank_of(row))
        return f"{sweep_seconds(row) / there:.2f}" if there else ""

    each: Column = ("CPU s a sweep", lambda row: f"{sweep_seconds(row):.4f}")
    return [*ERRORS, FIT, each, (f"times {BASELINE}", times), PREDICT]


def is_baseline(row: Row) -> bool:
    return row.method.startswith(BASELINE)


def rank_of(row: Row) -> str:
    return row.method.rpartition("=")[2]


def sweep_seconds(row: Row) -> float:
    """Return the CPU seconds of a fit by the number of sweeps."""
    return row.seconds("cpu", *LEARNING).median / SWEEPS


SECTIONS = {"accuracy": accuracy_tables, "kept": kept_tables, "sweeps": sweep_tables}


def add_arguments(parser: ArgumentParser) -> None:
    comparison.add_peer_arguments(parser, SAMPLERS, repeats=len(SEEDS))
    words = f"measure nothing: write the tables of earlier runs into {PAGE}"
    parser.add_argument("--page", action="store_true", help=words)


def main(args: Namespace) -> None:
    if args.quick:
        args.repeats = 1
    if args.page:
        args.markdown = True
        PAGE.write_text(fill_page(PAGE.read_text(), tables(args)))
    else:
        run_sections({name: printed(section) for name, section in SECTIONS.items()}, args)


def tables(args: Namespace) -> dict[str, str]:
    """Return the tables of the sections by the names of their marks on the page.

    There they stand under a heading of the second level.
    """
    found = {name: "\n\n".join(section(args)) for name, section in SECTIONS.items()}
    return {f"systems: {name}": text.replace("## ", "### ") for name, text in found.items()}


def printed(section: Callable[[Namespace], list[str]]) -> Callable[[Namespace], None]:
    """Return a section that prints its tables."""

    @wraps(section)
    def print_tables(args: Namespace) -> None:
        for table in section(args):
            print(table, end="\n\n")

    return print_tables
