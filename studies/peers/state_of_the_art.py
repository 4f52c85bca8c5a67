"""Rating errors on the splits of the literature: ours, peers set up with care, published figures.

Run by hand, for example::

    python -m studies state-of-the-art                                     # hours on one core
    python -m studies state-of-the-art --again --methods MarginEnsemble     # ours again, alone
    python -m studies state-of-the-art --markdown                          # the tables

The splits are the folds u1 to u5 that come with MovieLens 100K, and random tenths of MovieLens 1M
and ml-latest-small with the seeds 1 to 5.  Nobody sees the test pairs before they are asked for:
what a method knows of who rated what, it knows from the training pairs.  Dates are given to nobody.
The archives that the owner publishes must be in the data folder, under ``original``.
"""

from argparse import ArgumentParser, Namespace
from collections.abc import Iterable, Iterator
from itertools import product
from pathlib import Path

from studies.harness import Cell, Store
from studies.harness.drawing import save_svg
from studies.harness.markdown import make_table, publish
from studies.peers import comparison
from studies.peers.bench import Record, Task, interleave, newest_records
from studies.peers.comparison import LEARNING, Row, format_number
from studies.peers.methods import RATERS_REG, ours, peer
from studies.peers.problems import PUBLISHED_FOLDS
from studies.peers.ratings import find_points, pareto_picture

SPLITS = {"ml-100k": PUBLISHED_FOLDS, "ml-1m": "90/10", "ml-latest-small": "90/10"}
TITLES = {
    "ml-100k": "MovieLens 100K, published folds u1 to u5",
    "ml-1m": "MovieLens 1M, random 90/10, seeds 1 to 5",
    "ml-latest-small": "ml-latest-small of September 2018, random 90/10, seeds 1 to 5",
}
FIRST = {"ml-100k": "u1", "ml-1m": "seed 1", "ml-latest-small": "seed 1"}
N_SPLITS = 5
ABSENT = "-"
NOTE = """\
RMSE is that of the real-valued estimate, within the scale: the mean where a method predicts a
distribution, as MarginEnsemble and the ordered probit do.  MAE is given twice: of that estimate,
as in the literature, and of a level: the median where there is a distribution, else the nearest
level.  CPU seconds are those to prepare and fit on one thread, the median over n splits, with the
range; errors are means over n splits.  "Implicit" means that a method knows who rated what in
training; "attributes" are genres, and except in ml-latest-small age, gender and occupation."""

# The best of a few settings on a random 80/20 split of MovieLens 100K.
SVDPP = {"n_factors": 50, "n_epochs": 40, "lr_all": 0.01, "reg_all": 0.1, "cache_ratings": True}
# The settings of its documentation for MovieLens; then the best of a few on other random splits.
CMF_40 = {"k": 40, "add_implicit_features": True, "use_cg": False}
CMF_40_IMPLICIT = {**CMF_40, "w_main": 0.7, "w_implicit": 0.3}
CMF_40_BOTH = {**CMF_40, "w_main": 0.5, "w_user": 0.3, "w_item": 0.3, "w_implicit": 0.25}
CMF_100 = {"k": 100, "add_implicit_features": True, "lambda_": 0.1, "scale_lam": True}
CMF_1M = {"ml-1m": {"lambda_": 0.05}}
MYFM = {"rank": 16, "n_iter": 300}
ATTRIBUTES = {**MYFM, "attributes": True}
PROBIT = "RelationalOrderedProbit"
ENSEMBLE = "MarginEnsemble"
IMPLICIT = {"calibrated": True, "implicit": "both"}

METHODS = (
    ours("MarginEnsemble()", ENSEMBLE, calibrated=True),
    ours("MarginEnsemble(n_estimators=3)", ENSEMBLE, calibrated=True, n_estimators=3),
    ours("MarginEnsemble(), attributes", ENSEMBLE, kind="Described", calibrated=True),
    ours('MMMF(implicit="both")', "MMMF", **IMPLICIT),
    ours("MMMF, implicit, reg given", "MMMF", RATERS_REG, **IMPLICIT),
    ours("MMMF d=8, implicit, reg given", "MMMF", RATERS_REG, **IMPLICIT, n_factors=8),
    *(ours(f"{name}()", name, calibrated=True) for name in ("HMF", "MMMF", "BiasOnly")),
    peer("Surprise SVD++", "surprise", "SVDpp"),
    peer("Surprise SVD++, tuned", "surprise", "SVDpp", **SVDPP),
    peer("LensKit item-kNN", "lenskit", "ItemKNN"),
    peer("LensKit biased MF", "lenskit", "BiasedMF"),
    peer("cmfrec, implicit, k=40", "cmfrec", "CMF", **CMF_40_IMPLICIT),
    peer("cmfrec, implicit, k=100", "cmfrec", "CMF", CMF_1M, **CMF_100),
    peer("cmfrec, implicit and attributes, k=40", "cmfrec", "Described", **CMF_40_BOTH),
    peer("cmfrec, implicit and attributes, k=100", "cmfrec", "Described", CMF_1M, **CMF_100),
    peer("myFM", "myfm", "Regressor", **MYFM),
    peer("myFM ordered probit", "myfm", "OrderedProbit", **MYFM),
    peer("myFM, implicit", "myfm", "Relational", **MYFM),
    peer("myFM ordered probit, implicit", "myfm", PROBIT, **MYFM),
    peer("myFM, implicit and attributes", "myfm", "Relational", **ATTRIBUTES),
    peer("myFM ordered probit, implicit and attributes", "myfm", PROBIT, **ATTRIBUTES),
)
#: What the picture leaves out, so that there is room for names.
CROWDED = ("attributes", "attributes, k=100", "tuned", "k=40", "myFM ordered probit")
#: What is not measured unless ``--slow`` asks for it, and why.
SLOW = {
    ("Surprise SVD++, tuned", "ml-1m"): "about 16 minutes a fit, by its times on MovieLens 100K; "
    "not run"
}

#: Figures of papers with their digits: RMSE and MAE on MovieLens 100K, u1, then on 1M, 90/10.
PUBLISHED = (
    (
        "GLocal-K",  # the MAE is given beside the authors' code
        "Han et al., GLocal-K: Global and Local Kernels for Recommender Systems (CIKM 2021)",
        *("0.8889", "0.6950", "0.8227", "0.6421"),
    ),
    (
        "SparseFC",
        "Muller, Martel and Indiveri, Kernelized Synaptic Weight Matrices (ICML 2018)",
        *(ABSENT, ABSENT, "0.824", ABSENT),
    ),
    (
        "CF-NADE",
        "Zheng et al., A Neural Autoregressive Approach to Collaborative Filtering (ICML 2016)",
        *(ABSENT, ABSENT, "0.829", ABSENT),
    ),
    (
        "I-AutoRec",
        "Sedhain et al., AutoRec: Autoencoders Meet Collaborative Filtering (WWW 2015)",
        *(ABSENT, ABSENT, "0.831", ABSENT),
    ),
    (
        "GC-MC",
        "van den Berg, Kipf and Welling, Graph Convolutional Matrix Completion (arXiv 2017)",
        *("0.910", ABSENT, "0.832", ABSENT),
    ),
    ("GC-MC, attributes", "the same (arXiv 2017)", "0.905", ABSENT, ABSENT, ABSENT),
    (
        "IGMC",
        "Zhang and Chen, Inductive Matrix Completion Based on Graph Neural Networks (ICLR 2020)",
        *("0.905", ABSENT, "0.857", ABSENT),
    ),
)


def add_arguments(parser: ArgumentParser) -> None:
    comparison.add_peer_arguments(parser, METHODS, repeats=N_SPLITS)
    parser.set_defaults(timeout=1200.0, budget=float("inf"))
    parser.add_argument("--data", nargs="+", default=list(SPLITS), choices=SPLITS)
    parser.add_argument("--slow", action="store_true", help="also what takes too long")


def main(args: Namespace) -> None:
    store, machine = Store(args.out), []
    if not args.markdown:
        if args.quick:
            args.data, args.repeats = ["ml-100k"], 1
        tasks = [Task("described", data, SPLITS[data]) for data in args.data]
        methods = comparison.choose_methods(METHODS, args)
        cells = interleave(methods, tasks, args.threads[:1], args.repeats)
        records = comparison.measure(args, store, cells if args.slow else skip_slow(cells))
        machine = [comparison.describe_machine(records)]
    # What earlier runs have measured is in the tables too.
    records = newest_records(store, "described")
    publish(args.out / "state-of-the-art.md", [*tables(records), *machine])
    draw_picture(comparison.summarise(records), args.out / "pareto-rmse.svg")


def draw_picture(rows: list[Row], file: Path) -> None:
    """Draw RMSE against CPU seconds on both MovieLens data sets."""
    shown = [row for row in rows if row.n and not row.method.endswith(CROWDED)]
    names = ("ml-100k", "ml-1m")
    panels = {TITLES[data]: find_points(shown, data, SPLITS[data], "rmse_real") for data in names}
    if all(panels.values()):
        save_svg(pareto_picture(panels, "RMSE"), file)


def skip_slow(cells: Iterable[Cell]) -> Iterator[Cell]:
    return (one for one in cells if (one.settings["method"], one.settings["data"]) not in SLOW)


def tables(records: Iterable[Record]) -> list[str]:
    """Return a table for each data set that has been measured, then that of published figures."""
    rows = comparison.summarise(records)
    measured = [data for data in SPLITS if any(row.data == data for row in rows)]
    parts = [f"## {TITLES[data]}\n\n{errors_table(rows, data)}" for data in measured]
    heads = ["method", "paper", "MovieLens 100K, u1: RMSE", "MAE", "MovieLens 1M, 90/10: RMSE"]
    return [*parts, NOTE, f"## Published\n\n{make_table([*heads, 'MAE'], PUBLISHED)}"]


def errors_table(rows: Iterable[Row], data: str) -> str:
    """Return a line for each method: errors over all splits, then on the first alone."""
    found = {row.method: row for row in rows if (row.data, row.split) == (data, SPLITS[data])}
    errors = {"RMSE": "rmse_real", "MAE": "mae_real", "MAE, level": "mae"}
    heads = ["method", "n", *errors, *(f"{head}, {FIRST[data]}" for head in errors), "CPU s"]
    lines, notes = [], []
    for method in METHODS:
        row = found.get(method.name)
        reason = SLOW.get((method.name, data)) or (row.reason if row else "")
        figures = [ABSENT] * (len(heads) - 2)
        if row and row.n:
            cells = product((row, row.on({1})), errors.values())
            figures = [format_number(part.error(name)) or ABSENT for part, name in cells]
            figures.append(str(row.seconds("cpu", *LEARNING)))
        lines.append([method.name, str(row.n if row else 0), *figures])
        if reason:
            notes.append(f"{ABSENT} {method.name}: {reason}.")
    return "\n".join([make_table(heads, lines), *([""] if notes else []), *notes])
