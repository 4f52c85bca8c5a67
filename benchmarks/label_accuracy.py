"""Accuracy of every label method on the thesis's data sets, all under named decision rules.

Run by hand, for example::

    python -m benchmarks label-accuracy                                # hours on two cores
    python -m benchmarks label-accuracy grople --data medical,corel5k  # one section
    python -m benchmarks label-accuracy rules --jobs 16

Outer folds are shuffled with seed 0; parameters and thresholds are chosen by three-fold
cross-validation inside the training folds only.  Dense features are scaled to [0, 1] on the
training fold.  Each section prints a Markdown table: mean and standard deviation over the folds.
"""

import time
from argparse import ArgumentParser, Namespace
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from scipy.sparse import issparse
from sklearn.model_selection import KFold
from sklearn.preprocessing import MinMaxScaler
from threadpoolctl import threadpool_limits

from marginmf.datasets import load_labels
from marginmf.labels import (
    CPLST,
    MLCHMF,
    PLST,
    BinaryRelevance,
    DecisionTuned,
    GroPLE,
    MLkNN,
    RidgeEmbedding,
)
from marginmf.metrics import labels_report

#: The thesis has reg = 10^(i/10) for i = 1, 5, 9, 13, 17, 20; smaller ones do better with the tree.
THESIS_REGS = [1.26, 3.16, 7.94, 19.95, 50.12, 100.0]
TREE_GRID = {"reg": [0.1, 0.32, 0.63, *THESIS_REGS[:3]], "tolerance": [0.02, 0.04, 0.06, 0.1]}
ROOT_GRID = {"reg": [0.32, 0.63, *THESIS_REGS]}
GROPLE_GRID = {"reg_sparse": [0.1, 1.0, 10.0]}


@dataclass(frozen=True)
class Method:
    """A classifier, the candidates for its parameters, and the rule that it is judged under."""

    make: Callable[[], Any]
    grid: dict[str, Sequence[Any]] | None = None
    rule: dict[str, Any] = field(default_factory=lambda: {"decision": "global"})

    def __call__(self) -> Any:
        if self.grid is None:
            return self.make().set_params(**self.rule)
        return DecisionTuned(self.make(), self.grid, **self.rule)


@dataclass(frozen=True)
class Section:
    """Methods to run on data sets, with so many outer folds (by data set, or for all)."""

    methods: dict[str, Method]
    data: Sequence[str]
    folds: dict[str, int]

    def n_folds(self, name: str) -> int:
        return self.folds.get(name, self.folds["*"])


SIGN = {"decision": "sign"}
TOP1 = {"decision": "sign", "top1_if_empty": True}
EIGHT = (
    "genbase",
    "medical",
    "cal500",
    "corel5k",
    "bibtex",
    "delicious",
    "corel16k001",
    "rcv1subset1-944",
)
TEN_FOLDS = {"*": 10, "yahoo-education": 5}
FIVE_FOLDS = {"*": 5}

RULES = {
    "sign": SIGN,
    "sign, top 1": TOP1,
    "global": {"decision": "global"},
    "global, top 1": {"decision": "global", "top1_if_empty": True},
    "per label": {"decision": "per_label"},
}
RULED = {
    "GroPLE": lambda: GroPLE(random_state=0),
    "MLCHMF, one node": lambda: MLCHMF(max_depth=0, random_state=0),
    "RidgeEmbedding": RidgeEmbedding,
    "BinaryRelevance": BinaryRelevance,
    "MLkNN": MLkNN,
}

SECTIONS = {
    "tree": Section(
        {
            "MLCHMF, sign": Method(lambda: MLCHMF(random_state=0), TREE_GRID, SIGN),
            "one node, sign, top 1": Method(
                lambda: MLCHMF(max_depth=0, random_state=0), ROOT_GRID, TOP1
            ),
            "one node, global, top 1": Method(
                lambda: MLCHMF(max_depth=0, random_state=0),
                ROOT_GRID,
                {"decision": "global", "top1_if_empty": True},
            ),
        },
        ("emotions", "genbase", "medical", "yahoo-education"),
        TEN_FOLDS,
    ),
    "grople": Section(
        {"GroPLE, global": Method(lambda: GroPLE(random_state=0), GROPLE_GRID)}, EIGHT, FIVE_FOLDS
    ),
    "sign": Section(
        {
            "GroPLE, sign": Method(lambda: GroPLE(random_state=0), GROPLE_GRID, SIGN),
            "PLST, sign": Method(PLST, None, SIGN),
            "CPLST, sign": Method(CPLST, None, SIGN),
            "RidgeEmbedding, sign": Method(RidgeEmbedding, None, SIGN),
        },
        ("corel5k", "medical"),
        FIVE_FOLDS,
    ),
    "svm": Section(
        {"BinaryRelevance, sign": Method(BinaryRelevance, None, SIGN)},
        ("medical", "bibtex"),
        FIVE_FOLDS,
    ),
    "rules": Section(
        {
            f"{name}, {rule}": Method(make, None, parameters)
            for name, make in RULED.items()
            for rule, parameters in RULES.items()
        },
        ("emotions", "yeast", "medical", "enron", "corel5k", "bibtex", "yahoo-education"),
        FIVE_FOLDS,
    ),
}


def run_fold(method: Method, name: str, n_folds: int, fold: int) -> dict[str, float]:
    """Return the measures of one method on one outer fold."""
    data = load_labels(name)
    folds = KFold(n_folds, shuffle=True, random_state=0).split(np.arange(data.n_samples))
    train, test = list(folds)[fold]
    x_train, x_test = data.X[train], data.X[test]
    if not issparse(data.X):
        scaler = MinMaxScaler().fit(x_train)
        x_train, x_test = scaler.transform(x_train), scaler.transform(x_test)
    begin = time.perf_counter()
    with threadpool_limits(1):
        model = method().fit(x_train, data.Y[train])
        seconds = time.perf_counter() - begin
        report = labels_report(data.Y[test], model.predict(x_test))
    return {**report, "seconds": seconds}


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("sections", nargs="*", default=list(SECTIONS), help=", ".join(SECTIONS))
    parser.add_argument("--data", help="only these data sets, with commas between them")
    parser.add_argument("--only", help="only methods whose name contains this")
    parser.add_argument("--jobs", type=int, default=2)


def main(options: Namespace) -> None:
    cells = [
        (section, method, name, fold)
        for section in options.sections
        for name in SECTIONS[section].data
        if options.data is None or name in options.data.split(",")
        for method in SECTIONS[section].methods
        if options.only is None or options.only in method
        for fold in range(SECTIONS[section].n_folds(name))
    ]
    results = Parallel(options.jobs, return_as="generator")(
        delayed(run_fold)(
            SECTIONS[section].methods[method], name, SECTIONS[section].n_folds(name), fold
        )
        for section, method, name, fold in cells
    )
    print("| data | method | folds | Hamming | accuracy | subset | F1 | macro F1 | micro F1 | s |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    done: list[dict[str, float]] = []
    for (section, method, name, fold), report in zip(cells, results, strict=True):
        done.append(report)
        if fold == SECTIONS[section].n_folds(name) - 1:
            print(row(name, method, done), flush=True)
            done = []


def row(name: str, method: str, reports: list[dict[str, float]]) -> str:
    """Return a line of the table."""
    columns = [np.array([report[key] for report in reports]) for key in reports[0]]
    figures = [f"{values.mean():.4f} ± {values.std(ddof=1):.4f}" for values in columns[:-1]]
    seconds = f"{columns[-1].mean():.1f}"
    return f"| {name} | {method} | {len(reports)} | {' | '.join(figures)} | {seconds} |"
