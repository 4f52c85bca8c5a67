"""Every label method beside the ensemble and scikit-learn's, all chosen inside outer folds.

``--data medical --methods ensemble,ridge`` measures a part, ``--report`` shows what was measured.
A run that was interrupted resumes when the same command is given again.  Ten folds, five of large
sets; parameters, thresholds and what else a method has are chosen inside the training folds, for
each of the ``--targets`` by itself.  Forests and chains take longest: start with small sets.
"""

import time
from argparse import ArgumentParser, Namespace
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from scipy.sparse import csr_array, issparse
from scipy.stats import wilcoxon
from sklearn.model_selection import KFold, ParameterGrid
from sklearn.preprocessing import MinMaxScaler

from marginmf.labels import DecisionTuned
from marginmf.metrics import labels_report, metric
from marginmf.metrics.labels import log_loss
from marginmf.stats import paired_comparison
from studies.harness import Cell, Store, Values, make_splits, run
from studies.harness.markdown import fill_page, make_table
from studies.harness.running import show_progress
from studies.peers.bench import run_worker
from studies.peers.environments import Environments, Unavailable
from studies.peers.problems import csr_arrays
from studies.thesis.label_trials import LABEL_METHODS, make_label_method
from studies.thesis.measures import load_label_table, split_label_rows

#: Data sets with ten folds, and with five.
SMALL = ("medical", "scene", "yeast", "enron", "emotions", "cal500", "langlog", "yahoo-science")
LARGE = ("yahoo-education", "bibtex", "rcv1subset1-944", "rcv1subset1", "ohsumed", "corel5k")
#: The full form of rcv1subset1 has 47,236 features; the other has 944 of them.
DATA = (*SMALL, *(name for name in LARGE if name != "rcv1subset1"))
TARGETS = ("accuracy", "hamming", "macro_f1", "micro_f1")
MEASURES = ("accuracy", "hamming", "subset_accuracy", "example_f1", "macro_f1", "micro_f1")
COLUMNS = (*MEASURES, "log_loss", "fit_seconds")
ENSEMBLE = "ensemble"
#: Libraries that are run in an environment of their own: the adapter, and its kind of method.
ELSEWHERE = {
    "scikit-multilearn": ("studies.peers.adapters.skmultilearn", "Classifier"),
    "pecos": ("studies.peers.adapters.pecos", "Linear"),
}
#: What the documentation shows, chosen for accuracy.
PAGES = (Path("docs/mathematics/label-ensemble.md"), Path("docs/decision-rule.md"))
GOAL = TARGETS[0]
SHOWN = (ENSEMBLE, "kernel", "ridge", "GroPLE", "ExtraTrees", "RandomForest")
SHOWN += ("OneVsRest(LogisticRegression)",)
#: Of fewer methods a row says little.
FEWEST_SHOWN = 4


@dataclass(frozen=True)
class Contender:
    """A method, and the grid that its parameters are chosen from."""

    #: A name in `LABEL_METHODS`, or one that `make_classifier` or the library knows.
    method: str
    library: str = "marginmf"
    params: Mapping[str, Any] = field(default_factory=dict)
    grid: Mapping[str, Sequence[Any]] = field(default_factory=dict)


OURS = {
    ENSEMBLE: Contender("Ensemble"),
    "kernel": Contender("Kernel"),
    "ridge": Contender("Ridge"),
    "GroPLE": Contender("GroPLE", grid={"reg_sparse": [0.1, 1.0, 10.0]}),
    "MLC-HMF": Contender("MLC-HMF", grid={"max_depth": [0, 5], "reg": [3.0, 10.0]}),
    "ML-kNN": Contender("ML-kNN", grid={"n_neighbors": [10, 20]}),
    "PLST": Contender("PLST", grid={"reg": [1.0, 100.0]}),
    "CPLST": Contender("CPLST", grid={"reg": [1.0, 100.0]}),
    "CSSP": Contender("CSSP", params={"n_labels_kept": 0.8}, grid={"reg": [1.0, 100.0]}),
    "FAiE": Contender(
        "FAiE", grid={"n_factors": [0.4, 0.8], "reg": [1.0, 100.0], "alpha": [1.0, 1000.0]}
    ),
    "LEML": Contender("LEML", params={"n_factors": 0.8}, grid={"reg": [0.1, 1.0, 10.0]}),
    "LLSF": Contender("LLSF", grid={"normalize_rows": [False, True]}),
    "MLSF": Contender("MLSF", grid={"gamma": [0.01, 1.0]}),
}
#: The other methods, as they are by default.
OTHERS = {
    name: Contender(name)
    for name in LABEL_METHODS
    if name not in (*OURS, "Ensemble", "Kernel", "Ridge")
}
SKLEARN = {
    name: Contender(name, "scikit-learn", grid=grid)
    for name, grid in {
        "ExtraTrees": {"min_samples_leaf": [1, 3]},
        "RandomForest": {"min_samples_leaf": [1, 3]},
        "OneVsRest(LogisticRegression)": {"estimator__C": [1.0, 10.0]},
        "ClassifierChain(LogisticRegression)": {"estimator__C": [1.0, 10.0]},
    }.items()
}
PEERS = {
    f"scikit-multilearn {name}": Contender(
        name, "scikit-multilearn", params={"classifier": name}, grid=grid
    )
    for name, grid in {"MLkNN": {"k": [10, 20]}, "BinaryRelevance": {"C": [0.1, 1.0]}}.items()
}
PEERS["PECOS XR-Linear"] = Contender(
    "XR-Linear", "pecos", grid={"threshold": [0.1, 0.2, 0.3, 0.4, 0.5], "Cp": [0.3, 1.0, 3.0]}
)
CONTENDERS = {**OURS, **OTHERS, **SKLEARN, **PEERS}


def add_arguments(parser: ArgumentParser) -> None:
    comma = "with commas between"
    parser.add_argument("--data", default=",".join(DATA), help=f"data sets, {comma}")
    parser.add_argument("--methods", default=",".join(CONTENDERS), help=f"methods, {comma}")
    parser.add_argument("--targets", default=TARGETS[0], help=f"of {', '.join(TARGETS)}, {comma}")
    parser.add_argument("--folds", type=int, help="only this many of the folds")
    parser.add_argument("--jobs", type=int, default=1, help="cells side by side")
    parser.add_argument("--out", type=Path, default=Path("results"), help="where cells are stored")
    parser.add_argument("--report", action="store_true", help="measure nothing")
    parser.add_argument("--page", action="store_true", help="only write the tables into the docs")


def main(args: Namespace) -> int:
    data, methods, targets = (one.split(",") for one in (args.data, args.methods, args.targets))
    for name, known in ((methods, CONTENDERS), (targets, TARGETS)):
        if unknown := [one for one in name if one not in known]:
            raise SystemExit(f"There is no {unknown[0]!r}: choose of {', '.join(known)}.")
    store, failures = Store(args.out), 0
    if args.page:
        for page in PAGES:
            page.write_text(fill_page(page.read_text(), tables(store)))
        return 0
    if not args.report:
        cells = [
            cell
            for one in data
            for method in methods
            for target in targets
            for cell in cells_for(one, method, target)[: args.folds]
        ]
        for library in sorted({CONTENDERS[name].library for name in methods} & set(ELSEWHERE)):
            try:  # once, before several cells want it at the same time
                _environments().python(library)
            except Unavailable as reason:
                print(f"{library} is left out: {reason}.")
                cells = [cell for cell in cells if cell.settings["library"] != library]
        summary = run(cells, store, n_jobs=args.jobs, watcher=show_progress)
        failures = summary.failures.total()
        for reason, count in summary.failures.most_common():
            print(f"{count} cells could not be run: {' '.join(reason.split())}")
    for one in data:
        for target in targets:
            for line in report(store, one, target):
                print(line)
    return int(failures > 0)


def tables(store: Store) -> dict[str, str]:
    """Return the tables of the documentation by the names of their marks."""
    return {
        "label-ensemble": means_table(store, GOAL),
        "label-ensemble: log loss": means_table(store, "log_loss"),
        "label-ensemble: others": others_table(store),
        "label-ensemble: targets": targets_table(store),
    }


def means_table(store: Store, measure: str) -> str:
    """Return a measure of what was chosen for accuracy, the mean of all folds, best in bold.

    A star marks a mean that differs from the ensemble's, by the paired t-test over folds.
    """
    rows, best = [], min if _sign(measure) < 0 else max
    for data in DATA:
        found = {
            name: values
            for name in SHOWN
            if None not in (values := [store.values(cell) for cell in cells_for(data, name, GOAL)])
        }
        if ENSEMBLE not in found or len(found) < FEWEST_SHOWN:
            continue
        means = {
            name: f"{np.mean([one[measure] for one in values if one]):.3f}"
            for name, values in found.items()
        }
        row = [data, str(n_folds(data))]
        for name in SHOWN:
            shown = means.get(name, "")
            shown = f"**{shown}**" if shown and shown == best(means.values()) else shown
            if name in found and name != ENSEMBLE:
                pairs = compare_folds(name, found[ENSEMBLE], found[name], measure, n_folds(data))
                shown += "*" * (float(pairs[3]) < 0.05)
            row.append(shown)
        rows.append(row)
    return make_table(["data", "folds", *SHOWN], rows)


def others_table(store: Store) -> str:
    """Return how far other methods are behind the ensemble, and on how many folds.

    A star marks a difference as in `means_table`.
    """
    names = [name for name in CONTENDERS if name not in SHOWN]
    found = np.array([[_difference(store, data, name) for data in DATA] for name in names])
    some = (found != "").any(axis=0)
    rows = [[name, *row[some]] for name, row in zip(names, found, strict=True) if row.any()]
    return make_table(["method", *np.array(DATA)[some]], rows)


def _difference(store: Store, data: str, name: str) -> str:
    """Return a method's accuracy minus the ensemble's, with the number of folds that both have."""
    pairs = shared_folds(store, data, name, GOAL)
    if not len(pairs):
        return ""
    test = paired_comparison(*pairs.T, test_size=1 / n_folds(data)) if len(pairs) > 1 else None
    star = "*" if test and test.p_value < 0.05 else ""
    return f"{np.mean(pairs[:, 1] - pairs[:, 0]):+.3f}{star} ({len(pairs)})"


def targets_table(store: Store) -> str:
    """Return the ensemble beside the closest of scikit-learn's, chosen for other measures."""
    rows = []
    for data in DATA:
        for target in TARGETS[1:]:
            closest: tuple[float, str, np.ndarray] | None = None
            for name in SKLEARN:
                pairs = shared_folds(store, data, name, target)
                lead = _sign(target) * np.mean(pairs[:, 0] - pairs[:, 1]) if len(pairs) else np.inf
                if len(pairs) > 1 and (closest is None or lead < closest[0]):
                    closest = (lead, name, pairs)
            if closest is None:
                continue
            lead, name, pairs = closest
            numbers = [*(f"{one:.4f}" for one in pairs.mean(axis=0)), f"{lead:+.4f}"]
            rows.append([data, _heading(target), str(len(pairs)), *numbers, name])
    headings = ["data", "chosen for", "folds", ENSEMBLE, "best of scikit-learn's", "lead", "which"]
    return make_table(headings, rows)


def shared_folds(store: Store, data: str, name: str, target: str) -> np.ndarray:
    """Return the ensemble's values and a method's, a row for each fold that both have."""
    cells = (cells_for(data, one, target) for one in (ENSEMBLE, name))
    both = [[store.values(cell) for cell in pair] for pair in zip(*cells, strict=True)]
    pairs = [[one[target] for one in pair if one] for pair in both if None not in pair]
    return np.reshape(pairs, (-1, 2))


def n_folds(data: str) -> int:
    return 5 if data in LARGE else 10


def cells_for(data: str, name: str, target: str) -> list[Cell]:
    """Return the folds of a method, its parameters chosen for a target."""
    one = CONTENDERS[name]
    return make_splits(
        "studies.peers.label_ensemble:measure_fold",
        n_folds(data),
        data=data,
        folds=n_folds(data),
        method=one.method,
        library=one.library,
        params=dict(one.params),
        grid=dict(one.grid),
        target=target,
    )


def measure_fold(
    data: str,
    folds: int,
    split: int,
    method: str,
    library: str,
    params: Mapping[str, Any],
    grid: Mapping[str, Sequence[Any]],
    target: str,
) -> Values:
    """Return all measures on one fold, of a method that is chosen on the others."""
    table = load_label_table(data)
    train, test = split_label_rows(table.n_samples, {"folds": folds}, split)
    X, X_test, Y = table.X[train], table.X[test], table.Y[train]
    if not issparse(X):
        scaler = MinMaxScaler().fit(X)
        X, X_test = scaler.transform(X), scaler.transform(X_test)
    begin, probabilities = time.perf_counter(), None
    if library in ELSEWHERE:
        predicted, chosen = predict_elsewhere(library, params, grid, X, Y, X_test, target)
        seconds = time.perf_counter() - begin
    else:
        model = make_tuned(method, library, params, grid, target).fit(X, Y)
        seconds = time.perf_counter() - begin
        predicted, chosen = model.predict(X_test), getattr(model, "best_params_", {})
        if hasattr(model, "predict_proba"):
            probabilities = log_loss(table.Y[test], model.predict_proba(X_test))
    return {
        **labels_report(table.Y[test], predicted),
        "log_loss": probabilities,
        "fit_seconds": seconds,
        "chosen": chosen,
        "n_test": len(test),
    }


def make_tuned(
    method: str,
    library: str,
    params: Mapping[str, Any],
    grid: Mapping[str, Sequence[Any]],
    target: str,
) -> Any:
    """Return an unfitted method that chooses its parameters and its rule when it is fitted."""
    if library == "marginmf":
        base = make_label_method(method, params)
        if not grid:  # it chooses all by itself
            return base.set_params(tune_for=target)
    else:
        base = make_classifier(method)
    return DecisionTuned(base, grid, tune_for=target)


def make_classifier(name: str) -> Any:
    """Return one of scikit-learn's classifiers."""
    from sklearn.ensemble import ExtraTreesClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.multioutput import ClassifierChain

    regression = LogisticRegression(max_iter=1000)
    return {
        "ExtraTrees": lambda: ExtraTreesClassifier(100, random_state=0),
        "RandomForest": lambda: RandomForestClassifier(100, random_state=0),
        "OneVsRest(LogisticRegression)": lambda: OneVsRestClassifier(regression),
        "ClassifierChain(LogisticRegression)": lambda: ClassifierChain(regression),
    }[name]()


def predict_elsewhere(
    library: str,
    params: Mapping[str, Any],
    grid: Mapping[str, Sequence[Any]],
    X: Any,
    Y: csr_array,
    X_test: Any,
    target: str,
) -> tuple[np.ndarray, dict[str, Any]]:
    """Return predictions of a library in its own environment, and the parameters chosen.

    Its methods predict sets, without scores to choose a rule on: parameters are all there is.
    """
    python, (adapter, kind) = _environments().python(library), ELSEWHERE[library]

    def predict(options: Mapping[str, Any], X: Any, Y: Any, X_test: Any) -> np.ndarray:
        with TemporaryDirectory(prefix="marginmf-studies-") as name:
            folder = Path(name)
            np.savez(folder / "train.npz", **csr_arrays(X=csr_array(X), Y=csr_array(Y)))
            np.savez(folder / "test.npz", **csr_arrays(X=csr_array(X_test)))
            task = {
                "adapter": adapter,
                "kind": kind,
                "options": {**params, **options},
                "arrays": str(folder),
                "threads": 1,
                "warm_up": False,
            }
            return run_worker(python, task, folder, 3600.0, ours=False)[1]["labels"]

    values, candidates = [], list(ParameterGrid(dict(grid)))
    for options in candidates:
        held_out = np.zeros(Y.shape, np.uint8)
        for train, held in KFold(3, shuffle=True, random_state=0).split(np.arange(Y.shape[0])):
            held_out[held] = predict(options, X[train], Y[train], X[held])
        value = labels_report(Y, held_out)[target]
        values.append(_sign(target) * value)
    best = candidates[int(np.argmax(values))]
    return predict(best, X, Y, X_test), best


@cache
def _environments() -> Environments:
    return Environments()


def report(store: Store, data: str, target: str) -> Iterator[str]:
    """Yield the means of all that was measured, and differences from the ensemble in pairs."""
    found = {
        name: values
        for name in CONTENDERS
        if (values := [store.values(cell) for cell in cells_for(data, name, target)]) != []
        and any(one is not None for one in values)
    }
    if not found:
        return
    goal = metric(target).heading
    yield f"\n## {data}: chosen for {goal}\n"
    headings = ["method", "folds", *(_heading(name) for name in COLUMNS)]
    rows = []
    for name, values in found.items():
        run_folds = [one for one in values if one is not None]
        rows.append([name, str(len(run_folds)), *(_mean(run_folds, one) for one in COLUMNS)])
    yield make_table(headings, rows)
    if ENSEMBLE not in found or len(found) < 2:
        return
    pairs = [
        compare_folds(name, found[ENSEMBLE], values, target, n_folds(data))
        for name, values in found.items()
        if name != ENSEMBLE
    ]
    yield f"\nThe ensemble's {goal} minus the method's, on the folds that both have:\n"
    headings = ["method", "mean difference", "wins/ties/losses", "p (t)", "p (Wilcoxon)"]
    yield make_table(headings, pairs)


def compare_folds(
    name: str,
    ensemble: Sequence[Values | None],
    other: Sequence[Values | None],
    measure: str,
    folds: int,
) -> list[str]:
    """Return a row: the mean difference, its signs, and two tests over folds.

    The t-test allows for training sets in common; Wilcoxon's signed ranks do not.
    """
    both = [(a[measure], b[measure]) for a, b in zip(ensemble, other, strict=True) if a and b]
    if len(both) < 2:
        return [name, "", f"{len(both)} fold{'' if len(both) == 1 else 's'}", "", ""]
    first, second = np.array(both).T
    gains = _sign(measure) * (first - second)
    counts = "/".join(str(int(one.sum())) for one in (gains > 0, gains == 0, gains < 0))
    t = paired_comparison(first, second, test_size=1 / folds)
    signed = wilcoxon(gains).pvalue if np.any(gains) else 1.0
    return [name, f"{t.mean_difference:+.4f}", counts, f"{t.p_value:.3g}", f"{signed:.3g}"]


def _sign(measure: str) -> int:
    """Return 1 for a measure that should be large, -1 for one that should be small."""
    return 1 if metric(measure).higher_is_better else -1


def _heading(name: str) -> str:
    return "seconds" if name == "fit_seconds" else metric(name).heading


def _mean(values: Sequence[Values], name: str) -> str:
    known = [one[name] for one in values if one.get(name) is not None]
    return f"{np.mean(known):.{1 if name == 'fit_seconds' else 4}f}" if known else ""
